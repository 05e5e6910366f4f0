"""Sampling of nodes, the round robin, and the words of a refusal."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import pytest

from mews.kube.scheduling import messages
from mews.kube.scheduling.cache import Cache
from mews.kube.scheduling.config import SchedulerProfile, TieBreak
from mews.kube.scheduling.cycle import Decider, best, choose, nodes_to_find
from mews.kube.scheduling.framework import CycleState, Handle, Status, unresolvable, unschedulable
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins.any_node import any_node_profile
from mews.kube.scheduling.podinfo import PodInfo, pod_info
from mews.kube.scheduling.points import ExtensionPoints
from mews.kube.scheduling.waiting import go_duration
from tests.kube.scheduling.world import node, pod


@pytest.mark.parametrize(
    ("nodes", "percentage", "expected"),
    [(99, 10, 99), (250, 0, 120), (250, 10, 100), (250, 60, 150), (250, 100, 250), (5000, 0, 500), (20000, 0, 1000)],
)
def test_as_many_nodes_are_sought_as_kube_scheduler_scores(nodes: int, percentage: int, expected: int) -> None:
    assert nodes_to_find(nodes, percentage) == expected


class Even:
    """Fits everywhere, scores alike, binds nothing."""

    name = "Even"

    def __init__(self, handle: Handle) -> None:
        pass

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return Status()

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 1

    async def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return Status()


def test_a_profile_for_any_node_leaves_the_choice_among_all_that_fit_to_chance() -> None:
    cache = Cache()
    for name in ("a", "b", "c"):
        cache.set_node(node(name))
    decider = Decider(cache, lambda node: (), lambda: False)
    points = ExtensionPoints(any_node_profile("x", (Even,)), cast(Handle, None))
    rng = random.Random(1)
    taken = []
    for _ in range(300):
        found = decider.find(points, CycleState(), pod_info(pod("p")))
        taken.append(best(points, CycleState(), pod_info(pod("p")), found.feasible, rng))
    pairs = Counter(pairwise(taken))
    assert len(pairs) == 9, "each may follow on each: they do not take turns"
    assert min(pairs.values()) > 15


def test_samples_go_round_robin_over_the_nodes() -> None:
    cache = Cache()
    for number in range(250):
        cache.set_node(node(f"n{number:03}"))

    def nobody(node: str) -> Sequence[PodInfo]:
        return ()

    decider = Decider(cache, nobody, lambda: False)
    points = ExtensionPoints(SchedulerProfile("x", (Even,)), cast(Handle, None))
    samples = [decider.find(points, CycleState(), pod_info(pod("p"))).feasible for _ in range(3)]
    assert [len(sample) for sample in samples] == [120, 120, 120]
    assert [sample[0].name for sample in samples] == ["n000", "n120", "n240"]
    assert samples[2][-1].name == "n109"


def test_the_node_a_pod_is_nominated_to_is_taken_alone_while_it_fits() -> None:
    cache = Cache()
    for number in range(3):
        cache.set_node(node(f"n{number}"))
    decider = Decider(cache, lambda node: (), lambda: False)
    points = ExtensionPoints(SchedulerProfile("x", (Even,)), cast(Handle, None))
    for hoped_for, expected in (("n2", ["n2"]), ("gone", ["n0", "n1", "n2"]), ("", ["n0", "n1", "n2"])):
        found = decider.find(points, CycleState(), pod_info(pod("p")), hoped_for=hoped_for)
        assert [info.name for info in found.feasible] == expected


def test_the_best_node_is_taken_and_equals_by_the_profiles_rule() -> None:
    assert choose({"a": 1, "b": 3, "c": 2}, TieBreak.RANDOM, random.Random(1)) == "b"
    assert choose({"c": 3, "b": 3, "a": 1}, TieBreak.BY_NAME, random.Random(1)) == "b"
    assert {choose({"c": 3, "b": 3}, TieBreak.RANDOM, random.Random(seed)) for seed in range(9)} == {"b", "c"}


def test_reasons_are_counted_and_sorted_as_text() -> None:
    refusals = {f"n{number}": unschedulable("Too many pods", "Insufficient cpu") for number in range(10)}
    refusals["m"] = unresolvable("node(s) were unschedulable")
    assert messages.no_fit(11, refusals, post_filter="more.") == (
        "0/11 nodes are available: 1 node(s) were unschedulable, 10 Insufficient cpu, 10 Too many pods. more."
    )


def test_a_refusal_before_the_nodes_is_told_in_its_own_words() -> None:
    refusals = {"n": unschedulable("x")}
    assert messages.no_fit(3, refusals, pre_filter="the pool is empty") == (
        "0/3 nodes are available: the pool is empty."
    )


def test_spans_read_as_in_go() -> None:
    assert [go_duration(s) for s in (0.5, 60, 90, 900, 3723)] == ["0.5s", "1m0s", "1m30s", "15m0s", "1h2m3s"]
