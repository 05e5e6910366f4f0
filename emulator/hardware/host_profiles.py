"""How long each layer of a host lags behind the one below it: data.

The arrows of contract host.md section 1, from a chassis attach on: ``link`` (the port trains), ``function`` (the kernel
enumerates), ``driver`` (it is bound), ``node`` (/dev/nvidiaN), ``nvml`` (the library sees it). ``surprise`` is how long
a device that is lost stays in sysfs. ``drain`` is a call of NVML that changes persistence mode or drain state,
``remove`` one that removes a GPU; each includes the initialisation of the library. ``pciehp``: the kernel notices
hot-plug by itself; without it a device is found by a rescan only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mews.emulator.hardware.latency import Fixed, Latency, Normal, Uniform, parse_latency

ARROWS = ("link", "function", "driver", "node", "nvml")
"""The layers in the order in which they come up."""


NO_DELAY = Fixed(0)


class HostProfile(Struct, frozen=True):
    """Latencies of one host, in emulated seconds."""

    name: str
    source: str
    link: Latency = NO_DELAY
    function: Latency = NO_DELAY
    driver: Latency = NO_DELAY
    node: Latency = NO_DELAY
    nvml: Latency = NO_DELAY
    surprise: Latency = NO_DELAY
    drain: Latency = NO_DELAY
    remove: Latency = NO_DELAY
    pciehp: bool = True

    def arrow(self, name: str) -> Latency:
        """Return the latency of one of ``ARROWS``."""
        latency: Latency = getattr(self, name)
        return latency


INSTANT = HostProfile("instant", "no latency at all")

FALCON_4005 = HostProfile(
    "falcon-4005",
    "assumed: the measured attach (contract chassis.md 2) already holds link training, and its files say nothing of "
    "the host but that NVML lags for a while; enumeration and surprise removal in the order of what Linux' pciehp "
    "waits for (PCIe 6.7.3: 100 ms after training), the driver's probe of a V100 some seconds. Nobody measured a "
    "drain: a call of NVML is taken to cost what initialising one idle GPU costs on the testbed, where persistence "
    "mode is off (2.81 s with a residual of 0.67 s, fitted over 100 jobs), and a removal half a second more to unbind",
    link=Uniform(0.1, 0.3),
    function=Uniform(0.2, 0.6),
    driver=Normal(2.0, 0.4, 1.0, 4.0),
    node=Uniform(0.01, 0.1),
    nvml=Normal(0.8, 0.3, 0.2, 2.0),
    surprise=Uniform(0.1, 0.5),
    drain=Normal(2.81, 0.67, 1.0, 5.0),
    remove=Normal(3.3, 0.8, 1.2, 6.0),
)

HOST_PROFILES: Mapping[str, HostProfile] = {"instant": INSTANT, "falcon-4005": FALCON_4005}
KEYS = (*ARROWS, "surprise", "drain", "remove", "pciehp")


def parse_host_profile(value: Any) -> HostProfile:
    """Return the profile that a hardware file names or spells out (``{link: 0.1, driver: {uniform: [1, 2]}, pciehp:
    false}``).

    Raises ValueError naming what is allowed.
    """
    if isinstance(value, str) and value in HOST_PROFILES:
        return HOST_PROFILES[value]
    if not isinstance(value, Mapping) or not set(value) <= set(KEYS):
        names = ", ".join(HOST_PROFILES)
        raise ValueError(f"profile {value!r}: must be one of {names} or a mapping of {', '.join(KEYS)}")
    pciehp = value.get("pciehp", True)
    if not isinstance(pciehp, bool):
        raise ValueError(f"pciehp {pciehp!r}: must be true or false")
    delays = {name: parse_latency(delay) for name, delay in value.items() if name != "pciehp"}
    return HostProfile("custom", "the hardware file", **delays, pciehp=pciehp)
