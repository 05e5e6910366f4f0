"""A device comes up layer by layer, comes down in order or by surprise, and keeps what is its own when it moves."""

import pytest

from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.hardware.host_profiles import ARROWS
from mews.emulator.host.fleet import Hosts
from mews.emulator.host.function import BringUpStage
from mews.emulator.inventory.reading import parse_hardware
from tests.emulator.host.bench import Pair

SLOW = {"link": 1, "function": 2, "driver": 4, "node": 8, "nvml": 16, "surprise": 3}
UP = ["link-up", "function-added", "driver-bound", "node-added", "nvml-visible"]
DOWN = ["nvml-hidden", "node-removed", "driver-unbound", "function-removed"]


def test_with_profile_instant_all_layers_come_up_at_once_in_their_order():
    pair = Pair(ports=("1", "1", None, "2"))
    pair.move("000003", None, "1")
    assert pair.events() == UP


def test_each_layer_takes_its_own_time():
    pair = Pair(SLOW, ports=("1", "1", None, "2"))
    pair.move("000003", None, "1")
    seen = []
    for _ in range(32):
        seen.append(pair.device("000003").stage)
        pair.later(1)
    assert [seen.index(stage) for stage in BringUpStage] == [0, 1, 3, 7, 15, 31]
    assert [event.t for event in pair.told] == [1, 3, 7, 15, 31]


def test_a_moved_gpu_keeps_uuid_and_serial_and_takes_a_new_address():
    pair = Pair()
    before = pair.device("000001")
    identity, place = (before.device.uuid, before.device.serial), before.bdf
    pair.move("000001", "1", "2")
    after = pair.device("000001", pair.other)
    assert (after.device.uuid, after.device.serial) == identity
    assert after.bdf != place
    assert (after.minor, after.stage) == (1, BringUpStage.NVML)
    pair.move("000001", "2", "1")
    assert pair.device("000001").bdf not in (place, after.bdf)


def test_a_device_that_the_chassis_takes_away_is_lost_by_surprise():
    pair = Pair(SLOW)
    pair.move("000002", "1", None)
    assert pair.events() == ["xid", "lost"]
    pair.later(3)
    assert pair.events() == [*DOWN, "link-down"]
    assert len(pair.host.bus.functions()) == 2
    assert "Xid (PCI:0000:21:00): 79" in pair.host.events.log.text()


def test_one_that_was_removed_first_is_missed_by_nobody():
    pair = Pair()
    pair.operator.remove(pair.device("000002").bdf, pair.t)
    pair.events()
    pair.move("000002", "1", None)
    assert pair.events() == ["link-down"]
    assert pair.host.events.log.text() == ""


def test_a_lost_device_in_use_stays_in_sysfs_until_it_is_closed():
    pair = Pair()
    pair.hold("000002")
    pair.move("000002", "1", None)
    assert [f.lost for f in pair.host.bus.functions() if f.device.id == "000002"] == [True]
    pair.release()
    assert [f.device.id for f in pair.host.bus.functions()] == ["000001", "000003"]


def test_a_link_that_comes_back_brings_the_device_back():
    pair = Pair()
    pair.link("000001", False)
    assert pair.device("000001").stage == BringUpStage.ABSENT
    pair.link("000001", True)
    assert pair.device("000001").healthy


def test_without_pciehp_a_device_is_found_by_a_rescan_only():
    pair = Pair({"pciehp": False}, ports=("1", "1", None, "2"))
    pair.move("000003", None, "1")
    pair.later(100)
    assert pair.device("000003").stage == BringUpStage.LINK
    pair.operator.rescan(pair.t)
    assert pair.device("000003").stage == BringUpStage.NVML


@pytest.mark.parametrize(("kind", "driver"), [("NIC", "mlx5_core"), ("FPGA", "xclmgmt")])
def test_other_kinds_stop_at_their_driver(kind, driver):
    pair = Pair(kinds=(kind, "GPU", "GPU", "GPU"))
    function = pair.device("000001")
    assert (function.stage, function.bound, function.minor, function.healthy) == (
        BringUpStage.DRIVER,
        driver,
        None,
        True,
    )
    pair.move("000001", "1", None)
    assert "xid" not in pair.events()


def test_more_than_two_hundred_devices_have_addresses_of_their_own():
    devices = [{"id": f"{n:06d}", "uuid": f"GPU-{n}", "port": "1"} for n in range(300)]
    document = {
        "apiVersion": "mews/v1",
        "kind": "Hardware",
        "metadata": {"name": "big"},
        "hosts": [{"name": "h"}],
        "chassis": [{"name": "A", "slots": 300, "ports": {"1": "h"}, "devices": devices}],
    }
    hosts = Hosts(parse_hardware(document, "test"), EmulationContext(1))
    hosts.begin(0.0)
    functions = hosts.host("h").bus.functions()
    assert len({f.bdf for f in functions}) == len({f.minor for f in functions}) == 300


def test_a_reset_of_the_chassis_is_followed():
    pair = Pair()
    pair.move("000001", "1", "2")
    pair.link("000002", False)
    pair.chassis_event("reset", {})
    assert sorted(f.device.id for f in pair.host.bus.functions() if f.healthy) == ["000001", "000002", "000003"]
    assert [f.device.id for f in pair.other.bus.functions()] == ["000004"]


def _edit(old: str | None, new: str | None) -> dict[str, str | None]:
    return {"device": "000001", "old_port": old, "new_port": new, "cause": "edit"}


def _where(pair: Pair) -> dict[str, list[str]]:
    hosts = pair.hosts.hosts.items()
    return {
        name: [f.device.id for f in host.bus.functions() if (f.plugged, f.device.id) == (True, "000001")]
        for name, host in hosts
    }


def test_an_edit_that_is_heard_late_does_not_undo_the_one_after_it():
    pair = Pair()
    pair.chassis_event("table-changed", _edit("2", "1"), number=2)
    pair.chassis_event("table-changed", _edit("1", "2"), number=1)
    assert _where(pair) == {"host-1": ["000001"], "host-2": []}


def test_a_device_that_moved_on_is_nowhere_but_where_it_is_now_while_an_edit_is_late():
    pair = Pair()
    pair.chassis_event("uuid-changed", {"device": "000002", "uuid": "GPU-x"}, number=1)
    pair.chassis_event("table-changed", _edit(None, "2"), number=3)
    assert _where(pair) == {"host-1": [], "host-2": ["000001"]}
    pair.chassis_event("table-changed", _edit("1", None), number=2)
    assert _where(pair) == {"host-1": [], "host-2": ["000001"]}


def test_a_link_that_came_up_late_news_stays_down_when_it_went_down_since():
    pair = Pair()
    link = {"device": "000001", "port": "1"}
    pair.chassis_event("link-down", link, number=1)
    pair.chassis_event("link-down", link, number=3)
    pair.chassis_event("link-up", link, number=2)
    assert not pair.device("000001").link


def test_a_link_that_is_down_stays_down_where_an_edit_moves_the_device():
    pair = Pair()
    pair.link("000001", up=False)
    pair.move("000001", "1", "2")
    moved = pair.device("000001", pair.other)
    assert (moved.link, moved.stage.name) == (False, "ABSENT")
    pair.link("000001", up=True, port="2")
    assert (moved.link, moved.next_arrow) == (True, None)


@pytest.mark.parametrize("event", ["device-inserted", "reset"])
def test_another_device_and_a_reset_have_their_links_up(event):
    pair = Pair()
    pair.move("000001", "1", None)
    pair.chassis_event("link-down", {"device": "000001", "port": None})
    pair.chassis_event(event, {"device": "000001", "uuid": "GPU-n", "new_port": "2"} if event != "reset" else {})
    if event == "reset":
        pair.move("000001", "1", "2")
    assert pair.device("000001", pair.other).link


def test_a_late_edit_counts_though_the_link_has_changed_since():
    pair = Pair()
    pair.chassis_event("fault-added", {"fault": "f", "kind": "k"}, number=1)
    pair.chassis_event("link-down", {"device": "000001", "port": "2"}, number=3)
    pair.chassis_event("table-changed", _edit("1", "2"), number=2)
    assert _where(pair) == {"host-1": [], "host-2": ["000001"]}


def test_a_chassis_that_starts_again_is_believed_from_its_first_event_once_its_table_was_read():
    pair = Pair()
    pair.chassis_event("table-changed", _edit("1", "2"), number=1)
    pair.chassis_event("table-changed", _edit("2", None), number=2)
    pair.hosts.reconcile({"A": {"000001": None}}, pair.t)
    pair.chassis_event("table-changed", _edit(None, "1"), number=1)
    assert _where(pair) == {"host-1": ["000001"], "host-2": []}


def test_every_arrow_has_its_event():
    assert len(UP) == len(ARROWS) == len(BringUpStage) - 1


def test_who_opens_a_device_changes_the_host_but_no_file_of_its_hardware():
    pair = Pair(ports=("1", "1", None, "2"))
    before = (pair.host.versions.all, pair.host.versions.hardware)
    pair.hold("000001")
    pair.release()
    assert (pair.host.versions.all > before[0], pair.host.versions.hardware) == (True, before[1])
    pair.move("000003", None, "1")
    assert pair.host.versions.hardware > before[1]
