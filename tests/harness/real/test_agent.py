"""What a node's agent answers."""

import asyncio
import json

import aiohttp
import pytest

from mews.harness.clusters.real.agent import TOKEN_HEADER, AgentEvents, AgentServer, NodeObserver
from mews.kube.deviceplugin.port import PluginError

pytestmark = pytest.mark.wall


class NoKubelet:
    async def list(self):
        raise PluginError("Unavailable", "nobody listens")


def asked(story, check):
    """Run a check against a served agent: it gets a session and the URL."""

    async def main():
        listener = AgentServer(story, NoKubelet(), "secret").listener()
        await listener.open()
        try:
            async with aiohttp.ClientSession(headers={TOKEN_HEADER: "secret"}) as session:
                _, port = listener.address
                await asyncio.wait_for(check(session, f"http://127.0.0.1:{port}/v1"), 60)
        finally:
            await listener.close()

    asyncio.run(main())


async def told(session, url, since, count):
    """So many events after that number."""
    found = []
    async with session.get(f"{url}/events", headers={"Last-Event-ID": str(since)}) as response:
        async for line in response.content:
            if line.startswith(b"data: "):
                found.append(json.loads(line[6:]))
            if len(found) == count:
                return found
    return found


def test_whoever_comes_later_may_hear_only_what_is_new():
    story = AgentEvents()
    for number in range(3):
        story.notify("record", record={"number": number})

    async def check(session, url):
        async with session.get(f"{url}/seq") as response:
            seen = (await response.json())["seq"]
        assert seen == 3
        story.notify("record", record={"number": 3})
        assert [event["record"]["number"] for event in await told(session, url, seen, 1)] == [3]
        assert [event["seq"] for event in await told(session, url, 0, 4)] == [1, 2, 3, 4]

    asked(story, check)


def test_nobody_is_told_without_the_token_and_a_dead_kubelet_is_said_to_be():
    async def check(session, url):
        async with session.get(f"{url}/seq", headers={TOKEN_HEADER: "wrong"}) as response:
            assert response.status == 401
        async with session.get(f"{url}/pod-resources") as response:
            assert response.status == 503
            assert "nobody listens" in (await response.json())["error"]

    asked(AgentEvents(), check)


def test_records_are_told_once_each_and_only_when_they_are_whole(tmp_path):
    records, story = tmp_path / "records.jsonl", AgentEvents()
    looker = NodeObserver(story, tmp_path / "checkpoint", [records])
    looker.look()
    records.write_text('{"event": "a"}\n{"event": "b')
    looker.look()
    looker.look()
    assert [event["record"]["event"] for event in story.events] == ["a"]
    with records.open("a") as file:
        file.write('"}\n')
    looker.look()
    assert [event["record"]["event"] for event in story.events] == ["a", "b"]


def test_web_pages_and_foreign_names_are_refused_token_or_not():
    async def check(session, url):
        for headers, status in (
            ({}, 200),
            ({"Host": "rebound.example"}, 403),
            ({"Sec-Fetch-Site": "cross-site"}, 403),
            ({"Origin": "http://rebound.example"}, 403),
            ({TOKEN_HEADER: "another"}, 401),
        ):
            async with session.get(f"{url}/seq", headers=headers) as response:
                assert (headers, response.status) == (headers, status)

    asked(AgentEvents(), check)
