"""What becomes of a pod's status and of its deletion, whatever the API answers (pkg/kubelet/status)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.errors import (
    ApiError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnavailableError,
)
from mews.kube.api.objects import Object
from mews.kube.api.resources import PODS
from mews.kube.client.port import DeleteOptions, Patch
from mews.kube.clock import stream
from mews.kube.component import Context
from mews.kube.emulated.kubelet.status import StatusManager
from tests.kube.emulated.kubelet.bench import Bench

REFUSALS: list[Exception] = [
    *(
        kind("no")
        for kind in (BadRequestError, ConflictError, ForbiddenError, InvalidError, ServerError, TooManyRequestsError)
    ),
    UnavailableError("nobody answers"),
]
KINDS = [type(each).__name__ for each in REFUSALS]


class Moody:
    """A KubeApi whose next calls of a name fail, in that order."""

    def __init__(self, kube: Any) -> None:
        self._kube = kube
        self.moods: dict[str, list[Exception]] = {}
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._kube, name)

        async def call(*given: Any, **options: Any) -> Any:
            self.calls.append(name)
            if self.moods.get(name):
                raise self.moods[name].pop(0)
            return await method(*given, **options)

        return call


class Writer:
    """A status manager on an API that has one pod."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.kube: Any = Moody(self.bench.kube)
        rng = stream(1, "status")
        self.status = StatusManager(Context(self.kube, self.bench.clock, rng, logging.getLogger("kubelet")))

    async def shown(self) -> str:
        return str((await self.bench.get("a"))["status"]["phase"])

    async def is_gone(self) -> bool:
        try:
            await self.bench.get("a")
        except NotFoundError:
            return True
        return False


def written(play: Callable[[Writer, Object], Awaitable[None]]) -> None:
    """Play it with a writer that runs and a pod that is bound."""

    async def main() -> None:
        writer = Writer()
        await writer.bench.pod("a")
        running = asyncio.create_task(writer.status.run())
        try:
            await play(writer, await writer.bench.get("a"))
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    run_virtual(main)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("call", ["get", "patch"])
@pytest.mark.parametrize("refusal", REFUSALS, ids=KINDS)
def test_a_status_is_written_in_the_end(refusal: Exception, call: str, times: int) -> None:
    async def play(writer: Writer, pod: Object) -> None:
        writer.kube.moods[call] = [refusal] * times
        writer.status.publish(pod, {"phase": "Running"})
        await asyncio.sleep(0.5)
        assert await writer.shown() == "Pending"
        await writer.status.flushed(pod["metadata"]["uid"])
        assert await writer.shown() == "Running"

    written(play)


@pytest.mark.parametrize("refusal", REFUSALS, ids=KINDS)
def test_a_refused_status_does_not_hold_up_those_of_other_pods(refusal: Exception) -> None:
    async def play(writer: Writer, pod: Object) -> None:
        await writer.bench.pod("b")
        writer.kube.moods["patch"] = [refusal]
        writer.status.publish(pod, {"phase": "Running"})
        writer.status.publish(await writer.bench.get("b"), {"phase": "Running"})
        await asyncio.sleep(2.0)
        assert (await writer.bench.get("b"))["status"]["phase"] == "Running"

    written(play)


@pytest.mark.parametrize("refusal", REFUSALS, ids=KINDS)
def test_a_newer_status_counts_where_an_older_one_was_refused(refusal: Exception) -> None:
    async def play(writer: Writer, pod: Object) -> None:
        writer.kube.moods["patch"] = [refusal]
        writer.status.publish(pod, {"phase": "Running"})
        await asyncio.sleep(0.5)
        writer.status.publish(pod, {"phase": "Succeeded"})
        await asyncio.sleep(60.0)
        assert await writer.shown() == "Succeeded"
        assert writer.kube.calls.count("patch") == 2

    written(play)


RETRIED = [each for each in REFUSALS if not isinstance(each, ConflictError)]


@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize("refusal", RETRIED, ids=[type(each).__name__ for each in RETRIED])
def test_a_stopped_pod_is_gone_in_the_end(refusal: Exception, times: int) -> None:
    async def play(writer: Writer, pod: Object) -> None:
        writer.kube.moods["delete"] = [refusal] * times
        await writer.status.delete(pod)
        assert await writer.is_gone()
        assert writer.kube.calls.count("delete") == times + 1

    written(play)


@pytest.mark.parametrize("answer", [NotFoundError("gone"), ConflictError("of another uid")], ids=["gone", "another"])
def test_a_pod_that_is_gone_or_another_one_is_let_be(answer: ApiError) -> None:
    async def play(writer: Writer, pod: Object) -> None:
        writer.kube.moods["delete"] = [answer]
        await writer.status.delete(pod)
        assert not await writer.is_gone()
        assert writer.kube.calls.count("delete") == 1

    written(play)


async def _replace(writer: Writer) -> None:
    await writer.bench.kube.delete(PODS, "a", namespace="default", options=DeleteOptions(grace_period_s=0))
    await writer.bench.pod("a")


def test_the_status_of_a_pod_is_not_that_of_the_next_of_its_name() -> None:
    async def play(writer: Writer, pod: Object) -> None:
        await _replace(writer)
        writer.status.publish(pod, {"phase": "Failed"})
        await writer.status.flushed(pod["metadata"]["uid"])
        assert await writer.shown() == "Pending"

    written(play)


def test_the_next_pod_of_a_name_is_not_deleted_for_the_last() -> None:
    async def play(writer: Writer, pod: Object) -> None:
        await _replace(writer)
        await writer.status.delete(pod)
        assert not await writer.is_gone()

    written(play)


@pytest.mark.parametrize("forgotten", ["before it is written", "while it is refused"])
def test_nobody_waits_for_the_status_of_a_forgotten_pod(forgotten: str) -> None:
    async def play(writer: Writer, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        writer.kube.moods["patch"] = [ForbiddenError("no")] * 100
        writer.status.publish(pod, {"phase": "Running"})
        if forgotten == "while it is refused":
            await asyncio.sleep(1.0)
        waiting = asyncio.create_task(writer.status.flushed(uid))
        await asyncio.sleep(0.1)
        writer.status.forget(uid)
        async with asyncio.timeout(30.0):
            await waiting

    written(play)


@pytest.mark.parametrize(
    ("theirs", "again"),
    [
        ({"type": "Ready", "status": "False"}, True),
        ({"type": "Ready", "status": "True"}, False),
        ({"type": "DisruptionTarget", "status": "True"}, False),
        ({"type": "ContainersReady", "status": "True"}, True),
    ],
    ids=["Ready, another way", "Ready, as it was", "one of others", "one that the kubelet never wrote"],
)
def test_the_kubelet_s_conditions_are_its_own(theirs: dict[str, str], again: bool) -> None:
    async def play(writer: Writer, pod: Object) -> None:
        own = [{"type": "Ready", "status": "True"}]
        writer.status.publish(pod, {"phase": "Running", "conditions": own})
        await writer.status.flushed(pod["metadata"]["uid"])
        both = [theirs] if theirs["type"] == "Ready" else [*own, theirs]
        body = {"status": {"conditions": both}}
        await writer.bench.kube.patch(PODS, "a", body, kind=Patch.MERGE, namespace="default", subresource="status")
        writer.kube.calls.clear()
        writer.status.reconcile(await writer.bench.get("a"))
        await asyncio.sleep(1.0)
        assert ("patch" in writer.kube.calls) == again
        kept = {entry["type"]: entry["status"] for entry in (await writer.bench.get("a"))["status"]["conditions"]}
        assert kept["Ready"] == "True"
        assert ("DisruptionTarget" in kept) == (theirs["type"] == "DisruptionTarget")

    written(play)
