"""When a pod must be deleted because of the taints of its devices, and the status of the rules that taint them. Pure.

Source: pkg/controller/devicetainteviction/device_taint_eviction.go of Kubernetes 1.37. Claims of pod groups
(DRAWorkloadResourceClaims) are unknown here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import (
    Object,
    is_deleting,
    name_of,
    namespace_of,
    node_name_of,
    seconds,
    timestamp,
    uid_of,
)
from mews.kube.api.resource_claims import (
    ClaimNotMadeError,
    allocation_of,
    claim_name,
    extended_claim_name,
    is_generated,
    is_reserved_for,
    owns,
    results_of,
)
from mews.kube.scheduling.devices.taint_rules import is_selected
from mews.kube.scheduling.devices.taints import tolerates

Spec = Mapping[str, Any]

Device = tuple[str, str, str]
"""Driver, pool and name of a device."""

CONDITION = "EvictionInProgress"
EVICTS = "NoExecute"
STATUS_PERIOD_S = 10.0
"""The shortest time between two updates of a rule's status while pods are being evicted."""


class Eviction(Struct, frozen=True):
    """When a pod must be deleted (Unix seconds), and the keys of the rules that ask for it; taints of slices have
    none."""

    at_s: float
    rules: frozenset[str] = frozenset()


def rule_key(rule: Object) -> str:
    """``NAME/UID``: a rule that takes the name of another is not the same."""
    return f"{name_of(rule)}/{uid_of(rule)}"


def effect_of(rule: Object) -> str:
    """``spec.taint.effect``."""
    return str(rule["spec"]["taint"].get("effect") or "")


def device_of(result: Spec) -> Device:
    """Return the device of a result of an allocation."""
    return str(result["driver"]), str(result["pool"]), str(result["device"])


class DeviceTaints:
    """The slices by pool, and the rules with the effect NoExecute by name."""

    def __init__(self) -> None:
        self._pools: dict[tuple[str, str], dict[str, Object]] = {}
        self._rules: dict[str, Object] = {}

    def set_slice(self, old: Object | None, new: Object | None) -> frozenset[Device]:
        """Put a slice in the place of the old one. Returns the devices whose NoExecute taints that changes."""
        pools = {_pool_of(each) for each in (old, new) if each is not None}
        before = self._evicting(pools)
        if old is not None:
            self._pools.get(_pool_of(old), {}).pop(name_of(old), None)
        if new is not None:
            self._pools.setdefault(_pool_of(new), {})[name_of(new)] = new
        for pool in pools:
            if not self._pools.get(pool):
                self._pools.pop(pool, None)
        after = self._evicting(pools)
        return frozenset(device for device in before | after if before.get(device) != after.get(device))

    def set_rule(self, old: Object | None, new: Object | None) -> bool:
        """Put a rule in the place of the old one. Returns whether that may change when pods are evicted."""
        was = self._rules.pop(name_of(old), None) if old is not None else None
        if new is not None and effect_of(new) == EVICTS:
            self._rules[name_of(new)] = new
            return True
        return was is not None

    def eviction_of(self, claim: Object) -> Eviction | None:
        """Return the earliest time at which a taint of one of the claim's devices is no longer tolerated, with every
        rule whose taint is not tolerated for ever."""
        times, rules = [], set[str]()
        for result in results_of(claim):
            for taint, rule in self._taints(result):
                limit_s = tolerated_s(result, taint)
                if limit_s is None or not taint.get("timeAdded"):
                    continue
                times.append(seconds(taint["timeAdded"]) + limit_s)
                if rule is not None:
                    rules.add(rule_key(rule))
        return Eviction(min(times), frozenset(rules)) if times else None

    def published(self, rule: Object) -> int:
        """Return how many devices of current slices the rule selects."""
        return sum(
            is_selected(rule, *pool, str(device["name"])) for pool in self._pools for device in self._current(pool)
        )

    def _taints(self, result: Spec) -> Iterator[tuple[Spec, Object | None]]:
        driver, pool, name = device_of(result)
        found = next((each for each in self._current((driver, pool)) if each["name"] == name), {})
        for taint in _evicting_taints(found):
            yield taint, None
        for rule in self._rules.values():
            if is_selected(rule, driver, pool, name):
                yield rule["spec"]["taint"], rule

    def _current(self, pool: tuple[str, str]) -> Iterator[Spec]:
        """Yield the devices of the pool's newest generation."""
        slices = self._pools.get(pool, {}).values()
        newest = max(map(_generation_of, slices), default=0)
        for each in slices:
            if _generation_of(each) == newest:
                yield from each["spec"].get("devices") or ()

    def _evicting(self, pools: Iterable[tuple[str, str]]) -> dict[Device, list[Spec]]:
        return {
            (*pool, str(device["name"])): taints
            for pool in pools
            for device in self._current(pool)
            if (taints := _evicting_taints(device))
        }


def as_if_evicting(rule: Object) -> DeviceTaints:
    """Return that rule alone, as if its effect were NoExecute: taints of slices do not change whom it would evict."""
    made = DeviceTaints()
    taint = {**rule["spec"]["taint"], "effect": EVICTS}
    made.set_rule(None, {**rule, "spec": {**rule["spec"], "taint": taint}})
    return made


def _pool_of(resource_slice: Object) -> tuple[str, str]:
    spec = resource_slice["spec"]
    return str(spec["driver"]), str(spec["pool"]["name"])


def _generation_of(resource_slice: Object) -> int:
    return int(resource_slice["spec"]["pool"].get("generation") or 0)


def _evicting_taints(device: Spec) -> list[Spec]:
    return [taint for taint in device.get("taints") or () if taint.get("effect") == EVICTS]


def tolerated_s(result: Spec, taint: Spec) -> float | None:
    """Return how long a device's user tolerates a taint, None for ever. The shortest of several limits counts. A
    toleration of all effects, which lets a pod be scheduled, does not keep it from being evicted."""
    limits = []
    for toleration in result.get("tolerations") or ():
        if toleration.get("effect") == EVICTS and tolerates(toleration, taint):
            if toleration.get("tolerationSeconds") is None:
                return None
            limits.append(max(float(toleration["tolerationSeconds"]), 0.0))
    return min(limits, default=0.0)


def uses(claim: Object, devices: frozenset[Device]) -> bool:
    """Return whether the claim is allocated one of the devices."""
    return any(device_of(result) in devices for result in results_of(claim))


# ---------------------------------------------------------------------------------------------------------------- pods


def eviction_of_pod(
    pod: Object,
    find: Callable[[str, str], Object | None],
    of_claim: Callable[[Object], Eviction | None],
    *,
    extended: bool = True,
) -> Eviction | None:
    """Return when the pod must be deleted: at the earliest time of its claims, for the rules of all of them. A pod that
    is on no node stays. ``find`` looks a claim up by name and namespace; ``extended``: whether the claim for extended
    resources counts, as from 1.37 on."""
    if not node_name_of(pod):
        return None
    found = [each for claim in _claims(pod, find, extended=extended) if (each := of_claim(claim)) is not None]
    if not found:
        return None
    return Eviction(min(each.at_s for each in found), frozenset().union(*(each.rules for each in found)))


def _claims(pod: Object, find: Callable[[str, str], Object | None], *, extended: bool) -> Iterator[Object]:
    """Yield the allocated claims that the pod may use."""
    for name, must_own in _claim_names(pod, extended=extended):
        claim = find(name, namespace_of(pod))
        if claim is None or allocation_of(claim) is None or (must_own and not owns(uid_of(pod), claim)):
            continue
        if is_reserved_for(claim, uid_of(pod)):
            yield claim


def _claim_names(pod: Object, *, extended: bool) -> Iterator[tuple[str, bool]]:
    """Yield the names of the pod's claims, and whether the pod must own each. Source: resourceclaim/pod.go,
    PodClaims."""
    for entry in pod["spec"].get("resourceClaims") or ():
        try:
            name = claim_name(pod, entry)
        except ClaimNotMadeError:
            continue
        if name is not None:
            yield name, is_generated(entry)
    if extended and (name := extended_claim_name(pod)):
        yield name, True


def concerns_eviction(old: Object, new: Object) -> bool:
    """Return whether a change of a pod may change when it is evicted. Statuses change often, and each eviction is
    one."""
    return _use(old) != _use(new)


def _use(pod: Object) -> tuple[str, str, list[Any], Any]:
    status = pod.get("status") or {}
    named = list(status.get("resourceClaimStatuses") or ())
    return uid_of(pod), node_name_of(pod), named, status.get("extendedResourceClaimStatus")


# --------------------------------------------------------------------------------------------------------------- rules


class RuleTally(Struct, frozen=True):
    """What the condition of a rule counts: pods to be evicted and their namespaces, pods evicted since the controller
    started, devices published and allocated."""

    pending: int = 0
    namespaces: int = 0
    evicted: int = 0
    published: int = 0
    allocated: int = 0


def pending_pods(rule: Object, pods: Iterable[Object], of_pod: Callable[[Object], Eviction | None]) -> tuple[int, int]:
    """Return how many pods are to be evicted for a rule, and in how many namespaces. Pods that are being deleted do not
    count."""
    key = rule_key(rule)
    evictions = ((pod, of_pod(pod)) for pod in pods if not is_deleting(pod))
    found = [namespace_of(pod) for pod, eviction in evictions if eviction is not None and key in eviction.rules]
    return len(found), len(set(found))


def allocated_devices(rule: Object, claims: Iterable[Object]) -> int:
    """Return how many results of allocations the rule selects."""
    return sum(is_selected(rule, *device_of(result)) for claim in claims for result in results_of(claim))


def rule_condition(rule: Object, tally: RuleTally) -> dict[str, Any]:
    """Return the condition EvictionInProgress of a rule, without its time."""
    reason, message = _words(effect_of(rule), tally)
    if tally.evicted:
        evicted = f"{_count(tally.evicted, 'pod')} evicted since starting the controller."
        message = f"{message} {evicted}" if message else evicted
    return {
        "type": CONDITION,
        "status": "True" if reason == "PodsPendingEviction" else "False",
        "reason": reason,
        "message": message,
        "observedGeneration": int(rule["metadata"].get("generation") or 0),
    }


def _words(effect: str, tally: RuleTally) -> tuple[str, str]:
    """Reason and message."""
    if effect == "None":
        return "NoEffect", (
            f"{_count(tally.published, 'published device')} selected. "
            f"{_count(tally.allocated, 'allocated device')} selected. "
            f"{_count(tally.pending, 'pod')} would be evicted in {_spread(tally)} if the effect was NoExecute. "
            "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."
        )
    if effect != EVICTS:
        return "OtherEffect", "Eviction only happens for the NoExecute effect."
    if tally.pending:
        verb = "needs" if tally.pending == 1 else "need"
        return "PodsPendingEviction", f"{_count(tally.pending, 'pod')} {verb} to be evicted in {_spread(tally)}."
    return ("Completed" if tally.evicted else "NotStarted"), ""


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"


def _spread(tally: RuleTally) -> str:
    return "1 namespace" if tally.namespaces == 1 else f"{tally.namespaces} different namespaces"


def known_condition(rule: Object) -> Spec:
    """Return the condition that the rule has, empty for none."""
    conditions = (rule.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == CONDITION), {})


def has_changed(rule: Object, condition: Spec) -> bool:
    """Return whether the condition differs from the one that the rule has."""
    known = known_condition(rule)
    return any(
        known.get(field, 0 if field == "observedGeneration" else None) != condition[field] for field in condition
    )


def due_in_s(rule: Object, now_s: float) -> float:
    """Return in how many seconds the rule's status may be updated again; 0 for now. Every change of the condition moves
    its lastTransitionTime, so that tells when it was updated."""
    known = known_condition(rule)
    if not known or known.get("observedGeneration", 0) != int(rule["metadata"].get("generation") or 0):
        return 0.0
    return max(0.0, STATUS_PERIOD_S - (now_s - seconds(known["lastTransitionTime"])))


def status_of_rule(rule: Object, condition: Spec, now_s: float) -> dict[str, Any]:
    """Return what is applied to the rule's status; the uid keeps it from a rule that has taken the name."""
    return {
        "metadata": {"name": name_of(rule), "uid": uid_of(rule)},
        "status": {"conditions": [{**condition, "lastTransitionTime": timestamp(now_s)}]},
    }
