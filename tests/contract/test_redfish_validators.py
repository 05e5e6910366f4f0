"""DMTF's own judges: the service validator against the published schemas, the protocol validator on a fresh server, the
interop validator with the profile that Mews ships, the use-case checkers on a chassis with one host.

The checkers spend a minute and more asleep, so they run beside the others.
"""

from __future__ import annotations

import csv
import html
import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from mews.emulator.inventory_file import load_hardware
from mews.emulator.serve import ChassisServer
from mews.emulator.ssdp import SsdpResponder
from mews.emulator.telemetry.chassis import BoardReport
from mews.emulator.telemetry.parts import BoardPart
from tests.contract.redfish import ENDPOINTS, ROOT, ZONES
from tests.contract.test_redfish_clients import PASSWORD, chassis
from tests.contract.wire import FIXTURES

pytestmark = pytest.mark.wall

ETAGS = (
    "PROTO_ETAG_HEADER_AND_PROPERTY",
    "PROTO_ETAG_STABLE_WITHOUT_MODIFICATION",
    "PROTO_ETAG_CONDITIONAL_GET",
    "PROTO_ETAG_IF_MATCH_ENFORCED",
    "PROTO_ETAG_412_WRITE_NOT_APPLIED",
    "PROTO_ETAG_LOST_UPDATE",
    "PROTO_ETAG_ROTATES_ON_WRITE",
)


PROFILE = Path(__file__).parents[2] / "fixtures" / "redfish" / "MewsGpuExpansionChassis.v1_0_0.json"
PART = "MIG-3e301aae-e5a4-5c35-a34f-202dea22d191"
DEPRECATED = r"/HttpPushUri(Options)? .*Deprecated Property Warning"
"""OCP's profile for baseboards demands what DSP8010 would rather have by ``MultipartHttpPushUri``."""
UNPUBLISHED = r"/Oem/Nvidia .*Unable to locate the schema definition for the 'NvidiaProcessor"
"""DMTF does not publish what NVIDIA adds; the service does as NVIDIA's own baseboards do."""
NOT_TESTED = {
    "already enabled by the service": "an account is enabled from the start",
    "does not require a password change": "an account that an administrator makes has a password that may stay",
    "does not support boot override to 'Uefi": "the hosts have no UEFI variables",
    "does not have a VLAN": "the management processor has the machine's own network",
    "'IPv6": "the management processor has the machine's own network, and shows it by IPv4",
}
"""What the use-case checkers say of what they cannot test -> why a GPU chassis of ours does not have it."""


def judge(module: str, script: str, *arguments: str, certificate: str, folder: Path) -> str:
    """What a validator prints; skips where it is not installed."""
    said, _ = begun(module, script, *arguments, certificate=certificate, folder=folder).communicate(timeout=280)
    return said


def begun(module: str, script: str, *arguments: str, certificate: str, folder: Path) -> subprocess.Popen[str]:
    """The same, under way."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed: the extra 'test' has it")
    program = script if script == sys.executable else str(Path(sys.executable).parent / script)
    command = [program, *arguments, "-u", "admin", "-p", PASSWORD]
    environment = {**os.environ, "REQUESTS_CA_BUNDLE": certificate, "CURL_CA_BUNDLE": certificate}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder, env=environment
    )


def counts(said: str) -> tuple[int, int, int, int]:
    """Passed, warnings, failed, not tested."""
    rows = re.findall(r"\|\s+(\d+)\s+\|\s+(\d+)\s+\|\s+(\d+)\s+\|\s+(\d+)\s+\|", said)
    assert rows, said[-2000:]
    passed, warned, failed, untested = map(int, rows[-1])
    return passed, warned, failed, untested


@pytest.fixture(scope="module", autouse=True)
def use_cases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """The use-case checkers, under way, and where they report."""
    folder = tmp_path_factory.mktemp("use-cases")
    loaded = load_hardware(FIXTURES / "demo.yaml")
    [spec] = loaded.chassis
    alone = replace(spec, ports={"1": "host-1"}, devices=tuple(each for each in spec.devices if each.port == "1"))
    server = ChassisServer(replace(loaded, chassis=(alone,)), password=PASSWORD)
    server.start()
    ready = server.ready()
    asked = ("-r", ready["chassis"]["A"]["redfish"], "--report-dir", str(folder))
    running = begun("redfish_use_case_checkers", "rf_use_case_checkers", *asked, certificate=ready["ca"], folder=folder)
    try:
        yield running, folder
    finally:
        running.kill()
        running.communicate()
        server.stop()


@pytest.fixture
def schemas() -> Path:
    """The folder of published schemas: one that is named must hold them."""
    named = os.environ.get("MEWS_REDFISH_SCHEMAS")
    if named:
        assert (Path(named) / "Zone_v1.xml").exists(), f"MEWS_REDFISH_SCHEMAS={named}: holds no Zone_v1.xml"
        return Path(named).resolve()
    data = os.environ.get("MEWS_DATA_DIR")
    found = Path(data or "/nowhere") / "redfish-csdl"
    if not (found / "Zone_v1.xml").exists():
        pytest.skip("MEWS_DATA_DIR/redfish-csdl is not there: DMTF's schemas are needed")
    return found


def make_something_happen(url: str, certificate: str) -> None:
    """A move, a composition, a subscription, an account: so that there are resources of every kind."""
    redfish = pytest.importorskip("redfish", reason="redfish is not installed")
    client = redfish.redfish_client(base_url=url, username="admin", password=PASSWORD, cafile=certificate)
    client.login(auth="session")
    link = {"Endpoint": {"@odata.id": f"{ENDPOINTS}/000500"}}
    assert client.post(f"{ZONES}/48/Actions/Zone.RemoveEndpoint", body=link).status == 202
    while client.get(f"{ENDPOINTS}/000500").dict["Links"]["Zones"]:
        pass
    blocks = [{"@odata.id": f"{ROOT}/CompositionService/ResourceBlocks/host-2"}]
    assert client.post(f"{ROOT}/Systems", body={"Name": "made", "Links": {"ResourceBlocks": blocks}}).status == 201
    target = {"Destination": "https://127.0.0.1:1/", "Protocol": "Redfish", "Context": "c", "ResourceTypes": ["Zone"]}
    assert client.post(f"{ROOT}/EventService/Subscriptions", body=target).status == 201
    account = {"UserName": "second", "Password": PASSWORD, "RoleId": "Operator"}
    assert client.post(f"{ROOT}/AccountService/Accounts", body=account).status == 201
    assert client.post(f"{ZONES}/48/Actions/Zone.AddEndpoint", body=link).status == 202
    client.logout()


def test_every_resource_follows_its_published_schema(tmp_path, schemas):
    with chassis(tmp_path, {"attach": 600, "detach": 1}, "testbed", model="H100") as (server, url, certificate):
        make_something_happen(url, certificate)
        with server.rack.box("A") as box:
            box.edits.remove("001800", server.rack.clock.now())
            divided = BoardReport(mig=(BoardPart(PART, "3g.40gb", 1, 0, 40448, 60),))
            box.telemetry.report("host-1", {box.spec.devices[1].uuid: divided}, server.rack.clock.now())
        schema = ("--schema_directory", str(schemas), "--skipschema")
        said = judge(
            "redfish_service_validator", "rf_service_validator", "-r", url, "--authtype", "Session", *schema,
            "--logdir", str(tmp_path / "logs"), certificate=certificate, folder=tmp_path,
        )  # fmt: skip
    passed, _, failed, _ = counts(said)
    wrong = [line for file in (tmp_path / "logs").rglob("*.log") for line in file.read_text().splitlines()]
    wrong = [line for line in wrong if re.search(r" (FAIL|WARN) - ", line)]
    wrong = [line for line in wrong if not re.search(f"{DEPRECATED}|{UNPUBLISHED}", line)]
    assert (failed, wrong) == (0, [])
    assert passed > 1000
    read = "".join(file.read_text() for file in (tmp_path / "logs").rglob("*.log"))
    assert re.search(r"/Processors/\w+/SubProcessors/GI1-CI0\b", read)


UNTESTED = {
    "PROTO_REDIRECT_ENFORCES_TARGET_PRIVS": "nothing is redirected",
    "REQ_DATA_MOD_ERRORS": "none of the validator's writes fails",
    "RESP_STATUS_INTERNAL_SERVER_ERROR": "nothing fails inside the service",
    "SERV_SSE_EVENT_DEST_DELETED_ON_CLOSE": "the validator has deleted that destination in the test before",
    "SERV_SSE_JSON_METRIC_REPORT_FORMAT": "the stream bears events, no reports",
}


@contextmanager
def restless(server: ChassisServer) -> Iterator[None]:
    """Links go down and come up all the time, so that streams have something to tell."""
    ended = threading.Event()

    def flap() -> None:
        is_up = True
        while not ended.wait(0.2):
            is_up = not is_up
            with server.rack.box("A") as box:
                box.edits.set_link("000100", is_up)

    thread = threading.Thread(target=flap)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def has_multicast() -> bool:
    """Whether this machine lets anybody be found."""
    try:
        SsdpResponder(()).stop()
    except OSError:
        return False
    return True


def protocol_report(folder: Path) -> list[dict[str, str]]:
    """What the protocol validator finds, with its tests of the event stream and of discovery."""
    with chassis(folder, ssdp=has_multicast()) as (server, url, certificate), restless(server):
        said = judge(
            "redfish_protocol_validator", sys.executable, "-m", "tests.contract.protocol_validator", "-r", url,
            "--ca-bundle", certificate, "--report-dir", str(folder / "reports"), "--report-type", "tsv",
            certificate=certificate, folder=Path(__file__).parents[2],
        )  # fmt: skip
    reports = list((folder / "reports").glob("*.tsv"))
    assert len(reports) == 1, said[-3000:]
    with reports[0].open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_the_protocol_holds_on_a_fresh_server_and_tags_are_really_tested(tmp_path):
    rows = protocol_report(tmp_path)
    results = Counter(row["Result"] for row in rows)
    assert [row for row in rows if row["Result"] in ("FAIL", "WARN")] == []
    assert results["PASS"] > 400
    untested = {row["Assertion"] for row in rows if row["Result"] == "NOT_TESTED"}
    assert {name for name in untested if has_multicast() or not name.startswith("SERV_SSDP")} <= UNTESTED.keys()
    for name in ETAGS:
        assert {row["Result"] for row in rows if row["Assertion"] == name} == {"PASS"}, name


def test_the_service_keeps_the_profile_for_gpu_chassis_that_is_shipped(tmp_path):
    with chassis(tmp_path, {"attach": 600, "detach": 1}, "testbed") as (_, url, certificate):
        make_something_happen(url, certificate)
        said = judge(
            "redfish_interop_validator", "rf_interop_validator", "-r", url, "--authtype", "Session",
            "--logdir", str(tmp_path / "logs"), str(PROFILE), certificate=certificate, folder=tmp_path,
        )  # fmt: skip
    passed, warned, failed, _ = counts(said)
    assert (failed, warned) == (0, 0), said[-4000:]
    assert passed > 500


OCP = (
    "OCPBaselineHardwareManagement.v1_1_0",
    "OCPBaselineHardwareManagement.v1_1_1",
    "OCPServiceBaseline.v1_0_0",
    "OCP_UBB_BaselineManagement.v1.0.0",
)
CONTRADICTS = r"FAIL - /OriginOfCondition "
"""UBB's profile demands it in a LogEntry itself; DSP8010 has it in Links, and its own validator refuses it anywhere
else."""


@pytest.mark.parametrize("is_used", [False, True], ids=["fresh", "used"])
@pytest.mark.parametrize("name", OCP)
def test_the_profiles_of_ocp_are_kept(name, is_used, tmp_path):
    profile = Path(os.environ.get("MEWS_DATA_DIR") or "/nowhere") / "ocp" / f"{name}.json"
    if not profile.exists():
        pytest.skip("MEWS_DATA_DIR/ocp is not there: OCP's profiles are needed")
    with chassis(tmp_path, {"attach": 600, "detach": 1}, "testbed") as (_, url, certificate):
        if is_used:
            make_something_happen(url, certificate)
        said = judge(
            "redfish_interop_validator", "rf_interop_validator", "-r", url, "--authtype", "Session",
            "--logdir", str(tmp_path / "logs"), str(profile), certificate=certificate, folder=tmp_path,
        )  # fmt: skip
    passed, _, failed, _ = counts(said)
    [log] = (tmp_path / "logs").rglob("*.log")
    wrong = [line for line in log.read_text().splitlines() if " FAIL - " in line]
    assert [line for line in wrong if not re.search(CONTRADICTS, line)] == []
    assert failed == len(wrong)
    assert passed > 100


def test_a_profile_that_asks_for_what_is_not_there_is_not_kept(tmp_path):
    document = json.loads(PROFILE.read_text())
    document["Resources"]["Chassis"]["PropertyRequirements"]["Depth"] = {"ReadRequirement": "Mandatory"}
    (tmp_path / "more.json").write_text(json.dumps(document))
    with chassis(tmp_path) as (_, url, certificate):
        said = judge(
            "redfish_interop_validator", "rf_interop_validator", "-r", url, "--authtype", "Session",
            "--payload", "Single", f"{ROOT}/Chassis/A", "--logdir", str(tmp_path / "logs"), str(tmp_path / "more.json"),
            certificate=certificate, folder=tmp_path,
        )  # fmt: skip
    assert counts(said)[2] >= 1
    [log] = (tmp_path / "logs").rglob("*.log")
    assert "FAIL - /Depth" in log.read_text()


def test_users_can_do_what_the_use_case_checkers_do(use_cases):
    running, folder = use_cases
    said, _ = running.communicate(timeout=280)
    passed, warned, failed, untested = counts(said)
    assert (failed, warned) == (0, 0), said[-4000:]
    assert passed > 40
    assert untested < 10
    [report] = folder.rglob("*.html")
    texts = [html.unescape(re.sub(r"<[^>]+>", " ", row)) for row in re.split(r"</tr>", report.read_text())]
    skipped = [text for text in texts if re.search(r"\bSKIP\b", text)]
    assert len(skipped) >= untested
    assert [text for text in skipped if not any(reason in text for reason in NOT_TESTED)] == []
