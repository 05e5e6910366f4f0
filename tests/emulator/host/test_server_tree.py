"""A server's PCIe tree and links: the same in sysfs, in NVML's matrix and in what the hardware file says."""

import shutil
import subprocess
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mews.emulator.hardware.addresses import pcie_level
from mews.emulator.hardware.bandwidth import GpuLinkRate, pairwise_bandwidth, smallest_and_sum
from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.hardware.pcie_tree import PcieRoot, PcieSwitch, PcieTree, lay_out
from mews.emulator.hardware.topology import cube_mesh, nvswitch
from mews.emulator.host.entries import Link
from mews.emulator.host.fleet import Hosts
from mews.emulator.host.nvml_view import nvml_host
from mews.emulator.host.tree import HostTree
from mews.emulator.inventory.reading import parse_hardware
from tests.emulator.host.fixture_hosts import DEVICES, NAMES, booted, sysfs_level, sysfs_path, tree_of, write_files


@pytest.mark.parametrize(("file", "name"), NAMES)
def test_sysfs_nvml_and_the_matrix_agree_on_every_pair_of_every_shipped_host(file, name):
    tree = tree_of(file, name)
    shown = nvml_host(tree.host)
    for a, one in enumerate(shown.gpus):
        for b, other in enumerate(shown.gpus):
            level = "X" if a == b else sysfs_level(tree, one.bus_id, other.bus_id)
            assert shown.levels[a][b] == level
            assert shown.topology[a][b] in (level, shown.topology[b][a])
            assert shown.topology[a][b] == level or shown.topology[a][b].startswith("NV")
        numa = int(tree.read(f"{DEVICES}/{one.bus_id}/numa_node"))
        assert one.numa_node == numa
        assert tree.read(f"{DEVICES}/{one.bus_id}/local_cpulist").decode().strip() == one.cpus


@pytest.mark.parametrize(("file", "name"), NAMES)
def test_every_link_of_every_shipped_host_leads_somewhere_and_bridges_have_their_devices_buses(file, name):
    tree = tree_of(file, name)
    for path, node in tree.walk():
        if isinstance(node, Link):
            tree.find(path)
    for bdf in tree.names(DEVICES):
        bus = int(bdf.split(":")[1], 16)
        for bridge in sysfs_path(tree, bdf)[1:-1]:
            secondary = int(tree.read(f"{DEVICES}/{bridge}/secondary_bus_number"))
            last = int(tree.read(f"{DEVICES}/{bridge}/subordinate_bus_number"))
            config = tree.read(f"{DEVICES}/{bridge}/config")
            assert secondary <= bus <= last
            assert tuple(config[0x18:0x1B]) == (int(bridge.split(":")[1], 16), secondary, last)


def test_the_cube_mesh_and_the_switches_are_joined_as_their_data_sheets_say():
    mesh, switched = nvml_host(booted("seed-004", "cube-mesh")), nvml_host(booted("seed-004", "nvswitch"))
    assert (mesh.topology, mesh.switched) == (cube_mesh(), False)
    assert (switched.topology, switched.switched) == (nvswitch(8), True)
    assert [len(gpu.link_ends) for gpu in mesh.gpus] == [6] * 8


def test_the_four_gpus_meet_on_every_level_of_pcie():
    assert nvml_host(booted("seed-004", "four")).topology[0] == ("X", "PIX", "PHB", "SYS")


def test_adapters_are_on_the_switches_of_the_gpus_or_beside_them():
    host, tree = booted("seed-004", "cube-mesh"), tree_of("seed-004", "cube-mesh")
    levels = {n: sysfs_level(tree, host.bus.holding(str(n)).bdf, host.bus.holding("nic-0").bdf) for n in range(8)}
    assert levels == {0: "PIX", 1: "PIX", 2: "PHB", 3: "PHB", 4: "SYS", 5: "SYS", 6: "SYS", 7: "SYS"}
    host, tree = booted("seed-004", "nvswitch"), tree_of("seed-004", "nvswitch")
    assert sysfs_level(tree, host.bus.holding("0").bdf, host.bus.holding("nic-1").bdf) == "PXB"
    assert {int(tree.read(f"{DEVICES}/{host.bus.holding(str(n)).bdf}/numa_node")) for n in (0, 2, 4, 6)} == {3, 1, 7, 5}


def test_a_lent_gpu_that_comes_is_at_its_ports_place_and_has_no_links_with_those_of_the_server():
    document = {
        "apiVersion": "mews/v1",
        "kind": "Hardware",
        "metadata": {"name": "mixed"},
        "hosts": [
            {
                "name": "host-1",
                "pcie": {"roots": [{"name": "socket-1", "numa_node": 1}]},
                "links": [["X", "NV2"], ["NV2", "X"]],
                "devices": [
                    {"id": str(n), "uuid": f"GPU-own-{n}", "model": "V100-SXM2-16GB", "below": "socket-1"}
                    for n in (0, 1)
                ],
            }
        ],
        "chassis": [{"name": "A", "slots": 1, "ports": {"1": "host-1"}, "devices": [{"id": "9", "uuid": "GPU-lent"}]}],
    }
    hosts = Hosts(parse_hardware(document, "test"), EmulationContext(0))
    hosts.begin(0.0)
    host = hosts.host("host-1")
    before = [(gpu.uuid, gpu.bus_id) for gpu in nvml_host(host).gpus]
    fields = {"device": "9", "old_port": None, "new_port": "1", "cause": "edit"}
    hosts.on_event("A", 1, "table-changed", fields, 1.0)
    shown, tree = nvml_host(host), HostTree(host)
    assert [(gpu.uuid, gpu.bus_id) for gpu in shown.gpus] == [("GPU-lent", "0000:20:00.0"), *before]
    assert sysfs_path(tree, "0000:20:00.0")[0] == "pci0000:00"
    assert {sysfs_path(tree, bus)[0] for _, bus in before} == {"pci0001:00"}
    assert shown.topology == (("X", "SYS", "SYS"), ("SYS", "X", "NV2"), ("SYS", "NV2", "X"))
    hosts.on_event("A", 2, "table-changed", {**fields, "old_port": "1", "new_port": None}, 2.0)
    assert [(gpu.uuid, gpu.bus_id) for gpu in nvml_host(host).gpus] == before


def test_a_gpu_of_the_mesh_that_goes_leaves_the_others_links_and_their_numbers():
    tree = tree_of("seed-004", "cube-mesh")
    ends = nvml_host(tree.host).gpus[0].link_ends
    gone = tree.host.bus.holding("1").bdf
    assert tree.write(f"{DEVICES}/{gone}/remove", "1", 0.0).done
    shown = nvml_host(tree.host)
    assert shown.topology[0] == ("X", "NV1", "NV2", "NV2", "SYS", "SYS", "SYS")
    assert shown.gpus[0].link_ends == ends
    assert tree.write("sys/bus/pci/rescan", "1", 0.0).done
    assert nvml_host(tree.host).topology == cube_mesh()
    assert tree.host.bus.holding("1").bdf == gone


def test_what_a_server_says_of_its_gpus_has_the_bandwidth_of_each_pair():
    said = booted("seed-004", "cube-mesh").view()["topology"]
    one = said["bandwidth_gb_s"]["GPU-cube-mesh-0"]
    assert said["gpus"] == [f"GPU-cube-mesh-{n}" for n in range(8)]
    assert said["matrix"] == [list(row) for row in cube_mesh()]
    assert (one["GPU-cube-mesh-1"], one["GPU-cube-mesh-3"], one["GPU-cube-mesh-7"]) == (25.0, 50.0, 7.88)
    assert "topology" not in booted("demo", "host-1").view()


# Layouts of chance


@st.composite
def trees(draw):
    roots = tuple(PcieRoot(f"root-{n}", draw(st.integers(-1, 3))) for n in range(draw(st.integers(1, 4))))
    switches = []
    for n in range(draw(st.integers(0, 6))):
        names = [one.name for one in (*roots, *switches)]
        switches.append(PcieSwitch(f"switch-{n}", draw(st.sampled_from(names))))
    tree = PcieTree(roots, tuple(switches))
    return tree, draw(st.lists(st.sampled_from(tree.names()), max_size=12))


def _switches_above(tree, name):
    below = {switch.name: switch.below for switch in tree.switches}
    way = [name]
    while way[-1] in below:
        way.append(below[way[-1]])
    return way


def _level_by_names(tree, one, other):
    """PCIe levels from the names in the tree, by NVML's definitions."""
    a, b = _switches_above(tree, one), _switches_above(tree, other)
    if a[-1] != b[-1]:
        numa = {root.name: root.numa_node for root in tree.roots}
        return "NODE" if numa[a[-1]] == numa[b[-1]] else "SYS"
    shared = [name for name in a[:-1] if name in b[:-1]]
    if not shared:
        return "PHB"
    between = {name for name in (*a[:-1], *b[:-1]) if name not in shared}
    return "PIX" if not between else "PXB"


@given(trees(), st.integers(0, 3))
def test_any_tree_is_numbered_as_a_kernel_would(given_tree, domain):
    tree, places = given_tree
    layout = lay_out(tree, places, domain)
    ways = [*(address.above for address in layout.devices), *layout.switches]
    bridges = {bridge.bdf: bridge for way in ways for bridge in way}
    assert len({address.bdf for address in layout.devices} | bridges.keys()) == len(places) + len(bridges)
    assert len(layout.switches) == len(tree.switches)
    for address, place in zip(layout.devices, places, strict=True):
        assert len(address.above) == 2 * len(_switches_above(tree, place)) - 1
        assert address.numa_node == next(r.numa_node for r in tree.roots if r.name == _switches_above(tree, place)[-1])
        assert int(address.bdf.split(":")[1], 16) == address.above[-1].secondary
    for way in ways:
        for upper, lower in pairwise(way):
            assert int(lower.bdf.split(":")[1], 16) == upper.secondary < lower.secondary <= lower.last <= upper.last
    secondaries = [bridge.secondary for bridge in bridges.values()]
    assert len(set(secondaries)) == len(secondaries)


@given(trees())
def test_levels_are_those_of_the_switches_between(given_tree):
    tree, places = given_tree
    devices = lay_out(tree, places, 0).devices
    for a, one in enumerate(devices):
        for b, other in enumerate(devices):
            if a != b:
                assert pcie_level(one, other) == _level_by_names(tree, places[a], places[b])


def test_a_root_complex_without_room_says_so():
    with pytest.raises(ValueError, match="socket-0: has 40 ports; at most 31"):
        lay_out(PcieTree((PcieRoot("socket-0"),)), ["socket-0"] * 40, 0)
    with pytest.raises(ValueError, match="root-0: takes 66 buses, and each of 4 root complexes has 64"):
        roots = tuple(PcieRoot(f"root-{n}") for n in range(4))
        lay_out(PcieTree(roots, (PcieSwitch("s", "root-0"),)), ["s"] * 63, 0)


# Bandwidth


def test_bandwidth_follows_the_matrix():
    rates = (GpuLinkRate(25.0, 16.0), GpuLinkRate(20.0, 32.0), GpuLinkRate(25.0, 8.0))
    matrix = (("X", "NV2", "PIX"), ("NV2", "X", "SYS"), ("PIX", "SYS", "X"))
    assert pairwise_bandwidth(matrix, rates) == ((0.0, 40.0, 8.0), (40.0, 0.0, 4.0), (8.0, 4.0, 0.0))


def test_a_nearer_level_is_faster():
    rates = (GpuLinkRate(25.0, 16.0),) * 2
    words = ("SYS", "NODE", "PHB", "PXB", "PIX", "NV1", "NV2")
    found = [pairwise_bandwidth((("X", word), (word, "X")), rates)[0][1] for word in words]
    assert found == sorted(set(found))


@pytest.mark.parametrize(("matrix", "said"), [((("X",),), "1 rows for 2 GPUs"), ((("X", "NVX"), ("X", "X")), "'NVX'")])
def test_a_matrix_that_is_none_has_no_bandwidth(matrix, said):
    with pytest.raises(ValueError, match=said):
        pairwise_bandwidth(matrix, (GpuLinkRate(25.0, 16.0),) * 2)


def test_a_choice_is_ranked_by_its_slowest_pair_and_then_by_their_sum():
    mesh = pairwise_bandwidth(cube_mesh(), (GpuLinkRate(25.0, 16.0),) * 8)
    assert smallest_and_sum(mesh, (0, 3)) > smallest_and_sum(mesh, (0, 1)) > smallest_and_sum(mesh, (0, 7))
    assert smallest_and_sum(mesh, (0, 1, 2, 3)) == (25.0, 225.0)
    assert smallest_and_sum(mesh, (5,)) == (float("inf"), 0.0)


# lspci


@pytest.mark.skipif(shutil.which("lspci") is None, reason="lspci is not installed (Debian: apt install pciutils)")
def test_lspci_draws_the_tree(tmp_path):
    tree = tree_of("seed-004", "four")
    write_files(tree, tmp_path)
    command = ["lspci", "-A", "linux-sysfs", "-O", f"sysfs.path={tmp_path}/sys/bus/pci", "-t", "-n"]
    drawn = subprocess.run(command, capture_output=True, text=True, check=True)
    assert drawn.stderr == ""
    assert [line.rstrip() for line in drawn.stdout.splitlines()] == [
        "-+-[0000:00]-+-01.0-[01-04]----00.0-[02-04]--+-00.0-[03]----00.0",
        " |           |                               \\-01.0-[04]----00.0",
        " |           \\-02.0-[05]----00.0",
        " \\-[0000:80]---01.0-[81]----00.0",
    ]


@pytest.mark.skipif(shutil.which("lspci") is None, reason="lspci is not installed (Debian: apt install pciutils)")
def test_lspci_reads_virtual_functions_and_their_capability(tmp_path):
    tree = tree_of("seed-004", "rdma-fpga")
    bdf = tree.host.bus.holding("nic-0").bdf
    tree.write(f"{DEVICES}/{bdf}/sriov_numvfs", "2", 0.0)
    write_files(tree, tmp_path)
    command = ["lspci", "-A", "linux-sysfs", "-O", f"sysfs.path={tmp_path}/sys/bus/pci", "-D", "-n"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [line.split()[2] for line in listed.splitlines() if " 0207: " in line] == [
        "15b3:101b",
        "15b3:101c",
        "15b3:101c",
    ]
    said = subprocess.run([*command, "-vv", "-s", bdf], capture_output=True, text=True, check=True).stdout
    assert "Single Root I/O Virtualization (SR-IOV)" in said
    assert "Initial VFs: 8, Total VFs: 8, Number of VFs: 2" in said
    assert "VF offset: 1, stride: 1, Device ID: 101c" in said
