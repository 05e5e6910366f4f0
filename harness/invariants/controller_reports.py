"""Invariant 22: a controller says which pods it made and deleted, and keeps what it made."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mews.harness.invariants.first_to_go import FirstToGo
from mews.harness.invariants.invariant import ObservedState
from mews.harness.invariants.job_retries import JobRetries
from mews.harness.journal import Line
from mews.kube.api.objects import Object, uid_of
from mews.kube.system.invariant import Breach, ClusterObjects, Invariant

MOMENTS_S = 1.0
"""A controller writes its event right after the act. One that takes back so soon what it made goes round in circles."""

_REPORTS = {
    "SuccessfulCreate": (re.compile(r"^(?:Created pod: (\S+)$|create Pod (\S+) in )"), ("created",)),
    "SuccessfulDelete": (re.compile(r"^(?:Deleted pod: (\S+)$|delete Pod (\S+) in )"), ("deleting", "deleted")),
}
_SCALED = re.compile(r"^Scaled (?:up|down) replica set (\S+) from (\d+) to (\d+)$")
_ORDERS = ("ScalingReplicaSet", "Suspended", "Completed", "FailedJob", "DeadlineExceeded", "BackoffLimitExceeded")
"""Events of controllers by which others are to delete pods."""


_REPORTING = frozenset({("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("apps", "DaemonSet"), ("batch", "Job")})
"""API group and kind of owners whose controllers report each pod that they make."""
_COMBINED = "(combined from similar events): "
"""Before the words of the tenth such event of an object and of all after it (events_cache.go)."""
MOST = 10
"""Of so many pods of an owner reports are missed: a recorder drops what comes in heaps (events_cache.go)."""


class ControllerReports(Invariant[ObservedState]):
    """The law judges the events of ReplicaSets, Jobs, DaemonSets and StatefulSets. Each pod that one of them owns was
    reported in the moment in which it was made. A controller that makes a pod and deletes it within a moment, though
    nobody has asked for fewer, runs in circles. A ReplicaSet has no more pods than its Deployment scaled it to. The law
    does not judge a ReplicaSet whose scale somebody has changed since. A Job makes no pod during the back-off after its
    last failures."""

    number = 22
    name = "a controller's events say what it did, and it keeps the pods that it makes"
    of_time = True
    ours_alone = True
    events = frozenset(
        {("api", event) for event in ("created", "bound", "phase", "condition", "deleting", "deleted", "event")}
        | {("api", "annotations")}
        | {("step", "begun"), ("component", "killed"), ("component", "crashed")}
    )

    def __init__(self) -> None:
        self._done: dict[str, Line] = {}
        """Pod -> the line of what was done to it last."""
        self._made: dict[str, tuple[str, Line]] = {}
        """Pod -> which object has made it, by its controller's event, and the line of its making."""
        self._ordered: Line | None = None
        self._scales: dict[str, tuple[int, Line]] = {}
        """ReplicaSet -> how many pods it is to have, by its Deployment's last event."""

        self._retries = JobRetries()
        self._first_to_go = FirstToGo()
        self._unreported: dict[str, list[Line]] = {}
        """Pod that is to be reported -> the line of its making, and the next one about it."""
        self._names: set[str] = set()
        """Pods that there have been: an event in the same words is counted, and not written anew."""
        self._owned: dict[str, int] = {}
        """Owner -> how many pods of it were reported, or should have been."""

    def on_objects(self, t: float, objects: ClusterObjects, state: ObservedState) -> Iterator[Breach]:
        """Judge what no controller has said."""
        for actor, lines in list(self._unreported.items()):
            if t - lines[0].t <= MOMENTS_S:
                continue
            del self._unreported[actor]
            pod = objects.pods.get(actor.removeprefix("pod/"))
            owner = _controller(pod) if pod is not None and uid_of(pod) == lines[0].fields["uid"] else None
            if owner is None or (owner["apiVersion"].partition("/")[0], owner["kind"]) not in _REPORTING:
                continue
            if self._counted(f"{owner['kind'].lower()}/{actor.split('/')[1]}/{owner['name']}") <= MOST:
                what = f"{actor} of {owner['kind']} {owner['name']} was made, and no event SuccessfulCreate says so"
                yield Breach((actor, "unreported", str(lines[0].number)), what, lines[-1], after=lines[0])

    # Complex: one branch for each kind of line, and it runs for every line.
    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:  # noqa: C901
        """Judge what a controller says."""
        if state.bounds.lag_s:
            return  # events and pods come from watches of their own
        if line.layer == "api" and line.actor.startswith("pod/"):
            self._first_to_go.take(line)
        if line.event == "condition":
            self._retries.ends(line)
        elif line.layer == "step":
            self._ordered = line
            self._scales.clear()
        elif line.event == "event":
            if line.fields["reason"] in _ORDERS:
                self._ordered = line
                self._scale(line)
            elif line.fields["reason"] in _REPORTS:
                yield from self._judge(line)
        elif line.layer == "component":
            self._unreported.clear()  # one that has died says nothing
        elif line.actor.startswith("pod/") and line.event != "annotations":
            self._note(line)
            if line.event == "deleted":
                self._retries.gone(line.actor)
            if line.event == "bound":
                return
            if line.event == "phase" and line.fields["phase"] not in ("Succeeded", "Failed"):
                return
            self._done[line.actor] = line
            if line.event == "created":
                self._made.pop(line.actor, None)

    def _counted(self, owner: str) -> int:
        self._owned[owner] = self._owned.get(owner, 0) + 1
        return self._owned[owner]

    def _note(self, line: Line) -> None:
        if line.event == "created" and line.actor not in self._names:
            self._names.add(line.actor)
            self._unreported[line.actor] = [line]
        elif line.event == "deleted":
            self._unreported.pop(line.actor, None)
        elif len(self._unreported.get(line.actor, ())) == 1:
            self._unreported[line.actor].append(line)

    def _scale(self, line: Line) -> None:
        match = _SCALED.match(line.fields["message"].removeprefix(_COMBINED))
        if match is not None:
            owner = f"replicaset/{line.fields['object'].split('/')[1]}/{match[1]}"
            self._scales[owner] = int(match[3]), line

    def _more_than_asked(self, owner: str, made: Line) -> Iterator[Breach]:
        wanted, scaled = self._scales.get(owner, (None, None))
        if wanted is None:
            return
        live = [pod for pod, (whose, _) in self._made.items() if whose == owner and self._is_live(pod)]
        if len(live) > wanted:
            what = f"{owner} makes {made.actor} and has {len(live)} pods then; it was scaled to {wanted}"
            yield Breach((owner, str(made.number)), what, made, after=scaled)

    def _is_live(self, pod: str) -> bool:
        done = self._done.get(pod)
        return done is not None and done.event == "created"

    def _judge(self, line: Line) -> Iterator[Breach]:
        pattern, events = _REPORTS[line.fields["reason"]]
        match, owner = pattern.match(line.fields["message"].removeprefix(_COMBINED)), line.fields["object"]
        namespace = owner.split("/")[1] if owner.count("/") == 2 else ""
        if match is None or not namespace:
            return
        pod = f"pod/{namespace}/{match[1] or match[2]}"
        if line.fields["reason"] == "SuccessfulCreate":
            self._counted(owner)
            self._unreported.pop(pod, None)
        done, made = self._done.get(pod), self._made.get(pod)
        if line.fields["reason"] == "SuccessfulCreate" and done is not None:
            self._made[pod] = owner, done
            yield from self._more_than_asked(owner, done)
            yield from self._retries.made(owner, pod, done)
        if (
            done is None
            or line.t - done.t > MOMENTS_S
            or done.event not in (*events, "phase", *_REPORTS["SuccessfulDelete"][1])
        ):
            what = f"{owner} says {line.fields['message']!r}, and {pod} was not {events[0]} then"
            yield Breach((pod, str(line.number)), what, line, after=done)
        elif line.fields["reason"] == "SuccessfulDelete" and made is not None and made[0] == owner:
            owners = {each: whose for each, (whose, _) in self._made.items()}
            yield from self._first_to_go.deleted(owner, pod, owners, done)
            ordered = self._ordered is not None and self._ordered.number > made[1].number
            if done.t - made[1].t <= MOMENTS_S and not ordered:
                what = (
                    f"{owner} deletes {pod} {done.t - made[1].t:.1f} s after it made it, and nobody has asked for fewer"
                )
                yield Breach((pod, "taken back"), what, done, after=made[1])


def _controller(pod: Object) -> dict[str, str] | None:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)
