"""What a component of ours logs in its pod, booked as records."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from mews.harness.clusters.real.nodes import note
from mews.harness.journal import Journal
from mews.harness.manifests.parts import container_name
from mews.harness.manifests.spec import StackSpec, deployment_of
from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.client.port import KubeApi
from mews.kube.clock import rest

_AGAIN_S = 0.2


async def follow_lines(log: Callable[[], AsyncIterator[bytes]], take: Callable[[bytes], None]) -> None:
    """Give each whole line of a log to ``take`` once, until cancelled: ``log`` reads it from its begin, and is called
    again when that breaks off."""
    seen = 0
    while True:
        with contextlib.suppress(ApiError, UnavailableError):
            seen = await _read(log(), seen, take)
        await rest(_AGAIN_S)


async def _read(log: AsyncIterator[bytes], skip: int, take: Callable[[bytes], None]) -> int:
    number, rest_ = 0, b""
    async for chunk in log:
        *whole_lines, rest_ = (rest_ + chunk).split(b"\n")
        for line in whole_lines:
            number += 1
            if number > skip:
                take(line)
    return max(number, skip)


class LogFollower:
    """Follows one container's log from ``begin_s`` (unix) on, and tells ``on_record`` of each record, by its component.
    What is no record of ours, as of a program of the user's, is left out."""

    def __init__(
        self,
        kube: KubeApi,
        namespace: str,
        records: Journal,
        begin_s: float,
        on_record: Callable[[str, Mapping[str, Any]], None] = lambda component, record: None,
    ) -> None:
        self._kube = kube
        self._namespace = namespace
        self._records = records
        self._begin_s = begin_s
        self._on_record = on_record

    async def run(self, component: str, pod: str) -> None:
        """Until cancelled, over broken connections. ``component``: that of the container's name, with the host of one
        that each node has."""
        container = container_name(component.partition("/")[0])
        await follow_lines(
            lambda: self._kube.log(self._namespace, pod, container=container, follow=True),
            lambda line: self._book(component, line),
        )

    def _book(self, component: str, line: bytes) -> None:
        with contextlib.suppress(ValueError, TypeError, LookupError):
            record = json.loads(line)
            if float(record["t"]) >= self._begin_s:
                note(self._records, component, record)
                self._on_record(component, record)


def logs_records(stack: StackSpec, component: str) -> bool:
    """Return whether a component's structured records are in its pod's log: the agents read those of the component
    beside them."""
    found = stack.component(component)
    if found is None or component == stack.node_component():
        return False
    return deployment_of(found).writes_records
