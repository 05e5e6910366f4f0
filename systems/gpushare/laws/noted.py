"""The laws of what GPU Share's parts write on pods about a decision: once, truly, and not before it is known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.gpushare import names
from mews.systems.gpushare.journal import GPUS, PROMISES
from mews.systems.gpushare.promise_books import Promise, PromiseBooks, PromisedPod

SEEN_S = 2.0
"""Within which the extender has seen what the plugin shows on its node."""
_AT_ONCE_S = 1e-3
_QUIET_S = 2.0
"""After so long without news of its pods, and with all of them assigned, a plugin is at rest."""


class DecisionsStand(Invariant[RunState]):
    """The annotations of a pod say how much it was given and how much its GPU has (contract gpushare.md section 2). The
    time of a decision is the time of the binding. The plugin does not change it when it calls a pod assigned or puts
    another GPU in its annotations. The published plugin writes a new time, and is not judged."""

    number = 1020
    name = "annotations say what was decided, and the decision of a bound pod keeps its time"
    ours_alone = True
    events = frozenset({("api", GPUS), *PromiseBooks.events})

    def __init__(self, books: PromiseBooks, resource: str) -> None:
        self._books, self._resource = books, resource
        self._decided: dict[str, Line] = {}
        self._shown: dict[str, Line] = {}
        """Node -> the GPUs that it shows."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge what is written on a pod."""
        self._books.take(line)
        if line.event == GPUS:
            self._shown[line.actor.partition("/")[2]] = line
        elif line.event == "deleted":
            self._decided.pop(str(line.fields.get("uid")), None)
        elif line.event == "annotations" and line.actor.startswith("pod/"):
            uid = line.fields["uid"]
            pod = self._books.pods.get(uid)
            if pod is not None and not pod.given:
                yield from self._judge(line, uid, pod, line.fields["annotations"])

    def _judge(self, line: Line, uid: str, pod: PromisedPod, notes: Mapping[str, str | None]) -> Iterator[Breach]:
        had, name = self._decided.get(uid), line.actor.removeprefix("pod/")
        if names.ASSUME_TIME in notes:
            self._decided.pop(uid, None)
            if notes[names.ASSUME_TIME] is not None:
                self._decided[uid] = line
                if had is not None and pod.bound is not None and had.number > pod.bound.number:
                    yield Breach((uid, "time"), f"{name} is bound, and its decision gets another time", line, after=had)
        wanted = (pod.created.fields.get("requests") or {}).get(self._resource, 0)
        memory, whole = notes.get(names.POD_MEMORY), self._size(line, pod, notes)
        if memory is not None and memory != str(wanted):
            what = f"{name} asks for {wanted}, and its annotations say {memory}"
            yield Breach((uid, "memory"), what, line, after=pod.created)
        if whole is not None and notes.get(names.DEVICE_MEMORY) not in (None, str(whole)):
            what = f"{notes[names.UUID]} has {whole}, and {name} is annotated with {notes[names.DEVICE_MEMORY]}"
            yield Breach((uid, "size"), what, line, after=pod.bound)

    def _size(self, line: Line, pod: PromisedPod, notes: Mapping[str, str | None]) -> int | None:
        """Return the size of the GPU that a pod is annotated with, as its node has shown it for long enough."""
        shown = self._shown.get(pod.bound.fields["node"]) if pod.bound is not None else None
        if shown is None or line.t - shown.t <= SEEN_S:
            return None
        size: int | None = shown.fields["gpus"].get(notes.get(names.UUID))
        return size


class _Node(Struct):
    """A node's pods that are bound: those that are not called assigned, and when something of them changed last."""

    open: set[str] = field(default_factory=set)
    pods: set[str] = field(default_factory=set)
    stirred_s: float = -math.inf
    quiet_s: dict[str, float] = field(default_factory=dict)
    """Pods that came when all was quiet -> when."""


class LooksAfterItsRest(Invariant[RunState]):
    """A plugin at rest wakes when pods of its node change, and looks ``settle_s`` later, because the kubelet's list may
    be late. A plugin that calls a pod assigned earlier never rests: it asks the kubelet and the API several times a
    second."""

    number = 1021
    name = "a device plugin whose pods are all assigned is at rest"
    ours_alone = True
    events = frozenset(
        {("api", event) for event in ("condition", "deleting", "finalizers")}
        | {("kubelet", "allocated"), ("kubelet", "rejected")}
        | {("component", event) for event in ("started", "killed", "crashed")}
        | PromiseBooks.events
    )

    def __init__(self, books: PromiseBooks, settle_s: float) -> None:
        self._books, self._settle_s = books, settle_s
        self._nodes: dict[str, _Node] = {}
        self._where: dict[str, str] = {}
        self._begun_s = 0.0
        self._given: dict[str, int] = {}
        """Pod -> how many of its containers were given something: of several, a list of the kubelet may lack some."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Follow each node's pods; judge the line that calls one assigned."""
        self._books.take(line)
        uid = str(line.fields.get("uid"))
        if line.layer == "component":
            self._begun_s = line.t + _QUIET_S
            return
        if line.event == "bound":
            self._enter(uid, line)
        node = self._nodes.get(self._where.get(uid, ""))
        if node is None:
            return
        if line.layer == "kubelet":
            self._given[uid] = self._given.get(uid, 0) + 1
            return
        if line.event == "annotations":
            yield from self._judge(line, uid, node, state)
        if line.event == "deleted" or line.fields.get("phase") in ("Succeeded", "Failed"):
            node.open.discard(uid)
            if line.event == "deleted":
                node.pods.discard(uid)
                self._where.pop(uid, None)
                self._given.pop(uid, None)
        node.stirred_s = line.t

    def _enter(self, uid: str, line: Line) -> None:
        self._where[uid] = line.fields["node"]
        node = self._nodes.setdefault(line.fields["node"], _Node())
        calm = not node.open and line.t - max(node.stirred_s, self._begun_s) > _QUIET_S
        if calm and all(self._given.get(each, 1) == 1 for each in node.pods):
            node.quiet_s[uid] = line.t
        else:
            node.quiet_s.clear()
        node.open.add(uid)
        node.pods.add(uid)

    def _judge(self, line: Line, uid: str, node: _Node, state: RunState) -> Iterator[Breach]:
        if line.fields["annotations"].get(names.ASSIGNED) != "true":
            return
        node.open.discard(uid)
        came_s, pod = node.quiet_s.pop(uid, None), self._books.pods.get(uid)
        if came_s is None or pod is None or pod.given or state.bound_s("lag_s"):
            return
        if line.t - came_s < self._settle_s - _AT_ONCE_S and state.clock_from(self.number, came_s) <= came_s:
            what = f"{line.actor.removeprefix('pod/')} is called assigned {line.t - came_s:.3f} s after it came"
            yield Breach((uid, "early"), f"{what}, and the plugin was at rest", line, after=pod.bound)


class PromisesStand(Invariant[RunState]):
    """The ledger keeps a promise while its pod lives and its containers use the promised GPU. Memory of a removed
    promise could be promised twice. Only a pod whose containers get no GPU loses its promise (contract gpushare.md
    section 3)."""

    number = 1024
    name = "the promise to a pod that lives on its GPU is not struck out"
    events = frozenset({("kubelet", "container-started"), *PromiseBooks.events})

    def __init__(self, books: PromiseBooks) -> None:
        self._books = books
        self._struck: dict[str, tuple[Line, Promise]] = {}
        self._visible: dict[str, str] = {}
        """Pod -> the GPU in the environment of its containers."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge a promise that is struck out, once it is known what the pod's containers are told."""
        self._books.take(line)
        uid = str(line.fields.get("uid"))
        if line.event == PROMISES:
            yield from self._ledger(line)
        elif line.event == "container-started":
            self._visible[uid] = str(line.fields.get("env", {}).get(names.VISIBLE))
            yield from self._judge(uid)
        elif line.event == "deleted" or line.fields.get("phase") in ("Succeeded", "Failed"):
            self._struck.pop(uid, None)
            self._visible.pop(uid, None)

    def _ledger(self, line: Line) -> Iterator[Breach]:
        for uid in line.fields["made"]:
            self._struck.pop(uid, None)
        for uid in line.fields["struck"]:
            pod, had = self._books.pods.get(uid), self._books.before.get(uid)
            if pod is not None and had is not None and pod.bound is not None and pod.over is None and not pod.given:
                self._struck[uid] = line, had
                yield from self._judge(uid)

    def _judge(self, uid: str) -> Iterator[Breach]:
        if uid in self._struck and self._visible.get(uid) == self._struck[uid][1].gpu:
            line, had = self._struck.pop(uid)
            what = f"{had.pod} has {had.memory} of {had.gpu} and lives, and the ledger promises it nothing any more"
            yield Breach((uid, "struck"), what, line, after=had.line)
