"""NVML's setters on a host: what is taken, what is refused, and how long it lasts."""

import pytest

from mews.emulator.hardware.gpu_profiles import PROFILES
from mews.emulator.host.act import begin
from mews.emulator.host.errors import (
    BadWriteError,
    DeviceInUseError,
    DeviceLostError,
    NoSuchDeviceError,
    NotSupportedError,
)
from mews.emulator.host.holders import Holder
from mews.emulator.host.nvml_view import nvml_host
from mews.emulator.host.telemetry import report_of
from mews.emulator.nvml.driver_settings import NO_SETTINGS, DriverSettings
from mews.emulator.telemetry.controls import NO_CONTROLS, BoardControls
from mews.emulator.telemetry.gpu import GpuTelemetry
from mews.emulator.telemetry.load import constant
from mews.emulator.telemetry.record import idle_record
from mews.emulator.telemetry.units import ns
from tests.emulator.host.bench import Pair

V100, A100, H100, T4 = "000004", "000001", "000002", "000003"


@pytest.fixture
def pair():
    pair = Pair(ports=("1",) * 4)
    assert [pair.device(each).device.model for each in (V100, A100, H100, T4)] == ["V100", "A100", "H100", "T4"]
    return pair


def put(pair, device, name, *numbers):
    pair.nvml_calls.set_gpu(pair.device(device).bdf, name, numbers, pair.t)


def shown(pair, device):
    function = pair.device(device)
    return next(gpu for gpu in nvml_host(pair.host).gpus if gpu.bus_id == function.bdf)


def persist(pair, device, on=True):
    pair.nvml_calls.persistence(pair.device(device).bdf, on, pair.t)


@pytest.mark.parametrize(("device", "name", "numbers", "controls"), [
    (V100, "power-limit", (100_000,), BoardControls(power_limit_mw=100_000)),
    (V100, "power-limit", (250_000,), BoardControls(power_limit_mw=250_000)),
    (V100, "gpu-clocks", (900, 1200), BoardControls(gpu_clocks=(900, 1200))),
    (T4, "gpu-clocks", (900, 9999), BoardControls(gpu_clocks=(900, 9999))),
    (A100, "memory-clocks", (1215, 1215), BoardControls(memory_clocks=(1215, 1215))),
    (V100, "applications-clocks", (877, 1365), BoardControls(applications=(877, 1365))),
])  # fmt: skip
def test_a_value_within_bounds_is_kept_while_persistence_mode_is_on(pair, device, name, numbers, controls):
    persist(pair, device)
    put(pair, device, name, *numbers)
    assert pair.device(device).controls == controls
    assert report_of(pair.host)[pair.device(device).device.uuid].controls == controls
    assert shown(pair, device).controls == controls
    if name != "power-limit":
        put(pair, device, name)
        assert pair.device(device).controls == NO_CONTROLS


@pytest.mark.parametrize(("device", "name", "numbers", "refusal"), [
    (V100, "power-limit", (99_999,), BadWriteError),
    (V100, "power-limit", (250_001,), BadWriteError),
    (V100, "power-limit", (200_000, 1), BadWriteError),
    (V100, "gpu-clocks", (1200, 900), BadWriteError),
    (V100, "gpu-clocks", (1200,), BadWriteError),
    (V100, "gpu-clocks", (0, 0), BadWriteError),
    (V100, "memory-clocks", (877, 877), NotSupportedError),
    (V100, "applications-clocks", (877, 1366), BadWriteError),
    (V100, "applications-clocks", (810, 1380), BadWriteError),
    (V100, "fan", (50,), NotSupportedError),
    (V100, "compute-mode", (4,), BadWriteError),
    (V100, "compute-mode", (), BadWriteError),
    (V100, "compute-mode", (1,), NotSupportedError),
    (V100, "ecc", (2,), BadWriteError),
    (V100, "ecc-errors", (2,), BadWriteError),
    (V100, "ecc-errors", (), BadWriteError),
    (V100, "target-temperature", (70,), NotSupportedError),
    (H100, "memory-clocks", (2619, 2619), NotSupportedError),
    (A100, "memory-clocks-deferred", (1215,), NotSupportedError),
    (H100, "memory-clocks-deferred", (0,), BadWriteError),
    (H100, "memory-clocks-deferred", (1, 2), BadWriteError),
    (V100, "timeslice", (4,), BadWriteError),
    (V100, "timeslice", (), BadWriteError),
    (A100, "boost", (1,), NotSupportedError),
    (H100, "boost", (5,), BadWriteError),
    (A100, "gpm-streaming", (1,), NotSupportedError),
    (H100, "gpm-streaming", (2,), BadWriteError),
    (H100, "cuda-clocks", (1,), NotSupportedError),
    (V100, "colour", (1,), BadWriteError),
])  # fmt: skip
def test_what_a_board_does_not_take_changes_nothing(pair, device, name, numbers, refusal):
    persist(pair, device)
    function = pair.device(device)
    pair.events()
    with pytest.raises(refusal):
        put(pair, device, name, *numbers)
    assert (function.controls, function.compute_mode, function.ecc_wanted) == (NO_CONTROLS, 0, None)
    assert function.settings == NO_SETTINGS
    assert pair.events() == []


def test_without_persistence_mode_settings_last_while_somebody_has_the_gpu_open(pair):
    pair.hold(V100, "nvml/1")
    put(pair, V100, "power-limit", 150_000)
    pair.hold(V100, "nvml/2")
    pair.release("nvml/1")
    assert pair.device(V100).controls.power_limit_mw == 150_000
    pair.events()
    pair.release("nvml/2")
    assert pair.device(V100).controls == NO_CONTROLS
    assert pair.events() == ["gpu-shut-down"]


def test_switching_persistence_mode_off_loses_them_where_nobody_has_the_gpu_open(pair):
    for device in (V100, A100):
        persist(pair, device)
        put(pair, device, "power-limit", 150_000)
    pair.hold(A100)
    persist(pair, V100, False)
    persist(pair, A100, False)
    assert pair.device(V100).controls == NO_CONTROLS
    assert pair.device(A100).controls.power_limit_mw == 150_000


def test_the_compute_mode_lasts_until_the_driver_is_unloaded(pair):
    pair.hold(V100, "nvml/1")
    put(pair, V100, "compute-mode", 3)
    pair.release("nvml/1")
    assert shown(pair, V100).compute_mode == 3
    pair.nvml_calls.reset_gpu(pair.device(V100).bdf, pair.t)
    assert shown(pair, V100).compute_mode == 0


def test_an_ecc_mode_counts_from_the_next_reset_on(pair):
    put(pair, V100, "ecc", 0)
    assert (shown(pair, V100).ecc_enabled, shown(pair, V100).ecc_pending) == (None, False)
    pair.nvml_calls.reset_gpu(pair.device(V100).bdf, pair.t)
    assert (shown(pair, V100).ecc_enabled, shown(pair, V100).ecc_pending) == (False, False)
    put(pair, V100, "ecc", 1)
    assert (shown(pair, V100).ecc_enabled, shown(pair, V100).ecc_pending) == (False, True)
    pair.host.set_power(False, pair.t)
    pair.host.set_power(True, pair.t)
    assert (shown(pair, V100).ecc_enabled, shown(pair, V100).ecc_pending) == (True, True)


def test_a_wanted_ecc_mode_is_shown_before_the_chassis_has_heard_of_it(pair):
    uuid = pair.device(V100).device.uuid
    before = {uuid: idle_record(uuid, PROFILES["V100"])}
    put(pair, V100, "ecc", 0)
    gpu = next(gpu for gpu in nvml_host(pair.host, records=before).gpus if gpu.uuid == uuid)
    assert (gpu.ecc_enabled, gpu.ecc_pending) == (None, False)


def test_clearing_errors_keeps_those_of_the_boards_life(pair):
    pair.host.faults.add({"kind": "ecc-errors", "device": V100, "corrected": 3, "uncorrected": 1}, pair.t)
    put(pair, V100, "ecc-errors", 0)
    counts = shown(pair, V100).ecc
    assert (counts.volatile_corrected, counts.volatile_uncorrected) == (0, 0)
    assert (counts.aggregate_corrected, counts.aggregate_uncorrected) == (3, 1)
    assert shown(pair, V100).ecc_enabled is None


def test_a_lost_gpu_and_one_without_a_driver_take_nothing(pair):
    pair.host.bring_up.fall(pair.device(V100))
    with pytest.raises(DeviceLostError):
        put(pair, V100, "power-limit", 150_000)
    pair.operator.unbind(pair.device(A100).bdf, pair.t)
    with pytest.raises(NoSuchDeviceError):
        put(pair, A100, "power-limit", 150_000)


def test_scenarios_and_control_set_by_the_same_words(pair):
    persist(pair, V100)
    begin(pair.tree, {"do": "set-gpu", "device": V100, "setting": "gpu-clocks", "values": [900, 1200]}, pair.t)
    begin(pair.tree, {"do": "set-gpu", "device": V100, "setting": "power-limit", "values": 150_000}, pair.t)
    assert pair.device(V100).controls == BoardControls(power_limit_mw=150_000, gpu_clocks=(900, 1200))
    begin(pair.tree, {"do": "set-gpu", "device": V100, "setting": "gpu-clocks"}, pair.t)
    assert pair.device(V100).controls == BoardControls(power_limit_mw=150_000)


@pytest.mark.parametrize(("more", "words"), [
    ({"setting": "power"}, "setting 'power': must be one of power-limit"),
    ({"setting": "power-limit", "values": ["x"]}, "values x: must be whole numbers"),
    ({"setting": "power-limit", "values": [True]}, "values True: must be whole numbers"),
    ({"setting": "power-limit", "values": [-1]}, "values -1: must be whole numbers"),
])  # fmt: skip
def test_what_is_no_setting_is_refused_in_words(pair, more, words):
    with pytest.raises(ValueError, match=words):
        begin(pair.tree, {"do": "set-gpu", "device": V100, **more}, pair.t)


def test_accounting_lasts_until_the_driver_lets_go(pair):
    function = pair.device(A100)
    put(pair, A100, "accounting", 1)
    first = function.accounting
    put(pair, A100, "accounting", 1)
    assert function.accounting == first > 0
    assert report_of(pair.host)[function.device.uuid].accounting == first and shown(pair, A100).accounting
    put(pair, A100, "accounting-clear")
    assert function.accounting > first
    pair.nvml_calls.reset_gpu(function.bdf, pair.t)
    pair.later(60)
    assert function.accounting == 0 and not shown(pair, A100).accounting
    with pytest.raises(NotSupportedError):
        put(pair, A100, "accounting-clear")
    with pytest.raises(BadWriteError):
        put(pair, A100, "accounting", 2)
    with pytest.raises(BadWriteError):
        put(pair, A100, "accounting-clear", 1)


def test_processes_that_are_gone_are_accounted_by_their_pid(pair):
    function, host = pair.device(A100), pair.host
    uuid = function.device.uuid
    put(pair, A100, "accounting", 1)
    board = GpuTelemetry(uuid, PROFILES["A100"], seed="", powered=True)
    board.account(function.accounting, ns(pair.t))
    host.hold(Holder("job", (uuid,), pid=77, name="train", computing=True, load=constant(30)), pair.t)
    for key, load in report_of(host)[uuid].loads.items():
        board.begin(f"{host.spec.name}/{key}", load, ns(pair.t))
    host.release("job", pair.t + 10)
    board.end(f"{host.spec.name}/job", ns(pair.t + 10))
    board.begin("elsewhere/job", constant(5), ns(pair.t + 10))
    shown_host = nvml_host(host, records={uuid: board.record(ns(pair.t + 20))}, now_s=pair.t + 20)
    accounts = next(gpu.accounted for gpu in shown_host.gpus if gpu.uuid == uuid)
    assert [(one.pid, one.process.utilization) for one in accounts] == [(77, 30)]


def count(pair, device, corrected, uncorrected):
    ecc = pair.device(device).ecc
    ecc.corrected, ecc.total_corrected = ecc.corrected + corrected, ecc.total_corrected + corrected
    ecc.uncorrected, ecc.total_uncorrected = ecc.uncorrected + uncorrected, ecc.total_uncorrected + uncorrected


def test_errors_over_a_boards_life_are_cleared_and_count_from_zero_again(pair):
    count(pair, V100, 5, 2)
    put(pair, V100, "ecc-errors", 0)
    count(pair, V100, 3, 1)
    put(pair, V100, "ecc-errors", 1)
    counts = shown(pair, V100).ecc
    assert (counts.volatile_corrected, counts.volatile_uncorrected) == (3, 1)
    assert (counts.aggregate_corrected, counts.aggregate_uncorrected) == (0, 0)
    assert shown(pair, V100).counters.remapped_rows == 3
    count(pair, V100, 1, 0)
    put(pair, V100, "ecc-errors", 0)
    counts = shown(pair, V100).ecc
    assert (counts.aggregate_corrected, counts.volatile_corrected) == (1, 0)
    assert report_of(pair.host)[pair.device(V100).device.uuid].counts.clears == 1


def test_errors_of_a_board_without_ecc_cannot_be_cleared(pair):
    put(pair, V100, "ecc", 0)
    put(pair, V100, "ecc-errors", 1)  # it still counts
    pair.nvml_calls.reset_gpu(pair.device(V100).bdf, pair.t)
    for counter in (0, 1):
        with pytest.raises(NotSupportedError):
            put(pair, V100, "ecc-errors", counter)


@pytest.fixture
def linked():
    """Two H100 with NVLinks, beside a T4 and an A100."""
    return Pair(ports=("1",) * 4, models=("H100-SXM", "A100", "H100-SXM", "T4"))


def test_links_of_hopper_sleep_after_the_time_that_is_set_until_the_driver_goes(linked):
    put(linked, H100, "nvlink-threshold", 500)
    assert shown(linked, H100).link_threshold == 500
    for wrong in ((0,), (8192,), (1, 2)):
        with pytest.raises(BadWriteError):
            put(linked, H100, "nvlink-threshold", *wrong)
    put(linked, H100, "nvlink-threshold")
    assert shown(linked, H100).link_threshold == 0
    put(linked, H100, "nvlink-threshold", 7)
    linked.device(H100).unload()
    assert shown(linked, H100).link_threshold == 0
    with pytest.raises(NotSupportedError):
        put(linked, T4, "nvlink-threshold", 500)


def test_fewer_links_are_in_use_on_all_gpus_of_a_host_while_nobody_computes(linked):
    linked.host.hold(Holder("monitor", (linked.device(V100).device.uuid,), pid=2), linked.t)
    put(linked, H100, "nvlink-bandwidth", 3)
    assert [shown(linked, each).link_bandwidth for each in (A100, H100, T4, V100)] == [0, 3, 0, 3]
    linked.host.hold(Holder("pod", (linked.device(V100).device.uuid,), pid=1, computing=True), linked.t)
    with pytest.raises(DeviceInUseError):
        put(linked, H100, "nvlink-bandwidth", 0)
    assert shown(linked, H100).link_bandwidth == 3
    with pytest.raises(BadWriteError):
        put(linked, H100, "nvlink-bandwidth", 5)
    with pytest.raises(NotSupportedError):
        put(linked, A100, "nvlink-bandwidth", 1)


def test_what_the_driver_was_told_lasts_until_it_goes(pair):
    for name, number in (("timeslice", 2), ("boost", 3), ("gpm-streaming", 1), ("memory-clocks-deferred", 1500)):
        put(pair, H100, name, number)
    told = DriverSettings(timeslice=2, boost=3, streaming=True, deferred_mhz=1500)
    assert pair.device(H100).settings == shown(pair, H100).settings == told
    assert shown(pair, H100).controls == NO_CONTROLS
    pair.nvml_calls.reset_gpu(pair.device(H100).bdf, pair.t)
    assert shown(pair, H100).settings == DriverSettings(deferred_mhz=1500)


def test_hoppers_memory_keeps_its_clock_from_the_next_load_of_the_driver_on(pair):
    put(pair, H100, "memory-clocks-deferred", 1500)
    pair.nvml_calls.reset_gpu(pair.device(H100).bdf, pair.t)
    held = BoardControls(memory_clocks=(1500, 1500))
    assert shown(pair, H100).controls == report_of(pair.host)[pair.device(H100).device.uuid].controls == held
    pair.hold(H100, "nvml/1")
    put(pair, H100, "power-limit", 300_000)
    pair.release("nvml/1")
    assert shown(pair, H100).controls == held
    put(pair, H100, "memory-clocks-deferred")
    assert shown(pair, H100).controls == held
    pair.nvml_calls.reset_gpu(pair.device(H100).bdf, pair.t)
    assert shown(pair, H100).controls == NO_CONTROLS


def test_later_boards_reduce_their_own_links():
    pair = Pair(ports=("1",) * 4, models=("B200", "B200", "H100-SXM", "T4"))
    first, second, hopper = (function.device.id for function in list(pair.host.bus.functions())[:3])
    put(pair, first, "nvlink-own-bandwidth", 3)
    assert [shown(pair, each).link_bandwidth for each in (first, second)] == [3, 0]
    pair.device(first).unload()
    assert shown(pair, first).link_bandwidth == 0
    for device, number, refusal in ((hopper, 1, NotSupportedError), (first, 5, BadWriteError)):
        with pytest.raises(refusal):
            put(pair, device, "nvlink-own-bandwidth", number)
