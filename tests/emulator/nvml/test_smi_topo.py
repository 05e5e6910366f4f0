"""nvidia-smi topo and nvlink: what is near a GPU, and what is known of each of its links."""

import re

import pytest
from msgspec.structs import replace

from mews.emulator.hardware.topology import cube_mesh
from mews.emulator.nvml.requests import Return, SetGpu
from tests.emulator.nvml.hosts import gpu, uuid_of
from tests.emulator.nvml.test_hotplug import Driver

LEVELS = tuple(tuple(row.split()) for row in ("X PIX PXB SYS", "PIX X PHB SYS", "PXB PHB X NODE", "SYS SYS NODE X"))


@pytest.fixture
def four(host):
    host.show(*(gpu(number, numa_node=number // 2) for number in range(4)), topology=LEVELS)
    return host


NEAREST = {
    "0": "to no device.", "1": "to device(s): 1.", "2": "to device(s): 2.", "3": "to no device.",
    "4": "to no device.", "5": "to device(s): 3.",
}  # fmt: skip


def test_topo_names_the_gpus_that_one_reaches_by_a_path(four):
    for path, told in NEAREST.items():
        code, text = four.smi("topo", "-n", path, "-i", "0")
        assert code == 0 and text.startswith("Device 0 is connected by way of ") and text.endswith(f"{told}\n"), path
    assert "multiple PCIe switches to device(s): 2." in four.smi("topo", "--nearest_gpus=2", "--id=0")[1]
    assert four.smi("topo", "-n", "5", "-i", "1")[1].endswith("to device(s): 3.\n")


@pytest.mark.parametrize(("pair", "told"), [
    ("0,1", "a single PCIe switch"), ("0,2", "multiple PCIe switches"), ("2,1", "a PCIe host bridge"),
    ("2,3", "an interconnect between PCIe host bridges"), ("3,0", "an SMP interconnect link between NUMA nodes"),
])  # fmt: skip
def test_topo_tells_the_path_between_two_gpus(four, pair, told):
    one, other = sorted(pair.split(","))
    assert four.smi("topo", "-p", "-i", pair) == (0, f"Device {one} is connected to device {other} by way of {told}.\n")


def test_topo_tells_the_nodes_near_a_gpu_as_launchers_read_them(host):
    host.show(gpu(0, numa_node=1), gpu(1, numa_node=-1), gpu(2, "GB200", numa_node=0))
    assert host.smi("topo", "-C", "-M", "-i", "0") == (
        0, "NUMA IDs of closest CPU: 1\nNUMA IDs of closest memory: 1\n"
    )  # fmt: skip
    assert host.smi("topo", "-M", "-i", "1") == (0, "NUMA IDs of closest memory: N/A\n")
    assert host.smi("topo", "-gnid", "-i", "0") == (0, "NUMA ID of GPU: N/A\n")
    assert host.smi("topo", "--gpu-numa-id", "-i", "2") == (0, "NUMA ID of GPU: 18\n")
    rows = [line.split("\t") for line in host.smi("topo", "-m")[1].splitlines()]
    assert [row[-3:] for row in rows[1:4]] == [["1", "", "N/A"], ["N/A", "", "N/A"], ["0", "", "18"]]


@pytest.mark.parametrize("words", [
    (), ("-p2p",), ("-p2p", "x"), ("-p2p", ""), ("-c", "x"), ("-m", "now"), ("-n", "1"), ("-m", "-mp"), ("-i", "0"),
    ("-n", "6", "-i", "0"), ("-n", "1", "-i", "0,1"), ("-p", "-i", "0"), ("-p", "-i", "0,1,2"), ("-C",), ("-C", "-C"),
    ("-C", "-p", "-i", "0"), ("-gnid", "-i", "0,1"),
])  # fmt: skip
def test_topo_says_what_it_needs(four, words):
    code, text = four.smi("topo", *words)
    assert code == 2 and text.count("\n") == 1, text


def links_of(text):
    return re.findall(r"Link (\d+): Remote Device (\S+): Link (\S+)", text)


def test_nvlink_names_the_links_at_the_other_end_both_ways(host):
    host.show(*(gpu(number) for number in range(8)), topology=cube_mesh())
    ends = {number: links_of(host.smi("nvlink", "-R", "-i", str(number))[1]) for number in range(8)}
    assert all(len(links) == 6 for links in ends.values())
    for number, links in ends.items():
        for link, bus_id, there in links:
            other = int(bus_id.split(":")[1], 16) - 0x10
            back = ends[other][int(there)]
            assert back == (there, f"00000000:{0x10 + number:02X}:00.0", link)


def test_a_link_to_a_gpu_that_is_away_has_no_number_there(host):
    host.show(gpu(0, link_ends=("0000:11:00.0", "0000:99:00.0")), gpu(1, link_ends=("0000:77:00.0", "0000:10:00.0")))
    assert links_of(host.smi("nvlink", "--remotelinkinfo", "-i", "0")[1]) == [
        ("0", "00000000:11:00.0", "1"), ("1", "00000000:99:00.0", "N/A"),
    ]  # fmt: skip


def test_links_of_blackwell_count_packets_and_earlier_ones_errors_by_lane(host):
    host.show(gpu(0, "B200"), gpu(1, "H100-SXM"), gpu(2, "A100-SXM4-80GB"), switched=True)
    told = re.findall(r"Link 0: (.+): (\S+)", host.smi("nvlink", "-e", "-i", "0", "-l", "0")[1])
    assert [name for name, _ in told[:6]] == [
        "Tx packets", "Tx bytes", "Rx packets", "Rx bytes", "Malformed packet Errors", "Buffer overrun Errors",
    ]  # fmt: skip
    assert dict(told)["Symbol BER"] == "15e-255"
    assert [name for name, _ in told[-2:]] == ["FEC Errors - 14", "FEC Errors - 15"]
    lanes = {i: host.smi("nvlink", "-ec", "-i", str(i), "-l", "3")[1].splitlines()[1:] for i in range(3)}
    assert lanes[0] == ["\t Link 3: N/A"]
    assert lanes[1] == [f"\t Link 3, Lane {lane}: CRC Errors: 0" for lane in range(2)]
    assert len(lanes[2]) == 4


def test_links_sleep_from_hopper_on(host):
    host.show(gpu(0, "H100-SXM"), gpu(1, "A100-SXM4-80GB"), switched=True)
    lines = host.smi("nvlink", "-gLowPwrInfo")[1].splitlines()
    assert lines[1] == "\t Low Power Threshold Range: 1 to 8191, in units of 100 us"
    assert lines[2] == "\t Link 0: Power State: High Speed, Low Power Threshold: 8191"
    assert lines[-1] == "\t Link 11: Low Power Threshold: N/A"


def test_the_time_before_links_sleep_is_set_and_read(host):
    host.show(gpu(0, "H100-SXM", link_threshold=500), gpu(1, "A100-SXM4-80GB"), switched=True)
    assert "\t Link 0: Power State: High Speed, Low Power Threshold: 500\n" in host.smi("nvlink", "-gLowPwrInfo")[1]
    with Driver(host) as driver:
        code, text = host.smi("nvlink", "-sLowPwrThres", "700", "-i", "0")
        assert (code, text.splitlines()[1:]) == (0, ["\t Low Power Threshold was set"])
        assert host.smi("nvlink", "--setLowPowerThreshold=4294967295", "-i", "0")[0] == 0
        code, text = host.smi("nvlink", "-sLowPwrThres", "700", "-i", "1")
        assert (code, text.splitlines()[1:]) == (3, ["\t Unable to set Low Power Threshold: Not Supported"])
    asked = [request for request in driver.asked if isinstance(request, SetGpu)]
    bus = "0000:10:00.0"
    assert asked == [SetGpu(bus, "nvlink-threshold", (700,)), SetGpu(bus, "nvlink-threshold")]
    for wrong in ("", "x", "-1", "4294967296"):
        assert "Usage: nvlink" in host.smi("nvlink", "-sLowPwrThres", wrong)[1]


@pytest.mark.parametrize(
    ("mode", "name", "active"), [(0, "FULL", 18), (1, "OFF", 0), (2, "MIN", 5), (3, "HALF", 9), (4, "3QUARTER", 14)]
)
def test_a_bandwidth_mode_leaves_some_links_in_use(host, mode, name, active):
    host.show(*(gpu(number, "H100-SXM", link_bandwidth=mode) for number in range(2)), switched=True)
    assert host.smi("nvlink", "-gBwMode") == (0, f"NvLink bandwidth mode: {name}\n")
    assert host.smi("nvlink", "-s", "-i", "0")[1].count("26.562 GB/s") == active
    assert host.smi("nvlink", "-s", "-i", "0")[1].count("<inactive>") == 18 - active
    with Driver(host) as driver:
        assert host.smi("nvlink", "-sBwMode", name) == (0, f"Set NvLink bandwidth mode to {name}\n")
    assert SetGpu("0000:10:00.0", "nvlink-bandwidth", (mode,)) in driver.asked


def test_a_time_out_of_range_is_refused_by_the_host(host):
    host.show(gpu(0, "H100-SXM"), switched=True)
    with Driver(host, {SetGpu: Return.INVALID_ARGUMENT}):
        code, text = host.smi("nvlink", "-sLowPwrThres", "9000")
    assert (code, text.splitlines()[1:]) == (2, ["\t Unable to set Low Power Threshold: Invalid Argument"])


def test_a_bandwidth_mode_is_refused_in_the_words_of_the_library(host):
    host.show(gpu(0, "H100-SXM"), switched=True)
    with Driver(host, {SetGpu: Return.IN_USE}):
        assert host.smi("nvlink", "-sBwMode", "HALF")[1].startswith("Unable to set NvLink bandwidth mode: ")
    assert host.smi("nvlink", "-sBwMode", "HALF", MEWS_NVML_RIGHTS="none")[0] == 4
    assert "Usage: nvlink" in host.smi("nvlink", "-sBwMode", "5")[1]
    host.show(gpu(0, "B200"), switched=True)
    assert host.smi("nvlink", "-sBwMode", "HALF")[0] == 3


@pytest.mark.parametrize(("model", "rights", "told"), [
    ("H100-SXM", "", (0, "NvLink bandwidth mode: FULL\n")),
    ("H100-SXM", "none", (4, "Unable to read nvlink bandwidth mode\n")),
    ("B200", "", (0, f"GPU 0: NVIDIA B200 (UUID: {uuid_of(0)})\n\t NvLink bandwidth mode: FULL\n")),
    ("A100-SXM4-80GB", "", (3, "Getting nvlink bandwidth mode is not supported\n")),
])  # fmt: skip
def test_the_bandwidth_mode_is_that_of_hosts_of_hopper_boards_and_for_root(host, model, rights, told):
    host.show(gpu(0, model), switched=True)
    assert host.smi("nvlink", "-gBwMode", MEWS_NVML_RIGHTS=rights) == told


def test_later_boards_have_a_bandwidth_mode_of_their_own(host):
    boards = [gpu(0, "B200", link_bandwidth=3), gpu(1, "B200"), gpu(2, "L40S")]
    host.show(*boards, switched=True)
    code, text = host.smi("nvlink", "-gBwMode")
    assert code == 0 and text.splitlines()[1::2] == ["\t NvLink bandwidth mode: HALF", "\t NvLink bandwidth mode: FULL"]
    assert [host.smi("nvlink", "-s", "-i", str(number))[1].count("53.125 GB/s") for number in range(2)] == [9, 18]
    code, text = host.smi("nvlink", "-sBwMode", "values", "-i", "0")
    assert code == 0 and text.splitlines()[1:] == ["\t FULL", "\t OFF", "\t MIN", "\t HALF", "\t 3QUARTER"]
    with Driver(host) as driver:
        assert host.smi("nvlink", "-sBwMode", "MIN", "-i", "1")[0] == 0
        assert host.smi("nvlink", "-sBwMode", "MIN", "-i", "2")[0] == 3
    asked = [request for request in driver.asked if isinstance(request, SetGpu)]
    assert asked == [SetGpu("0000:11:00.0", "nvlink-own-bandwidth", (2,))]
    assert host.smi("nvlink", "-sBwMode", "MIN", "-i", "1", MEWS_NVML_RIGHTS="none")[0] == 4


@pytest.mark.parametrize("words", [(), ("-s", "-c"), ("-gt", "x"), ("-l", "x", "-s"), ("-q",), ("-R", "-ec")])
def test_nvlink_shows_one_thing_at_a_time(host, words):
    host.show(gpu(0))
    code, text = host.smi("nvlink", *words)
    assert code == 2 and "Usage: nvlink" in text


def test_a_gpu_without_numa_node_is_near_no_memory(host):
    host.show(replace(gpu(0), numa_node=-1))
    assert host.smi("topo", "-C", "-i", "0") == (0, "NUMA IDs of closest CPU: N/A\n")


def test_c2c_shows_links_to_a_joined_processor(host):
    host.show(gpu(0, "GB200"), gpu(1, "GB200"), gpu(2, "H100-SXM"))
    code, text = host.smi("c2c", "-s")
    first, *links = text.splitlines()[:6]
    assert code == 0 and first == f"GPU 0: NVIDIA GB200 (UUID: {uuid_of(0)})"
    assert links == [f"\t C2C Link {number}: 44.712 GB/s" for number in range(5)]
    assert text.count("GPU ") == 2 and text.count("C2C Link") == 10
    assert host.smi("c2c", "--status", "-i", "1")[1].startswith("GPU 1: ")
    assert host.smi("c2c", "-s", "-i", "2") == (3, "No Devices support C2C.\n")
    for words in ((), ("-i", "0"), ("-s", "-x"), ("-s", "-i")):
        assert host.smi("c2c", *words)[1].startswith("Usage: c2c -s")
