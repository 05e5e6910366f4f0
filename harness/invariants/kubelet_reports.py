"""Invariant 18: a kubelet's books, events and announcements follow what it does."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from msgspec import Struct, field

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

_KUBELET = "kubelet/"
_REPORTED = ("Pulled", "Created", "Started", "Killing")
Slot = tuple[str, str, str]
"""A pod's uid, its container, the resource."""


class _Node(Struct):
    """What a kubelet has said. ``given`` is what it allocated to pods that it has not ended, ``kept`` its checkpoint;
    ``registers`` and ``tells``: whether its registrations, and its events, are seen at all."""

    registered: set[str] = field(default_factory=set)
    given: dict[Slot, tuple[tuple[str, ...], Line]] = field(default_factory=dict)
    kept: dict[Slot, tuple[str, ...]] = field(default_factory=dict)
    begun: Line | None = None
    registers: bool = False
    reports: bool = False

    def forget(self, uid: str) -> None:
        """That pod holds nothing any more."""
        self.given = {slot: given for slot, given in self.given.items() if slot[0] != uid}


_BY_ITSELF = frozenset({"PodCompleted", "PodFailed"})
"""Why a pod is not ready whose containers have ended before they were killed."""
_REPORTED_FAILURES = 11
"""So many failures of a pod are reported, with two events each: of more than 25 on one object a client drops what comes
(client-go's ``tools/record/events_cache.go``, ``defaultSpamBurst``)."""


class KubeletReports(Invariant[ObservedState]):
    """A kubelet's list of devices comes from a plugin that registered since the kubelet began. Before a container
    starts on allocated devices, the checkpoint contains exactly what was allocated. A container that starts was pulled
    and created before. Its start is reported in the same moment, and each of these steps has its event on the pod. The
    containers of a pod that is deleted while it is ready are killed, with an event, before the pod is ended
    (``killContainer`` of kuberuntime_container.go)."""

    number = 18
    name = "a kubelet's checkpoint and events say what it did"
    of_time = True
    ours_alone = True
    events = frozenset(
        {
            *(
                ("kubelet", event)
                for event in ("registered", "devices", "allocated", "checkpoint", "container-started", "hook-failed")
            ),
            *(("kubelet", event) for event in ("pod-ended", "rejected")),
            *(("component", event) for event in ("started", "killed", "crashed")),
            *(("api", event) for event in ("event", "condition", "phase", "deleting", "deleted")),
        }
    )

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._reported: dict[str, dict[str, Line]] = {}
        """Pod (namespace/name) -> reasons of the events on it, with the last line of each."""
        self._unreported: dict[str, Line] = {}
        self._followed: dict[str, Line] = {}
        """Pod -> the first line about it since a start that is still to be reported: it came without the event."""
        self._seen: set[tuple[str, str]] = set()
        self._due_s = math.inf
        self._ready: set[str] = set()
        self._doomed: dict[str, Line] = {}
        """Pods (uid) that were deleted while they were ready."""
        self._failures: Counter[str] = Counter()
        """Pod -> how often one of its containers could not be created."""

    # Complex: one branch for each kind of line, and it runs for every line.
    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:  # noqa: C901
        """Judge one word of a kubelet."""
        if line.layer == "api":
            if line.event != "event":
                self._pod(line, str(line.fields.get("uid")))
                if self._unreported:
                    self._followed.setdefault(line.actor.removeprefix("pod/"), line)
            elif line.actor.startswith(_KUBELET):
                self._nodes.setdefault(line.actor, _Node()).reports = True
                if line.fields["reason"] in _REPORTED:
                    self._report(line)
            return
        if not line.actor.startswith(_KUBELET):
            return
        node = self._nodes.setdefault(line.actor, _Node())
        match line.event:
            case "registered":
                node.registers = True
                node.registered.add(line.fields["resource"])
            case "devices":
                yield from _devices(node, line)
            case "allocated":
                fields = line.fields
                node.given[fields["uid"], fields["container"], fields["resource"]] = tuple(fields["devices"]), line
            case "checkpoint":
                yield from _checkpoint(node, line)
            case "hook-failed":
                self._failures[line.fields["pod"]] += 1
            case "container-started":
                yield from self._started(node, line, state)
            case "pod-ended" | "rejected":
                yield from self._ended(node, line, state)
                node.forget(line.fields["uid"])
                self._reported.pop(line.fields.get("pod", ""), None)
            case "started":
                node.begun = line
                node.registered.clear()
                # What it had not written down is forgotten.
                node.given = {slot: given for slot, given in node.given.items() if node.kept.get(slot) == given[0]}
            case "killed" | "crashed":
                self._unreported.clear()

    def on_time(self, t: float, state: ObservedState) -> Iterator[Breach]:
        """Judge starts of which no event has told."""
        if not self._unreported or t <= self._due_s + state.bounds.lag_s:
            return
        for pod, line in self._unreported.items():
            what = f"no event tells that {line.fields['container']} of {pod} started"
            first = self._followed.get(pod, line)
            yield Breach((pod, str(line.number)), what, first, after=line, due_s=line.t)
        self._unreported.clear()
        self._followed.clear()

    def _pod(self, line: Line, uid: str) -> None:
        if line.event == "condition" and line.fields["type"] == "Ready":
            (self._ready.add if line.fields["status"] == "True" else self._ready.discard)(uid)
            if line.fields["reason"] in _BY_ITSELF:
                self._doomed.pop(uid, None)
        elif line.event == "deleting" and uid in self._ready:
            self._doomed[uid] = line
        elif line.event == "deleted":
            self._ready.discard(uid)
            if uid in self._doomed and self._doomed[uid].fields["grace_s"] > 0:
                del self._doomed[uid]  # of one that is deleted by force the kubelet kills what still runs
            self._forget(uid)

    def _ended(self, node: _Node, line: Line, state: ObservedState) -> Iterator[Breach]:
        pod, doomed = line.fields["pod"], self._doomed.pop(line.fields["uid"], None)
        if doomed is None or not node.reports or state.bounds.lag_s or "Killing" in self._reported.get(pod, {}):
            return
        if node.begun is None or node.begun.number < doomed.number:
            what = f"{pod} is ended, and no event Killing says that its containers were stopped"
            yield Breach((line.fields["uid"], "killed"), what, line, after=doomed)

    def _forget(self, uid: str) -> None:
        """Of a pod that has left the API, by force, the devices are free at the next admission, whatever still runs
        (GetActivePods of pkg/kubelet/kubelet_pods.go knows those of the API alone)."""
        for node in self._nodes.values():
            node.forget(uid)

    def _report(self, line: Line) -> None:
        pod = line.fields["object"].removeprefix("pod/")
        reason = line.fields["reason"]
        self._reported.setdefault(pod, {})[reason] = line
        if reason == "Started":
            self._unreported.pop(pod, None)

    def _started(self, node: _Node, line: Line, state: ObservedState) -> Iterator[Breach]:
        fields = line.fields
        uid, container, pod = fields["uid"], fields["container"], fields["pod"]
        for slot, (devices, given) in node.given.items():
            if slot[:2] == (uid, container) and node.kept.get(slot) != devices:
                what = f"{container} of {pod} starts on {', '.join(devices)}, which the checkpoint does not have"
                yield Breach((uid, container, "kept"), what, line, after=given)
        if not node.reports or state.bounds.lag_s or (uid, container) in self._seen:
            return  # events come over the API; one that says the same again is no news
        self._seen.add((uid, container))
        if self._failures[pod] > _REPORTED_FAILURES:
            return
        reported = self._reported.get(pod, {})
        missing = [reason for reason in ("Pulled", "Created") if reason not in reported]
        if missing:
            what = f"{container} of {pod} starts, and no event {missing[0]} came before"
            yield Breach((uid, container, "told"), what, line, after=node.begun)
        self._unreported[pod], self._due_s = line, line.t
        self._followed.pop(pod, None)


def _devices(node: _Node, line: Line) -> Iterator[Breach]:
    resource = line.fields["resource"]
    if node.registers and resource not in node.registered:
        what = f"{line.actor} takes a list of {resource}, which no plugin has registered"
        yield Breach((line.actor, resource, str(line.number)), what, line, after=node.begun)


def _checkpoint(node: _Node, line: Line) -> Iterator[Breach]:
    node.kept = {(uid, container, resource): tuple(ids) for uid, container, resource, ids in line.fields["entries"]}
    for slot, (devices, given) in node.given.items():
        if node.kept.get(slot) != devices:
            what = (
                f"the checkpoint of {line.actor} has {node.kept.get(slot, ())} for {slot[1]} of {given.fields['pod']}"
            )
            yield Breach((line.actor, *slot), f"{what}, and it was given {devices}", line, after=given)
