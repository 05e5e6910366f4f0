"""What the nodes' agents tell becomes the kubelets' lines, also over an agent's restart."""

import asyncio

import aiohttp
import pytest

from mews.harness.clusters.real.nodes import Nodes
from mews.harness.journal import Journal
from mews.kube.clock import rest

pytestmark = pytest.mark.wall


class Agent:
    """Has told 5 events, breaks, and comes back with a story of its own."""

    def __init__(self):
        self.told = [5, 5, 1, 1]
        self.asked = []

    async def seq(self):
        return self.told.pop(0) if len(self.told) > 1 else self.told[0]

    async def events(self, since):
        self.asked.append(since)
        if len(self.asked) < 2:
            raise aiohttp.ClientConnectionError("gone")
        record = {"event": "registered", "fields": {"resource": "falcon.com/gpu"}}
        for event in [{"seq": 1, "event": "record", "record": record}][since:]:
            yield event
        await asyncio.Event().wait()


def test_an_agent_that_was_started_anew_is_heard_from_its_first_word_on():
    async def main():
        journal, agent = Journal(lambda: 0.0), Agent()
        nodes = Nodes(None, None, journal, hosts={"host-1": "node-a"}, records=Journal(lambda: 0.0))
        listening = asyncio.create_task(nodes._listen("host-1", agent, await nodes._seq(agent)))
        async with asyncio.timeout(30):
            while not list(journal.find("kubelet", "registered")):
                await rest(0.01)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        assert agent.asked == [5, 0]

    asyncio.run(main())
