"""A feed through a server that hangs up, forgets and refuses."""

import asyncio

from mews.harness.clock import run_virtual
from mews.harness.watch_feed import Feed
from mews.kube.api.errors import GoneError, ServerError, UnavailableError
from mews.kube.api.resources import PODS
from mews.kube.client.port import EventType, ObjectList, WatchEvent


def pod(name, version):
    return {"metadata": {"name": name, "namespace": "d", "uid": name, "resourceVersion": str(version)}}


class Server:
    """Plays lists and watches from a script; an exception in a watch ends it so. Notes what was asked."""

    def __init__(self, lists, watches):
        self.lists, self.watches, self.asked = list(lists), list(watches), []

    async def list(self, resource):
        self.asked.append("list")
        items, version = self.lists.pop(0)
        return ObjectList(items, str(version))

    async def watch(self, resource, *, resource_version="", bookmarks=False):
        self.asked.append(resource_version)
        if not self.watches:
            await asyncio.Event().wait()
        for event in self.watches.pop(0):
            if isinstance(event, Exception):
                raise event
            yield event


def played(server):
    async def main():
        sights = []
        feed = Feed(server, PODS, sights.append)
        task = asyncio.create_task(feed.run())
        await feed.synced()
        await asyncio.sleep(60)
        task.cancel()
        return feed, [(one.type, one.key, one.version, one.stream) for one in sights]

    return run_virtual(main)


def added(name, version):
    return WatchEvent(EventType.ADDED, pod(name, version))


def test_a_broken_watch_goes_on_from_the_last_version_seen():
    server = Server([([pod("a", 3)], 5)], [[added("b", 7), UnavailableError("reset")], [added("c", 9)]])
    feed, sights = played(server)
    assert server.asked == ["list", "5", "7", "9"]
    assert [key for _, key, _, _ in sights] == ["d/a", "d/b", "d/c"]
    assert sorted(feed.objects) == ["d/a", "d/b", "d/c"]


def test_a_version_that_is_too_old_makes_it_list_anew_and_tell_what_went():
    server = Server([([pod("a", 3)], 5), ([pod("b", 9)], 9)], [[GoneError("too old")]])
    feed, sights = played(server)
    assert server.asked == ["list", "5", "list", "9"]
    assert [(kind, key) for kind, key, _, _ in sights] == [("LISTED", "d/a"), ("LISTED", "d/a"), ("LISTED", "d/b")]
    assert sorted(feed.objects) == ["d/b"]


def test_a_refusal_is_asked_again_later():
    server = Server([([], 5), ([], 6)], [[ServerError("busy")]])
    played(server)
    assert server.asked == ["list", "5", "list", "6"]


def test_every_list_and_watch_is_a_stream_of_its_own():
    server = Server([([pod("a", 3)], 5)], [[added("b", 7)], [added("c", 9)]])
    _, sights = played(server)
    assert [stream for _, _, _, stream in sights] == [1, 2, 3]
