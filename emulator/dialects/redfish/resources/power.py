"""Switching hosts off and on, and from what they start: told to the hosts as an event of the chassis."""

from __future__ import annotations

from functools import partial

from msgspec import Struct

from mews.emulator.dialects.redfish import patching
from mews.emulator.dialects.redfish.resources.resets import allowable, reset_type
from mews.emulator.dialects.redfish.route import Body, RedfishWrite
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.tasks import Done

RESET = "ComputerSystem.Reset"
RESETS = (
    "On",
    "ForceOn",
    "ForceOff",
    "GracefulShutdown",
    "ForceRestart",
    "GracefulRestart",
    "PowerCycle",
)
ONCE, CONTINUOUS, DISABLED = "Once", "Continuous", "Disabled"
SETUP = "BiosSetup"
TARGETS = ("None", "Pxe", "Hdd", SETUP)
"""From what a host starts; in its setup no system runs on it, and no driver of its devices."""


class HostPower(Struct):
    """One host as its system's resource shows it."""

    state: str = "On"
    target: str = "None"
    enabled: str = DISABLED


def power_of(view: RedfishView, host: str) -> HostPower:
    """Return that of a host; nobody has touched it: on."""
    power: HostPower = view.state.power.setdefault(host, HostPower())
    return power


def power_body(view: RedfishView, host: str) -> Body:
    """Return the properties of a system that tell of it."""
    power = power_of(view, host)
    return {
        "PowerState": power.state,
        "Boot": {
            "BootSourceOverrideEnabled": power.enabled,
            "BootSourceOverrideEnabled@Redfish.AllowableValues": [DISABLED, ONCE, CONTINUOUS],
            "BootSourceOverrideTarget": power.target,
            "BootSourceOverrideTarget@Redfish.AllowableValues": list(TARGETS),
        },
    }


def reset_action(uri: str) -> Body:
    """Return the action as a system shows it."""
    return {f"#{RESET}": allowable(f"{uri}/Actions/{RESET}", RESETS)}


RULES = {
    "Boot": {
        "BootSourceOverrideEnabled": patching.one_of(DISABLED, ONCE, CONTINUOUS),
        "BootSourceOverrideTarget": patching.one_of(*TARGETS),
    }
}


def set_boot(call: RedfishWrite, host: str) -> None:
    """From what the host starts next, or always; without a word on how long, the next time."""
    asked, power = call.body["Boot"], power_of(call.view, host)
    power.target = asked.get("BootSourceOverrideTarget", power.target)
    power.enabled = asked.get("BootSourceOverrideEnabled", ONCE if power.enabled == DISABLED else power.enabled)
    if power.target == "None" or power.enabled == DISABLED:
        power.target, power.enabled = "None", DISABLED


def reset(call: RedfishWrite, host: str) -> Done:
    """Switch it off, on, or off and some seconds later on again."""
    kind, power = reset_type(call, RESET, RESETS), power_of(call.view, host)
    if kind in ("On", "ForceOn"):
        if power.state == "Off":
            _on(call, host, call.now_s)
        return Done()
    call.view.box.agenda.forget(power)
    if power.state != "Off":
        call.view.box.events.emit("host-power", host=host, on=False, boot="")
    power.state = "Off"
    if kind not in ("ForceOff", "GracefulShutdown"):
        power.state = "PoweringOn"
        call.view.box.agenda.at(call.now_s + call.state.settings.host_off_s, partial(_on, call, host), power)
    return Done()


def _on(call: RedfishWrite, host: str, t: float) -> None:
    """It starts, from what the override says; one that was for once is used up by that."""
    power = power_of(call.view, host)
    power.state = "On"
    boot = "" if power.enabled == DISABLED else power.target
    if power.enabled == ONCE:
        power.target, power.enabled = "None", DISABLED
    call.state.touch(call.uri)
    call.view.box.events.emit("host-power", host=host, on=boot != SETUP, boot=boot)
