"""Pods and Devices as the lines of a run's journal show them: what Koordinator's laws look at. A reducer."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from mews.kube.system.invariant import LineBook
from mews.kube.system.journal import Line
from mews.systems.koordinator.allocations import Allocations, DeviceAllocation, parse_allocations
from mews.systems.koordinator.devices import NodeDevice, NodeDeviceReport, parse
from mews.systems.koordinator.errors import BadDeviceError
from mews.systems.koordinator.journal import DEVICE_PUBLISHED, DEVICE_WITHDRAWN, GANG, POD_GROUP_NEWS
from mews.systems.koordinator.names import ALLOCATED, HINT, JOINT

_ENDS = ("Succeeded", "Failed")


class AllocatedPod(Struct):
    """A pod with what its annotations say; ``bound`` and ``annotated`` are the lines, None before them."""

    name: str
    created: Line
    notes: dict[str, str] = field(default_factory=dict)
    allocations: Allocations = ()
    annotated: Line | None = None
    bound: Line | None = None
    over: bool = False
    gang: Line | None = None

    @property
    def given(self) -> bool:
        """Whether it came with its devices, so that no scheduler of ours wrote them."""
        return ALLOCATED in self.created.fields.get("annotated", ())


class DeviceReport(Struct, frozen=True):
    """A Device with the line that published it."""

    line: Line
    report: NodeDeviceReport

    def device(self, of: DeviceAllocation) -> NodeDevice | None:
        """Return the device that is meant: by its id, else by its minor."""
        for device in self.report.of_type(of.type):
            if device.id == of.id if of.id else device.minor == of.minor:
                return device
        return None


class AllocationBooks(LineBook):
    """Pods and Devices, as the lines tell of them; one for all laws of a run, whichever of them is given a line first.
    ``reports``: node -> its Devices, the newest last; ``pod_groups``: namespace/name -> its last line."""

    events = frozenset(
        {("api", e) for e in ("created", "bound", "annotations", "phase", "deleted", DEVICE_PUBLISHED, GANG)}
        | {("api", DEVICE_WITHDRAWN), ("api", POD_GROUP_NEWS)}
    )

    def __init__(self) -> None:
        super().__init__()
        self.pods: dict[str, AllocatedPod] = {}
        self.reports: dict[str, list[DeviceReport]] = {}
        self.pod_groups: dict[str, Line] = {}

    def _book(self, line: Line) -> None:
        if line.actor.startswith("pod/"):
            self._pod(line)
        elif line.event == POD_GROUP_NEWS:
            self.pod_groups[line.actor.partition("/")[2]] = line
        elif line.event == DEVICE_PUBLISHED:
            self._device(line)
        elif line.event == DEVICE_WITHDRAWN:
            self.reports[line.fields["node"]] = [DeviceReport(line, NodeDeviceReport(line.fields["node"]))]

    def _device(self, line: Line) -> None:
        node = line.fields["node"]
        try:
            report = parse({"metadata": {"name": node}, "spec": {"devices": line.fields["devices"]}})
        except BadDeviceError:
            return  # that is law 12's
        # The one before as well: what is written after a Device is read may follow the next one in the journal.
        self.reports[node] = [*self.reports.get(node, ())[-7:], DeviceReport(line, report)]

    def _pod(self, line: Line) -> None:
        uid, fields = line.fields["uid"], line.fields
        if line.event == "created":
            self.pods[uid] = AllocatedPod(line.actor.removeprefix("pod/"), line)
        pod = self.pods.get(uid)
        if pod is None:
            return  # it was there before the journal
        match line.event:
            case "bound":
                pod.bound = line
            case "annotations":
                self._note(pod, line, fields["annotations"])
            case "phase" if fields["phase"] in _ENDS:
                pod.over = True
            case "deleted":
                del self.pods[uid]
            case "gang":
                pod.gang = line

    def _note(self, pod: AllocatedPod, line: Line, changed: Mapping[str, str | None]) -> None:
        for name in (HINT, JOINT):
            if changed.get(name) is not None:
                pod.notes[name] = str(changed[name])
        if ALLOCATED not in changed:
            return
        pod.annotated = line if changed[ALLOCATED] is not None else None
        try:
            pod.allocations = parse_allocations(changed[ALLOCATED] or "{}")
        except BadDeviceError:
            pod.allocations = ()

    def report(self, node: str, before: int) -> DeviceReport | None:
        """Return the Device of a node as a line of that number could know it; the oldest that is remembered where all
        are younger."""
        reports = self.reports.get(node, ())
        return next((each for each in reversed(reports) if each.line.number < before), reports[0] if reports else None)

    def bound_here(self, line: Line) -> AllocatedPod | None:
        """Return the pod that a line binds, where it bears devices that our scheduler wrote onto it."""
        pod = self.pods.get(line.fields.get("uid", "")) if line.event == "bound" else None
        return pod if pod is not None and pod.annotated is not None and not pod.given else None
