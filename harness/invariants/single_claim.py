"""Invariant 29: one device, one claim, one node at every moment."""

from __future__ import annotations

from collections.abc import Iterator

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

_TAKES = {"claim-prepared": "prepared", "claim-allocated": "allocated"}
_GIVES = {"claim-unprepared": "claim-prepared", "claim-freed": "claim-allocated"}


class SingleClaim(Invariant[ObservedState]):
    """A device is allocated to one claim and prepared for one claim on its node, even if objects are deleted by force,
    retried or restarted. Administrators' access and shares are exceptions (``alone`` names the devices that no other
    claim may have). An allocation has at least one device: also a request for all devices needs one (AllocationMode
    in resource/v1)."""

    number = 29
    name = "one device, one claim, one node at every moment"
    events = frozenset({("kubelet", "claim-prepared"), ("kubelet", "claim-unprepared")}) | frozenset(
        {("api", "claim-allocated"), ("api", "claim-freed")}
    )

    def __init__(self) -> None:
        self._held: dict[tuple[str, str, str], Line] = {}
        """(event, device, claim's uid) -> the line that says so."""

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Judge what a claim takes; note what it gives back."""
        uid = str(line.fields["uid"])
        if line.event in _GIVES:
            self._forget(_GIVES[line.event], line, uid)
            return
        if line.event == "claim-allocated" and not line.fields["devices"]:
            yield Breach((line.actor, uid, "empty"), f"{line.fields['claim']} is allocated, and has no device", line)
        place = line.actor if line.layer == "kubelet" else ""
        for device in line.fields["alone"]:
            name = f"{place} {line.fields['driver']}/{device}" if place else str(device)
            for (event, other, holder), before in list(self._held.items()):
                if event == line.event and other == name and holder != uid:
                    done = _TAKES[event]
                    what = f"{device} is {done} for {line.fields['claim']} while {before.fields['claim']} has it"
                    yield Breach((name, uid, holder), what, line, after=before)
            self._held[line.event, name, uid] = line

    def _forget(self, event: str, line: Line, uid: str) -> None:
        """A kubelet unprepares by driver; a claim is freed as a whole."""
        driver = line.fields.get("driver")
        for key in [key for key in self._held if key[0] == event and key[2] == uid]:
            if driver is None or self._held[key].fields.get("driver") == driver:
                del self._held[key]
