"""What the ChassisApi adapters make of replies that no good chassis sends."""

from __future__ import annotations

import asyncio

import pytest

from mews.kube.chassis.h3api import H3ApiClient
from mews.kube.chassis.port import ChassisError, DeviceRecord, Listing, ReplyOutcome, WireRequest, WireResponse
from mews.kube.chassis.resource_pool import ResourcePoolClient


class Canned:
    """Always answers the same, and remembers what it was asked."""

    def __init__(self, body: bytes, status: int = 200) -> None:
        self.asked: list[WireRequest] = []
        self._response = WireResponse(status, body)

    async def send(self, request: WireRequest) -> WireResponse:
        self.asked.append(request)
        return self._response


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (b'{"action":"unassign","result":[true],"remark":"done"}', ReplyOutcome.DONE),
        (b'{"action":"unassign","result":[false],"remark":"no"}', ReplyOutcome.FAILED),
        (b'{"result":[]}', ReplyOutcome.UNKNOWN),
        (b'{"result":"true"}', ReplyOutcome.UNKNOWN),
        (b"[]", ReplyOutcome.UNKNOWN),
        (b"<html>", ReplyOutcome.UNKNOWN),
        (b"", ReplyOutcome.UNKNOWN),
    ],
)
def test_the_result_alone_decides_in_h3api(body: bytes, outcome: ReplyOutcome):
    for status in (200, 400, 500):
        assert asyncio.run(H3ApiClient(Canned(body, status)).detach("x")).outcome is outcome


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(204, ReplyOutcome.DONE), (400, ReplyOutcome.FAILED), (404, ReplyOutcome.FAILED), (500, ReplyOutcome.UNKNOWN)],
)
def test_the_status_alone_decides_in_resource_pool(status: int, outcome: ReplyOutcome):
    assert asyncio.run(ResourcePoolClient(Canned(b"text", status)).detach("x")).outcome is outcome


def test_h3api_sends_what_the_real_clients_send():
    transport = Canned(b"{}")
    api = H3ApiClient(transport)
    asyncio.run(api.attach("001300", "48"))
    asyncio.run(api.attach("001300", "0"))
    asyncio.run(api.detach("001300"))
    assert [(asked.method, asked.path, asked.body) for asked in transport.asked] == [
        ("POST", "/h3api/v1/allocation", b'{"gep":"0","port_gid":"30h","dev_gid":"001300"}'),
        ("POST", "/h3api/v1/allocation", b'{"gep":"0","port_gid":"00h","dev_gid":"001300"}'),
        ("DELETE", "/h3api/v1/allocation", b'{"gep":"0","dev_gid":"001300"}'),
    ]
    assert {asked.headers["Content-Type"] for asked in transport.asked} == {"text/plain"}


def test_a_port_that_is_no_number_fails_without_asking():
    transport = Canned(b"{}")
    assert asyncio.run(H3ApiClient(transport).attach("x", "north")).outcome is ReplyOutcome.FAILED
    assert transport.asked == []


def test_h3api_joins_devices_and_ports_of_a_mixed_list():
    body = (
        b'[{"dev_type":"GPU","Dev_GID":"001300","Host_Port#":"48","OB_GPU_GUID":"GPU-1"},'
        b'{"Port#":"48","Port_GID":"30h"},'
        b'{"dev_type":"GPU","Dev_GID":"001800","Host_Port#":"","OB_GPU_GUID":""}]'
    )
    assert asyncio.run(H3ApiClient(Canned(body)).resources()) == Listing(
        (DeviceRecord("001300", "GPU-1", "48"), DeviceRecord("001800", "", None)), ("48",)
    )


@pytest.mark.parametrize("body", [b"", b"{}", b"<html>", b"[7]", b"[" * 100_000, b'"x"'])
@pytest.mark.parametrize("api", [H3ApiClient, ResourcePoolClient])
def test_what_is_no_list_is_no_listing(api, body: bytes):
    with pytest.raises(ChassisError):
        asyncio.run(api(Canned(body)).resources())


def test_null_is_an_empty_pool():
    assert asyncio.run(ResourcePoolClient(Canned(b"null")).resources()) == Listing(())


@pytest.mark.parametrize("api", [H3ApiClient, ResourcePoolClient])
def test_an_error_status_is_no_listing(api):
    with pytest.raises(ChassisError, match="HTTP 500"):
        asyncio.run(api(Canned(b"[]", 500)).resources())
