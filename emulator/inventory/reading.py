"""Reads an inventory: a document as values, or the one line that says what is wrong with it and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mews.emulator.chassis.faults.registry import CHASSIS_FAULTS
from mews.emulator.chassis.faults.spec import check_names, parse_fault
from mews.emulator.chassis.placed import PlacedValue, Where
from mews.emulator.hardware.cards import ADAPTERS, KINDS, MOST_VIRTUAL
from mews.emulator.hardware.chassis_profiles import ChassisProfile, parse_profile
from mews.emulator.hardware.drivers import DEFAULT_RELEASE, KNOWN, RELEASE
from mews.emulator.hardware.gpu_profiles import DEFAULT_MODEL, is_known
from mews.emulator.hardware.gpu_profiles import PROFILES as MODELS
from mews.emulator.hardware.host_profiles import parse_host_profile
from mews.emulator.hardware.inventory import (
    ANYTHING,
    DEFAULT_POOL,
    ID,
    NAME,
    PORT,
    ChassisSpec,
    DeviceSpec,
    Hardware,
    HostSpec,
)
from mews.emulator.hardware.pcie_tree import PcieTree
from mews.emulator.inventory.server_reading import read_layout, read_links, read_pcie, read_place

_DEVICE_KEYS = ("id", "uuid", "kind", "model", "serial", "memory_mib", "virtual_functions")
MIN_GPU_MIB, MAX_GPU_MIB = 64, 2**20
"""What a GPU's memory may be said to be."""


def parse_hardware(document: Any, source: str, *, where: Where | None = None, prefix: str = "") -> Hardware:
    """Return the hardware that a file's content describes; ``source`` is the file's name in complaints.

    ``where`` tells file and line of a place where they are known; ``prefix`` is the place at which the document lies
    in a larger file. Raises HardwareError, one line.
    """
    root = PlacedValue(where or (lambda place: source), (), document, prefix)
    root.mapping(("apiVersion", "kind", "metadata", "profile", "hosts", "chassis"))
    if root.get("apiVersion").value != "mews/v1":
        raise root.get("apiVersion").fail("mews/v1")
    if root.get("kind").value != "Hardware":
        raise root.get("kind").fail("Hardware")
    name = _metadata(root.get("metadata"))
    hosts = tuple(_host(item) for item in root.get("hosts", []).items())
    root.get("hosts").unique([host.name for host in hosts], "host name")
    profile = root.get("profile", "instant")
    _profile(profile, "")
    chassis = tuple(
        _chassis(item, number, [host.name for host in hosts], profile)
        for number, item in enumerate(root.get("chassis", []).items())
    )
    if not chassis:
        raise root.get("chassis").fail("a list of at least one chassis")
    root.get("chassis").unique([spec.name for spec in chassis], "chassis name")
    root.get("chassis").unique([str(spec.index) for spec in chassis], "chassis index")
    built_in = [device.uuid for host in hosts for device in host.devices]
    root.get("chassis").unique([*built_in, *(d.uuid for spec in chassis for d in spec.devices)], "device uuid")
    root.get("chassis").unique([spec.gpuid(d.id) for spec in chassis for d in spec.devices], "pool-wide device id")
    _one_pool_per_host(root.get("chassis"), chassis)
    return Hardware(name, hosts, chassis)


def _metadata(at: PlacedValue) -> str:
    at.mapping(("name", "labels", "annotations"))
    for key in ("labels", "annotations"):
        texts = at.get(key, {})
        for name, text in texts.mapping().items():
            texts.child(str(name), text).text(ANYTHING, "a quoted text")
    return at.get("name").text(NAME, "a lower-case name")


def _host(at: PlacedValue) -> HostSpec:
    at.mapping(("name", "cpus", "memory_mib", "profile", "driver", "devices", "pcie", "links"))
    try:
        profile = parse_host_profile(at.get("profile", "instant").value)
    except ValueError as error:
        raise at.get("profile").error(str(error)) from error
    tree = read_pcie(at.get("pcie"))
    devices = tuple(_built_in(device, tree) for device in at.get("devices", []).items())
    at.get("devices", []).unique([device.id for device in devices], "device id")
    return HostSpec(
        devices=devices,
        pcie=tree,
        links=read_links(at.get("links"), devices, read_layout(at.get("pcie"), tree, devices)),
        name=at.get("name").text(NAME, "a lower-case host name"),
        cpus=at.get("cpus", 192).whole(1, 4096),
        memory_mib=at.get("memory_mib", 1_048_576).whole(1, 2**31),
        profile=profile,
        driver=_driver(at.get("driver", DEFAULT_RELEASE)),
    )


def _driver(at: PlacedValue) -> str:
    release = at.text(ANYTHING, "a quoted driver release such as 570.86.15")
    if not RELEASE.fullmatch(release):
        raise at.error(f"{release!r}: must be {KNOWN}")
    return release


def _chassis(at: PlacedValue, number: int, hosts: Sequence[str], profile: PlacedValue) -> ChassisSpec:
    at.mapping(("name", "index", "pool", "slots", "ports", "devices", "profile", "prefixed"))
    name = at.get("name").text(ID, "a name")
    devices = at.get("devices", []).items()
    ports = _ports(at.get("ports"), hosts)
    slots = at.get("slots", max(len(devices), 1)).whole(1, 4096)
    if len(devices) > slots:
        raise at.get("devices").fail(f"at most {slots} devices, as chassis {name} has {slots} slots")
    specs = tuple(_device(device, ports) for device in devices)
    at.get("devices").unique([spec.id for spec in specs], "device id")
    at_profile = at.get("profile") if "profile" in at.value else profile
    parsed = _profile(at_profile, name)
    _quirks(at_profile, parsed, specs, ports)
    return ChassisSpec(
        name=name,
        index=at.get("index", number).whole(0, 999),
        pool=at.get("pool", DEFAULT_POOL).text(NAME, "a lower-case pool name"),
        slots=slots,
        ports=ports,
        devices=specs,
        profile=parsed,
        prefixed=at.get("prefixed", True).flag(),
    )


def _profile(at: PlacedValue, chassis: str) -> ChassisProfile:
    try:
        return parse_profile(at.value, chassis)
    except ValueError as error:
        raise at.error(str(error)) from error


def _quirks(
    at: PlacedValue, profile: ChassisProfile, devices: Sequence[DeviceSpec], ports: Mapping[str, str | None]
) -> None:
    """Check the faults that a profile spells out as the chassis will when it is put together."""
    if not isinstance(at.value, Mapping):
        return
    for number, quirk in enumerate(profile.quirks):
        try:
            parse_fault(quirk, CHASSIS_FAULTS)
            check_names(quirk, devices=[spec.id for spec in devices], ports=list(ports))
        except ValueError as error:
            raise at.child("quirks", None).child(number, quirk).error(str(error)) from error


def _ports(at: PlacedValue, hosts: Sequence[str]) -> dict[str, str | None]:
    ports: dict[str, str | None] = {}
    for key, host in at.mapping().items():
        port = at.child(str(key), str(key)).text(PORT, "a port number, such as 48")
        if host is not None and host not in hosts:
            raise at.child(str(key), host).fail(f"null or one of the hosts {', '.join(hosts)}")
        if host is not None and host in ports.values():
            other = next(name for name, cabled in ports.items() if cabled == host)
            raise at.child(str(key), host).fail(f"a host that is not cabled yet: {host} is on port {other} already")
        ports[port] = host
    return ports


def _device(at: PlacedValue, ports: Mapping[str, str | None]) -> DeviceSpec:
    at.mapping((*_DEVICE_KEYS, "port"))
    port = at.get("port").value
    # A number is refused though its text may be a port: YAML reads 048 as another one.
    if port is not None and (not isinstance(port, str) or ports.get(port) is None):
        cabled = ", ".join(f'"{name}"' for name, host in ports.items() if host is not None)
        raise at.get("port").fail(f"null or one of the cabled ports {cabled or '(there are none)'}")
    return _device_spec(at, port)


def _built_in(at: PlacedValue, tree: PcieTree | None) -> DeviceSpec:
    """Return a device in the server itself: on no port, and on a root complex or switch where the server has a tree."""
    at.mapping((*_DEVICE_KEYS, "below"))
    return replace(_device_spec(at, None), below=read_place(at.get("below"), tree))


def _device_spec(at: PlacedValue, port: str | None) -> DeviceSpec:
    kind = at.get("kind", "GPU").value
    if kind not in KINDS:
        raise at.get("kind", "GPU").fail(f"one of {', '.join(KINDS)}")
    memory = at.get("memory_mib")
    if memory.value is not None and kind != "GPU":
        raise memory.error("is a GPU's alone")
    virtual = at.get("virtual_functions")
    if virtual.value is not None and kind not in ADAPTERS:
        raise virtual.error(f"is for kinds {', '.join(ADAPTERS)} alone")
    return DeviceSpec(
        id=at.get("id").text(ID, 'a quoted device ID, such as "001300"'),
        uuid=at.get("uuid").text(ID, "a device UUID, such as GPU-16a0c321-…"),
        kind=kind,
        model=_model(at.get("model", DEFAULT_MODEL), kind),
        serial=at.get("serial", "").text(ANYTHING, "a quoted serial number"),
        port=port,
        memory_mib=None if memory.value is None else memory.whole(MIN_GPU_MIB, MAX_GPU_MIB),
        virtual_functions=None if virtual.value is None else virtual.whole(0, MOST_VIRTUAL),
    )


def _model(at: PlacedValue, kind: str) -> str:
    model = at.text(ANYTHING, "a model name")
    if not is_there(kind, model):
        raise at.fail(f"one of {', '.join(MODELS)}")
    return model


def is_there(kind: str, model: str) -> bool:
    """Return whether there is such a model of that kind. A GPU's decides what NVML tells of it, so it must be known;
    any other device's is but a label."""
    return kind in KINDS and (kind != "GPU" or is_known(model))


def _one_pool_per_host(at: PlacedValue, chassis: Sequence[ChassisSpec]) -> None:
    pools: dict[str, str] = {}
    for spec in chassis:
        for host in spec.ports.values():
            if host is not None and pools.setdefault(host, spec.pool) != spec.pool:
                raise at.error(
                    f"host {host!r} is cabled to pools {pools[host]} and {spec.pool}; "
                    f"a host reaches the devices of one pool only"
                )
