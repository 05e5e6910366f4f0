"""The library evaluates spans as the core does: the same numbers at the same time."""

import ctypes
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mews.emulator.hardware.gpu_profiles import PROFILES
from mews.emulator.nvml.library import LIBRARY
from mews.emulator.nvml.state import NvmlHost, NvmlProcess, StateClock, write_state
from mews.emulator.telemetry.gpu import DriverCounts, GpuTelemetry
from mews.emulator.telemetry.load import constant, parse_load
from mews.emulator.telemetry.units import ns
from tests.emulator.nvml.hosts import gpu

CURVE = parse_load({"curve": [[0, 10], [20, 90], [45, 0], [50, 100]], "repeat_s": 90})
LOADS = {"a": CURVE, "b": constant(30, 512), "c": parse_load({"walk": {"every_s": 11, "step": 30}})}


class Library:
    """The library in this process; time stands still where the state says so."""

    def __init__(self, host):
        self.host = host
        self.calls = ctypes.CDLL(str(host.folder / LIBRARY))
        self.device = ctypes.c_void_p()

    def show(self, model, record, at_s):
        processes = tuple(NvmlProcess(100 + n, key, mib) for n, (key, mib) in enumerate(record.processes))
        shown = replace(gpu(0, model), processes=processes, record=record)
        write_state(self.host.state, NvmlHost((shown,), clock=StateClock(0, ns(at_s), speed=0)))
        assert self.calls.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)) == 0

    def get(self, name, *arguments, kind=ctypes.c_uint):
        out = kind()
        code = getattr(self.calls, name)(self.device, *arguments, ctypes.byref(out))
        return out.value if code == 0 else -code

    def four(self, name):
        out = [ctypes.c_uint() for _ in range(4)]
        code = getattr(self.calls, name)(self.device, *(ctypes.byref(one) for one in out))
        return tuple(one.value for one in out) if code == 0 else -code

    def utilization(self):
        out = (ctypes.c_uint * 2)()
        assert self.calls.nvmlDeviceGetUtilizationRates(self.device, out) == 0
        return tuple(out)

    def shares(self):
        samples, count = (ctypes.c_uint * 8 * 16)(), ctypes.c_uint(16)
        if self.calls.nvmlDeviceGetProcessUtilization(self.device, samples, ctypes.byref(count), ctypes.c_ulonglong(0)):
            return {}
        return {samples[n][0]: samples[n][4] for n in range(count.value)}


@pytest.fixture
def library(host, monkeypatch):
    monkeypatch.setenv("MEWS_NVML_STATE", str(host.state))
    monkeypatch.delenv("NVIDIA_VISIBLE_DEVICES", raising=False)
    write_state(host.state, NvmlHost())
    found = Library(host)
    assert found.calls.nvmlInit_v2() == 0, os.environ.get("MEWS_NVML_STATE")
    yield found
    found.calls.nvmlShutdown()


def agrees(library, profile, reading):
    wide = ctypes.c_ulonglong
    assert library.get("nvmlDeviceGetPowerUsage") == reading.power_mw
    assert library.get("nvmlDeviceGetTotalEnergyConsumption", kind=wide) == reading.energy_mj
    assert library.get("nvmlDeviceGetTemperature", 0) == round(reading.temperature_c)
    assert library.utilization() == (reading.utilization_percent, reading.memory_utilization_percent)
    clocks = [library.get("nvmlDeviceGetClockInfo", kind) for kind in (1, 2, 3)]
    assert clocks == [reading.sm_clock_mhz, reading.memory_clock_mhz, reading.video_clock_mhz]
    assert library.get("nvmlDeviceGetPerformanceState") == reading.pstate
    assert library.get("nvmlDeviceGetCurrentClocksEventReasons", kind=wide) == reading.throttle_reasons
    assert library.get("nvmlDeviceGetFanSpeed") == (-3 if reading.fan_percent is None else reading.fan_percent)
    assert library.get("nvmlDeviceGetPcieThroughput", 0) == reading.pcie_tx_kb_s
    assert library.get("nvmlDeviceGetPcieReplayCounter") == reading.counters.pcie_replays
    assert library.shares() == {100 + n: one.utilization_percent for n, one in enumerate(reading.processes)}
    rows = (0, reading.counters.remapped_rows, reading.counters.remap_pending, reading.counters.remap_failed)
    assert library.four("nvmlDeviceGetRemappedRows") == (rows if profile.architecture >= 7 and profile.ecc else -3)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    model=st.sampled_from(["V100", "A100", "RTX 3090"]),
    loads=st.lists(st.tuples(st.sampled_from(sorted(LOADS)), st.floats(0, 60)), max_size=3),
    setting=st.sampled_from([{}, {"temperature": 97}, {"power": 60.5}, {"utilization": 33, "sm_clock": 500}]),
    later_s=st.floats(0, 400),
)
def test_the_library_and_the_core_agree_at_any_time(library, model, loads, setting, later_s):
    profile, t = PROFILES[model], 1000.0
    board = GpuTelemetry(gpu(0).uuid, profile, seed="1", powered=True)
    board.counted(DriverCounts("s", 3, 2))
    for name, wait_s in loads:
        t += wait_s
        board.begin(name, LOADS[name], ns(t))
    if setting:
        board.set(setting, ns(t))
    record = board.record(ns(t), 64)
    library.show(model, record, t + later_s)
    agrees(library, profile, board.reading(ns(t + later_s)))


def test_a_board_that_cools_down_is_followed_past_its_threshold(library):
    board = GpuTelemetry(gpu(0).uuid, PROFILES["V100"], seed="1", powered=True)
    board.begin("a", constant(100), 0)
    board.set({"temperature": 99}, 0)
    board.set({"temperature": None}, ns(5))
    seen = set()
    for at_s in (5, 6, 10, 20, 40, 80, 300):
        library.show("V100", board.record(ns(5), 64), at_s)
        reading = board.reading(ns(at_s))
        agrees(library, PROFILES["V100"], reading)
        seen.add(reading.throttle_reasons)
    assert len(seen) == 2


def test_emulated_time_passes_as_fast_as_the_clock_says(library):
    board = GpuTelemetry(gpu(0).uuid, PROFILES["V100"], seed="1", powered=True)
    shown = replace(gpu(0), record=board.record(0))
    energies = {}
    for speed in (1, 50):
        clock = StateClock(0, 0, speed=speed)
        write_state(library.host.state, NvmlHost((shown,), clock=clock))
        assert library.calls.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(library.device)) == 0
        energies[speed] = library.get("nvmlDeviceGetTotalEnergyConsumption", kind=ctypes.c_ulonglong)
    assert energies[50] / energies[1] == pytest.approx(50, rel=0.01)
