"""The laws of Koordinator's protocol: annotations, Device objects, bindings and environments of pods, in their order.

The scheduler writes onto a pod which devices it has, reads the Device anew, and binds the pod at the version that bears
them (``mews.systems.koordinator.pod_notes``); then a runtime hook tells each container (``...hook``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from mews.kube.runtimehook.port import HookPolicy
from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.koordinator.allocation_books import AllocatedPod, AllocationBooks, DeviceReport
from mews.systems.koordinator.allocations import DeviceAllocation
from mews.systems.koordinator.devices import NodeDevice
from mews.systems.koordinator.errors import InvalidRequestError
from mews.systems.koordinator.gpu_health import APPLICATION_XIDS, XID
from mews.systems.koordinator.hints import hints_of
from mews.systems.koordinator.journal import DEVICE_PUBLISHED, DEVICE_WITHDRAWN, GANG
from mews.systems.koordinator.names import ALLOCATED, CORE, GPU, JOINT, MEMORY, RATIO, VISIBLE, WHOLE, today

IGNORE_POLICY = (
    "hookFailurePolicy: Ignore, the published default, creates a container whose runtime hook fails as it was asked "
    "for: it runs without its GPU"
)
"""Koordinator's pkg/runtimeproxy/config, PolicyIgnore."""

UNBOUND_BOUND, GANG_BOUND = "unbound_s", "gang_s"
"""How long a pod may bear devices without a node, and how long a gang may be bound in part (``System.bounds``)."""

SCHEDULED = 8
"""The law whose windows say that nobody schedules."""


class _BookLaw(Invariant[RunState]):
    """A law that goes by the books, which any of them may be the first to be given a line for."""

    events = AllocationBooks.events

    def __init__(self, books: AllocationBooks) -> None:
        self._books = books

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Take the line in, and judge it."""
        self._books.take(line)
        yield from self.judge(line, state)

    def judge(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Return what this line breaks; the books have it."""
        return iter(())


class EnvironmentsAgree(_BookLaw):
    """A container's environment names the devices of its pod's annotation, in the Device's numbers or by UUID. The law
    judges nodes with a koordlet."""

    number = 50
    name = "a container's environment names the devices of its pod's annotation"
    events = frozenset({("kubelet", "container-started"), ("kubelet", "hook-failed"), *AllocationBooks.events})

    def __init__(self, books: AllocationBooks, nodes: Collection[str], policy: str) -> None:
        super().__init__(books)
        self._nodes = frozenset(nodes)
        self._ignores = policy == HookPolicy.IGNORE
        self._failed: dict[tuple[str, str], Line] = {}

    def judge(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge containers as they start."""
        if line.event == "hook-failed":
            self._failed[line.fields["uid"], line.fields["container"]] = line
        elif line.event == "container-started":
            yield from self._started(line, line.actor.partition("/")[2])

    def _started(self, line: Line, node: str) -> Iterator[Breach]:
        uid, container = line.fields["uid"], line.fields["container"]
        failed, pod = self._failed.pop((uid, container), None), self._books.pods.get(uid)
        gpus = [each for each in pod.allocations if each.type == GPU] if pod is not None else []
        if pod is None or pod.annotated is None or not gpus or node not in self._nodes:
            return
        text = line.fields.get("env", {}).get(VISIBLE)
        if text is not None and set(text.split(",")) in self._expected(node, gpus):
            return
        has = f"{VISIBLE}={text}" if text is not None else f"no {VISIBLE}"
        names = ", ".join(each.id or str(each.minor) for each in gpus)
        what = f"{pod.name} ({container}) starts with {has}, and its annotation names {names}"
        known = IGNORE_POLICY if failed is not None and self._ignores else ""
        yield Breach((uid, container), what, line, after=failed or pod.annotated, known=known)

    def _expected(self, node: str, gpus: Sequence[DeviceAllocation]) -> Iterator[set[str]]:
        yield {each.id for each in gpus}
        yield {str(each.minor) for each in gpus}
        for report in self._books.reports.get(node, ()):
            found = [report.device(each) for each in gpus]
            yield {str(each.minor) for each in found if each is not None}


class GivenInHealth(_BookLaw):
    """A device that is moving to another node is shown as unhealthy, too. The scheduler reads the Device once more
    after it has written the annotation. It therefore knows if a binding uses a device that the Device did not offer by
    then."""

    number = 51
    name = "no pod is bound to a device that is unhealthy, withheld or gone"

    def judge(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge bindings."""
        pod = self._books.bound_here(line)
        if pod is None or pod.annotated is None:
            return
        node, lag_s = line.fields["node"], state.bound_s("lag_s") or 0.0
        report = self._books.report(node, pod.annotated.number)
        if report is None or (lag_s and pod.annotated.t - report.line.t < lag_s):
            return
        if report.line.event == DEVICE_WITHDRAWN and pod.annotated.t <= report.line.t:
            return  # Both come from watches of their own: the Device may have gone once it was read.
        for each in pod.allocations:
            device = report.device(each)
            if device is None or not device.health:
                how = "does not list" if device is None else "shows as unhealthy"
                there = f"{each.type} {each.id or each.minor}, which its Device {how}"
                what = f"{pod.name} is bound to {node} with {there}"
                yield Breach((line.fields["uid"], each.type, each.id, str(each.minor)), what, line, after=report.line)


class SumsFit(_BookLaw):
    """A device is not given beyond its sum. The annotations of bound pods that have not ended are added up per device:
    core, memory and ratio."""

    number = 52
    name = "of no device more is given to bound pods than it has"

    def judge(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge bindings."""
        pod = self._books.bound_here(line)
        if pod is None:
            return
        node = line.fields["node"]
        report = self._books.report(node, line.number)
        for each in pod.allocations if report is not None else ():
            assert report is not None
            device = report.device(each)
            if device is not None:
                yield from self._of(device, report, line)

    def _of(self, device: NodeDevice, report: DeviceReport, line: Line) -> Iterator[Breach]:
        node, sums, sharers = line.fields["node"], dict[str, int](), list[AllocatedPod]()
        for other in self._books.pods.values():
            if other.over or other.bound is None or other.bound.fields["node"] != node:
                continue
            mine = [each for each in other.allocations if report.device(each) is device]
            sharers += [other] if mine else []
            for name, value in (pair for each in mine for pair in each.resources.items()):
                sums[name] = sums.get(name, 0) + value
        before = [each.bound for each in sharers if each.bound is not None and each.bound is not line]
        for name, value in sorted(sums.items()):
            if value > device.resources.get(name, 0):
                has = f"has {device.resources.get(name, 0)} of {name}"
                there = f"{device.type} {device.id or device.minor} of {node} {has}"
                what = f"{there} and was given for {value}: to {', '.join(sorted(each.name for each in sharers))}"
                key = (node, device.type, device.id or str(device.minor), name, str(value))
                yield Breach(key, what, line, after=max(before, default=None, key=lambda each: each.number))


class GangsWhole(_BookLaw):
    """Once one pod of a gang is bound, as many of its pods as required are bound within moments. Pods that wait for
    each other are released together. Where a pod of the gang was deleted during this, the others go on. A gang of the
    design is on one node. Koordinator's native gangs are named by annotations or a PodGroup. Such a gang is not held
    any more once it was released (coscheduling/core/gang.go of Koordinator, once-satisfied)."""

    number = 53
    name = "a gang is bound to one node, and not in part"

    def __init__(self, books: AllocationBooks) -> None:
        super().__init__(books)
        self._begun: dict[tuple[str, str], Line] = {}
        self._seen: dict[tuple[str, str], int] = {}
        """How many pods a gang ever had."""
        self._satisfied: set[tuple[str, str]] = set()

    def judge(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Note how far gangs are bound."""
        pod = self._books.pods.get(line.fields.get("uid", ""))
        if pod is None or pod.gang is None:
            return
        if line.event == GANG:
            self._enter(_gang(pod))
        elif line.event == "bound" and not pod.given and _gang(pod) not in self._satisfied:
            yield from self._bind(pod, line)

    def _enter(self, key: tuple[str, str]) -> None:
        if len(self._members(key)) == 1:  # a gang of a name that all had left is another one
            self._seen.pop(key, None)
            self._satisfied.discard(key)
        self._seen[key] = self._seen.get(key, 0) + 1

    def _bind(self, pod: AllocatedPod, line: Line) -> Iterator[Breach]:
        assert pod.gang is not None, "it is a pod of a gang"
        key, anywhere = _gang(pod), pod.gang.fields.get("anywhere", False)
        others = () if anywhere else self._bound(key)
        for other in others:
            if not other.over and other.bound is not None and other.bound.fields["node"] != line.fields["node"]:
                where = f"{line.fields['node']}, and {other.name} of it is on {other.bound.fields['node']}"
                what = f"{pod.name} of gang {key[1]} is bound to {where}"
                yield Breach((*key, "node"), what, line, after=other.bound)
                break
        wanted, seen = self._wanted(key), self._seen.get(key, 0)
        if wanted is None:
            what = f"{pod.name} is bound, and nothing says how many pods of gang {key[1]} must be"
            yield Breach((*key, "unknown"), what, line, after=pod.gang)
        elif seen < wanted:
            what = f"{pod.name} is bound, and only {seen} of the {wanted} pods of gang {key[1]} are there"
            yield Breach((*key, "incomplete"), what, line, after=pod.gang)
        elif anywhere and len(self._bound(key)) >= wanted:
            self._satisfied.add(key)
        self._begun.setdefault(key, line)

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge gangs that are bound in part."""
        bound_s = state.bound_s(GANG_BOUND)
        for key, line in list(self._begun.items()) if bound_s is not None else ():
            assert bound_s is not None
            if t - line.t <= bound_s:
                continue
            bound, members, wanted = self._bound(key), self._members(key), self._wanted(key) or 0
            if len(bound) >= wanted or len(members) < wanted:
                del self._begun[key]
            elif t - state.clock_from(SCHEDULED, line.t) > bound_s:
                waiting = ", ".join(sorted(each.name for each in members if each.bound is None))
                there = f"{len(bound)} of gang {key[1]}, of {wanted} that must be"
                what = f"{there}, are bound for {t - line.t:.1f} s: not {waiting}"
                yield Breach((*key, str(line.number)), what, line, after=bound[-1].bound if bound else None)

    def _wanted(self, key: tuple[str, str]) -> int | None:
        """Return how many of it must be bound together: of those of the design all say it; of Koordinator's own the
        PodGroup does, or else the first pod that names a number."""
        group = self._books.pod_groups.get("/".join(key))
        terms = [each.gang.fields for each in self._members(key) if each.gang is not None]
        own = [fields for fields in terms if fields.get("anywhere")]
        if own and group is not None:
            return int(group.fields["min_member"])
        numbers = [fields["min_available"] for fields in own or terms if fields["min_available"] is not None]
        return (numbers[0] if own else max(numbers)) if numbers else None

    def _members(self, key: tuple[str, str]) -> list[AllocatedPod]:
        return [pod for pod in self._books.pods.values() if pod.gang is not None and _gang(pod) == key]

    def _bound(self, key: tuple[str, str]) -> list[AllocatedPod]:
        return [pod for pod in self._members(key) if pod.bound is not None]


class JointHolds(_BookLaw):
    """The law judges pods whose devices must be below the same PCIe switches (``device-joint-allocate``, SamePCIe)."""

    number = 54
    name = "devices that belong together are bound below the same switches"

    def judge(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge bindings."""
        pod = self._books.bound_here(line)
        if pod is None or pod.annotated is None or JOINT not in pod.notes:
            return
        report = self._books.report(line.fields["node"], pod.annotated.number)
        switches = _switches(pod, report) if report is not None else {}
        if len(set(switches.values())) > 1:
            named = "; ".join(f"{kind} below {', '.join(sorted(below))}" for kind, below in sorted(switches.items()))
            what = f"{pod.name} wants devices below the same switches, and is bound with {named}"
            yield Breach((line.fields["uid"], "joint"), what, line, after=pod.annotated)


class GivenIsBound(_BookLaw):
    """A scheduler takes back what it set aside for a pod that it did not bind, also from the annotation."""

    number = 55
    name = "a pod that bears devices is bound, or they are taken off again"

    def __init__(self, books: AllocationBooks) -> None:
        super().__init__(books)
        self._open: dict[str, Line] = {}

    def judge(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Start and stop the clocks."""
        uid = line.fields.get("uid", "")
        if line.event in ("bound", "deleted"):
            self._open.pop(uid, None)
        elif line.event == "annotations" and ALLOCATED in line.fields["annotations"]:
            self._open.pop(uid, None)
            pod = self._books.pods.get(uid)
            if pod is not None and pod.annotated is not None and pod.bound is None and not pod.given:
                self._open[uid] = line
        return iter(())

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge the clocks."""
        bound_s = state.bound_s(UNBOUND_BOUND) if self._open else None
        for uid, line in self._open.items() if bound_s is not None else ():
            assert bound_s is not None
            if t - line.t > bound_s and t - state.clock_from(SCHEDULED, line.t) > bound_s:
                pod = line.actor.removeprefix("pod/")
                what = f"{pod} bears devices for {t - line.t:.1f} s and is not bound (bound {bound_s:g} s)"
                yield Breach((uid, str(line.number)), what, line)


class AloneMeansAlone(_BookLaw):
    """A pod's hint may ask for exclusive devices (``device-allocate-hint``, exclusivePolicy). With DeviceLevel, no
    other pod is on the device. With PCIeLevel, no other pod is on a device of its type below the same switch. Both hold
    at the binding and later."""

    number = 57
    name = "a pod that is to be alone on its devices is alone on them"

    def judge(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge bindings."""
        pod = self._books.bound_here(line)
        report = self._books.report(line.fields["node"], line.number) if pod is not None else None
        if pod is None or report is None:
            return
        for other in self._books.pods.values():
            if other is pod or other.over or other.bound is None or other.bound.fields["node"] != line.fields["node"]:
                continue
            kind = next(_disturbed(pod, other, report), None) or next(_disturbed(other, pod, report), None)
            if kind is not None:
                what = f"{pod.name} is bound beside {other.name}, and one of them wants {kind} devices for itself"
                yield Breach((line.fields["uid"], other.created.fields["uid"]), what, line, after=other.bound)


class BrokenIsShown(_BookLaw):
    """A Device names the error of a GPU next to its health (``node.koordinator.sh/xid``), and no other GPU has one. An
    XID that no program causes breaks its GPU until the driver is bound again, or the GPU is mended (contract host.md
    section 3)."""

    number = 56
    name = "a Device shows no GPU as healthy of which it names an error, and names the error of each that has one"
    events = AllocationBooks.events | {("host", "xid"), ("host", "nvml-hidden")}

    def __init__(self, books: AllocationBooks) -> None:
        super().__init__(books)
        self._xids: dict[str, Line] = {}
        """GPU -> the first XID of its own since it was in NVML; nothing is known of one that was mended."""

    def judge(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge Devices as they are published."""
        if line.event == "xid" and line.fields["xid"] not in APPLICATION_XIDS:
            self._xids.setdefault(line.fields["uuid"], line)
        elif line.event == "nvml-hidden":
            self._xids.pop(line.fields["uuid"], None)
        for device in line.fields["devices"] if line.event == DEVICE_PUBLISHED else ():
            named, known = (device.get("labels") or {}).get(XID), self._xids.get(str(device.get("id")))
            broken = f"the Device of {line.fields['node']} shows {device.get('id')}"
            if named is not None and device.get("health"):
                yield Breach((line.actor, str(device.get("id")), named), f"{broken} as healthy, with XID {named}", line)
            elif named is None and known is not None and not device.get("health"):
                what = f"{broken} as broken, and not its XID {known.fields['xid']}"
                yield Breach((line.actor, str(device.get("id")), str(known.number)), what, line, after=known)
            if device.get("health"):
                self._xids.pop(str(device.get("id")), None)


class AnnotatedFirst(_BookLaw):
    """What a pod requests of devices by Koordinator's names is set aside for it, and written on it, before it is bound.
    The plugin ``DeviceShare`` does this in PreBind (contract koordinator.md section 2)."""

    number = 58
    name = "a pod that asks for devices bears them before it is bound"

    def __init__(self, books: AllocationBooks, scheduler: str) -> None:
        super().__init__(books)
        self._scheduler = scheduler

    def judge(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge bindings."""
        pod = self._books.pods.get(line.fields.get("uid", "")) if line.event == "bound" else None
        if pod is None or pod.annotated is not None or pod.given or state.bound_s("lag_s"):
            return
        if pod.created.fields.get("scheduler") != self._scheduler:
            return
        asked = sorted(name for name, amount in (pod.created.fields.get("requests") or {}).items() if amount)
        asked = [name for name in asked if today(name) in (WHOLE, CORE, MEMORY, RATIO)]
        if asked:
            what = f"{pod.name} asks for {', '.join(asked)} and is bound to {line.fields['node']} without a device"
            yield Breach((line.fields["uid"], "bare"), what, line, after=pod.created)


def _disturbed(alone: AllocatedPod, other: AllocatedPod, report: DeviceReport) -> Iterator[str]:
    """Yield the types of which the first pod wants devices for itself that the other has part in."""
    try:
        hints = hints_of(alone.notes).by_type
    except InvalidRequestError:
        return
    for kind, hint in hints.items():
        if not hint.exclusive:
            continue
        mine, theirs = (
            [found for each in pod.allocations if each.type == kind and (found := report.device(each)) is not None]
            for pod in (alone, other)
        )
        near = mine if hint.exclusive == "PCIeLevel" else []
        if any(each in mine or any(each.place.may_be_near(one.place) for one in near) for each in theirs):
            yield kind


def _gang(pod: AllocatedPod) -> tuple[str, str]:
    assert pod.gang is not None, "it is a pod of a gang"
    return pod.name.partition("/")[0], pod.gang.fields["gang"]


def _switches(pod: AllocatedPod, report: DeviceReport) -> dict[str, frozenset[str]]:
    """Type -> switches below which the pod's devices of it are; of the types that must be together."""
    try:
        hints = hints_of(pod.notes)
    except InvalidRequestError:
        return {}
    if hints.joint is None or not hints.joint.same_pcie:
        return {}
    found: dict[str, set[str]] = {}
    for each in pod.allocations:
        hint, device = hints.by_type.get(each.type), report.device(each)
        if each.type not in hints.joint.types or device is None:
            continue
        if hint is None or hint.strategy != "ApplyForAll":  # such a one has no choice, and takes no part
            found.setdefault(each.type, set()).add(device.place.pcie)
    return {kind: frozenset(below) for kind, below in found.items()}
