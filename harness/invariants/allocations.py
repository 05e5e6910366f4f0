"""Invariant 15: a container starts on devices that its kubelet gave it, which were announced as healthy then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

Key = tuple[str, str]
"""Host, resource."""


class _Given(Struct):
    """What a pod asks of each extended resource, and the devices that it was given of it."""

    pod: str
    requests: Mapping[str, int]
    bound: Line | None = None
    devices: dict[str, set[str]] = field(default_factory=dict)


CALL_S = 0.5
"""A kubelet chooses the devices, and then calls the plugin without a lock: a list that comes before the answer does not
change the choice (devicemanager/manager.go of 1.34.2, ``allocateContainerResources``)."""


class _Announced:
    """The last list of a plugin; as a set once somebody asks, for a list may have tens of thousands of devices."""

    def __init__(self, line: Line, before: _Announced | None) -> None:
        self.line = line
        self.before = None if before is None else before.line
        """The list before it."""
        self._healthy: frozenset[str] | None = None

    @property
    def healthy(self) -> frozenset[str]:
        if self._healthy is None:
            self._healthy = frozenset(self.line.fields["healthy"])
        return self._healthy

    def was_healthy(self, bound: Line, allocated: Line) -> frozenset[str]:
        """Return what may have been chosen from for a pod that was bound and allocated by those lines."""
        if self.before is None or bound.number > self.line.number or allocated.t - self.line.t > CALL_S:
            return self.healthy
        return self.healthy.union(self.before.fields["healthy"])


class Allocations(Invariant[ObservedState]):
    """A restarted kubelet knows no healthy device before it receives its plugins' lists (contract kubelet.md sections 3
    and 8). What an ended pod held is free at the next admission (section 3). A pod keeps a device that breaks."""

    number = 15
    name = "containers start on devices that were announced as healthy and allocated before, and ended pods hold none"
    events = frozenset(
        {
            *(("api", event) for event in ("created", "bound", "deleted")),
            ("component", "started"),
            *(("kubelet", e) for e in ("devices", "allocated", "container-started", "pod-ended", "checkpoint")),
        }
    )

    def __init__(self) -> None:
        self._lists: dict[Key, _Announced] = {}
        self._known: set[Key] = set()
        """Of which a list was ever seen."""
        self._pods: dict[str, _Given] = {}
        self._early: dict[str, dict[str, set[str]]] = {}
        """What pods (uid) were given before their creation was seen: an API's watch may lag behind a kubelet."""
        self._ended: dict[str, dict[str, Line]] = {}
        self._free: dict[str, dict[str, Line]] = {}
        """Host -> pods (uid) that its next checkpoint must not list, by the lines of their ends."""

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Judge allocations, starts and checkpoints."""
        kind, _, host = line.actor.partition("/")
        if line.layer == "api":
            if kind == "pod":
                self._pod(line)
        elif line.layer == "component":
            # One that is killed may have an answer on its way: its line comes after that of the kill.
            if kind == "kubelet":
                self._begin_anew(host, keeps_lists=state.bounds.lag_s > 0)
        elif line.event == "devices":
            key = (host, line.fields["resource"])
            self._lists[key] = _Announced(line, self._lists.get(key))
            self._known.add(key)
        elif line.event == "allocated":
            yield from self._allocated(line, host)
        elif line.event == "container-started":
            yield from self._started(line, host)
        elif line.event == "pod-ended":
            self._ended.setdefault(host, {})[line.fields["uid"]] = line
        else:
            yield from self._checkpoint(line, host)

    def _pod(self, line: Line) -> None:
        uid = line.fields["uid"]
        if line.event == "created":
            requests, early = line.fields.get("requests") or {}, self._early.pop(uid, {})
            self._pods[uid] = _Given(line.actor.removeprefix("pod/"), requests, devices=early)
        elif line.event == "deleted":
            self._pods.pop(uid, None)
        elif uid in self._pods:
            self._pods[uid].bound = line

    def _begin_anew(self, host: str, *, keeps_lists: bool) -> None:
        """``keeps_lists``: of a real node an agent shows what is new, and not a list that its plugin repeats."""
        for key in [] if keeps_lists else [key for key in self._lists if key[0] == host]:
            del self._lists[key]
        self._ended.pop(host, None)
        self._free.pop(host, None)

    def _allocated(self, line: Line, host: str) -> Iterator[Breach]:
        fields = line.fields
        resource, uid = fields["resource"], fields["uid"]
        announced, given = self._lists.get((host, resource)), self._pods.get(uid)
        devices = given.devices if given is not None else self._early.setdefault(uid, {})
        had = devices.setdefault(resource, set())
        wrong = sorted(set(fields["devices"]).difference(announced.healthy if announced is not None else (), had))
        if wrong and announced is not None and given is not None and given.bound is not None:
            wrong = sorted(set(wrong) - announced.was_healthy(given.bound, line))
        had.update(fields["devices"])
        if wrong and (host, resource) in self._known:
            some = ", ".join(wrong[:3])
            what = f"{fields['pod']} is given {some} of {resource} on {host}, not announced as healthy at that moment"
            yield Breach((uid, resource, "unannounced"), what, line, after=announced.line if announced else None)
        self._must_be_free(line, host)

    def _must_be_free(self, line: Line, host: str) -> None:
        """Whose end came before this pod was bound, and so before its admission."""
        given = self._pods.get(line.fields["uid"])
        if given is not None and given.bound is not None and self._ended.get(host):
            number = given.bound.number
            over = {uid: end for uid, end in self._ended[host].items() if end.number < number}
            self._free.setdefault(host, {}).update(over)

    def _started(self, line: Line, host: str) -> Iterator[Breach]:
        given = self._pods.get(line.fields["uid"])
        if given is None or given.bound is None:
            return
        for resource, wanted in given.requests.items():
            announced = self._lists.get((host, resource))
            has = len(given.devices.get(resource, ()))
            # A resource that no plugin had announced when the pod came is no device's to its kubelet.
            if announced is not None and announced.line.number < given.bound.number and has < wanted:
                what = f"a container of {given.pod} starts on {host} with {has} of {wanted} {resource} allocated"
                yield Breach((line.fields["uid"], resource, "unallocated"), what, line, after=given.bound)

    def _checkpoint(self, line: Line, host: str) -> Iterator[Breach]:
        free = self._free.pop(host, None)
        if free is None:
            return
        for uid in dict.fromkeys(entry[0] for entry in line.fields["entries"]):
            if uid in free:
                end = free[uid]
                what = f"the checkpoint of {host} has devices of {end.fields['pod']}, which ended before an admission"
                yield Breach((uid, host, "kept"), what, line, after=end)
        for uid in free:
            self._ended.get(host, {}).pop(uid, None)
