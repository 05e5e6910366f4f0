"""What a loop reports whose servers can accept no connection."""

from __future__ import annotations

import asyncio
from typing import Any

from mews.descriptors import Refusals, exhausted


def name_exhaustion(loop: asyncio.AbstractEventLoop) -> None:
    """Report it in one line a minute. asyncio, which pauses for a second and goes on, prints a traceback for each
    connection that may wait."""
    if loop.get_exception_handler() is not None:
        return
    refusals = Refusals("a server")

    def report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if exhausted(context.get("exception")):
            refusals.note(loop.time())
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(report)
