"""Dialect h3api, contract chassis.md 2: one suite, in process and over a socket."""

from __future__ import annotations

import json

import pytest

from tests.contract.wire import Backend, GoneError

RESOURCES = "/h3api/v1/resources"
ALLOCATION = "/h3api/v1/allocation"
DONE = '{"action":"unassign","result":[true],"remark":"done"}'


def allocate(box: Backend, method: str, body: object, **headers: str):
    return box.send(method, ALLOCATION, json.dumps(body).encode(), {"Content-Type": "text/plain", **headers})


def fault(box: Backend, **spec: object) -> None:
    with box.rack.box("A") as chassis:
        chassis.faults.add(spec, box.rack.clock.now())


def port_of(box: Backend, device: str) -> str | None:
    return box.rack.table()["A"][device]["port"]


def test_resources_is_an_array_of_flat_records_whose_every_value_is_a_string(box):
    status, text, headers = box.send("GET", RESOURCES)
    records = json.loads(text)
    assert status == 200
    assert headers["content-type"].startswith("application/json")
    assert all(isinstance(value, str) for record in records for value in record.values())
    devices = [record for record in records if "Dev_GID" in record]
    ports = [record for record in records if "Port#" in record]
    assert len(devices) == 12
    assert set(devices[0]) == {"dev_type", "Dev_GID", "Host_Port#", "OB_GPU_GUID"}
    assert ports == [
        {"Port#": "1", "Port_GID": "01h"},
        {"Port#": "2", "Port_GID": "02h"},
        {"Port#": "3", "Port_GID": "03h"},
    ]
    assert {record["Host_Port#"] for record in devices} <= {record["Port#"] for record in ports}


def test_detach_takes_a_body_and_answers_with_lower_case_keys(box):
    assert allocate(box, "DELETE", {"gep": "0", "dev_gid": "000100"})[:2] == (200, DONE)
    assert port_of(box, "000100") is None


def test_a_free_device_has_an_empty_host_port(box):
    allocate(box, "DELETE", {"gep": "0", "dev_gid": "000100"})
    records = {record.get("Dev_GID"): record for record in json.loads(box.send("GET", RESOURCES)[1])}
    assert records["000100"]["Host_Port#"] == ""


def test_detach_of_a_free_device_is_well(box):
    allocate(box, "DELETE", {"gep": "0", "dev_gid": "000100"})
    assert allocate(box, "DELETE", {"gep": "0", "dev_gid": "000100"})[:2] == (200, DONE)


def test_attach_puts_the_device_on_the_port_of_that_gid(box):
    allocate(box, "DELETE", {"gep": "0", "dev_gid": "000100"})
    status, text, _ = allocate(box, "POST", {"gep": "0", "port_gid": "03h", "dev_gid": "000100"})
    assert (status, json.loads(text)) == (200, {"action": "assign", "result": [True], "remark": "done"})
    assert port_of(box, "000100") == "3"


@pytest.mark.parametrize("content_type", ["text/plain", "application/json", "application/x-www-form-urlencoded", "x"])
def test_any_content_type_is_read(box, content_type):
    body = b'{"gep":"0","dev_gid":"000100"}'
    assert box.send("DELETE", ALLOCATION, body, {"Content-Type": content_type})[1] == DONE


@pytest.mark.parametrize(
    "body",
    [
        {"gep": "0", "port_gid": "02h", "dev_gid": "000100"},
        {"gep": "0", "port_gid": "02h", "dev_gid": "FFFFFF"},
        {"gep": "0", "port_gid": "99h", "dev_gid": "000100"},
        {"gep": "0", "port_gid": "", "dev_gid": "000100"},
        {"gep": "7", "port_gid": "02h", "dev_gid": "000100"},
        {"gep": 0, "port_gid": "02h", "dev_gid": "000100"},
        {},
        [],
        7,
        None,
    ],
)
def test_what_cannot_be_is_result_false_and_changes_nothing(box, body):
    before = box.rack.table()
    status, text, _ = allocate(box, "POST", body)
    reply = json.loads(text)
    assert reply["result"] == [False]
    assert reply["remark"]
    assert set(reply) == {"action", "result", "remark"}
    assert status in (200, 400)
    assert box.rack.table() == before


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"gep":"0"'])
def test_what_is_no_json_is_result_false_with_400(box, body):
    status, text, _ = box.send("DELETE", ALLOCATION, body)
    assert (status, json.loads(text)["result"]) == (400, [False])


def test_ten_megabytes_are_refused_in_the_dialects_own_form(box):
    status, text, _ = box.send("POST", ALLOCATION, b"x" * 10_000_000)
    assert (status, json.loads(text)["result"]) == (413, [False])


@pytest.mark.parametrize(("verb", "path"), [("POST", RESOURCES), ("PUT", ALLOCATION), ("GET", ALLOCATION)])
def test_wrong_verbs_are_405_with_the_right_ones(box, verb, path):
    status, text, headers = box.send(verb, path)
    assert (status, json.loads(text)["result"]) == (405, [False])
    assert headers["allow"]


def test_an_unknown_path_is_404(box):
    assert box.send("GET", "/h3api/v1/nothing")[0] == 404


def test_the_boolean_can_lie_about_an_attach_that_took_effect(box):
    allocate(box, "DELETE", {"gep": "0", "dev_gid": "000100"})
    fault(box, kind="lying-result", operation="attach", count=1)
    body = {"gep": "0", "port_gid": "03h", "dev_gid": "000100"}
    assert json.loads(allocate(box, "POST", body)[1])["result"] == [False]
    assert port_of(box, "000100") == "3"


@pytest.mark.parametrize(("when", "port"), [("before", "1"), ("after", None)])
def test_a_dropped_connection_is_really_dropped(box, when, port):
    fault(box, kind="dropped-connection", operation="detach", when=when)
    with pytest.raises(GoneError):
        allocate(box, "DELETE", {"gep": "0", "dev_gid": "000100"})
    assert port_of(box, "000100") == port


def test_a_server_error_is_its_status_and_no_result(box):
    fault(box, kind="http-error", operation="read", status=502)
    status, text, _ = box.send("GET", RESOURCES)
    assert status == 502
    assert "result" not in text


def test_a_partial_list_lacks_devices_but_no_ports(box):
    fault(box, kind="partial-list", keep=5)
    records = json.loads(box.send("GET", RESOURCES)[1])
    assert len([record for record in records if "Dev_GID" in record]) == 5
    assert len([record for record in records if "Port#" in record]) == 3
    assert len(json.loads(box.send("GET", RESOURCES)[1])) == 15
