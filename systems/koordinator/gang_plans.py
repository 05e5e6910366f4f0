"""The gangs of the scheduler: who belongs to one, and where it is planned to be. Waits for nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, field

from mews.kube.api.objects import Object, is_deleting, key_of, labels_of, namespace_of, node_name_of, uid_of
from mews.kube.scheduling.podinfo import PodInfo, pod_info
from mews.systems.koordinator.errors import InvalidRequestError
from mews.systems.koordinator.gangs import GangLabel, GangMember, GangPlacement, gang_of
from mews.systems.koordinator.names import MIN_AVAILABLE, POD_GROUP
from mews.systems.koordinator.requests import DeviceAsk

GangKey = tuple[str, str]
"""Namespace, name."""
AskOf = Callable[[PodInfo], DeviceAsk | None]


def gang_key(pod: Object) -> GangKey | None:
    """Return the gang of the design that a pod belongs to."""
    labels = labels_of(pod)
    name = labels.get(POD_GROUP, "")
    return (namespace_of(pod), name) if name and MIN_AVAILABLE in labels else None


class GangPlan(Struct):
    """Devices set aside on one node for pods of a gang that come one after the other. ``needed`` of them must be at
    Permit (``waiting``) before any is let through (``passed``)."""

    node: str
    placement: GangPlacement
    needed: int
    waiting: set[str] = field(default_factory=set)
    passed: set[str] = field(default_factory=set)


class GangState(Struct, frozen=True):
    """A gang as it is: its pods that have no node yet, and the nodes of those that have one."""

    label: GangLabel
    pending: tuple[PodInfo, ...]
    bound_to: tuple[str, ...]

    @property
    def needed(self) -> int:
        """How many pods have to be placed at once."""
        return max(self.label.min_available - len(self.bound_to), 1)

    def members(self, ask_of: AskOf) -> tuple[GangMember, ...]:
        """Return the pending pods that ask for devices, with what they ask.

        Raises InvalidRequestError.
        """
        asks = ((pod, ask_of(pod)) for pod in self.pending)
        return tuple(GangMember(pod.uid, pod.key, ask) for pod, ask in asks if ask is not None)

    def requests(self) -> Mapping[str, int]:
        """Return what the pending pods ask of a node in all."""
        total: dict[str, int] = {"pods": len(self.pending)}
        for pod in self.pending:
            for name, value in pod.requests.items():
                total[name] = total.get(name, 0) + value
        return total


class Gangs:
    """Pods of all gangs of one scheduler, and the plans made for them."""

    def __init__(self, scheduler_name: str) -> None:
        self._scheduler = scheduler_name
        self._pods: dict[GangKey, dict[str, Object]] = {}
        self.plans: dict[GangKey, GangPlan] = {}

    def set_pod(self, pod: Object) -> bool:
        """A pod is there; whether it is a new one of a gang, whose others may be waiting for it."""
        key = gang_key(pod)
        if key is None or (pod["spec"].get("schedulerName") or "") != self._scheduler:
            return False
        pods = self._pods.setdefault(key, {})
        new = uid_of(pod) not in pods
        pods[uid_of(pod)] = pod
        return new

    def remove_pod(self, pod: Object) -> None:
        """A pod is gone or has finished."""
        key = gang_key(pod)
        if key is not None and key in self._pods:
            self._pods[key].pop(uid_of(pod), None)
            if not self._pods[key]:
                del self._pods[key]

    def pending(self, key: GangKey) -> Iterable[str]:
        """Uids of its pods that have no node."""
        return [uid for uid, pod in self._pods.get(key, {}).items() if not node_name_of(pod)]

    def state(self, pod: PodInfo) -> GangState | None:
        """Return the gang of a pod, with the pod itself; None for a pod of none.

        Raises InvalidRequestError.
        """
        label = gang_of(pod.labels)
        if label is None:
            return None
        others = self._pods.get((pod.namespace, label.name), {})
        pods = sorted(({**others, pod.uid: pod.pod}).values(), key=key_of)
        pending = [each for each in pods if not node_name_of(each) and not is_deleting(each)]
        _check_agreement(label, pending)
        return GangState(
            label,
            tuple(map(pod_info, pending)),
            tuple(sorted(node_name_of(each) for each in pods if node_name_of(each))),
        )

    def plan_of(self, pod: PodInfo) -> GangPlan | None:
        """Return the plan that has devices for this pod."""
        key = gang_key(pod.pod)
        plan = self.plans.get(key) if key is not None else None
        return plan if plan is not None and pod.uid in plan.placement else None


def _check_agreement(label: GangLabel, pods: Iterable[Object]) -> None:
    numbers = sorted({labels_of(pod).get(MIN_AVAILABLE, "1") for pod in pods})
    if len(numbers) > 1:
        raise InvalidRequestError(f"pods of gang {label.name} differ in {MIN_AVAILABLE}: {', '.join(numbers)}")


def refusal(state: GangState) -> str:
    """Return why a gang cannot be placed that is not complete; "" for one that is."""
    there = len(state.pending) + len(state.bound_to)
    if there >= state.label.min_available:
        return ""
    return f"gang {state.label.name} has {there} of {state.label.min_available} pods"


def one_node(state: GangState) -> str:
    """Return the node that the rest of a gang must join; "" where none of it has one.

    Raises InvalidRequestError where there are several.
    """
    nodes = sorted(set(state.bound_to))
    if len(nodes) > 1:
        raise InvalidRequestError(f"gang {state.label.name} is on several nodes: {', '.join(nodes)}")
    return nodes[0] if nodes else ""
