"""Invariant 1009: a GPU is drained before software takes it off its host."""

from __future__ import annotations

from collections.abc import Iterator

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

_GPU, _HAND = "GPU", ("host", "chassis", "exec")
_OVER = ("driver-unbound", "function-removed", "link-down")

Key = tuple[str, str, str]
"""The host's actor, GPUID, address: a device may be back while its dead function is still there."""


class Drained(Invariant[ObservedState]):
    """Who takes a healthy GPU off a running host drains it first (contract host.md section 4). Then no program
    opens it before it is gone. The law does not judge a GPU that has reported an error or is lost. It does not judge
    what a step of the scenario does at hosts and chassis by hand, nor a journal without steps."""

    number = 1009
    name = "a GPU is drained before software takes it off its host"
    ours_alone = True
    events = frozenset(
        {("host", event) for event in ("draining", "nvml-hidden", "xid", "lost", "powered-off", "powered-on", "table")}
        | {("host", event) for event in ("driver-bound", *_OVER)}
        | {("step", event) for event in ("begun", "passed", "failed")}
    )

    def __init__(self) -> None:
        self._drained: set[Key] = set()
        self._broken: set[Key] = set()
        self._off: set[str] = set()
        self._by_hand: set[int] = set()
        self._knows_steps = False

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Judge a GPU that NVML shows no more."""
        if line.layer == "step":
            self._knows_steps = True
            if line.event == "begun" and line.fields.get("do") in _HAND:
                self._by_hand.add(line.fields["step"])
            elif line.event != "begun":
                self._by_hand.discard(line.fields["step"])
        elif "gpuid" not in line.fields:
            (self._off.add if line.event == "powered-off" else self._off.discard)(line.actor)
        else:
            yield from self._gpu(line, (line.actor, str(line.fields["gpuid"]), str(line.fields.get("bdf"))), state)

    def _gpu(self, line: Line, key: Key, state: ObservedState) -> Iterator[Breach]:
        if line.event == "draining":
            (self._drained.add if line.fields["on"] else self._drained.discard)(key)
        elif line.event in ("xid", "lost"):
            self._broken.add(key)
        elif line.event == "driver-bound":
            self._broken.discard(key)
        elif line.event in _OVER:
            self._drained.discard(key)
        elif line.fields.get("kind") == _GPU and key not in self._drained and key not in self._broken:
            if line.actor in self._off or self._by_hand or not self._knows_steps or state.bounds.lag_s:
                return
            if state.bounds.spans:  # of a host that is known
                what = f"{key[1]} is taken out of NVML on {line.actor}, and was not drained first"
                yield Breach((*key, str(line.number)), what, line, key[1])
