"""DMTF's own judges: the service validator against the published schemas, the protocol validator on a fresh server."""

from __future__ import annotations

import csv
import importlib.util
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.contract.redfish import ENDPOINTS, ROOT, ZONES
from tests.contract.test_redfish_clients import PASSWORD, chassis

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


def judge(module: str, script: str, *arguments: str, certificate: str, folder: Path) -> str:
    """What a validator prints; skips where it is not installed."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed: the extra 'validators' has it")
    command = [str(Path(sys.executable).parent / script), *arguments, "-u", "admin", "-p", PASSWORD]
    environment = {**os.environ, "REQUESTS_CA_BUNDLE": certificate, "CURL_CA_BUNDLE": certificate}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=folder, env=environment)
    return ended.stdout + ended.stderr


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
    with chassis(tmp_path, {"attach": 600, "detach": 1}, "testbed") as (server, url, certificate):
        make_something_happen(url, certificate)
        with server.rack.box("A") as box:
            box.remove("001800", server.rack.clock.now())
        schema = ("--schema_directory", str(schemas), "--skipschema")
        said = judge(
            "redfish_service_validator", "rf_service_validator", "-r", url, "--authtype", "Session", *schema,
            "--logdir", str(tmp_path / "logs"), certificate=certificate, folder=tmp_path,
        )  # fmt: skip
    rows = re.findall(r"\|\s+(\d+)\s+\|\s+(\d+)\s+\|\s+(\d+)\s+\|\s+(\d+)\s+\|", said)
    assert rows, said[-2000:]
    passed, warned, failed, _ = map(int, rows[-1])
    wrong = [line for file in (tmp_path / "logs").rglob("*.log") for line in file.read_text().splitlines()]
    wrong = [line for line in wrong if re.search(r" (FAIL|WARN) - ", line)]
    assert (failed, warned) == (0, 0), wrong[:20]
    assert passed > 1000


def test_the_protocol_holds_on_a_fresh_server_and_tags_are_really_tested(tmp_path):
    with chassis(tmp_path) as (_, url, certificate):
        said = judge(
            "redfish_protocol_validator", "rf_protocol_validator", "-r", url, "--ca-bundle", certificate,
            "--report-dir", str(tmp_path / "reports"), "--report-type", "tsv", certificate=certificate, folder=tmp_path,
        )  # fmt: skip
    (report,) = (tmp_path / "reports").glob("*.tsv")
    with report.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    results = Counter(row["Result"] for row in rows)
    wrong = [row for row in rows if row["Result"] in ("FAIL", "WARN")]
    assert not wrong, (wrong, said[-2000:])
    assert results["PASS"] > 300
    for name in ETAGS:
        assert {row["Result"] for row in rows if row["Assertion"] == name} == {"PASS"}, name
