"""Invariant 27: no component fails over its work."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant


class OwnFailures(Invariant[ObservedState]):
    """A program has an error if it raises one of Python's built-in exceptions, such as KeyError or TypeError. The
    component then ends (``crashed``), or it logs the error and continues with the next object (``failed``). Upstream's
    components do the same (``HandleCrash`` of apimachinery/pkg/util/runtime). Both lines are breaches. An error that an
    API, a plugin or the machine returns is no breach."""

    number = 27
    name = "no component fails over its work"
    events = frozenset({("component", "failed"), ("component", "crashed")})

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Judge a failure."""
        cause, place = str(line.fields["cause"]), str(line.fields.get("place", ""))
        if line.event == "failed" or _is_own(cause.partition(":")[0]):
            what = f"{line.actor} {line.event}{' at ' * bool(place)}{place}: {cause}"
            yield Breach((line.actor, place, cause), what, line)


def _is_own(error: str) -> bool:
    found = getattr(builtins, error, None)
    return isinstance(found, type) and issubclass(found, Exception) and not issubclass(found, OSError)
