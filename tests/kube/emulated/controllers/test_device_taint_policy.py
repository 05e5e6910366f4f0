"""When pods are evicted from tainted devices, and what rules say of it (upstream device_taint_eviction_test.go)."""

from __future__ import annotations

from typing import Any

import pytest

from mews.kube.api.objects import name_of, namespace_of, seconds
from mews.kube.emulated.controllers.devicetaints.policy import (
    DeviceTaints,
    Eviction,
    RuleTally,
    allocated_devices,
    as_if_evicting,
    concerns_eviction,
    due_in_s,
    eviction_of_pod,
    has_changed,
    pending_pods,
    rule_condition,
    status_of_rule,
    tolerated_s,
    uses,
)

STAMP = "2001-09-09T01:46:40Z"
NOW_S = seconds(STAMP)
TAINT = {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": STAMP}
LATER = {**TAINT, "timeAdded": "2001-09-09T01:47:20Z"}
ALL = {"operator": "Exists", "effect": "NoExecute"}


def a_slice(
    *taints: Any, name: str = "s", pool: str = "p", generation: int = 1, device: str = "gpu-0"
) -> dict[str, Any]:
    devices = [{"name": device, "taints": list(taints)}, {"name": "gpu-1"}]
    return {
        "metadata": {"name": name},
        "spec": {"driver": "d", "pool": {"name": pool, "generation": generation}, "devices": devices},
    }


def a_result(device: str = "gpu-0", *tolerations: Any) -> dict[str, Any]:
    given = {"tolerations": list(tolerations)} if tolerations else {}
    return {"request": "r", "driver": "d", "pool": "p", "device": device, **given}


def a_claim(*results: Any, name: str = "c", owner: str = "", users: Any = ("1",)) -> dict[str, Any]:
    owners = {"ownerReferences": [{"kind": "Pod", "uid": owner, "controller": True}]} if owner else {}
    reserved = [{"resource": "pods", "name": "p", "uid": uid} for uid in users]
    status = {"allocation": {"devices": {"results": list(results)}}, "reservedFor": reserved} if results else {}
    return {"metadata": {"name": name, "namespace": "default", **owners}, "status": status}


def a_rule(taint: Any = TAINT, name: str = "r", **selector: str) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"uid-{name}", "generation": 1}
    return {"metadata": metadata, "spec": {"deviceSelector": {"driver": "d", **selector}, "taint": taint}}


def a_pod(*entries: Any, uid: str = "1", node: str = "n", **status: Any) -> dict[str, Any]:
    claims = [{"name": f"e{number}", **entry} for number, entry in enumerate(entries)]
    return {
        "metadata": {"name": "p", "namespace": "default", "uid": uid},
        "spec": {"nodeName": node, "resourceClaims": claims},
        "status": status,
    }


def taints_of(*slices: Any, rules: Any = ()) -> DeviceTaints:
    made = DeviceTaints()
    for each in slices:
        made.set_slice(None, each)
    for each in rules:
        made.set_rule(None, each)
    return made


# -------------------------------------------------------------------------------------------------------------- slices


def test_a_new_slice_changes_the_devices_that_it_taints_alone() -> None:
    taints = DeviceTaints()
    assert taints.set_slice(None, a_slice()) == frozenset()
    assert taints.set_slice(a_slice(), a_slice(TAINT)) == {("d", "p", "gpu-0")}
    assert taints.set_slice(a_slice(TAINT), a_slice(TAINT)) == frozenset()
    assert taints.set_slice(a_slice(TAINT), a_slice({**TAINT, "value": "w"})) == {("d", "p", "gpu-0")}
    assert taints.set_slice(a_slice(TAINT), a_slice()) == {("d", "p", "gpu-0")}


@pytest.mark.parametrize("effect", ["NoSchedule", "None", "Unknown"])
def test_other_effects_evict_nobody(effect: str) -> None:
    taints = DeviceTaints()
    assert taints.set_slice(None, a_slice({**TAINT, "effect": effect})) == frozenset()
    assert taints.eviction_of(a_claim(a_result())) is None
    assert not taints.set_rule(None, a_rule({**TAINT, "effect": effect}))
    assert taints.eviction_of(a_claim(a_result())) is None


def test_taints_of_outdated_slices_count_no_longer_and_again_when_the_newer_one_is_gone() -> None:
    taints = taints_of(a_slice(TAINT))
    newer = a_slice(name="newer", generation=2)
    assert taints.set_slice(None, newer) == {("d", "p", "gpu-0")}
    assert taints.eviction_of(a_claim(a_result())) is None
    assert taints.set_slice(newer, None) == {("d", "p", "gpu-0")}
    assert taints.eviction_of(a_claim(a_result())) == Eviction(NOW_S)


def test_a_taint_that_moves_to_another_slice_of_its_pool_is_no_change() -> None:
    taints = taints_of(a_slice(TAINT), a_slice(name="other", device="gpu-2"))
    assert taints.set_slice(a_slice(TAINT), a_slice(TAINT, name="s2")) == frozenset()


def test_a_slice_that_moves_to_another_pool_changes_both() -> None:
    taints = taints_of(a_slice(TAINT))
    assert taints.set_slice(a_slice(TAINT), a_slice(TAINT, pool="q")) == {("d", "p", "gpu-0"), ("d", "q", "gpu-0")}
    assert taints.eviction_of(a_claim(a_result())) is None


def test_a_deleted_slice_leaves_no_taint() -> None:
    taints = taints_of(a_slice(TAINT))
    assert taints.set_slice(a_slice(TAINT), None) == {("d", "p", "gpu-0")}
    assert taints.eviction_of(a_claim(a_result())) is None


# -------------------------------------------------------------------------------------------------------------- claims


@pytest.mark.parametrize(
    ("tolerations", "limit_s"),
    [
        ([], 0.0),
        ([ALL], None),
        ([{**ALL, "tolerationSeconds": 60}], 60.0),
        ([{**ALL, "tolerationSeconds": 60}, {**ALL, "tolerationSeconds": 30}], 30.0),
        ([{**ALL, "tolerationSeconds": 60}, ALL], None),
        ([{**ALL, "tolerationSeconds": -1}], 0.0),
        ([{**ALL, "tolerationSeconds": 60}, {**ALL, "key": "other", "tolerationSeconds": 20}], 60.0),
        ([{"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute"}], None),
        ([{"key": "k", "value": "v", "effect": "NoExecute"}], None),
        ([{"key": "k", "operator": "Equal", "value": "w", "effect": "NoExecute"}], 0.0),
        ([{"key": "other", "operator": "Exists", "effect": "NoExecute"}], 0.0),
        ([{"operator": "Exists"}], 0.0),
        ([{"operator": "Exists", "effect": "NoSchedule"}], 0.0),
    ],
)
def test_how_long_a_taint_is_tolerated(tolerations: list[Any], limit_s: float | None) -> None:
    assert tolerated_s(a_result("gpu-0", *tolerations), TAINT) == limit_s


@pytest.mark.parametrize(
    ("results", "at_s"),
    [
        ([a_result("gpu-0")], NOW_S),
        ([a_result("gpu-1")], None),
        ([a_result("gpu-9")], None),
        ([a_result("gpu-1"), a_result("gpu-0")], NOW_S),
        ([a_result("gpu-0", ALL)], None),
        ([a_result("gpu-0", {**ALL, "tolerationSeconds": 30})], NOW_S + 30),
        ([a_result("gpu-0", ALL), a_result("gpu-1", ALL)], None),
        ([{**a_result("gpu-0"), "pool": "q"}], None),
        ([{**a_result("gpu-0"), "driver": "e"}], None),
    ],
)
def test_a_claim_is_evicted_for_the_taints_of_its_own_devices(results: list[Any], at_s: float | None) -> None:
    found = taints_of(a_slice(TAINT)).eviction_of(a_claim(*results))
    assert found == (None if at_s is None else Eviction(at_s))


def test_of_several_taints_the_first_to_end_counts_and_one_that_is_tolerated_does_not() -> None:
    taints = taints_of(a_slice({**LATER, "key": "a"}, TAINT))
    assert taints.eviction_of(a_claim(a_result())) == Eviction(NOW_S)
    tolerating = a_result("gpu-0", {"key": "k", "operator": "Exists", "effect": "NoExecute"})
    assert taints.eviction_of(a_claim(tolerating)) == Eviction(NOW_S + 40)


def test_a_taint_without_a_time_evicts_nobody() -> None:
    timeless = {key: value for key, value in TAINT.items() if key != "timeAdded"}
    assert taints_of(a_slice(timeless)).eviction_of(a_claim(a_result())) is None


def test_rules_taint_published_and_unpublished_devices_and_each_is_named() -> None:
    taints = taints_of(a_slice(TAINT), rules=[a_rule(name="all"), a_rule(LATER, name="one", device="gpu-0")])
    assert taints.eviction_of(a_claim(a_result())) == Eviction(NOW_S, frozenset({"all/uid-all", "one/uid-one"}))
    assert taints.eviction_of(a_claim(a_result("gpu-9"))) == Eviction(NOW_S, frozenset({"all/uid-all"}))
    tolerating = a_result("gpu-0", {**ALL, "tolerationSeconds": 5})
    expected = Eviction(NOW_S + 5, frozenset({"all/uid-all", "one/uid-one"}))
    assert taints.eviction_of(a_claim(tolerating)) == expected


def test_a_rule_tells_whether_it_changed_anything() -> None:
    taints, soft = DeviceTaints(), a_rule({**TAINT, "effect": "NoSchedule"})
    assert taints.set_rule(None, a_rule())
    assert taints.set_rule(a_rule(), a_rule(device="gpu-1"))
    assert taints.eviction_of(a_claim(a_result())) is None
    assert taints.set_rule(a_rule(device="gpu-1"), soft)
    assert not taints.set_rule(soft, None)
    assert taints.set_rule(None, a_rule())
    assert taints.set_rule(a_rule(), None)
    assert taints.eviction_of(a_claim(a_result())) is None


def test_which_claims_use_a_device() -> None:
    devices = frozenset({("d", "p", "gpu-0")})
    assert uses(a_claim(a_result("gpu-1"), a_result("gpu-0")), devices)
    assert not uses(a_claim(a_result("gpu-1")), devices)
    assert not uses(a_claim(), devices)


# ---------------------------------------------------------------------------------------------------------------- pods

BY_NAME, BY_TEMPLATE = {"resourceClaimName": "c"}, {"resourceClaimTemplateName": "t"}
NAMED = [{"name": "e0", "resourceClaimName": "c"}]


@pytest.mark.parametrize(
    ("pod", "claim", "evicted"),
    [
        (a_pod(BY_NAME), a_claim(a_result()), True),
        (a_pod(BY_NAME, node=""), a_claim(a_result()), False),
        (a_pod(BY_NAME, uid="2"), a_claim(a_result()), False),
        (a_pod(BY_NAME), a_claim(a_result(), users=()), False),
        (a_pod(BY_NAME), a_claim(a_result(), users=("2", "1")), True),
        (a_pod(BY_NAME), a_claim(), False),
        (a_pod(BY_NAME), a_claim(a_result(), name="other"), False),
        (a_pod(BY_NAME), a_claim(a_result("gpu-1")), False),
        (a_pod(), a_claim(a_result()), False),
        (a_pod(BY_TEMPLATE, resourceClaimStatuses=NAMED), a_claim(a_result(), owner="1"), True),
        (a_pod(BY_TEMPLATE, resourceClaimStatuses=NAMED), a_claim(a_result(), owner="2"), False),
        (a_pod(BY_TEMPLATE, resourceClaimStatuses=NAMED), a_claim(a_result()), False),
        (a_pod(BY_TEMPLATE), a_claim(a_result(), owner="1"), False),
        (a_pod(BY_TEMPLATE, resourceClaimStatuses=[{"name": "e0"}]), a_claim(a_result(), owner="1"), False),
        (a_pod(extendedResourceClaimStatus={"resourceClaimName": "c"}), a_claim(a_result(), owner="1"), True),
        (a_pod(extendedResourceClaimStatus={"resourceClaimName": "c"}), a_claim(a_result(), owner="2"), False),
    ],
)
def test_a_pod_is_evicted_for_the_allocated_claims_that_it_may_use(pod: Any, claim: Any, evicted: bool) -> None:
    known = {(name_of(claim), namespace_of(claim)): claim}
    found = eviction_of_pod(
        pod, lambda name, namespace: known.get((name, namespace)), taints_of(a_slice(TAINT)).eviction_of
    )
    assert found == (Eviction(NOW_S) if evicted else None)


def test_a_pod_of_several_claims_is_evicted_at_the_first_time_for_all_their_rules() -> None:
    taints = taints_of(rules=[a_rule(LATER, name="later", device="gpu-1"), a_rule(name="now", device="gpu-0")])
    known = {"a": a_claim(a_result("gpu-1")), "b": a_claim(a_result("gpu-0")), "c": a_claim(a_result("gpu-9"))}
    pod = a_pod(*({"resourceClaimName": name} for name in known))
    found = eviction_of_pod(pod, lambda name, _: known.get(name), taints.eviction_of)
    assert found == Eviction(NOW_S, frozenset({"later/uid-later", "now/uid-now"}))


@pytest.mark.parametrize(
    ("new", "concerns"),
    [
        (a_pod(BY_TEMPLATE), False),
        (a_pod(BY_TEMPLATE, phase="Running", conditions=[{"type": "DisruptionTarget"}]), False),
        (a_pod(BY_TEMPLATE, resourceClaimStatuses=[]), False),
        (a_pod(BY_TEMPLATE, node="other"), True),
        (a_pod(BY_TEMPLATE, uid="2"), True),
        (a_pod(BY_TEMPLATE, resourceClaimStatuses=NAMED), True),
        (a_pod(BY_TEMPLATE, extendedResourceClaimStatus={"resourceClaimName": "c"}), True),
    ],
)
def test_which_changes_of_a_pod_concern_its_eviction(new: Any, concerns: bool) -> None:
    assert concerns_eviction(a_pod(BY_TEMPLATE), new) is concerns


# --------------------------------------------------------------------------------------------------------------- rules

_AGAIN = "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."


@pytest.mark.parametrize(
    ("effect", "tally", "status", "reason", "message"),
    [
        ("NoExecute", RuleTally(), "False", "NotStarted", ""),
        ("NoExecute", RuleTally(1, 1), "True", "PodsPendingEviction", "1 pod needs to be evicted in 1 namespace."),
        (
            "NoExecute",
            RuleTally(2, 1),
            "True",
            "PodsPendingEviction",
            "2 pods need to be evicted in 1 namespace.",
        ),
        (
            "NoExecute",
            RuleTally(2, 2, 1),
            "True",
            "PodsPendingEviction",
            "2 pods need to be evicted in 2 different namespaces. 1 pod evicted since starting the controller.",
        ),
        ("NoExecute", RuleTally(evicted=3), "False", "Completed", "3 pods evicted since starting the controller."),
        ("NoSchedule", RuleTally(), "False", "OtherEffect", "Eviction only happens for the NoExecute effect."),
        (
            "NoSchedule",
            RuleTally(evicted=1),
            "False",
            "OtherEffect",
            "Eviction only happens for the NoExecute effect. 1 pod evicted since starting the controller.",
        ),
        (
            "None",
            RuleTally(1, 1, 0, 3, 1),
            "False",
            "NoEffect",
            "3 published devices selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace if the "
            f"effect was NoExecute. {_AGAIN}",
        ),
        (
            "None",
            RuleTally(2, 2, 0, 1, 3),
            "False",
            "NoEffect",
            "1 published device selected. 3 allocated devices selected. 2 pods would be evicted in 2 different "
            f"namespaces if the effect was NoExecute. {_AGAIN}",
        ),
        (
            "None",
            RuleTally(),
            "False",
            "NoEffect",
            "0 published devices selected. 0 allocated devices selected. 0 pods would be evicted in 0 different "
            f"namespaces if the effect was NoExecute. {_AGAIN}",
        ),
    ],
)
def test_the_condition_of_a_rule(effect: str, tally: RuleTally, status: str, reason: str, message: str) -> None:
    assert rule_condition(a_rule({**TAINT, "effect": effect}), tally) == {
        "type": "EvictionInProgress",
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": 1,
    }


def test_a_condition_is_news_if_anything_but_its_time_differs() -> None:
    rule, condition = a_rule(), rule_condition(a_rule(), RuleTally())
    assert has_changed(rule, condition)
    known = {**rule, "status": status_of_rule(rule, condition, NOW_S)["status"]}
    assert not has_changed(known, condition)
    assert has_changed(known, rule_condition(rule, RuleTally(1, 1)))
    assert has_changed(known, {**condition, "observedGeneration": 2})


@pytest.mark.parametrize(
    ("after_s", "generation", "due_s"), [(0.0, 1, 10.0), (4.5, 1, 5.5), (10.0, 1, 0.0), (60.0, 1, 0.0), (0.0, 2, 0.0)]
)
def test_a_rules_status_is_updated_every_ten_seconds_and_after_a_change(
    after_s: float, generation: int, due_s: float
) -> None:
    rule = a_rule()
    assert due_in_s(rule, NOW_S) == 0.0
    known = {**rule, "status": status_of_rule(rule, rule_condition(rule, RuleTally()), NOW_S)["status"]}
    known["metadata"] = {**rule["metadata"], "generation": generation}
    assert due_in_s(known, NOW_S + after_s) == due_s


def test_the_status_is_applied_to_the_very_rule() -> None:
    rule = a_rule()
    condition = rule_condition(rule, RuleTally())
    applied = status_of_rule(rule, condition, NOW_S)
    assert applied["metadata"] == {"name": "r", "uid": "uid-r"}
    assert applied["status"] == {"conditions": [{**condition, "lastTransitionTime": STAMP}]}


def test_pods_that_are_being_deleted_are_not_pending() -> None:
    rule = a_rule()
    pods = [a_pod(uid=uid) for uid in "123"]
    pods[0]["metadata"]["deletionTimestamp"] = STAMP
    pods[1]["metadata"]["namespace"] = "other"
    for_rule, for_another = Eviction(NOW_S, frozenset({"r/uid-r"})), Eviction(NOW_S, frozenset({"r/other"}))
    assert pending_pods(rule, pods, lambda pod: for_rule) == (2, 2)
    assert pending_pods(rule, pods, lambda pod: for_another) == (0, 0)
    assert pending_pods(rule, pods, lambda pod: None) == (0, 0)


def test_a_dry_run_counts_devices_and_changes_nothing() -> None:
    rule = a_rule({**TAINT, "effect": "None"})
    taints = taints_of(a_slice(), a_slice(name="old", generation=0), rules=[a_rule(name="other")])
    taints.set_rule(None, rule)
    claims = [a_claim(a_result("gpu-0"), a_result("gpu-9")), a_claim(), a_claim({**a_result(), "driver": "e"})]
    assert taints.published(rule) == 2
    assert taints.published(a_rule(pool="q")) == 0
    assert allocated_devices(rule, claims) == 2
    assert as_if_evicting(rule).eviction_of(claims[0]) == Eviction(NOW_S, frozenset({"r/uid-r"}))
    assert taints.eviction_of(claims[0]) == Eviction(NOW_S, frozenset({"other/uid-other"}))
