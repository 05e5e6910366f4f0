"""The laws on what GPU Share's device plugin shows of its node's GPUs, and of the pods there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.gpushare import names
from mews.systems.gpushare.journal import GPUS, UNHEALTHY, WITHHELD
from mews.systems.gpushare.slices import gpu_of_slice

SEEN_S = 2.0
"""Within which the plugin has written it, counted from its next look at its GPUs: a node may register later."""


class GpusShown(Invariant[RunState]):
    """The plugin writes on its node which GPUs it shares, in addition to registering with the kubelet (contract
    gpushare.md section 3). Upstream's plugin likewise patches the node's GPU count before it serves (nvidia.go). The
    extender promises parts of the GPUs that are written there. Nothing is owed while a component or the API is down."""

    number = 48
    name = "a node whose GPUs are shared shows them"
    of_time = True
    ours_alone = True
    events = frozenset(
        {("api", GPUS), ("api", "deleted"), ("kubelet", "registered")}
        | {("component", event) for event in ("started", "killed", "crashed")}
    )

    def __init__(self, resource: str, poll_s: float) -> None:
        self._resource = resource
        self._within_s = poll_s + SEEN_S
        self._shown: set[str] = set()
        self._owed: dict[str, Line] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Take in what registers, and what is shown."""
        node = line.actor.partition("/")[2]
        if line.layer == "component":
            self._owed.clear()
        elif line.event == GPUS:
            self._shown.add(node)
            self._owed.pop(node, None)
        elif line.event == "deleted":
            if line.actor.startswith("node/"):
                self._shown.discard(node)
                self._owed.pop(node, None)
        elif line.fields["resource"] == self._resource and node not in self._shown:
            self._owed[node] = line
        return iter(())

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge what nobody has shown."""
        if not self._owed:
            return
        seen_s = self._within_s + (state.bound_s("lag_s") or 0.0)
        for node, registered in [each for each in self._owed.items() if t - each[1].t > seen_s]:
            del self._owed[node]
            self._shown.add(node)
            yield Breach((node, "shown"), f"{node} registers {self._resource} and shows no GPUs", registered)


class _Agreed(Struct):
    """What a node's three lists of its GPUs say, and since when they do not agree."""

    gpus: Line | None = None
    devices: Line | None = None
    marked: frozenset[int] = frozenset()
    withheld: frozenset[str] = frozenset()
    since: Line | None = None
    clock_s: float = 0.0
    """From when on it counts: a component that begins anew has its time, too."""


class ListsAgree(Invariant[RunState]):
    """A node shows the GPUs of which its kubelet lists slices: as many slices as each has memory, unhealthy ones where
    it is not usable. A GPU is unusable only if it is marked as broken, or withheld because somebody wants it whole
    (contract gpushare.md sections 2 and 3)."""

    number = 1022
    name = "a node's annotation, its kubelet's list and the mark of broken GPUs agree"
    of_time = True
    ours_alone = True
    events = frozenset(
        {("api", event) for event in (GPUS, UNHEALTHY, WITHHELD, "deleted")}
        | {("kubelet", "devices")}
        | {("component", event) for event in ("started", "killed", "crashed")}
    )

    def __init__(self, resource: str, poll_s: float) -> None:
        self._resource = resource
        self._within_s = 2 * poll_s + SEEN_S
        self._nodes: dict[str, _Agreed] = {}
        self._open: set[str] = set()
        self._down: set[str] = set()
        """Nodes whose kubelet or plugin is away."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Take in what a node's lists say; what comes late is late."""
        yield from self.on_time(line.t, state)
        name = line.actor.partition("/")[2]
        if line.layer == "component":
            self._down.discard(name) if line.event == "started" else self._down.add(name)
            for each in self._nodes.values():
                each.clock_s = line.t
        elif line.event == "deleted":
            if line.actor.startswith("node/"):
                self._nodes.pop(name, None)
                self._open.discard(name)
        elif line.event != "devices" or line.fields["resource"] == self._resource:
            self._take(name, self._nodes.setdefault(name, _Agreed()), line)

    def _take(self, name: str, node: _Agreed, line: Line) -> None:
        match line.event:
            case "devices":
                node.devices = line
            case "unhealthy":
                node.marked = frozenset(line.fields["indices"])
            case "withheld":
                node.withheld = frozenset(line.fields["gpus"])
            case _:
                node.gpus = line
        if not _differ(node):
            node.since = None
            self._open.discard(name)
        elif node.since is None:
            node.since = line
            self._open.add(name)

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge lists that have not agreed for too long."""
        for name in [each for each in self._open if each not in self._down]:
            node = self._nodes[name]
            since, wrong = node.since, _differ(node)
            within_s = self._within_s + 2 * (state.bound_s("lag_s") or 0.0)
            if since is None or t - max(since.t, node.clock_s) <= within_s:
                continue
            self._open.discard(name)
            node.since = None
            if wrong and state.clock_from(self.number, since.t) <= since.t:
                yield Breach((name, "lists"), f"{name}: {wrong}", since, after=node.gpus, due_s=since.t)


def _differ(node: _Agreed) -> str:
    """Return how a node's lists differ, "" where they agree or one is not known."""
    if node.gpus is None or node.devices is None:
        return ""
    shown, unusable = node.gpus.fields["gpus"], frozenset(node.gpus.fields["unusable"])
    listed: dict[str, int] = {}
    for part in ("healthy", "unhealthy"):
        for each in node.devices.fields[part]:
            listed[gpu_of_slice(each)] = listed.get(gpu_of_slice(each), 0) + 1
    if listed != {gpu: memory for gpu, memory in shown.items() if memory}:
        return f"it shows {shown}, and its kubelet lists {listed}"
    broken = frozenset(map(gpu_of_slice, node.devices.fields["unhealthy"]))
    if broken != unusable:
        return f"{_named(unusable)} cannot be used, and the kubelet lists {_named(broken)} as unhealthy"
    order = [*shown]
    why = frozenset(order[index] for index in node.marked if index < len(order)) | (node.withheld & frozenset(order))
    return "" if why == unusable else f"{_named(unusable)} cannot be used, and {_named(why)} are marked or withheld"


def _named(gpus: frozenset[str]) -> str:
    return ", ".join(sorted(gpus)) or "none"


OVER_USE = "GPUMemoryOverUse"
_AMOUNTS = re.compile(r"uses (\d+) MiB of GPU memory and asked for (\d+) MiB")
_FREES = ("nvml-hidden", "driver-unbound", "function-removed", "link-down", "lost", "xid", "powered-off")
"""After which NVML may show less of what a pod uses."""


class _Report(Struct):
    """What a pod was reported for: its share of a GPU among so many containers, and how many there were since."""

    line: Line
    used: int
    asked: int
    among: int
    most: int

    def may_have_used_less(self) -> bool:
        """Return whether it may, where each container takes as much as the others leave."""
        return self.used * self.among <= self.asked * self.most


class OverUseOnce(Invariant[RunState]):
    """Nothing limits what a pod uses of a GPU (gpushare-scheduler-extender #51 and #76). The plugin reports a pod that
    uses more than it asked for, once, and again after it has used less. A program keeps its memory until it ends, loses
    its GPU, or leaves part of it to others."""

    number = 1023
    name = "a pod that uses more memory than it asked for is reported once"
    ours_alone = True
    events = frozenset(
        {("api", event) for event in ("event", "created", "deleted")}
        | {("kubelet", event) for event in ("container-started", "pod-ended")}
        | {("component", event) for event in ("started", "killed", "crashed")}
        | {("host", event) for event in _FREES}
    )

    def __init__(self) -> None:
        self._reported: dict[str, _Report] = {}
        self._on: dict[str, tuple[str, str]] = {}
        """Container (pod and name) -> pod, and the GPU that it was told."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge a report."""
        pod = f"pod/{line.fields.get('pod')}"
        if line.layer in ("component", "host"):
            self._reported.clear()
        elif line.layer == "kubelet":
            self._reported.pop(pod, None)
            if line.event == "container-started":
                self._begin(line, pod)
            else:
                self._on = {key: each for key, each in self._on.items() if each[0] != pod}
        elif line.event != "event":
            self._reported.pop(line.actor, None)
        elif line.fields["reason"] == OVER_USE and (found := _AMOUNTS.match(line.fields["message"])) is not None:
            yield from self._judge(line, str(line.fields["object"]), int(found[1]), int(found[2]))

    def _begin(self, line: Line, pod: str) -> None:
        gpu = line.fields.get("env", {}).get(names.VISIBLE)
        if not gpu:
            return
        self._on[f"{pod}/{line.fields['container']}"] = pod, str(gpu)
        among = self._among(str(gpu))
        for other in {each[0] for each in self._on.values() if each[1] == gpu} & self._reported.keys():
            report = self._reported[other]
            report.most = max(report.most, among)

    def _among(self, gpu: str) -> int:
        return sum(each[1] == gpu for each in self._on.values())

    def _judge(self, line: Line, pod: str, used: int, asked: int) -> Iterator[Breach]:
        among = max((self._among(gpu) for other, gpu in self._on.values() if other == pod), default=1)
        before = self._reported.get(pod)
        self._reported[pod] = _Report(line, used, asked, among, among)
        if before is not None and not before.may_have_used_less():
            what = f"{pod} is reported again, and has used more than it asked for all the time"
            yield Breach((pod, str(line.number)), what, line, after=before.line)
