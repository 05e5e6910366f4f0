"""Invariant 2: a device in use never moves or disappears, unless a fault says so."""

from __future__ import annotations

from collections.abc import Iterator

from mews.harness.invariants.invariant import ObservedState
from mews.harness.invariants.observed_hardware import Device
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant


class InUse(Invariant[ObservedState]):
    """A device is in use while a kubelet has given it to a container of a pod that has not ended. The law reports each
    loss once per pod."""

    number = 2
    name = "a device in use never moves or disappears"

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Judge a change of a chassis' table."""
        if line.layer != "chassis":
            return
        for device in state.world.devices.values():
            if device.changed is not line:
                continue
            how = _how(device)
            for holding in state.world.holders(device.gpuid) if how else ():
                if device.host_before != holding.host:
                    continue  # It was not where it is held: that loss was told, or it came there now.
                what = (
                    f"device {device.gpuid} {how} while {holding.pod} ({holding.container}) on {holding.host} holds it"
                )
                yield Breach((device.gpuid, holding.uid), what, line, device.gpuid)


def _how(device: Device) -> str:
    if not device.present:
        return "disappeared from its chassis"
    if device.port != device.port_before:
        to = "nowhere" if device.port is None else f"port {device.port}"
        return f"moved from port {device.port_before} to {to}"
    if device.link_before and not device.link:
        return f"lost its link on port {device.port}"
    if device.uuid != device.uuid_before:
        return f"turned from {device.uuid_before} into {device.uuid or 'no UUID'}"
    return ""
