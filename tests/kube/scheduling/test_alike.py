"""What is remembered of nodes for pods that are alike: the same decisions as without it, at a part of the looks."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, cast

from mews.kube.api.objects import Object
from mews.kube.scheduling.cache import Cache
from mews.kube.scheduling.config import SchedulerProfile
from mews.kube.scheduling.cycle import Decider, Found
from mews.kube.scheduling.framework import SUCCESS, CycleState, Handle, Status
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins.balanced import NodeResourcesBalancedAllocation
from mews.kube.scheduling.plugins.node_affinity import NodeAffinity
from mews.kube.scheduling.plugins.node_basics import NodeName, NodeUnschedulable
from mews.kube.scheduling.plugins.node_ports import NodePorts
from mews.kube.scheduling.plugins.resources_fit import NodeResourcesFit
from mews.kube.scheduling.plugins.taints import TaintToleration
from mews.kube.scheduling.podinfo import PodInfo, pod_info
from mews.kube.scheduling.points import ExtensionPoints
from tests.kube.scheduling.world import node, pod

PLUGINS: tuple[Any, ...] = (
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    NodeResourcesBalancedAllocation,
    lambda handle: _Binder(),
)


class _Binder:
    name = "Binder"

    async def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return SUCCESS


class Counting:
    """Fits everywhere and counts how often it is asked."""

    name = "Counting"

    def __init__(self, handle: Handle) -> None:
        self.asked: Counter[str] = Counter()

    def sign(self, pod: PodInfo) -> str:
        return pod.labels.get("kind", "")

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        self.asked[f"filter {node.name}"] += 1
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        self.asked[f"score {node.name}"] += 1
        return len(node.pods)

    async def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return SUCCESS


def profile(*plugins: Any) -> ExtensionPoints:
    return ExtensionPoints(SchedulerProfile("x", plugins), cast(Handle, None))


def decided(cache: Cache, points: ExtensionPoints, wanted: PodInfo) -> tuple[Found, dict[str, int]]:
    state = CycleState()
    found = Decider(cache, lambda node: (), lambda: False).find(points, state, wanted)
    return found, points.scores(state, wanted, found.feasible) if found.feasible else {}


def test_a_node_is_asked_again_for_a_pod_alike_only_once_its_books_have_changed() -> None:
    cache, counting = Cache(), Counting(cast(Handle, None))
    for name in ("a", "b"):
        cache.set_node(node(name))
    points = profile(lambda handle: counting)
    for name in ("p", "q"):
        decided(cache, points, pod_info(pod(name)))
    assert counting.asked == {"filter a": 1, "filter b": 1, "score a": 1, "score b": 1}
    cache.assume(pod_info(pod("p")), "b")
    assert decided(cache, points, pod_info(pod("r")))[1] == {"a": 0, "b": 1}
    assert counting.asked == {"filter a": 1, "filter b": 2, "score a": 1, "score b": 2}
    decided(cache, points, pod_info(pod("s", labels={"kind": "other"})))
    assert counting.asked["filter a"] == 2
    cache.remove_node("a")
    cache.set_node(node("a"))
    decided(cache, points, pod_info(pod("t")))
    assert counting.asked["filter a"] == 3, "another node of that name is another node"


def test_a_plugin_that_goes_by_more_is_asked_each_time() -> None:
    class Moody(Counting):
        sign = None  # type: ignore[assignment]

    cache, moody = Cache(), Moody(cast(Handle, None))
    cache.set_node(node("a"))
    for name in ("p", "q"):
        decided(cache, profile(lambda handle: moody), pod_info(pod(name)))
    assert moody.asked == {"filter a": 2, "score a": 2}


def _any_node(rng: random.Random, name: str) -> Object:
    made = node(name, gpus=rng.choice((0, 2, 8)))
    made["metadata"]["labels"] = {"zone": rng.choice("xy")}
    made["spec"]["unschedulable"] = rng.random() < 0.1
    made["spec"]["taints"] = rng.choice(([], [{"key": "k", "effect": "NoSchedule"}]))
    return made


def _any_pod(rng: random.Random, name: str) -> PodInfo:
    made = pod(name, gpus=rng.choice((0, 1)), requests={"cpu": rng.choice(("100m", "2"))})
    made["metadata"]["uid"] = name
    made["spec"]["nodeSelector"] = rng.choice(({}, {"zone": "x"}))
    made["spec"]["tolerations"] = rng.choice(([], [{"key": "k", "operator": "Exists"}]))
    made["spec"]["containers"][0]["ports"] = rng.choice(([], [{"hostPort": 80}]))
    return pod_info(made)


def test_decisions_are_those_of_a_scheduler_that_remembers_nothing() -> None:
    rng, cache, points = random.Random(7), Cache(), profile(*PLUGINS)
    for number in range(12):
        cache.set_node(_any_node(rng, f"n{number}"))
    placed: list[str] = []
    for number in range(300):
        wanted = _any_pod(rng, f"p{number}")
        found, scores = decided(cache, points, wanted)
        afresh, expected = decided(cache, profile(*PLUGINS), wanted)
        assert [info.name for info in found.feasible] == [info.name for info in afresh.feasible]
        assert (found.refusals, found.refused_by, scores) == (afresh.refusals, afresh.refused_by, expected)
        if scores:
            cache.assume(wanted, max(scores, key=lambda name: scores[name]))
            placed.append(wanted.uid)
        if placed and rng.random() < 0.5:
            cache.remove_pod(placed.pop(rng.randrange(len(placed))))
        if rng.random() < 0.2:
            changed = f"n{rng.randrange(12)}"
            if rng.random() < 0.3:
                cache.remove_node(changed)
            cache.set_node(_any_node(rng, changed))
