"""What only reads is judged first, one device is moved and put back before a second, and a report is always written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mews.emulator.dialects.wire import Request, Response
from mews.emulator.serve import ChassisServer
from mews.emulator.wrongs.registry import WRONGS, played
from mews.harness.cli import exit_code
from mews.harness.conformance.client import ChassisTarget
from mews.harness.conformance.dialects.registry import clauses_of
from mews.harness.conformance.expectations import Quirks, load_quirks
from mews.harness.conformance.judge import OUT_OF_TIME, READ_ONLY, SKIPPED
from mews.harness.conformance.matrix import BRISK, PASSWORD, free, places, serving
from mews.harness.conformance.profiles import load_profile
from mews.harness.conformance.report.outcome import ConformanceOutcome, after
from mews.harness.conformance.run import Order, conform
from mews.harness.conformance.suite import in_order
from tests.harness.conformance.judging import DAY, url_of

pytestmark = pytest.mark.wall


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("MEWS_REDFISH_PASSWORD", raising=False)
    return tmp_path


@contextmanager
def box(*wrongs: str, dialect: str = "h3api") -> Iterator[ChassisServer]:
    with serving([WRONGS[name] for name in wrongs], dialect) as server:
        free(server)
        yield server


def judged(
    server: ChassisServer, dialect: str = "h3api", *, patience_s: float = 4.0, **options: Any
) -> ConformanceOutcome:
    target = ChassisTarget(url_of(server, dialect), patience_s=patience_s)
    order = Order(target, dialect, quirks=Quirks(limits=BRISK), guarded=False)
    order = replace(order, **{"changes": True, **options})
    return conform(order, DAY, lambda result: None)


def written(folder: Path, url: str, *options: str) -> tuple[int, dict[str, Any]]:
    file = folder / "report.json"
    code = exit_code(["conform", url, "--json", str(file), *options])
    return code, json.loads(file.read_text())


@pytest.mark.parametrize("wrong", ["wrapped", "renamed", "byte-order-mark", "cut", "a-string-in-it", "reads-fail"])
def test_a_listing_in_another_form_is_a_finding_with_its_exchange_and_nothing_is_moved(wrong, state):
    with box(wrong) as server:
        before, seq = places(server), server.rack.feed.seq
        code, report = written(state, url_of(server, "h3api"), "--allow-changes")
        assert places(server) == before
        assert server.rack.feed.since(seq) == []
    assert (code, report["verdict"]) == (1, "failed")
    [finding] = [each for each in report["clauses"] if each["verdict"] == "failed"]
    assert finding["evidence"]["request"]["path"] == "/h3api/v1/resources"
    assert report["restored"] is None


def test_why_clauses_are_not_judged_is_written_once(capsys):
    with box("byte-order-mark") as server:
        assert exit_code(["conform", url_of(server, "h3api")]) == 1
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines.count("2.array does not hold") == 1
    assert sum(line.startswith("skipped  2.") for line in lines) > 10
    assert any("is not JSON because of the byte order mark at its start: '\\ufeff[{" in line for line in lines)


def test_a_401_without_credentials_names_the_option_and_with_them_is_a_finding(state, capsys):
    with box("asks-credentials") as server:
        code, report = written(state, url_of(server, "h3api"), "--allow-changes")
        assert (code, report["verdict"]) == (3, "error")
        assert "give --credentials FILE" in report["reason"]
        assert "HTTP 401: it requires credentials: give --credentials FILE" in capsys.readouterr().err
        file = state / "who"
        file.write_text("admin:word")
        code, report = written(state, url_of(server, "h3api"), "--allow-changes", "--credentials", str(file))
    assert code == 1
    assert [each["clause"] for each in report["clauses"] if each["verdict"] == "failed"] == ["2.no-auth"]


@pytest.mark.parametrize("password", [None, PASSWORD])
def test_a_redfish_service_is_known_behind_its_401(password, state, capsys, monkeypatch):
    if password is not None:
        monkeypatch.setenv("MEWS_REDFISH_PASSWORD", password)
    with box(dialect="redfish") as server:
        code, report = written(state, server.ready()["chassis"]["A"]["redfish"], "--insecure")
    assert (code, report["clauses"]) == (3, [])
    assert report["reason"].endswith("; it looks like redfish: --dialect redfish")


def test_no_chassis_has_a_report_too(state):
    code, report = written(state, "http://127.0.0.1:9")
    assert (code, report["verdict"], report["clauses"]) == (3, "error", [])
    assert "the connection is refused" in report["reason"]


@pytest.mark.parametrize("dialect", ["h3api", "resource-pool", "redfish"])
def test_what_only_reads_comes_before_what_moves_devices(dialect):
    stages = [(clause.last, clause.changes and not clause.last) for clause in in_order(clauses_of(dialect).clauses)]
    assert stages == sorted(stages)
    assert len(set(stages)) == 3


def test_a_device_that_does_not_go_back_is_the_only_one_that_is_moved():
    with box("detach-lies") as server:
        outcome = judged(server)
        assert places(server)["000100"] == "1"
        assert places(server)["000200"] is None
    [left, again] = outcome.restored or ()
    assert "device 000100 does not go back to no port, it is on port '1'" in left
    assert 'DELETE /h3api/v1/allocation {"gep": "0", "dev_gid": "000100"} (Content-Type text/plain)' in left
    assert again.startswith("mews conform --restore ")
    halted = {result.reason for result in outcome.results if result.clause.changes and not result.clause.last}
    assert halted == {"device 000100 does not go back to no port: no other one is touched"}


def test_nothing_is_attached_where_no_detach_is_answered():
    with box("moves-drop") as server:
        before, seq = places(server), server.rack.feed.seq
        outcome = judged(server)
        assert server.rack.feed.since(seq) == []
        assert places(server) == before
    assert outcome.restored == ()


def test_restoring_uses_the_content_type_that_worked():
    """The device is attached to begin with, so that it is the restoring that attaches it again."""
    with box("json-only") as server:
        with server.rack.box("A") as chassis:
            chassis.edits.edit("000100", "2", server.rack.clock.now())
        before = places(server)
        outcome = judged(server, devices=("000100",))
        assert places(server) == before
    assert outcome.restored == ()


def test_a_neighbour_that_was_knocked_off_is_put_back_and_said():
    with box("knocks-off") as server:
        before = places(server)
        outcome = judged(server)
        assert places(server) == before
    assert outcome.remarks[0].startswith("device 000300 was taken off port ")
    assert all(remark.endswith("it has been put back there") for remark in outcome.remarks)


def test_a_slow_chassis_is_judged_within_its_budget_and_what_was_not_judged_is_listed():
    with box("slow-attach") as server:
        before = places(server)
        outcome = judged(server, budget_s=8.0, patience_s=60.0)
        assert places(server) == before
    late = [result.clause.id for result in outcome.results if result.reason == OUT_OF_TIME]
    assert late
    [text] = outcome.open
    assert text == f"8 s were over before {', '.join(late)}; give more with --budget"
    assert outcome.verdict == "incomplete"
    assert f"NOT JUDGED: {text}" in after(outcome)
    assert any(remark.endswith("what is tried several times elsewhere is tried once") for remark in outcome.remarks)


def test_what_is_not_judged_for_time_has_an_exit_code_of_its_own(state):
    with box("slow-attach") as server:
        code, report = written(state, url_of(server, "h3api"), "--allow-changes", "--budget", "8s")
    assert (code, report["verdict"]) == (4, "incomplete")
    assert not [each for each in report["clauses"] if each["verdict"] == "failed"]


@pytest.mark.parametrize(("dialect", "moves"), [("h3api", 10), ("resource-pool", 8), ("redfish", 10)])
def test_a_slow_chassis_is_moved_no_more_often_than_its_clauses_need(dialect, moves, monkeypatch):
    """There and back; attached for the clauses that want that; a detach and an attach whose answers are lost; free for
    two attaches at once, and again; and there and back in another content type, or by PATCH."""
    monkeypatch.setattr("mews.harness.conformance.trial.MOVES", 1e6)
    with box(dialect=dialect) as server:
        seq = server.rack.feed.seq
        outcome = judged_as_it_is(server, dialect)
        seen = [event for event in server.rack.feed.since(seq) if event["event"] == "table-changed"]
    assert outcome.verdict == "passed", after(outcome)
    assert any(remark.endswith("is tried once") for remark in outcome.remarks)
    assert len(seen) == moves
    assert {event["device"] for event in seen} == {"000100"}


def judged_as_it_is(server: ChassisServer, dialect: str) -> ConformanceOutcome:
    ready = server.ready()
    target = ChassisTarget(ready["chassis"]["A"][dialect], ready["ca"], patience_s=10.0)
    who = ("admin", PASSWORD) if dialect == "redfish" else None
    order = Order(target, dialect, credentials=who, changes=True, quirks=Quirks(limits=BRISK), guarded=False)
    return conform(order, DAY, lambda result: None)


def test_a_service_that_takes_long_to_read_is_sampled_and_that_is_said(monkeypatch):
    """All that clauses hold against each other is read."""
    monkeypatch.setattr("mews.harness.conformance.run.BESIDE_MOVES_PART", 0.0)
    with box(dialect="redfish") as server:
        outcome = judged_as_it_is(server, "redfish")
    assert outcome.verdict == "passed", after(outcome)
    assert outcome.remarks[0] == "reading all resources takes longer than 0 s: from then on 3 of each kind were enough"
    read = {exchange.path for exchange in outcome.log if exchange.clause == "4.uris"}
    endpoints, sensors = ([path for path in read if f"/{name}/" in path] for name in ("Endpoints", "Sensors"))
    assert len(endpoints) > 12
    assert len(sensors) == 3


def test_what_a_sample_lacks_is_not_said_to_be_missing(monkeypatch):
    monkeypatch.setattr("mews.harness.conformance.run.BESIDE_MOVES_PART", 0.0)
    monkeypatch.setattr("mews.harness.conformance.dialects.redfish_model.SAMPLE", 1)
    with box(dialect="redfish") as server:
        outcome = judged_as_it_is(server, "redfish")
    assert outcome.verdict == "passed", after(outcome)
    [roles] = [result for result in outcome.results if result.clause.id == "4.roles"]
    assert (roles.verdict, roles.reason[:36]) == ("skipped", "roles Operator, ReadOnly are missing")


def test_a_good_chassis_is_not_asked_less_often():
    with box() as server:
        outcome = judged(server, budget_s=60.0)
    assert (outcome.verdict, outcome.remarks, outcome.open) == ("passed", (), ())


def test_retry_after_is_waited_for_and_that_is_said():
    with box("odd-busy") as server:
        outcome = judged(server, changes=False)
    assert outcome.verdict == "passed"
    [remark] = outcome.remarks
    assert remark.startswith("waited as the chassis asked: GET /h3api/v1/resources: HTTP 429, Retry-After 1 s")


def test_the_published_simulators_gaps_are_known_of_it():
    """Contract chassis.md 3: any host port is accepted."""
    quirks = load_quirks("kubecomp-simulator", "resource-pool", clauses_of("resource-pool").clauses)
    with box("any-port", dialect="resource-pool") as server:
        outcome = judged(server, "resource-pool", quirks=replace(quirks, limits=BRISK))
    verdicts = {result.clause.id: result.verdict for result in outcome.results}
    assert verdicts.pop("3.unknown-port") == "quirk"
    assert {name for name, verdict in verdicts.items() if verdict == SKIPPED} == {
        *("3.null", "3.persistence", "3.start-file"),
    }
    assert outcome.verdict == "passed"


def test_what_cannot_be_judged_names_its_cause():
    with box("wrapped") as server:
        outcome = judged(server, changes=False)
    reasons = {result.reason for result in outcome.results if result.verdict == SKIPPED}
    assert reasons <= {"2.array does not hold", READ_ONLY, "seen on the host, not on the chassis' wire"}
    [finding] = [result.reason for result in outcome.results if not result.good]
    assert finding == "GET /h3api/v1/resources: an object that wraps it as 'resources', must be an array"


def test_findings_speak_of_json_and_not_of_python():
    with box("null-uuid") as server:
        outcome = judged(server, changes=False)
    [finding] = [result.reason for result in outcome.results if not result.good]
    assert finding.endswith('"OB_GPU_GUID": null}: null must be a string')


def test_grades_are_those_of_the_profile():
    clauses = clauses_of("redfish").clauses
    stack, newest = (load_profile(name, "redfish", clauses, ()) for name in ("stack", "newest"))
    versions = next(clause for clause in clauses if clause.id == "4.versions")
    assert (stack.grade(versions), newest.grade(versions)) == ("may", "must")
    assert {newest.grade(clause) for clause in clauses} == {"must"}


@pytest.mark.parametrize("dialect", ["h3api", "resource-pool", "redfish"])
def test_every_clause_has_one_name_and_a_reference_into_the_contract(dialect):
    clauses = clauses_of(dialect).clauses
    section = {"h3api": "2", "resource-pool": "3", "redfish": "4"}[dialect]
    assert len({clause.id for clause in clauses}) == len(clauses)
    for clause in clauses:
        assert clause.id.startswith(f"{section}.")
        assert clause.reference.startswith("chassis.md ")
        assert clause.title
        assert set(clause.needs) <= {each.id for each in clauses}


def test_the_clauses_are_listed_with_grade_and_source(capsys):
    assert exit_code(["conform", "--list", "--dialect", "resource-pool"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(clauses_of("resource-pool").clauses)
    assert any(
        line.startswith("3.list ") and " must " in line and "[chassis.md 3: GET /resources]" in line for line in lines
    )


def test_a_baseline_tells_what_is_new_and_what_is_mended(state, capsys):
    old, new = state / "old.json", state / "new.json"
    with box("null-uuid", "twice") as server:
        assert exit_code(["conform", url_of(server, "h3api"), "--json", str(old)]) == 1
    with box("null-uuid", "port-gid") as server:
        code = exit_code(["conform", url_of(server, "h3api"), "--json", str(new), "--baseline", str(old)])
    assert code == 1
    since = json.loads(new.read_text())["since"]
    assert since == {"new": ["2.port-gid"], "mended": ["2.one-port"], "as_before": ["2.strings"]}
    out = capsys.readouterr().out
    assert "new: 2.port-gid\nmended: 2.one-port\nas before: 2.strings" in out


def test_sarif_has_a_rule_and_a_result_for_each_finding(state):
    file = state / "found.sarif"
    with box("null-uuid") as server:
        url = url_of(server, "h3api")
        assert exit_code(["conform", url, "--sarif", str(file)]) == 1
    value = json.loads(file.read_text())
    [run] = value["runs"]
    assert value["version"] == "2.1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["2.strings"]
    [result] = run["results"]
    assert (result["ruleId"], result["level"]) == ("2.strings", "error")
    [location] = result["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == f"{url}/h3api/v1/resources"


def first(lines: Sequence[str], holds: Callable[[str], bool]) -> str:
    return next(line for line in lines if holds(line))


def test_the_self_test_prints_which_clause_names_which_wrong(monkeypatch, capsys):
    few = {name: WRONGS[name] for name in ("null-uuid", "attach-lies", "odd-space")}
    monkeypatch.setattr("mews.harness.commands.self_test.WRONGS", few)
    assert exit_code(["conform", "--self-test", "--dialect", "h3api"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert first(lines, lambda line: " null-uuid " in line).split() == [
        "named",
        "by",
        "one",
        "null-uuid",
        "h3api",
        "2.strings",
    ]
    assert first(lines, lambda line: " attach-lies " in line).startswith("not named ")
    assert first(lines, lambda line: " odd-space " in line).startswith("accepted ")
    assert lines[-1] == "1 named by one, 1 not named, 1 accepted"


@pytest.mark.parametrize("names", [("null-uuid", "gzip"), ("gzip", "null-uuid")])
def test_wrongs_are_combined_in_any_order(names):
    with box(*names) as server:
        outcome = judged(server, changes=False)
    assert {result.clause.id for result in outcome.results if not result.good} == {"2.strings", "2.coding"}


def test_what_happens_now_and_then_is_decided_by_the_seed():
    def struck(seed: int) -> list[int]:
        wrong = WRONGS["reads-fail-sometimes"]
        asked = played([wrong], lambda request: Response(200, {}, b"[]"), seed=seed)
        listing = Request("GET", "/h3api/v1/resources")
        return [number for number in range(40) if getattr(asked(listing), "status", 0) == 500]

    assert struck(1) == struck(1)
    assert struck(1)
    assert len({tuple(struck(seed)) for seed in range(12)}) > 1
