"""Redfish, contract chassis.md 4: the rules of the protocol, in process and over a socket."""

from __future__ import annotations

import base64
import json
import random
import threading

import pytest
from msgspec.structs import replace

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.dialects.redfish.service import RedfishFace
from mews.emulator.dialects.redfish.settings import without_a_wire
from mews.emulator.dialects.wire import Request
from tests.contract.redfish import ACCOUNTS, ENDPOINTS, FABRIC, ROOT, SESSIONS, ZONES, Client, pass_time
from tests.emulator.boxes import spec

CHASSIS = f"{ROOT}/Chassis/A"


@pytest.fixture
def client(box):
    return Client(box)


@pytest.fixture
def stranger(box):
    """Somebody who never logged in."""
    made = Client(box)
    made.token = ""
    return made


@pytest.mark.parametrize("path", ["/redfish", ROOT, f"{ROOT}/", f"{ROOT}/odata", f"{ROOT}/$metadata"])
def test_what_everybody_may_read_needs_no_login(stranger, path):
    assert stranger.ask("GET", path).status == 200
    assert stranger.ask("HEAD", path).status == 200


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", f"{ROOT}/Systems", {}),
        ("GET", f"{ROOT}/nope", {}),
        ("DELETE", f"{ROOT}/", {}),
        ("BREW", f"{ROOT}/", {}),
        ("GET", f"{ROOT}/Systems?$nope", {}),
        ("GET", f"{ROOT}/Systems", {"OData_Version": "4.1"}),
        ("POST", f"{ZONES}/1/Actions/Zone.Nope", {}),
        ("PATCH", CHASSIS, {"If_Match": '"x"'}),
    ],
)
def test_a_stranger_is_told_401_before_anything_else_is_judged(stranger, method, path, headers):
    said = stranger.ask(method, path, **headers)
    assert said.status == 401
    assert said.headers["www-authenticate"].startswith("Basic")


def test_every_reply_has_the_headers_of_the_protocol(client):
    said = client.ask("GET", f"{ZONES}/1")
    assert said.headers["odata-version"] == "4.0"
    assert said.headers["cache-control"] == "no-cache"
    assert said.headers["allow"] == "GET, HEAD, PATCH"
    assert said.headers["etag"] == said.body["@odata.etag"]
    assert said.headers["link"].endswith("/Zone.v1_6_3.json>; rel=describedby")
    head = client.ask("HEAD", f"{ZONES}/1")
    assert (head.status, head.body, head.headers["etag"]) == (200, "", said.headers["etag"])
    assert client.ask("GET", f"{ROOT}/", OData_Version="4.1").status == 412


def test_options_and_405_tell_what_is_allowed(client):
    assert client.ask("OPTIONS", f"{ROOT}/Systems").headers["allow"] == "GET, HEAD, POST"
    said = client.ask("DELETE", f"{ROOT}/Systems")
    assert (said.status, said.headers["allow"]) == (405, "GET, HEAD, POST")
    assert said.messages == ["OperationNotAllowed"]
    assert client.ask("GET", f"{ZONES}/1/Actions/Zone.AddEndpoint").headers["allow"] == "POST"
    assert client.ask("BREW", f"{ROOT}/Systems").status == 501


@pytest.mark.parametrize("path", [f"{ROOT}/nope", f"{ZONES}/9", f"{ROOT}/Chassis/B/Sensors", f"{SESSIONS}/999"])
def test_what_is_not_there_is_404(client, path):
    assert client.ask("GET", path).status == 404


# Tags


def test_a_tag_stays_while_nothing_changes_and_changes_with_each_write(client):
    first = client.get(f"{ZONES}/1")["@odata.etag"]
    assert client.get(f"{ZONES}/1")["@odata.etag"] == first
    client.remove("000100", "1")
    second = client.get(f"{ZONES}/1")["@odata.etag"]
    client.add("000100", "1")
    assert len({first, second, client.get(f"{ZONES}/1")["@odata.etag"]}) == 3


def test_a_tag_does_not_follow_the_time(client, box):
    paths = (f"{ROOT}/Managers/BMC", f"{CHASSIS}/Sensors/Inlet")
    before = [client.get(path)["@odata.etag"] for path in paths]
    pass_time(box, 20)
    assert [client.get(path)["@odata.etag"] for path in paths] == before


def test_if_none_match_is_304_and_if_match_of_a_stale_tag_412(client):
    said = client.ask("PATCH", CHASSIS, {"AssetTag": "one"})
    tag = said.headers["etag"]
    assert client.ask("GET", CHASSIS, If_None_Match=tag).status == 304
    assert client.ask("PATCH", CHASSIS, {"AssetTag": "two"}, If_Match=tag).status == 200
    stale = client.ask("PATCH", CHASSIS, {"AssetTag": "three"}, If_Match=tag)
    assert (stale.status, stale.messages) == (412, ["PreconditionFailed"])
    assert client.get(CHASSIS)["AssetTag"] == "two"
    assert client.ask("GET", CHASSIS, If_None_Match=tag).status == 200


def test_of_racing_writers_with_one_tag_one_wins(client):
    tag = client.get(CHASSIS)["@odata.etag"]
    answers = []
    start = threading.Barrier(8)

    def write(number):
        start.wait()
        answers.append(client.ask("PATCH", CHASSIS, {"AssetTag": str(number)}, If_Match=tag).status)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200] + [412] * 7


# PATCH


def test_a_patch_of_nothing_but_annotations_is_no_operation(client):
    for body in ({}, {"@odata.id": CHASSIS}):
        said = client.ask("PATCH", CHASSIS, body)
        assert (said.status, said.messages) == (400, ["NoOperation"])


@pytest.mark.parametrize(
    ("body", "messages"),
    [
        ({"Bogus": 1}, ["PropertyUnknown"]),
        ({"Model": "x"}, ["PropertyNotWritable"]),
        ({"AssetTag": 7}, ["PropertyValueTypeError"]),
        ({"Bogus": 1, "Model": "x"}, ["PropertyUnknown", "PropertyNotWritable"]),
    ],
)
def test_a_patch_of_which_nothing_can_be_done_is_400_and_names_each_property(client, body, messages):
    before = client.get(CHASSIS)
    said = client.ask("PATCH", CHASSIS, body)
    assert (said.status, said.messages) == (400, messages)
    assert said.body["error"]["@Message.ExtendedInfo"][0]["RelatedProperties"] == [f"#/{next(iter(body))}"]
    assert client.get(CHASSIS) == before


def test_a_patch_of_which_something_can_be_done_is_200_with_messages(client):
    said = client.ask("PATCH", CHASSIS, {"AssetTag": "mixed", "Bogus": 1})
    assert (said.status, said.body["AssetTag"]) == (200, "mixed")
    assert [each["MessageId"] for each in said.body["@Message.ExtendedInfo"]] == ["Base.1.19.PropertyUnknown"]


def test_a_list_is_patched_element_by_element(client):
    path = f"{ROOT}/Managers/BMC/NetworkProtocol"

    def servers(*names):
        return client.ask("PATCH", path, {"NTP": {"NTPServers": list(names)}}).body["NTP"]["NTPServers"]

    assert servers("a", "b", "c") == ["a", "b", "c"]
    assert servers({}, None, "d") == ["a", "d"]
    assert servers("e") == ["e"]


@pytest.mark.parametrize("content", [b"{", b"[]", b"7", b"null", b"\xff", b"[" * 50_000])
def test_a_body_that_is_no_json_object_is_400(client, box, content):
    headers = {"X-Auth-Token": client.token, "Content-Type": "application/json"}
    assert box.send("PATCH", CHASSIS, content, headers)[0] == 400
    assert box.send("POST", f"{ZONES}/1/Actions/Zone.AddEndpoint", content, headers)[0] == 400


def test_another_media_type_is_415_and_a_huge_body_413(client, box):
    headers = {"X-Auth-Token": client.token, "Content-Type": "text/plain"}
    assert box.send("PATCH", CHASSIS, b"{}", headers)[0] == 415
    headers["Content-Type"] = "application/json"
    assert box.send("PATCH", CHASSIS, b'{"AssetTag":"' + b"x" * 2_000_000 + b'"}', headers)[0] == 413


# Query parameters


def test_expand_shows_subordinates_links_or_both(client):
    plain = client.get(f"{ZONES}/1?$expand=.")
    assert all(set(each) == {"@odata.id"} for each in plain["Links"]["Endpoints"])
    linked = client.get(f"{ZONES}/1?$expand=~")
    assert linked["Links"]["Endpoints"][0]["EndpointProtocol"] == "PCIe"
    listed = client.get(f"{ENDPOINTS}?$expand=.($levels=1)")
    assert len(listed["Members"]) == 15
    assert listed["Members"][3]["Identifiers"][0]["DurableNameFormat"] == "UUID"
    deep = client.get(f"{FABRIC}?$expand=*($levels=3)")
    assert deep["Zones"]["Members"][0]["Links"]["Endpoints"][0]["Name"]


def test_select_filter_top_skip_and_only(client):
    picked = client.get(f"{ZONES}/1?$select=ZoneType,Links/Endpoints")
    assert set(picked) == {"@odata.id", "@odata.type", "@odata.etag", "ZoneType", "Links"}
    assert set(picked["Links"]) == {"Endpoints"}
    found = client.get(f"{ENDPOINTS}?$filter=Name eq 'GPU 000100' or (Id eq '000200' and not Id eq '000100')")
    assert [each["@odata.id"].rpartition("/")[2] for each in found["Members"]] == ["000100", "000200"]
    assert found["Members@odata.count"] == 2
    some = client.get(f"{ENDPOINTS}?$top=2&$skip=3")
    assert (len(some["Members"]), some["Members@odata.count"]) == (2, 15)
    assert client.get(f"{ROOT}/Fabrics?only")["Id"] == "PCIe"
    assert client.get(f"{ROOT}/Systems?only")["Members@odata.count"] == 3
    assert client.get(f"{ROOT}/?unknown=1")["Id"] == "RootService"


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("$nope", 501),
        ("$top=-1", 400),
        ("$skip=x", 400),
        ("$expand=5", 400),
        ("$expand=.($levels=99)", 400),
        ("$filter=Name", 400),
        ("$filter=(Name eq 'x'", 400),
        ("$filter=Name eq x", 400),
        ("$filter=Name eq 'x", 400),
        ("$select=", 400),
        ("only=1", 400),
    ],
)
def test_a_query_that_cannot_be_done_is_refused(client, query, status):
    assert client.ask("GET", f"{ENDPOINTS}?{query}").status == status


def test_queries_for_collections_do_not_fit_other_resources(client):
    for query in ("$top=1", "$skip=1", "$filter=Id eq 'x'", "only"):
        said = client.ask("GET", f"{CHASSIS}?{query}")
        assert (said.status, said.messages) == (400, ["QueryNotSupportedOnResource"])


def test_a_long_collection_comes_in_pages(client):
    for _ in range(30):
        client.remove("000100", "1")
        client.add("000100", "1")
    path, seen = f"{ROOT}/Managers/BMC/LogServices/Table/Entries", []
    pages = 0
    while path:
        body = client.get(path)
        seen += [each["@odata.id"] for each in body["Members"]]
        path = body.get("Members@odata.nextLink")
        pages += 1
    assert pages > 1
    assert len(seen) == len(set(seen)) == body["Members@odata.count"]


# Logins


def test_a_session_is_made_and_ended(box):
    client = Client(box)
    assert client.login.status == 201
    where = client.login.headers["location"]
    assert where in client.members(SESSIONS)
    assert client.get(where)["UserName"] == "admin"
    assert client.ask("DELETE", where).status == 204
    assert client.ask("GET", where).status == 401


def test_basic_authentication_lets_in_under_tls(client, box):
    client.token = ""
    given = base64.b64encode(f"admin:{box.password}".encode()).decode()
    assert client.ask("GET", ACCOUNTS, Authorization=f"Basic {given}").status == 200
    for bad in ("Basic", "Basic x", "Basic " + base64.b64encode(b"admin").decode(), "Bearer x"):
        assert client.ask("GET", ACCOUNTS, Authorization=bad).status == 401


ACCEPTED = (
    (f"{ROOT}/Systems", {"Accept": "text/html"}, 406),
    (f"{ROOT}/Systems", {"Accept": "text/html, application/json;q=0"}, 406),
    (f"{ROOT}/Systems", {"Accept": "application/xml, */*;q=0"}, 406),
    (f"{ROOT}/Systems", {"Accept": "text/html, application/*;q=0.1"}, 200),
    (f"{ROOT}/Systems", {"Accept": "text/html, */*"}, 200),
    (f"{ROOT}/openapi.yaml", {"Accept": "application/yaml"}, 200),
    (f"{ROOT}/openapi.yaml", {"Accept": "application/json"}, 406),
    (f"{ROOT}/$metadata", {"Accept": "application/json"}, 406),
    (f"{ROOT}/$metadata", {"Accept": "application/xml"}, 200),
    (f"{ROOT}/Systems", {"Accept_Encoding": "identity;q=0"}, 406),
    (f"{ROOT}/Systems", {"Accept_Encoding": "gzip, *;q=0"}, 406),
    (f"{ROOT}/Systems", {"Accept_Encoding": "gzip, identity"}, 200),
    (f"{ROOT}/Systems", {"Accept_Encoding": "gzip"}, 200),
)


def test_what_cannot_be_accepted_is_not_sent(client):
    for path, headers, status in ACCEPTED:
        said = client.ask("GET", path, **headers)
        assert said.status == status, (path, headers, said)
        if status == 406:
            assert said.messages == ["HeaderInvalid"]


def test_each_registry_that_is_named_is_served_with_the_messages_in_use(box):
    client = Client(box)
    named = client.get(f"{ROOT}/EventService")["RegistryPrefixes"]
    found = {}
    for path in client.members(f"{ROOT}/Registries"):
        [place] = client.get(path)["Location"]
        registry = client.get(place["Uri"])
        found[registry["RegistryPrefix"]] = registry["Messages"]
    assert sorted(found) == sorted(named)
    refused = client.ask("GET", f"{ROOT}/Nowhere")
    assert refused.messages[0] in found["Base"]
    assert found["Base"]["ResourceNotFound"]["NumberOfArgs"] == 2
    assert found["Base"]["ResourceNotFound"]["Message"] == "There is no %1 named %2."


def test_passwords_and_tokens_over_plain_http_are_refused_unless_the_settings_take_them():
    for plain_logins, expected in ((False, (403, 403, 403, 200)), (True, (201, 200, 401, 200))):
        settings = replace(without_a_wire("A", "Passw0rd-1"), plain_logins=plain_logins)
        box = EmulatedChassis(spec(devices=2, slots=2), random.Random(1))
        face = RedfishFace(box, settings)
        session = face.state.accounts.open(face.state.accounts.by_id["1"], 0.0, "")
        basic = base64.b64encode(b"admin:Passw0rd-1").decode()
        body = json.dumps({"UserName": "admin", "Password": "Passw0rd-1"}).encode()
        asked = (
            Request("POST", SESSIONS, {}, {"content-type": "application/json"}, body, secure=False),
            Request("GET", f"{ROOT}/Systems", {}, {"x-auth-token": session.token}, secure=False),
            Request("GET", f"{ROOT}/Systems", {}, {"authorization": f"Basic {basic}"}, secure=False),
            Request("GET", ROOT, secure=False),
        )
        assert tuple(face.finish(face.begin(each, 1.0), 1.0).status for each in asked) == expected
