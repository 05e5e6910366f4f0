"""Invariant 1004: a kubelet prepares claims before the containers of a pod start, and gives them back at its end."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct, field

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

_ABSENT = re.compile(r"DRA driver (\S+) is not registered")
_PATIENCE_S = 10.0
"""After this long a kubelet has seen the socket of a driver that has come back (pkg/kubelet/pluginmanager looks for new
ones at once, and every second)."""
_FAILED = "FailedPrepareDynamicResources"


class _Prepared(Struct):
    """A claim on one node: the line by which each of its drivers has prepared it."""

    claim: str
    drivers: dict[str, Line] = field(default_factory=dict)


class PreparedClaims(Invariant[ObservedState]):
    """A kubelet unprepares a claim before it ends the last pod of its node for which the claim is reserved
    (``SyncTerminatingPod`` of pkg/kubelet/kubelet.go). It unprepares only what it has prepared. Ten seconds
    after a component of its node was started again, it knows the driver of a claim. The law does not judge a cluster of
    which a component is down."""

    number = 1004
    name = "a kubelet gives the claims of a pod back before the pod is ended"
    ours_alone = True
    events = frozenset(
        {("kubelet", event) for event in ("claim-prepared", "claim-unprepared", "pod-ended")}
        | {("api", event) for event in ("claim-reserved", "event", "created", "deleted")}
        | {("component", event) for event in ("started", "killed", "crashed")}
        | {("fault", event) for event in ("added", "fired", "cleared")}
    )

    def __init__(self) -> None:
        self._prepared: dict[tuple[str, str], _Prepared] = {}
        """Kubelet and the claim's uid."""
        self._users: dict[str, frozenset[str]] = {}
        """Claim (namespace/name) -> the pods that it is reserved for."""
        self._ended: set[str] = set()
        self._down: set[str] = set()
        self._changed_s = 0.0
        """When a component came or went last, or a fault was at work."""
        self._back: dict[str, Line] = {}
        """Node -> a component there was started."""

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Judge what a kubelet gives back, and why it does not prepare."""
        if line.layer == "component":
            (self._down.discard if line.event == "started" else self._down.add)(line.actor)
            self._changed_s = line.t
            if line.event == "started":
                self._back[line.actor.partition("/")[2]] = line
        elif line.layer == "fault":
            self._changed_s = line.t
        elif line.layer == "kubelet":
            yield from self._kubelet(line, state)
        elif line.event == "claim-reserved":
            namespace = line.fields["claim"].partition("/")[0]
            self._users[line.fields["claim"]] = frozenset(f"{namespace}/{name}" for name in line.fields["pods"])
        elif line.event == "event":
            if line.fields["reason"] == _FAILED:
                yield from self._absent(line, state)
        elif line.event == "created":
            self._ended.discard(line.actor.removeprefix("pod/"))

    def _kubelet(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        if line.event == "pod-ended":
            self._ended.add(line.fields["pod"])
            yield from self._end(line, state)
            return
        key, driver = (line.actor, str(line.fields["uid"])), str(line.fields["driver"])
        if line.event == "claim-prepared":
            self._prepared.setdefault(key, _Prepared(line.fields["claim"])).drivers[driver] = line
            return
        known = self._prepared.get(key)
        if known is not None:
            known.drivers.pop(driver, None)
            if not known.drivers:
                del self._prepared[key]

    def _end(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        pod = line.fields["pod"]
        for key, known in self._prepared.items():
            users = self._users.get(known.claim, frozenset())
            if key[0] != line.actor or pod not in users or users - self._ended:
                continue
            if not self._down and not state.bounds.lag_s:
                driver, since = next(iter(known.drivers.items()))
                what = f"{pod} is ended on {line.actor}, and driver {driver} still has its claim {known.claim} prepared"
                yield Breach((pod, known.claim, str(line.number)), what, line, after=since)

    def _absent(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        match = _ABSENT.search(str(line.fields["message"]))
        if match is None or self._down or state.bounds.lag_s or line.t - self._changed_s <= _PATIENCE_S:
            return
        back = self._back.get(line.actor.partition("/")[2])
        if back is not None:
            what = f"{line.actor} misses driver {match[1]} for {line.fields['object']}, and all of its node is back"
            yield Breach((line.fields["object"], match[1], str(line.number)), what, line, after=back)
