"""The same requests to a real control plane and to the embedded server: the answers must be the same ones.

What differs, and why, is in ``KNOWN``; a case in it that no longer differs fails, so that the table stays true.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.differential_requests import REQUESTS, Sent
from tests.contract.kube_backends import ControlPlane, control_plane_binaries

pytestmark = pytest.mark.wall

Answer = dict[str, Any]
TOKEN = "suite-token"

KNOWN: dict[str, str] = {
    "pod spec is fixed": "upstream appends a diff of its internal structs",
    "create crd": "established at once, not within 0.1 s, so that virtual time need not pass",
    "delete crd": "its objects are gone at once, so nothing remains to be waited for",
}

_VOLATILE = {
    "uid": "<uid>",
    "resourceVersion": "<version>",
    "creationTimestamp": "<time>",
    "deletionTimestamp": "<time>",
    "lastTransitionTime": "<time>",
    "time": "<time>",
    "continue": "<token>",
    "serverAddress": "<address>",
}
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@pytest.fixture(scope="module")
def answers() -> Iterator[dict[str, tuple[Answer, Answer]]]:
    binaries = control_plane_binaries()
    if binaries is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
    plane = ControlPlane(binaries)
    try:
        plane.start()
        real = asyncio.run(ask(plane.base_url))
    finally:
        plane.stop()
    ours = asyncio.run(ask_ours())
    yield {name: (real[name], ours[name]) for name in real}


async def ask_ours() -> dict[str, Answer]:
    from mews.harness.clusters.embedded.server import ApiServer
    from mews.harness.clusters.embedded.store import Store
    from mews.kube.clock import Clock

    server = ApiServer(Store(Clock.wall().now, random.Random(1)), tokens={TOKEN: "admin"})
    await server.start()
    try:
        return await ask(server.url)
    finally:
        await server.stop()


async def ask(base_url: str) -> dict[str, Answer]:
    """All requests in order, to one server."""
    import aiohttp

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    found = {}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        for sent in REQUESTS:
            if sent.name == "created crd":
                await asyncio.sleep(1.5)  # establishing takes the real server a moment
            if sent.name.startswith("watch"):
                await asyncio.sleep(0.2)
            found[sent.name] = await put(session, base_url, sent)
    return found


async def put(session: Any, base_url: str, sent: Sent) -> Answer:
    """One request; the answer without what may differ from run to run."""
    from yarl import URL

    headers = {"Accept": sent.accept, "Authorization": f"Bearer {TOKEN}", **sent.headers}
    headers = {name: value for name, value in headers.items() if value}
    data = sent.raw if sent.raw is not None else None if sent.body is None else json.dumps(sent.body).encode()
    if data is not None:
        headers["Content-Type"] = sent.content_type
    url = URL(base_url + sent.path, encoded=True)
    async with session.request(sent.method, url, data=data, headers=headers) as response:
        text = (await response.read()).decode()
        return {
            "status": response.status,
            "type": response.headers.get("Content-Type", ""),
            "body": normal(parsed(text)),
        }


def parsed(text: str) -> Any:
    """JSON, JSON lines, or text."""
    try:
        return json.loads(text)
    except ValueError:
        lines = text.splitlines()
    try:
        return [json.loads(line) for line in lines]
    except ValueError:
        return text


def normal(value: Any, key: str = "") -> Any:
    """Without uids, versions, times, managed fields and the prose of columns."""
    if isinstance(value, dict):
        members = {}
        for name, item in value.items():
            if name in ("managedFields", "description", "storageVersionHash"):
                continue
            members[name] = _VOLATILE[name] if name in _VOLATILE and item else normal(item, name)
        return members
    if isinstance(value, list):
        return [normal(item, key) for item in value]
    if isinstance(value, str):
        text = _UUID.sub("<uid>", value)
        text = re.sub(r"(too old resource version: 1) \(\d+\)", r"\1 (<version>)", text)
        text = re.sub(r"current: \d+", "current: <version>", text)
        text = re.sub(r"in record \(\d+\)", "in record (<version>)", text)
        if key == "cells":
            text = re.sub(r"^\d+(ms|s)$", "<age>", text)
            text = re.sub(r"^\d{4}-\d\d-\d\dT[\d:]+Z$", "<time>", text)
        return text
    return value


@pytest.mark.parametrize("sent", REQUESTS, ids=lambda sent: sent.name)
def test_both_servers_answer_alike(sent: Sent, answers: dict[str, tuple[Answer, Answer]]) -> None:
    real, ours = answers[sent.name]
    if sent.name in KNOWN:
        assert ours != real, f"{sent.name} no longer differs: take it out of KNOWN"
        return
    assert ours == real
