"""The nodes and devices of a hardware file as policies of traces see them, several times over where that is asked."""

from __future__ import annotations

from msgspec.structs import replace

from mews.emulator.hardware.gpu_profiles import profile_of
from mews.emulator.hardware.inventory import ChassisSpec, DeviceSpec, Hardware, HostSpec
from mews.kube.system.simulation import DeviceMoves, SimulatedCluster, SimulatedDevice, SimulatedNode


def repeated(hardware: Hardware, times: int) -> Hardware:
    """Return the hardware so many times, side by side: its hosts, chassis and pools bear the number of their copy."""
    if times == 1:
        return hardware
    hosts: list[HostSpec] = []
    chassis: list[ChassisSpec] = []
    step = 1 + max((spec.index for spec in hardware.chassis), default=0)
    width = len(str(times))
    for copy in range(1, times + 1):
        mark = f"{copy:0{width}}"
        hosts += [replace(host, name=f"{mark}-{host.name}") for host in hardware.hosts]
        chassis += [
            replace(
                spec,
                name=f"{mark}-{spec.name}",
                index=spec.index + (copy - 1) * step,
                prefixed=True,
                pool=f"{mark}-{spec.pool}",
                ports={port: None if host is None else f"{mark}-{host}" for port, host in spec.ports.items()},
            )
            for spec in hardware.chassis
        ]
    return replace(hardware, hosts=tuple(hosts), chassis=tuple(chassis))


def cluster_of(hardware: Hardware, moves: DeviceMoves | None = None, *, kind: str = "GPU") -> SimulatedCluster:
    """Return every host with the devices of that kind that are on its ports, built-in ones too."""
    devices: dict[str, list[SimulatedDevice]] = {host.name: [] for host in hardware.hosts}
    free: dict[str, list[SimulatedDevice]] = {}
    pools: dict[str, str] = {}
    for spec in hardware.chassis:
        for host in spec.ports.values():
            if host is not None:
                pools.setdefault(host, spec.pool)
        for device in spec.devices:
            if device.kind == kind:
                host = None if device.port is None else spec.ports[device.port]
                place = free.setdefault(spec.pool, []) if host is None else devices[host]
                place.append(_device(spec.gpuid(device.id), device))
    for own in hardware.hosts:
        devices[own.name] += [_device(f"{own.name}-{each.id}", each) for each in own.devices if each.kind == kind]
    nodes = tuple(
        SimulatedNode(host.name, pools.get(host.name), host.cpus * 1000, host.memory_mib, tuple(devices[host.name]))
        for host in hardware.hosts
    )
    return SimulatedCluster(nodes, {pool: tuple(found) for pool, found in free.items()}, moves)


def _device(gpuid: str, device: DeviceSpec) -> SimulatedDevice:
    memory_mib = profile_of(device.model).memory_mib if device.memory_mib is None else device.memory_mib
    return SimulatedDevice(gpuid, device.uuid, memory_mib)
