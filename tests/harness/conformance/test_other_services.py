"""Services that are not ours, and recordings: judged to the end, and served again."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from mews.harness.cli import exit_code
from mews.harness.conformance.dialects.registry import clauses_of
from mews.harness.conformance.interop.compare import at_uri
from mews.harness.conformance.recording import record
from mews.harness.errors import BadInputError
from mews.harness.replay.folders import load_replayable
from mews.harness.replay.server import ReplayServer
from tests.harness.conformance.judging import ca_of, served, url_of
from tests.harness.conformance.replayed import PASSWORD, ReplayedClient, our_service

pytestmark = pytest.mark.wall

PROFILE = Path(__file__).parents[3] / "fixtures" / "redfish" / "MewsGpuExpansionChassis.v1_0_0.json"


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEWS_REDFISH_PASSWORD", PASSWORD)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@contextmanager
def replayed(folder: Path) -> Iterator[str]:
    server = ReplayServer(load_replayable(folder))
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


def judged(url: str, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, tuple[str, str]]:
    exit_code(["conform", url, *options, "--json", "-"])
    report = json.loads(capsys.readouterr().out)
    return {clause["clause"]: (clause["verdict"], clause["reason"]) for clause in report["clauses"]}


REDFISH = ("--dialect", "redfish")


def test_a_recording_that_is_served_again_is_judged_as_the_box_was(tmp_path, capsys):
    folder = str(tmp_path / "recording")
    with served(password=PASSWORD) as server:
        url = url_of(server, "h3api")
        moved = ("--allow-changes", "--device", "000100")
        box = judged(url, capsys, *moved, "--record", folder)
    with replayed(tmp_path / "recording") as again:
        results = judged(again, capsys)
    moving = {clause.id for clause in clauses_of("h3api").clauses if clause.changes} | {"2.free"}  # needs a move here
    assert {name: each for name, each in results.items() if name not in moving} == {
        name: each for name, each in box.items() if name not in moving
    }


def test_a_recorded_redfish_service_keeps_its_clauses_when_it_is_served_again(tmp_path, capsys):
    client = ReplayedClient(our_service())
    record(tmp_path / "r", "redfish", client.log)
    exchanges = [
        {
            "clause": "",
            "request": {"method": each.method, "path": each.target, "headers": headers_of(each), "body": each.body},
            "reply": {"status": each.status, "headers": dict(each.headers), "body": each.text, "error": ""},
        }
        for each in our_service().replayable.replies
    ]
    lines = "".join(json.dumps(each) + "\n" for each in exchanges)
    (tmp_path / "r" / "exchanges.jsonl").write_text(lines)
    with replayed(tmp_path / "r") as url:
        results = judged(url, capsys, *REDFISH, "--profile", "newest")
    wrong = {name: why for name, why in results.items() if why[0] == "failed"}
    assert set(wrong) == {"4.basic"}, wrong  # recorded over TLS, served in clear


@pytest.mark.parametrize("dialect", ["fm", "cdim"])
def test_a_recorded_fabric_manager_passes_when_it_is_served_again(dialect, tmp_path, capsys):
    folder = str(tmp_path / "recording")
    with served(password=PASSWORD) as server:
        box = judged(url_of(server, dialect), capsys, "--dialect", dialect, "--ca", ca_of(server), "--record", folder)
    with replayed(tmp_path / "recording") as again:
        assert exit_code(["conform", again, "--dialect", dialect, "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "passed"
    results = {clause["clause"]: (clause["verdict"], clause["reason"]) for clause in report["clauses"]}
    assert results == box
    assert {clause.id for clause in clauses_of(dialect).clauses if not clause.changes} == {
        name for name, (verdict, _) in results.items() if verdict == "passed"
    }


def headers_of(reply: object) -> dict[str, str]:
    return {**reply.conditions, **({"X-Auth-Token": "***"} if reply.known else {})}


@pytest.fixture
def mockup(tmp_path: Path) -> Path:
    """Our own service as DSP2043 would have it."""
    for reply in our_service().replayable.replies:
        path = reply.target.partition("?")[0]
        if reply.method == "GET" and reply.status == 200 and reply.text.startswith("{") and not reply.conditions:
            folder = tmp_path / "mockup" / path.strip("/")
            folder.mkdir(parents=True, exist_ok=True)
            if path.startswith("/redfish/v1") and "?" not in reply.target:
                (folder / "index.json").write_text(reply.text)
    return tmp_path / "mockup"


@pytest.mark.parametrize("below", ["", "redfish/v1"], ids=["whole", "short form"])
def test_a_mockup_folder_is_served_and_judged_by_the_stack_and_by_a_dsp0272_profile(mockup, below, capsys):
    with replayed(mockup / below) as url:
        results = judged(url, capsys, *REDFISH)
        asked = judged(url, capsys, *REDFISH, "--profile", str(PROFILE))
    assert {name for name, (verdict, _) in results.items() if verdict == "failed"} <= {"4.sessions", "4.public"}
    assert results["4.zones"][0] == "passed"
    assert results["4.durable-name"][0] == "passed"
    of_profile = {name: why for name, why in asked.items() if name.startswith("profile.")}
    assert len(of_profile) > 150
    assert {name for name, (verdict, _) in of_profile.items() if verdict == "failed"} == set()


CONTRADICTED = "profile.LogEntry.OriginOfCondition"
"""DSP8010 has it in Links, and DMTF's validator refuses it anywhere else."""


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("OCPBaselineHardwareManagement.v1_1_0", set()),
        ("OCPBaselineHardwareManagement.v1_1_1", set()),
        ("OCPServiceBaseline.v1_0_0", set()),
        ("OCP_UBB_BaselineManagement.v1.0.0", {CONTRADICTED}),
    ],
)
def test_the_profiles_of_ocp_are_judged_as_by_dmtfs_validator(name, wrong, capsys):
    """tests/contract/test_redfish_validators.py has that one's verdicts."""
    profile = Path(os.environ.get("MEWS_DATA_DIR") or "/nowhere") / "ocp" / f"{name}.json"
    if not profile.exists():
        pytest.skip("MEWS_DATA_DIR/ocp is not there: OCP's profiles are needed")
    with served(password=PASSWORD) as server:
        found = judged(url_of(server, "redfish"), capsys, *REDFISH, "--insecure", "--profile", str(profile))
    of_profile = {clause: verdict for clause, (verdict, _) in found.items() if clause.startswith("profile.")}
    assert {clause for clause, verdict in of_profile.items() if verdict == "failed"} == wrong
    assert sum(verdict == "passed" for verdict in of_profile.values()) > 90


@pytest.mark.parametrize(
    ("pattern", "uri", "fits"),
    [
        (".*", "/redfish/v1/Chassis/a", True),
        ("/redfish/v1/Chassis/{ChassisId}", "/redfish/v1/Chassis/a.b/", True),
        ("/redfish/v1/Chassis/{ChassisId}", "/redfish/v1/Chassis/a/Power", False),
        ("/redfish/v1/Chassis/{ChassisId}/Power", "/redfish/v1/Chassis/a/Power", True),
        ("/redfish/v1/(Chassis|Systems)/[a-z]{2}", "/redfish/v1/Systems/ab", True),
        ("/redfish/v1/(Chassis|Systems)/[a-z]{2}", "/redfish/v1/Systems/abc", False),
    ],
)
def test_the_uris_of_a_profile_are_forms_or_regular_expressions(pattern, uri, fits):
    assert at_uri(uri, [pattern]) is fits


def test_a_profile_names_what_a_service_lacks(mockup, tmp_path, capsys):
    shutil.rmtree(mockup / "redfish" / "v1" / "CompositionService")
    profile = tmp_path / "p.json"
    profile.write_text(json.dumps(SMALL))
    with replayed(mockup) as url:
        results = judged(url, capsys, *REDFISH, "--profile", str(profile))
    wrong = {name for name, (verdict, _) in results.items() if name.startswith("profile.") and verdict == "failed"}
    assert wrong == {"profile.CompositionService", "profile.Zone.ZoneType", "profile.Zone.#Explode"}
    assert results["profile.Zone.Nothing"][0] == "warning"
    assert results["profile.Zone.Id"][0] == "passed"
    assert results["profile.Endpoint.Identifiers.DurableName"][0] == "passed"
    assert results["profile.CompositionService.Id"] == ("skipped", "profile.CompositionService does not hold")


SMALL = {
    "SchemaDefinition": "RedfishInteroperabilityProfile.v1_8_0",
    "ProfileName": "Small",
    "ProfileVersion": "1.0.0",
    "Resources": {
        "CompositionService": {"PropertyRequirements": {"Id": {}}},
        "Zone": {
            "PropertyRequirements": {
                "Id": {},
                "Nothing": {"ReadRequirement": "Recommended"},
                "ZoneType": {"Comparison": "Equal", "Values": ["ZoneOfZones"]},
                "Status": {
                    "ReadRequirement": "Conditional",
                    "ConditionalRequirements": [
                        {"CompareProperty": "ZoneType", "CompareType": "Equal", "CompareValues": ["ZoneOfEndpoints"]}
                    ],
                },
            },
            "ActionRequirements": {"AddEndpoint": {}, "Explode": {"Purpose": "none has it"}},
        },
        "Endpoint": {
            "PropertyRequirements": {
                "Identifiers": {"ReadRequirement": "Supported", "PropertyRequirements": {"DurableName": {}}}
            }
        },
    },
}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"Resource": {}}, "Resource: unknown; allowed: SchemaDefinition,"),
        ({"SchemaDefinition": "Other"}, "SchemaDefinition: 'Other': must be RedfishInteroperabilityProfile.…"),
        ({"Resources": {"Zone": {"MinVersion": 1}}}, "Resources.Zone.MinVersion: 1: must be a version, such as 1.2.0"),
        ({"Resources": {"Zone": {"PropertyRequirements": {"Id": 1}}}}, "PropertyRequirements.Id: 1: must be an object"),
        (
            {"Resources": {"Zone": {"PropertyRequirements": {"Id": {"ReadRequirement": "must"}}}}},
            'Id.ReadRequirement: "must": must be one of Mandatory,',
        ),
        (
            {"Resources": {"Zone": {"ConditionalRequirements": [{"CompareProperty": "Id"}]}}},
            "not judged by mews: CompareProperty of a whole resource; give it to its properties",
        ),
        ({"RequiredProfiles": {"Base": {}}}, "RequiredProfiles.Base: must be next to it, as Base.vX_Y_Z.json"),
    ],
)
def test_a_profile_of_another_form_is_refused_in_one_line(change, says, tmp_path, capsys):
    file = tmp_path / "p.json"
    file.write_text(json.dumps({**SMALL, **change}))
    assert exit_code(["conform", "http://127.0.0.1:9", *REDFISH, "--profile", str(file)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{file}: ")
    assert says in line


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "no recording.json of mews conform --record, and no index.json of a DSP2043 mockup"),
        ({"index.json": "{}"}, "must be the service root of a mockup: it has no RedfishVersion"),
        ({"index.json": "{"}, "not JSON"),
        ({"recording.json": '{"version": 1, "dialect": "h3api"}'}, "is a recording of version 1, must be 2"),
        ({"recording.json": "[]"}, "is no recording of mews conform --record"),
        ({"recording.json": '{"version": 2, "dialect": "h3api"}', "exchanges.jsonl": "{}"}, "is no recording"),
    ],
)
def test_a_folder_that_cannot_be_served_is_refused_in_one_line(files, says, tmp_path):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(BadInputError) as error:
        load_replayable(tmp_path)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.fixture(scope="module")
def sushy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = shutil.which("sushy-emulator")
    if program is None:
        pytest.skip("sushy-tools is not installed: pip install sushy-tools")
    folder = tmp_path_factory.mktemp("sushy")
    (folder / "conf.py").write_text(f"SUSHY_EMULATOR_STATE_DIR = {str(folder)!r}\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (folder / "log").open("wb") as log:
        command = [program, "--config", str(folder / "conf.py"), "--fake", "-i", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        deadline = time.monotonic() + 60
        while not answers(port):
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, "sushy-emulator does not listen"
            threading.Event().wait(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def answers(port: int) -> bool:
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    return False


def test_sushy_tools_emulator_is_judged_to_the_end(sushy, capsys):
    """It has no fabric, and one path is answered with HTTP 500: all that needs neither is judged."""
    results = judged(sushy, capsys, *REDFISH)
    verdict, why = results["4.resource-Fabric"]
    assert verdict == "skipped"  # one may lie behind what cannot be read: that is the finding
    assert "no Fabric can be reached" in why
    assert results["4.server-errors"][0] == "failed"
    assert results["4.types"][0] == "passed"
    reasons = (
        "needs --allow-changes",
        "does not hold",
        "no fabric",
        "there is no",
        "HTTP 500",
        "no answer to read",
        "no slot is empty",
    )
    reasons = (*reasons, "the service has no $top")
    blind = {name: why for name, (verdict, why) in results.items() if verdict == "skipped" and not said(why, reasons)}
    assert blind == {}
    assert sum(verdict == "skipped" for verdict, why in results.values() if why != "needs --allow-changes") < 40


def said(why: str, reasons: tuple[str, ...]) -> bool:
    return any(reason in why for reason in reasons)
