"""One board over time: exact, whoever looks and however often."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mews.emulator.hardware.gpu_profiles import PROFILES
from mews.emulator.telemetry.controls import BoardControls
from mews.emulator.telemetry.gpu import DriverCounts, GpuTelemetry
from mews.emulator.telemetry.load import GpuLoad, constant, parse_load
from mews.emulator.telemetry.physics import STANDBY_MW, TAU_S, ThrottleReason
from mews.emulator.telemetry.record import BoardRecord
from mews.emulator.telemetry.units import ns

V100 = PROFILES["V100"]


def board(profile=V100, **more):
    return GpuTelemetry("GPU-1", profile, seed="7", **{"powered": True, **more})


def test_an_idle_board_draws_and_is_as_warm_as_its_model_says():
    reading = board().reading(ns(1000))
    assert (reading.power_mw, reading.temperature_c, reading.utilization_percent) == (25_000, 33.0, 0)
    assert reading.throttle_reasons == ThrottleReason.IDLE
    assert reading.energy_mj == 25_000 * 1000


def test_a_board_that_no_host_has_stands_by():
    reading = board(powered=False).reading(ns(10))
    assert reading.power_mw == STANDBY_MW
    assert reading.energy_mj == STANDBY_MW * 10


def test_a_constant_load_draws_between_idle_and_limit():
    gpu = board()
    gpu.begin("train", constant(87), ns(100))
    reading = gpu.reading(ns(100))
    assert (reading.power_mw, reading.utilization_percent, reading.sm_clock_mhz) == (224_000, 87, 1380)
    gpu.begin("other", constant(50), ns(100))
    reading = gpu.reading(ns(100))
    assert (reading.power_mw, reading.utilization_percent) == (250_000, 100)
    assert reading.throttle_reasons == ThrottleReason.POWER_CAP
    assert [process.utilization_percent for process in reading.processes] == [64, 36]


def test_the_temperature_lags_by_a_minute():
    gpu = board()
    gpu.begin("train", constant(100), ns(0))
    after_a_minute = gpu.reading(ns(TAU_S)).temperature_c
    assert after_a_minute == pytest.approx(62 - 29 * math.exp(-1))
    gpu.end("train", ns(TAU_S))
    assert gpu.reading(ns(TAU_S)).temperature_c == after_a_minute
    assert gpu.reading(ns(2 * TAU_S)).temperature_c == pytest.approx(33 + (after_a_minute - 33) * math.exp(-1))


def test_a_curve_is_followed_to_the_second_and_energy_is_its_integral():
    gpu = board()
    gpu.begin("train", parse_load({"curve": {0: 0, 10: 50, 30: 100}}), ns(5))
    powers = [gpu.reading(ns(t)).power_mw for t in (5, 14.999, 15, 34.999, 35, 1000)]
    assert powers == [50_000, 50_000, 150_000, 150_000, 250_000, 250_000]
    assert gpu.reading(ns(45)).energy_mj == 25_000 * 5 + 50_000 * 10 + 150_000 * 20 + 250_000 * 10


def test_a_curve_that_repeats_begins_anew():
    gpu = board()
    gpu.begin("train", parse_load({"curve": [[0, 0], [10, 80]], "repeat_s": 20}), 0)
    assert [gpu.reading(ns(t)).utilization_percent for t in (0, 10, 20, 30, 200_010)] == [0, 80, 0, 80, 80]


def test_a_walk_follows_from_the_seed_alone():
    def utilizations(seed):
        gpu = GpuTelemetry("GPU-1", V100, seed=seed, powered=True)
        gpu.begin("train", parse_load({"walk": {"low": 20, "high": 90, "step": 10, "every_s": 5}}), 0)
        return [gpu.reading(ns(5 * n)).utilization_percent for n in range(50)]

    first = utilizations("7")
    assert first == utilizations("7")
    assert first != utilizations("8")
    assert first[0] == 55
    assert all(abs(a - b) <= 10 for a, b in pairwise(first))
    assert min(first) >= 20
    assert max(first) <= 90
    assert len(set(first)) > 5


def test_processes_that_name_no_memory_share_what_a_load_fills():
    gpu = board()
    gpu.begin("a", constant(10), 0)
    gpu.begin("b", constant(10), 0)
    gpu.begin("c", GpuLoad(constant(10).course, 100), 0)
    used = {process.key: process.memory_mib for process in gpu.reading(0).processes}
    assert used == {"a": 32768 * 72 // 200, "b": 32768 * 72 // 200, "c": 100}
    assert gpu.reading(0).memory_used_mib == sum(used.values())


def test_a_set_value_holds_until_it_is_cleared_and_the_board_goes_on_from_there():
    gpu = board()
    gpu.set({"temperature": 80, "power": 123.5, "utilization": 42, "sm_clock": 500}, ns(10))
    reading = gpu.reading(ns(1000))
    assert (reading.temperature_c, reading.power_mw) == (80.0, 123_500)
    assert (reading.utilization_percent, reading.sm_clock_mhz) == (42, 500)
    gpu.set({"all": "none"}, ns(1000))
    assert gpu.reading(ns(1000)).power_mw == 25_000
    assert gpu.reading(ns(1000 + TAU_S)).temperature_c == pytest.approx(33 + 47 * math.exp(-1))


def test_a_board_above_its_threshold_slows_down_and_recovers_by_itself():
    gpu = board()
    gpu.begin("train", constant(100), 0)
    gpu.set({"temperature": 95}, 0)
    hot = gpu.reading(ns(10))
    assert hot.throttle_reasons & ThrottleReason.HW_THERMAL
    assert (hot.sm_clock_mhz, hot.power_mw) == (690, 150_000)
    gpu.set({"temperature": "none"}, ns(10))
    span = gpu.span(ns(10))
    assert span.temperature_at(span.until_ns) == pytest.approx(87, abs=1e-3)
    cool = gpu.reading(span.until_ns)
    assert (cool.sm_clock_mhz, cool.power_mw) == (1380, 250_000)
    assert cool.temperature_c < 87


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"power": 251}, "power 251: must be a number from 0 to 250 watts on a Tesla V100-PCIE-32GB, or none"),
        ({"temperature": "hot"}, "temperature 'hot': must be a number from 0 to 150 degrees Celsius, or none"),
        ({"utilization": 1.5}, "utilization 1.5: must be a whole number from 0 to 100 percent, or none"),
        (
            {"fan": 3},
            "set 'fan': must be one of ",
        ),
        ({}, "set: must have at least one of temperature"),
    ],
)
def test_a_value_that_cannot_be_is_refused_and_changes_nothing(values, complaint):
    gpu = board()
    before = gpu.reading(5)
    with pytest.raises(ValueError) as refusal:
        gpu.set(values, 0)
    assert str(refusal.value).startswith(complaint)
    assert gpu.reading(5) == before


def test_errors_are_volatile_for_one_load_of_the_driver_and_aggregate_for_ever():
    gpu = board()
    gpu.counted(DriverCounts("a", 3, 1))
    gpu.counted(DriverCounts("a", 4, 1))
    counters = gpu.counters
    assert (counters.ecc_volatile_corrected, counters.ecc_aggregate_corrected) == (4, 4)
    assert (counters.remapped_rows, counters.remap_pending) == (1, True)
    gpu.counted(None)
    gpu.counted(DriverCounts("b", 2, 0))
    counters = gpu.counters
    assert (counters.ecc_volatile_corrected, counters.ecc_aggregate_corrected) == (2, 6)
    assert (counters.ecc_volatile_uncorrected, counters.ecc_aggregate_uncorrected) == (0, 1)
    assert (counters.remapped_rows, counters.remap_pending) == (1, False)


def aggregate(gpu):
    return gpu.counters.ecc_aggregate_corrected, gpu.counters.ecc_aggregate_uncorrected


def test_errors_for_ever_can_be_cleared_but_rows_stay_out_of_use():
    gpu = board()
    gpu.counted(DriverCounts("host-1/1.0+0.0", 4, 2))
    gpu.counted(DriverCounts("host-1/1.0+0.0", 4, 2, clears=1))
    assert aggregate(gpu) == (0, 0) and gpu.counters.ecc_volatile_corrected == 4
    assert (gpu.counters.remapped_rows, gpu.counters.cleared_uncorrected) == (2, 2)
    gpu.counted(DriverCounts("host-1/1.0+0.0", 5, 2, clears=1))
    assert aggregate(gpu) == (1, 0)
    again = board()
    again.resume(gpu.state(7), 7)
    assert again.counters == gpu.counters
    for each in (gpu, again):
        each.counted(DriverCounts("host-1/1.1+5.2", 0, 1, clears=1))  # the driver was loaded anew
        assert aggregate(each) == (1, 1)
        each.counted(DriverCounts("host-2/1.0+0.0", 0, 0))
        assert aggregate(each) == (1, 1) and each.counters.remapped_rows == 3
        each.counted(DriverCounts("host-2/1.0+0.0", 1, 0, clears=1))  # the first clear of this stay
        assert aggregate(each) == (0, 0)
        each.counted(DriverCounts("host-3/1.0+0.0", 2, 0))
        assert aggregate(each) == (2, 0)
        each.counted(DriverCounts("host-4/1.0+0.0", 0, 0, clears=1))  # the first that is heard of it
        each.counted(DriverCounts("host-5/1.0+0.0", 3, 0, clears=1))
        assert aggregate(each) == (0, 0)


def test_a_target_temperature_holds_back_clocks_and_power():
    gpu = GpuTelemetry("GPU-1", PROFILES["RTX 3090"], seed="1", powered=True)
    gpu.begin("a", constant(100), 0)
    free = gpu.reading(ns(3600))
    gpu.control(BoardControls(target_c=65), ns(3600))
    held = gpu.reading(ns(7200))
    assert round(free.temperature_c) == 70 and round(held.temperature_c) == 65
    assert held.sm_clock_mhz < free.sm_clock_mhz and held.power_mw < free.power_mw
    assert (free.throttle_reasons & 0x20, held.throttle_reasons & 0x24) == (0, 0x20)
    gpu.control(BoardControls(target_c=65, power_limit_mw=150_000), ns(7200))
    assert gpu.reading(ns(7201)).throttle_reasons & 0x24 == 0x4
    assert gpu.span(ns(7300)).totals_at(ns(7300)).cooled_ns == ns(3600)
    gpu.control(BoardControls(target_c=80), ns(7300))
    assert gpu.reading(ns(10800)).sm_clock_mhz == free.sm_clock_mhz


LOADS = st.one_of(
    st.integers(0, 100).map(constant),
    st.lists(st.tuples(st.integers(1, 500), st.integers(0, 100)), min_size=1, max_size=6, unique_by=lambda p: p[0]).map(
        lambda points: parse_load({"curve": sorted(points)})
    ),
    st.just(parse_load({"walk": {"step": 20, "every_s": 7}})),
)
CHANGES = st.lists(
    st.tuples(
        st.floats(0, 300),
        st.one_of(
            st.tuples(st.just("begin"), st.sampled_from("ab"), LOADS),
            st.tuples(st.just("end"), st.sampled_from("ab")),
            st.tuples(st.just("power"), st.booleans()),
            st.tuples(st.just("set"), st.sampled_from([{"power": 100}, {"temperature": 95}, {"all": "none"}])),
        ),
    ),
    max_size=8,
)


def played(changes, looks):
    """(time, reading) of every look, and every span that was in force."""
    gpu, t, seen, spans = board(), 0.0, [], []
    for wait_s, (what, *arguments) in changes:
        for look in looks:
            if look < wait_s:
                seen.append((t + look, gpu.reading(ns(t + look))))
        start, t = ns(t), t + wait_s
        while start < ns(t):
            span = gpu.span(start)
            end = ns(t) if span.until_ns is None else min(span.until_ns, ns(t))
            spans.append((span, start, end))
            start = end
        getattr(gpu, what)(*arguments, ns(t))
    return gpu.reading(ns(t)), seen, spans


@given(CHANGES, st.lists(st.floats(0, 300), max_size=5))
def test_looking_changes_nothing_and_energy_is_the_integral_of_power(changes, looks):
    last, _, spans = played(changes, [])
    again, seen, _ = played(changes, sorted(looks))
    assert last == again
    assert last.energy_mj == sum(span.power_mw * (end - start) for span, start, end in spans) // 10**9
    energies = [reading.energy_mj for _, reading in seen]
    assert energies == sorted(energies)
    for _, reading in seen:
        assert 0 <= reading.power_mw <= V100.power_limit_mw
        assert 26.0 <= reading.temperature_c <= 95.0
        assert sum(process.utilization_percent for process in reading.processes) <= 100


@given(CHANGES, st.floats(0, 100))
def test_a_record_that_has_travelled_reads_the_same(changes, later):
    gpu, t = board(), 0.0
    for wait_s, (what, *arguments) in changes:
        t += wait_s
        getattr(gpu, what)(*arguments, ns(t))
    record = BoardRecord.from_value(gpu.record(ns(t), 64).as_value())
    assert record.reading(V100, ns(t + later)) == gpu.reading(ns(t + later))


def controlled(load=100, profile=V100, **controls):
    gpu = board(profile)
    gpu.begin("train", constant(load), 0)
    assert gpu.control(BoardControls(**controls), ns(10))
    return gpu


def test_a_lower_power_limit_lowers_power_clocks_traffic_and_temperature_at_the_same_moment():
    gpu = board()
    gpu.begin("train", constant(100), 0)
    before = gpu.reading(ns(10))
    gpu.control(BoardControls(power_limit_mw=150_000), ns(10))
    after = gpu.reading(ns(10))
    assert (before.power_mw, before.power_limit_mw, before.sm_clock_mhz) == (250_000, 250_000, 1380)
    assert (after.power_mw, after.power_limit_mw, after.utilization_percent) == (150_000, 150_000, 100)
    assert after.sm_clock_mhz == 975  # by the root of half the power above a context's
    assert after.pcie_tx_kb_s == pytest.approx(before.pcie_tx_kb_s * math.sqrt(0.5), rel=1e-4)
    assert gpu.reading(ns(10_000)).temperature_c == pytest.approx(33 + 29 / 2)
    assert after.throttle_reasons == ThrottleReason.POWER_CAP
    assert after.energy_mj == 250_000 * 10
    assert gpu.reading(ns(20)).energy_mj == 250_000 * 10 + 150_000 * 10


def test_a_limit_that_is_not_reached_changes_nothing_but_itself():
    gpu = controlled(load=20, power_limit_mw=150_000)
    reading = gpu.reading(ns(20))
    assert (reading.power_mw, reading.sm_clock_mhz, reading.throttle_reasons) == (90_000, 1380, ThrottleReason.NONE)
    assert reading.power_limit_mw == 150_000


def test_locked_clocks_hold_busy_and_idle_boards_and_save_power():
    gpu = controlled(gpu_clocks=(690, 690))
    reading = gpu.reading(ns(20))
    assert (reading.sm_clock_mhz, reading.power_mw) == (690, 50_000 + 200_000 // 4)
    assert reading.throttle_reasons == ThrottleReason.CLOCKS_SETTING
    gpu.end("train", ns(20))
    assert gpu.reading(ns(20)).sm_clock_mhz == 690
    assert gpu.reading(ns(20)).throttle_reasons == ThrottleReason.IDLE
    gpu.control(BoardControls(), ns(30))
    assert gpu.reading(ns(30)).sm_clock_mhz == V100.idle_sm_clock_mhz


def test_clocks_above_the_boards_own_are_clamped_without_a_word():
    reading = controlled(gpu_clocks=(1000, 9999)).reading(ns(20))
    assert (reading.sm_clock_mhz, reading.power_mw, reading.throttle_reasons) == (
        1380,
        250_000,
        ThrottleReason.POWER_CAP,
    )


def test_applications_clocks_bound_busy_boards_alone():
    gpu = controlled(applications=(877, 690))
    assert gpu.reading(ns(20)).sm_clock_mhz == 690
    gpu.end("train", ns(20))
    assert gpu.reading(ns(20)).sm_clock_mhz == V100.idle_sm_clock_mhz


def test_locked_memory_clocks_hold_the_memory():
    a100 = PROFILES["A100"]
    assert controlled(profile=a100, memory_clocks=(810, 810)).reading(ns(20)).memory_clock_mhz == 810
    assert controlled(profile=a100, memory_clocks=(0, 9999)).reading(ns(20)).memory_clock_mhz == a100.memory_clock_mhz


def test_the_lower_of_limit_and_locked_clocks_counts():
    reading = controlled(gpu_clocks=(0, 1300), power_limit_mw=100_000).reading(ns(20))
    assert (reading.sm_clock_mhz, reading.power_mw) == (690, 100_000)
    assert reading.throttle_reasons == ThrottleReason.POWER_CAP | ThrottleReason.CLOCKS_SETTING


def test_a_limit_above_what_locked_clocks_need_is_no_reason():
    reading = controlled(gpu_clocks=(600, 690), power_limit_mw=150_000).reading(ns(20))
    assert (reading.sm_clock_mhz, reading.power_mw) == (690, 100_000)
    assert reading.throttle_reasons == ThrottleReason.CLOCKS_SETTING


def test_the_same_controls_again_are_no_news():
    gpu = controlled(power_limit_mw=150_000)
    assert not gpu.control(BoardControls(power_limit_mw=150_000), ns(20))


def test_controls_and_ecc_survive_a_restart_and_travel_to_readers():
    gpu = controlled(power_limit_mw=150_000, gpu_clocks=(690, 1200), fan=60)
    gpu.counted(DriverCounts("host-1/1.0+0.0"))
    gpu.correct_errors(False)
    again = board()
    again.resume(gpu.state(ns(20)), ns(20))
    assert (again.controls, again.ecc) == (gpu.controls, gpu.ecc)
    record = BoardRecord.from_value(again.record(ns(20)).as_value())
    assert (record.power_limit_mw, record.ecc) == (150_000, (None, False))
    assert record.reading(V100, ns(20)).power_limit_mw == 150_000


def test_an_ecc_mode_counts_once_a_driver_is_loaded_and_not_when_errors_are_cleared():
    gpu = board()
    gpu.counted(DriverCounts("host-1/1.0+0.0", 5))
    gpu.correct_errors(False)
    gpu.counted(DriverCounts("host-1/1.0+5.0"))
    assert (gpu.ecc.current, gpu.ecc.pending) == (None, False)
    gpu.counted(DriverCounts("host-1/1.1+5.0"))
    assert (gpu.ecc.current, gpu.ecc.pending) == (False, False)


@pytest.mark.parametrize("value", [{"colour": 1}, {"gpu_clocks": [1]}, {"power_limit_mw": "x"}, {"fan": None}])
def test_controls_of_another_kind_are_refused(value):
    with pytest.raises((TypeError, ValueError)):
        BoardControls.from_value(value)
