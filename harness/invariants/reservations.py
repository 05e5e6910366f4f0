"""Invariant 49: a claim is free once nobody uses it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct, field

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

FREED_S = 10.0
"""A controller frees a claim as its last pod is over; a write that is refused is tried again."""
_OVER = ("Succeeded", "Failed")


class _Claim(Struct):
    """``users``: the pods (namespace/name) that it is reserved for, ``over`` those of them that are over, and
    ``since`` the line by which the last one was."""

    users: frozenset[str]
    over: set[str] = field(default_factory=set)
    since: Line | None = None


class ReservationsEnd(Invariant[ObservedState]):
    """The controller of resource claims takes a pod off the claims that are reserved for it once the pod has ended or
    is gone. A claim that is reserved for nobody is deallocated (pkg/controller/resourceclaim/controller.go,
    ``syncClaim``). The law does not judge claims while a component is down, nor a claim that a new pod of the name may
    use."""

    number = 49
    name = "a resource claim is free once the pods that it is reserved for are over"
    of_time = True
    ours_alone = True
    events = frozenset(
        {("api", event) for event in ("claim-reserved", "claim-freed", "created", "phase", "deleted")}
        | {("component", event) for event in ("started", "killed", "crashed")}
    )

    def __init__(self) -> None:
        self._claims: dict[str, _Claim] = {}
        self._next_s = math.inf

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Take in who uses what."""
        if line.event == "claim-reserved":
            namespace = line.fields["claim"].partition("/")[0]
            self._claims[line.fields["claim"]] = _Claim(frozenset(f"{namespace}/{n}" for n in line.fields["pods"]))
        elif line.event == "claim-freed":
            self._claims.pop(line.fields["claim"], None)
        elif line.layer == "component":
            self._claims.clear()
        elif self._claims and line.actor.startswith("pod/"):
            self._pod(line.actor.removeprefix("pod/"), line)
        return iter(())

    def _pod(self, pod: str, line: Line) -> None:
        is_over = line.event == "deleted" or line.fields.get("phase") in _OVER
        for claim in self._claims.values():
            if pod not in claim.users:
                continue
            if not is_over:
                claim.over.discard(pod)
                claim.since = None
            elif pod not in claim.over:
                claim.over.add(pod)
                if claim.over == claim.users:
                    claim.since = line
                    self._next_s = min(self._next_s, line.t + FREED_S)

    def on_time(self, t: float, state: ObservedState) -> Iterator[Breach]:
        """Judge claims that nobody freed."""
        if t <= self._next_s:
            return
        self._next_s = math.inf
        for name, claim in list(self._claims.items()):
            if claim.since is None:
                continue
            due_s = state.windows.clock_from(self.number, claim.since.t) + FREED_S + 2 * state.bounds.lag_s
            if t <= due_s:
                self._next_s = min(self._next_s, due_s)
                continue
            del self._claims[name]
            what = f"claim {name} is reserved {t - claim.since.t:.1f} s after {', '.join(sorted(claim.users))} was over"
            yield Breach((name, str(claim.since.number)), what, claim.since, due_s=claim.since.t)
