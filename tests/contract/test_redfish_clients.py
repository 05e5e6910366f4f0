"""Unmodified Redfish clients from PyPI log in, walk, attach and detach a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.inventory_file import load_hardware
from mews.emulator.serve import ChassisServer
from mews.emulator.tls import made
from tests.contract.redfish import ENDPOINTS, ROOT, ZONES, port_of
from tests.contract.wire import FIXTURES, with_profile

pytestmark = pytest.mark.wall

PASSWORD = "Cl1ent-password"


@contextmanager
def chassis(
    folder: Path, profile: Any = None, hardware: str = "demo", *, ssdp: bool = False, model: str = ""
) -> Iterator[tuple[ChassisServer, str, str]]:
    """A chassis that speaks TLS: the server, its URL, its certificate. ``model``: what its second device is instead."""
    identity = made(folder)
    loaded = with_profile(load_hardware(FIXTURES / f"{hardware}.yaml"), profile)
    if model:
        first, second, *others = loaded.chassis[0].devices
        divisible = replace(loaded.chassis[0], devices=(first, replace(second, model=model), *others))
        loaded = replace(loaded, chassis=(divisible, *loaded.chassis[1:]))
    server = ChassisServer(loaded, password=PASSWORD, tls=identity, ssdp=ssdp)
    server.start()
    try:
        yield server, server.ready()["chassis"]["A"]["redfish"], str(identity.certificate)
    finally:
        server.stop()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[ChassisServer, str, str]]:
    with chassis(tmp_path) as found:
        yield found


@pytest.fixture(autouse=True)
def our_certificate_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bundle of the environment's would be preferred to the one given."""
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


def link(device: str) -> dict[str, dict[str, str]]:
    return {"Endpoint": {"@odata.id": f"{ENDPOINTS}/{device}"}}


def test_redfish_of_dmtf_moves_a_gpu(served):
    redfish = pytest.importorskip("redfish", reason="redfish is not installed")
    server, url, certificate = served
    client = redfish.redfish_client(base_url=url, username="admin", password=PASSWORD, cafile=certificate)
    client.login(auth="session")
    try:
        zone = client.get(f"{ROOT}/Fabrics").dict["Members"][0]["@odata.id"] + "/Zones/1"
        add, remove = (
            client.get(zone).dict["Actions"][f"#Zone.{each}Endpoint"]["target"] for each in ("Add", "Remove")
        )
        assert client.post(remove, body=link("000100")).status == 204
        assert port_of(server, "000100") is None
        assert client.post(add, body=link("000100")).status == 204
        assert port_of(server, "000100") == "1"
    finally:
        client.logout()


def test_redfish_of_dmtf_follows_a_task(tmp_path):
    redfish = pytest.importorskip("redfish", reason="redfish is not installed")
    hardware = load_hardware(FIXTURES / "testbed.yaml")
    server = ChassisServer(hardware, password=PASSWORD, tls=made(tmp_path), context=EmulationContext(speed=20))
    server.start()
    try:
        url = server.ready()["chassis"]["A"]["redfish"]
        login = {"username": "admin", "password": PASSWORD, "cafile": str(tmp_path / "chassis.crt")}
        client = redfish.redfish_client(base_url=url, **login)
        client.login(auth="basic")
        said = client.post(f"{ZONES}/48/Actions/Zone.RemoveEndpoint", body=link("000500"))
        assert said.is_processing
        while said.is_processing:
            said = said.monitor(client)
        assert said.status == 204
        assert port_of(server, "000500") is None
    finally:
        server.stop()


def redfishtool(url: str, *arguments: str) -> str:
    """What the tool prints."""
    script = Path(sys.executable).parent / "redfishtool"
    if not script.exists():
        pytest.skip("redfishtool is not installed")
    login = ("-r", url.removeprefix("https://"), "-u", "admin", "-p", PASSWORD, "-S", "Always")
    command = [sys.executable, "-W", "ignore", str(script), *login, *arguments]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_redfishtool_moves_a_gpu(served):
    server, url, _ = served
    assert json.loads(redfishtool(url, "root"))["RedfishVersion"]
    assert json.loads(redfishtool(url, "Chassis", "-I", "A"))["Id"] == "A"
    for name, port in (("Remove", None), ("Add", "1")):
        target = f"{ZONES}/1/Actions/Zone.{name}Endpoint"
        redfishtool(url, "raw", "POST", target, "-d", json.dumps(link("000100")))
        assert port_of(server, "000100") == port


def test_sushy_moves_a_gpu(served):
    sushy = pytest.importorskip("sushy", reason="sushy is not installed")
    server, url, certificate = served
    auth = sushy.auth.SessionOrBasicAuth(username="admin", password=PASSWORD)
    root = sushy.Sushy(url, auth=auth, verify=certificate)
    try:
        move_by_sushy(sushy, root, server)
    finally:
        auth.close()


def move_by_sushy(sushy, root, server):
    systems = root.get_system_collection()
    host = next(each for each in systems.get_members() if each.identity == "host-1")
    assert [each.identity for each in root.get_chassis_collection().get_members()] == ["A", "A-Baseboard"]
    assert root.get_manager(f"{ROOT}/Managers/BMC").firmware_version
    assert [each.identity[:3] for each in host.processors.get_members()] == ["CPU"] * 2 + ["000"] * 4
    fabric = root.get_fabric_collection().get_members()[0]
    endpoint = next(each for each in fabric.endpoints.get_members() if each.identity == "000100")
    body = {"Endpoint": {"@odata.id": endpoint.path}}
    root._conn.post(f"{ZONES}/1/Actions/Zone.RemoveEndpoint", data=body)
    assert port_of(server, "000100") is None
    root._conn.post(f"{ZONES}/1/Actions/Zone.AddEndpoint", data=body)
    assert port_of(server, "000100") == "1"
    with pytest.raises(sushy.exceptions.HTTPError) as refused:
        root._conn.post(f"{ZONES}/1/Actions/Zone.AddEndpoint", data=body)
    assert refused.value.status_code == 409
