"""A bookmark says that everything up to its version was told."""

import pytest

from mews.kube.api.objects import version_of
from mews.kube.api.resources import NAMESPACES
from mews.kube.client.port import EventType
from mews.kube.emulated.core.store.shelf import WatchInbox
from mews.kube.emulated.core.wire import streams
from tests.kube.emulated.apiserver.serving import Served, serve

pytestmark = pytest.mark.wall


def test_a_change_in_the_moment_of_a_bookmark_comes_before_it(tmp_path, monkeypatch):
    read = WatchInbox.next_by

    async def late(self, deadline_s):
        """An event that is there, but is read only after the bookmark's time has come."""
        event = await read(self, deadline_s)
        self._events.appendleft(event)
        raise TimeoutError

    monkeypatch.setattr(WatchInbox, "next_by", late)
    monkeypatch.setattr(streams, "_BOOKMARK_EVERY_S", 0.05)

    async def check(served: Served) -> None:
        begin = (await served.kube.list(NAMESPACES)).resource_version
        watch = served.kube.watch(NAMESPACES, resource_version=begin, bookmarks=True)
        told = []
        await served.kube.create(NAMESPACES, {"metadata": {"name": "a"}})
        async for event in watch:
            told.append((event.type, version_of(event.object)))
            if event.type is EventType.BOOKMARK and event.object["metadata"]["resourceVersion"] > begin:
                break
        await watch.aclose()
        assert [kind for kind, _ in told if kind is not EventType.BOOKMARK] == [EventType.ADDED]
        assert [version for _, version in told] == sorted(version for _, version in told)

    serve(tmp_path, check)
