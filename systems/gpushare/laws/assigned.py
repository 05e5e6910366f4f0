"""The laws of the last word of GPU Share's protocol: annotations that call a pod assigned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.gpushare import names
from mews.systems.gpushare.promise_books import PromiseBooks
from mews.systems.gpushare.slices import gpu_of_slice

_WITHIN_S = 10.0
"""A device plugin looks again and again until its kubelet shows whom it gave what was asked for."""


class AssignedOnce(Invariant[RunState]):
    """``ASSIGNED`` is the device plugin's report that all containers of the pod were given their memory. A pod uses one
    GPU at most (contract gpushare.md, non-goals). A kubelet asks the plugin which slices it prefers. Its containers
    therefore get slices of the promised GPU, while that GPU has enough."""

    number = 42
    name = "a pod is given memory of the GPU promised to it, and is then called assigned"
    events = frozenset({("kubelet", "allocated"), ("kubelet", "devices"), *PromiseBooks.events})

    def __init__(self, books: PromiseBooks, resource: str, known: str = "") -> None:
        self._resource = resource
        self._known = known
        self._books = books
        self._allocated: dict[str, int] = {}
        self._announced: dict[str, Sequence[str]] = {}
        """Kubelet -> the healthy slices of its last list."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge annotations that call a pod assigned, and what containers are given."""
        self._books.take(line)
        if line.event == "devices":
            if line.fields["resource"] == self._resource:
                self._announced[line.actor] = line.fields["healthy"]
            return
        uid = line.fields.get("uid", "")
        if line.event == "allocated" and line.fields["resource"] == self._resource:
            self._allocated[uid] = self._allocated.get(uid, 0) + len(line.fields["devices"])
            yield from self._preferred(line, uid, state)
        elif line.event == "deleted":
            self._allocated.pop(uid, None)
        elif line.event == "annotations":
            yield from self._judge(line, uid)

    def _preferred(self, line: Line, uid: str, state: RunState) -> Iterator[Breach]:
        promise, slices = self._books.promises.get(uid), line.fields["devices"]
        if promise is None or self._known or all(gpu_of_slice(each) == promise.gpu for each in slices):
            return
        announced = self._announced.get(line.actor)
        there = set() if announced is None else {each for each in announced if gpu_of_slice(each) == promise.gpu}
        held = {device for each in state.live_holdings() if each.uid != uid for device in each.devices}
        if len(there - held) >= len(slices):
            given = ", ".join(sorted({gpu_of_slice(each) for each in slices}))
            what = f"{line.fields['pod']} is given slices of {given}, and {promise.gpu} was promised to it and has room"
            yield Breach((uid, line.fields["container"], "preferred"), what, line, after=promise.line)

    def _judge(self, line: Line, uid: str) -> Iterator[Breach]:
        pod = self._books.pods.get(uid)
        if pod is None or pod.given:
            return
        wanted = (pod.created.fields.get("requests") or {}).get(self._resource, 0)
        has = self._allocated.get(uid, 0)
        if line.fields["annotations"].get(names.ASSIGNED) == "true" and has < wanted:
            name = line.actor.removeprefix("pod/")
            what = f"{name} is called assigned when its kubelet has allocated {has} of {wanted}"
            yield Breach((uid, "assigned"), what, line, after=pod.bound, known=self._known)


class AssignedSoon(Invariant[RunState]):
    """A pod whose kubelet has allocated all its memory is called assigned as soon as the device plugin looks again,
    which is after ``settle_s``. The law judges pods that were promised what they were given, while no component has
    been away since they were allocated."""

    number = 97
    name = "a pod is called assigned soon after its kubelet has allocated its memory"
    of_time = True
    ours_alone = True
    events = frozenset(
        {("kubelet", event) for event in ("allocated", "rejected", "pod-ended")}
        | {("component", event) for event in ("started", "killed", "crashed")}
        | {("api", "deleting"), *PromiseBooks.events}
    )

    def __init__(self, books: PromiseBooks, resource: str, settle_s: float) -> None:
        self._books, self._resource, self._settle_s = books, resource, settle_s
        self._allocated: dict[str, int] = {}
        self._owed: dict[str, Line] = {}
        self._assigned: set[str] = set()

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Take in what is allocated, and which pods are called assigned."""
        self._books.take(line)
        uid = str(line.fields.get("uid"))
        if line.layer == "component":
            self._owed.clear()
        elif line.event == "allocated":
            self._allocate(uid, line)
        elif line.event == "annotations":
            if line.fields["annotations"].get(names.ASSIGNED) == "true":
                self._assigned.add(uid)
                self._owed.pop(uid, None)
        elif line.event in ("rejected", "pod-ended", "deleting", "deleted", "phase"):
            if line.event == "deleted":
                self._allocated.pop(uid, None)
                self._assigned.discard(uid)
            if line.fields.get("phase") not in ("Pending", "Running"):
                self._owed.pop(uid, None)
        return iter(())

    def _allocate(self, uid: str, line: Line) -> None:
        pod, promise = self._books.pods.get(uid), self._books.promises.get(uid)
        if line.fields["resource"] != self._resource or pod is None or pod.given:
            return
        self._allocated[uid] = self._allocated.get(uid, 0) + len(line.fields["devices"])
        wanted = (pod.created.fields.get("requests") or {}).get(self._resource, 0)
        is_as_promised = promise is not None and all(promise.gpu in each for each in line.fields["devices"])
        if self._allocated[uid] >= wanted and is_as_promised and uid not in self._assigned:
            self._owed[uid] = line

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge pods that nobody calls assigned."""
        within_s = _WITHIN_S + 2 * (state.bound_s("lag_s") or 0.0)
        for uid, line in list(self._owed.items()):
            due_s = line.t + self._settle_s
            if t > due_s + within_s:
                del self._owed[uid]
                if state.clock_from(self.number, line.t) > line.t:
                    continue  # a fault kept somebody from writing it or from seeing it
                what = f"{line.fields['pod']} is not called assigned {t - line.t:.1f} s after it was allocated"
                yield Breach((uid, "unassigned"), what, line, after=self._books.pods[uid].bound, due_s=due_s)
