"""What a component's client sees, over an API in process."""

import asyncio
import random

import pytest

from mews.harness.api_faults.control import ApiFaults
from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.journal import Journal
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
from mews.kube.api.resources import CONFIGMAPS, SECRETS
from mews.kube.client.informer import Informer
from mews.kube.clock import Pace
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store


class Bench:
    """A component ``c`` and somebody else, at one API."""

    def __init__(self):
        loop = asyncio.get_running_loop()
        self.kube = InProcessKube(fresh_store(virtual_clock().now, random.Random(1)))
        self.journal = Journal(loop.time)
        self.faults = ApiFaults(self.kube, self.journal, Pace(), random.Random(1))
        self.component = self.faults.around("c", self.kube)

    async def make(self, name, resource=CONFIGMAPS):
        return await self.kube.create(resource, {"metadata": {"name": name}}, namespace="default")

    async def names(self, kube=None):
        found = await (kube or self.component).list(CONFIGMAPS, namespace="default")
        return [name_of(obj) for obj in found.items if not name_of(obj).startswith("kube-root")]

    def lines(self, event):
        return [line for line in self.journal.lines() if line.event == event]


def played(play):
    async def main():
        await play(Bench())

    run_virtual(main)


def follow(bench, resource=CONFIGMAPS):
    """The times at which the component's watch tells of objects, with their names."""
    seen = []

    async def watching():
        async for event in bench.component.watch(resource, namespace="default"):
            seen.append((asyncio.get_running_loop().time(), event.type.value, name_of(event.object)))

    return seen, asyncio.create_task(watching())


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"kind": "conflict"}, ConflictError),
        ({"kind": "too-many-requests", "count": None}, TooManyRequestsError),
        ({"kind": "server-error"}, ServerError),
        ({"kind": "lost-answer"}, UnavailableError),
        ({"kind": "request-timeout"}, UnavailableError),
        ({"kind": "expired-token"}, UnauthorizedError),
    ],
)
def test_a_write_fails_as_the_port_says_it(spec, error):
    async def play(bench):
        await bench.make("a")
        await bench.faults.add("c", spec)
        with pytest.raises(error):
            await bench.component.patch(CONFIGMAPS, "a", {"data": {"k": "v"}}, namespace="default")

    played(play)


@pytest.mark.parametrize(("when", "there"), [("before", False), ("after", True)])
@pytest.mark.parametrize("kind", ["server-error", "lost-answer", "request-timeout"])
def test_a_create_takes_effect_or_does_not(kind, when, there):
    async def play(bench):
        await bench.faults.add("c", {"kind": kind, "when": when})
        with pytest.raises((ServerError, UnavailableError)):
            await bench.component.create(CONFIGMAPS, {"metadata": {"name": "a"}}, namespace="default")
        assert (await bench.names() == ["a"]) is there

    played(play)


def test_a_timeout_hangs_and_a_write_before_it_is_there_while_it_does():
    async def play(bench):
        await bench.faults.add("c", {"kind": "request-timeout", "hold_s": 30})
        writing = asyncio.create_task(bench.component.create(CONFIGMAPS, {"metadata": {"name": "a"}}))
        await asyncio.sleep(1)
        assert await bench.names(bench.kube) == ["a"]
        assert not writing.done()
        with pytest.raises(UnavailableError):
            await writing
        assert asyncio.get_running_loop().time() == pytest.approx(30)

    played(play)


def test_a_client_comes_again_when_a_busy_server_says_and_ten_times_at_most():
    async def play(bench):
        await bench.faults.add("c", {"kind": "too-many-requests", "retry_after_s": 7, "count": 3})
        assert await bench.names() == []
        assert asyncio.get_running_loop().time() == pytest.approx(21)
        await bench.faults.add("c", {"kind": "too-many-requests", "retry_after_s": 7, "count": None})
        with pytest.raises(TooManyRequestsError) as refused:
            await bench.names()
        assert refused.value.status()["details"] == {"retryAfterSeconds": 7}
        assert asyncio.get_running_loop().time() == pytest.approx(21 + 70)

    played(play)


def test_the_component_sees_the_past_and_everybody_else_the_present():
    async def play(bench):
        await bench.make("a")
        await bench.faults.add("c", {"kind": "stale-reads"})
        await bench.make("b")
        await bench.kube.delete(CONFIGMAPS, "a", namespace="default")
        assert await bench.names() == ["a"]
        assert await bench.names(bench.kube) == ["b"]
        assert name_of(await bench.component.get(CONFIGMAPS, "a", namespace="default")) == "a"
        with pytest.raises(NotFoundError):
            await bench.component.get(CONFIGMAPS, "b", namespace="default")
        bench.faults.clear("c")
        assert await bench.names() == ["b"]

    played(play)


def test_a_watch_of_a_stale_server_catches_up_once_it_is_over():
    async def play(bench):
        seen, watching = follow(bench)
        await asyncio.sleep(1)
        seen.clear()
        await bench.faults.add("c", {"kind": "stale-reads", "expires_s": 20})
        await bench.make("a")
        await asyncio.sleep(5)
        await bench.make("b")
        await asyncio.sleep(60)
        assert seen == [(21.0, "ADDED", "a"), (21.0, "ADDED", "b")]
        watching.cancel()

    played(play)


def test_events_lag_and_stay_in_their_order():
    async def play(bench):
        seen, watching = follow(bench)
        await asyncio.sleep(1)
        seen.clear()
        await bench.faults.add("c", {"kind": "lagging-watch", "by_s": 10})
        await bench.make("a")
        await asyncio.sleep(3)
        await bench.make("b")
        await asyncio.sleep(60)
        bench.faults.clear()
        await bench.make("d")
        await asyncio.sleep(1)
        assert seen == [(11.0, "ADDED", "a"), (14.0, "ADDED", "b"), (64.0, "ADDED", "d")]
        watching.cancel()

    played(play)


def test_watches_of_two_kinds_come_in_another_order_than_things_happened():
    async def play(bench):
        await bench.faults.add("c", {"kind": "unordered-watches", "by_s": 30})
        first, one = follow(bench, CONFIGMAPS)
        second, other = follow(bench, SECRETS)
        await asyncio.sleep(100)
        first.clear()
        second.clear()
        for number in range(4):
            await bench.make(f"a{number}", (CONFIGMAPS, SECRETS)[number % 2])
            await asyncio.sleep(1)
        await asyncio.sleep(100)
        assert [name for *_, name in first] == ["a0", "a2"]
        assert [name for *_, name in second] == ["a1", "a3"]
        told = [name for _, _, name in sorted([*first, *second])]
        assert told != ["a0", "a1", "a2", "a3"]
        one.cancel()
        other.cancel()

    played(play)


def test_events_come_twice():
    async def play(bench):
        await bench.faults.add("c", {"kind": "repeated-events"})
        seen, watching = follow(bench)
        await bench.make("a")
        await asyncio.sleep(1)
        assert [name for *_, name in seen if name == "a"] == ["a", "a"]
        watching.cancel()

    played(play)


@pytest.mark.parametrize(("how", "error"), [("closed", None), ("broken", UnavailableError), ("gone", GoneError)])
def test_a_watch_ends_in_the_place_of_its_next_event(how, error):
    async def play(bench):
        seen, watching = follow(bench)
        await asyncio.sleep(1)
        seen.clear()
        await bench.faults.add("c", {"kind": "broken-watch", "how": how})
        await bench.make("a")
        await asyncio.sleep(1)
        assert watching.done()
        assert seen == []
        assert type(watching.exception()) is (error or type(None))

    played(play)


@pytest.mark.parametrize(
    "spec",
    [
        *({"kind": "broken-watch", "how": how, "count": 3} for how in ("closed", "broken", "gone")),
        {"kind": "expired-token", "expires_s": 5},
        {"kind": "lagging-watch", "by_s": 3, "expires_s": 5},
        {"kind": "repeated-events", "times": 3, "expires_s": 50},
        {"kind": "stale-reads", "expires_s": 5},
        {"kind": "request-timeout", "count": 2, "hold_s": 3},
    ],
    ids=lambda spec: "-".join(str(value) for value in spec.values()),
)
def test_an_informer_is_whole_again_once_the_fault_is_over(spec):
    async def play(bench):
        informer = Informer(bench.component, CONFIGMAPS, namespace="default")
        running = asyncio.create_task(informer.run())
        await informer.synced()
        await bench.faults.add("c", spec)
        for number in range(6):
            await bench.make(f"a{number}")
            await asyncio.sleep(1)
        await bench.kube.delete(CONFIGMAPS, "a2", namespace="default")
        await asyncio.sleep(120)
        told = [name_of(obj) for obj in informer.items() if name_of(obj).startswith("a")]
        assert told == ["a0", "a1", "a3", "a4", "a5"]
        running.cancel()

    played(play)


def test_the_journal_says_when_a_fault_comes_fires_and_goes_and_how_long_it_hinders():
    async def play(bench):
        await bench.faults.add("c", {"kind": "expired-token", "expires_s": 5})
        with pytest.raises(UnauthorizedError):
            await bench.names()
        await asyncio.sleep(10)
        await bench.faults.add("c", {"kind": "server-error", "count": 1})
        with pytest.raises(ServerError):
            await bench.names()
        added, late = bench.lines("added")
        first, second = bench.lines("fired")
        (cleared,) = bench.lines("cleared")
        assert added.fields["hinders_s"] is None
        assert (cleared.t, cleared.fields["hinders_s"]) == (5.0, 15.0)
        assert "hinders_s" not in late.fields
        assert "hinders_s" not in first.fields
        assert second.fields["hinders_s"] == 15.0
        assert (first.fields["verb"], first.fields["resource"]) == ("list", "configmaps")
        assert {line.actor for line in bench.journal.lines()} == {"c"}
        with pytest.raises(ValueError, match="component 'd': must be one of c"):
            await bench.faults.add("d", {"kind": "conflict"})

    played(play)
