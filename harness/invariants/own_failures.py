"""Invariant 27: no component fails over its work."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant


class OwnFailures(Invariant[ObservedState]):
    """A program has an error if it raises one of Python's built-in exceptions, such as KeyError or TypeError. The
    component then ends (``crashed``), or it logs the error and continues with the next object (``failed``). Upstream's
    components do the same (``HandleCrash`` of apimachinery/pkg/util/runtime). Both lines are breaches. A kubelet also
    rejects a pod with the error of a device plugin. An error that an API, a plugin or the machine returns is no
    breach."""

    number = 27
    name = "no component fails over its work"
    events = frozenset({("component", "failed"), ("component", "crashed"), ("kubelet", "rejected")})

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Judge a failure."""
        if line.event == "rejected":
            yield from _of_a_plugin(line)
            return
        cause, place = str(line.fields["cause"]), str(line.fields.get("place", ""))
        if line.event == "failed" or _is_own(cause.partition(":")[0]):
            what = f"{line.actor} {line.event}{' at ' * bool(place)}{place}: {cause}"
            yield Breach((line.actor, place, cause), what, line)


_RAISED = re.compile(r"code = Unknown desc = Unexpected <class '(\w+)'>")
"""What a gRPC server in Python answers when its handler raises something (grpc/_cython, aio/server.pyx.pxi)."""


def _of_a_plugin(line: Line) -> Iterator[Breach]:
    raised = _RAISED.search(str(line.fields.get("message", "")))
    if raised is not None and _is_own(raised[1]):
        what = f"{line.fields['pod']} is rejected, because a device plugin raises {raised[1]}"
        yield Breach((line.actor, raised[1]), what, line)


def _is_own(error: str) -> bool:
    found = getattr(builtins, error, None)
    return isinstance(found, type) and issubclass(found, Exception) and not issubclass(found, OSError)
