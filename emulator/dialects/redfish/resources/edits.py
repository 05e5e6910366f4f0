"""Attach and detach for all families: the checks that the protocol wants, then the chassis core."""

from __future__ import annotations

from mews.emulator.chassis.operation import Operation
from mews.emulator.chassis.table import DeviceRow
from mews.emulator.dialects.redfish.messages import fail
from mews.emulator.dialects.redfish.route import RedfishWrite


def attach(call: RedfishWrite, device: str, port: str) -> Operation:
    """Begin to put a device on a host port.

    Raises RedfishError: 409 where it is to be taken out of the chassis.
    """
    if device in call.state.ready:
        raise fail(409, "OperationFailed", f"device {device} is ready to be removed")
    return call.view.box.begin_attach(device, port, call.now_s)


def detach(call: RedfishWrite, device: str) -> Operation:
    """Begin to take a device off its host port."""
    return call.view.box.begin_detach(device, call.now_s)


def free(call: RedfishWrite, row: DeviceRow) -> None:
    """See to it that a device is on no host port and on its way to none.

    Raises RedfishError: 409.
    """
    if row.port is not None or row.device in call.view.pending():
        raise fail(409, "ResourceInUse")
