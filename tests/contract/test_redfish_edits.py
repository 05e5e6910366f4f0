"""Redfish, contract chassis.md 4: every way to edit the table, in process and over a socket."""

from __future__ import annotations

import pytest

from tests.contract.redfish import ENDPOINTS, FABRIC, ROOT, ZONES, Client, pass_time, port_of, walk
from tests.contract.wire import GoneError, backend

SLOW = {"attach": 10, "detach": 6}
BLOCKS = f"{ROOT}/CompositionService/ResourceBlocks"
DEVICES = f"{ROOT}/Chassis/A/PCIeDevices"
TASKS = f"{ROOT}/TaskService/Tasks"


@pytest.fixture
def client(box):
    return Client(box)


@pytest.fixture
def slow():
    """A chassis that takes its time, emulated a thousand times as fast."""
    with backend("in-process", profile=SLOW) as made:
        made.rack.clock.speed = 1
        yield Client(made)


def hurry(client):
    """Let what runs end."""
    client.box.rack.clock.speed = 1000


def followed(client, said):
    """The operation's own reply."""
    assert said.status == 202
    hurry(client)
    for _ in range(2000):
        reply = client.ask("GET", said.headers["location"])
        if reply.status != 202:
            return reply
    raise AssertionError("the task does not end")


def test_the_whole_tree_can_be_walked_and_every_resource_says_who_it_is(client):
    found = walk(client)
    assert len(found) > 200
    for path, body in found.items():
        assert body["@odata.id"] == path
        assert body["@odata.etag"]
        if "Members" in body:
            assert body["Members@odata.count"] == len(body["Members"])


def test_a_device_is_moved_by_the_standards_actions(client, box):
    assert client.remove("000100", "1").status == 204
    assert port_of(box, "000100") is None
    assert client.add("000100", "2").status == 204
    assert port_of(box, "000100") == "2"
    zone = client.get(f"{ZONES}/2")
    assert [each["@odata.id"].rpartition("/")[2] for each in zone["Links"]["Endpoints"]] == [
        "hostport2_H1", "000100", "000500", "000600", "000700", "000800",
    ]  # fmt: skip
    assert client.get(f"{ENDPOINTS}/000100")["Links"]["Zones"] == [{"@odata.id": f"{ZONES}/2"}]


def test_all_dialects_see_one_table(client, box):
    assert box.send("DELETE", "/allocation", b'{"devid":"000100"}')[0] == 204
    assert client.get(f"{ENDPOINTS}/000100")["Links"]["Zones"] == []
    client.add("000100", "3")
    body = b'{"gep":"0","dev_gid":"000100"}'
    assert b"true" in box.send("DELETE", "/h3api/v1/allocation", body)[1].encode()
    assert client.get(f"{ENDPOINTS}/000100")["Links"]["Zones"] == []


@pytest.mark.parametrize("change", ["add", "remove"])
def test_a_tag_given_as_a_parameter_must_be_the_current_one(client, box, change):
    client.remove("000100", "1")
    stale = client.get(f"{ZONES}/2")["@odata.etag"]
    client.add("000100", "2")
    device, port = ("000100", "2") if change == "remove" else ("000900", "2")
    before = box.rack.table()
    for name in ("ZoneETag", "EndpointETag"):
        assert getattr(client, change)(device, port, **{name: stale}).status == 428
    assert box.rack.table() == before
    tags = {
        "ZoneETag": client.get(f"{ZONES}/2")["@odata.etag"],
        "EndpointETag": client.get(f"{ENDPOINTS}/{device}")["@odata.etag"],
    }
    assert client.remove("000100", "2", **tags if change == "remove" else {}).status == 204


@pytest.mark.parametrize(
    ("device", "port", "more", "status"),
    [
        ("000100", "2", {}, 409),
        ("nope", "2", {}, 404),
        ("000100", "9", {}, 404),
        ("hostport1_H1", "2", {}, 400),
        ("000100", "1", {"Bogus": 1}, 400),
        ("000100", "1", {"Endpoint": "text"}, 400),
        ("000100", "1", {"Endpoint": None}, 400),
        ("000100", "1", {"ZoneETag": 7}, 400),
    ],
)
def test_what_cannot_be_added_is_refused_and_nothing_changes(client, box, device, port, more, status):
    before = box.rack.table()
    assert client.add(device, port, **more).status == status
    assert box.rack.table() == before


def test_a_device_is_removed_only_from_the_zone_that_it_is_in(client, box):
    assert client.remove("000100", "2").status == 400
    assert port_of(box, "000100") == "1"


def patch_zone(client, port, *devices, first=True, **headers):
    names = ([f"hostport{port}_H1"] if first else []) + list(devices)
    links = [{"@odata.id": f"{ENDPOINTS}/{name}"} for name in names]
    return client.ask("PATCH", f"{ZONES}/{port}", {"Links": {"Endpoints": links}}, **headers)


def test_h3s_patch_replaces_the_whole_list(client, box):
    client.remove("000500", "2")
    said = patch_zone(client, "1", "000100", "000500")
    assert said.status == 200
    assert {row for row, each in box.rack.table()["A"].items() if each["port"] == "1"} == {"000100", "000500"}
    assert len(said.body["Links"]["Endpoints"]) == 3


def test_h3s_patch_needs_the_host_ports_endpoint_first_and_takes_nothing_from_another_zone(client, box):
    before = box.rack.table()
    assert patch_zone(client, "1", "000100", first=False).status == 400
    assert patch_zone(client, "1", "000100", "000500").status == 409
    assert patch_zone(client, "1", "nope").status == 404
    assert patch_zone(client, "1", "000100", "000100").status == 400
    assert client.ask("PATCH", f"{ZONES}/1", {"Links": {"Endpoints": "x"}}).status == 400
    assert box.rack.table() == before


def test_h3s_patch_obeys_if_match(client, box):
    stale = client.get(f"{ZONES}/1")["@odata.etag"]
    client.remove("000100", "1")
    assert patch_zone(client, "1", If_Match=stale).status == 412
    assert port_of(box, "000200") == "1"
    assert patch_zone(client, "1", If_Match=client.get(f"{ZONES}/1")["@odata.etag"]).status == 200
    assert port_of(box, "000200") is None


def test_a_taken_block_is_refused_and_a_free_one_composed(client, box):
    taken = {"Links": {"ResourceBlocks": [{"@odata.id": f"{BLOCKS}/{name}"} for name in ("host-2", "000100")]}}
    assert client.ask("POST", f"{ROOT}/Systems", taken).status == 409
    client.remove("000100", "1")
    made = client.ask("POST", f"{ROOT}/Systems", {"Name": "big", **taken})
    assert (made.status, made.headers["location"]) == (201, f"{ROOT}/Systems/big")
    assert port_of(box, "000100") == "2"
    assert client.get(f"{BLOCKS}/000100")["CompositionStatus"]["CompositionState"] == "Composed"
    assert client.ask("POST", f"{ROOT}/Systems", {"Name": "two", **taken}).status == 409
    assert client.ask("DELETE", made.headers["location"]).status == 204
    assert port_of(box, "000100") is None
    assert client.ask("GET", made.headers["location"]).status == 404


def test_blocks_are_added_to_and_removed_from_a_system(client, box):
    def act(name, block):
        body = {"ResourceBlock": {"@odata.id": f"{BLOCKS}/{block}"}}
        return client.ask("POST", f"{ROOT}/Systems/host-1/Actions/ComputerSystem.{name}ResourceBlock", body).status

    assert act("Add", "000500") == 409
    assert act("Remove", "000500") == 400
    assert act("Remove", "000100") == 204
    assert port_of(box, "000100") is None
    assert act("Add", "000100") == 204
    assert port_of(box, "000100") == "1"
    assert act("Add", "host-2") == 400
    assert act("Add", "nope") == 404


def test_a_device_made_ready_to_be_removed_is_detached_and_stays_so(client, box):
    device = f"{DEVICES}/000100"
    assert client.ask("PATCH", device, {"ReadyToRemove": True}).body["ReadyToRemove"] is True
    assert port_of(box, "000100") is None
    assert client.add("000100", "1").status == 409
    assert client.ask("PATCH", device, {"ReadyToRemove": False}).body["ReadyToRemove"] is False
    assert client.add("000100", "1").status == 204


def test_an_empty_slot_is_an_absent_device(client, box):
    with box.rack.box("A") as chassis:
        chassis.edits.remove("000300", box.rack.clock.now())
    assert client.ask("GET", f"{DEVICES}/000300").status == 404
    empty = client.get(f"{DEVICES}/EmptySlot3")
    assert empty["Status"] == {"State": "Absent"}
    assert empty["Slot"]["Location"]["PartLocation"]["LocationOrdinalValue"] == 3
    assert client.get(f"{FABRIC}/Switches/Switch1/Ports/Slot3")["LinkStatus"] == "NoLink"


def test_a_reset_of_a_port_takes_the_link_down_and_up_again(client, box):
    box.rack.clock.speed = 1
    port = f"{FABRIC}/Switches/Switch1/Ports/Slot1"
    assert client.ask("POST", f"{port}/Actions/Port.Reset", {"ResetType": "GracefulRestart"}).status == 409
    assert client.ask("POST", f"{port}/Actions/Port.Reset", {"ResetType": "Nope"}).status == 400
    assert client.ask("POST", f"{port}/Actions/Port.Reset", {"ResetType": "ForceRestart"}).status == 204
    assert client.get(port)["LinkStatus"] == "LinkDown"
    box.rack.clock.speed = 1000
    pass_time(box, 3)
    assert client.get(port)["LinkStatus"] == "LinkUp"
    assert port_of(box, "000100") == "1"


def test_a_reset_of_the_manager_drops_connections_and_keeps_the_table(client, box):
    before = box.rack.table()
    box.rack.clock.speed = 1
    assert client.ask("POST", f"{ROOT}/Managers/BMC/Actions/Manager.Reset", {}).status == 204
    with pytest.raises(GoneError):
        client.ask("GET", f"{ROOT}/")
    box.rack.clock.speed = 1000
    pass_time(box, 21)
    assert client.get(f"{ROOT}/")
    assert box.rack.table() == before


# Long operations


def test_a_long_operation_is_a_task_and_its_monitor_ends_with_the_operations_own_reply(slow):
    assert followed(slow, slow.remove("000100", "1")).status == 204
    slow.box.rack.clock.speed = 1
    said = slow.add("000100", "2")
    assert said.headers["retry-after"] == "1"
    assert said.body["TaskState"] == "Running"
    task = slow.get(said.body["@odata.id"])
    assert 0 <= task["PercentComplete"] < 100
    assert task["Payload"]["TargetUri"] == f"{ZONES}/2/Actions/Zone.AddEndpoint"
    assert slow.get(f"{FABRIC}/Switches/Switch1/Ports/Slot1")["LinkStatus"] == "Training"
    assert slow.ask("GET", said.headers["location"]).status == 202
    assert followed(slow, said).status == 204
    ended = slow.get(said.body["@odata.id"])
    assert (ended["TaskState"], ended["PercentComplete"], ended["TaskStatus"]) == ("Completed", 100, "OK")
    assert slow.get(f"{FABRIC}/Switches/Switch1/Ports/Slot1")["LinkStatus"] == "LinkUp"


@pytest.mark.parametrize("where", ["task", "monitor"])
def test_a_task_that_is_cancelled_has_no_effect(slow, where):
    said = slow.remove("000100", "1")
    target = said.body["@odata.id"] if where == "task" else said.headers["location"]
    assert slow.ask("DELETE", target).status == 204
    assert slow.get(said.body["@odata.id"])["TaskState"] == "Cancelled"
    assert slow.ask("GET", said.headers["location"]).status == 409
    hurry(slow)
    pass_time(slow.box, 10)
    assert port_of(slow.box, "000100") == "1"


def test_a_task_that_fails_says_why(slow):
    followed(slow, slow.remove("000100", "1"))
    slow.box.rack.clock.speed = 1
    with slow.box.rack.box("A") as chassis:
        chassis.faults.add({"kind": "never-trains", "device": "000100"}, slow.box.rack.clock.now())
    said = slow.add("000100", "2")
    assert followed(slow, said).status == 500
    task = slow.get(said.body["@odata.id"])
    assert (task["TaskState"], task["TaskStatus"]) == ("Exception", "Critical")
    assert task["Messages"][0]["MessageId"].endswith("OperationFailed")
    assert port_of(slow.box, "000100") is None


def test_h3s_patch_of_several_devices_is_one_task(slow):
    said = patch_zone(slow, "1", "000100")
    assert said.status == 202
    reply = followed(slow, said)
    assert port_of(slow.box, "000200") is None
    assert port_of(slow.box, "000100") == "1"
    assert reply.status in (200, 204)


def test_a_dropped_connection_drops_the_request_as_in_the_other_dialects(client, box):
    with box.rack.box("A") as chassis:
        chassis.faults.add({"kind": "dropped-connection", "when": "after", "operation": "detach"}, 0.0)
    with pytest.raises(GoneError):
        client.remove("000100", "1")
    assert port_of(box, "000100") is None


def test_a_lie_is_told_here_too(client, box):
    with box.rack.box("A") as chassis:
        chassis.faults.add({"kind": "lying-result", "operation": "detach"}, 0.0)
    assert client.remove("000100", "1").status == 500
    assert port_of(box, "000100") is None
