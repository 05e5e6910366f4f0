"""Invariant 8: what fits is eventually scheduled."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from mews.harness.invariants.invariant import ObservedState
from mews.harness.invariants.observed_hardware import ObservedHardware
from mews.harness.journal import Line
from mews.kube.api.objects import (
    Object,
    condition_of,
    containers_of,
    init_containers_of,
    is_deleting,
    is_terminal,
    key_of,
    name_of,
    node_name_of,
    requests_of,
    seconds,
    uid_of,
)
from mews.kube.api.quantities import parse
from mews.kube.api.selectors import expression_holds
from mews.kube.system.invariant import Breach, ClusterObjects, Invariant, ObservedHolding

Amounts = dict[str, Decimal]
_CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
"""As the scheduler's plugin NodeUnschedulable sees a node that is unschedulable."""


class Scheduled(Invariant[ObservedState]):
    """A pod that fits on some node by itself is scheduled within a bound. The clock of a pod runs while it fits
    somewhere. The law examines a pod only after half its bound has passed, so that young pods cost nothing. It does not
    judge pods with constraints that it does not model, because it claims nothing that it cannot know. These are
    affinity to pods, spread, volumes, host ports, gates, claims and schedulers that do not run."""

    number = 8
    name = "what fits is eventually scheduled"
    of_time = True
    events = frozenset({("api", "created"), ("api", "event"), ("api", "deleted")})

    def __init__(self, schedulers: Collection[str]) -> None:
        self._schedulers = schedulers
        self._fits_since: dict[str, float] = {}
        self._born_s: dict[str, float] = {}
        self._judged: dict[str, tuple[Object, bool]] = {}
        """By their keys, the pods of the last look and whether they wait."""
        self._looked = 0.0
        self._created: dict[str, Line] = {}
        self._refused: dict[str, Line] = {}

    def on_line(self, line: Line, state: ObservedState) -> Iterable[Breach]:
        """Remember when a pod came and what its scheduler said of it first."""
        if line.event == "event":
            if line.fields["reason"] == "FailedScheduling":
                self._refused.setdefault(line.fields["object"], line)
        elif line.actor.startswith("pod/"):
            self._refused.pop(line.actor, None)
            if line.event == "created":
                self._created[line.actor] = line
            else:
                self._created.pop(line.actor, None)
        return ()

    def on_objects(self, t: float, objects: ClusterObjects, state: ObservedState) -> Iterator[Breach]:
        """Judge all old enough pending pods; call after every change of a pod, a node or the hardware."""
        bound_s = state.bounds.scheduled_s
        if bound_s is None:
            return
        pending = [pod for pod in self._waiting(objects) if self._old(pod, objects, bound_s / 2)]
        free = free_amounts(objects, state) if pending else {}
        still: dict[str, float] = {}
        for pod in pending:
            node = next((n for n in sorted(free) if _fits(pod, objects.nodes[n], free[n], state, objects)), None)
            if node is None:
                continue
            uid = uid_of(pod)
            # Between two looks nothing changed, or there had been a look: it has fitted since the last one.
            still[uid] = self._fits_since.get(uid, max(self._looked, t - (objects.now_s - self._born_s[uid])))
            waited = t - state.windows.clock_from(self.number, still[uid])
            if waited > bound_s / 2 and objects.now_s - self._born_s[uid] > bound_s:
                what = f"pod {key_of(pod)} fits {node} and is unscheduled (bound {bound_s:g} s)"
                actor = f"pod/{key_of(pod)}"
                created = self._created.get(actor)
                yield Breach((uid,), what, self._refused.get(actor, created), after=created, due_s=still[uid])
        self._fits_since, self._looked = still, t

    def _waiting(self, objects: ClusterObjects) -> Iterator[Object]:
        """Yield those that wait for a node. There are many looks at one pod, which is one object until it changes."""
        before, self._judged = self._judged, {}
        for key, pod in objects.pods.items():
            known = before.get(key)
            if known is None or known[0] is not pod:
                known = pod, is_waiting(pod, self._schedulers)
            self._judged[key] = known
            if known[1]:
                yield pod

    def _old(self, pod: Object, objects: ClusterObjects, age_s: float) -> bool:
        uid = uid_of(pod)
        if uid not in self._born_s:
            self._born_s[uid] = seconds(pod["metadata"]["creationTimestamp"])
        return objects.now_s - self._born_s[uid] >= age_s


def is_waiting(pod: Object, schedulers: Collection[str]) -> bool:
    """Return whether it waits for a node from one of these, by nothing that is not modelled here."""
    spec = pod.get("spec", {})
    if node_name_of(pod) or is_terminal(pod) or is_deleting(pod) or not _modelled(spec):
        return False
    return spec.get("schedulerName", "default-scheduler") in schedulers


def _modelled(spec: Mapping[str, Any]) -> bool:
    affinity, spread = spec.get("affinity") or {}, spec.get("topologySpreadConstraints") or ()
    if spec.get("schedulingGates") or spec.get("resourceClaims"):
        return False
    if any(constraint.get("whenUnsatisfiable") != "ScheduleAnyway" for constraint in spread):
        return False
    if affinity.get("podAffinity") or affinity.get("podAntiAffinity"):
        return False
    if any("persistentVolumeClaim" in volume or "ephemeral" in volume for volume in spec.get("volumes") or ()):
        return False
    return not any(port.get("hostPort") for c in spec.get("containers") or () for port in c.get("ports") or ())


def amounts_of(pod: Mapping[str, Any]) -> Amounts:
    """Return what a pod takes of each resource, exactly, as the scheduler counts it; ``pods`` is 1.

    The oracle reckons by itself, not by ``mews.kube.api.pod_requests``, so that a mistake there is found here.
    """
    mains, sidecars, peak = Amounts(), Amounts(), Amounts()
    for container in containers_of(pod):
        _add(mains, requests_of(container))
    for container in init_containers_of(pod):
        if container.get("restartPolicy") == "Always":
            _add(sidecars, requests_of(container))
            _raise(peak, sidecars)
        else:
            _raise(peak, _add(dict(sidecars), requests_of(container)))
    total = _raise(_add(mains, sidecars), peak)
    for name, quantity in ((pod.get("spec", {}).get("resources") or {}).get("requests") or {}).items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):  # the pod as a whole has the last word
            total[name] = parse(quantity)
    return _add(total, {"pods": 1, **(pod.get("spec", {}).get("overhead") or {})})


def _add(total: Amounts, more: Mapping[str, Any]) -> Amounts:
    for name, quantity in more.items():
        total[name] = total.get(name, Decimal(0)) + parse(quantity)
    return total


def _raise(total: Amounts, to: Amounts) -> Amounts:
    for name, amount in to.items():
        total[name] = max(total.get(name, Decimal(0)), amount)
    return total


def _charged(pod: Mapping[str, Any], node: Object, state: ObservedState) -> Amounts:
    """Return what a pod takes on that node, what that stands for, and what it is in other units."""
    asked = amounts_of(pod)
    there = (node.get("status") or {}).get("allocatable") or {}
    for name, others in state.systems.stands_for.items():
        if name in asked:
            _add(asked, {other: asked[name] * share for other, share in others.items() if other in there})
    if state.systems.other_units:
        for pair in state.systems.other_units.items():
            for one, other in (pair, pair[::-1]):
                if one in asked and other not in asked and parse(there.get(one, 0)):
                    asked[other] = asked[one] * parse(there.get(other, 0)) / parse(there[one])
    return asked


def free_amounts(objects: ClusterObjects, state: ObservedState) -> dict[str, Amounts]:
    """Node -> what its allocatable leaves once its pods have what they ask."""
    free = {
        name: _add(Amounts(), (n.get("status") or {}).get("allocatable") or {}) for name, n in objects.nodes.items()
    }
    for pod in objects.pods.values():
        node = node_name_of(pod)
        if node in free and not is_terminal(pod):
            for name, amount in _charged(pod, objects.nodes[node], state).items():
                free[node][name] = free[node].get(name, Decimal(0)) - amount
    return free


def _fits(pod: Object, node: Object, free: Amounts, state: ObservedState, objects: ClusterObjects) -> bool:
    return fits_but_for("", pod, node, free, state, objects)


def fits_but_for(
    resource: str, pod: Object, node: Object, free: Amounts, state: ObservedState, objects: ClusterObjects
) -> bool:
    """Return whether a pod fits a node, that resource aside; one that it is to get from a pool is never aside."""
    spec = pod.get("spec", {})
    if not (is_open(node, spec) and is_selected(node, spec)):
        return False
    pooled = {entry.resource: entry for entry in state.systems.pooled if entry.scheduler == spec.get("schedulerName")}
    for name, amount in _charged(pod, node, state).items():
        here = free.get(name, Decimal(0))
        if name in pooled and name_of(node) in pooled[name].unannounced:
            here = Decimal(0)
        elif name in pooled:
            here = _pool_free(state.world, name_of(node), objects, name)
            if name == resource:
                return False
        elif name == resource:
            continue
        else:
            here = max(here, _by_device(name_of(node), name, objects, state))
        if amount > here and amount > 0:
            return False
    return True


def _by_device(node: str, resource: str, objects: ClusterObjects, state: ObservedState) -> Decimal:
    """Return what is left of the healthy devices in the plugin's list, which a node's status is to show: those that
    nobody holds, less what is held of broken ones (``Stranded`` reports that)."""
    shown = state.world.lists.get(node, {}).get(resource)
    if shown is None:
        return Decimal(0)
    held = sum(len(each.devices) for each in holdings_of(node, resource, state))
    return Decimal(len(shown.healthy) - held - awaited(node, resource, objects, state))


def holdings_of(node: str, resource: str, state: ObservedState) -> Iterator[ObservedHolding]:
    """Return what a kubelet gave to its live pods of a resource."""
    held = state.world.holdings.values()
    return (each for each in held if each.host == node and each.resource == resource)


def awaited(node: str, resource: str, objects: ClusterObjects, state: ObservedState) -> int:
    """Return what the pods ask that are bound to a node and were given nothing yet."""
    given = {each.uid for each in holdings_of(node, resource, state)}
    bound = (pod for pod in objects.pods.values() if node_name_of(pod) == node and uid_of(pod) not in given)
    return sum(int(amounts_of(pod).get(resource, Decimal(0))) for pod in bound if not is_terminal(pod))


def is_open(node: Object, spec: Mapping[str, Any]) -> bool:
    """Return whether a node is ready and takes new pods of that spec."""
    ready = condition_of(node, "Ready")
    return ready is not None and ready.get("status") == "True" and takes(node, spec)


def takes(node: Object, spec: Mapping[str, Any]) -> bool:
    """Return whether a pod of that spec tolerates what keeps new pods from a node."""
    own = node.get("spec") or {}
    hard = [taint for taint in own.get("taints") or () if taint.get("effect") in ("NoSchedule", "NoExecute")]
    hard += [_CORDONED] if own.get("unschedulable") else []
    return all(any(_tolerates(t, taint) for t in spec.get("tolerations") or ()) for taint in hard)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return toleration.get("key") == taint.get("key") and toleration.get("value", "") == taint.get("value", "")


def is_selected(node: Object, spec: Mapping[str, Any]) -> bool:
    """Return whether a node is one that a pod of that spec asks for, by its selector and its affinity to nodes."""
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    terms = (affinity or {}).get("nodeSelectorTerms") or ()
    return not affinity or any(_term(term, node, labels) for term in terms)


def _term(term: Mapping[str, Any], node: Object, labels: Mapping[str, str]) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    name = {"metadata.name": name_of(node)}
    return all(expression_holds(e, labels) for e in expressions) and all(expression_holds(e, name) for e in fields)


def _pool_free(world: ObservedHardware, host: str, objects: ClusterObjects, resource: str) -> Decimal:
    """Return how many of the pool's devices are, or could be brought, on this host: only those of chassis that it is
    cabled to. A pod whose devices nobody has said yet may hold any of them."""
    pool = next((chassis.pool for chassis in world.chassis.values() if host in chassis.hosts), None)
    members = {name: chassis for name, chassis in world.chassis.items() if chassis.pool == pool}
    near = {name for name, chassis in members.items() if host in chassis.hosts}
    hosts = {h for chassis in members.values() for h in chassis.hosts}
    # One of which pods have parts, or that a pod has by another name, is free only where their system sends them away.
    parted = {gpuid for holding in world.all_holdings() for gpuid in holding.parts_of}
    parted |= {gpuid for each in world.declared.values() if each.resource != resource for gpuid in each.devices}
    mine = (device for device in world.devices.values() if device.chassis in near and device.present)
    devices = sum(1 for device in mine if device.gpuid not in parted)
    elsewhere = _held_beyond(world, members.keys() - near)
    taken = (
        max(amounts_of(pod).get(resource, Decimal(0)) - elsewhere.get(uid_of(pod), 0), Decimal(0))
        for pod in objects.pods.values()
        if node_name_of(pod) in hosts and not is_terminal(pod)
    )
    return Decimal(devices) - sum(taken, Decimal(0))


def _held_beyond(world: ObservedHardware, chassis: Collection[str]) -> dict[str, int]:
    """Pod (uid) -> how many devices of these chassis it holds."""
    found: dict[str, set[str]] = {}
    for holding in world.all_holdings() if chassis else ():
        held = (world.devices[gpuid] for gpuid in holding.devices if gpuid in world.devices)
        found.setdefault(holding.uid, set()).update(device.gpuid for device in held if device.chassis in chassis)
    return {uid: len(devices) for uid, devices in found.items()}
