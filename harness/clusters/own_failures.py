"""Writes into the journal where the program of a component is wrong, though the component goes on."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from mews.harness.clusters.unit import COMPONENT
from mews.harness.journal import Journal

Handler = Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object]


class OwnFailureLines:
    """Writes a journal line where a component's program is wrong, between ``begin`` and ``end``: ``note`` is given
    errors that components log, and the loop's handler gets those that escape from their callbacks and from tasks that
    nobody awaits."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._loop: asyncio.AbstractEventLoop | None = None
        self._before: Handler | None = None

    def begin(self) -> None:
        """Listen from now on."""
        self._loop = asyncio.get_running_loop()
        self._before = self._loop.get_exception_handler()
        self._loop.set_exception_handler(self._escaped)

    def end(self) -> None:
        """Listen no more."""
        if self._loop is not None:
            self._loop.set_exception_handler(self._before)
            self._loop = None

    def note(self, actor: str, error: BaseException) -> None:
        """Write a line, where the error is one of Python's that no machine, peer or user makes. Other clusters of this
        process have loops of their own."""
        running = None
        with contextlib.suppress(RuntimeError):  # a thread without a loop
            running = asyncio.get_running_loop()
        is_own = type(error).__module__ == "builtins" and not isinstance(error, OSError | BaseExceptionGroup)
        if self._loop is None or running is not self._loop or not is_own:
            return
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        cause = f"{type(error).__name__}: {error}"
        self._journal.write("component", actor, "failed", cause=cause, place=place)

    def _escaped(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        actor = _whose(context)
        if actor and isinstance(context.get("exception"), Exception):
            self.note(actor, context["exception"])
        if self._before is not None:
            self._before(loop, context)
        else:
            loop.default_exception_handler(context)


def _whose(context: dict[str, Any]) -> str:
    """Return the component in whose name the callback or task ran, "" for none."""
    handle, task = context.get("handle"), context.get("task") or context.get("future")
    ran_in = getattr(handle, "context", None) or getattr(handle, "_context", None)
    context_of = getattr(task, "get_context", None)  # from Python 3.12 on
    if ran_in is None and context_of is not None:
        ran_in = context_of()
    return "" if ran_in is None else str(ran_in.get(COMPONENT, ""))
