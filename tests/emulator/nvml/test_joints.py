"""How GPUs are joined, through the library and nvidia-smi: on every shipped host as its sysfs has it."""

import json

import pytest

from mews.emulator.host.nvml_view import nvml_host
from mews.emulator.nvml.state import state_beside, write_state
from tests.emulator.host.fixture_hosts import DEVICES, NAMES, sysfs_level, tree_of, write_files
from tests.emulator.nvml.hosts import Host

pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed; pip install 'falcon-mews[test]' brings it")

ASK = """
import json
import pynvml as p
p.nvmlInit()
h = [p.nvmlDeviceGetHandleByIndex(i) for i in range(p.nvmlDeviceGetCount())]
bus = [p.nvmlDeviceGetPciInfo(one).busId[4:].lower() for one in h]
def links(one):
    ends = []
    for link in range(18):
        try:
            if p.nvmlDeviceGetNvLinkState(one, link):
                switch = p.nvmlDeviceGetNvLinkRemoteDeviceType(one, link) == 2
                ends.append("switch" if switch else p.nvmlDeviceGetNvLinkRemotePciInfo(one, link).busId[4:].lower())
        except p.NVMLError:
            break
    return ends
print(json.dumps({
    "bus": bus,
    "levels": [[p.nvmlDeviceGetTopologyCommonAncestor(a, b) for b in h] for a in h],
    "links": [links(one) for one in h],
}))
"""
LEVELS = {"X": 0, "PIX": 10, "PXB": 20, "PHB": 30, "NODE": 40, "SYS": 50}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The library and nvidia-smi, for one host after the other."""
    return Host(tmp_path_factory.mktemp("nvml") / "host")


def _smi_matrix(host, count):
    code, told = host.smi("topo", "-m")
    assert code == 0
    rows = [line.split("\t") for line in told.splitlines()]
    return [[word.strip() for word in row[1 : count + 1]] for row in rows[1 : count + 1]]


def _count(ends, one, other):
    return sum(end == other for end in ends[one]) or min(sum(end == "switch" for end in ends[n]) for n in (one, other))


@pytest.mark.parametrize(("file", "name"), NAMES)
def test_sysfs_nvml_and_nvidia_smi_agree_on_every_pair_of_every_shipped_host(folder, file, name):
    tree = tree_of(file, name)
    shown = nvml_host(tree.host)
    if not shown.gpus:
        return
    write_state(folder.state, shown)
    told = json.loads(folder.python(ASK))
    smi = _smi_matrix(folder, len(shown.gpus))
    ends = dict(zip(told["bus"], told["links"], strict=True))
    assert told["bus"] == [gpu.bus_id for gpu in shown.gpus]
    for a, one in enumerate(told["bus"]):
        for b, other in enumerate(told["bus"]):
            level = "X" if a == b else sysfs_level(tree, one, other)
            links = 0 if a == b else _count(ends, one, other)
            assert told["levels"][a][b] == LEVELS[level]
            assert smi[a][b] == (f"NV{links}" if links else level) == shown.topology[a][b]


def test_a_link_whose_gpu_is_away_keeps_its_number_and_is_inactive(folder):
    tree = tree_of("seed-004", "cube-mesh")
    write_state(folder.state, nvml_host(tree.host))
    before = folder.smi("nvlink", "-s", "-i", "0")[1]
    tree.write(f"{DEVICES}/{tree.host.bus.holding('1').bdf}/remove", "1", 0.0)
    write_state(folder.state, nvml_host(tree.host))
    after = folder.smi("nvlink", "-s", "-i", "0")[1]
    assert before.count("25.781 GB/s") == 6
    assert [line.partition(":")[2].strip() for line in after.splitlines()[1:]] == ["<inactive>", *["25.781 GB/s"] * 5]
    assert _smi_matrix(folder, 7)[0] == ["X", "NV1", "NV2", "NV2", "SYS", "SYS", "SYS"]


@pytest.mark.parametrize("name", ["cube-mesh", "nvswitch"])
def test_nvidia_smi_shows_how_near_the_adapters_are(folder, tmp_path, name):
    tree = tree_of("seed-004", name)
    write_state(folder.state, nvml_host(tree.host))
    write_files(tree, tmp_path)
    code, told = folder.smi("topo", "-m", MEWS_HOST_ROOT=str(tmp_path))
    buses = [gpu.bus_id for gpu in nvml_host(tree.host).gpus]
    nics = [f.bdf for f in tree.host.bus.functions() if f.rdma is not None]
    rows = [line.split("\t") for line in told.splitlines()]
    assert code == 0
    assert rows[0][1 : len(buses) + len(nics) + 1] == [
        *(f"GPU{n}" for n in range(len(buses))),
        *(f"NIC{n}" for n in range(len(nics))),
    ]
    for a, one in enumerate([*buses, *nics]):
        for b, other in enumerate([*buses, *nics]):
            if max(a, b) >= len(buses) and a != b:
                assert rows[a + 1][b + 1] == sysfs_level(tree, one, other)
    assert f"  NIC{len(nics) - 1}: mlx5_{len(nics) - 1}" in told.splitlines()


def test_adapters_of_another_machine_are_not_shown(folder, tmp_path):
    tree = tree_of("seed-004", "cube-mesh")
    write_files(tree, tmp_path)
    write_state(folder.state, nvml_host(tree_of("demo", "host-1").host))
    assert "NIC" not in folder.smi("topo", "-m", MEWS_HOST_ROOT=str(tmp_path))[1]


def test_a_state_whose_levels_do_not_fit_is_no_driver(folder):
    shown = nvml_host(tree_of("seed-004", "cube-mesh").host)
    with pytest.raises(ValueError, match="1 rows for 8 GPUs"):
        write_state(state_beside(folder.folder), type(shown)(gpus=shown.gpus, levels=(("X",),)))
