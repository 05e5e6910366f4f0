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
    """A pod that names only an amount is given just that: its cores, its share of the memory or its bytes. They are
    spread evenly over as many GPUs (contract koordinator.md section 2)."""

    number = 1042
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
    the switches with a GPU that fits, the one with the most used tree around it is taken, or the first of equal ones.
    There a whole GPU is the first that fits, a part is the last (v1.6.0,
    pkg/scheduler/plugins/deviceshare/allocator_gpu.go). The law judges pods that only name amounts, on nodes without
    partitions whose devices were left alone for a moment."""

    number = 1043
    name = "a GPU is taken where most of its node's tree is in use, and the first or last there"
    ours_alone = True
    events = frozenset({("api", "event"), *AllocationBooks.events})

    def __init__(self, books: AllocationBooks, config: KoordinatorConfig) -> None:
        self._books, self._scheduler = books, config.scheduler_name
        self._judges = config.device_choice in ("auto", "leastAllocated", "mostAllocated") and not config.device_plugin
        self._changed: dict[str, float] = {}
        """Node -> when its devices were given back or listed anew last."""
        self._parted: set[str] = set()
        self._preempts = False
        self._bound: list[tuple[Line, AllocatedPod]] = []
        """Pods that were bound in this moment."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Take in devices and pods."""
        yield from self.on_time(line.t, state)
        if line.event == "event":
            self._preempts |= line.fields["reason"] == "Preempted"
            return
        before = self._books.pods.get(str(line.fields.get("uid", "")))
        self._books.take(line)
        if line.event == DEVICE_PUBLISHED:
            if len(self._books.reports.get(line.fields["node"], ())) > 1:  # of the first, nothing was known before
                self._changed[line.fields["node"]] = line.t
            if line.fields.get(PARTED):
                self._parted.add(line.fields["node"])
        elif line.event in ("phase", "deleted") and before is not None and before.bound is not None:
            self._changed[before.bound.fields["node"]] = line.t
        elif line.event == "bound" and self._judges and not state.bound_s("lag_s"):
            pod = self._books.bound_here(line)
            if pod is not None:
                self._bound.append((line, pod))

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge bindings once their moment is over: who had devices set aside in it bears them by then."""
        if not self._bound or t <= self._bound[0][0].t:
            return
        bound, self._bound = self._bound, []
        gangs = any(each.gang is not None and each.bound is None for each in self._books.pods.values())
        for line, pod in bound if not gangs and not self._preempts else ():
            node = line.fields["node"]
            if line.t - self._changed.get(node, -math.inf) > _SETTLED_S and node not in self._parted:
                yield from self._judge(line, pod, node)

    def _judge(self, line: Line, pod: AllocatedPod, node: str) -> Iterator[Breach]:
        report = self._books.report(node, line.number)
        if report is None or not _is_plain(pod, self._scheduler) or pod.gang is not None or pod.annotated is None:
            return
        if len(pod.allocations) != 1 or pod.allocations[0].type != GPU:
            return
        given, gpus = pod.allocations[0], report.report.of_type(GPU)
        if any(not each.place.pcie for each in gpus):
            return
        # Pods that were served in one moment bear their devices in that order, unless one had to wait for its node.
        used = [self._used(pod, node, report, before) for before in (0, pod.annotated.number)]
        best = [each for each in (_best(gpus, each, given) for each in used) if each is not None]
        if best and all(each.minor != given.minor for each in best):
            what = f"{pod.name} has GPU {given.minor} of {node}, and GPU {best[0].minor} comes before it in the tree"
            yield Breach((line.fields["uid"], "tree"), what, line, after=pod.annotated)

    def _used(self, pod: AllocatedPod, node: str, report: DeviceReport, before: float) -> dict[int, dict[str, int]]:
        """Minor -> what other pods have of that GPU of the node, if they had it before its moment, and in it before
        a line of that number."""
        used: dict[int, dict[str, int]] = {}
        for other in self._books.pods.values():
            since = other.annotated or other.bound
            if other is pod or other.over or since is None or not _was_before(since, pod, before):
                continue
            if other.bound is not None and other.bound.fields["node"] != node:
                continue
            for each in other.allocations:
                device = report.device(each) if each.id or other.bound is not None else None
                if device is not None and each.type == GPU:
                    sums = used.setdefault(device.minor, {})
                    for name, value in each.resources.items():
                        sums[name] = sums.get(name, 0) + value
        return used


def _was_before(since: Line, pod: AllocatedPod, before: float) -> bool:
    assert pod.annotated is not None, "it bears devices"
    return since.t < pod.annotated.t or since.number < before


def _best(
    gpus: Sequence[NodeDevice], used: Mapping[int, Mapping[str, int]], given: DeviceAllocation
) -> NodeDevice | None:
    """Return the GPU that should have been given; None where none fits."""
    share = given.resources.get(RATIO, 0)
    is_part = 0 < share < 100
    wanted = {name: value for name, value in given.resources.items() if value}

    def fits(gpu: NodeDevice) -> bool:
        has = used.get(gpu.minor, {})
        return gpu.health and all(
            gpu.resources.get(name, 0) - has.get(name, 0) >= each for name, each in wanted.items()
        )

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
