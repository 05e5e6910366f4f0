"""The hardware file: hosts, chassis, host ports and devices (``apiVersion: mews/v1``, ``kind: Hardware``).

``parse_hardware`` turns the file's content into frozen values or raises one line that names file, place, value and
what is allowed. Reading the file itself is ``mews.emulator.inventory_file``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mews.emulator.chassis.errors import HardwareError
from mews.emulator.chassis.profiles import Profile, parse_profile
from mews.emulator.host.profiles import INSTANT, HostProfile, parse_host_profile

DEFAULT_POOL = "pool-0"
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
PORT = re.compile(r"0|[1-9][0-9]{0,4}")
ID = re.compile(r"[A-Za-z0-9][-A-Za-z0-9._:]*")


@dataclass(frozen=True, slots=True)
class HostSpec:
    """A server. Its name is also the node's name. ``profile``: how its layers lag behind its chassis ports."""

    name: str
    cpus: int = 192
    memory_mib: int = 1_048_576
    profile: HostProfile = INSTANT


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A device in a slot. ``id`` is the chassis' own (Dev_GID); ``port`` is the host port at the start, None = free."""

    id: str
    uuid: str
    kind: str = "GPU"
    model: str = "V100"
    serial: str = ""
    port: str | None = None


@dataclass(frozen=True, slots=True)
class ChassisSpec:
    """One chassis. ``ports`` maps each host port to the host cabled to it, or None."""

    name: str
    index: int
    pool: str
    slots: int
    ports: Mapping[str, str | None]
    devices: tuple[DeviceSpec, ...]
    profile: Profile

    def gpuid(self, device: str) -> str:
        """The pool-wide ID of a device, ``<chassis index>-<device>``, for example ``1-001300`` (chassis.md 2)."""
        return f"{self.index}-{device}"


@dataclass(frozen=True, slots=True)
class Hardware:
    """All of a hardware file."""

    name: str
    hosts: tuple[HostSpec, ...]
    chassis: tuple[ChassisSpec, ...]

    def pools(self) -> tuple[str, ...]:
        """The pools, in the order of the file."""
        return tuple(dict.fromkeys(spec.pool for spec in self.chassis))


class _At:
    """A place in the file; everything read here is checked, and what is wrong is told with file, path and value."""

    def __init__(self, source: str, path: str, value: Any) -> None:
        self.source, self.path, self.value = source, path, value

    def fail(self, allowed: str) -> HardwareError:
        return HardwareError(f"{self.source}: {self.path or 'file'}: {_shown(self.value)}: must be {allowed}")

    def mapping(self, allowed: Sequence[str] | None = None) -> Mapping[str, Any]:
        if not isinstance(self.value, Mapping):
            raise self.fail("a mapping" + (f" with {', '.join(allowed)}" if allowed else ""))
        for key in self.value:
            if allowed is not None and key not in allowed:
                place = f"{self.path}.{key}" if self.path else str(key)
                raise HardwareError(f"{self.source}: {place}: unknown key; allowed: {', '.join(allowed)}")
        return self.value

    def items(self) -> list[_At]:
        if not isinstance(self.value, list):
            raise self.fail("a list")
        return [_At(self.source, f"{self.path}[{i}]", item) for i, item in enumerate(self.value)]

    def get(self, key: str, default: Any = None) -> _At:
        return _At(self.source, f"{self.path}.{key}" if self.path else key, self.value.get(key, default))

    def text(self, pattern: re.Pattern[str], allowed: str) -> str:
        if not isinstance(self.value, str) or not pattern.fullmatch(self.value):
            raise self.fail(allowed)
        return self.value

    def whole(self, low: int, high: int) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int) or not low <= self.value <= high:
            raise self.fail(f"a whole number from {low} to {high}")
        return self.value


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except RecursionError:
        text = f"a {type(value).__name__} nested too deep"
    return text if len(text) <= 60 else text[:57] + "..."


def parse_hardware(document: Any, source: str) -> Hardware:
    """The hardware that a file's content describes; ``source`` is the file's name in errors.

    Raises HardwareError, one line.
    """
    root = _At(source, "", document)
    root.mapping(("apiVersion", "kind", "metadata", "profile", "hosts", "chassis"))
    if root.get("apiVersion").value != "mews/v1":
        raise root.get("apiVersion").fail("mews/v1")
    if root.get("kind").value != "Hardware":
        raise root.get("kind").fail("Hardware")
    root.get("metadata").mapping(("name", "labels", "annotations"))
    name = root.get("metadata").get("name").text(NAME, "a lower-case name")
    hosts = tuple(_host(item) for item in root.get("hosts", []).items())
    _unique(root.get("hosts"), [host.name for host in hosts], "host name")
    profile = root.get("profile", "instant").value
    chassis = tuple(
        _chassis(item, number, [host.name for host in hosts], profile)
        for number, item in enumerate(root.get("chassis", []).items())
    )
    if not chassis:
        raise root.get("chassis").fail("a list of at least one chassis")
    _unique(root.get("chassis"), [spec.name for spec in chassis], "chassis name")
    _unique(root.get("chassis"), [str(spec.index) for spec in chassis], "chassis index")
    _unique(root.get("chassis"), [d.uuid for spec in chassis for d in spec.devices], "device uuid")
    _one_pool_per_host(root.get("chassis"), chassis)
    return Hardware(name, hosts, chassis)


def _host(at: _At) -> HostSpec:
    at.mapping(("name", "cpus", "memory_mib", "profile"))
    try:
        profile = parse_host_profile(at.get("profile", "instant").value)
    except ValueError as error:
        raise HardwareError(f"{at.source}: {at.path}.profile: {error}") from error
    return HostSpec(
        name=at.get("name").text(NAME, "a lower-case host name"),
        cpus=at.get("cpus", 192).whole(1, 4096),
        memory_mib=at.get("memory_mib", 1_048_576).whole(1, 2**31),
        profile=profile,
    )


def _chassis(at: _At, number: int, hosts: Sequence[str], profile: Any) -> ChassisSpec:
    at.mapping(("name", "index", "pool", "slots", "ports", "devices", "profile"))
    name = at.get("name").text(ID, "a name")
    devices = at.get("devices", []).items()
    ports = _ports(at.get("ports"), hosts)
    slots = at.get("slots", max(len(devices), 1)).whole(1, 4096)
    if len(devices) > slots:
        raise at.get("devices").fail(f"at most {slots} devices, as chassis {name} has {slots} slots")
    specs = tuple(_device(device, ports) for device in devices)
    _unique(at.get("devices"), [spec.id for spec in specs], "device id")
    at_profile = at.get("profile", profile)
    try:
        parsed = parse_profile(at_profile.value, name)
    except ValueError as error:
        raise HardwareError(f"{at.source}: {at_profile.path}: {error}") from error
    return ChassisSpec(
        name=name,
        index=at.get("index", number).whole(0, 999),
        pool=at.get("pool", DEFAULT_POOL).text(NAME, "a lower-case pool name"),
        slots=slots,
        ports=ports,
        devices=specs,
        profile=parsed,
    )


def _ports(at: _At, hosts: Sequence[str]) -> dict[str, str | None]:
    ports: dict[str, str | None] = {}
    for key, host in at.mapping().items():
        port = _At(at.source, f"{at.path}.{key}", str(key)).text(PORT, "a port number, such as 48")
        if host is not None and host not in hosts:
            raise _At(at.source, f"{at.path}.{key}", host).fail(f"null or one of the hosts {', '.join(hosts)}")
        ports[port] = host
    return ports


def _device(at: _At, ports: Mapping[str, str | None]) -> DeviceSpec:
    at.mapping(("id", "uuid", "kind", "model", "serial", "port"))
    port = at.get("port").value
    if port is not None and (str(port) not in ports or ports[str(port)] is None):
        cabled = [name for name, host in ports.items() if host is not None]
        raise at.get("port").fail(f"null or one of the cabled ports {', '.join(cabled)}")
    anything = re.compile(r"[^\x00-\x1f]*")
    return DeviceSpec(
        id=at.get("id").text(ID, 'a quoted device ID, such as "001300"'),
        uuid=at.get("uuid").text(ID, "a device UUID, such as GPU-16a0c321-…"),
        kind=at.get("kind", "GPU").text(ID, "a device kind, such as GPU"),
        model=at.get("model", "V100").text(anything, "a model name"),
        serial=at.get("serial", "").text(anything, "a quoted serial number"),
        port=None if port is None else str(port),
    )


def _unique(at: _At, names: Sequence[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise HardwareError(f"{at.source}: {at.path}: {what} {name!r} is there twice; each must be unique")
        seen.add(name)


def _one_pool_per_host(at: _At, chassis: Sequence[ChassisSpec]) -> None:
    pools: dict[str, str] = {}
    for spec in chassis:
        for host in spec.ports.values():
            if host is not None and pools.setdefault(host, spec.pool) != spec.pool:
                raise HardwareError(
                    f"{at.source}: {at.path}: host {host!r} is cabled to pools {pools[host]} and {spec.pool}; "
                    f"a host reaches the devices of one pool only"
                )
