"""What a container was told is known after a crash, and all containers of a pod are told the same GPU."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mews.kube.api.errors import UnavailableError
from mews.kube.api.resources import CONFIGMAPS
from mews.kube.deviceplugin.port import PluginError
from mews.systems.gpushare import names
from mews.systems.gpushare.node_plan import NodePlan
from mews.systems.gpushare.policy import SharedGpu
from mews.systems.gpushare.records import recorded_answers
from tests.systems.gpushare.node_bench import NodeBench, on_node, some_slices

SMALL, LARGE = SharedGpu(0, "GPU-0", 8), SharedGpu(1, "GPU-1", 16)
UNEQUAL = (SMALL, LARGE)
MIXED = some_slices(SMALL, 0, 2) | some_slices(LARGE, 0, 4)
SETTLED_S = 30.0


async def dies_after(bench: NodeBench, ids: frozenset[str]) -> dict[str, str]:
    """A pod on the small GPU gets these slices, and the plugin dies before it has looked."""
    await bench.pod("p", SMALL, 6, assumed=1)
    told = await bench.serve("p", "c0", ids)
    await bench.begin()
    await asyncio.sleep(SETTLED_S)
    return told


@pytest.mark.parametrize(
    "ids", [MIXED, some_slices(LARGE, 0, 6), some_slices(SMALL, 0, 6)], ids=["mixed", "of another", "its own"]
)
def test_a_crash_between_the_answer_and_its_annotation_loses_nothing(ids: frozenset[str]) -> None:
    async def work(bench: NodeBench) -> None:
        told = await dies_after(bench, ids)
        assert told[names.VISIBLE] == SMALL.uuid
        assert await bench.assigned("p") == SMALL.uuid

    on_node(work, UNEQUAL)


def test_the_slices_mislead_who_begins_after_a_crash_where_answers_are_not_written_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(NodePlan, "answered", lambda self, digest, answer: {})

    async def misled(bench: NodeBench) -> None:
        await dies_after(bench, some_slices(LARGE, 0, 6))
        assert await bench.assigned("p") == LARGE.uuid

    async def lost(bench: NodeBench) -> None:
        await dies_after(bench, MIXED)
        assert await bench.assigned("p") is None

    on_node(misled, UNEQUAL)
    on_node(lost, UNEQUAL)


def test_a_pod_that_was_told_that_there_is_no_gpu_is_not_assigned_one_after_a_crash() -> None:
    async def work(bench: NodeBench) -> None:
        await bench.pod("p", SharedGpu(7, "GPU-gone", 8), 6, assumed=1)
        await bench.pod("large", LARGE, 16, assumed=2)
        await bench.pod("small", SMALL, 8, assumed=3)
        told = await bench.serve("p", "c0", some_slices(LARGE, 0, 6))
        assert told[names.INDEX] == "-1"
        await bench.begin()
        await asyncio.sleep(SETTLED_S)
        assert await bench.assigned("p") is None

    on_node(work, UNEQUAL)


def test_a_record_is_not_believed_of_the_next_pod_that_has_the_same_slices() -> None:
    async def work(bench: NodeBench) -> None:
        await bench.pod("p", SMALL, 6, assumed=1)
        await bench.serve("p", "c0", some_slices(LARGE, 0, 6))
        await bench.ends("p")
        await bench.pod("q", LARGE, 6, assumed=2)
        told = await bench.serve("q", "c0", some_slices(LARGE, 0, 6))
        assert told[names.VISIBLE] == LARGE.uuid
        await bench.begin()
        await asyncio.sleep(SETTLED_S)
        assert await bench.assigned("q") == LARGE.uuid

    on_node(work, UNEQUAL)


async def records(bench: NodeBench) -> int:
    found = await bench.kube.get(CONFIGMAPS, f"{names.LEDGER_PREFIX}a", namespace="kube-system")
    return len(recorded_answers(found))


def test_records_of_pods_that_are_gone_go() -> None:
    async def work(bench: NodeBench) -> None:
        for number in range(5):
            await bench.pod(f"p{number}", SMALL, 6, assumed=number + 1)
            bench.admits(f"p{number}")
            await bench.serve(f"p{number}", "c0", some_slices(LARGE, number, number + 6))
            await bench.ends(f"p{number}")
            await asyncio.sleep(1.0)
        assert await records(bench) == 1

    on_node(work, UNEQUAL)


def test_records_stay_while_the_kubelet_does_not_say_who_holds_what() -> None:
    async def work(bench: NodeBench) -> None:
        await bench.pod("p", SMALL, 2, assumed=1)
        await bench.serve("p", "c0", some_slices(LARGE, 0, 2))
        await bench.begin()
        bench.kubelet.silent = True
        await bench.pod("q", SMALL, 3, assumed=2)
        await bench.serve("q", "c0", some_slices(LARGE, 2, 5))
        assert await records(bench) == 2
        bench.kubelet.silent = False
        await bench.begin()
        await asyncio.sleep(SETTLED_S)
        assert [await bench.assigned(name) for name in "pq"] == [SMALL.uuid, SMALL.uuid]

    on_node(work, UNEQUAL)


class ClosedLedger:
    """An API that takes no ConfigMap."""

    def __init__(self, kube: Any) -> None:
        self._kube = kube

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._kube, name)

        async def refused(resource: Any, *given: Any, **options: Any) -> Any:
            if resource == CONFIGMAPS:
                raise UnavailableError("no")
            return await method(resource, *given, **options)

        return refused if name in ("create", "replace") else method


def test_an_answer_that_cannot_be_written_down_is_not_given() -> None:
    async def work(bench: NodeBench) -> None:
        await bench.pod("p", SMALL, 6, assumed=1)
        with pytest.raises(PluginError, match="ledger of a cannot be written"):
            await bench.serve("p", "c0", MIXED)
        with pytest.raises(PluginError, match="ledger of a cannot be written"):
            await bench.serve(
                "p", "c0", some_slices(SMALL, 0, 6)
            )  # one that the slices show: whom it is for, they do not

    on_node(work, UNEQUAL, ClosedLedger)


# Containers of one pod


async def served_in_anothers_place(bench: NodeBench, *others: int) -> None:
    """``two``'s first container is taken for ``one``, which was decided on earlier, while the kubelet does not say whom
    it admits; ``others`` are on the same GPU."""
    for number, amount in enumerate(others):
        await bench.pod(f"other{number}", LARGE, amount, assumed=3 + number)
    await bench.pod("one", LARGE, 3, assumed=1)
    await bench.pod("two", SMALL, 3, 5, assumed=2)
    bench.kubelet.silent = True
    told = await bench.serve("two", "c0", some_slices(LARGE, 0, 3))
    assert told[names.VISIBLE] == LARGE.uuid
    bench.kubelet.silent = False


def test_the_other_containers_follow_the_first_that_was_served_in_another_pods_place() -> None:
    async def work(bench: NodeBench) -> None:
        await served_in_anothers_place(bench)
        told = await bench.serve("two", "c1", some_slices(LARGE, 3, 8))
        assert told[names.VISIBLE] == LARGE.uuid
        one = await bench.serve("one", "c0", some_slices(SMALL, 0, 3))
        await asyncio.sleep(SETTLED_S)
        assert await bench.assigned("two") == LARGE.uuid
        assert await bench.assigned("one") == one[names.VISIBLE]

    on_node(work, UNEQUAL)


def test_they_are_told_two_gpus_where_only_the_decision_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodePlan, "_begun_on", lambda self, pod: None)

    async def work(bench: NodeBench) -> None:
        await served_in_anothers_place(bench)
        told = await bench.serve("two", "c1", some_slices(SMALL, 0, 5))
        assert told[names.VISIBLE] == SMALL.uuid

    on_node(work, UNEQUAL)


def test_whoever_is_displaced_gives_up_no_more_than_there_is() -> None:
    async def work(bench: NodeBench) -> None:
        await served_in_anothers_place(bench, 6)  # 3 + 6 of 16: eight more do not fit unless ``one`` goes
        await bench.serve("two", "c1", some_slices(LARGE, 3, 8))
        assert (await bench.annotations("one"))[names.UUID] == SMALL.uuid
        assert (await bench.annotations("two"))[names.UUID] == LARGE.uuid

    on_node(work, UNEQUAL)


def test_a_pod_that_has_begun_on_a_gpu_without_room_for_all_of_it_is_not_admitted() -> None:
    async def work(bench: NodeBench) -> None:
        await served_in_anothers_place(bench, 6, 7)
        with pytest.raises(PluginError, match="default/two has begun on GPU-1 in another pod's place"):
            await bench.serve("two", "c1", some_slices(SMALL, 0, 5))
        await asyncio.sleep(SETTLED_S)
        assert await bench.assigned("two") is None

    on_node(work, UNEQUAL)


def test_a_pod_that_was_told_two_gpus_is_never_assigned() -> None:
    async def work(bench: NodeBench) -> None:
        await bench.pod("one", LARGE, 3, assumed=1)
        await bench.pod("two", SMALL, 3, 3, assumed=2)
        bench.kubelet.silent = True
        first = await bench.serve("two", "c0", some_slices(LARGE, 0, 3))
        second = await bench.serve("two", "c1", some_slices(SMALL, 0, 3))
        bench.kubelet.silent = False
        assert first[names.VISIBLE] != second[names.VISIBLE]  # nobody can know better: Allocate names no pod
        await asyncio.sleep(SETTLED_S)
        assert await bench.assigned("two") is None

    on_node(work, UNEQUAL)


@pytest.mark.parametrize("wanted", ["one", "two"])
def test_the_pod_that_the_kubelet_admits_counts_more_than_time_and_slices(wanted: str) -> None:
    gpus = {"one": LARGE, "two": SMALL}

    async def work(bench: NodeBench) -> None:
        await bench.pod("one", LARGE, 3, assumed=1)
        await bench.pod("two", SMALL, 3, 5, assumed=2)
        other = gpus["two" if wanted == "one" else "one"]
        bench.admits(wanted)
        told = await bench.serve(wanted, "c0", some_slices(other, 0, 3), ask=False)
        assert told[names.VISIBLE] == gpus[wanted].uuid

    on_node(work, UNEQUAL)
