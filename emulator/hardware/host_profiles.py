"""How long each layer of a host lags behind the one below it: models of servers, as data in ``servers/``.

The arrows of contract host.md section 1, from a chassis attach on: ``link`` (the port trains), ``function`` (the kernel
enumerates), ``driver`` (it is bound), ``node`` (/dev/nvidiaN), ``nvml`` (the library sees it). ``surprise`` is how long
a device that is lost stays in sysfs. ``drain`` is a call of NVML that changes persistence mode or drain state,
``remove`` one that removes a GPU; each includes the initialisation of the library. ``pciehp``: the kernel notices
hot-plug by itself; without it a device is found by a rescan only.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from mews.emulator.hardware.latency import Fixed, Latency, parse_latency
from mews.emulator.hardware.model_files import ModelFiles, source_of

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

KEYS = (*ARROWS, "surprise", "drain", "remove", "pciehp")


def _parsed(name: str, source: str, value: Mapping[str, Any]) -> HostProfile:
    pciehp = value.get("pciehp", True)
    if not isinstance(pciehp, bool):
        raise ValueError(f"pciehp {pciehp!r}: must be true or false")
    delays = {name: parse_latency(delay) for name, delay in value.items() if name != "pciehp"}
    return HostProfile(name, source, **delays, pciehp=pciehp)


def server_models(folder: Path) -> ModelFiles[HostProfile]:
    """Return ``instant``, and the models of a folder."""
    return ModelFiles(
        folder,
        frozenset({"source", *KEYS}),
        lambda name, values: _parsed(
            name, source_of(name, values), {key: values[key] for key in KEYS if key in values}
        ),
        first={"instant": INSTANT},
    )


HOST_PROFILES: Mapping[str, HostProfile] = server_models(Path(__file__).parent / "servers")


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
    return _parsed("custom", "the hardware file", value)
