"""Clients that are none of ours: curl, and what the published Go clients expect of a reply."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.contract.wire import OverHttp, backend

pytestmark = [
    pytest.mark.wall,
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]


@pytest.fixture
def url() -> Iterator[tuple[str, OverHttp]]:
    with backend("http", "testbed", {}) as box:
        assert isinstance(box, OverHttp)
        yield f"http://{box.address}", box


def curl(*arguments: str) -> tuple[int, str, str]:
    """curl's exit code, the body, and the status."""
    ended = subprocess.run(
        ["curl", "-sS", "--max-time", "10", "-w", "\n%{http_code}", *arguments], capture_output=True, check=False
    )
    body, _, status = ended.stdout.decode().rpartition("\n")
    return ended.returncode, body, status


def test_curl_moves_a_gpu_the_way_the_testbed_did(url):
    address, _ = url
    header = ("-H", "Content-Type: text/plain")
    detach = ("-X", "DELETE", *header, "-d", '{"gep":"0","dev_gid":"001300"}', f"{address}/h3api/v1/allocation")
    assert curl(*detach) == (0, '{"action":"unassign","result":[true],"remark":"done"}', "200")
    attach = ("-X", "POST", *header, "-d", '{"gep":"0","port_gid":"00h","dev_gid":"001300"}')
    code, body, status = curl(*attach, f"{address}/h3api/v1/allocation")
    assert (code, status, set(json.loads(body))) == (0, "200", {"action", "result", "remark"})
    records = json.loads(curl(f"{address}/h3api/v1/resources")[1])
    moved = next(record for record in records if record.get("Dev_GID") == "001300")
    assert moved["Host_Port#"] == "0"
    assert {"Port#": "48", "Port_GID": "30h"} in records


def test_curl_sees_an_empty_reply_where_the_connection_is_dropped(url):
    address, box = url
    with box.rack.box("A") as chassis:
        chassis.faults.add({"kind": "dropped-connection", "operation": "read"}, box.rack.clock.now())
    assert curl(f"{address}/resources")[0] == 52


def test_curl_may_send_a_chunked_body_and_a_large_one(url, tmp_path):
    address, _ = url
    chunked = ("-H", "Transfer-Encoding: chunked", "-d", '{"devid":"nope"}')
    assert curl("-X", "POST", *chunked, f"{address}/allocation") == (0, "Device not found", "404")
    large = tmp_path / "large"
    large.write_bytes(b"x" * 10_000_000)
    upload = ("-X", "POST", "--data-binary", f"@{large}", f"{address}/allocation")
    assert curl(*upload) == (0, "Invalid request payload", "400")


def test_verbs_that_nobody_knows_get_the_contracts_answer(url):
    address, _ = url
    assert curl("-X", "BREW", f"{address}/resources") == (0, "Method Not Allowed", "405")


def go_strings(body: bytes) -> list[dict[str, str]]:
    """What ``json.Unmarshal`` into ``[]map[string]string`` takes: null, or a list of objects of strings."""
    value = json.loads(body)
    if value is None:
        return []
    assert isinstance(value, list)
    assert all(isinstance(item, str) for record in value for pair in record.items() for item in pair)
    return value


def test_a_go_client_decodes_every_listing_and_fails_on_400_and_above(url):
    address, _ = url
    for path in ("/resources", "/h3api/v1/resources"):
        assert go_strings(curl(f"{address}{path}")[1].encode())
    body = '{"devid":"000500"}'
    assert int(curl("-X", "DELETE", "-d", body, f"{address}/allocation")[2]) < 400
    body = '{"devid":"000500","hostport":"48"}'
    assert int(curl("-X", "POST", "-d", body, f"{address}/allocation")[2]) < 400
    assert int(curl("-X", "POST", "-d", body, f"{address}/allocation")[2]) >= 400
