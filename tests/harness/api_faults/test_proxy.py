"""The proxy between a program and the API, over real sockets: what a client behind it sees."""

import asyncio
import json
import random
import time
from contextlib import asynccontextmanager

import aiohttp
import pytest
import yaml

from mews.certificates import make_certificates
from mews.harness.api_faults.control import ApiFaults
from mews.harness.api_faults.proxy import ApiProxy, connection_of
from mews.harness.journal import Journal
from mews.harness.kubeconfig_file import write_kubeconfig
from mews.kube.api.errors import (
    ConflictError,
    GoneError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnauthorizedError,
    UnavailableError,
)
from mews.kube.api.objects import name_of
from mews.kube.api.resources import CONFIGMAPS
from mews.kube.client.http import HttpKube
from mews.kube.clock import Pace
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer
from mews.listening.ports import held_port

pytestmark = pytest.mark.wall


class Bench:
    def __init__(self, kube, component, faults, proxy):
        self.kube, self.component, self.faults, self.proxy = kube, component, faults, proxy

    async def make(self, name):
        return await self.kube.create(CONFIGMAPS, {"metadata": {"name": name}}, namespace="default")

    async def names(self, kube=None):
        found = (await (kube or self.component).list(CONFIGMAPS, namespace="default")).items
        return [name_of(obj) for obj in found if not name_of(obj).startswith("kube-root")]

    async def patched(self, name="a"):
        await self.component.patch(CONFIGMAPS, name, {"data": {"k": "v"}}, namespace="default")

    async def data(self, name="a"):
        return (await self.kube.get(CONFIGMAPS, name, namespace="default")).get("data")

    @asynccontextmanager
    async def following(self):
        """The names of objects as the component's watch tells of them, each with its time; what it ends with."""
        seen, start = [], asyncio.get_running_loop().time()

        async def watching():
            version = (await self.kube.list(CONFIGMAPS, namespace="default")).resource_version
            async for event in self.component.watch(CONFIGMAPS, namespace="default", resource_version=version):
                seen.append((asyncio.get_running_loop().time() - start, name_of(event.object)))

        task = asyncio.create_task(watching())
        await asyncio.sleep(0.2)
        try:
            yield seen, task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def played(play, folder):
    async def main():
        server = ApiServer(fresh_store(time.time, random.Random(1)), tokens={"of-the-server": "admin"})
        await server.start()
        write_kubeconfig(folder / "upstream", server={"server": server.url}, user={"token": "of-the-server"})
        kube = HttpKube(server.url, token="of-the-server")
        loop = asyncio.get_running_loop()
        faults = ApiFaults(kube, Journal(loop.time), Pace(), random.Random(1))
        faults.stand_between("c")
        certificates = make_certificates(folder / "tls", time.time())
        proxy = ApiProxy("c", faults, connection_of(folder / "upstream"), held_port(), certificates)
        proxy.write_kubeconfig(folder / "kubeconfig")
        await proxy.open()
        component = HttpKube.from_kubeconfig(str(folder / "kubeconfig"))
        try:
            async with asyncio.timeout(30):
                await play(Bench(kube, component, faults, proxy))
        finally:
            faults.close()
            for each in (component, proxy, kube):
                await each.close()
            await server.stop()

    (folder / "tls").mkdir()
    asyncio.run(main())


def test_without_a_fault_all_of_it_goes_through(tmp_path):
    async def play(bench):
        async with bench.following() as (seen, _):
            await bench.component.create(CONFIGMAPS, {"metadata": {"name": "a"}}, namespace="default")
            await bench.patched()
            assert await bench.names() == ["a"]
            assert await bench.component.discovery()
            odd = {"label_selector": "a in (b,c),d!=e", "field_selector": "metadata.name==a"}
            assert not (await bench.component.list(CONFIGMAPS, namespace="default", **odd)).items
            with pytest.raises(NotFoundError):
                await bench.component.get(CONFIGMAPS, "b", namespace="default")
            await asyncio.sleep(0.5)
            assert [name for _, name in seen] == ["a", "a"]

    played(play, tmp_path)


def test_a_body_without_a_media_type_stays_without_one(tmp_path):
    """As client-go's scale client sends one: the API reads it as JSON."""

    async def play(bench):
        token = yaml.safe_load((tmp_path / "kubeconfig").read_text())["users"][0]["user"]["token"]
        headers, url = {"Authorization": f"Bearer {token}"}, f"{bench.proxy.url}/api/v1/namespaces/default/configmaps"
        body = json.dumps({"metadata": {"name": "a"}}).encode()
        async with (
            aiohttp.ClientSession(headers=headers, skip_auto_headers=["Content-Type"]) as session,
            session.post(url, data=body, ssl=False) as answer,
        ):
            assert answer.status == 201, await answer.text()

    played(play, tmp_path)


def test_only_who_bears_the_token_is_let_in(tmp_path):
    async def play(bench):
        async with aiohttp.ClientSession() as session:
            for headers in ({}, {"Authorization": "Bearer of-the-server"}):
                async with session.get(f"{bench.proxy.url}/api/v1/pods", ssl=False, headers=headers) as answer:
                    assert (answer.status, (await answer.json())["reason"]) == (401, "Unauthorized")

    played(play, tmp_path)


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"kind": "conflict"}, ConflictError),
        ({"kind": "too-many-requests", "count": None, "retry_after_s": 3600}, TooManyRequestsError),
        ({"kind": "server-error"}, ServerError),
        ({"kind": "lost-answer", "when": "before"}, UnavailableError),
        ({"kind": "request-timeout", "hold_s": 0.2, "when": "before"}, UnavailableError),
        ({"kind": "expired-token"}, UnauthorizedError),
    ],
)
def test_a_write_is_refused_and_nothing_changes(spec, error, tmp_path):
    async def play(bench):
        await bench.make("a")
        await bench.faults.add("c", spec)
        if error is TooManyRequestsError:  # the client would ask again after the time that it is told
            url = f"{bench.proxy.url}/api/v1/namespaces/default/configmaps/a"
            headers = {"Authorization": f"Bearer {bench.proxy.token}"}
            async with aiohttp.ClientSession(headers=headers) as session, session.delete(url, ssl=False) as answer:
                assert (answer.status, answer.headers["Retry-After"]) == (429, "3600")
        else:
            with pytest.raises(error):
                await bench.patched()
        assert await bench.data() is None

    played(play, tmp_path)


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"kind": "server-error", "when": "after"}, ServerError),
        ({"kind": "lost-answer"}, UnavailableError),
        ({"kind": "request-timeout", "hold_s": 0.2}, UnavailableError),
    ],
)
def test_a_write_takes_effect_and_nobody_is_told(spec, error, tmp_path):
    async def play(bench):
        await bench.make("a")
        await bench.faults.add("c", spec)
        with pytest.raises(error):
            await bench.patched()
        assert await bench.data() == {"k": "v"}
        await bench.patched()  # the fault was spent

    played(play, tmp_path)


def test_what_the_server_refuses_itself_is_told_in_its_own_words(tmp_path):
    async def play(bench):
        await bench.faults.add("c", {"kind": "server-error", "when": "after"})
        with pytest.raises(NotFoundError):
            await bench.patched("nobody")

    played(play, tmp_path)


def test_a_watch_lags(tmp_path):
    async def play(bench):
        async with bench.following() as (seen, _):
            await bench.make("first")
            await asyncio.sleep(0.2)
            await bench.faults.add("c", {"kind": "lagging-watch", "by_s": 1})
            await bench.make("second")
            await asyncio.sleep(0.7)
            assert [name for _, name in seen] == ["first"]
            await asyncio.sleep(0.7)
            assert [name for _, name in seen] == ["first", "second"]
            bench.faults.clear()
            await bench.make("third")
            await asyncio.sleep(0.3)
            assert [name for _, name in seen] == ["first", "second", "third"]

    played(play, tmp_path)


def test_events_come_twice(tmp_path):
    async def play(bench):
        await bench.faults.add("c", {"kind": "repeated-events"})
        async with bench.following() as (seen, _):
            await bench.make("a")
            await asyncio.sleep(0.3)
            assert [name for _, name in seen] == ["a", "a"]

    played(play, tmp_path)


@pytest.mark.parametrize(("how", "error"), [("closed", None), ("broken", UnavailableError), ("gone", GoneError)])
def test_a_watch_ends(how, error, tmp_path):
    async def play(bench):
        await bench.faults.add("c", {"kind": "broken-watch", "how": how})
        async with bench.following() as (seen, task):
            await bench.make("a")
            if error is None:
                await asyncio.wait_for(task, 5)
            else:
                with pytest.raises(error):
                    await asyncio.wait_for(task, 5)
            assert seen == []

    played(play, tmp_path)


def test_reads_show_the_past_and_writes_take_effect(tmp_path):
    async def play(bench):
        await bench.make("a")
        await bench.faults.add("c", {"kind": "stale-reads"})
        async with bench.following() as (seen, _):
            await bench.make("b")
            await bench.patched()
            assert await bench.names() == ["a"]
            assert "data" not in await bench.component.get(CONFIGMAPS, "a", namespace="default")
            with pytest.raises(NotFoundError):
                await bench.component.get(CONFIGMAPS, "b", namespace="default")
            assert await bench.data() == {"k": "v"}
            assert seen == []
            bench.faults.clear("c")
            assert await bench.names() == ["a", "b"]
            await asyncio.sleep(0.3)
            assert [name for _, name in seen] == ["b", "a"]

    played(play, tmp_path)


def test_a_watch_that_begins_with_all_objects_shows_those_of_the_past(tmp_path):
    async def play(bench):
        await bench.make("a")
        await bench.faults.add("c", {"kind": "stale-reads"})
        await bench.make("b")
        query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        url = f"{bench.proxy.url}/api/v1/namespaces/default/configmaps?{query}&fieldSelector=metadata.name!=x"
        headers = {"Authorization": f"Bearer {bench.proxy.token}", "Accept": "application/vnd.kubernetes.protobuf"}
        events = []
        async with aiohttp.ClientSession(headers=headers) as session, session.get(url, ssl=False) as answer:
            assert answer.status == 200, await answer.text()
            while not events or events[-1]["type"] != "BOOKMARK":
                events.append(json.loads(await asyncio.wait_for(answer.content.readline(), 5)))
            bench.faults.clear()
            events.append(json.loads(await asyncio.wait_for(answer.content.readline(), 5)))
        assert [(each["type"], each["object"]["metadata"].get("name")) for each in events] == [
            ("ADDED", "a"),
            ("BOOKMARK", None),
            ("ADDED", "b"),
        ]
        assert events[0]["object"]["kind"] == "ConfigMap"

    played(play, tmp_path)


def test_a_frozen_api_answers_once_it_is_thawed(tmp_path):
    async def play(bench):
        async with bench.following() as (seen, _):
            await bench.faults.add("c", {"kind": "frozen-api"})
            await bench.make("a")
            asking = asyncio.create_task(bench.names())
            await asyncio.sleep(0.2)
            await bench.faults.add("c", {"kind": "conflict"})  # another one that comes thaws nothing
            await asyncio.sleep(0.5)
            assert not asking.done()
            assert seen == []
            bench.faults.clear("c")
            assert await asyncio.wait_for(asking, 2) == ["a"]
            await asyncio.sleep(0.2)
            assert [name for _, name in seen] == ["a"]

    played(play, tmp_path)


def test_what_switches_protocols_is_refused_in_one_line(tmp_path):
    async def play(bench):
        url = f"{bench.proxy.url}/api/v1/namespaces/default/pods/p/exec?command=true"
        headers = {"Authorization": f"Bearer {bench.proxy.token}", "Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
        async with aiohttp.ClientSession(headers=headers) as session, session.post(url, ssl=False) as answer:
            status = await answer.json()
        assert (answer.status, status["kind"]) == (400, "Status")
        assert "use the kubeconfig of the API server itself" in status["message"]

    played(play, tmp_path)


def test_a_server_that_is_not_there_is_named(tmp_path):
    async def main():
        write_kubeconfig(tmp_path / "upstream", server={"server": "http://127.0.0.1:1"}, user={})
        faults = ApiFaults(None, Journal(lambda: 0.0), Pace(), random.Random(1))
        proxy = ApiProxy("c", faults, connection_of(tmp_path / "upstream"), held_port())
        await proxy.open()
        component = HttpKube(proxy.url)
        try:
            with pytest.raises(ServerError, match=r"http://127.0.0.1:1: ClientConnectorError"):
                await component.list(CONFIGMAPS)
        finally:
            await component.close()
            await proxy.close()

    asyncio.run(main())
