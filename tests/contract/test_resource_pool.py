"""Dialect resource-pool, contract chassis.md 3: one suite, in process and over a socket."""

from __future__ import annotations

import json
import threading

import pytest

from mews.emulator.dialects.resource_pool import ResourcePoolFace
from mews.emulator.dialects.wire import Request
from tests.contract.wire import GoneError, backend

ATTACHED = (400, "Device is already attached. Detach it first.")
NO_PORT = (400, "HostPort is not given.")
PAYLOAD = (400, "Invalid request payload")
NOT_FOUND = (404, "Device not found")


def allocate(box, method, body):
    return box.send(method, "/allocation", json.dumps(body).encode())[:2]


def port_of(box, device):
    return box.rack.table()["A"][device]["port"]


def test_resources_is_a_list_of_three_strings_each(box):
    status, text, headers = box.send("GET", "/resources")
    records = json.loads(text)
    assert status == 200
    assert headers["content-type"].startswith("application/json")
    assert [sorted(record) for record in records] == [["devid", "hostport", "uuid"]] * 12
    assert all(isinstance(value, str) for record in records for value in record.values())
    assert [record["hostport"] for record in records] == ["1"] * 4 + ["2"] * 4 + ["3"] * 4


def test_attach_and_detach_are_204_without_a_body(box):
    assert allocate(box, "DELETE", {"devid": "000100"}) == (204, "")
    assert port_of(box, "000100") is None
    assert allocate(box, "POST", {"devid": "000100", "hostport": "2"}) == (204, "")
    assert port_of(box, "000100") == "2"


def test_detach_of_a_free_device_is_204_too(box):
    assert allocate(box, "DELETE", {"devid": "000100"}) == (204, "")
    assert allocate(box, "DELETE", {"devid": "000100"}) == (204, "")


def test_already_attached_is_checked_before_the_empty_host_port(box):
    assert allocate(box, "POST", {"devid": "000100", "hostport": ""}) == ATTACHED
    assert allocate(box, "POST", {"devid": "000100", "hostport": "2"}) == ATTACHED


def test_a_free_device_needs_a_host_port(box):
    allocate(box, "DELETE", {"devid": "000100"})
    assert allocate(box, "POST", {"devid": "000100"}) == NO_PORT
    assert allocate(box, "POST", {"devid": "000100", "hostport": ""}) == NO_PORT


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_an_unknown_device_is_404(box, method):
    assert allocate(box, method, {"devid": "nope", "hostport": "1"}) == NOT_FOUND
    assert allocate(box, method, {}) == NOT_FOUND


@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"7", b'"x"', b'{"devid":7}', b'{"devid":"000100","hostport":1}', b"\xff", b"[" * 100_000],
)
def test_a_bad_payload_is_400_in_plain_text(box, method, body):
    before = box.rack.table()
    status, text, headers = box.send(method, "/allocation", body)
    assert (status, text) == PAYLOAD
    assert headers["content-type"].startswith("text/plain")
    assert box.rack.table() == before


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_ten_megabytes_are_a_bad_payload(box, method):
    assert box.send(method, "/allocation", b'{"devid":"' + b"x" * 10_000_000 + b'"}')[:2] == PAYLOAD


@pytest.mark.parametrize(
    ("verb", "path"),
    [(verb, "/resources") for verb in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD")]
    + [(verb, "/allocation") for verb in ("GET", "PUT", "PATCH", "OPTIONS", "HEAD")],
)
def test_other_verbs_are_405(box, verb, path):
    assert box.send(verb, path)[0] == 405


def test_an_unknown_host_port_is_refused(box):
    allocate(box, "DELETE", {"devid": "000100"})
    status, text = allocate(box, "POST", {"devid": "000100", "hostport": "77"})
    assert (status, text) == (400, "HostPort not found")
    assert port_of(box, "000100") is None


@pytest.mark.parametrize("kind", ["in-process", pytest.param("http", marks=pytest.mark.wall)])
def test_an_uncabled_host_port_is_refused(kind):
    with backend(kind, "unattached") as box:
        assert allocate(box, "POST", {"devid": "000500", "hostport": "3"}) == (400, "HostPort is not connected")


def test_an_empty_chassis_answers_null(box):
    with box.rack.box("A") as chassis:
        for device in chassis.table.devices():
            chassis.edits.remove(device, box.rack.clock.now())
    assert box.send("GET", "/resources")[:2] == (200, "null")


def test_concurrent_writers_of_one_device_get_one_204_and_the_contracts_refusal(box):
    allocate(box, "DELETE", {"devid": "000100"})
    answers = []
    start = threading.Barrier(8)

    def attach(port):
        start.wait()
        answers.append(allocate(box, "POST", {"devid": "000100", "hostport": str(port)}))

    threads = [threading.Thread(target=attach, args=(1 + number % 3,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [(204, "")] + [ATTACHED] * 7


def test_a_lie_cannot_be_told_in_this_language(box):
    with box.rack.box("A") as chassis:
        chassis.faults.add({"kind": "lying-result"}, box.rack.clock.now())
    assert allocate(box, "DELETE", {"devid": "000100"}) == (204, "")


def test_a_drop_after_the_effect_leaves_the_device_detached(box):
    with box.rack.box("A") as chassis:
        chassis.faults.add({"kind": "dropped-connection", "when": "after"}, box.rack.clock.now())
    with pytest.raises(GoneError):
        allocate(box, "DELETE", {"devid": "000100"})
    assert port_of(box, "000100") is None


def test_a_link_that_never_trains_is_a_server_error(box):
    allocate(box, "DELETE", {"devid": "000100"})
    with box.rack.box("A") as chassis:
        chassis.faults.add({"kind": "never-trains", "device": "000100"}, box.rack.clock.now())
    assert allocate(box, "POST", {"devid": "000100", "hostport": "1"})[0] == 500


def test_begin_does_not_wait_and_finish_answers_at_the_due_time():
    with backend("in-process", profile={"detach": 7}) as box, box.rack.box("A") as chassis:
        dialect = ResourcePoolFace(chassis)
        now_s = box.rack.clock.now()
        pending = dialect.begin(Request("DELETE", "/allocation", body=b'{"devid":"000100"}'), now_s)
        assert pending.due_s == pytest.approx(now_s + 7)
        assert chassis.row("000100", now_s + 6.9).port == "1"
        assert dialect.finish(pending, pending.due_s).status == 204
        assert chassis.row("000100", pending.due_s).port is None
