"""What every component is given, and what it is."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from mews.kube.client.port import KubeApi
from mews.kube.clock import Clock


class Context(Struct, frozen=True):
    """The world of one incarnation of a component: its ports, its clock, its chance."""

    kube: KubeApi
    clock: Clock
    rng: random.Random
    log: logging.Logger


class Runnable(Protocol):
    """Runs until it is cancelled; can be killed at any point and started anew from what is stored."""

    async def run(self) -> None:
        """Run until cancelled. Raising anything else is a crash."""
        ...


class _Text:
    """What a record says; put together only where somebody reads it."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self._fields = fields

    def __str__(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self._fields.items())


def record(log: logging.Logger, event: str, **fields: object) -> None:
    """One structured log record: ``event`` and its fields, collected by the harness beside the journal."""
    if log.isEnabledFor(logging.INFO):
        # Not by log.info: it would look through the stack for who calls, and find this line each time.
        extra = {"event": event, "fields": fields}
        where, args = (__file__, 0), (event, _Text(fields))
        log.handle(log.makeRecord(log.name, logging.INFO, *where, "%s %s", args, None, "record", extra))
