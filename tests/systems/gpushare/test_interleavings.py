"""Two replicas of the extender, two pods, one GPU: every order in which their calls of the API can fall, with and
without a death between any two of them, and with watches that are prompt or show nothing."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.ports.fence import Fence
from mews.kube.api.objects import annotations_of, name_of, node_name_of
from mews.kube.api.resources import NODES, PODS
from mews.kube.client.port import KubeApi, WatchEvent
from mews.kube.clock import stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.system.services import HttpHandler
from mews.systems.gpushare import ledger, names
from mews.systems.gpushare.config import GpuShareConfig
from mews.systems.gpushare.extender import GpuShareExtender
from mews.systems.gpushare.policy import SharedGpu
from mews.systems.gpushare.records import LedgerEntry, gpus_text
from tests.systems.gpushare.kept_handler import KeptHandler

SIZE = 8
REPLICAS = ("one", "two")
_ENOUGH_S = 1.0
"""Virtual time in which everything that does not wait at the gate has happened."""


@dataclass
class Gate:
    """Each call of a replica waits here until the schedule lets it through."""

    waiting: dict[str, asyncio.Future[None]] = field(default_factory=dict)
    open: bool = False

    async def pass_through(self, replica: str) -> None:
        if self.open:
            return
        turn = self.waiting[replica] = asyncio.get_running_loop().create_future()
        await turn


class GatedKube:
    """A KubeApi whose calls wait at the gate; ``stale``: its watches show nothing after the first list."""

    def __init__(self, kube: KubeApi, gate: Gate, replica: str, *, stale: bool) -> None:
        self._kube, self._gate, self._replica, self._stale = kube, gate, replica, stale

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._kube, name)

        async def gated(*given: Any, **options: Any) -> Any:
            await self._gate.pass_through(self._replica)
            return await method(*given, **options)

        return gated if name in ("get", "create", "replace", "patch", "bind") else method

    async def watch(self, *given: Any, **options: Any) -> AsyncIterator[WatchEvent]:
        if self._stale:
            await asyncio.get_running_loop().create_future()
        async for event in self._kube.watch(*given, **options):
            yield event


@dataclass(frozen=True)
class Case:
    """What each replica is asked to bind, and how much each pod wants."""

    asked: tuple[str, str]
    wants: Mapping[str, int]
    stale: bool
    deaths: bool


@dataclass
class Outcome:
    """Which option was taken at each point, and of how many; the answers; where the pods are in the end."""

    taken: list[tuple[int, int]]
    answers: dict[str, int]
    placed: dict[str, str]
    used: int


async def _played(case: Case, prefix: list[int]) -> Outcome:
    clock = virtual_clock()
    kube: KubeApi = InProcessKube(fresh_store(clock.now, stream(1, "store")), "system:admin")
    annotations = {names.NODE_GPUS: gpus_text([SharedGpu(0, "GPU-0", SIZE)])}
    await kube.create(NODES, {"metadata": {"name": "n", "annotations": annotations}})
    for pod, memory in case.wants.items():
        limits = {"limits": {names.MEMORY_RESOURCE: str(memory)}}
        spec = {"containers": [{"name": "c", "image": "x", "resources": limits}]}
        await kube.create(PODS, {"metadata": {"name": pod}, "spec": spec}, namespace="default")
    gate, fences, tasks = Gate(), dict[str, Fence](), list[asyncio.Task[Any]]()

    async def replica(name: str, *, stale: bool) -> HttpHandler:
        fence, service = Fence(), KeptHandler()
        fences[name] = fence
        port: Any = fence.around(GatedKube(kube, gate, name, stale=stale))
        context = Context(port, clock, stream(1, name), logging.getLogger("test"))
        tasks.append(asyncio.create_task(GpuShareExtender(context, GpuShareConfig(), service).run()))
        return await service.handler

    async def bind(handler: HttpHandler, pod: str) -> int:
        body = {"PodName": pod, "PodNamespace": "default", "PodUID": "", "Node": "n"}
        return (await handler("POST", "/gpushare-scheduler/bind", json.dumps(body).encode())).status

    handlers = [await replica(name, stale=case.stale) for name in REPLICAS]
    calls = {
        name: asyncio.create_task(bind(handler, pod))
        for name, handler, pod in zip(REPLICAS, handlers, case.asked, strict=True)
    }
    taken, dead = list[tuple[int, int]](), set[str]()
    while True:
        await asyncio.sleep(_ENOUGH_S)
        waiting = sorted(name for name in gate.waiting if name not in dead)
        if not waiting:
            break
        options = [(name, False) for name in waiting]
        if case.deaths and not dead:
            options += [(name, True) for name in waiting]
        choice = prefix[len(taken)] if len(taken) < len(prefix) else 0
        taken.append((choice, len(options)))
        name, dies = options[choice]
        turn = gate.waiting.pop(name)
        if dies:
            dead.add(name)
            fences[name].cut()
            calls[name].cancel()
        else:
            turn.set_result(None)
    answers = {name: call.result() for name, call in calls.items() if name not in dead}
    # Who asked the dead, or was refused, asks again: a replica that has just begun.
    gate.open = True
    third = await replica("three", stale=False)
    for pod in case.wants:
        await bind(third, pod)
    pods = {name_of(pod): pod for pod in (await kube.list(PODS)).items}
    placed = {name: annotations_of(pod).get(names.INDEX, "") for name, pod in pods.items() if node_name_of(pod)}
    for task in (*tasks, *calls.values()):
        task.cancel()
    await asyncio.gather(*tasks, *calls.values(), return_exceptions=True)
    return Outcome(taken, answers, placed, sum(case.wants[name] for name in placed))


def every_order(case: Case) -> Iterator[Outcome]:
    """Depth first: each order once, by the options that were taken where there were several."""
    prefixes: list[list[int]] = [[]]
    while prefixes:
        prefix = prefixes.pop()
        outcome = run_virtual(lambda prefix=prefix: _played(case, prefix))  # type: ignore[misc]
        yield outcome
        choices = [choice for choice, _ in outcome.taken]
        for place in range(len(prefix), len(outcome.taken)):
            for other in range(1, outcome.taken[place][1]):
                prefixes.append([*choices[:place], other])


TOO_MUCH, BOTH_FIT = {"p": 5, "q": 5}, {"p": 4, "q": 4}


@pytest.mark.parametrize("deaths", [False, True], ids=["both live", "one dies"])
@pytest.mark.parametrize("stale", [False, True], ids=["prompt", "stale"])
@pytest.mark.parametrize(
    ("asked", "wants", "bound"),
    [(("p", "q"), TOO_MUCH, 1), (("p", "q"), BOTH_FIT, 2), (("p", "p"), {"p": 5}, 1)],
    ids=["one fits", "both fit", "the same pod"],
)
def test_in_no_order_is_memory_given_twice_and_what_fits_is_bound(
    asked: tuple[str, str], wants: dict[str, int], bound: int, *, stale: bool, deaths: bool
) -> None:
    count = 0
    for outcome in every_order(Case(asked, wants, stale, deaths)):
        count += 1
        assert outcome.used <= SIZE, outcome
        assert len(outcome.placed) == bound, outcome
        assert set(outcome.placed.values()) == {"0"}, outcome
    assert count > 2  # there were several orders


def test_some_order_gives_memory_twice_where_the_ledger_is_written_without_its_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write = ledger.NodeLedgers._write

    async def blind(self: Any, node: str, known: Any, entries: Mapping[str, LedgerEntry]) -> None:
        if known is None:
            try:
                return await write(self, node, None, entries)
            except ledger.ConflictError:
                await self.read(node)
                known = self._known(node)
        there = await self._kube.get(ledger.CONFIGMAPS, known["metadata"]["name"], namespace=self._namespace)
        return await write(self, node, there, entries)

    monkeypatch.setattr(ledger.NodeLedgers, "_write", blind)
    outcomes = every_order(Case(("p", "q"), TOO_MUCH, stale=False, deaths=False))
    assert any(outcome.used > SIZE for outcome in outcomes)
