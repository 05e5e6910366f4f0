"""nvmlDeviceGetFieldValues: all identifiers of the header, by model."""

import ctypes

import pytest

from ci import nvml_fields
from ci.reference.nvml import fields as printed
from ci.reference.nvml import page
from mews.emulator.hardware.gpu_profiles import PROFILES
from mews.emulator.hardware.topology import cube_mesh
from mews.emulator.nvml.details import ATOMICS
from mews.emulator.nvml.recovery import recovery_action
from mews.emulator.nvml.state import NvmlEvent
from mews.emulator.telemetry.controls import BoardControls
from mews.emulator.telemetry.gpu import GpuTelemetry
from mews.emulator.telemetry.load import constant
from mews.emulator.telemetry.units import ns
from tests.emulator.nvml.hosts import gpu, uuid_of
from tests.emulator.nvml.reader import NUMBERS

NOT_SUPPORTED, INVALID, NO_PERMISSION = -3, -2, -4
ALL_LINKS = 0xFFFFFFFF


def has(names, prefix):
    return {name for name in names if name.startswith(prefix)}


def test_a_generation_has_the_fields_of_its_own(read):
    found = {}
    for model in ("V100-SXM2-32GB", "T4", "A100", "L4", "H100-SXM", "GB200", "RTX 3090"):
        read.show(gpu(0, model), switched=PROFILES[model].nvswitch)
        found[model] = read.supported()
    assert {model for model, names in found.items() if has(names, "DEV_RETIRED")} == {"V100-SXM2-32GB", "T4"}
    assert {model for model, names in found.items() if has(names, "DEV_REMAPPED")} == {
        "A100",
        "L4",
        "H100-SXM",
        "GB200",
    }
    assert {model for model, names in found.items() if "DEV_ECC_DBE_VOL_L2" in names} == {"V100-SXM2-32GB"}
    assert {model for model, names in found.items() if "DEV_POWER_AVERAGE" in names} == {
        "L4", "H100-SXM", "GB200", "RTX 3090",
    }  # fmt: skip
    assert {model for model, names in found.items() if has(names, "DEV_C2C")} == {"GB200"}
    assert {model for model, names in found.items() if "DEV_PCIE_OUTBOUND_ATOMICS_MASK" in names} == {"GB200"}
    assert {model for model, names in found.items() if has(names, "DEV_NVLINK_COUNT_")} == {"GB200"}
    assert {model for model, names in found.items() if "DEV_NVLINK_ERROR_DL_REPLAY" in names} == {"H100-SXM"}
    assert all("DEV_PERF_POLICY_POWER" in names for names in found.values())


def test_links_to_a_joined_processor_have_a_number_each(read):
    read.show(gpu(0, "GB200"))
    last = read("DEV_C2C_LINK_COUNT") - 1
    assert [read("DEV_C2C_LINK_GET_STATUS", link) for link in (0, last, last + 1)] == [1, 1, INVALID]
    assert [read("DEV_C2C_LINK_GET_MAX_BW", link) for link in (0, last, last + 1)] == [44712, 44712, INVALID]
    assert [read(f"DEV_C2C_LINK_{name}", last) for name in ("ERROR_INTR", "ERROR_REPLAY", "POWER_STATE")] == [0, 0, 0]


def test_atomic_operations_of_the_slot_have_a_bit_each(read):
    read.show(gpu(0, "GB200"))
    assert read("DEV_PCIE_OUTBOUND_ATOMICS_MASK") == 2 ** len(ATOMICS.split()) - 1


def test_limits_below_t_limit_are_signed(read):
    read.show(gpu(0, "H100-SXM"))
    assert (read("DEV_TEMPERATURE_SHUTDOWN_TLIMIT"), read("DEV_TEMPERATURE_SLOWDOWN_TLIMIT")) == (-9, -4)
    assert read("DEV_TEMPERATURE_GPU_MAX_TLIMIT") == 0


def test_a_module_has_a_scope_of_its_own(read):
    read.show(gpu(0, "GB200", power_mw=600_000))
    assert (read("DEV_POWER_INSTANT"), read("DEV_POWER_INSTANT", 1)) == (600_000, 1_350_000)
    assert (read("DEV_POWER_MAX_LIMIT"), read("DEV_POWER_MAX_LIMIT", 1)) == (1_200_000, 2_700_000)
    assert read("DEV_POWER_INSTANT", 2) == INVALID
    assert read("PWR_SMOOTHING_ENABLED") == NO_PERMISSION
    read.show(gpu(0, "H100-SXM"))
    assert read("DEV_POWER_INSTANT", 1) == NOT_SUPPORTED
    assert read("PWR_SMOOTHING_ENABLED") == NOT_SUPPORTED


def board_of(model, percent=100, **controls):
    board = GpuTelemetry(uuid_of(0), PROFILES[model], seed="1", powered=True)
    board.begin("a", constant(percent), 0)
    if controls:
        board.control(BoardControls(**controls), ns(10))
    return board


def shown(board, model, at_s):
    return gpu(0, model, record=board.record(ns(at_s)))


def test_counters_of_a_power_cap_run_while_it_holds(read):
    board, seen = board_of("A100", 60), []
    for at_s, limit_mw in ((5, None), (10, 150_000), (20, 150_000), (40, None), (60, None)):
        board.control(BoardControls(power_limit_mw=limit_mw), ns(at_s))
        read.show(shown(board, "A100", at_s), at_s=at_s, driver_version="580.105.08")
        seen.append(read("DEV_PERF_POLICY_POWER"))
        query = read.host.smi("--query-gpu=clocks_event_reasons_counters.sw_power_cap", "--format=csv,noheader")
        assert query == (0, f"{seen[-1] // 1000} us\n")
    assert seen == [0, 0, ns(10), ns(30), ns(30)]


def test_counters_run_on_within_a_file(read):
    board = board_of("A100", 60, power_limit_mw=150_000)
    read.show(gpu(0, "A100", record=board.record(ns(12), 64)), at_s=50)
    assert read("DEV_PERF_POLICY_POWER") == ns(40)


def test_locked_clocks_count_apart(read):
    model, board = "A100", board_of("A100", gpu_clocks=(210, 600))
    read.show(shown(board, model, 30), at_s=30)
    assert read("DEV_PERF_POLICY_TOTAL_APP_CLOCKS") == ns(20)
    out = (ctypes.c_ulonglong * 2)()
    assert read.calls.nvmlDeviceGetViolationStatus(read.device, 10, out) == 0
    assert out[1] == ns(20)


def test_links_carry_what_the_slot_carries_in_proportion(read):
    model, board = "H100-SXM", board_of("H100-SXM")
    read.show(shown(board, model, 100), at_s=100, switched=True)
    board_bytes = board.pcie_bytes(ns(100))
    assert read("DEV_PCIE_COUNT_TX_BYTES") == pytest.approx(board_bytes, rel=1e-6)
    one, whole = read("DEV_NVLINK_THROUGHPUT_DATA_TX", 3), read("DEV_NVLINK_THROUGHPUT_DATA_TX", ALL_LINKS)
    assert whole == 18 * one
    assert one * 1024 == pytest.approx(board_bytes * 26_562_000 / (3_938_000 * 16), rel=1e-6)
    assert read("DEV_NVLINK_THROUGHPUT_RAW_RX", 3) > one
    assert read("DEV_NVLINK_THROUGHPUT_DATA_TX", 18) == INVALID
    read.show(shown(board, model, 10), at_s=10, switched=True)
    assert read("DEV_NVLINK_THROUGHPUT_DATA_TX", 3) == pytest.approx(one / 10, rel=1e-6)


def test_links_that_are_away_are_inactive(read):
    ends = tuple(f"0000:{0x10 + other:02x}:00.0" for other in (1, 1, 2, 3, 4, 5))
    peers = [gpu(other, "V100") for other in range(1, 8) if other != 3]
    read.show(gpu(0, "V100", link_ends=ends), *peers)
    assert [read("DEV_NVLINK_GET_STATE", link) for link in range(6)] == [1, 1, 1, 0, 1, 1]
    assert [read(f"DEV_NVLINK_SPEED_MBPS_L{link}") for link in range(7)] == [25781] * 3 + [0] + [25781] * 2 + [-3]
    assert read("DEV_NVLINK_SPEED_MBPS_COMMON") == 25781
    assert read("DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL") == 0
    assert read("DEV_NVLINK_BANDWIDTH_C0_TOTAL") == NOT_SUPPORTED
    assert read("DEV_NVLINK_LINK_COUNT") == 6


def test_a_mesh_and_a_board_without_links(read):
    read.show(*(gpu(number) for number in range(8)), topology=cube_mesh())
    assert read("DEV_NVLINK_LINK_COUNT") == 6
    read.show(gpu(0, "L4"))
    assert read("DEV_NVLINK_SPEED_MBPS_COMMON") == NOT_SUPPORTED


@pytest.mark.parametrize(
    ("events", "action"),
    [
        ((), "None"),
        ((("xid", 31),), "None"),
        ((("xid", 119),), "Reset"),
        ((("xid", 94),), "Drain and Reset"),
        ((("xid", 48), ("xid", 94)), "Reset"),
        ((("xid", 119), ("unbind", 0), ("bind", 0)), "None"),
        ((("xid", 79), ("xid", 119)), "Reboot"),
    ],
)
def test_xids_ask_for_what_recovers_from_them(read, events, action):
    bus_id = gpu(0).bus_id
    ring = tuple(NvmlEvent(number, kind, bus_id, data) for number, (kind, data) in enumerate(events, 1))
    other = NvmlEvent(9, "xid", gpu(1).bus_id, 119)
    assert recovery_action((*ring, other), bus_id) == action
    read.show(gpu(0, "A100", recovery=action))
    words = ("None", "Reset", "Reboot", "Drain P2P", "Drain and Reset")
    assert read("DEV_GET_GPU_RECOVERY_ACTION") == words.index(action)


def test_the_reference_lists_which_generation_answers_each_field(read):
    assert nvml_fields.answers() == nvml_fields.ANSWERS.read_text(), "python -m ci.nvml_fields --write"
    rows = dict(printed())
    assert list(rows) == list(NUMBERS)
    assert rows["DEV_NVLINK_GET_STATE"] == "Volta, Ampere, Hopper, Blackwell"
    assert rows["DEV_C2C_LINK_COUNT"] == "Blackwell"
    assert {rows[name] for name in rows if name.startswith("DEV_RETIRED")} == {"Volta, Turing"}
    assert f"| `DEV_C2C_LINK_COUNT` | {rows['DEV_C2C_LINK_COUNT']} |" in page()
