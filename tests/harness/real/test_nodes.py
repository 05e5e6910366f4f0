"""What the nodes' agents tell becomes the kubelets' lines, also over an agent's restart."""

import asyncio
from types import SimpleNamespace

import aiohttp
import pytest

from mews.harness.clusters.real.nodes import Nodes
from mews.harness.journal import Journal
from mews.harness.watch_feed import WatchRecord
from mews.kube.api.resources import PODS
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


def test_an_agent_that_was_started_anew_is_on_record_from_its_first_word_on():
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


class Told:
    """Users of a host's GPUs."""

    def __init__(self):
        self.seen = {}

    def begin(self, key, uuids, **_):
        self.seen[key] = list(uuids)

    def end(self, key):
        self.seen.pop(key)


class Kube:
    """Whose containers have that environment."""

    async def exec(self, namespace, name, command, *, container):
        return SimpleNamespace(exit_code=0, stdout=b"A=b\0NVIDIA_VISIBLE_DEVICES=GPU-1\0")


@pytest.mark.parametrize("claims", [[{"name": "gpu"}], []])
def test_a_container_of_a_claim_has_the_gpus_of_its_environment_until_its_pod_ends(claims):
    status = {"name": "main", "containerID": "c", "state": {"running": {}}}
    pod = {
        "metadata": {"uid": "u1", "name": "a", "namespace": "default"},
        "spec": {"nodeName": "node-a", "containers": [{"name": "main", "resources": {"claims": claims}}]},
        "status": {"phase": "Running", "containerStatuses": [status]},
    }

    async def visible(host, words):
        return [f"{host}/{word}" for word in words]

    async def main():
        journal, told = Journal(lambda: 0.0), Told()
        nodes = Nodes(
            *(None, Kube(), journal),
            hosts={"host-1": "node-a"},
            records=Journal(lambda: 0.0),
            users=lambda host: told,
            visible=visible,
        )
        nodes._see(WatchRecord(PODS, "ADDED", "default/a", None, pod, 1, 1))
        await asyncio.gather(*nodes._asking)
        [line] = journal.find("kubelet", "container-started")
        assert line.fields["env"] == ({"NVIDIA_VISIBLE_DEVICES": "GPU-1"} if claims else {})
        assert list(told.seen.values()) == ([["host-1/GPU-1"]] if claims else [])
        nodes._see(WatchRecord(PODS, "DELETED", "default/a", pod, None, 1, 1))
        assert told.seen == {}

    asyncio.run(main())


def test_a_driver_without_an_agent_beside_it_is_on_record_by_its_pods_log():
    journal = Journal(lambda: 0.0)
    nodes = Nodes(None, None, journal, hosts={"host-1": "node-a"}, records=Journal(lambda: 0.0))
    fields = {"claim": "default/c", "uid": "c1", "driver": "d"}
    for event in ("claim-unprepared", "registered"):
        nodes.on_record("some-driver/host-1", {"event": event, "fields": fields})
    nodes.on_record("scheduler", {"event": "claim-unprepared", "fields": fields})
    assert [(line.actor, line.event) for line in journal.lines()] == [("kubelet/host-1", "claim-unprepared")]
