"""How the GPUs of a host are joined: each pair's PCIe level from the tree they are in, and the NVLinks of the server.

sysfs shows the same tree, and NVML and nvidia-smi what is worked out here; none has a matrix of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from mews.emulator.hardware.addresses import PciAddress, pcie_level
from mews.emulator.hardware.bandwidth import by_uuid, link_rate, pairwise_bandwidth
from mews.emulator.hardware.cards import gpu_profile
from mews.emulator.hardware.topology import SELF, LinkMatrix, Matrix, no_links, nvswitch_links
from mews.emulator.host.function import BringUpStage, Function
from mews.emulator.host.own_slots import OWN

if TYPE_CHECKING:
    from mews.emulator.host.host import Host


class HostJoints(Struct, frozen=True):
    """``matrix``: NVLinks where a pair has them, else the PCIe level; ``levels``: the PCIe level of all pairs;
    ``link_ends``: of each GPU the bus address at the end of each of its links, where links join GPUs directly. All are
    in the order of the GPUs that were asked for."""

    matrix: Matrix
    levels: Matrix
    switched: bool
    link_ends: tuple[tuple[str, ...], ...]


def shown_gpus(host: Host) -> list[Function]:
    """Return the GPUs that NVML shows, in order of bus address. One that the chassis took away is shown no more, though
    its function stays on the bus for as long as a process has it open."""
    return [f for f in host.bus.functions() if f.stage == BringUpStage.NVML and (f.plugged or not f.lost)]


def joints(host: Host, gpus: Sequence[Function]) -> HostJoints:
    """Return how those are joined."""
    levels = _levels(tuple(gpu.address for gpu in gpus))
    links = _links(host, gpus)
    matrix = tuple(
        tuple(f"NV{count}" if count else level for count, level in zip(counts, row, strict=True))
        for counts, row in zip(links.counts, levels, strict=True)
    )
    return HostJoints(matrix, levels, links.switched, tuple(_ends(host, gpu) for gpu in gpus))


def host_report(host: Host) -> dict[str, object]:
    """Return the GPUs' UUIDs, their matrix, and by UUID the bandwidth of each pair in GB/s: what the host says of
    itself."""
    gpus = shown_gpus(host)
    uuids = [gpu.device.uuid for gpu in gpus]
    matrix = joints(host, gpus).matrix
    rates = [link_rate(gpu_profile(gpu.device.model)) for gpu in gpus]
    return {
        "gpus": uuids,
        "matrix": [list(row) for row in matrix],
        "bandwidth_gb_s": by_uuid(uuids, pairwise_bandwidth(matrix, rates)),
    }


@lru_cache(maxsize=1024)
def _levels(addresses: tuple[PciAddress, ...]) -> Matrix:
    """Remembered, since a host's state is written far more often than its devices move."""
    return tuple(
        tuple(SELF if a == b else pcie_level(one, other) for b, other in enumerate(addresses))
        for a, one in enumerate(addresses)
    )


def _links(host: Host, gpus: Sequence[Function]) -> LinkMatrix:
    """Return the server's own links between those; where its file names none, those of an NVSwitch system whose GPUs
    all are of one. A GPU that a chassis lends has none."""
    own = host.spec.links
    if own is None:
        profiles = [gpu_profile(gpu.device.model) for gpu in gpus]
        switched = bool(profiles) and all(profile.nvswitch for profile in profiles)
        return nvswitch_links([profile.nvlinks for profile in profiles]) if switched else no_links(len(gpus))
    places = _places(host)
    rows = [places[gpu.device.id] if gpu.chassis == OWN else None for gpu in gpus]
    counts = tuple(tuple(0 if a is None or b is None else own.counts[a][b] for b in rows) for a in rows)
    return LinkMatrix(counts, own.switched)


def _places(host: Host) -> dict[str, int]:
    """Return the rows of the server's own GPUs in its matrix."""
    own = [device.id for device in host.spec.devices if device.kind == "GPU"]
    return {device: row for row, device in enumerate(own)}


def _ends(host: Host, gpu: Function) -> tuple[str, ...]:
    """Links are numbered in the order of the GPUs at their other ends, and keep their numbers while one is away."""
    links = host.spec.links
    if links is None or links.switched or gpu.chassis != OWN:
        return ()
    places = _places(host)
    own = {f.device.id: f.bdf for f in host.bus.functions() if f.chassis == OWN}
    row = links.counts[places[gpu.device.id]]
    return tuple(own[device] for device, place in places.items() for _ in range(row[place]))
