"""Faults of chassis and hosts with parameters drawn, for hardware that admits them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mews.emulator.chassis.faults.registry import CHASSIS_FAULTS
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.host.faults.registry import HOST_FAULTS

ARROWS = ("link", "function", "driver", "node", "nvml")
"""The layers of a host that a fault can cut or slow down."""
KINDS = (*CHASSIS_FAULTS.ours(), *HOST_FAULTS.ours())
"""All that come with Mews."""
DEVICE_KINDS = ("concurrent-editor", "link-down", "lost-uuid", "xid", "fallen-off-bus", "ecc-errors")
"""Those that name a device."""
PASSING = (
    "slow-operation",
    "dropped-connection",
    "http-error",
    "timeout",
    "stale-list",
    "partial-list",
    "management-reboot",
    "events-out-of-order",
)
"""Those after which the hardware is as it was."""


class DrawnFault(Struct, frozen=True):
    """A fault of a chassis, or (``is_host``) of a host: ``on`` is its name, ``spec`` what a ``fault`` step adds."""

    on: str
    spec: Mapping[str, Any]
    is_host: bool


def admits(kind: str, hardware: Hardware) -> bool:
    """Return whether that hardware has what such a fault strikes."""
    if kind in HOST_FAULTS.ours() or kind in DEVICE_KINDS:
        return any(one.devices and any(one.ports.values()) for one in hardware.chassis)
    return bool(hardware.chassis)


def draw_fault(kind: str, hardware: Hardware, rng: random.Random) -> DrawnFault:
    """Return a fault of that kind; the hardware must admit it."""
    chassis = rng.choice([one for one in hardware.chassis if one.devices] or hardware.chassis)
    hosts = sorted({host for host in chassis.ports.values() if host})
    device = rng.choice(chassis.devices).id if chassis.devices else ""
    if kind in HOST_FAULTS.ours():
        host = rng.choice(hosts)
        return DrawnFault(host, {"kind": kind, **_host_spec(kind, device, rng)}, True)
    port = rng.choice([None, *(port for port, host in chassis.ports.items() if host)])
    return DrawnFault(chassis.name, {"kind": kind, **_chassis_spec(kind, device, port, rng)}, False)


# Complex: one case for each kind of fault.
def _chassis_spec(kind: str, device: str, port: str | None, rng: random.Random) -> dict[str, Any]:  # noqa: C901
    on = list(CHASSIS_FAULTS.find(kind).on)
    struck: dict[str, Any] = {"operation": rng.choice(on)} if on and rng.random() < 0.8 else {}
    many: dict[str, Any] = {"count": rng.choice((1, 2, 5, 30))} if rng.random() < 0.5 else {}
    match kind:
        case "slow-operation":
            return {**struck, **many, "extra_s": rng.choice((5.0, 30.0, 90.0))}
        case "lying-result" | "never-trains":
            return {**struck, **many}
        case "dropped-connection" | "http-error":
            return {**struck, **many, "when": rng.choice(("before", "after"))}
        case "timeout":
            return {**struck, **many, "hold_s": rng.choice((20.0, 600.0)), "when": rng.choice(("before", "after"))}
        case "half-applied-attach":
            return {**many, "says": rng.choice((True, False))}
        case "stale-list":
            return {**many, "age_s": rng.choice((5.0, 30.0, 120.0))}
        case "partial-list":
            return {**many, **({"keep": rng.choice((0, 1, 3))} if rng.random() < 0.5 else {})}
        case "management-reboot":
            return {**struck, "down_s": rng.choice((20.0, 60.0, 120.0))}
        case "concurrent-editor" if "operation" in struck and struck["operation"] != "read":
            return {**struck, "port": port, "when": rng.choice(("before", "after"))}
        case "concurrent-editor":
            return {"edit": device, "port": port, "after_s": rng.choice((0.0, 10.0))}
        case "link-down" | "lost-uuid":
            return {"device": device, "after_s": rng.choice((0.0, 10.0))}
        case "wrong-uuid":
            return {**many, **({"uuid": ""} if rng.random() < 0.5 else {})}
        case "events-out-of-order":
            return {**many, "delay_s": rng.choice((1.0, 5.0, 60.0))}
    return {}


def _host_spec(kind: str, device: str, rng: random.Random) -> dict[str, Any]:
    match kind:
        case "layer-cut":
            return {"arrow": rng.choice(ARROWS)}
        case "layer-slow":
            return {"arrow": rng.choice(ARROWS), "delay_s": rng.choice((2.0, 30.0, 200.0))}
        case "xid":
            return {"device": device, "xid": rng.choice((31, 79))}
        case "fallen-off-bus":
            return {"device": device, "after_s": rng.choice((0.0, 10.0))}
        case "ecc-errors":
            return {"device": device, "corrected": rng.choice((0, 3)), "uncorrected": rng.choice((0, 1))}
        case "nvml-unknown-error":
            return {"for_s": rng.choice((5.0, 60.0))}
    return {}
