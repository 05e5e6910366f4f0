"""What every component is given, and what it is."""

from __future__ import annotations

import logging
import random
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


def record(log: logging.Logger, event: str, **fields: object) -> None:
    """One structured log record: ``event`` and its fields, collected by the harness beside the journal."""
    text = " ".join(f"{key}={value}" for key, value in fields.items())
    log.info("%s %s", event, text, extra={"event": event, "fields": fields})
