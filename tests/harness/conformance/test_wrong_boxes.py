"""Boxes that are wrong in one thing are named by the one clause that is about it, and are left as they were or said not
to be: by the whole of a run over a wire, its guard left out, which other tests are about."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mews.harness.conformance.client import ChassisTarget, HttpReply
from mews.harness.conformance.dialects.registry import clauses_of
from mews.harness.conformance.expectations import Quirks, load_quirks
from mews.harness.conformance.judge import OF_GRADE, PASSED, READ_ONLY, SKIPPED
from mews.harness.conformance.profiles import load_profile
from mews.harness.conformance.report.outcome import ConformanceOutcome, after
from mews.harness.conformance.run import Order, conform
from mews.harness.conformance.table import Limits
from mews.harness.errors import Lacks
from tests.harness.conformance.judging import DAY, broken, judged_by
from tests.harness.conformance.replayed import ReplayedClient, our_service, scarred
from tests.harness.conformance.wrong import DROPPED, Answered, Handler, OddHandler, Records, Wrong, serving, slowly

pytestmark = pytest.mark.wall

BRISK = Limits(attach_s=60.0, detach_s=60.0, read_s=60.0, settle_s=0.2, outage_s=30.0, quiet_s=0.0)
H3API, POOL = "h3api", "resource-pool"


class NoGuard:
    def __init__(self, file: Any, credentials: Any) -> None:
        pass

    def dismiss(self) -> None:
        pass


@pytest.fixture(autouse=True)
def unguarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("mews.harness.conformance.run.Guard", NoGuard)


def run(
    box: Wrong, dialect: str, *, changes: bool = True, quirks: Quirks | None = None, handler: type[Handler] = Handler
) -> ConformanceOutcome:
    with serving(box, handler) as url:
        order = Order(
            ChassisTarget(url, patience_s=4.0),
            dialect,
            changes=changes,
            ports=("1", "2"),
            quirks=quirks or Quirks(limits=BRISK),
        )
        return conform(order, DAY, lambda result: None)


def found(outcome: ConformanceOutcome) -> dict[str, str]:
    """Clause -> why, of those that do not hold, whatever their grade."""
    return {result.clause.id: result.reason for result in outcome.results if result.verdict in OF_GRADE.values()}


def listed(change: Callable[[dict[str, Any]], Any]) -> Callable[[Records], Any]:
    """Each record, changed."""

    def listing(records: Records) -> Any:
        changed = copy.deepcopy(records)
        for record in changed:
            change(record)
        return changed

    return listing


def member(name: str, convert: Callable[[str], Any]) -> Wrong:
    def change(record: dict[str, Any]) -> None:
        if name in record:
            record[name] = convert(record[name])

    return Wrong(listing=listed(change))


def number_or_text(text: str) -> Any:
    return int(text) if text.isdecimal() else text


def without(name: str) -> Wrong:
    return Wrong(listing=listed(lambda record: record.pop(name, None)))


def reads(change: Callable[[int, Answered], Answered]) -> Wrong:
    """Each listing, changed, by the number of its request."""
    return Wrong(answer=lambda method, path, number, was: change(number, was) if method == "GET" else was)


def writes(change: Callable[[dict[str, Any]], Any]) -> Wrong:
    """Each reply to a write, changed."""

    def answer(method: str, path: str, number: int, was: Answered) -> Answered:
        return was if method == "GET" else (was[0], was[1], json.dumps(change(json.loads(was[2]))))

    return Wrong(answer=answer)


def every_write(is_answered: Answered) -> Wrong:
    return Wrong(answer=lambda method, path, number, was: was if method == "GET" else is_answered)


def status(old: int, new: int, *, method: str = "", text: str | None = None) -> Wrong:
    """Of requests with that method alone; with a ``text`` in place of the body, of writes alone."""

    def answer(asked: str, path: str, number: int, was: Answered) -> Answered:
        meant = asked == method if method else asked != "GET" if text is not None else True
        return (new, was[1], was[2] if text is None else text) if was[0] == old and meant else was

    return Wrong(answer=answer)


def bodies(change: Callable[[str], str]) -> Wrong:
    """Each listing's text, changed."""
    return reads(lambda number, was: (was[0], was[1], change(was[2])))


def now_and_then(what: Callable[[Answered], Answered]) -> Wrong:
    return reads(lambda number, was: what(was) if number % 9 == 8 else was)


def half(was: Answered) -> Answered:
    return was[0], was[1], json.dumps(json.loads(was[2])[1:])


def plain_failure(method: str, path: str, number: int, was: Answered) -> Answered:
    return (400, "text/plain", "no") if method != "GET" and json.loads(was[2])["remark"] == "request" else was


BOXES: list[tuple[str, str, Wrong, set[str]]] = [
    ("Host_Port# is an integer", H3API, member("Host_Port#", number_or_text), {"2.strings"}),
    ("Port# is an integer", H3API, member("Port#", int), {"2.strings"}),
    ("Dev_GID is an integer", H3API, member("Dev_GID", int), {"2.strings"}),
    ("OB_GPU_GUID is null", H3API, member("OB_GPU_GUID", lambda text: None), {"2.strings"}),
    ("dev_type is missing", H3API, without("dev_type"), {"2.kinds"}),
    ("a free device is on null", H3API, member("Host_Port#", lambda text: text or None), {"2.free"}),
    ("Port_GID is decimal", H3API, member("Port_GID", lambda text: text.replace("0", "1")), {"2.port-gid"}),
    ("a device twice", H3API, Wrong(listing=lambda records: [*records, records[0]]), {"2.one-port"}),
    ("one UUID for all", H3API, member("OB_GPU_GUID", lambda text: "GPU-1"), {"2.one-port"}),
    ("a byte order mark", H3API, bodies(lambda text: f"\ufeff{text}"), {"2.array"}),
    ("a member twice", H3API, bodies(lambda text: text.replace("{", '{"dev_type": "NIC", ', 1)), {"2.array"}),
    ("not a number", H3API, bodies(lambda text: text.replace('"GPU"', "NaN")), {"2.array"}),
    ("more behind the listing", H3API, bodies(lambda text: f"{text}\nOK"), {"2.array"}),
    ("202 for 200", H3API, status(200, 202, method="GET"), {"2.array"}),
    ("writes ask who it is", H3API, status(200, 401, text=""), {"2.reply"}),
    ("writes without a body", H3API, status(200, 200, text=""), {"2.reply"}),
    (
        "writes are dropped",
        H3API,
        every_write(DROPPED),
        {"2.answers"},
    ),
    ("a wrapper object", H3API, Wrong(listing=lambda records: {"resources": records}), {"2.array"}),
    ("401", H3API, reads(lambda number, was: (401, "text/plain", "")), {"2.no-auth"}),
    ("500 to every read", H3API, reads(lambda number, was: (500, "text/plain", "")), {"2.server-errors"}),
    ("500 now and then", H3API, now_and_then(lambda was: (500, "text/plain", "")), {"2.server-errors"}),
    ("cut short now and then", H3API, now_and_then(lambda was: (200, was[1], was[2][:40])), {"2.form"}),
    ("half a list now and then", H3API, now_and_then(half), {"2.complete"}),
    ("no answer now and then", H3API, now_and_then(lambda was: DROPPED), {"2.answers"}),
    ("late now and then", H3API, reads(lambda number, was: slowly(was, 0.35) if number == 9 else was), {"2.times"}),
    ("done is a lie", H3API, Wrong("lies"), {"2.attach"}),
    ("failed is a lie", H3API, Wrong("denies"), {"2.truth-attach"}),
    ("loses devices", H3API, Wrong("loses"), {"2.lost"}),
    ("any port will do", H3API, Wrong("any-port"), {"2.unknown-port"}),
    ("moves what is attached", H3API, Wrong("moves-attached"), {"2.held"}),
    ("a neighbour is knocked off", H3API, Wrong("knocks-off"), {"2.alone"}),
    ("a UUID goes with the port", H3API, Wrong("changes-uuid"), {"2.uuid"}),
    ("a bare boolean", H3API, writes(lambda reply: {**reply, "result": reply["result"][0]}), {"2.reply"}),
    ("upper-case keys", H3API, writes(lambda reply: {**reply, "Time": "1"}), {"2.lower-case"}),
    ("a failure in plain words", H3API, Wrong(answer=plain_failure), {"2.failure"}),
    ("hostport is an integer", POOL, member("hostport", number_or_text), {"3.strings"}),
    ("uuid is an object", POOL, member("uuid", lambda text: {"is": text}), {"3.strings"}),
    ("a free device is on null", POOL, member("hostport", lambda text: text or None), {"3.free"}),
    ("a further member", POOL, Wrong(listing=listed(lambda record: record.update(slot="1"))), {"3.members"}),
    ("a wrapper object", POOL, Wrong(listing=lambda records: {"devices": records}), {"3.list"}),
    ("a device twice", POOL, Wrong(listing=lambda records: [*records, records[0]]), {"3.one-port"}),
    ("one UUID for all", POOL, member("uuid", lambda text: "GPU-1"), {"3.one-port"}),
    (
        "writes are 500",
        POOL,
        every_write((500, "text/plain", "")),
        {"3.server-errors"},
    ),
    ("200 for 204", POOL, status(204, 200), {"3.no-content"}),
    ("201 for 204", POOL, status(204, 201), {"3.no-content"}),
    ("403 without credentials", POOL, reads(lambda number, was: (403, "text/plain", "")), {"3.no-auth"}),
    ("422 for 404", POOL, status(404, 422), {"3.not-found"}),
    ("a verb too many", POOL, status(405, 200), {"3.verbs-read"}),
]


READ_ONLY_BOXES = {
    *("a byte order mark", "a member twice", "not a number", "more behind the listing"),  # no table can be read
    *("a wrapper object", "401", "403 without credentials", "500 to every read"),  # changes are refused
    *("Dev_GID is an integer", "Port_GID is decimal"),  # and of no other form in its requests
}


@pytest.mark.parametrize(("name", "dialect", "box", "wanted"), BOXES, ids=[each[0] for each in BOXES])
def test_a_wrong_box_is_named_by_its_clause_and_left_as_it_was(name, dialect, box, wanted):
    before = dict(box.ports)
    with_table = name not in READ_ONLY_BOXES
    limits = replace(BRISK, read_s=0.3) if wanted == {"2.times"} else BRISK
    outcome = run(box, dialect, changes=with_table, quirks=Quirks(limits=limits))
    assert set(found(outcome)) == wanted, found(outcome)
    if with_table:
        assert box.ports == before or outcome.restored, after(outcome)
        assert ("the table is as before" in after(outcome)) == (box.ports == before)


def unlike_ours(records: Records) -> Records:
    """The same, its order reversed, that of its members too, and with a member that the contract does not name."""
    return [dict(reversed([*record.items(), ("Vendor", "x")])) for record in reversed(records)]


@pytest.mark.parametrize(("dialect", "listing"), [(H3API, unlike_ours), (POOL, lambda records: records[::-1])])
def test_a_box_that_is_right_in_its_own_way_is_found_right(dialect, listing):
    """Header names in another case, bodies in chunks, a connection for each reply, another order, more members."""
    box = Wrong(listing=listing)
    outcome = run(box, dialect, handler=OddHandler)
    assert found(outcome) == {}
    assert outcome.verdict == "passed"
    assert box.ports == {"000100": "", "000200": "", "000300": "1"}


def test_a_coding_that_nobody_asked_for_is_named_as_such():
    with pytest.raises(Lacks, match="application/json, with a body in gzip, which was not asked for"):
        run(Wrong(), H3API, changes=False, handler=type("Packing", (OddHandler,), {"packs": True}))


def test_at_least_27_boxes_are_wrong():
    assert len(BOXES) + len(REDFISH) >= 27


def test_what_cannot_be_judged_names_its_cause():
    outcome = run(Wrong(listing=lambda records: {"resources": records}), H3API, changes=False)
    reasons = {result.reason for result in outcome.results if result.verdict == SKIPPED}
    assert reasons <= {"2.array does not hold", READ_ONLY}
    assert any("that wraps it as 'resources'" in result.reason for result in outcome.results)


def test_a_neighbour_that_was_knocked_off_is_put_back_and_said():
    box = Wrong("knocks-off")
    outcome = run(box, H3API)
    assert box.ports == {"000100": "", "000200": "", "000300": "1"}
    assert outcome.remarks == (
        "device 000300 was taken off port '1' by a request about another one; it has been put back there",
    )


def test_a_neighbour_that_does_not_go_back_is_said():
    box = Wrong("knocks-off")
    box.known = ("2", "3")
    outcome = run(box, H3API, changes=True)
    assert box.ports["000300"] == ""
    assert "NOT RESTORED: device 000300 does not go back to port '1'" in after(outcome)
    assert outcome.verdict == "failed"


def other_status(path: str, code: int) -> Callable[[str, HttpReply], HttpReply]:
    return lambda where, reply: replace(reply, status=code, body=b"{}") if where.endswith(path) else reply


def other_body(path: str, body: bytes) -> Callable[[str, HttpReply], HttpReply]:
    return lambda where, reply: replace(reply, body=body) if where.endswith(path) else reply


def refused(where: str, reply: HttpReply) -> HttpReply:
    public = where.rstrip("/") in ("/redfish", "/redfish/v1", "/redfish/v1/odata", "/redfish/v1/$metadata")
    return reply if public else replace(reply, status=401)


REDFISH: list[tuple[str, Callable[[str, HttpReply], HttpReply], set[str]]] = [
    ("DurableName is a number", scarred("Identifiers[].DurableName", 7, "Endpoint"), {"4.types"}),
    ("Links is a text", scarred("Links", "none", "Zone"), {"4.types"}),
    ("Members is an object", scarred("Members", {}, "SensorCollection"), {"4.collections"}),
    ("one path is 500", other_status("/Managers/BMC/NetworkProtocol", 500), {"4.server-errors"}),
    ("one resource is no JSON", other_body("/Managers/BMC/NetworkProtocol", b"<html>"), {"4.json"}),
    ("the root is wrapped", other_body("/redfish/v1/", b'{"data": {"RedfishVersion": "1.15.0"}}'), {"4.root"}),
    ("the credentials are refused", refused, {"4.access"}),
]


@pytest.mark.parametrize(("scar", "wanted"), [each[1:] for each in REDFISH], ids=[each[0] for each in REDFISH])
def test_a_wrong_redfish_service_is_named_by_its_clause(scar, wanted):
    results = judged_by(ReplayedClient(our_service(), scar), "redfish", limits=BRISK, changes=False)
    assert broken(results) == wanted, {name: results[name].reason for name in broken(results)}


def test_the_published_simulators_gaps_are_named_without_a_blind_spot():
    """Contract chassis.md 3: any host port is accepted."""
    quirks = load_quirks("kubecomp-simulator", POOL, clauses_of(POOL).clauses)
    box = Wrong("gaps")
    outcome = run(box, POOL, quirks=replace(quirks, limits=BRISK))
    verdicts = {result.clause.id: result.verdict for result in outcome.results}
    assert verdicts.pop("3.unknown-port") == "quirk"
    open_ones = {name for name, verdict in verdicts.items() if verdict == SKIPPED}
    assert open_ones == {"3.null", "3.persistence", "3.start-file"}
    assert set(verdicts.values()) == {PASSED, SKIPPED}
    assert outcome.verdict == "passed"


def test_grades_are_those_of_the_profile():
    clauses = clauses_of("redfish").clauses
    stack, newest = (load_profile(name, "redfish", clauses, ()) for name in ("stack", "newest"))
    versions = next(clause for clause in clauses if clause.id == "4.versions")
    assert (stack.grade(versions), newest.grade(versions)) == ("may", "must")
    assert {newest.grade(clause) for clause in clauses} == {"must"}
    for dialect in (H3API, POOL):
        assert load_profile("stack", dialect, clauses_of(dialect).clauses, ()).clauses
