"""Every host of every shipped hardware file, booted, and what its files say of the PCIe tree: read from sysfs alone."""

from pathlib import Path

from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.host.entries import File, Folder, Link
from mews.emulator.host.fleet import Hosts
from mews.emulator.host.tree import HostTree
from mews.emulator.inventory_file import load_hardware

FILES = sorted((Path(__file__).parents[3] / "fixtures" / "hardware").glob("*.yaml"))
HARDWARE = {path.stem: load_hardware(path) for path in FILES}
NAMES = [(file, spec.name) for file, hardware in HARDWARE.items() for spec in hardware.hosts]
DEVICES = "sys/bus/pci/devices"


def booted(file, name):
    """That host of that shipped file."""
    hosts = Hosts(HARDWARE[file], EmulationContext(1))
    hosts.begin(0.0)
    return hosts.host(name)


def tree_of(file, name):
    return HostTree(booted(file, name))


def sysfs_path(tree, bdf):
    """The folders from the root complex down to a device, as ``readlink -f`` shows them."""
    parts = tree.target(f"{DEVICES}/{bdf}").split("/")
    return parts[parts.index("devices") + 1 :]


def sysfs_level(tree, one, other):
    """How near two devices are, by their paths and NUMA nodes alone: each switch is an upstream port and a downstream
    one, so the switches between two devices are counted by the ports on the way."""
    a, b = sysfs_path(tree, one)[:-1], sysfs_path(tree, other)[:-1]
    numa = [tree.read(f"{DEVICES}/{bdf}/numa_node") for bdf in (one, other)]
    if a[0] != b[0]:
        return "NODE" if numa[0] == numa[1] else "SYS"
    common = 0
    while common < min(len(a), len(b)) and a[common] == b[common]:
        common += 1
    if common == 1:
        return "PHB"
    ports_on_the_way = (len(a) - common) + (len(b) - common)
    return "PIX" if ports_on_the_way <= 2 and abs(len(a) - len(b)) <= 1 else "PXB"


def write_files(tree, folder):
    """The host's files as they are now, below a folder."""
    for path, node in tree.walk():
        there = folder / path
        if isinstance(node, Folder):
            there.mkdir()
        elif isinstance(node, Link):
            there.symlink_to(node.target)
        elif isinstance(node, File):
            there.write_bytes(node.read())
