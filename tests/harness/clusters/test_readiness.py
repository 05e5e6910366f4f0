"""Waiting for nodes and accounts while their server ends watches, and gives no answer for a moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mews.harness.clock import run_virtual
from mews.harness.clusters.embedded.readiness import default_account_made, nodes_ready
from mews.harness.errors import RequirementError
from mews.kube.api.errors import UnavailableError
from mews.kube.clock import Pace

READY = {
    "metadata": {"name": "a"},
    "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"nvidia.com/gpu": "2"}},
}
UNREADY = {"metadata": {"name": "a"}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}
ACCOUNT = {"metadata": {"name": "default"}}


class Event:
    def __init__(self, obj: dict[str, Any]) -> None:
        self.object = obj


class Rough:
    """Each watch gives what is next: objects, or an error. The last goes on for ever."""

    def __init__(self, *watches: list[dict[str, Any]] | Exception) -> None:
        self.watches, self.begun_s = list(watches), list[float]()

    async def watch(self, *_: Any, **__: Any) -> AsyncIterator[Event]:
        self.begun_s.append(asyncio.get_running_loop().time())
        last = len(self.watches) == 1
        found = self.watches[0] if last else self.watches.pop(0)
        if isinstance(found, Exception):
            raise found
        for obj in found:
            yield Event(obj)
        if last:
            await asyncio.Event().wait()


def test_a_server_that_gives_no_answer_is_asked_once_more():
    kube = Rough(UnavailableError("too many open files"), [UNREADY], [READY])
    run_virtual(lambda: nodes_ready(kube, {"a": {"nvidia.com/gpu": 2}}, Pace()))
    first, second, third = kube.begun_s
    assert second - first == pytest.approx(0.5) and third == second


def test_an_account_is_awaited_in_the_same_way():
    kube = Rough(UnavailableError("away"), [], [ACCOUNT])
    run_virtual(lambda: default_account_made(kube, "x"))
    assert len(kube.begun_s) == 3


def test_a_server_that_never_answers_ends_the_wait():
    kube = Rough(UnavailableError("away"))
    with pytest.raises(RequirementError, match="1 nodes did not become ready within 90 s: a"):
        run_virtual(lambda: nodes_ready(kube, {"a": {}}, Pace()))


def test_no_nodes_are_ready_at_once():
    kube = Rough([])
    run_virtual(lambda: nodes_ready(kube, {}, Pace()))
    assert kube.begun_s == []
