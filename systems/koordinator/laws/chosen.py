"""The laws of which devices Koordinator's scheduler gives a pod, and how much of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.koordinator.allocation_books import AllocatedPod, AllocationBooks, DeviceReport
from mews.systems.koordinator.allocations import DeviceAllocation
from mews.systems.koordinator.config import KoordinatorConfig
from mews.systems.koordinator.devices import NodeDevice
from mews.systems.koordinator.journal import DEVICE_PUBLISHED, PARTED
from mews.systems.koordinator.names import CORE, GPU, HINT, JOINT, MEMORY, RATIO, VENDORS, WHOLE, today

_SETTLED_S = 1.0
"""A node's devices that nobody took or left for so long are known to the scheduler."""


class AsMuchAsAsked(Invariant[RunState]):
    """A pod that says nothing of its devices but how much it asks for has just that: its cores, its share of the
    memory or its bytes, spread evenly over as many GPUs (contract koordinator.md section 2)."""

    number = 142
    name = "a pod is given as much of its devices as it asks for"
    events = AllocationBooks.events

    def __init__(self, books: AllocationBooks, scheduler: str) -> None:
        self._books, self._scheduler = books, scheduler

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge bindings."""
        self._books.take(line)
        pod = self._books.bound_here(line)
        if pod is None or not _is_plain(pod, self._scheduler):
            return
        gpus = [each for each in pod.allocations if each.type == GPU]
        for name, wanted in _asked(pod).items():
            given = sum(each.resources.get(name, 0) for each in gpus)
            even = len({each.resources.get(name, 0) for each in gpus}) <= 1
            if given != wanted or not even:
                shares = ", ".join(f"{each.resources.get(name, 0)} of {each.id or each.minor}" for each in gpus)
                what = f"{pod.name} asks for {wanted} of {name}, and is bound with {shares or 'no GPU'}"
                yield Breach((line.fields["uid"], name), what, line, after=pod.annotated)


def _is_plain(pod: AllocatedPod, scheduler: str) -> bool:
    return pod.created.fields.get("scheduler") == scheduler and not {HINT, JOINT} & pod.notes.keys()


def _asked(pod: AllocatedPod) -> Mapping[str, int]:
    """Return what a pod asks for of each resource of GPUs, where it says so by one name or by cores and memory."""
    asks: dict[str, int] = {}
    for name, amount in (pod.created.fields.get("requests") or {}).items():
        kind = today(name)
        if kind in VENDORS:
            asks[CORE] = asks[RATIO] = 100 * int(amount)
        elif kind == WHOLE:
            asks[CORE] = asks[RATIO] = int(amount)
        elif kind in (CORE, RATIO, MEMORY):
            asks[kind] = int(amount)
    return asks


class FirstInTheTree(Invariant[RunState]):
    """One GPU, or a part of one, is looked for in the tree of the node: its NUMA nodes, and the switches below them. Of
    the switches with a GPU that fits, that one is taken around which most of the tree is in use already, and of equal
    ones the first. There a whole GPU is the first that fits, a part is the last (v1.6.0,
    pkg/scheduler/plugins/deviceshare/allocator_gpu.go). The law judges pods that say nothing else about their devices,
    on nodes without partitions whose devices were left alone for a moment."""

    number = 143
    name = "a GPU is taken where most of its node's tree is in use, and the first or last there"
    ours_alone = True
    events = frozenset({("api", "event"), *AllocationBooks.events})

    def __init__(self, books: AllocationBooks, config: KoordinatorConfig) -> None:
        self._books, self._scheduler = books, config.scheduler_name
        self._judges = config.device_choice in ("auto", "leastAllocated", "mostAllocated") and not config.device_plugin
        self._changed: dict[str, float] = {}
        """Node -> when its devices were given, given back or listed anew last."""
        self._parted: set[str] = set()
        self._preempts = False

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge bindings."""
        if line.event == "event":
            self._preempts |= line.fields["reason"] == "Preempted"
            return
        uid = str(line.fields.get("uid", ""))
        before = self._books.pods.get(uid)
        self._books.take(line)
        if line.event == DEVICE_PUBLISHED:
            self._changed[line.fields["node"]] = line.t
            if line.fields.get(PARTED):
                self._parted.add(line.fields["node"])
        elif line.event in ("phase", "deleted") and before is not None and before.bound is not None:
            self._changed[before.bound.fields["node"]] = line.t
        elif line.event == "bound":
            pod, node = self._books.bound_here(line), line.fields["node"]
            calm = line.t - self._changed.get(node, -math.inf) > _SETTLED_S
            if pod is not None and self._judges and calm and not self._preempts and not state.bound_s("lag_s"):
                yield from self._judge(line, pod, node)
            self._changed[node] = line.t

    def _judge(self, line: Line, pod: AllocatedPod, node: str) -> Iterator[Breach]:
        report = self._books.report(node, line.number)
        if report is None or node in self._parted or not _is_plain(pod, self._scheduler) or pod.gang is not None:
            return
        if len(pod.allocations) != 1 or pod.allocations[0].type != GPU or self._others_wait(line):
            return
        given, gpus = pod.allocations[0], report.report.of_type(GPU)
        if any(not each.place.pcie for each in gpus):
            return
        used = self._used(pod, node, report)
        best = _best(gpus, used, given)
        if best is not None and best.minor != given.minor:
            what = f"{pod.name} has GPU {given.minor} of {node}, and GPU {best.minor} comes before it in the tree"
            yield Breach((line.fields["uid"], "tree"), what, line, after=pod.annotated)

    def _others_wait(self, line: Line) -> bool:
        """Return whether devices may be set aside for a pod that is not bound, whose place nobody has written down."""
        uid = line.fields["uid"]
        return any(
            each.bound is None and not each.over and each.created.fields.get("requests") and other != uid
            for other, each in self._books.pods.items()
        )

    def _used(self, pod: AllocatedPod, node: str, report: DeviceReport) -> dict[int, dict[str, int]]:
        """Minor -> what other pods on the node have of that GPU."""
        used: dict[int, dict[str, int]] = {}
        for other in self._books.pods.values():
            if other is pod or other.over or other.bound is None or other.bound.fields["node"] != node:
                continue
            for each in other.allocations:
                device = report.device(each)
                if device is not None and each.type == GPU:
                    sums = used.setdefault(device.minor, {})
                    for name, value in each.resources.items():
                        sums[name] = sums.get(name, 0) + value
        return used


def _best(
    gpus: Sequence[NodeDevice], used: Mapping[int, Mapping[str, int]], given: DeviceAllocation
) -> NodeDevice | None:
    """Return the GPU that should have been given; None where none fits."""
    share = given.resources.get(RATIO, 0)
    is_part = 0 < share < 100
    wanted = {name: value for name, value in given.resources.items() if value}

    def fits(gpu: NodeDevice) -> bool:
        has = used.get(gpu.minor, {})
        return gpu.health and all(gpu.resources.get(name, 0) - has.get(name, 0) >= each for name, each in wanted.items())

    best: tuple[int, list[NodeDevice]] | None = None
    for numa, pcie in sorted({(gpu.place.numa, gpu.place.pcie) for gpu in gpus}):
        below = sorted((each for each in gpus if each.place.numa == numa and each.place.pcie == pcie), key=_minor)
        near = [each for each in gpus if each.place.numa == numa]
        in_use = sum(any(each.minor in used for each in scope) for scope in (near, below))
        fitting = [each for each in below if fits(each)]
        if fitting and (best is None or in_use > best[0]):
            best = in_use, fitting
    return None if best is None else best[1][-1 if is_part else 0]


def _minor(gpu: NodeDevice) -> int:
    return gpu.minor
