"""Wherever the plugin dies between an extender's promise and the last annotation, and whatever arrives late: its next
incarnation goes on as if it had not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from mews.kube.api.errors import UnavailableError
from mews.kube.api.resources import CONFIGMAPS, PODS
from mews.kube.deviceplugin.port import PluginError
from mews.systems.gpushare import names
from mews.systems.gpushare.node_plan import NodePlan
from mews.systems.gpushare.policy import SharedGpu
from mews.systems.gpushare.records import ledger_entries
from tests.systems.gpushare.node_bench import NodeBench, on_node, some_slices

SMALL, LARGE = SharedGpu(0, "GPU-0", 8), SharedGpu(1, "GPU-1", 16)
UNEQUAL = (SMALL, LARGE)
MIXED = some_slices(SMALL, 0, 1) | some_slices(LARGE, 0, 2)
SETTLED_S = 30.0


class TroubledApi:
    """An API of which a test may make a call fail: ``fails`` is asked before each with its verb, resource and body."""

    def __init__(self, kube: Any) -> None:
        self._kube = kube
        self.fails: Callable[[str, Any, Any], bool] = lambda verb, resource, body: False

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._kube, name)
        if name not in ("get", "list", "create", "replace", "patch"):
            return method

        async def asked(resource: Any, *given: Any, **options: Any) -> Any:
            if self.fails(name, resource, given[-1] if given else None):
                raise UnavailableError("no answer")
            return await method(resource, *given, **options)

        return asked


def in_trouble(work: Callable[[NodeBench, TroubledApi], Any]) -> None:
    made: list[TroubledApi] = []

    def troubled(kube: Any) -> TroubledApi:
        made.append(TroubledApi(kube))
        return made[0]

    on_node(lambda bench: work(bench, made[0]), UNEQUAL, troubled)


async def served_in_the_place_of_one(bench: NodeBench, ids: frozenset[str]) -> dict[str, str]:
    """``two``, decided on for the small GPU, is served while the kubelet does not say whom it admits, and taken for
    ``one``, which was decided on earlier and for the large GPU."""
    await bench.pod("one", LARGE, 3, assumed=1)
    await bench.pod("two", SMALL, 3, assumed=2)
    bench.kubelet.silent = True
    told = await bench.serve("two", "c0", ids)
    bench.kubelet.silent = False
    assert told[names.VISIBLE] == LARGE.uuid
    return told


async def exchanged(bench: NodeBench) -> None:
    told = await bench.serve("one", "c0", some_slices(SMALL, 0, 3))
    assert told[names.VISIBLE] == SMALL.uuid
    await asyncio.sleep(SETTLED_S)
    assert [await bench.assigned(name) for name in ("one", "two")] == [SMALL.uuid, LARGE.uuid]


@pytest.mark.parametrize("ids", [some_slices(LARGE, 0, 3), MIXED], ids=["of the GPU", "mixed"])
def test_whom_an_answer_was_taken_for_is_known_after_a_crash(ids: frozenset[str]) -> None:
    async def work(bench: NodeBench) -> None:
        await served_in_the_place_of_one(bench, ids)
        await bench.begin()
        await exchanged(bench)

    on_node(work, UNEQUAL)


def test_memory_is_given_twice_where_that_is_not_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodePlan, "_taken_for", lambda self, pod: [])

    async def work(bench: NodeBench) -> None:
        await served_in_the_place_of_one(bench, some_slices(LARGE, 0, 3))
        await bench.begin()
        told = await bench.serve("one", "c0", some_slices(SMALL, 0, 3))
        assert told[names.VISIBLE] == LARGE.uuid  # as ``two``, for which there was no promise of it

    on_node(work, UNEQUAL)


def test_nobody_is_answered_by_a_decision_whose_exchange_could_not_be_written() -> None:
    async def work(bench: NodeBench, api: TroubledApi) -> None:
        await served_in_the_place_of_one(bench, some_slices(LARGE, 0, 3))
        await bench.begin()
        left = [1]

        def once(verb: str, resource: Any, body: Any) -> bool:
            left[0] -= verb == "replace" and resource == CONFIGMAPS
            return verb == "replace" and resource == CONFIGMAPS and left[0] >= 0

        api.fails = once
        await exchanged(bench)

    in_trouble(work)


@pytest.mark.parametrize("silent", [CONFIGMAPS, PODS], ids=["ledger", "pods"])
def test_nobody_is_answered_while_it_cannot_be_read_what_was_answered_before(silent: Any) -> None:
    async def work(bench: NodeBench, api: TroubledApi) -> None:
        await bench.pod("one", LARGE, 3, assumed=1)
        await bench.pod("two", SMALL, 3, 2, assumed=2)
        bench.kubelet.silent = True
        told = await bench.serve("two", "c0", MIXED)
        bench.kubelet.silent = False
        await bench.begin()
        api.fails = lambda verb, resource, body: verb in ("get", "list") and resource == silent
        with pytest.raises(PluginError, match="cannot be"):
            await bench.serve("two", "c1", some_slices(SMALL, 1, 3))
        api.fails = lambda verb, resource, body: False
        again = await bench.serve("two", "c1", some_slices(SMALL, 1, 3))
        assert again[names.VISIBLE] == told[names.VISIBLE] == LARGE.uuid
        await asyncio.sleep(SETTLED_S)
        assert await bench.assigned("two") == LARGE.uuid

    in_trouble(work)


def test_a_plugin_that_dies_between_two_annotations_is_followed_by_one_that_believes_the_ledger() -> None:
    async def work(bench: NodeBench, api: TroubledApi) -> None:
        await served_in_the_place_of_one(bench, some_slices(LARGE, 0, 3))
        written: list[Any] = []

        def after_the_first(verb: str, resource: Any, body: Any) -> bool:
            if verb == "patch" and resource == PODS:
                written.append(body)
            return len(written) > 1

        api.fails = after_the_first
        await asyncio.sleep(SETTLED_S)
        await bench.die()
        assert written
        api.fails = lambda verb, resource, body: False
        await bench.begin()
        await exchanged(bench)

    in_trouble(work)


def test_a_late_annotation_of_a_dead_plugin_does_not_undo_a_newer_one() -> None:
    async def work(bench: NodeBench, api: TroubledApi) -> None:
        late: list[tuple[str, Any]] = []
        patch = api._kube.patch

        async def kept(resource: Any, name: str, body: Any, **options: Any) -> Any:
            if resource != PODS:
                return await patch(resource, name, body, **options)
            late.append((name, body))
            return await asyncio.get_running_loop().create_future()

        await served_in_the_place_of_one(bench, some_slices(LARGE, 0, 3))
        api.patch = kept  # type: ignore[attr-defined]
        await asyncio.sleep(SETTLED_S)
        await bench.begin()
        await bench.die()
        del api.patch  # type: ignore[attr-defined]
        assert late
        await bench.begin()
        await exchanged(bench)
        for name, body in late:
            stale = {**body["metadata"], "annotations": {**body["metadata"]["annotations"], names.UUID: "GPU-stale"}}
            with pytest.raises(Exception, match="modified"):
                await patch(PODS, name, {"metadata": stale}, namespace="default")

    in_trouble(work)


def test_an_old_answer_about_the_same_slices_is_not_believed_later_where_the_ledger_could_not_be_read() -> None:
    async def work(bench: NodeBench, api: TroubledApi) -> None:
        await bench.pod("p", SMALL, 3, assumed=1)
        await bench.serve("p", "c0", some_slices(LARGE, 0, 3))  # told the small one, and holds slices of the large one
        await bench.ends("p")
        await bench.pod("q", LARGE, 3, assumed=2)
        await bench.begin()
        left = [3]

        def thrice(verb: str, resource: Any, body: Any) -> bool:
            left[0] -= verb == "get" and resource == CONFIGMAPS
            return verb == "get" and resource == CONFIGMAPS and left[0] >= 0

        api.fails = thrice
        told = await bench.serve("q", "c0", some_slices(LARGE, 0, 3), ask=False)
        assert told[names.VISIBLE] == LARGE.uuid
        await bench.begin()
        await asyncio.sleep(SETTLED_S)
        assert await bench.assigned("q") == LARGE.uuid

    in_trouble(work)


def test_what_a_container_was_told_outlives_the_pod_that_it_was_taken_for() -> None:
    async def work(bench: NodeBench) -> None:
        await served_in_the_place_of_one(bench, MIXED)
        await bench.die()
        await bench.kube.delete(PODS, "one", namespace="default")
        await bench.begin()
        await asyncio.sleep(SETTLED_S)
        assert await bench.assigned("two") == LARGE.uuid

    on_node(work, UNEQUAL)


def test_places_go_round_where_three_were_served_in_one_anothers() -> None:
    gpus = tuple(SharedGpu(number, f"GPU-{number}", 8) for number in range(3))

    async def work(bench: NodeBench) -> None:
        for number, name in enumerate("abc"):
            await bench.pod(name, gpus[number], 5, assumed=1 + number)
        bench.kubelet.silent = True
        told = [await bench.serve(name, "c0", some_slices(gpus[number], 0, 5)) for number, name in enumerate("bca")]
        assert len({each[names.VISIBLE] for each in told}) == 3
        await bench.begin()
        bench.kubelet.silent = False
        await asyncio.sleep(SETTLED_S)
        assert [await bench.assigned(name) for name in "bca"] == [each[names.VISIBLE] for each in told]

    on_node(work, gpus)


def test_the_last_has_what_the_first_gave_up_where_two_were_served_in_the_place_of_the_next() -> None:
    gpus = tuple(SharedGpu(number, f"GPU-{number}", 8) for number in range(3))

    async def work(bench: NodeBench) -> None:
        for number, name in enumerate("abc"):
            await bench.pod(name, gpus[number], 5, assumed=1 + number)
        bench.kubelet.silent = True
        first = await bench.serve("b", "c0", some_slices(gpus[0], 0, 5))  # taken for a
        second = await bench.serve("c", "c0", some_slices(gpus[1], 0, 5))  # taken for b
        assert [first[names.VISIBLE], second[names.VISIBLE]] == ["GPU-0", "GPU-1"]
        await bench.begin()
        bench.kubelet.silent = False
        last = await bench.serve("a", "c0", some_slices(gpus[2], 0, 5))
        assert last[names.VISIBLE] == "GPU-2"
        await asyncio.sleep(SETTLED_S)
        assert [await bench.assigned(name) for name in "abc"] == ["GPU-2", "GPU-0", "GPU-1"]

    on_node(work, gpus)


def test_the_ledger_counts_more_than_annotations_that_a_late_bind_of_a_dead_replica_carried() -> None:
    async def work(bench: NodeBench) -> None:
        await bench.pod("p", SMALL, 6, assumed=1)
        # Another replica has promised it the other GPU meanwhile, and somebody else this one.
        await bench.pod("q", SMALL, 6, assumed=2)
        entries = {}
        for name, gpu in (("p", LARGE), ("q", SMALL)):
            pod = await bench.kube.get(PODS, name, namespace="default")
            row = {"uid": pod["metadata"]["uid"], "namespace": "default", "name": name, "version": 1}
            entries[row["uid"]] = {**row, "index": gpu.index, "uuid": gpu.uuid, "memory": 6}
        ledger = {"metadata": {"name": "gpushare-ledger-a"}, "data": {"pods": json.dumps(list(entries.values()))}}
        assert ledger_entries(ledger)
        await bench.kube.create(CONFIGMAPS, ledger, namespace="kube-system")
        for name, gpu in (("p", LARGE), ("q", SMALL)):
            told = await bench.serve(name, "c0", some_slices(gpu, 0, 6))
            assert told[names.VISIBLE] == gpu.uuid
        await asyncio.sleep(SETTLED_S)
        assert [await bench.assigned(name) for name in "pq"] == [LARGE.uuid, SMALL.uuid]

    on_node(work, UNEQUAL)


@pytest.mark.parametrize("dies", [True, False])
def test_an_answer_that_came_to_nothing_keeps_nobody_from_its_memory(dies: bool) -> None:
    async def work(bench: NodeBench) -> None:
        await bench.pod("one", LARGE, 3, assumed=1)
        await bench.answers.allocate(sorted(some_slices(LARGE, 0, 3)))  # the kubelet never hears of it
        if dies:
            await bench.begin()
        told = await bench.serve("one", "c0", some_slices(LARGE, 3, 6))
        assert told[names.VISIBLE] == LARGE.uuid
        await asyncio.sleep(SETTLED_S)
        assert await bench.assigned("one") == LARGE.uuid

    on_node(work, UNEQUAL)
