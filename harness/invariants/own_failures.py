"""Invariant 27: no component fails over its work."""

from __future__ import annotations

from collections.abc import Iterator

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant


class OwnFailures(Invariant[ObservedState]):
    """A component that meets an error of its own program (a missing key, a wrong type) keeps it to the object that it
    was at work on, logs it, and goes on. Upstream's components do the same (``HandleCrash`` of
    apimachinery/pkg/util/runtime). Nobody would notice, so the line ``failed`` is a breach by itself. What an API or
    a plugin answers is no such error."""

    number = 27
    name = "no component fails over its work"
    events = frozenset({("component", "failed")})

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Judge a failure."""
        what = f"{line.actor} failed at {line.fields['place']}: {line.fields['cause']}"
        yield Breach((line.actor, line.fields["place"], line.fields["cause"]), what, line)
