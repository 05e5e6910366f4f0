"""Invariant 70: the layers of a device on its host rise and fall one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

_ROSE = ("link-up", "function-added", "driver-bound", "nvml-visible")
_FELL = ("link-down", "function-removed", "driver-unbound", "nvml-hidden")


class HostLayers(Invariant[ObservedState]):
    """A layer comes up on the one below it, and goes before the one below it (contract host.md section 1). What was up
    before the host's first line of a device is not known, and not judged."""

    number = 70
    name = "the layers of a device on its host rise and fall in their order"
    events = frozenset({("host", event) for event in (*_ROSE, *_FELL, "table")})

    def __init__(self) -> None:
        self._heights: dict[tuple[str, str], int] = {}
        self._lines: dict[tuple[str, str], Line] = {}

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Judge a layer that came up, or went."""
        if line.event == "table":
            self._heights = {key: height for key, height in self._heights.items() if key[0] != line.actor}
            return
        key = line.actor, str(line.fields.get("gpuid"))
        rises = line.event in _ROSE
        layer = (_ROSE if rises else _FELL).index(line.event)
        known, before = self._heights.get(key), self._lines.get(key)
        self._heights[key], self._lines[key] = layer + 1 if rises else layer, line
        due = layer if rises else layer + 1
        # An adapter has no NVML, so the layer above its driver is never seen to go.
        if known is not None and known != due:
            what = f"{line.event} of {key[1]} on {line.actor} where {_shown(known)}"
            yield Breach((*key, str(line.number)), what, line, key[1], after=before)


def _shown(height: int) -> str:
    return "no layer is up" if height == 0 else f"{_ROSE[height - 1]} came last"
