"""Dialect cdim, contract cohdi.md 2.4 and 2.5: one suite, in process and over HTTP."""

from __future__ import annotations

import pytest

from mews.emulator.dialects.cdim.groups import DEFAULT_GROUP
from mews.emulator.dialects.identities import identity
from tests.contract.cdim import Client, adapter, node, of_operator, procedure, resource
from tests.contract.wire import GoneError, InProcess

NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def cdim(box):
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


# Configuration manager


def test_resources_are_in_the_order_of_their_ids_in_full_or_in_brief(cdim):
    full, brief = cdim.get("/resources?detail=TRUE"), cdim.get("/resources")
    assert full["count"] == len(full["resources"]) == 12 + 3 * 3
    ids = [each["device"]["deviceID"] for each in full["resources"]]
    assert ids == sorted(ids) == [each["device"]["deviceID"] for each in brief["resources"]]
    assert {frozenset(each["device"]) for each in brief["resources"]} == {frozenset({"deviceID", "type", "status"})}
    assert cdim.get("/resources?detail=")["resources"] == brief["resources"]
    assert cdim.call("GET", "/resources?detail=yes")[0] == 400


def test_an_attached_device_has_links_of_both_kinds_and_a_free_one_has_none(box, cdim):
    shown = cdim.device("000100")
    assert shown["device"]["links"] == [
        {"type": "CPU", "deviceID": node("1")},
        {"type": "eeio", "deviceID": adapter("1")},
        {"type": "destinationFabricAdapter", "deviceID": adapter("1")},
    ]
    assert (shown["nodeIDs"], shown["detected"], shown["device"]["model"]) == ([node("1")], True, "V100")
    assert shown["device"]["attribute"] == {"name": "000100", "uuid": "GPU-b104b284-a5ee-a4fa-2aef-29568979829c"}
    free(box, "000100")
    shown = cdim.device("000100")
    assert (shown["device"]["links"], shown["nodeIDs"]) == ([], [])


def test_an_id_is_found_in_any_case_and_an_unknown_one_is_404(cdim):
    assert cdim.call("GET", f"/resources/{resource('000100').upper()}")[0] == 200
    for path in ("resources", "nodes", "cxlswitches", "racks", "resource-groups"):
        status, shown = cdim.call("GET", f"/{path}/{NOBODY}")
        assert (status, shown["code"]) == (404, "notFound")


def test_nodes_are_brief_in_the_list_unless_asked_and_full_alone(cdim):
    brief, full = cdim.get("/nodes"), cdim.get("/nodes?detail=true")
    assert [each["id"] for each in brief["nodes"]] == sorted(node(port) for port in "123")
    assert all(set(one["device"]) == {"deviceID", "type", "status"} for n in brief["nodes"] for one in n["resources"])
    alone = cdim.get(f"/nodes/{node('1')}")
    assert alone in full["nodes"]
    assert all("nodeIDs" not in each for each in alone["resources"])
    kinds = sorted(each["device"]["type"] for each in alone["resources"])
    assert kinds == ["CPU", *["GPU"] * 4, "destinationFabricAdapter", "sourceFabricAdapter"]


def test_unused_resources_are_available_ones_without_links(box, cdim):
    assert cdim.get("/resources/unused") == {"count": 0, "resources": []}
    free(box, "000100", "000500")
    unused = cdim.get("/resources/unused")
    assert [each["device"]["deviceID"] for each in unused["resources"]] == sorted(map(resource, ("000100", "000500")))
    assert all("detected" not in each and "nodeIDs" not in each for each in unused["resources"])
    available = cdim.get("/resources/available")["resources"]
    keys = [(each["device"]["type"], each["device"]["deviceID"]) for each in available]
    assert keys == sorted(keys) and len(keys) == 21
    assert cdim.call("PUT", f"/resources/{resource('000100')}/annotation", {"available": False})[0] == 200
    assert cdim.get("/resources/unused")["count"] == 1
    assert cdim.get("/resources/available")["count"] == 20
    assert cdim.device("000100")["annotation"] == {"available": False}
    for body in ({"available": "false"}, {}, b"[]", b""):
        assert cdim.call("PUT", f"/resources/{resource('000100')}/annotation", body)[0] == 400
    assert cdim.call("PUT", f"/resources/{NOBODY}/annotation", {"available": True})[0] == 404


def test_a_device_without_a_link_is_listed_and_not_detected(box, cdim):
    with box.rack.box("A") as chassis:
        chassis.edits.set_link("000100", up=False)
    shown = cdim.device("000100")
    assert shown["detected"] is False and shown["device"]["status"]["health"] != "OK"
    assert cdim.get("/resources")["count"] == 21
    assert cdim.get("/resources/available")["count"] == 20


def test_groups_are_made_filled_and_removed(cdim):
    status, made = cdim.call("POST", "/resource-groups", {"name": "ours", "description": "x"})
    assert status == 201
    group = f"/resource-groups/{made['id']}"
    assert [each["id"] for each in cdim.get("/resource-groups")["resourceGroups"]] == [DEFAULT_GROUP, made["id"]]
    assert cdim.call("PUT", group, {"name": "theirs", "description": ""})[1]["name"] == "theirs"
    own = f"/resources/{resource('000100')}/resource-groups"
    assert cdim.call("PUT", own, [made["id"]]) == (200, {"count": 1, "resourceGroupIDs": [made["id"]]})
    assert [each["device"]["attribute"]["name"] for each in cdim.get(group)["resources"]] == ["000100"]
    whole = cdim.get("/resource-groups?withResources=true")["resourceGroups"]
    assert [len(each["resources"]) for each in whole] == [20, 1]
    assert cdim.get(f"/resources/available?resourceGroupID={made['id']}")["count"] == 1
    both = f"resourceGroupID={made['id']}&resourceGroupID={NOBODY}"
    assert cdim.get(f"/resources/available?resourceGroupID={NOBODY}") == {"count": 0, "resources": []}
    assert cdim.call("DELETE", group)[0] == 400
    for wrong in ([], [made["id"], DEFAULT_GROUP], [NOBODY], [1], {}):
        assert cdim.call("PUT", own, wrong)[0] == 400
    cdim.call("PUT", own, [DEFAULT_GROUP])
    assert cdim.call("DELETE", group)[0] == 204
    assert cdim.call("DELETE", group)[0] == 404
    assert cdim.get(f"/resources/available?{both}")["count"] == 0
    default = f"/resource-groups/{DEFAULT_GROUP}"
    assert cdim.call("DELETE", default)[0] == cdim.call("PUT", default, {"name": "x", "description": ""})[0] == 400
    assert cdim.call("POST", "/resource-groups", {"name": "x"})[0] == 400


def test_several_groups_are_any_of_them(box, cdim):
    if isinstance(box, InProcess):
        pytest.skip("a query of the test's own transport has one value a name")
    group = cdim.call("POST", "/resource-groups", {"name": "ours", "description": ""})[1]["id"]
    cdim.call("PUT", f"/resources/{resource('000100')}/resource-groups", [group])
    assert cdim.get(f"/resources/available?resourceGroupID={NOBODY}&resourceGroupID={group}")["count"] == 1


def test_what_a_collection_lacks_is_undetected_until_the_next(cdim):
    known = [{"deviceID": each["device"]["deviceID"]} for each in cdim.get("/resources")["resources"]]
    some = [each for each in known if each["deviceID"] != resource("000100")]
    status, shown = cdim.call("POST", "/devices", some)
    assert (status, shown["count"]) == (201, 20)
    assert cdim.device("000100")["detected"] is False
    cdim.call("POST", "/devices", known)
    assert cdim.device("000100")["detected"] is True
    for wrong in ([{"deviceID": NOBODY}], [{}], {}, b""):
        assert cdim.call("POST", "/devices", wrong)[0] == 400


def test_the_switch_and_the_rack_have_the_devices(box, cdim):
    switch = cdim.get("/cxlswitches")["CXLSwitches"][0]
    assert len(switch["resources"]) == 12
    assert cdim.get(f"/cxlswitches/{switch['id']}")["resources"][0]["device"].keys() == {"deviceID", "type", "status"}
    assert cdim.device("000100")["device"]["deviceSwitchInfo"] == switch["id"]
    rack = cdim.get(f"/racks/{identity('rack', 'A')}?detail=true")
    assert [each["name"] for each in rack["chassis"]] == ["A"]
    assert len(rack["chassis"][0]["resources"]) == 15
    assert "links" in rack["chassis"][0]["resources"][0]["device"]
    assert "links" not in cdim.get(f"/racks/{rack['id']}")["chassis"][0]["resources"][0]["device"]


# Layout-apply


@pytest.mark.parametrize("made", [procedure, of_operator])
def test_a_layout_in_either_form_moves_a_device(box, cdim, made):
    layout = cdim.apply(made("disconnect", "1", "000100"))
    assert (layout["status"], port_of(box, "000100")) == ("COMPLETED", None)
    assert layout["procedures"] == [made("disconnect", "1", "000100")]
    [result] = layout["applyResult"]
    assert (result["status"], result["statusCode"], result["method"]) == ("COMPLETED", 200, "PUT")
    assert {"startedAt", "endedAt"} <= set(layout) and "canceledAt" not in layout
    assert cdim.apply(made("connect", "2", "000100"))["status"] == "COMPLETED"
    assert port_of(box, "000100") == "2"


def test_procedures_wait_for_each_other(box, cdim):
    layout = cdim.apply(procedure("connect", "2", "000100", 7, (3,)), procedure("disconnect", "1", "000100", 3))
    assert [each["operationID"] for each in layout["applyResult"]] == [7, 3]
    assert (layout["status"], port_of(box, "000100")) == ("COMPLETED", "2")


def test_an_empty_layout_is_completed_at_once(cdim):
    assert cdim.apply()["status"] == "COMPLETED"


def test_a_procedure_that_fails_ends_the_layout_and_skips_the_rest(box, cdim):
    free(box, "000900")
    layout = cdim.apply(procedure("connect", "2", "000100", 1), procedure("connect", "2", "000900", 2, (1,)))
    assert layout["status"] == "FAILED"
    assert [(each["status"], each.get("statusCode")) for each in layout["applyResult"]] == [
        ("FAILED", 409), ("SKIPPED", None)
    ]  # fmt: skip
    assert (port_of(box, "000100"), port_of(box, "000900")) == ("1", None)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({**procedure("connect", "1", "000100"), "targetDeviceID": NOBODY}, 404),
        ({**procedure("connect", "1", "000100"), "targetCPUID": NOBODY}, 404),
        (procedure("disconnect", "2", "000100"), 404),
        (procedure("connect", "1", "000100"), 409),
        ({"operationID": 1, "operation": "boot", "targetDeviceID": node("1"), "dependencies": []}, 501),
    ],
)
def test_what_the_hardware_refuses_is_a_failed_procedure(box, cdim, wrong, code):
    layout = cdim.apply(wrong)
    assert (layout["status"], layout["applyResult"][0]["statusCode"]) == ("FAILED", code)
    assert port_of(box, "000100") == "1"


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"{", {}, {"procedures": 1}, {"procedures": [1]}, {"procedures": [{}]},
        {"procedures": [{**procedure("connect", "1", "000100"), "operationID": "1"}]},
        {"procedures": [{**procedure("connect", "1", "000100"), "operation": "move"}]},
        {"procedures": [{**procedure("connect", "1", "000100"), "dependencies": [2]}]},
        {"procedures": [{**procedure("connect", "1", "000100"), "dependencies": [1]}]},
        {"procedures": [procedure("connect", "1", "000100"), procedure("disconnect", "1", "000200")]},
        {"procedures": [{k: v for k, v in procedure("connect", "1", "000100").items() if k != "targetCPUID"}]},
        {"procedures": [{k: v for k, v in procedure("connect", "1", "000100").items() if k != "targetDeviceID"}]},
        {"procedures": [{k: v for k, v in procedure("connect", "1", "000100").items() if k != "dependencies"}]},
    ],
)  # fmt: skip
def test_a_body_in_another_form_is_refused_and_nothing_is_begun(box, cdim, body):
    status, shown = cdim.call("POST", "/layout-apply", body)
    assert (status, shown["code"]) == (400, "E40001")
    assert cdim.get("/layout-apply") == {"count": 0, "totalCount": 0, "applyResults": []}


def test_layouts_are_listed_newest_first_and_as_the_query_says(cdim):
    first = cdim.apply(procedure("disconnect", "1", "000100"))["applyID"]
    second = cdim.apply(procedure("connect", "9", "000100"))["applyID"]
    listed = cdim.get("/layout-apply")
    assert [each["applyID"] for each in listed["applyResults"]] == [second, first]
    assert all("procedures" not in each for each in listed["applyResults"])
    assert [each["applyID"] for each in cdim.get("/layout-apply?orderBy=asc")["applyResults"]] == [first, second]
    failed = cdim.get("/layout-apply?status=FAILED&fields=procedures")
    assert [each["applyID"] for each in failed["applyResults"]] == [second]
    assert failed["applyResults"][0]["procedures"] and "applyResult" not in failed["applyResults"][0]
    cut = cdim.get("/layout-apply?limit=1&offset=1")
    assert (cut["count"], cut["totalCount"], cut["applyResults"][0]["applyID"]) == (1, 2, first)
    assert [each["applyID"] for each in cdim.get("/layout-apply?limit=1")["applyResults"]] == [second]
    assert cdim.get("/layout-apply?startedAtSince=2001-01-01T00:00:00Z")["count"] == 2
    assert cdim.get("/layout-apply?endedAtUntil=2001-01-01T09:00:00%2B09:00")["count"] == 0
    for wrong in ("status=DONE", "fields=x", "sortBy=x", "orderBy=x", "limit=0", "offset=-1", "startedAtSince=now"):
        status, shown = cdim.call("GET", f"/layout-apply?{wrong}")
        assert (status, shown["code"]) == (400, "E40001"), wrong


def test_a_layout_is_deleted_once(cdim):
    layout = cdim.apply()["applyID"]
    assert cdim.call("DELETE", f"/layout-apply/{layout}")[0] == 204
    for method in ("GET", "DELETE"):
        status, shown = cdim.call(method, f"/layout-apply/{layout}")
        assert (status, shown["code"]) == (404, "E40020")
    assert cdim.call("GET", "/layout-apply/nonsense")[0] == 400
    assert cdim.call("PUT", f"/layout-apply/{layout}?action=cancel")[0] == 404
    assert cdim.call("PUT", f"/layout-apply/{layout}?action=stop")[0] == 400
    assert cdim.call("PUT", f"/layout-apply/{layout}")[0] == 400


def test_what_has_ended_cannot_be_canceled_and_need_not_be_resumed(cdim):
    layout = cdim.apply()["applyID"]
    status, shown = cdim.call("PUT", f"/layout-apply/{layout}?action=cancel")
    assert (status, shown["code"]) == (409, "E40022")
    assert cdim.call("PUT", f"/layout-apply/{layout}?action=resume") == (200, {"status": "COMPLETED"})


def test_a_desired_layout_becomes_procedures_that_reach_it(box, cdim):
    free(box, "000200")
    gpus = [resource(each) for each in ("000200", "000500")]
    wanted = {
        "targetNodeIDs": [node("1")],
        "desiredLayout": {
            "nodes": [{"device": {"CPU": {"deviceIDs": [node("1")]}, "gpu": [{"deviceID": each} for each in gpus]}}]
        },
    }
    status, procedures = cdim.call("POST", "/migration-procedures", wanted)
    assert status == 200
    moves = {(each["operation"], each["targetDeviceID"]) for each in procedures}
    leaving = {("disconnect", resource(each)) for each in ("000100", "000300", "000400", "000500")}
    assert moves == leaving | {("connect", each) for each in gpus}
    assert cdim.apply(*procedures)["status"] == "COMPLETED"
    ports = {device: port_of(box, device) for device in ("000100", "000200", "000500", "000600")}
    assert ports == {"000100": None, "000200": "1", "000500": "1", "000600": "2"}
    assert cdim.call("POST", "/migration-procedures", wanted) == (200, [])


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ({}, (400, "E50001")),
        (b"", (400, "E50001")),
        ({"desiredLayout": {"nodes": [{"device": {}}]}}, (400, "E50001")),
        ({"desiredLayout": {"nodes": [{"device": {"cpu": {"deviceIDs": [NOBODY]}}}]}}, (400, "E50001")),
        ({"targetNodeIDs": [NOBODY], "desiredLayout": {"nodes": []}}, (404, "E50010")),
    ],
)
def test_a_desired_layout_that_cannot_be_is_refused(cdim, body, answer):
    status, shown = cdim.call("POST", "/migration-procedures", body)
    assert (status, shown["code"]) == answer


def test_other_paths_and_verbs_are_refused_in_each_ones_form(cdim):
    assert cdim.call("GET", "/nothing")[1]["code"] == "notFound"
    assert cdim.call("DELETE", "/layout-apply")[0] == 405
    assert cdim.call("POST", "/resources", {})[0] == 405


# As composable-resource-operator goes about it


def test_the_operator_finds_a_device_connects_it_and_takes_it_away(box, cdim):
    free(box, "000100")
    nodes = cdim.get("/nodes?detail=true")["nodes"]
    own = next(each for each in nodes if each["id"].lower() == node("2"))
    status = ("device", "attribute", "deviceSpecificInformation", "status")

    def at(value, *path):
        for name in path:
            value = value.get(name, {})
        return value

    source = next(
        each["device"]
        for each in own["resources"]
        if each["detected"] and each["device"]["type"] == "sourceFabricAdapter" and at(each, *status) == "eesv"
    )
    io = next(each["deviceID"] for each in source["links"] if each["type"] == "destinationFabricAdapter")
    far = cdim.get(f"/resources/{io}")
    assert far["device"]["type"] == "destinationFabricAdapter" and at(far, *status) == "eeio"
    gpu = next(
        each["device"]
        for each in cdim.get("/resources?detail=true")["resources"]
        if each["detected"]
        and each["device"]["type"].lower() == "gpu"
        and each["device"]["status"] == {"state": "Enabled", "health": "OK"}
        and each["device"]["model"].lower() == "v100"
        and not any(link["type"] == "eeio" for link in each["device"]["links"])
    )
    assert gpu["attribute"]["name"] == "000100"
    body = {
        "operationID": 1, "operation": "connect", "sourceDeviceID": io, "destinationDeviceID": gpu["deviceID"],
        "dependencies": [],
    }  # fmt: skip
    assert cdim.apply(body)["status"] == "COMPLETED"
    assert port_of(box, "000100") == "2"
    links = cdim.device("000100")["device"]["links"]
    leaving = next(each["deviceID"] for each in links if each["type"] == "destinationFabricAdapter")
    assert cdim.apply({**body, "operation": "disconnect", "sourceDeviceID": leaving})["status"] == "COMPLETED"
    assert port_of(box, "000100") is None


# Faults


def test_a_manager_that_applies_another_layout_is_busy(box, cdim):
    fault(box, kind="layout-busy")
    status, shown = cdim.call("POST", "/layout-apply", {"procedures": [procedure("disconnect", "1", "000100")]})
    assert (status, shown["code"]) == (409, "E40010")
    assert port_of(box, "000100") == "1"
    assert cdim.get("/layout-apply")["count"] == 0
    assert cdim.apply(procedure("disconnect", "1", "000100"))["status"] == "COMPLETED"


@pytest.mark.parametrize(("when", "port"), [("after", None), ("before", "1")])
def test_a_layout_that_ends_half_done(box, cdim, when, port):
    fault(box, kind="layout-half-done", when=when)
    layout = cdim.apply(procedure("disconnect", "1", "000100", 1), procedure("disconnect", "1", "000200", 2, (1,)))
    first = {"after": "COMPLETED", "before": "FAILED"}[when]
    assert (layout["status"], [each["status"] for each in layout["applyResult"]]) == ("FAILED", [first, "SKIPPED"])
    assert (port_of(box, "000100"), port_of(box, "000200")) == (port, "1")


@pytest.mark.parametrize("when", ["after", "before"])
def test_a_suspended_layout_blocks_all_others_until_it_is_resumed(box, cdim, when):
    fault(box, kind="layout-half-done", ends="SUSPENDED", when=when)
    both = procedure("disconnect", "1", "000100", 1), procedure("disconnect", "1", "000200", 2, (1,))
    layout = cdim.apply(*both)
    assert layout["status"] == "SUSPENDED" and "endedAt" not in layout and "suspendedAt" in layout
    left = [each["operationID"] for each in layout["resumeProcedures"]]
    assert left == {"after": [2], "before": [1, 2]}[when]
    where = f"/layout-apply/{layout['applyID']}"
    status, shown = cdim.call("POST", "/layout-apply", {"procedures": []})
    assert (status, shown["code"]) == (409, "E40027") and layout["applyID"] in shown["message"]
    assert cdim.call("DELETE", where)[1]["code"] == "E40024"
    assert cdim.call("PUT", f"{where}?action=resume")[0] == 202
    ended = cdim.ended(layout["applyID"])
    assert ended["status"] == "COMPLETED" and "resumedAt" in ended
    assert [each["status"] for each in ended["resumeResult"]] == ["COMPLETED"] * len(left)
    assert port_of(box, "000100") is port_of(box, "000200") is None


def test_a_suspended_layout_that_is_canceled_has_failed(box, cdim):
    fault(box, kind="layout-half-done", ends="SUSPENDED")
    layout = cdim.apply(procedure("disconnect", "1", "000100"))["applyID"]
    assert cdim.call("PUT", f"/layout-apply/{layout}?action=cancel&rollbackOnCancel=true") == (
        202, {"status": "FAILED"}
    )  # fmt: skip
    assert cdim.apply()["status"] == "COMPLETED"
    assert port_of(box, "000100") is None


def test_a_dropped_connection_after_the_effect(box, cdim):
    fault(box, kind="dropped-connection", operation="detach", when="after")
    with pytest.raises(GoneError):
        cdim.call("POST", "/layout-apply", {"procedures": [procedure("disconnect", "1", "000100")]})
    assert port_of(box, "000100") is None
    assert cdim.get("/layout-apply")["applyResults"][0]["status"] == "COMPLETED"


def test_an_error_in_place_of_a_layout(box, cdim):
    fault(box, kind="http-error", operation="detach", status=500)
    status, shown = cdim.call("POST", "/layout-apply", {"procedures": [procedure("disconnect", "1", "000100")]})
    assert (status, shown["code"], port_of(box, "000100")) == (500, "E40002", "1")
    fault(box, kind="http-error", operation="read", status=500)
    assert cdim.call("GET", "/resources")[1]["code"] == "internalServerError"


def test_a_lie_is_told_by_the_status(box, cdim):
    fault(box, kind="lying-result", operation="detach")
    assert cdim.apply(procedure("disconnect", "1", "000100"))["status"] == "FAILED"
    assert port_of(box, "000100") is None
    fault(box, kind="lying-result", operation="attach")
    fault(box, kind="never-trains", operation="attach")
    assert cdim.apply(procedure("connect", "1", "000100"))["status"] == "COMPLETED"
    assert port_of(box, "000100") is None


def test_a_device_is_listed_twice(box, cdim):
    fault(box, kind="listed-twice")
    assert cdim.get("/resources")["count"] == 22
    assert cdim.get("/resources")["count"] == 21


def test_a_node_that_nobody_knows_is_listed(box, cdim):
    fault(box, kind="unknown-host", count=2)
    names = {each["name"]: each for each in cdim.get("/nodes?detail=true")["nodes"]}
    assert set(names) == {"host-1", "host-2", "host-3", "port-65535"}
    strange = [each["device"]["type"] for each in names["port-65535"]["resources"]]
    assert sorted(strange) == ["CPU", "GPU", "destinationFabricAdapter", "sourceFabricAdapter"]
    assert cdim.get("/resources")["count"] == 25
