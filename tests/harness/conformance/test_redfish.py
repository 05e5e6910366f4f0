"""The clauses of Redfish: our own service keeps all of them, in clear and over TLS; what a reply lacks is found."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mews.emulator.serve import ChassisServer
from mews.emulator.tls import made
from mews.harness.cli import exit_code
from mews.harness.conformance.client import ChassisTarget, Client, HttpReply
from mews.harness.conformance.judge import SKIPPED
from tests.harness.conformance.judging import broken, ca_of, judged, judged_by, ports, served, url_of

pytestmark = pytest.mark.wall

PASSWORD = "quite-a-secret-word"
SLOW = {"attach": 0.2, "detach": 0.1}


@pytest.fixture(scope="module")
def server() -> Iterator[ChassisServer]:
    with served(password=PASSWORD) as server:
        yield server


def judge(server: ChassisServer, **options):
    return judged(url_of(server, "redfish"), "redfish", credentials=("admin", PASSWORD), ca=ca_of(server), **options)


def test_our_own_service_keeps_every_clause(server):
    results = judge(server)
    assert broken(results) == set(), told(results)
    assert not_judged(results) == {"4.absent", "4.task", "4.task-state", "4.training"}


def test_operations_that_take_time_are_judged_too(tmp_path):
    """Over TLS, with an empty slot; what needs no device is judged by the other test."""
    identity = made(tmp_path)
    with served(SLOW, password=PASSWORD, tls=identity) as server:
        with server.rack.box("A") as box:
            box.edits.remove("000C00", server.rack.clock.now())
        only = {"4.task", "4.training", "4.absent", "4.basic", "4.sessions", "4.zone-patch", "4.attach", "4.detach"}
        results = judge(server, only=lambda clause: clause.id in only)
        assert ca_of(server) == str(identity.certificate)
    assert broken(results) == set(), told(results)
    assert not_judged(results) == set()


def told(results):
    return {clause: result.reason for clause, result in results.items() if not result.good}


def not_judged(results):
    return {clause for clause, result in results.items() if result.verdict == SKIPPED}


def without(name: str) -> Callable[[HttpReply], HttpReply]:
    return lambda reply: replace(reply, headers={key: value for key, value in reply.headers.items() if key != name})


def with_status(old: int, new: int) -> Callable[[HttpReply], HttpReply]:
    return lambda reply: replace(reply, status=new if reply.status == old else reply.status)


def with_text(old: str, new: str) -> Callable[[HttpReply], HttpReply]:
    return lambda reply: replace(reply, body=reply.body.replace(old.encode(), new.encode()))


@pytest.mark.parametrize(
    ("mangle", "expected"),
    [
        (without("odata-version"), {"4.odata-version"}),
        (without("allow"), {"4.allow"}),
        (without("link"), {"4.describedby"}),
        (without("etag"), {"4.etag"}),
        (without("www-authenticate"), {"4.private"}),
        (with_status(401, 403), {"4.private"}),  # under TLS Basic is taken
        (with_status(501, 200), {"4.unknown-query"}),
        (with_status(412, 200), {"4.odata-version"}),
        (with_status(304, 200), {"4.if-none-match"}),
        (with_text("@Message.ExtendedInfo", "@Other.Info"), {"4.errors"}),
        (with_text("#Zone.v1_6_3.", "#Zone.v1_6_2."), {"4.versions"}),
        (with_text("#TelemetryService.v1_4_1.", "#Other.v1_0_0."), {"4.resource-TelemetryService"}),
        (with_text('"ZoneOfEndpoints"', '"Default"'), {"4.zones"}),
        (with_text('"DurableName"', '"OtherName"'), {"4.durable-name"}),
        (with_text('"RoleId":"Operator"', '"RoleId":"Helper"'), {"4.roles"}),
        (with_text('"LinkStatus"', '"LinkMood"'), {"4.link-status"}),
        (with_text("#Zone.RemoveEndpoint", "#Zone.Remove"), {"4.actions"}),
        (with_text('"0x10de"', '"0x1002"'), {"4.functions"}),
        (with_text('"ServerSentEventUri"', '"Uri"'), {"4.event-stream"}),
    ],
    ids=lambda value: "-".join(sorted(value)) if isinstance(value, set) else "",
)
def test_what_a_reply_lacks_is_found_as_its_clause(server, mangle, expected):
    results = judge(server, changes=False, mangle=mangle)
    assert broken(results) == expected, told(results)


def test_the_command_line_puts_versions_into_the_report_and_credentials_nowhere(
    server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("MEWS_REDFISH_PASSWORD", PASSWORD)
    before = ports(server)
    files = {"--json": tmp_path / "r.json", "--junit": tmp_path / "r.xml", "--html": tmp_path / "r.html"}
    options = [text for option, path in files.items() for text in (option, str(path))]
    options += ["--record", str(tmp_path / "recording"), "--allow-changes", "--device", "000900"]
    options += ["--ca", ca_of(server)]
    assert exit_code(["conform", url_of(server, "redfish"), "--dialect", "redfish", *options]) == 0
    assert ports(server) == before
    report = json.loads(files["--json"].read_text())
    assert report["versions"]["service"]["RedfishVersion"]
    assert report["versions"]["schemas"]["Zone"] == "1.6.3"
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"r.json", "r.xml", "r.html", "recording.json", "exchanges.jsonl"} <= {path.name for path in written}
    on_result = capsys.readouterr().out
    assert "RedfishVersion" in on_result
    assert PASSWORD not in on_result
    assert [path for path in written if PASSWORD in path.read_text(errors="replace")] == []


def test_without_credentials_nothing_starts(monkeypatch, capsys):
    monkeypatch.delenv("MEWS_REDFISH_PASSWORD", raising=False)
    assert exit_code(["conform", "http://127.0.0.1:9", "--dialect", "redfish"]) == 2
    assert "set MEWS_REDFISH_USER and MEWS_REDFISH_PASSWORD, or give --credentials FILE" in capsys.readouterr().err


def test_wrong_credentials_are_told_and_refuse_changes(server, monkeypatch, capsys):
    monkeypatch.setenv("MEWS_REDFISH_PASSWORD", "not-it")
    options = ["--dialect", "redfish", "--allow-changes", "--ca", ca_of(server)]
    assert exit_code(["conform", url_of(server, "redfish"), *options]) == 1
    out = capsys.readouterr().out
    assert "failed   4.access " in out
    assert "passed   4.actions" not in out


def test_the_recording_of_another_box_differs_in_what_is_different(server, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MEWS_REDFISH_PASSWORD", PASSWORD)
    recording, redfish = str(tmp_path / "r"), ["--dialect", "redfish", "--ca", ca_of(server)]
    for option in ("--record", "--diff"):
        code = exit_code(["conform", url_of(server, "redfish"), *redfish, option, recording])
        told = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("passed ")]
        assert code == 0, told
    with served(password=PASSWORD, name="unattached") as other:
        exit_code(["conform", url_of(other, "redfish"), *redfish[:-1], ca_of(other), "--diff", recording])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("differs:")]
    assert any("Links.Endpoints" in line or "StandbyOffline" in line for line in lines), lines
    assert len(lines) < 40, lines


def test_a_taken_block_that_is_composed_all_the_same_is_an_answer_that_lies():
    class Composing(Client):
        def send(self, method: str, path: str, *more: Any, **named: Any) -> HttpReply:
            reply = super().send(method, path, *more, **named)
            return HttpReply(204, reply.headers, b"") if path.endswith("AddResourceBlock") else reply

    wanted = ("4.taken-block", "4.truth-attach")
    with served(password="a-password") as server:
        client = Composing(ChassisTarget(url_of(server, "redfish"), ca_of(server), patience_s=10.0))
        client.credentials = ("admin", "a-password")
        found = judged_by(client, "redfish", devices=("000100",), only=lambda clause: clause.id in wanted)
    assert found["4.truth-attach"].reason.startswith("composing 000100, which is taken: answered as done")
