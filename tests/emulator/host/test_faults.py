"""Each fault of a host: that it strikes, declares itself, counts, and is undone; alone and several together."""

import pytest

from mews.emulator.hardware.host_profiles import ARROWS
from mews.emulator.host.faults.registry import HOST_FAULTS
from mews.emulator.host.function import BringUpStage
from mews.emulator.host.nvml_view import nvml_host
from tests.emulator.host.bench import Pair

FREE = ("1", "1", None, "2")


def fired(pair):
    return [event.fields["kind"] for event in pair.told if event.event == "fault-fired"]


@pytest.mark.parametrize("arrow", ARROWS)
def test_each_arrow_can_be_cut_alone_and_clearing_lets_it_go_on(arrow):
    pair = Pair(ports=FREE)
    pair.host.faults.add({"kind": "layer-cut", "arrow": arrow}, pair.t)
    pair.move("000003", None, "1")
    function = pair.device("000003")
    assert (function.stage, function.stuck) == (BringUpStage(ARROWS.index(arrow)), arrow)
    assert pair.device("000001").healthy
    pair.hosts.clear(pair.t)
    assert function.healthy


def test_a_layer_can_be_late():
    pair = Pair(ports=FREE)
    pair.host.faults.add({"kind": "layer-slow", "arrow": "driver", "delay_s": 5}, pair.t)
    pair.move("000003", None, "1")
    pair.later(4.9)
    assert pair.device("000003").stage == BringUpStage.FUNCTION
    pair.later(0.2)
    assert pair.device("000003").healthy


def test_xid_79_is_a_gpu_off_the_bus_and_clearing_finds_it_again():
    pair = Pair()
    pair.host.faults.add({"kind": "xid", "device": "000001"}, pair.t)
    function = pair.device("000001")
    assert function.lost
    assert [gpu.lost for gpu in nvml_host(pair.host).gpus] == [True, False, False]
    assert nvml_host(pair.host).events[-1].data == 79
    pair.hosts.clear(pair.t)
    assert function.healthy


@pytest.mark.parametrize("xid", [13, 31, 43, 45, 68, 109])
def test_ignorable_xids_are_reported_and_change_nothing(xid):
    pair = Pair()
    pair.host.faults.add({"kind": "xid", "device": "0-000001", "xid": xid, "after_s": 2}, pair.t)
    assert pair.host.events.log.text() == ""
    pair.later(2)
    assert f"(PCI:0000:20:00): {xid}, " in pair.host.events.log.text()
    assert pair.device("000001").healthy


def test_a_fallen_gpu_can_be_removed_and_found_again_by_hand():
    pair = Pair()
    pair.host.faults.add({"kind": "fallen-off-bus", "device": "000001"}, pair.t)
    function = pair.device("000001")
    pair.operator.remove(function.bdf, pair.t)
    pair.operator.rescan(pair.t)
    assert function.healthy


def test_ecc_errors_are_counted_until_the_driver_is_loaded_anew():
    pair = Pair()
    for _ in range(2):
        pair.host.faults.add({"kind": "ecc-errors", "device": "000001", "corrected": 3, "uncorrected": 1}, pair.t)
    [gpu, *_] = nvml_host(pair.host).gpus
    assert (gpu.ecc.volatile_corrected, gpu.ecc.volatile_uncorrected, gpu.ecc.aggregate_corrected) == (6, 2, 6)
    assert pair.host.events.log.text().count(": 48, ") == 2
    bdf = pair.device("000001").bdf
    pair.operator.unbind(bdf, pair.t)
    pair.operator.bind(bdf, pair.t)
    [gpu, *_] = nvml_host(pair.host).gpus
    assert (gpu.ecc.volatile_corrected, gpu.ecc.aggregate_corrected) == (0, 6)


def test_nvml_answers_unknown_error_for_a_while_after_a_hot_plug():
    pair = Pair(ports=FREE)
    pair.host.faults.add({"kind": "nvml-unknown-error", "for_s": 4}, pair.t)
    pair.move("000003", None, "1")
    assert [gpu.unknown_error for gpu in nvml_host(pair.host).gpus] == [False, False, True]
    pair.later(4)
    assert not any(gpu.unknown_error for gpu in nvml_host(pair.host).gpus)
    assert pair.events()[-1] == "nvml-recovered"


def test_a_driver_that_fails_twice_is_stuck_until_the_third_try():
    pair = Pair(ports=FREE)
    pair.host.faults.add({"kind": "driver-fails", "count": 2}, pair.t)
    pair.move("000003", None, "1")
    function = pair.device("000003")
    for _ in range(2):
        assert function.stuck == "driver"
        pair.operator.remove(function.bdf, pair.t)
        pair.operator.rescan(pair.t)
    assert function.healthy


def test_several_at_once_recover_all():
    pair = Pair({"driver": 1, "nvml": 1}, ports=FREE)
    for spec in (
        {"kind": "driver-fails", "device": "000003", "count": None},
        {"kind": "nvml-unknown-error", "for_s": 1000},
        {"kind": "xid", "device": "000001", "after_s": 1},
        {"kind": "layer-slow", "arrow": "function", "delay_s": 2, "count": None},
        {"kind": "ecc-errors", "device": "000002", "corrected": 1, "after_s": 1},
    ):
        pair.host.faults.add(spec, pair.t)
    pair.move("000003", None, "1")
    pair.move("000004", "2", "1")
    pair.later(10)
    states = {f.device.id: (f.stuck, f.lost, f.failing) for f in pair.host.bus.functions()}
    assert states == {
        "000001": ("", True, False),
        "000002": ("", False, False),
        "000003": ("driver", False, False),
        "000004": ("", False, True),
    }
    assert sorted(set(fired(pair))) == ["driver-fails", "ecc-errors", "layer-slow", "nvml-unknown-error", "xid"]
    pair.hosts.clear(pair.t)
    pair.later(10)
    assert all(f.healthy for f in pair.host.bus.functions())
    assert pair.host.faults.listed() == []


def test_count_skip_and_device_choose_whom_a_fault_strikes():
    pair = Pair(ports=(None, None, None, None))
    pair.host.faults.add({"kind": "driver-fails", "skip": 1, "count": 1}, pair.t)
    for device in ("000001", "000002", "000003"):
        pair.move(device, None, "1")
    assert [f.stuck for f in pair.host.bus.functions()] == ["", "driver", ""]


@pytest.mark.parametrize("kind", sorted(HOST_FAULTS.ours()))
def test_every_fault_declares_what_it_may_break(kind):
    fault = HOST_FAULTS.find(kind)
    assert fault.kind == kind
    assert set(fault.may_break) <= {2, 4, 6, 8}
    assert set(fault.on) <= set(ARROWS)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"kind": "gremlins"}, "must be one of driver-fails"),
        ({"kind": "layer-cut", "arrow": "sky"}, "must be one of link, function"),
        ({"kind": "xid"}, "device is required"),
        ({"kind": "xid", "device": "nobody"}, "host-1 is cabled to 0-000001"),
        ({"kind": "layer-slow", "arrow": "driver", "delay_s": -1}, "must be 0 or more"),
    ],
)
def test_what_is_no_fault_is_refused_with_what_is_allowed(spec, said):
    with pytest.raises(ValueError, match=said):
        Pair().host.faults.add(spec, 0.0)
