"""The default plugins' decisions, as tables."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mews.kube.api.objects import Object
from mews.kube.scheduling.cache import Cache
from mews.kube.scheduling.framework import Code
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins.balanced import deviation
from mews.kube.scheduling.plugins.node_affinity import matches, named_nodes
from mews.kube.scheduling.plugins.resources_fit import least, most, shortages
from mews.kube.scheduling.plugins.taints import tolerates, untolerated
from mews.kube.scheduling.podinfo import PodInfo, pod_info
from mews.kube.scheduling.scores import spread_out, stretched
from tests.kube.scheduling.world import GPU, World, live, node, pod, taint

MI = 2**20


def info(name: str = "p", **options: Any) -> PodInfo:
    raw = pod(name, **options)
    raw["metadata"]["uid"] = name
    return pod_info(raw)


def container(requests: dict[str, str], **more: Any) -> Object:
    return {"name": "c", "resources": {"requests": requests}, **more}


def test_a_pod_asks_for_the_larger_of_what_runs_together_and_of_each_init_container() -> None:
    sidecar = {"restartPolicy": "Always"}
    raw = pod("p")
    raw["spec"] = {
        "containers": [container({"cpu": "2", "memory": "100Mi"}), container({"cpu": "500m"})],
        "initContainers": [
            container({"cpu": "1800m", GPU: "1"}),
            container({"cpu": "300m", GPU: "1"}, **sidecar),
            container({"cpu": "1600m", "memory": "50Mi", GPU: "2"}),
        ],
        "overhead": {"cpu": "10m"},
    }
    assert dict(pod_info(raw).requests) == {"cpu": 2810, "memory": 100 * MI, GPU: 3}


def test_scoring_takes_containers_without_requests_to_ask_a_tenth_of_a_cpu_and_200_mib() -> None:
    two = pod("p")
    two["spec"]["containers"] = [container({"cpu": "1"}), container({})]
    assert (pod_info(two).scoring_cpu, pod_info(two).scoring_memory) == (1100, 400 * MI)
    assert (info().scoring_cpu, info().scoring_memory) == (100, 200 * MI)
    exact = info(requests={"cpu": "2", "memory": "1Gi"})
    assert (exact.scoring_cpu, exact.scoring_memory) == (2000, 1024 * MI)
    nothing = info(requests={"cpu": "0", "memory": "1Gi"})
    assert (nothing.scoring_cpu, nothing.scoring_memory) == (0, 1024 * MI)
    beside = pod("p")
    beside["spec"]["overhead"] = {"cpu": "10m", "memory": "1Mi"}  # of the runtime: the container asks for nothing still
    assert (pod_info(beside).scoring_cpu, pod_info(beside).scoring_memory) == (110, 201 * MI)


def test_what_a_pod_asks_is_read_again_only_where_it_was_written_again() -> None:
    before = info(requests={"cpu": "2", "memory": "1Gi"})
    bound = {**before.pod, "spec": {**before.pod["spec"], "nodeName": "n"}}
    again = pod_info(bound, before)
    assert again.requests is before.requests
    assert (again.node_name, again.scoring_cpu, again.scoring_memory) == ("n", 2000, 1024 * MI)
    for part, value in (("containers", [container({"cpu": "3"})]), ("resources", {"requests": {"cpu": "3"}})):
        resized = {**bound, "spec": {**bound["spec"], part: value}}
        assert pod_info(resized, before).request("cpu") == 3000


def test_limits_count_as_requests_where_none_are_given() -> None:
    raw = pod("p")
    raw["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "3", GPU: "2"}}
    assert dict(pod_info(raw).requests) == {"cpu": 3000, GPU: 2}


def test_a_nodes_books_are_the_sum_of_its_pods_and_empty_when_they_are_gone() -> None:
    books = NodeInfo("n", node("n", gpus=4))
    pods = [info(f"p{n}", gpus=n, requests={"cpu": "1"}, container={"ports": [{"hostPort": 80 + n}]}) for n in (1, 2)]
    for one in pods:
        books.add(one)
    copied = books.copy()
    assert books.available(GPU) == 1
    assert books.available(GPU, besides="p2") == 3
    books.remove("p1")
    books.remove("p2")
    books.remove("never there")
    assert (books.available(GPU), books.available("cpu"), books.ports, books.scoring_cpu) == (4, 8000, {}, 0)
    assert copied.available(GPU) == 1


def test_a_bound_pod_that_shrinks_or_moves_is_counted_as_it_is_now() -> None:
    cache = Cache()
    cache.set_node(node("n", gpus=4))
    cache.set_node(node("m", gpus=4))
    for name, gpus, expected in (("n", 3, (1, 4)), ("n", 1, (3, 4)), ("m", 2, (4, 2))):
        cache.set_pod(info(gpus=gpus, nodeName=name))
        assert (cache.nodes["n"].available(GPU), cache.nodes["m"].available(GPU)) == expected
    cache.remove_node("m")
    cache.remove_pod("p")
    cache.set_node(node("m", gpus=4))
    assert cache.nodes["m"].available(GPU) == 4


@pytest.mark.parametrize(
    ("held", "wanted", "clash"),
    [
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False),
        (("10.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), True),
        (("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("0.0.0.0", "UDP", 80), ("0.0.0.0", "TCP", 80), False),
        (("0.0.0.0", "TCP", 81), ("0.0.0.0", "TCP", 80), False),
    ],
)
def test_host_ports_clash_by_protocol_number_and_address(
    held: tuple[str, str, int], wanted: tuple[str, str, int], clash: bool
) -> None:
    books = NodeInfo("n", node("n"))
    address, protocol, number = held
    books.add(info(container={"ports": [{"hostIP": address, "protocol": protocol, "hostPort": number}]}))
    assert books.port_taken(wanted) is clash


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        ({"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}, True),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "other"}, False),
        ({"key": "k", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({}, False),
    ],
)
def test_a_toleration_covers_a_taint_by_key_value_and_effect(toleration: Object, covers: bool) -> None:
    assert tolerates(toleration, taint("k", "NoSchedule", "v")) is covers


def test_only_hard_taints_keep_pods_out() -> None:
    assert not untolerated([taint("soft", "PreferNoSchedule")], [])
    assert untolerated([taint("hard", "NoExecute")], [])


NODE_TERMS: list[tuple[list[Object], bool]] = [
    ([{"matchExpressions": [{"key": "model", "operator": "In", "values": ["V100", "A100"]}]}], True),
    ([{"matchExpressions": [{"key": "model", "operator": "NotIn", "values": ["V100"]}]}], False),
    ([{"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["15"]}]}], True),
    ([{"matchExpressions": [{"key": "cores", "operator": "Lt", "values": ["16"]}]}], False),
    ([{"matchExpressions": [{"key": "absent", "operator": "DoesNotExist"}]}], True),
    (
        [
            {"matchExpressions": [{"key": "absent", "operator": "Exists"}]},
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
        ],
        True,
    ),
    ([{}], False),
    ([], False),
]


@pytest.mark.parametrize(("terms", "holds"), NODE_TERMS)
def test_one_of_the_terms_of_required_node_affinity_must_hold_entirely(terms: list[Object], holds: bool) -> None:
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    assert matches(info(affinity=affinity), {"model": "V100", "cores": "16"}, "n") is holds


def test_nodes_named_in_every_term_narrow_the_search() -> None:
    def by_name(*names: list[str]) -> frozenset[str] | None:
        terms = [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": n}]}
            if n
            else {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
            for n in names
        ]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        return named_nodes(info(affinity={"nodeAffinity": required}))

    assert by_name(["a"], ["b"]) == {"a", "b"}
    assert by_name(["a"], []) is None
    assert named_nodes(info()) is None


def test_all_shortages_are_listed_and_what_no_empty_node_could_hold_is_beyond_preemption() -> None:
    books = NodeInfo("n", node("n", gpus=2, cpu="4", pods=1))
    books.add(info("there", gpus=1, requests={"cpu": "3"}))
    short = shortages(info(gpus=2, requests={"cpu": "2"}).requests, books)
    assert (short.code, set(short.reasons)) == (
        Code.UNSCHEDULABLE,
        {"Too many pods", "Insufficient cpu", f"Insufficient {GPU}"},
    )
    assert shortages(info(gpus=3).requests, books).code is Code.UNRESOLVABLE


def test_least_and_most_allocated_are_shares_in_whole_percent() -> None:
    assert [least(r, 1000) for r in (0, 333, 1000, 1001)] == [100, 66, 0, 0]
    assert [most(r, 1000) for r in (0, 333, 1000, 2000)] == [0, 33, 100, 100]


def test_balance_is_the_standard_deviation_of_the_shares() -> None:
    assert deviation([0.5]) == 0
    assert deviation([0.2, 0.6]) == pytest.approx(0.2)
    assert deviation([0.0, 0.5, 1.0]) == pytest.approx(0.408, abs=1e-3)


def test_scores_are_brought_to_a_hundred() -> None:
    assert spread_out({"a": 2, "b": 4}) == {"a": 50, "b": 100}
    assert spread_out({"a": 2, "b": 4}, reverse=True) == {"a": 50, "b": 0}
    assert spread_out({"a": 0}) == {"a": 0}
    assert spread_out({"a": 0}, reverse=True) == {"a": 100}
    assert stretched({"a": -4, "b": 0, "c": 4}) == {"a": 0, "b": 50, "c": 100}
    assert stretched({"a": 3, "b": 3}) == {"a": 0, "b": 0}


# ------------------------------------------------------------------------------------------- plugins that count pods


async def three_zones(world: World) -> None:
    for name, zone in (("a", "x"), ("b", "y"), ("c", "y")):
        await world.add_node(name, gpus=8, labels={"zone": zone})
    await world.add_node("nowhere", gpus=8)
    world.scheduler()


def spread(when: str = "DoNotSchedule", **more: Any) -> dict[str, Any]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": "w"}},
        **more,
    }
    return {"topologySpreadConstraints": [constraint], "labels": {"app": "w"}}


ZONE_OF = {"a": "x", "b": "y", "c": "y", "nowhere": "-", "": ""}


def test_pods_spread_over_zones_by_at_most_the_allowed_skew() -> None:
    async def story(world: World) -> None:
        await three_zones(world)
        for number in range(4):
            await world.add(f"p{number}", **spread())
            await asyncio.sleep(0.01)
        zones = [ZONE_OF[n] for n in await world.nodes_of("p0", "p1", "p2", "p3")]
        assert sorted(zones[:2]) == sorted(zones[2:]) == ["x", "y"]
        await world.edit_node("a", lambda n: n["spec"].update(unschedulable=True))
        await world.add("p4", **spread())
        await world.add("p5", **spread())
        await asyncio.sleep(0.1)
        assert [ZONE_OF[n] for n in await world.nodes_of("p4", "p5")] == ["y", ""]
        assert "2 node(s) didn't match pod topology spread constraints," not in await world.message("p5")
        assert "2 node(s) didn't match pod topology spread constraints" in await world.message("p5")

    live(story)


def test_spreading_that_is_only_wished_for_prefers_the_emptier_zone() -> None:
    async def story(world: World) -> None:
        await three_zones(world)
        for number in range(3):
            await world.add(f"p{number}", **spread("ScheduleAnyway"))
            await asyncio.sleep(0.01)
        zones = [ZONE_OF[n] for n in await world.nodes_of("p0", "p1", "p2")]
        assert {"x", "y"} <= set(zones)
        assert "-" not in zones

    live(story)


def term(app: str, key: str = "zone", **more: Any) -> Object:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def required(kind: str, *terms: Object) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def test_a_pod_follows_another_into_its_zone_and_waits_until_that_one_is_there() -> None:
    async def story(world: World) -> None:
        await three_zones(world)
        await world.add("follower", **required("podAffinity", term("leader")))
        await asyncio.sleep(20)
        assert await world.message("follower") == (
            "0/4 nodes are available: 4 node(s) didn't match pod affinity rules. no new claims to deallocate, "
            "preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
        )
        await world.add("leader", labels={"app": "leader"}, nodeSelector={"kubernetes.io/hostname": "a"})
        await world.until_bound("follower", within_s=0.1)
        assert await world.node_of("follower") == "a"

    live(story)


def test_the_first_pod_of_a_group_that_wants_its_own_kind_starts_anywhere_with_the_label() -> None:
    async def story(world: World) -> None:
        await three_zones(world)
        for number in range(3):
            await world.add(f"p{number}", labels={"app": "group"}, **required("podAffinity", term("group")))
        await asyncio.sleep(0.1)
        zones = {ZONE_OF[n] for n in await world.nodes_of("p0", "p1", "p2")}
        assert len(zones) == 1
        assert zones <= {"x", "y"}

    live(story)


def test_a_pod_that_is_objected_to_stays_away_until_the_objector_is_gone() -> None:
    async def story(world: World) -> None:
        await world.add_node("only", labels={"zone": "x"})
        world.scheduler()
        await world.add("hermit", **required("podAntiAffinity", term("noisy")))
        await world.until_bound("hermit")
        await world.add("guest", labels={"app": "noisy"})
        await asyncio.sleep(20)
        assert "1 node(s) didn't satisfy existing pods anti-affinity rules" in await world.message("guest")
        await world.remove("hermit")
        await world.until_bound("guest", within_s=0.1)

    live(story)


def test_terms_reach_into_the_namespaces_they_name_or_select_only() -> None:
    async def story(world: World) -> None:
        await three_zones(world)
        await world.add("leader", labels={"app": "leader"}, nodeSelector={"kubernetes.io/hostname": "a"})
        everywhere = term("leader", namespaceSelector={})
        chosen = term("leader", namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "default"}})
        elsewhere = term("leader", namespaces=["kube-system"])
        for name, one in (("p-all", everywhere), ("p-chosen", chosen), ("p-elsewhere", elsewhere)):
            await world.add(name, **required("podAffinity", one))
        await asyncio.sleep(0.1)
        assert await world.nodes_of("p-all", "p-chosen", "p-elsewhere") == ["a", "a", ""]

    live(story)


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_preferred_affinity_draws_pods_near_and_preferred_anti_affinity_apart(kind: str) -> None:
    async def story(world: World) -> None:
        await three_zones(world)
        await world.add("leader", labels={"app": "leader"}, nodeSelector={"kubernetes.io/hostname": "a"})
        await world.until_bound("leader")
        wish = [{"weight": 100, "podAffinityTerm": term("leader", "kubernetes.io/hostname")}]
        for number in range(4):
            await world.add(f"p{number}", affinity={kind: {"preferredDuringSchedulingIgnoredDuringExecution": wish}})
        await asyncio.sleep(0.1)
        near = [n == "a" for n in await world.nodes_of("p0", "p1", "p2", "p3")]
        assert near == [kind == "podAffinity"] * 4

    live(story)


def test_preferred_node_affinity_and_soft_taints_decide_between_equal_nodes() -> None:
    async def story(world: World) -> None:
        await world.add_node("plain")
        await world.add_node("liked", labels={"disk": "ssd"})
        await world.add_node("shunned", taints=[taint("slow", "PreferNoSchedule")])
        world.scheduler()
        wish = [{"weight": 50, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}]
        affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wish}}
        await world.add("fond", affinity=affinity)
        for number in range(6):
            await world.add(f"p{number}")
        await asyncio.sleep(0.1)
        assert await world.node_of("fond") == "liked"
        assert "shunned" not in await world.nodes_of(*(f"p{n}" for n in range(6)))

    live(story)


def test_pods_go_where_least_is_allocated() -> None:
    async def story(world: World) -> None:
        for name in ("a", "b", "c"):
            await world.add_node(name)
        world.scheduler()
        for number in range(6):
            await world.add(f"p{number}", requests={"cpu": "1", "memory": "1Gi"})
        await asyncio.sleep(0.1)
        assert sorted(await world.nodes_of(*(f"p{n}" for n in range(6)))) == ["a", "a", "b", "b", "c", "c"]

    live(story)


def test_preemption_keeps_the_counts_of_pods_right() -> None:
    async def story(world: World) -> None:
        await world.priority("high", 1000)
        await world.add_node("only", labels={"zone": "x"})
        world.scheduler()
        await world.add("rival", labels={"app": "rival"})
        await world.until_bound("rival")
        await world.add("lord", priorityClassName="high", **required("podAntiAffinity", term("rival")))
        await asyncio.sleep(0.1)
        assert (await world.get("lord"))["status"]["nominatedNodeName"] == "only"
        await world.remove("rival")
        await world.until_bound("lord", within_s=0.1)

    live(story)
