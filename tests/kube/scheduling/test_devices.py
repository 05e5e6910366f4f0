"""The allocator, asked directly: situations of upstream's table (structured/internal/allocatortesting)."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from mews.kube.api.objects import Object
from mews.kube.releases.cluster_release import STANDARD, ClusterRelease, cluster_release
from mews.kube.scheduling.devices.allocator import Allocator, Taken
from mews.kube.scheduling.devices.errors import AllocationError, NodeAllocationError, SearchTimeoutError
from mews.kube.scheduling.devices.features import DEFAULT_FEATURES, DeviceFeatures
from mews.kube.scheduling.devices.gated_features import features_of
from mews.kube.scheduling.devices.inventory import DeviceId, DeviceInventory, NodePlace
from mews.kube.scheduling.devices.known_allocations import KnownAllocations
from mews.kube.scheduling.devices.requests import has_alternatives, preference

DRIVER = "d.example.com"
OLD = DeviceFeatures()
NEW = DeviceFeatures(
    minor=37,
    partitionable_devices=True,
    device_taints=True,
    taint_rules="v1",
    binding_conditions=True,
    consumable_capacity=True,
    extended_resource=True,
)
EAST = NodePlace("east", {"zone": "e"})


def test_features_follow_the_gates_of_the_release() -> None:
    assert features_of(STANDARD) == DEFAULT_FEATURES == OLD
    assert features_of(cluster_release("1.37")) == NEW
    assert features_of(cluster_release("1.34", {"DRADeviceTaints": True})).device_taints
    off = {"DRADeviceBindingConditions": True, "DRAResourceClaimDeviceStatus": False}
    assert not features_of(cluster_release("1.34", off)).binding_conditions


@pytest.mark.parametrize(
    ("release", "version"),
    [
        (cluster_release("1.34", {"DRADeviceTaints": True}, {"resource.k8s.io/v1alpha3": True}), "v1alpha3"),
        (cluster_release("1.34", {"DRADeviceTaints": True}), ""),
        (cluster_release("1.34", {}, {"resource.k8s.io/v1alpha3": True}), ""),
        (cluster_release("1.35", {"DRADeviceTaints": True}, {"resource.k8s.io/v1alpha3": True}), ""),
        (
            cluster_release(
                "1.35",
                {"DRADeviceTaints": True, "DRADeviceTaintRules": True},
                {"resource.k8s.io/v1alpha3": True},
            ),
            "v1alpha3",
        ),
        (cluster_release("1.36"), ""),
        (cluster_release("1.36", {"DRADeviceTaintRules": True}, {"resource.k8s.io/v1beta2": True}), "v1beta2"),
        (cluster_release("1.36", {"DRADeviceTaintRules": True}), ""),
        (cluster_release("1.37"), "v1"),
        (cluster_release("1.37", {"DRADeviceTaintRules": False}), ""),
        (cluster_release("1.37", {"DRADeviceTaints": False, "DRADeviceTaintRules": True}), ""),
    ],
)
def test_taint_rules_act_where_their_gates_and_their_version_are_on(release: ClusterRelease, version: str) -> None:
    assert features_of(release).taint_rules == version


def device(name: str, **more: Any) -> dict[str, Any]:
    attributes = {key: {_kind(value): value} for key, value in more.pop("attributes", {}).items()}
    return {"name": name, "attributes": attributes, **more}


def _kind(value: Any) -> str:
    return "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string"


def offer(*devices: dict[str, Any], name: str = "s", pool: str = "p", count: int = 1, **spec: Any) -> Object:
    where = {} if {"allNodes", "nodeSelector", "perDeviceNodeSelection"} & spec.keys() else {"nodeName": "east"}
    described = {"name": pool, "generation": spec.pop("generation", 1), "resourceSliceCount": count}
    given = {"driver": spec.pop("driver", DRIVER), "pool": described, "devices": list(devices), **where, **spec}
    return {"metadata": {"name": name}, "spec": given}


def ask(name: str = "r", **exactly: Any) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": "k", **exactly}}


def either(*parts: dict[str, Any], name: str = "r") -> dict[str, Any]:
    numbered = [{"name": f"s{n}", "deviceClassName": "k", **part} for n, part in enumerate(parts)]
    return {"name": name, "firstAvailable": numbered}


def claim(*requests: dict[str, Any], name: str = "c", **more: Any) -> Object:
    spec = {"devices": {"requests": list(requests), **more}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def where(expression: str) -> list[dict[str, Any]]:
    return [{"cel": {"expression": expression}}]


CLASS: Object = {"metadata": {"name": "k"}, "spec": {}}


def allocations(
    slices: Sequence[Object],
    *claims: Object,
    taken: Taken = Taken(),  # noqa: B008
    features: DeviceFeatures = OLD,
    place: NodePlace = EAST,
    device_class: Object = CLASS,
) -> list[dict[str, Any]] | None:
    shares = iter(range(100))
    allocator = Allocator(
        DeviceInventory.of(slices, features),
        taken,
        class_of={"k": device_class}.get,
        features=features,
        new_share=lambda: f"share-{next(shares)}",
    )
    return allocator.allocate(place, claims)


def given(slices: Sequence[Object], *claims: Object, **more: Any) -> list[list[str]] | None:
    """``request=device`` of each claim."""
    found = allocations(slices, *claims, **more)
    if found is None:
        return None
    return [[f"{r['request']}={r['device']}" for r in each["devices"].get("results", ())] for each in found]


def taken(*names: str) -> Taken:
    return Taken({DeviceId(DRIVER, "p", name) for name in names})


def test_devices_are_taken_in_their_order_and_none_twice() -> None:
    slices = [offer(device("a"), device("b"), device("c"))]
    assert given(slices, claim(ask(count=2)), claim(ask())) == [["r=a", "r=b"], ["r=c"]]
    assert given(slices, claim(ask()), taken=taken("a")) == [["r=b"]]
    assert given(slices, claim(ask(count=4))) is None
    assert given(slices, claim()) == [[]]


def test_class_and_request_select_and_what_they_select_by_is_typed() -> None:
    slices = [offer(device("a", attributes={"n": 1, "m": "x"}), device("b", attributes={"n": 2, "m": "y"}))]
    assert given(slices, claim(ask(selectors=where(f'device.attributes["{DRIVER}"].n > 1')))) == [["r=b"]]
    narrow = {"metadata": {"name": "k"}, "spec": {"selectors": where(f'device.attributes["{DRIVER}"].m == "x"')}}
    assert given(slices, claim(ask(count=2)), device_class=narrow) is None
    assert given(slices, claim(ask()), device_class=narrow) == [["r=a"]]
    nowhere = where('device.attributes["nowhere"].?n.orValue(3) == 3 && !("nowhere" in device.attributes)')
    assert given(slices, claim(ask(selectors=nowhere))) == [["r=a"]]
    bound = where(f'cel.bind(own, device.attributes["{DRIVER}"], own.n + own.n == 4)')
    assert given(slices, claim(ask(selectors=bound))) == [["r=b"]]


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (f'device.attributes["{DRIVER}"].absent == 1', "CEL runtime error: no such key: absent"),
        (
            f'device.attributes["{DRIVER}"].n',
            "CEL runtime error: CEL result of type int could not be converted to bool: "
            "unsupported native conversion from int to 'bool'",
        ),
    ],
)
def test_an_expression_that_fails_ends_the_attempt(expression: str, words: str) -> None:
    slices = [offer(device("a", attributes={"n": 1}))]
    with pytest.raises(AllocationError) as failed:
        given(slices, claim(ask(selectors=where(expression))))
    assert str(failed.value) == f"claim default/c: selector #0: {words}"
    with pytest.raises(AllocationError) as failed:
        given(slices, claim(ask(selectors=where(expression))), features=NEW)
    assert str(failed.value).startswith(f"claim default/c: selector #0 on device {DRIVER}/p/a: {words}")
    assert ("consider using" in str(failed.value)) == ("no such key" in words)


def test_the_search_goes_back_as_far_as_it_must() -> None:
    slices = [offer(device("a", attributes={"n": 1}), device("b", attributes={"n": 2}))]
    picky = ask("picky", selectors=where(f'device.attributes["{DRIVER}"].n == 1'))
    assert given(slices, claim(ask("any"), picky)) == [["any=b", "picky=a"]]
    assert given(slices, claim(ask("any")), claim(picky, name="other")) == [["any=b"], ["picky=a"]]


def test_all_devices_are_all_that_match_at_least_one_and_none_in_use() -> None:
    slices = [offer(device("a", attributes={"n": 1}), device("b", attributes={"n": 1}), device("c"))]
    ones = ask(allocationMode="All", selectors=where(f'device.attributes["{DRIVER}"].?n.orValue(0) == 1'))
    assert given(slices, claim(ones)) == [["r=a", "r=b"]]
    assert given(slices, claim(ones), taken=taken("b")) is None
    assert given([], claim(ones)) is None
    with pytest.raises(AllocationError, match="asks for all devices"):
        given([offer(device("a"), count=2)], claim(ask(allocationMode="All")))


def test_one_value_for_all_devices_of_a_claim() -> None:
    slices = [offer(*(device(name, attributes={"root": root}) for name, root in (("a", 0), ("b", 1), ("c", 1))))]
    same = [{"matchAttribute": f"{DRIVER}/root"}]
    assert given(slices, claim(ask(count=2), constraints=same)) == [["r=b", "r=c"]]
    assert given(slices, claim(ask("x"), ask("y"), constraints=same)) == [["x=b", "y=c"]]
    of_y = [{"matchAttribute": f"{DRIVER}/root", "requests": ["y"]}]
    assert given(slices, claim(ask("x"), ask("y", count=2), constraints=of_y)) == [["x=a", "y=b", "y=c"]]
    assert given(slices, claim(ask(), constraints=[{"matchAttribute": f"{DRIVER}/absent"}])) is None
    with pytest.raises(AllocationError, match=r"cannot add device d.example.com/p/b because a claim constraint"):
        given(slices, claim(ask(allocationMode="All"), constraints=same))


def test_another_value_for_each_device_of_a_claim() -> None:
    slices = [offer(*(device(name, attributes={"root": root}) for name, root in (("a", 0), ("b", 0), ("c", 1))))]
    apart = [{"distinctAttribute": f"{DRIVER}/root"}]
    assert given(slices, claim(ask(count=2), constraints=apart), features=NEW) == [["r=a", "r=c"]]
    assert given(slices, claim(ask(count=3), constraints=apart), features=NEW) is None
    with pytest.raises(AllocationError, match="constraint #0: empty constraint"):
        given(slices, claim(ask(count=2), constraints=apart))


def test_the_first_alternative_that_leads_to_a_solution_is_taken() -> None:
    slices = [offer(device("a"), device("b"))]
    wish = either({"count": 3}, {"count": 2}, {"count": 1})
    assert given(slices, claim(wish)) == [["r/s1=a", "r/s1=b"]]
    assert given(slices, claim(wish, ask("more"))) == [["r/s2=a", "more=b"]]
    assert given(slices, claim(wish), taken=taken("a", "b")) is None
    assert given(slices, claim(either({"count": 33}, {"count": 1}))) == [["r/s1=a"]]


def test_administrators_get_what_others_hold_but_no_device_twice_in_a_claim() -> None:
    slices = [offer(device("a"), device("b"))]
    mine = ask(count=2, adminAccess=True)
    assert given(slices, claim(mine), taken=taken("a", "b")) == [["r=a", "r=b"]]
    assert given(slices, claim(mine, ask("s", adminAccess=True))) is None
    found = allocations(slices, claim(mine))
    assert found is not None
    assert all(result["adminAccess"] for result in found[0]["devices"]["results"])
    assert given(slices, claim(mine), claim(ask(count=2), name="d")) is None


def test_no_claim_gets_more_than_thirty_two_devices() -> None:
    slices = [offer(*(device(f"d{n}") for n in range(40)))]
    assert given(slices, claim(ask(count=32))) is not None
    with pytest.raises(AllocationError, match=r"number of requested devices 33 exceeds the claim limit of 32"):
        given(slices, claim(ask("x", count=32), ask("y")))
    assert given(slices, claim(ask("x", count=30), either({"count": 3}, {"count": 2}, name="y"))) is not None
    assert given(slices, claim(ask(count=20)), claim(ask(count=20), name="d")) == [
        [f"r=d{n}" for n in range(20)],
        [f"r=d{n}" for n in range(20, 40)],
    ]


def test_a_slice_is_for_the_nodes_that_it_names() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["e"]}]}
    of_zone = offer(device("z"), pool="zone", name="z", nodeSelector={"nodeSelectorTerms": [term]})
    of_all = offer(device("n"), pool="net", name="n", allNodes=True)
    assert given([of_zone], claim(ask()), place=NodePlace("west", {"zone": "w"})) is None
    west = NodePlace("west", {"zone": "e"})
    found = allocations([of_zone, of_all, offer(device("a"))], claim(ask(count=2)), place=west)
    assert found is not None
    assert [result["device"] for result in found[0]["devices"]["results"]] == ["n", "z"]
    assert found[0]["nodeSelector"] == {"nodeSelectorTerms": [term]}
    assert "nodeSelector" not in allocations([of_all], claim(ask()), place=west)[0]  # type: ignore[index]
    local = allocations([of_zone, offer(device("a"))], claim(ask(count=2)))
    named = {"key": "metadata.name", "operator": "In", "values": ["east"]}
    assert local is not None
    assert local[0]["nodeSelector"] == {"nodeSelectorTerms": [{"matchFields": [named]}]}


def test_each_device_may_choose_its_nodes() -> None:
    devices = (device("w", nodeName="west"), device("e", nodeName="east"), device("a", allNodes=True))
    slices = [offer(*devices, perDeviceNodeSelection=True)]
    assert given(slices, claim(ask(count=2)), features=NEW) == [["r=e", "r=a"]]
    assert given(slices, claim(ask()), features=OLD) is None


def test_the_newest_generation_counts_and_what_is_incomplete_by_version() -> None:
    old, new = offer(device("old"), name="a"), offer(device("new"), name="b", generation=2)
    assert given([old, new], claim(ask())) == [["r=new"]]
    half = [offer(device("a"), count=2)]
    assert given(half, claim(ask())) == [["r=a"]]
    assert given(half, claim(ask()), features=NEW) is None
    elsewhere = offer(device("w"), name="w", generation=2, allNodes=False, nodeName="west")
    assert given([old, elsewhere], claim(ask()), features=OLD) == [["r=old"]]


def test_a_pool_with_a_device_twice_is_invalid() -> None:
    twice = [offer(device("a"), name="x", count=2), offer(device("a"), name="y", count=2)]
    with pytest.raises(AllocationError, match="pool p is invalid: duplicate device name a"):
        given(twice, claim(ask()))
    other = offer(device("z"), name="z", pool="z")
    assert given([*twice, other], claim(ask()), features=NEW) == [["r=z"]]
    with pytest.raises(AllocationError, match="invalid resource pools were encountered"):
        given(twice, claim(ask()), features=NEW)


TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "bears"),
    [
        ({"key": "k", "operator": "Equal", "value": "v"}, True),
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "k", "operator": "Equal", "value": "w"}, False),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_a_taint_keeps_a_device_from_who_does_not_tolerate_it(toleration: dict[str, str], bears: bool) -> None:
    slices = [offer(device("a", taints=[TAINT]), device("b"))]
    assert given(slices, claim(ask(tolerations=[toleration])), features=NEW) == [["r=a" if bears else "r=b"]]
    assert given(slices, claim(ask()), features=OLD) == [["r=a"]]
    found = allocations(slices, claim(ask(tolerations=[toleration])), features=NEW)
    assert found is not None
    assert found[0]["devices"]["results"][0]["tolerations"] == [toleration]


def counting(**amounts: str) -> dict[str, Any]:
    return {name: {"value": amount} for name, amount in amounts.items()}


def test_partitions_share_the_counters_of_their_pool() -> None:
    sets = [{"name": "gpu", "counters": counting(memory="40Gi")}]

    def part(name: str, amount: str) -> dict[str, Any]:
        return device(name, consumesCounters=[{"counterSet": "gpu", "counters": counting(memory=amount)}])

    parts = offer(part("full", "40Gi"), part("half-0", "20Gi"), part("half-1", "20Gi"), name="b", count=2)
    slices = [offer(name="a", count=2, sharedCounters=sets), parts]
    assert given(slices, claim(ask(count=2)), features=NEW) == [["r=half-0", "r=half-1"]]
    assert given(slices, claim(ask()), features=NEW) == [["r=full"]]
    assert given(slices, claim(ask()), features=NEW, taken=taken("half-1")) == [["r=half-0"]]
    assert given(slices, claim(ask()), features=NEW, taken=taken("full")) is None
    assert given(slices, claim(ask()), features=OLD) is None
    wrong = offer(part("x", "1Gi"), name="b", count=1)
    with pytest.raises(AllocationError, match="invalid resource pools"):
        given([wrong], claim(ask()), features=NEW)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("5500Mi", "6Gi"), ("9Gi", None), (None, "1Gi"), ("512Mi", "1Gi"), ("8Gi", "8Gi")],
)
def test_a_share_is_rounded_up_as_the_capacity_says(asked: str | None, expected: str | None) -> None:
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi", "max": "8Gi"}}
    memory = {"memory": {"value": "10Gi", "requestPolicy": policy}}
    slices = [offer(device("a", allowMultipleAllocations=True, capacity=memory))]
    wish = ask(**({"capacity": {"requests": {"memory": asked}}} if asked else {}))
    found = allocations(slices, claim(wish), features=NEW)
    assert (found is None) == (expected is None)
    if found is not None:
        result = found[0]["devices"]["results"][0]
        assert (result["consumedCapacity"], result["shareID"]) == ({"memory": expected}, "share-0")


def test_shares_of_a_device_add_up() -> None:
    slices = [offer(device("a", allowMultipleAllocations=True, capacity={"memory": {"value": "10Gi"}}))]

    def share(amount: str) -> dict[str, Any]:
        return ask(capacity={"requests": {"memory": amount}})

    held = Taken(shared={DeviceId(DRIVER, "p", "a"): {"memory": Decimal(4 << 30)}})
    assert given(slices, claim(share("6Gi")), features=NEW, taken=held) == [["r=a"]]
    assert given(slices, claim(share("7Gi")), features=NEW, taken=held) is None
    assert given(slices, claim(share("6Gi")), claim(share("5Gi"), name="d"), features=NEW) is None
    assert given(slices, claim(share("6Gi")), claim(share("4Gi"), name="d"), features=NEW) == [["r=a"], ["r=a"]]
    assert given(slices, claim(ask(capacity={"requests": {"cores": "1"}})), features=NEW) is None
    with pytest.raises(AllocationError, match="the DRAConsumableCapacity feature is disabled"):
        given(slices, claim(share("6Gi")))


def test_values_that_are_listed_are_rounded_up_to() -> None:
    memory = {"memory": {"value": "8", "requestPolicy": {"default": "2", "validValues": ["2", "4"]}}}
    slices = [offer(device("a", allowMultipleAllocations=True, capacity=memory))]
    found = allocations(slices, claim(ask(capacity={"requests": {"memory": "3"}})), features=NEW)
    assert found is not None
    assert found[0]["devices"]["results"][0]["consumedCapacity"] == {"memory": "4"}
    assert given(slices, claim(ask(capacity={"requests": {"memory": "5"}})), features=NEW) is None


def test_devices_with_binding_conditions_come_last_and_bind_to_their_node() -> None:
    slow = offer(device("slow", bindingConditions=["Ready"], bindsToNode=True), pool="a", name="a", allNodes=True)
    slices = [slow, offer(device("fast"), pool="b", name="b", allNodes=True)]
    assert given(slices, claim(ask()), features=NEW) == [["r=fast"]]
    assert given([slow], claim(ask()), features=OLD) is None
    found = allocations([slow], claim(ask()), features=NEW)
    assert found is not None
    assert found[0]["devices"]["results"][0]["bindingConditions"] == ["Ready"]
    assert found[0]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"] == ["east"]


def test_configuration_of_classes_comes_before_that_of_the_claim() -> None:
    opaque = {"opaque": {"driver": DRIVER, "parameters": {"of": "class"}}}
    configured = {"metadata": {"name": "k"}, "spec": {"config": [opaque]}}
    own = [
        {"opaque": {"driver": DRIVER, "parameters": {"of": "claim"}}, "requests": ["y"]},
        {"opaque": {"driver": "x"}},
    ]
    slices = [offer(device("a"), device("b"))]
    found = allocations(slices, claim(ask("x"), ask("y"), config=own), device_class=configured)
    assert found is not None
    assert found[0]["devices"]["config"] == [
        {"source": "FromClass", "requests": ["x", "y"], **opaque},
        {"source": "FromClaim", **own[0]},
        {"source": "FromClaim", **own[1]},
    ]


@pytest.mark.parametrize(("features", "steps", "late"), [(NEW, 200, True), (NEW, 300, False), (OLD, 300, True)])
def test_a_search_that_takes_too_many_steps_is_given_up(features: DeviceFeatures, steps: int, late: bool) -> None:
    offered = offer(*[device(f"d{n}") for n in range(6)])
    asked = claim(ask("r", count=4), ask("s", count=3))

    def search(features: DeviceFeatures) -> object:
        inventory = DeviceInventory.of([offered], features)
        more = {"class_of": {"k": CLASS}.get, "features": features, "new_share": str, "most_steps": steps}
        return Allocator(inventory, Taken(), **more).allocate(EAST, [asked])

    if late:
        with pytest.raises(SearchTimeoutError, match="timed out trying to allocate devices"):
            search(features)
    else:
        assert search(features) is None
    assert search(replace(features, scheduler_filter_timeout=False)) is None


def test_an_invalid_pool_refuses_its_node_alone_from_1_36_on() -> None:
    twice = [offer(device("d"), name="s", count=2), offer(device("d"), name="t", count=2)]
    with pytest.raises(NodeAllocationError, match="invalid resource pools were encountered"):
        allocations(twice, claim(ask()), features=NEW)
    with pytest.raises(AllocationError, match="pool p is invalid: duplicate device name d") as refusal:
        allocations(twice, claim(ask()), features=OLD)
    assert not isinstance(refusal.value, NodeAllocationError)


def test_an_expression_that_cannot_be_compiled_or_costs_too_much_ends_the_attempt() -> None:
    offered = [offer(device("d"))]
    for expression, words in (
        ("device.driver ==", "claim default/c: selector #0: CEL compile error: compilation failed"),
        (f"[{','.join('0' * 2000)}].all(a, [{','.join('0' * 2000)}].all(b, true))", "actual cost limit exceeded"),
    ):
        with pytest.raises(AllocationError, match=words):
            allocations(offered, claim(ask(selectors=where(expression))))


def test_shares_of_a_device_take_its_counters_once_from_1_36_on() -> None:
    counters = [{"name": "card", "counters": {"memory": {"value": "40Gi"}}}]
    taken = [{"counterSet": "card", "counters": {"memory": {"value": "40Gi"}}}]
    shared = device("d", allowMultipleAllocations=True, consumesCounters=taken)
    features = replace(OLD, partitionable_devices=True, consumable_capacity=True)
    old = [offer(shared, sharedCounters=counters)]
    new = [offer(name="s", sharedCounters=counters, count=2), offer(shared, name="t", count=2)]
    assert given(new, claim(ask("a"), ask("b")), features=NEW) == [["a=d", "b=d"]]
    assert given(old, claim(ask("a"), ask("b")), features=features) is None


def test_earlier_alternatives_are_preferred() -> None:
    asked = claim(either({}, {}), either({}, {}, {}, name="s"))
    results = [{"request": "r/s1"}, {"request": "s/s0"}]
    assert preference(asked, {"devices": {"results": results}}) == 7 + 8
    assert has_alternatives(asked)
    assert not has_alternatives(claim(ask()))


def test_what_was_found_on_a_node_is_known_until_its_devices_change() -> None:
    inventory, changes = DeviceInventory.of([offer(device("d"))], NEW), {"p": 0}
    classes = {"k": {**CLASS, "metadata": {"name": "k", "resourceVersion": "1"}}}
    known = KnownAllocations(lambda pool: changes[pool.pool], classes.get)
    pools, found = inventory.pools(EAST), [{"devices": {"results": [{"device": "d"}]}}]
    known.of([claim(ask())]).put(EAST, pools, found)
    assert known.of([claim(ask(), name="other")]).get(EAST, pools) == (True, found)
    assert known.of([claim(ask(count=2))]).get(EAST, pools) == (False, None)
    changes["p"] += 1
    assert known.of([claim(ask())]).get(EAST, pools) == (False, None)
    known.of([claim(ask())]).put(EAST, pools, None)
    assert known.of([claim(ask())]).get(EAST, pools) == (True, None)
    inventory.set(offer(device("e")))
    assert known.of([claim(ask())]).get(EAST, inventory.pools(EAST)) == (False, None)
    classes["k"] = {**CLASS, "metadata": {"name": "k", "resourceVersion": "2"}}
    assert known.of([claim(ask())]).get(EAST, pools) == (False, None)
    known.of([claim(ask())]).put(EAST, pools, [{"devices": {"results": [{"shareID": "u"}]}}])
    assert known.of([claim(ask())]).get(EAST, pools) == (False, None)


def test_an_inventory_forgets_what_changed() -> None:
    inventory = DeviceInventory(OLD)
    inventory.set(offer(device("a")))

    def names() -> list[str]:
        return [each.id.device for pool in inventory.pools(EAST) for one in pool.slices for each in one.devices]

    assert names() == ["a"]
    inventory.set(offer(device("b")))
    assert names() == ["b"]
    inventory.set(offer(device("n"), name="all", pool="q", allNodes=True))
    assert names() == ["b", "n"]
    inventory.remove("s")
    inventory.remove("unknown")
    assert names() == ["n"]
