"""nvidia-smi: its forms, its words and its exit codes."""

import re
import shutil
import xml.etree.ElementTree as tree

import pytest

from mews.emulator.hardware.gpu_profiles import PROFILES
from mews.emulator.hardware.topology import cube_mesh, nvswitch
from mews.emulator.nvml.state import EccCounts, NvmlProcess
from tests.emulator.nvml.hosts import gpu, uuid_of


@pytest.fixture
def pair(host):
    busy = gpu(1, "A100", utilization_percent=50, memory_used_mib=1234, processes=(NvmlProcess(4711, "train", 1234),))
    host.show(gpu(0), busy)
    return host


def test_the_list(pair):
    code, told = pair.smi("-L")
    assert code == 0
    assert told.splitlines() == [
        f"GPU 0: Tesla V100-PCIE-32GB (UUID: {uuid_of(0)})",
        f"GPU 1: NVIDIA A100 80GB PCIe (UUID: {uuid_of(1)})",
    ]


def test_the_table_is_straight_and_full(pair):
    code, told = pair.smi()
    assert code == 0
    lines = told.splitlines()[1:]
    assert {len(line) for line in lines} == {91, 89}
    assert "|   1  NVIDIA A100 80GB PCIe          Off |   00000000:11:00.0 Off |                    0 |" in lines
    assert (
        f"| N/A   48C    P0         {'187W':>6} / {'300W':>6} |    1234MiB /  81920MiB |     50%      Default |"
        in lines
    )
    assert f"|    1   N/A  N/A {4711:16} {'C':>6}   {'train':35} {'1234MiB':>9} |" in lines


def test_the_table_of_a_host_where_nothing_runs(host):
    host.show(gpu(0))
    assert (
        "|  No running processes found                                                             |" in host.smi()[1]
    )


def test_csv_with_header_and_units(pair):
    fields = "index,name,memory.total,power.draw,utilization.gpu,fan.speed,mig.mode.current"
    code, told = pair.smi(f"--query-gpu={fields}", "--format=csv")
    assert code == 0
    assert told.splitlines() == [
        "index, name, memory.total [MiB], power.draw [W], utilization.gpu [%], fan.speed [%], mig.mode.current",
        "0, Tesla V100-PCIE-32GB, 32768 MiB, 25.00 W, 0 %, [N/A], [N/A]",
        "1, NVIDIA A100 80GB PCIe, 81920 MiB, 187.00 W, 50 %, [N/A], Disabled",
    ]


def test_csv_without_them(pair):
    code, told = pair.smi("--query-gpu=uuid,memory.used", "--format=csv,noheader,nounits", "-i", "1")
    assert (code, told) == (0, f"{uuid_of(1)}, 1234\n")


def test_processes_as_csv(pair):
    code, told = pair.smi("--query-compute-apps=gpu_uuid,pid,name,used_memory", "--format=csv")
    assert code == 0
    assert told.splitlines() == [
        "gpu_uuid, pid, process_name, used_gpu_memory [MiB]",
        f"{uuid_of(1)}, 4711, train, 1234 MiB",
    ]


@pytest.mark.parametrize(
    "word", ["1", uuid_of(1), "00000000:11:00.0", "0000:11:00.0", "1320100000001"], ids=lambda word: word[:12]
)
def test_a_gpu_has_many_names(pair, word):
    assert pair.smi("--query-gpu=index", "--format=csv,noheader", "-i", word) == (0, "1\n")


def test_an_unknown_field_is_named(pair):
    assert pair.smi("--query-gpu=index,colour", "--format=csv") == (
        2,
        'Field "colour" is not a valid field to query.\n\n',
    )


@pytest.mark.parametrize(
    "arguments",
    [("--colour",), ("--query-gpu=index",), ("-x",), ("drain",), ("drain", "-p", "x", "-q"), ("topo",), ("-pm",)],
    ids=" ".join,
)
def test_what_is_asked_wrongly_is_said_and_is_code_2(pair, arguments):
    code, told = pair.smi(*arguments)
    assert code == 2
    assert told.endswith("Please run 'nvidia-smi -h' for help.\n")


def test_no_devices_no_driver_no_library_and_a_lost_gpu_have_their_own_codes(host, tmp_path):
    host.show()
    assert host.smi() == (6, "No devices were found\n")
    assert host.smi("-i", "7") == (6, "No devices were found\n")
    host.show(gpu(0), gpu(1, lost=True))
    lost = "Unable to determine the device handle for {}: GPU is lost.  Reboot the system to recover this GPU\n"
    address = gpu(1).bus_id
    for words in ((), ("-q", "-i", "1"), ("-q", "-i", address), ("-q", "-i", f"0000{address}")):
        assert host.smi(*words) == (15, lost.format(f"GPU1: {address}")), words
    assert host.smi("-L", "-i", "0")[0] == 0
    code, told = host.smi("-L")
    assert (code, told.splitlines(keepends=True)[1]) == (15, lost.format(f"gpu {address}")) and told.startswith(
        "GPU 0: "
    )
    for driver, which in (("550.54.15", f"GPU{address}"), ("520.61.05", f"GPU {address}")):
        host.show(gpu(0), gpu(1, lost=True), driver_version=driver)
        assert host.smi() == (15, lost.format(which))
    host.show(gpu(0, unknown_error=True))
    assert host.smi("-L") == (255, f"Unable to determine the device handle for gpu {gpu(0).bus_id}: Unknown Error\n")
    host.show(gpu(0), driver_loaded=False)
    assert host.smi("-L")[0] == 9
    host.state.write_bytes(b"mews-nvml 1 5 00000000\nwrong")
    assert host.smi("-L") == (255, "Failed to initialize NVML: Unknown Error\n")
    host.state.unlink()
    code, told = host.smi("-L")
    assert (code, told.startswith("NVIDIA-SMI has failed because it couldn't communicate")) == (9, True)
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy2((host.folder / "nvidia-smi").resolve(), alone / "nvidia-smi")
    (host.folder / "nvidia-smi").unlink()
    (host.folder / "nvidia-smi").symlink_to(alone / "nvidia-smi")
    assert host.smi("-L", LD_LIBRARY_PATH="/nowhere")[0] in (9, 12)


@pytest.mark.parametrize("model", list(PROFILES))
def test_the_details_are_the_same_tree_in_text_and_in_xml(host, model):
    host.show(gpu(0, model, ecc=EccCounts(volatile_uncorrected=3), processes=(NvmlProcess(7, "a&<b", 5),)))
    code, text = host.smi("-q")
    assert code == 0
    code, told = host.smi("-q", "-x")
    assert code == 0
    root = tree.fromstring(told)
    [one] = root.findall("gpu")
    assert one.attrib["id"] == "00000000:10:00.0"
    assert one.findtext("product_name") == PROFILES[model].name
    assert one.findtext("fb_memory_usage/total") == f"{PROFILES[model].memory_mib} MiB"
    assert one.findtext("processes/process_info/process_name") == "a&<b"
    by_unit = PROFILES[model].architecture <= 5
    counted = one.findtext(f"ecc_errors/volatile/{'double_bit/device_memory' if by_unit else 'dram_uncorrectable'}")
    assert counted == ("3" if PROFILES[model].ecc else "N/A")
    empty = {"accounted_processes", "retired_pagelist"}
    leaves = [leaf for leaf in root.iter() if len(leaf) == 0 and leaf.tag not in empty]
    assert all(leaf.text for leaf in leaves)
    only_in_xml = ("mig_devices", "pending_retirement", "power_state", "value", "supported_graphics_clock",
                   "gpu_target_temp_min", "gpu_target_temp_max")  # fmt: skip
    shown = [leaf for leaf in leaves if leaf.tag not in only_in_xml]
    assert len(re.findall(r"^\s*[A-Za-z].*: \S", text, re.MULTILINE)) == len(shown)
    asked = host.smi("-q", "-d", "SUPPORTED_CLOCKS,SUPPORTED_GPU_TARGET_TEMP")[1]
    assert "Supported Clocks\n" in asked and "GPU Target Temperature Range\n" in asked and "Fan Speed" not in asked


def test_the_matrix_of_nvlinks(host):
    host.show(*(gpu(n, numa_node=n // 4) for n in range(8)), topology=cube_mesh())
    code, told = host.smi("topo", "-m")
    rows = [line.split("\t") for line in told.splitlines()]
    assert code == 0
    assert [[word.strip() for word in row[1:9]] for row in rows[1:9]] == [list(row) for row in cube_mesh()]
    assert rows[1][9:11] == ["0-23", "0"]


def test_the_matrix_of_switches(host):
    host.show(*(gpu(n, "A100") for n in range(3)), topology=nvswitch(3), switched=True)
    rows = [line.split("\t") for line in host.smi("topo", "-m")[1].splitlines()]
    assert [row[1:4] for row in rows[1:4]] == [
        [" X ", "NV12", "NV12"],
        ["NV12", " X ", "NV12"],
        ["NV12", "NV12", " X "],
    ]


def test_a_hundred_gpus(host):
    host.show(*(gpu(n) for n in range(100)))
    code, told = host.smi("-L")
    assert (code, len(told.splitlines())) == (0, 100)
    assert host.smi("--query-gpu=count", "--format=csv,noheader", "-i", uuid_of(99)) == (0, "100\n")


@pytest.mark.parametrize(
    ("wish", "seen"),
    [
        ("all", [0, 1, 2]),
        ("none", []),
        ("1", [1]),
        ("2,0", [0, 2]),
        (uuid_of(2), [2]),
        (f"{uuid_of(2)},{uuid_of(1)}", [1, 2]),
        ("9", []),
        ("GPU-0", []),
    ],
)
def test_what_a_container_was_given_is_all_it_sees(host, wish, seen):
    host.show(*(gpu(n) for n in range(3)))
    code, told = host.smi("--query-gpu=uuid", "--format=csv,noheader", NVIDIA_VISIBLE_DEVICES=wish)
    assert code == (0 if seen else 6)
    assert [line for line in told.splitlines() if line.startswith("GPU-")] == [uuid_of(n) for n in seen]


@pytest.mark.parametrize("wish", ["void", ""])
def test_a_container_without_gpus_has_no_driver(host, wish):
    host.show(gpu(0))
    assert host.smi("-L", NVIDIA_VISIBLE_DEVICES=wish)[0] == 9


def test_the_environment_can_name_another_state(host, tmp_path):
    host.show(gpu(0))
    other = tmp_path / "other.state"
    host.state.rename(other)
    assert host.smi("-L", MEWS_NVML_STATE=str(other))[0] == 0
    assert host.smi("-L")[0] == 9
