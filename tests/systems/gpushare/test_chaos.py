"""Whatever dies, lags, is refused or lost: no GPU is given twice, annotations say what was given, what fits runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from mews.harness.clock import VirtualLoop
from mews.kube.api.objects import Object
from mews.kube.emulated.kubelet.faults import DEVICES_IN_FLIGHT
from mews.systems.gpushare import extender, ledger
from mews.systems.gpushare.matching import PodCandidate
from mews.systems.gpushare.node_plan import NodePlan
from mews.systems.gpushare.policy import GpuUse, SharedGpu
from tests.systems.gpushare.chaos import OPERATIONS, ChaosCluster, Operation, drawn, play

some = st.integers(0, 11)


class SharedGpusInTrouble(RuleBasedStateMachine):
    """A cluster between two rules stands still in virtual time; at the end all trouble is over, and what fits must
    run."""

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner(loop_factory=VirtualLoop)
        self._chaos: ChaosCluster | None = None

    @initialize(seed=st.integers(0, 1000))
    def open(self, seed: int) -> None:
        self._runner.run(self._open(seed))

    async def _open(self, seed: int) -> None:
        self._chaos = ChaosCluster(seed)
        await self._chaos.open()

    def _do(self, what: str, first: int = 0, second: int = 0) -> None:
        assert self._chaos is not None
        self._runner.run(self._chaos.do(what, first, second))

    @rule(
        what=st.sampled_from(("create", "create-two", "create-equal", "finishing", "pinned")), first=some, second=some
    )
    def pods_come(self, what: str, first: int, second: int) -> None:
        self._do(what, first, second)

    @rule(which=some)
    def a_pod_goes(self, which: int) -> None:
        self._do("delete", which)

    @rule(what=st.sampled_from(("kill", "start")), which=some)
    def a_component_dies_or_begins(self, what: str, which: int) -> None:
        self._do(what, which)

    @rule(which=some, after=some)
    def a_kubelet_is_restarted(self, which: int, after: int) -> None:
        self._do("kubelet", which, after)

    @rule(what=st.sampled_from(("refuse", "lose", "blind")), count=some)
    def calls_fail(self, what: str, count: int) -> None:
        self._do(what, count)

    @rule(what=st.sampled_from(("lag", "stall")), how=some)
    def watches_or_writes_are_late(self, what: str, how: int) -> None:
        self._do(what, how)

    @rule(what=st.sampled_from(("xid", "heal")), host=some, gpu=some)
    def a_gpu_breaks_or_is_healed(self, what: str, host: int, gpu: int) -> None:
        self._do(what, host, gpu)

    @rule(count=some)
    def plugins_die_as_they_have_answered(self, count: int) -> None:
        self._do("answering", count)

    @invariant()
    def nothing_is_wrong(self) -> None:
        assert self._chaos is None or self._chaos.wrong == []

    def teardown(self) -> None:
        try:
            if self._chaos is not None:
                if not self._chaos.wrong:
                    self._runner.run(self._chaos.recover())
                wrong = self._chaos.wrong
                self._runner.run(self._chaos.close())
                assert wrong == []
        finally:
            self._runner.close()


@pytest.mark.parametrize("sequences", [60, pytest.param(200, marks=pytest.mark.nightly)])
def test_nothing_is_given_twice_and_nothing_that_fits_is_stuck(sequences: int) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        SharedGpusInTrouble,
        settings=settings(
            max_examples=sequences,
            stateful_step_count=16,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


RACE: list[Operation] = [("lag", 2, 0), *[("create", 4, 0)] * 10, ("rest", 0, 0)]


def test_the_race_breaks_a_ledger_without_compare_and_swap(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forgetful(self: Any, node: str, known: Object | None, entries: Mapping[str, Any], **rest: Any) -> None:
        return None

    monkeypatch.setattr(ledger.NodeLedgers, "_write", forgetful)
    monkeypatch.setattr(extender.NodeLedgers, "_write", forgetful)
    assert any(play(RACE, seed) for seed in range(4))


def test_ours_stands_the_same_race() -> None:
    found: Iterable[list[str]] = [play(RACE, seed) for seed in range(4)]
    assert [wrong for wrong in found if wrong] == []


EQUAL: list[Operation] = [("stall", 2, 0), *[("create-equal", 1, 2)] * 4, ("kubelet", 0, 2), ("kubelet", 1, 2)]
"""Sixteen pods that ask for two units: a kubelet that begins admits them in another order than they were decided in."""


def test_annotations_differ_from_variables_where_a_container_gets_another_gpu_and_nobody_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def trusting(self: Any) -> None:
        for uid, decision in list(self._decisions.items()):
            if decision is not None and not decision.assigned and self._env_gpu_of_all(self._pods[uid]) is not None:
                gpu = SharedGpu(decision.index, decision.uuid, 8)
                self._place(uid, gpu, decision.memory, assigned=True)

    def other(self: Any, candidate: PodCandidate) -> SharedGpu | None:
        gpu = choose(self, candidate)
        return next((each for each in self._state.gpus if each.uuid != gpu.uuid), gpu) if gpu is not None else None

    choose = NodePlan._gpu_for
    monkeypatch.setattr(NodePlan, "exchange", trusting)
    monkeypatch.setattr(NodePlan, "_gpu_for", other)
    assert any("annotations say" in text for text in play(EQUAL, 1))


def test_ours_serves_equal_pods_as_their_annotations_say() -> None:
    assert [wrong for seed in range(6) if (wrong := play(EQUAL, seed))] == []


BEFORE: list[Operation] = [
    ("lag", 1, 7), ("create", 9, 9), ("stall", 11, 6), ("rest", 9, 8), ("create", 9, 3), ("create", 0, 6),
    ("pinned", 1, 2),
]  # fmt: skip
AFTER: list[Operation] = [
    ("xid", 11, 10), ("create-two", 5, 2), ("heal", 6, 2), ("create-equal", 2, 3), ("create-two", 6, 1),
    ("stall", 11, 0), ("pinned", 11, 6), ("finishing", 2, 7), ("kill", 6, 2), ("blind", 9, 5), ("heal", 10, 11),
]  # fmt: skip
SPLIT: list[Operation] = [*BEFORE, ("start", 2, 0), *AFTER]
"""A pod of two containers comes to a GPU of which a pod past the extender has just taken the last slices; a pod of one
container that asks for as much as each of them comes to the other GPU."""
LATE: list[Operation] = [*BEFORE, ("start", 2, 8), *AFTER]


def test_both_containers_of_a_pod_get_its_gpu_where_others_took_its_slices() -> None:
    assert [play(SPLIT, seed) for seed in (2, 776)] == [[], []]


def test_an_answer_given_while_a_write_was_under_way_is_remembered() -> None:
    assert play(LATE, 30048) == []


def test_a_pod_that_fits_is_stuck_where_the_memory_of_ended_pods_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(pods: Iterable[Object], entries: Mapping[str, Any]) -> list[GpuUse]:
        return [entry.use() for entry in every.setdefault("entries", {}).values()]

    every: dict[str, dict[str, Any]] = {}
    write = ledger.NodeLedgers._write

    async def hoarding(self: Any, node: str, known: Object | None, entries: Mapping[str, Any], **rest: Any) -> None:
        if node == "a":
            every.setdefault("entries", {}).update(entries)
        await write(self, node, known, entries, **rest)

    monkeypatch.setattr(ledger.NodeLedgers, "_write", hoarding)
    monkeypatch.setattr(extender, "uses_of", kept)
    finishing: list[Operation] = [("finishing", 7, 1)] * 4 + [("rest", 0, 0)] * 8 + [("create", 7, 0)] * 4
    assert any("stuck" in text for text in play(finishing, 1))


def test_operations_are_those_that_the_rules_do() -> None:
    comes = {"create", "create-two", "create-equal", "finishing", "pinned"}
    rest = {"delete", "kill", "start", "kubelet", "refuse", "lose", "blind", "lag", "stall", "xid", "heal"}
    rest |= {"answering", "rest"}
    assert set(OPERATIONS[1:6]) == comes
    assert set(OPERATIONS) == comes | rest


@pytest.mark.parametrize(("faults", "count"), [((), 0), ((DEVICES_IN_FLIGHT,), 1)], ids=["none", "upstream's"])
def test_a_kubelet_gives_slices_twice_with_upstream_s_fault_alone(faults: tuple[str, ...], count: int) -> None:
    """One of 150 worlds: an Allocate waits for its pod while the slices of another are freed."""
    wrong = play(drawn(130), 130, faults=faults)
    assert [each for each in wrong if "another container held" not in each] == []
    assert len(wrong) == count
