"""What blocks, what is refused, and what NVML's hot-plug calls do (contract host.md sections 2 to 4)."""

import pytest

from mews.emulator.host.act import begin
from mews.emulator.host.errors import DeviceInUseError, DeviceLostError, DriverFailedError, NoSuchDeviceError
from mews.emulator.host.function import BringUpStage
from mews.emulator.host.nvml_view import nvml_host
from tests.emulator.host.bench import Pair


@pytest.fixture
def pair():
    return Pair()


@pytest.mark.parametrize("do", ["remove", "unbind"])
def test_a_write_on_a_gpu_in_use_waits_until_it_is_closed(pair, do):
    function = pair.device("000001")
    pair.hold("000001", "one")
    pair.hold("000001", "two")
    pending = getattr(pair.operator, do)(function.bdf, pair.t)
    pair.release("one")
    assert not pending.done
    assert pair.host.view()["waiting"] == [pending.what]
    pair.release("two")
    assert pending.done
    assert function.stage < BringUpStage.DRIVER


def test_switching_a_busy_slot_off_waits_too(pair):
    pair.hold("000002")
    pending = pair.operator.power(pair.device("000002").slot, False, pair.t)
    assert not pending.done
    pair.release()
    assert pending.done


def test_nothing_waits_for_a_gpu_without_a_driver(pair):
    pair.operator.unbind(pair.device("000001").bdf, pair.t)
    pair.hold("000001")
    assert pair.operator.remove(pair.device("000001").bdf, pair.t).done


def test_persistence_mode_keeps_a_gpu_from_draining_and_from_removal(pair):
    bdf = pair.device("000001").bdf
    pair.nvml_calls.persistence(bdf, True, pair.t)
    with pytest.raises(DeviceInUseError):
        pair.nvml_calls.drain(bdf, True, pair.t)
    with pytest.raises(DeviceInUseError):
        pair.nvml_calls.remove_gpu(bdf, pair.t)
    pair.nvml_calls.persistence(bdf, False, pair.t)
    pair.nvml_calls.drain(bdf, True, pair.t)
    assert [gpu.draining for gpu in nvml_host(pair.host).gpus] == [True, False, False]


def test_removal_by_nvml_is_refused_while_another_process_is_attached(pair):
    bdf = pair.device("000001").bdf
    pair.hold("000001", "nvml/1")
    pair.nvml_calls.drain(bdf, True, pair.t)
    with pytest.raises(DeviceInUseError):
        pair.nvml_calls.remove_gpu(bdf, pair.t)
    pair.nvml_calls.remove_gpu(bdf, pair.t, asker=["nvml/1"])
    with pytest.raises(NoSuchDeviceError):
        pair.nvml_calls.remove_gpu(bdf, pair.t)


@pytest.mark.parametrize(
    ("detach", "shut_link", "stage"),
    [(False, False, BringUpStage.FUNCTION), (True, False, BringUpStage.LINK), (True, True, BringUpStage.ABSENT)],
)
def test_removal_goes_as_deep_as_it_is_asked_to_and_discovery_brings_it_back(pair, detach, shut_link, stage):
    function = pair.device("000001")
    pair.nvml_calls.remove_gpu(function.bdf, pair.t, detach=detach, shut_link=shut_link)
    assert function.stage == stage
    pair.nvml_calls.discover(pair.t)
    if stage != BringUpStage.FUNCTION:
        assert function.healthy


def test_discovery_is_done_when_the_drivers_are_bound():
    pair = Pair({"function": 2, "driver": 3, "nvml": 1})
    function = pair.device("000001")
    pair.operator.remove(function.bdf, pair.t)
    pending = pair.nvml_calls.discover(pair.t)
    pair.later(1.9)
    assert not pending.done
    pair.later(0.2)
    assert pending.done


def test_a_removed_node_comes_back_with_the_driver(pair):
    function = pair.device("000001")
    pair.operator.unlink_node(0, pair.t)
    assert "nvidia0" not in pair.tree.names("dev")
    with pytest.raises(NoSuchDeviceError):
        pair.operator.unlink_node(0, pair.t)
    pair.operator.unbind(function.bdf, pair.t)
    pair.operator.bind(function.bdf, pair.t)
    assert "nvidia0" in pair.tree.names("dev")


def test_a_bind_that_fails_says_so_and_the_next_may_succeed(pair):
    function = pair.device("000001")
    pair.operator.unbind(function.bdf, pair.t)
    pair.host.faults.add({"kind": "driver-fails"}, pair.t)
    pending = pair.operator.bind(function.bdf, pair.t)
    assert isinstance(pending.refusal, DriverFailedError)
    assert pair.operator.bind(function.bdf, pair.t).refusal is None
    assert function.healthy


def test_what_a_pod_uses_shows_as_load_memory_and_process(pair):
    from mews.emulator.host.holders import Holder
    from mews.emulator.telemetry.load import constant

    uuid = pair.device("000002").device.uuid
    holder = Holder("pod/u/main/0", (uuid,), pid=99, name="train/main", computing=True, load=constant(87))
    pair.host.hold(holder, pair.t)
    idle, busy, _ = nvml_host(pair.host).gpus
    assert (idle.utilization_percent, idle.memory_used_mib, idle.processes) == (0, 0, ())
    assert busy.utilization_percent == 87
    assert 0 < busy.memory_used_mib < busy.profile.memory_mib
    assert [(p.pid, p.name, p.used_mib) for p in busy.processes] == [(99, "train/main", busy.memory_used_mib)]


def test_a_machine_that_is_switched_tells_so_once(pair):
    pair.chassis_event("host-power", {"host": "host-1", "on": False, "boot": ""})
    begin(pair.tree, {"do": "machine-power", "on": False}, pair.t)
    begin(pair.tree, {"do": "machine-power", "on": True}, pair.t)
    told = [(event.host, event.event) for event in pair.told if event.event.startswith("powered")]
    assert told == [("host-1", "powered-off"), ("host-1", "powered-on")]


def test_a_reset_takes_the_driver_off_and_on_and_is_refused_where_the_gpu_is_open_or_lost(pair):
    function = pair.device("000001")
    pair.hold("000001", "nvml/1")
    with pytest.raises(DeviceInUseError):
        pair.nvml_calls.reset_gpu(function.bdf, pair.t)
    before = function.stage
    pair.nvml_calls.reset_gpu(function.bdf, pair.t, asker=["nvml/1"])
    pair.later(30.0)
    assert [event.kind for event in pair.host.events.driver_events.last()][-2:] == ["unbind", "bind"]
    assert (function.stage, function.healthy) == (before, True)
    pair.host.bring_up.fall(function)
    with pytest.raises(DeviceLostError):
        pair.nvml_calls.reset_gpu(function.bdf, pair.t, asker=["nvml/1"])
