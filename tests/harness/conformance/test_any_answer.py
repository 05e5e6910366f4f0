"""No answer makes a judgement end otherwise than with verdicts: every member of every reply, of every type of JSON."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection
from typing import Any

import pytest

from mews.harness.conformance.clause import Clause
from mews.harness.conformance.fields import leaves
from mews.harness.conformance.table import Limits
from tests.harness.conformance.judging import broken, judged_by
from tests.harness.conformance.replayed import RecordedService, ReplayedClient, our_service, scarred
from tests.harness.conformance.wrong import Answered, LocalClient, Records, Wrong

NOW = Limits(settle_s=0.0, outage_s=30.0, quiet_s=0.0)
VALUES: tuple[Any, ...] = (None, True, 7, 1.5, "", "text", [], [[]], {}, {"a": {}})
MISSING = object()
H3API = ("dev_type", "Dev_GID", "Host_Port#", "OB_GPU_GUID", "Port#", "Port_GID")
POOL = ("devid", "uuid", "hostport")


@pytest.fixture(autouse=True)
def without_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mews.harness.conformance.bench._rest", lambda seconds: None)


def with_member(name: str, value: Any) -> Any:
    def listing(records: Records) -> Records:
        changed = copy.deepcopy(records)
        for record in changed:
            if name in record and value is MISSING:
                del record[name]
            elif name in record:
                record[name] = value
        return changed

    return listing


def name_of(value: Any) -> str:
    return "missing" if value is MISSING else json.dumps(value)


@pytest.mark.parametrize("value", [*VALUES, MISSING], ids=name_of)
@pytest.mark.parametrize(
    ("dialect", "member"),
    [("h3api", name) for name in H3API] + [("resource-pool", name) for name in POOL],
)
def test_a_member_of_a_listing_of_another_type_is_its_clause_and_no_crash(dialect, member, value):
    box = Wrong(listing=with_member(member, value))
    results = judged_by(LocalClient(box), dialect, limits=NOW, changes=False)
    found = broken(results)
    section = "2" if dialect == "h3api" else "3"
    if value is MISSING:
        word = "members" if dialect == "resource-pool" else "kinds"
        assert f"{section}.{word}" in found
    elif not isinstance(value, str):
        free = value is None and member in ("Host_Port#", "hostport")
        named = member in ("Dev_GID", "Port#", "devid")
        wanted = {f"{section}.{'free' if free else 'names' if named else 'strings'}"}
        if isinstance(value, int | float) and not isinstance(value, bool):
            found &= wanted  # the same number everywhere is read as it is, and a deviation of its own
        assert found == wanted, {name: results[name].reason for name in found}


@pytest.mark.parametrize("value", VALUES, ids=name_of)
@pytest.mark.parametrize(("dialect", "gate"), [("h3api", "2.array"), ("resource-pool", "3.list")])
@pytest.mark.parametrize("deep", [False, True], ids=["whole", "element"])
def test_a_listing_of_another_type_is_one_clause(dialect, gate, deep, value):
    whole = [value] if deep else value
    box = Wrong(listing=lambda records: whole)
    if dialect == "resource-pool" and not whole:
        whole = None
    results = judged_by(LocalClient(box), dialect, limits=NOW, changes=False)
    right = whole is None if dialect == "resource-pool" else whole == []
    if not right and not (deep and isinstance(value, dict)):
        assert broken(results) == {gate}


@pytest.mark.parametrize("value", [*VALUES, MISSING], ids=name_of)
@pytest.mark.parametrize("member", ["", "action", "result", "remark", "result[0]"])
def test_a_reply_to_a_write_of_another_type_ends_with_verdicts(member, value):
    def answer(method: str, path: str, number: int, answered: Answered) -> Answered:
        if method == "GET":
            return answered
        reply: Any = json.loads(answered[2])
        if not member:
            reply = None if value is MISSING else value
        elif member == "result[0]":
            reply["result"] = [value] if value is not MISSING else []
        elif value is MISSING:
            del reply[member]
        else:
            reply[member] = value
        return 200, answered[1], json.dumps(reply)

    results = judged_by(LocalClient(Wrong(answer=answer)), "h3api", limits=NOW)
    right = member in ("action", "remark") and isinstance(value, str)
    right = right or (member == "result[0]" and value is True)
    assert right or "2.reply" in broken(results)


@pytest.mark.parametrize("status", [100, 204, 301, 302, 400, 401, 403, 404, 418, 429, 500, 502, 503, 599])
@pytest.mark.parametrize("body", ["", "{", "<html>", "null", "[]", "\x00", '{"error": 1}'])
@pytest.mark.parametrize("dialect", ["h3api", "resource-pool"])
def test_any_status_and_body_ends_with_verdicts(dialect, status, body):
    box = Wrong(answer=lambda method, path, number, answered: (status, "text/html", body))
    assert broken(judged_by(LocalClient(box), dialect, limits=NOW))


def reads(clause: Clause) -> bool:
    return not clause.changes


OF_THE_TABLE = ("ServiceRoot", "Fabric", "Zone", "Endpoint", "EndpointCollection", "FabricCollection", "EventService")


def places(service: RecordedService, kinds: Collection[str] = ()) -> list[str]:
    """Every place in the resources of these kinds, of all where none are named."""
    found = (leaves(value) for kind, value in service.resources() if not kinds or kind in kinds)
    return list(dict.fromkeys(place for each in found for place, _ in each))


def test_no_member_of_any_redfish_resource_is_of_a_type_that_ends_a_judgement_otherwise():
    """All at once that share a place, each with the next value: types go round from place to place. Some places; each
    one every night."""
    service = our_service()
    found = places(service, OF_THE_TABLE)
    assert len(found) > 60
    for number, place in enumerate(found[::6]):
        client = ReplayedClient(service, scarred(place, VALUES[number % len(VALUES)]))
        assert judged_by(client, "redfish", limits=NOW, changes=False, only=reads)["4.root"].verdict


@pytest.mark.nightly
@pytest.mark.parametrize("value", VALUES, ids=name_of)
def test_each_type_at_each_place_of_each_redfish_resource(value):
    service = our_service()
    for place in places(service):
        client = ReplayedClient(service, scarred(place, value))
        assert judged_by(client, "redfish", limits=NOW, changes=False, only=reads)
