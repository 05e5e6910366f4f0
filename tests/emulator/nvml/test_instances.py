"""What NVML tells of a GPU instance alone: GPM metrics of its load, errors of its SRAM; and fields that are cleared."""

import ctypes

import pytest

from mews.emulator.hardware.gpu_profiles import PROFILES
from mews.emulator.nvml.mig.instances import NO_MIG, MigState, compute_created, created
from mews.emulator.nvml.mig.models import mig_table
from mews.emulator.nvml.state import EccCounts, NvmlProcess
from mews.emulator.telemetry.controls import BoardControls
from mews.emulator.telemetry.gpu import GpuTelemetry
from mews.emulator.telemetry.load import constant
from mews.emulator.telemetry.units import ns
from tests.emulator.nvml.hosts import gpu, uuid_of
from tests.emulator.nvml.reader import NUMBERS, FieldValue
from tests.emulator.nvml.test_monitoring import metrics

OK, INVALID, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 0, 2, 3, 4, 6
HALF, SEVENTH = 9, 19
"""Profiles of three and of one of seven slices."""


def parts(model):
    """A GPU divided in a half and a seventh, each with one compute instance of all that it has."""
    table = mig_table(PROFILES[model])
    state = created(created(MigState(enabled=True, pending=True), table, HALF), table, SEVENTH)
    for instance, compute in zip(state.instances, (2, 0), strict=True):
        state = compute_created(state, table, uuid_of(0), instance.id, compute)
    return state


def show(read, at_s, model="H100-SXM", *, divided=True, loads=(30, 10), **more):
    """A process in each part. Returns the IDs of the half and the seventh."""
    board = GpuTelemetry(uuid_of(0), PROFILES[model], seed="1", powered=True)
    for key, percent in zip("ab", loads, strict=True):
        board.begin(key, constant(percent), 0)
    mig = parts(model) if divided else NO_MIG
    ids = [each.id for each in mig.instances] or [-1, -1]
    processes = tuple(NvmlProcess(41 + n, key, 8, "C", ids[n], 0) for n, key in enumerate("ab"))
    shown = gpu(0, model, record=board.record(ns(at_s), 8), processes=processes, mig=mig, **more)
    read.show(shown, at_s=at_s, switched=True)
    return ids


def sample(read, instance=None):
    handle = ctypes.c_void_p()
    assert read.calls.nvmlGpmSampleAlloc(ctypes.byref(handle)) == OK
    if instance is None:
        assert read.calls.nvmlGpmSampleGet(read.device, handle) == OK
    else:
        assert read.calls.nvmlGpmMigSampleGet(read.device, instance, handle) == OK
    return handle.value


def test_metrics_of_an_instance_are_of_its_processes_and_its_own_units(read):
    half, seventh = show(read, 5)
    first = [sample(read, one) for one in (None, half, seventh)]
    show(read, 6)
    second = [sample(read, one) for one in (None, half, seventh)]
    whole, of_half, of_seventh = (metrics(read, *pair, 1, 10, 20, 60) for pair in zip(first, second, strict=True))
    assert whole[1] == pytest.approx(40)
    assert of_half[1] == pytest.approx(30 / (3 / 7)) and of_seventh[1] == pytest.approx(10 / (1 / 7))
    assert of_half[10] == pytest.approx(of_half[1] / 2)
    assert of_half[20] + of_seventh[20] == pytest.approx(whole[20])
    assert of_half[20] == pytest.approx(3 * of_seventh[20])
    assert whole[60] > 0 and of_half[60] == -NOT_SUPPORTED  # NVLinks do not reach an instance
    assert metrics(read, first[1], second[2], 1) == metrics(read, first[0], second[1], 1) == INVALID


def test_an_instance_is_never_busier_than_it_can_be(read):
    half, seventh = show(read, 5, loads=(0, 100))
    first = [sample(read, one) for one in (half, seventh)]
    show(read, 6, loads=(0, 100))
    second = [sample(read, one) for one in (half, seventh)]
    assert [metrics(read, *pair, 1)[1] for pair in zip(first, second, strict=True)] == [0, 100]


def test_samples_of_instances_need_one_that_there_is(read):
    handle = ctypes.c_void_p()
    assert read.calls.nvmlGpmSampleAlloc(ctypes.byref(handle)) == OK
    half, _ = show(read, 5)
    assert read.calls.nvmlGpmMigSampleGet(read.device, 99, handle) == NOT_FOUND
    assert read.calls.nvmlGpmMigSampleGet(read.device, half, None) == INVALID
    show(read, 5, divided=False)
    assert read.calls.nvmlGpmMigSampleGet(read.device, half, handle) == NOT_SUPPORTED
    half, _ = show(read, 5, "A100")
    assert read.calls.nvmlGpmMigSampleGet(read.device, half, handle) == NOT_SUPPORTED


def test_a_mig_device_counts_uncorrectable_errors_of_its_sram_alone(read):
    show(read, 5, ecc=EccCounts(1, 2, 3, 4))
    part, count = ctypes.c_void_p(), ctypes.c_ulonglong(9)
    assert read.calls.nvmlDeviceGetMigDeviceHandleByIndex(read.device, 0, ctypes.byref(part)) == OK
    call = read.calls.nvmlDeviceGetMemoryErrorCounter
    assert (call(part, 1, 0, 7, ctypes.byref(count)), count.value) == (OK, 0)
    assert [call(part, *words, ctypes.byref(count)) for words in ((0, 0, 7), (1, 1, 7), (1, 0, 2))] == [
        NOT_SUPPORTED
    ] * 3
    assert call(part, 1, 0, 8, ctypes.byref(count)) == call(part, 1, 0, 7, None) == INVALID
    assert (call(read.device, 1, 0, 2, ctypes.byref(count)), count.value) == (OK, 2)
    show(read, 5, ecc_enabled=False)
    assert call(part, 1, 0, 7, ctypes.byref(count)) == NOT_SUPPORTED


def clear(read, *names):
    values = (FieldValue * max(len(names), 1))(*(FieldValue(NUMBERS.get(name, 9999)) for name in names))
    code = read.calls.nvmlDeviceClearFieldValues(read.device, len(names), values)
    return code, [one.result for one in values[: len(names)]]


PCIE, NVLINK = "DEV_PCIE_COUNT_CORRECTABLE_ERRORS", "DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"
ENERGY = "DEV_TOTAL_ENERGY_CONSUMPTION"


def test_counters_of_errors_can_be_cleared_and_nothing_else(read, monkeypatch):
    read.show(gpu(0, "H100-SXM"), switched=True)
    assert {PCIE, NVLINK, ENERGY} <= NUMBERS.keys()
    assert clear(read, PCIE, ENERGY, NVLINK, "none") == (OK, [OK, NOT_SUPPORTED, OK, NOT_SUPPORTED])
    assert clear(read, ENERGY) == (NOT_SUPPORTED, [NOT_SUPPORTED])
    assert clear(read) == (INVALID, [])
    assert read.calls.nvmlDeviceClearFieldValues(read.device, 1, None) == INVALID
    monkeypatch.setenv("MEWS_NVML_RIGHTS", "none")
    assert clear(read, PCIE, ENERGY) == (NO_PERMISSION, [NO_PERMISSION, NOT_SUPPORTED])
    monkeypatch.delenv("MEWS_NVML_RIGHTS")
    read.show(gpu(0, "V100"))
    assert clear(read, PCIE) == (NOT_SUPPORTED, [NOT_SUPPORTED])


def test_a_target_temperature_has_bounds_and_only_it_is_set(read):
    read.show(gpu(0, "RTX 3090"))
    told = ctypes.c_uint()
    call = read.calls.nvmlDeviceGetTemperatureThreshold
    assert [(call(read.device, kind, ctypes.byref(told)), told.value) for kind in (4, 5, 6)] == [
        (0, 65),
        (0, 83),
        (0, 91),
    ]
    assert call(read.device, 7, ctypes.byref(told)) == NOT_SUPPORTED
    wanted, setter = ctypes.c_int(70), read.calls.nvmlDeviceSetTemperatureThreshold
    assert setter(read.device, 1, ctypes.byref(wanted)) == NOT_SUPPORTED
    assert setter(read.device, 8, ctypes.byref(wanted)) == setter(read.device, 5, None) == INVALID
    assert setter(read.device, 5, ctypes.byref(ctypes.c_int(-1))) == INVALID


def test_the_time_that_a_target_temperature_takes_is_counted(read):
    board = GpuTelemetry(uuid_of(0), PROFILES["RTX 3090"], seed="1", powered=True)
    board.begin("a", constant(100), 0)
    board.control(BoardControls(target_c=65), ns(2))
    read.show(gpu(0, "RTX 3090", record=board.record(ns(2), 8)), at_s=5, driver_version="580.105.08")
    names = ("SW_THERM_SLOWDOWN", "HW_THERM_SLOWDOWN")
    assert [read(f"DEV_CLOCKS_EVENT_REASON_{name}") for name in names] == [ns(3), 0]
    assert read("DEV_PERF_POLICY_THERMAL") == ns(3)
    told = read.host.smi("--query-gpu=clocks_event_reasons_counters.sw_thermal_slowdown", "--format=csv,noheader")
    assert told == (0, "3000000 us\n")
