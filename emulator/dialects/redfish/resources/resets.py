"""Resets: which types there are, and links that go down and come up again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from mews.emulator.chassis.errors import UnknownDeviceError
from mews.emulator.dialects.redfish.messages import fail
from mews.emulator.dialects.redfish.route import RedfishWrite


def allowable(target: str, kinds: Sequence[str]) -> dict[str, Any]:
    """Return an action ``Reset`` with the types that it takes."""
    return {"target": target, "ResetType@Redfish.AllowableValues": list(kinds)}


def reset_type(call: RedfishWrite, action: str, kinds: Sequence[str]) -> str:
    """Return the type that is asked for, the first where none is.

    Raises RedfishError: 400.
    """
    for name in call.body:
        if name != "ResetType":
            raise fail(400, "ActionParameterUnknown", action, name)
    kind = call.body.get("ResetType", kinds[0])
    if not isinstance(kind, str):
        raise fail(400, "ActionParameterValueTypeError", str(kind)[:100], "ResetType", action)
    if kind not in kinds:
        raise fail(400, "ActionParameterValueNotInList", kind[:100], "ResetType", action)
    return kind


def flap(call: RedfishWrite, devices: Sequence[str]) -> None:
    """Take links down now and up again a little later; links that are down already stay so."""
    box = call.view.box
    for device in devices:
        row = call.view.row(device)
        if row is None or not row.link:
            continue
        box.edits.set_link(device, False)
        box.agenda.at(call.now_s + call.state.settings.flap_s, partial(_up, call, device), call.state)


def _up(call: RedfishWrite, device: str, t: float) -> None:
    """The device may have been pulled out meanwhile."""
    try:
        call.view.box.edits.set_link(device, True)
    except UnknownDeviceError:
        return
