"""What comes out of a run: reports, recordings, waivers, quirk profiles; and that it needs nothing but the package."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mews.emulator.serve import ChassisServer
from mews.emulator.wrongs.registry import WRONGS
from mews.harness.cli import exit_code
from mews.harness.conformance.client import ChassisTarget
from mews.harness.conformance.dialects.registry import clauses_of
from mews.harness.conformance.expectations import Waiver, load_quirks, load_waivers, shipped_quirks
from mews.harness.conformance.matrix import serving
from mews.harness.conformance.open import client_for, credentials_of
from mews.harness.conformance.run import Order, conform
from mews.harness.errors import BadInputError
from mews.harness.package import copy_to
from mews.project import DOCUMENTATION
from tests.harness.conformance.judging import served, url_of

pytestmark = pytest.mark.wall

BRISK = "apiVersion: mews/v1\nkind: Quirks\ndialect: h3api\nlimits: {settle_s: 0.3, outage_s: 4, quiet_s: 0.3}\n"


@pytest.fixture(scope="module")
def shared() -> Iterator[ChassisServer]:
    with served() as server:
        yield server


@pytest.fixture
def url(shared: ChassisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with shared.rack.box("A") as box:
        box.reset(shared.rack.clock.now())
    return url_of(shared, "h3api")


def fault(server: ChassisServer, **spec: object) -> None:
    with server.rack.box("A") as box:
        box.faults.add(spec, server.rack.clock.now())


def verdicts(report: dict) -> dict[str, str]:
    return {clause["clause"]: clause["verdict"] for clause in report["clauses"]}


def test_the_report_holds_each_clause_with_reference_request_reply_and_verdict(url, tmp_path, capsys):
    assert exit_code(["conform", url, "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["verdict"], report["allow_changes"], report["restored"]) == ("passed", False, None)
    assert report["versions"]["service"]
    [array] = [clause for clause in report["clauses"] if clause["clause"] == "2.array"]
    assert array["reference"] == "chassis.md 2: GET /h3api/v1/resources"
    [exchange] = array["exchanges"]
    assert exchange["request"]["path"] == "/h3api/v1/resources"
    assert exchange["reply"]["status"] == 200
    assert "000100" in exchange["reply"]["body"]
    assert report["counts"]["passed"] + report["counts"]["skipped"] == len(report["clauses"])


def test_a_failure_is_in_every_form_of_the_report(shared, url, tmp_path, capsys):
    fault(shared, kind="http-error", operation="read", status=502)
    files = {"--json": tmp_path / "r.json", "--junit": tmp_path / "r.xml", "--html": tmp_path / "r.html"}
    options = [text for option, path in files.items() for text in (option, str(path))]
    assert exit_code(["conform", url, *options]) == 1
    on_result = capsys.readouterr().out
    assert "failed   2.server-errors" in on_result
    assert "< 502 Internal Server Error" in on_result
    assert on_result.splitlines()[-1].startswith("FAILED in ")
    assert verdicts(json.loads(files["--json"].read_text()))["2.server-errors"] == "failed"
    tree = ElementTree.parse(files["--junit"]).getroot()
    assert tree.attrib["failures"] == "1"
    [case] = [case for case in tree.iter("testcase") if case.find("failure") is not None]
    assert case.attrib["name"].startswith("2.server-errors ")
    assert '<span class="verdict failed">failed</span>' in files["--html"].read_text()


def test_a_known_quirk_does_not_fail_and_is_told_as_one(shared, url, tmp_path, capsys):
    fault(shared, kind="lying-result", operation="attach", says=False, count=None)
    quirks = tmp_path / "q.yaml"
    quirks.write_text(BRISK + "expect: [{clause: 2.truth-attach, reason: the boolean lies}]\n")
    device = ["--allow-changes", "--device", "000100"]
    assert exit_code(["conform", url, *device, "--quirks", str(quirks)]) == 0
    on_result = capsys.readouterr().out
    assert "quirk    2.truth-attach" in on_result
    assert "known of q: the boolean lies" in on_result
    assert "the table is as before" in on_result
    quirks.write_text(BRISK)
    assert exit_code(["conform", url, *device, "--quirks", str(quirks)]) == 1
    assert "failed   2.truth-attach" in capsys.readouterr().out


def test_the_shipped_profiles_are_valid_and_name_what_the_emulators_own_profile_does():
    assert "falcon-4005" in shipped_quirks()
    for name in shipped_quirks():
        dialect = {"kubecomp-simulator": "resource-pool"}.get(name, "h3api")
        assert load_quirks(name, dialect, clauses_of(dialect).clauses).expect
    falcon = load_quirks("falcon-4005", "h3api", clauses_of("h3api").clauses)
    assert set(falcon.expect) == {"2.truth-attach", "2.answers", "2.complete"}


def outcome_with(url: str, waivers: tuple[Waiver, ...]) -> dict[str, tuple[str, str]]:
    outcome = conform(Order(ChassisTarget(url), "h3api", waivers=waivers), date(2026, 6, 1), lambda result: None)
    return {result.clause.id: (result.verdict, f"{result.reason} {result.note}") for result in outcome.results}


def test_a_waiver_holds_until_its_day_and_is_an_error_after_it(shared, url):
    fault(shared, kind="http-error", operation="read")
    results = outcome_with(url, (Waiver("2.server-errors", "gateway", date(2026, 6, 1)),))
    verdict, why = results["2.server-errors"]
    assert verdict == "waived"
    assert why.endswith("waived until 2026-06-01: gateway")
    fault(shared, kind="http-error", operation="read")
    verdict, why = outcome_with(url, (Waiver("2.server-errors", "gateway", date(2026, 5, 31)),))["2.server-errors"]
    assert verdict == "error"
    assert "its waiver expired on 2026-05-31 (gateway)" in why
    verdict, why = outcome_with(url, (Waiver("2.array", "was wrong once", date(2027, 1, 1)),))["2.array"]
    assert (verdict, why.strip()) == ("passed", "its waiver is not needed any more")
    assert outcome_with(url, (Waiver("2.array", "old", date(2026, 1, 1)),))["2.array"][0] == "error"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not YAML"),
        ("{}", "must be a list of {clause, reason, expires}"),
        ("- 1", "[0]: 1: must be a mapping"),
        ("- {clause: 2.array, reason: x, until: 1}", "[0].until: unknown; allowed: clause, reason, expires"),
        ("- {clause: 2.nothing, reason: x, expires: 2026-01-01}", "[0].clause: '2.nothing': must be one of 2."),
        ("- {clause: 2.array, expires: 2026-01-01}", "[0].reason: None: must be a text"),
        ("- {clause: 2.array, reason: x, expires: soon}", "[0].expires: 'soon': must be a day, YYYY-MM-DD"),
        ("- {clause: 2.array, reason: x, expires: 2027-13-01}", "[0].expires: '2027-13-01': must be a day, YYYY-MM-DD"),
        ("- {clause: 2.array, reason: x, expires: 2027-01-01}\n" * 2, "[1].clause: '2.array': is waived twice"),
        ("- {clause: 2.array, reason: x, reason: y, expires: 2027-01-01}", "0.reason: duplicate key 'reason'"),
    ],
)
def test_a_bad_waiver_is_one_line(text, says, tmp_path):
    file = tmp_path / "w.yaml"
    file.write_text(text)
    with pytest.raises(BadInputError) as error:
        load_waivers(file, clauses_of("h3api").clauses)
    assert says in str(error.value)
    assert str(error.value).startswith(f"{file}:")
    assert "\n" not in str(error.value)


def test_a_profile_for_another_dialect_is_refused():
    with pytest.raises(BadInputError, match="dialect: 'h3api': must be resource-pool"):
        load_quirks("falcon-4005", "resource-pool", clauses_of("resource-pool").clauses)


def test_a_recording_differs_from_another_box_in_what_is_different_only(shared, url, tmp_path, capsys):
    recording = str(tmp_path / "recording")
    assert exit_code(["conform", url, "--record", recording]) == 0
    assert exit_code(["conform", url, "--diff", recording]) == 0
    assert "differs" not in capsys.readouterr().out
    with served({"quirks": []}, 1.0) as other:
        with other.rack.box("A") as box:
            box.edits.edit("000100", "3", other.rack.clock.now())
        assert exit_code(["conform", url_of(other, "h3api"), "--diff", recording]) == 0
    with serving((WRONGS["bare-uuid"],), "h3api") as other:
        assert exit_code(["conform", url_of(other, "h3api"), "--diff", recording]) == 1
    on_result = capsys.readouterr().out
    assert "differs: 2.array GET /h3api/v1/resources: body[].OB_GPU_GUID: " in on_result
    assert "recorded <gpu-uuid>" in on_result
    assert exit_code(["conform", url, "--dialect", "resource-pool", "--diff", recording]) == 2
    assert "is a recording of h3api, must be of resource-pool" in capsys.readouterr().err


def test_no_credentials_get_into_the_log(tmp_path, monkeypatch):
    with served() as server:
        url = url_of(server, "resource-pool")
        client = client_for(ChassisTarget(url), ("someone", "hush-hush"))
        hidden = {"Authorization": "Basic x", "Other": "hush-hush"}
        client.send("POST", "/allocation?hush-hush", b'{"Password": "hush-hush"}', hidden)
        [exchange] = client.log
        assert "hush" not in repr(exchange)
        assert exchange.headers == {"Authorization": "***", "Other": "***"}
    monkeypatch.setenv("MEWS_REDFISH_PASSWORD", "word")
    monkeypatch.delenv("MEWS_REDFISH_USER", raising=False)
    assert credentials_of(None) == ("admin", "word")
    monkeypatch.setenv("MEWS_REDFISH_USER", "me")
    assert credentials_of(None) == ("me", "word")
    file = tmp_path / "credentials"
    for text in ("me:wo:rd", "me\nwo:rd\n"):
        file.write_text(text)
        assert credentials_of(file) == ("me", "wo:rd")
    for text in ("", "me", "me:", "a\nb\nc"):
        file.write_text(text)
        with pytest.raises(BadInputError, match="must be one line USER:PASSWORD"):
            credentials_of(file)


def test_it_runs_from_the_package_alone_whatever_pytest_configuration_lies_around(url, tmp_path):
    """A folder with a hostile configuration, a conftest and tests of its own; a copy of the package without tests."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (tmp_path / "conftest.py").write_text("raise RuntimeError('read')\n")
    (tmp_path / "test_own.py").write_text("def test_it(): raise RuntimeError('ran')\n")
    site = tmp_path / "site"
    copy_to(site / "mews")
    done = subprocess.run(
        [sys.executable, "-m", "mews.harness.cli", "conform", url],
        env={**os.environ, "PYTHONPATH": str(site), "PYTEST_ADDOPTS": "--also-not-one"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("PASSED in ")
    assert not list(tmp_path.rglob(".pytest_cache"))


def test_a_server_of_another_kind_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with served() as server:
        url = url_of(server, "h3api")
        assert exit_code(["conform", url + "/nowhere", "--dialect", "resource-pool"]) == 3
        [line] = capsys.readouterr().err.splitlines()
        assert "this does not look like resource-pool: GET /resources: HTTP 404, text/plain" in line
        assert exit_code(["conform", url, "--dialect", "redfish", "--credentials", str(credentials(tmp_path))]) == 3
        [line] = capsys.readouterr().err.splitlines()
        assert line.endswith(f"; it looks like h3api: --dialect h3api (see {DOCUMENTATION})")


@pytest.fixture
def closing_server():
    """A port that takes connections and closes them without a word."""
    with socket.create_server(("127.0.0.1", 0)) as port:

        def close_all():
            with contextlib.suppress(OSError):
                while True:
                    wire, _ = port.accept()
                    with wire:
                        wire.recv(4096)

        thread = threading.Thread(target=close_all, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{port.getsockname()[1]}"
        port.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_port_that_answers_nobody_is_one_line(closing_server, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert exit_code(["conform", closing_server]) == 3
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("GET /h3api/v1/resources: no answer: ")
    assert line.endswith(f"; no chassis answers there (see {DOCUMENTATION})")


def credentials(folder: Path) -> Path:
    file = folder / "credentials"
    file.write_text("admin:word")
    return file


def test_quietly_only_what_went_wrong_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with served() as server:
        assert exit_code(["-q", "conform", url_of(server, "h3api")]) == 0
        assert capsys.readouterr().out == ""
        with server.rack.box("A") as box:
            box.faults.add({"kind": "http-error", "operation": "read", "status": 502}, server.rack.clock.now())
        assert exit_code(["-q", "conform", url_of(server, "h3api")]) == 1
        out = capsys.readouterr().out
    assert out.startswith("failed   2.server-errors ")
    assert "passed " not in out.partition("FAILED")[0]


def test_a_host_that_is_not_there_is_one_line(capsys):
    assert exit_code(["conform", "http://no-such-host.invalid"]) == 3
    assert "cannot be resolved" in capsys.readouterr().err
    assert exit_code(["conform", "http://127.0.0.1:9"]) == 3
    assert "the connection is refused; no chassis answers there" in capsys.readouterr().err
