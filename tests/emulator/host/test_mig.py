"""MIG on a host: as an action, in the driver's files, in the kernel log, and what keeps a GPU from being removed."""

import pytest

from mews.emulator.host.act import begin
from mews.emulator.host.capabilities import capability_minor
from mews.emulator.host.errors import (
    BadWriteError,
    DeviceInUseError,
    DeviceLostError,
    NoRoomLeftError,
    NoSuchDeviceError,
    NotSupportedError,
)
from mews.emulator.host.holders import Holder
from mews.emulator.host.nvml_view import nvml_host
from tests.emulator.host.bench import Pair

A100, H100, T4 = "000001", "000002", "000003"


@pytest.fixture
def pair():
    return Pair(ports=("1",) * 4)


def mig(pair, change, *values, device=H100):
    pending = begin(pair.tree, {"do": "mig", "device": device, "change": change, "values": values}, pair.t)
    assert pending.done
    if pending.refusal is not None:
        raise pending.refusal


@pytest.fixture
def divided(pair):
    """An H100 with two eighths."""
    for change in (
        ("mode", 1),
        ("create-gpu", 19),
        ("create-gpu", 19, 0),
        ("create-compute", 9, 0),
        ("create-compute", 11, 0),
    ):
        mig(pair, *change)
    pair.told.clear()
    return pair


def compute_on(pair, number):
    """A pod works on one of the H100's MIG devices."""
    _, one = pair.device(H100).mig.devices()[number]
    pair.host.hold(Holder("pod", (one.uuid,), pid=4711, computing=True), pair.t)


def test_changes_are_events_of_the_host(pair):
    for change in (
        ("mode", 1),
        ("create-gpu", 9),
        ("create-compute", 1, 2),
        ("destroy-compute", 1, 0),
        ("destroy-gpu", 1),
    ):
        mig(pair, *change)
    told = [(event.event, event.fields.get("instances", event.fields.get("on"))) for event in pair.told]
    assert told == [
        ("mig-mode", True),
        ("mig-instances", ["1:3g.40gb"]),
        ("mig-instances", ["1:3g.40gb/0"]),
        ("mig-instances", ["1:3g.40gb"]),
        ("mig-instances", []),
    ]


@pytest.mark.parametrize(("change", "refusal"), [
    (("mode", 2), BadWriteError), (("create-gpu", 77), BadWriteError), (("create-gpu", 19, 7), BadWriteError),
    (("create-gpu",), BadWriteError), (("create-gpu", 0), NoRoomLeftError),
    (("create-compute", 9, 0), NoRoomLeftError), (("create-compute", 1, 0), NoSuchDeviceError),
    (("destroy-gpu", 1), NoSuchDeviceError), (("destroy-gpu", 9), DeviceInUseError),
    (("destroy-compute", 9, 3), NoSuchDeviceError), (("mode", 0), DeviceInUseError),
])  # fmt: skip
def test_what_cannot_be_is_refused_and_changes_nothing(divided, change, refusal):
    before = divided.device(H100).mig
    with pytest.raises(refusal):
        mig(divided, *change)
    assert divided.device(H100).mig == before


def test_a_model_without_mig_a_mode_that_is_off_and_a_lost_gpu_refuse(pair):
    with pytest.raises(NotSupportedError):
        mig(pair, "mode", 1, device=T4)
    with pytest.raises(NotSupportedError):
        mig(pair, "create-gpu", 19)
    pair.host.bring_up.fall(pair.device(H100))
    with pytest.raises(DeviceLostError):
        mig(pair, "mode", 1)


@pytest.mark.parametrize("action", [{"change": "shrink"}, {"change": "mode", "values": [-1]}, {"values": [1]}])
def test_an_action_that_is_none_is_refused_before_it_begins(pair, action):
    with pytest.raises(ValueError, match=r"change|values"):
        begin(pair.tree, {"do": "mig", "device": H100, **action}, pair.t)


def test_a_gpu_whose_instance_is_used_stays_and_one_with_idle_instances_goes_whole(divided):
    function = divided.device(H100)
    compute_on(divided, 0)
    with pytest.raises(DeviceInUseError):
        divided.nvml_calls.remove_gpu(function.bdf, divided.t)
    with pytest.raises(DeviceInUseError):
        mig(divided, "destroy-compute", 9, 0)
    mig(divided, "destroy-compute", 11, 0)
    divided.host.release("pod", divided.t)
    divided.nvml_calls.remove_gpu(function.bdf, divided.t)
    assert function.mig.instances == ()


def test_a_pod_is_on_its_part_and_the_whole_is_in_use(divided):
    compute_on(divided, 1)
    function = divided.device(H100)
    shown = next(gpu for gpu in nvml_host(divided.host).gpus if gpu.bus_id == function.bdf)
    assert [(each.pid, each.gpu_instance, each.compute_instance) for each in shown.processes] == [(4711, 11, 0)]
    assert divided.host.busy(function)


def test_capabilities_are_files_and_nodes_with_the_drivers_numbers(divided):
    tree, minor = divided.tree, divided.device(H100).minor
    first = capability_minor(minor, 9)
    assert (capability_minor(0, 0), capability_minor(1, 0), capability_minor(6, 13, 0)) == (3, 138, 931)
    base = f"proc/driver/nvidia/capabilities/gpu{minor}/mig"
    assert tree.names(base) == ["gi11", "gi9"]
    assert tree.read(f"{base}/gi9/access") == (
        f"DeviceFileMinor: {first}\nDeviceFileMode: 292\nDeviceFileModify: 1\n".encode()
    )
    assert f"DeviceFileMinor: {first + 1}\n".encode() in tree.read(f"{base}/gi9/ci0/access")
    assert f"gpu{minor}/gi9/ci0/access {first + 1}\n".encode() in tree.read("proc/driver/nvidia-caps/mig-minors")
    nodes = {1, 2, first, first + 1, first + 18, first + 19}
    assert set(tree.names("dev/nvidia-caps")) == {f"nvidia-cap{number}" for number in nodes}
    mig(divided, "destroy-compute", 9, 0)
    assert f"nvidia-cap{first + 1}" not in tree.names("dev/nvidia-caps")


def test_without_mig_there_are_no_capability_nodes(pair):
    assert "nvidia-caps" not in pair.tree.names("dev")
    assert pair.tree.names("proc/driver/nvidia/capabilities/mig") == ["config", "monitor"]


def test_an_xid_is_of_the_mig_device_on_which_it_happened(divided):
    divided.host.faults.add({"kind": "xid", "device": H100, "xid": 48, "mig_device": 1}, divided.t)
    divided.host.faults.add({"kind": "xid", "device": H100, "xid": 48, "mig_device": 6}, divided.t)
    divided.later(1)
    events = [event for event in divided.host.events.driver_events.last() if event.kind == "xid"]
    assert [(event.data, event.gpu_instance, event.compute_instance) for event in events] == [(48, 11, 0)]
    assert " GPU-I:11): 48" in divided.host.events.log.lines()[-1]
    assert divided.device(H100).healthy


def test_a_board_that_leaves_its_host_has_no_instances_any_more(divided):
    divided.move(H100, "1", "2")
    divided.later(60)
    assert divided.device(H100, divided.other).mig.instances == ()


def test_an_ampere_board_takes_its_mode_along_and_a_later_one_forgets_it(pair):
    for device in (A100, H100):
        mig(pair, "mode", 1, device=device)
        pair.move(device, "1", None)
        pair.later(60)
        pair.move(device, None, "2")
        pair.later(60)
    there = {device: pair.device(device, pair.other).mig for device in (A100, H100)}
    assert {device: (state.enabled, state.pending) for device, state in there.items()} == {
        A100: (True, True), H100: (False, False),
    }  # fmt: skip
    pair.move(A100, "2", "1")
    pair.later(60)
    mig(pair, "mode", 0, device=A100)
    pair.move(A100, "1", "2")
    pair.later(60)
    assert not pair.device(A100, pair.other).mig.enabled


def test_a_mode_that_waits_on_an_ampere_board_is_on_where_it_arrives(pair):
    pair.hold(A100)
    with pytest.raises(DeviceInUseError):
        mig(pair, "mode", 1, device=A100)
    assert not pair.device(A100).mig.enabled
    pair.move(A100, "1", "2")
    pair.later(60)
    assert pair.device(A100, pair.other).mig.enabled
