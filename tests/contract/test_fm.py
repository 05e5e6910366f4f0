"""Dialect fm, contract cohdi.md 2.1 to 2.3: one suite, in process and over TLS."""

from __future__ import annotations

import base64
import json
import time

import pytest

from mews.emulator.dialects.identities import TENANT
from tests.contract.fm import (
    AUTOSCALER,
    FABRIC,
    FORM,
    GROUPS,
    MODEL,
    TOKEN,
    Client,
    attach_body,
    detach_body,
    encoded,
    machine,
    raw,
    resource,
)
from tests.contract.wire import GoneError

COUNT = "/available-reserved-resources"
OF_MODEL = json.dumps({"column": "model", "operator": "eq", "value": MODEL})


@pytest.fixture
def fm(box):
    return Client(box)


def port_of(box, device):
    return box.rack.table()["A"][device]["port"]


def free(box, *devices):
    with box.rack.box("A") as chassis:
        for device in devices:
            chassis.edits.edit(device, None, box.rack.clock.now())


def fault(box, **spec):
    with box.rack.box("A") as chassis:
        chassis.faults.add(spec, box.rack.clock.now())


def until(holds, seconds=5.0):
    ends = time.monotonic() + seconds
    while not holds() and time.monotonic() < ends:
        time.sleep(0.01)
    assert holds()


# Token service


def claims(token):
    parts = token.split(".")
    assert len(parts) == 3 and "=" not in token
    return json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))


@pytest.mark.parametrize("form", [encoded, raw])
def test_a_login_in_either_encoding_gives_a_jwt_with_an_integer_exp(box, form):
    status, text, headers = box.send("POST", TOKEN, form(box.password), FORM)
    body = json.loads(text)
    assert (status, body["token_type"]) == (200, "Bearer")
    assert {"expires_in", "refresh_expires_in", "refresh_token", "id_token", "not-before-policy", "session_state"} <= {
        *body
    }
    found = claims(body["access_token"])
    assert type(found["exp"]) is int
    assert found["exp"] - found["iat"] == body["expires_in"]
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        (b"", 400, "invalid_request"),
        (b"{}", 400, "invalid_request"),
        (b"\xff=1", 400, "invalid_request"),
        (encoded(""), 400, "invalid_request"),
        (encoded("x", client_secret=""), 400, "invalid_request"),
        (encoded("x", grant_type="client_credentials"), 400, "unsupported_grant_type"),
        (encoded("not-it"), 401, "invalid_grant"),
        (encoded("x", username="root"), 401, "invalid_grant"),
    ],
)
def test_a_login_that_is_refused_says_why_and_repeats_no_secret(box, body, status, error):
    answered, text, _ = box.send("POST", TOKEN, body, FORM)
    assert (answered, json.loads(text)["error"]) == (status, error)
    assert "not-it" not in text


def test_a_token_is_asked_for_before_anything_else(box, fm):
    for path in (f"{FABRIC}/machines?tenant_uuid={TENANT}", f"{GROUPS}", f"{FABRIC}/nothing"):
        for header in ({}, {"Authorization": "Bearer x.y.z"}, {"Authorization": f"Basic {fm.token}"}):
            status, text, headers = box.send("GET", path, b"", header)
            assert status == 401
            assert json.loads(text)["status"] == 401
            assert headers["www-authenticate"].startswith("Bearer")
    forged = fm.token[:-2] + ("AA" if not fm.token.endswith("AA") else "BB")
    assert fm.call("GET", f"{FABRIC}/machines?tenant_uuid={TENANT}", token=forged)[0] == 401


def test_the_log_of_requests_shows_neither_password_nor_token(box, fm):
    fm.get("/machines")
    shown = json.dumps(box.rack.requests.since(0))
    assert box.password not in shown
    assert fm.token not in shown


# Fabric manager


def test_machines_are_the_hosts_that_are_cabled(fm):
    status, shown = fm.get("/machines")
    machines = shown["data"]["machines"]
    assert status == 200
    assert [(each["fabric_id"], each["mach_uuid"]) for each in machines] == [(0, machine(port)) for port in "123"]
    assert [(each["mach_id"], each["mach_name"], each["tenant_uuid"]) for each in machines] == [
        (1, "host-1", TENANT), (2, "host-2", TENANT), (3, "host-3", TENANT),
    ]  # fmt: skip


def test_a_machine_shows_its_resources_as_the_clients_read_them(fm):
    status, shown = fm.get(f"/machines/{machine('1')}")
    (found,) = shown["data"]["machines"]
    assert (status, found["mach_status"], found["mach_op_status"]) == (200, 15, "00")
    assert [each["res_name"] for each in found["resources"]] == ["000100", "000200", "000300", "000400"]
    first = found["resources"][0]
    assert first["res_uuid"] == resource("000100")
    assert first["res_serial_num"] == "GPU-b104b284-a5ee-a4fa-2aef-29568979829c"
    assert first["res_type"] == "gpu" and type(first["res_status"]) is int
    assert first["res_op_status"].startswith("0")
    assert first["res_spec"]["condition"] == [{"column": "model", "operator": "eq", "value": MODEL}]


def test_availability_counts_free_devices_of_the_model(box, fm):
    free(box, "000100", "000200")
    path = f"/machines/{machine('3')}{COUNT}"
    assert fm.get(path, res_type="gpu", condition=OF_MODEL) == (
        200, {"fabric_id": 0, "reserved_res_num_per_fabric": 2},
    )  # fmt: skip
    other = json.dumps({"column": "model", "operator": "eq", "value": "A100"})
    assert fm.get(path, res_type="gpu", condition=other)[1]["reserved_res_num_per_fabric"] == 0
    assert fm.get(path, res_type="fpga", condition=OF_MODEL)[1]["reserved_res_num_per_fabric"] == 0


def test_an_attach_by_model_answers_with_the_new_device_first(box, fm):
    free(box, "000500")
    status, shown = fm.attach("1")
    (found,) = shown["data"]["machines"]
    assert (status, found["mach_uuid"], found["resources"][0]["res_uuid"]) == (200, machine("1"), resource("000500"))
    assert port_of(box, "000500") == "1"


def test_an_attach_of_a_named_resource_attaches_that_one(box, fm):
    free(box, "000500", "000600")
    assert fm.attach("1", resource("000600"), column="res_uuid")[0] == 200
    assert (port_of(box, "000500"), port_of(box, "000600")) == (None, "1")
    status, shown = fm.attach("1", resource("000600"), column="res_uuid")
    assert (status, shown["detail"]["code"]) == (409, "E020301")


def test_nothing_free_is_an_error_in_the_protocols_form(fm):
    status, shown = fm.attach("1")
    assert (status, shown["status"], shown["detail"]["data"]) == (409, 409, {})
    assert shown["detail"]["code"].startswith("E02")


def test_a_detach_frees_a_device_and_a_second_one_says_that_it_is_gone(box, fm):
    assert fm.detach("1", "000100") == (204, None)
    assert port_of(box, "000100") is None
    assert fm.detach("1", "000100")[0] == 404


def test_a_detach_from_another_machine_changes_nothing(box, fm):
    assert fm.detach("2", "000100")[0] == 404
    assert port_of(box, "000100") == "1"


def test_a_device_that_moves_while_its_detach_waits_stays_where_it_went(box, fm):
    with box.rack.box("A") as chassis:
        now_s = box.rack.clock.now()
        other = chassis.begin_detach("000500", now_s)
        other.before.append(lambda: chassis.edits.edit("000100", "2", chassis.now_s))
        chassis.finish(other, now_s)
    assert fm.detach("1", "000100")[0] == 404
    assert port_of(box, "000100") == "2"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: b"",
        lambda body: b"{",
        lambda body: b"[]",
        lambda body: {},
        lambda body: {"tenants": {**body["tenants"], "tenant_uuid": "other"}},
        lambda body: {"tenants": {**body["tenants"], "machines": []}},
        lambda body: {"tenants": {**body["tenants"], "machines": body["tenants"]["machines"] * 2}},
        lambda body: json.loads(json.dumps(body).replace('"res_num": 1', '"res_num": 2')),
        lambda body: json.loads(json.dumps(body).replace('"res_num": 1', '"res_num": true')),
        lambda body: json.loads(json.dumps(body).replace(machine("1"), machine("2"))),
        lambda body: json.loads(json.dumps(body).replace('"gpu"', "7")),
    ],
)
@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_a_bad_body_is_400_and_changes_nothing(box, fm, method, spoil):
    free(box, "000500")
    before = box.rack.table()
    status, shown = fm.update(method, "1", spoil(attach_body("1") if method == "PATCH" else detach_body("1", "000100")))
    assert (status, shown["detail"]["code"]) == (400, "E020001")
    assert box.rack.table() == before


@pytest.mark.parametrize(("column", "operator"), [("colour", "eq"), ("model", "ne"), (7, "eq")])
def test_other_columns_and_operators_are_refused(box, fm, column, operator):
    free(box, "000500")
    body = attach_body("1")
    item = body["tenants"]["machines"][0]["resources"][0]["res_specs"][0]
    item["res_spec"]["condition"] = [{"column": column, "operator": operator, "value": MODEL}]
    assert fm.update("PATCH", "1", body)[0] == 400
    asked = json.dumps({"column": column, "operator": operator, "value": MODEL})
    assert fm.get(f"/machines/{machine('1')}{COUNT}", res_type="gpu", condition=asked)[0] == 400


def test_a_query_is_checked(fm):
    path = f"/machines/{machine('1')}{COUNT}"
    assert fm.get(path)[0] == 400
    assert fm.get(path, res_type="gpu", condition="{")[0] == 400
    assert fm.call("GET", f"{FABRIC}/machines")[0] == 400
    assert fm.call("GET", f"{FABRIC}/machines?tenant_uuid={machine('1')}")[0] == 403


def test_what_there_is_not_is_404_and_other_verbs_405(box, fm):
    assert fm.get("/machines/nobody")[0] == 404
    assert fm.get(f"/machines/nobody{COUNT}", res_type="gpu")[0] == 404
    assert fm.get("/nothing")[0] == 404
    for method, path in (("POST", "/machines"), ("GET", f"/machines/{machine('1')}/update"), ("PUT", "/resources")):
        assert fm.call(method, f"{FABRIC}{path}?tenant_uuid={TENANT}")[0] == 405


# Cluster manager


def test_a_machine_of_the_cluster_manager_counts_its_devices(fm):
    spec = fm.cluster("1")
    assert (spec["device_count"], spec["min_resspec_count"], spec["max_resspec_count"]) == (4, 0, 12)
    assert spec["selector"]["expression"]["conditions"] == [{"column": "model", "operator": "eq", "value": MODEL}]
    first = spec["devices"][0]
    assert (first["device_id"], first["status"]) == ("GPU-b104b284-a5ee-a4fa-2aef-29568979829c", "ADD_COMPLETE")
    assert first["detail"]["res_uuid"] == resource("000100")
    assert first["detail"]["resspecs"][0]["removable"] is True


def test_a_resize_is_a_target_and_asked_again_adds_nothing(box, fm):
    free(box, "000500", "000600")
    body = {"increase_resource_count": {"spec_uuid": fm.cluster("1")["spec_uuid"], "device_count": 5}}
    for _ in range(3):
        assert fm.resize("1", body)[0] // 100 == 2
    until(lambda: fm.cluster("1")["device_count"] == 5)
    assert fm.resize("1", body)[0] // 100 == 2
    assert sorted(port or "" for port in (port_of(box, "000500"), port_of(box, "000600"))) == ["", "1"]


def test_a_resize_takes_named_devices_out_and_again_is_well(box, fm):
    spec = fm.cluster("1")
    gone = spec["devices"][0]["device_id"]
    body = {"remove_resources": {"spec_uuid": spec["spec_uuid"], "device_count": 3, "devices": [gone]}}
    assert fm.resize("1", body)[0] // 100 == 2
    until(lambda: port_of(box, "000100") is None)
    assert gone not in [each["device_id"] for each in fm.cluster("1")["devices"]]
    assert fm.resize("1", body)[0] // 100 == 2


def test_a_resize_that_fails_shows_why_until_it_is_asked_again(box, fm):
    free(box, "000500")
    fault(box, kind="never-trains", device="000500", wait_s=0.1)
    body = {"increase_resource_count": {"spec_uuid": fm.cluster("1")["spec_uuid"], "device_count": 5}}
    assert fm.resize("1", body)[0] // 100 == 2
    until(lambda: [each for each in fm.cluster("1")["devices"] if each["status"] == "ADD_FAILED"] != [])
    spec = fm.cluster("1")
    failed = [each for each in spec["devices"] if each["status"] == "ADD_FAILED"]
    assert [each["detail"]["res_name"] for each in failed] == ["000500"]
    assert failed[0]["status_reason"] and spec["device_count"] == 4


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        {},
        {"increase_resource_count": {"spec_uuid": "", "device_count": 1}},
        {"increase_resource_count": {"spec_uuid": "S", "device_count": -1}},
        {"increase_resource_count": {"spec_uuid": "S", "device_count": True}},
        {"remove_resources": {"spec_uuid": "S", "device_count": 1, "devices": "x"}},
        {"increase_resource_count": {"spec_uuid": "S", "device_count": 9}, "remove_resources": {}},
    ],
)
def test_a_bad_resize_is_refused_and_changes_nothing(box, fm, body):
    before = box.rack.table()
    if isinstance(body, dict):
        body = json.loads(json.dumps(body).replace('"S"', json.dumps(fm.cluster("1")["spec_uuid"])))
    status, shown = fm.resize("1", body)
    assert (status, shown["status"]) == (400, 400)
    assert box.rack.table() == before


def test_more_than_there_are_is_refused(fm):
    body = {"increase_resource_count": {"spec_uuid": fm.cluster("1")["spec_uuid"], "device_count": 5}}
    assert fm.resize("1", body)[0] == 409
    body = {"remove_resources": {"spec_uuid": fm.cluster("1")["spec_uuid"], "device_count": 3, "devices": ["GPU-x"]}}
    assert fm.resize("1", body)[0] == 404


def test_node_groups_have_the_machines(fm):
    status, groups = fm.call("GET", GROUPS)
    (group,) = groups["nodegroups"]
    assert (status, group["name"]) == (200, "A")
    status, shown = fm.call("GET", f"{GROUPS}/{group['uuid']}")
    assert (status, shown["mach_ids"]) == (200, [machine(port) for port in "123"])
    assert fm.call("GET", f"{GROUPS}/other")[0] == 404
    other = AUTOSCALER.replace(TENANT, machine("1"))
    assert fm.call("GET", f"{other}/machines/{machine('1')}")[0] == 403
    assert fm.call("GET", f"{AUTOSCALER[:-1]}x/machines/{machine('1')}")[0] == 404


# Faults


@pytest.mark.parametrize(("when", "port"), [("after", None), ("before", "1")])
def test_a_token_that_ends_amid_a_move_is_401_and_all_tokens_are_over(box, fm, when, port):
    fault(box, kind="token-ends", operation="detach", when=when)
    assert fm.detach("1", "000100")[0] == 401
    assert port_of(box, "000100") == port
    assert fm.get("/machines")[0] == 401
    assert Client(box).get("/machines")[0] == 200


def test_a_device_is_listed_twice(box, fm):
    fault(box, kind="listed-twice")
    devices = [each["res_uuid"] for each in fm.get("/resources")[1]["data"]["resources"]]
    assert len(devices) == 13 and len({*devices}) == 12
    assert len(fm.get("/resources")[1]["data"]["resources"]) == 12


def test_a_machine_that_nobody_knows_is_listed(box, fm):
    fault(box, kind="unknown-host", count=2)
    machines = [each["mach_name"] for each in fm.get("/machines")[1]["data"]["machines"]]
    assert machines == ["host-1", "host-2", "host-3", "port-65535"]
    placed = {each["res_name"]: each["mach_uuid"] for each in fm.get("/resources")[1]["data"]["resources"]}
    assert len(placed) == 13 and len({*placed.values()}) == 4


def test_a_dropped_connection_after_the_effect(box, fm):
    fault(box, kind="dropped-connection", operation="detach", when="after")
    with pytest.raises(GoneError):
        fm.detach("1", "000100")
    assert port_of(box, "000100") is None


def test_a_lie_is_told_in_the_protocols_form(box, fm):
    fault(box, kind="lying-result", operation="detach")
    status, shown = fm.detach("1", "000100")
    assert (status, shown["detail"]["code"]) == (409, "E020304")
    assert port_of(box, "000100") is None
