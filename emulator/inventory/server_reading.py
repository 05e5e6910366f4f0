"""Reads what a hardware file says of the inside of a server: its PCIe tree, what is where in it, and NVLinks."""

from __future__ import annotations

from collections.abc import Sequence

from mews.emulator.chassis.placed import PlacedValue
from mews.emulator.hardware.addresses import PciAddress, pcie_level
from mews.emulator.hardware.cards import gpu_profile
from mews.emulator.hardware.gpu_profile import GpuProfile
from mews.emulator.hardware.inventory import ID, DeviceSpec
from mews.emulator.hardware.pcie_tree import MOST_ROOTS, PcieRoot, PcieSwitch, PcieTree, lay_out
from mews.emulator.hardware.topology import (
    CUBE_MESH_GPUS,
    PCIE_LEVELS,
    SELF,
    LinkMatrix,
    cube_mesh_links,
    nvswitch_links,
)

CUBE_MESH, NVSWITCH = "cube-mesh", "nvswitch"
LINK_NAMES = (CUBE_MESH, NVSWITCH)
"""Matrices that a hardware file can name instead of writing them out."""

ONE_SWITCH = "PIX"
"""The level of all pairs in a server without a tree of its own."""

MAX_NUMA_NODE = 15


def read_pcie(at: PlacedValue) -> PcieTree | None:
    """Return the tree, None where none is given. Raises HardwareError."""
    if at.value is None:
        return None
    at.mapping(("roots", "switches"))
    roots = tuple(_root(item) for item in at.get("roots", []).items())
    if not 1 <= len(roots) <= MOST_ROOTS:
        raise at.get("roots", []).fail(f"a list of 1 to {MOST_ROOTS} root complexes")
    names = [root.name for root in roots]
    switches: list[PcieSwitch] = []
    for item in at.get("switches", []).items():
        switches.append(_switch(item, names))
        names.append(switches[-1].name)
    at.unique(names, "name")
    return PcieTree(roots, tuple(switches))


def _root(at: PlacedValue) -> PcieRoot:
    at.mapping(("name", "numa_node"))
    return PcieRoot(at.get("name").text(ID, "a name"), at.get("numa_node", 0).whole(-1, MAX_NUMA_NODE))


def _switch(at: PlacedValue, known: Sequence[str]) -> PcieSwitch:
    at.mapping(("name", "below"))
    below = at.get("below")
    if below.value not in known:
        raise below.fail(f"a root complex or a switch before it in the list: {', '.join(known)}")
    return PcieSwitch(at.get("name").text(ID, "a name"), below.value)


def read_place(at: PlacedValue, tree: PcieTree | None) -> str | None:
    """Return which root complex or switch a device is on. Raises HardwareError."""
    if tree is None:
        if at.value is not None:
            raise at.error("needs a tree: give the host `pcie`")
        return None
    if at.value not in tree.names():
        raise at.fail(f"one of {', '.join(tree.names())}")
    name: str = at.value
    return name


def read_layout(at: PlacedValue, tree: PcieTree | None, devices: Sequence[DeviceSpec]) -> tuple[PciAddress, ...] | None:
    """Return the devices' addresses in the tree. Raises HardwareError for a tree that has no room for them."""
    if tree is None:
        return None
    try:
        return lay_out(tree, [device.below or "" for device in devices], 0).devices
    except ValueError as error:
        raise at.error(str(error)) from error


def read_links(
    at: PlacedValue, devices: Sequence[DeviceSpec], addresses: Sequence[PciAddress] | None
) -> LinkMatrix | None:
    """Return how NVLinks join the server's GPUs: a name, or the rows of ``nvidia-smi topo -m``, whose PCIe words must
    then be those of the tree. None where nothing is said. Raises HardwareError."""
    if at.value is None:
        return None
    places = [place for place, device in enumerate(devices) if device.kind == "GPU"]
    profiles = [gpu_profile(devices[place].model) for place in places]
    if isinstance(at.value, list):
        levels = [[_level(addresses, a, b) for b in places] for a in places]
        return _within(at, LinkMatrix(_counts(at, levels)), profiles)
    if at.value == CUBE_MESH:
        if len(profiles) != CUBE_MESH_GPUS:
            raise at.error(f"{CUBE_MESH!r}: joins {CUBE_MESH_GPUS} GPUs, and the host has {len(profiles)}")
        return _within(at, cube_mesh_links(), profiles)
    if at.value == NVSWITCH:
        foreign = next((profile.name for profile in profiles if not profile.nvswitch), None)
        if foreign is not None or not profiles:
            raise at.error(f"{NVSWITCH!r}: joins GPUs that have it, and the host has {foreign or 'no GPU'}")
        return nvswitch_links([profile.nvlinks for profile in profiles])
    raise at.fail(f"one of {', '.join(LINK_NAMES)}, or a list of rows")


def _level(addresses: Sequence[PciAddress] | None, a: int, b: int) -> str:
    return ONE_SWITCH if addresses is None else pcie_level(addresses[a], addresses[b])


def _counts(at: PlacedValue, levels: Sequence[Sequence[str]]) -> tuple[tuple[int, ...], ...]:
    rows = at.items()
    if len(rows) != len(levels):
        raise at.error(f"{len(rows)} rows: must be one for each of the host's {len(levels)} GPUs")
    counts = []
    for row, nearer in zip(rows, levels, strict=True):
        words = row.items()
        if len(words) != len(levels):
            raise row.error(f"{len(words)} words: must be one for each of the host's {len(levels)} GPUs")
        pairs = zip(words, nearer, strict=True)
        counts.append(tuple(_count(word, level, word.place[-1] == row.place[-1]) for word, level in pairs))
    for a, row in enumerate(rows):
        for b in range(a):
            if counts[a][b] != counts[b][a]:
                raise row.items()[b].error(f"{counts[a][b]} NVLinks, and row {b} has {counts[b][a]}; must be the same")
    return tuple(counts)


def _count(at: PlacedValue, level: str, itself: bool) -> int:
    word = at.value.strip() if isinstance(at.value, str) else at.value
    if itself:
        if word != SELF:
            raise at.fail(f"{SELF}, the GPU itself")
        return 0
    if isinstance(word, str) and word.removeprefix("NV").isdecimal() and word.startswith("NV"):
        links = int(word.removeprefix("NV"))
        if links > 0:
            return links
    if word in PCIE_LEVELS and word != level:
        raise at.fail(f"{level}, as in the PCIe tree, or NV<n>")
    if word != level:
        raise at.fail(f"{level} or NV<n>")
    return 0


def _within(at: PlacedValue, links: LinkMatrix, profiles: Sequence[GpuProfile]) -> LinkMatrix:
    for number, (row, profile) in enumerate(zip(links.counts, profiles, strict=True)):
        if sum(row) > profile.nvlinks:
            raise at.error(f"GPU {number} has {sum(row)} NVLinks; a {profile.name} has {profile.nvlinks}")
    return links
