"""One of several candidates acts, and a new one once the old is gone or asleep."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.errors import UnavailableError
from mews.kube.api.resources import CONFIGMAPS, LEASES
from mews.kube.client.port import KubeApi
from mews.kube.clock import stream
from mews.kube.component import Context
from mews.kube.leader_election import LeaderElection
from tests.kube.scheduling.world import World


class Leader:
    """Notes who leads; ``kube`` is what it was given for its term."""

    def __init__(self, notes: list[str], name: str, kube: KubeApi) -> None:
        self.notes, self.name, self.kube = notes, name, kube

    async def run(self) -> None:
        self.notes.append(f"{self.name} leads")
        try:
            await asyncio.Event().wait()
        finally:
            self.notes.append(f"{self.name} stops")


class Silent:
    """A server that does not answer while ``silent``."""

    def __init__(self, kube: KubeApi) -> None:
        self._kube, self.silent = kube, False

    def __getattr__(self, name: str) -> object:
        def call(*arguments: object, **options: object) -> object:
            if self.silent:
                raise UnavailableError("no answer")
            return getattr(self._kube, name)(*arguments, **options)

        return call


class Candidates:
    def __init__(self, world: World) -> None:
        self.world, self.notes = world, list[str]()
        self.leaders: dict[str, Leader] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.ports: dict[str, Silent] = {}

    def stand(self, name: str) -> None:
        self.ports[name] = Silent(self.world.kube)
        context = Context(self.ports[name], self.world.clock, stream(1, name), logging.getLogger("test"))  # type: ignore[arg-type]
        election = LeaderElection(context, "default", "lock", identity=name)

        def made(kube: KubeApi) -> Leader:
            self.leaders[name] = Leader(self.notes, name, kube)
            return self.leaders[name]

        self.tasks[name] = asyncio.create_task(election.run(made))

    async def end(self, *names: str) -> None:
        for name in names:
            self.tasks[name].cancel()
            await asyncio.wait([self.tasks[name]])


def play(story: Callable[[Candidates], Awaitable[None]]) -> None:
    async def main() -> None:
        world = World()
        candidates = Candidates(world)
        try:
            await story(candidates)
        finally:
            await candidates.end(*candidates.tasks)
            await world.close()

    run_virtual(main)


def test_the_first_leads_and_the_second_waits() -> None:
    async def story(candidates: Candidates) -> None:
        candidates.stand("a")
        await asyncio.sleep(1)
        candidates.stand("b")
        await asyncio.sleep(120)
        assert candidates.notes == ["a leads"]
        lease = await candidates.world.kube.get(LEASES, "lock", namespace="default")
        assert lease["spec"]["holderIdentity"] == "a"
        assert lease["spec"]["leaseTransitions"] == 0

    play(story)


def test_a_leader_that_is_gone_is_followed_once_its_lease_has_run_out() -> None:
    async def story(candidates: Candidates) -> None:
        candidates.stand("a")
        await asyncio.sleep(1)
        candidates.stand("b")
        await asyncio.sleep(20)
        await candidates.end("a")
        await asyncio.sleep(10)
        assert candidates.notes == ["a leads", "a stops"]
        await asyncio.sleep(10)
        assert candidates.notes == ["a leads", "a stops", "b leads"]
        lease = await candidates.world.kube.get(LEASES, "lock", namespace="default")
        assert lease["spec"]["leaseTransitions"] == 1

    play(story)


def test_a_leader_that_cannot_renew_stops_before_another_may_begin() -> None:
    async def story(candidates: Candidates) -> None:
        candidates.stand("a")
        await asyncio.sleep(1)
        candidates.stand("b")
        await asyncio.sleep(20)
        candidates.ports["a"].silent = True
        await asyncio.sleep(40)
        assert candidates.notes == ["a leads", "a stops", "b leads"]
        candidates.ports["a"].silent = False
        await candidates.end("b")
        await asyncio.sleep(20)
        assert candidates.notes == ["a leads", "a stops", "b leads", "b stops", "a leads"]

    play(story)


def test_what_a_leader_of_before_still_sends_is_not_sent() -> None:
    async def story(candidates: Candidates) -> None:
        candidates.stand("a")
        await asyncio.sleep(1)
        old = candidates.leaders["a"].kube
        body = {"metadata": {"name": "written"}}
        await old.create(CONFIGMAPS, body, namespace="default")
        candidates.ports["a"].silent = True
        await asyncio.sleep(30)
        candidates.ports["a"].silent = False
        with pytest.raises(UnavailableError, match="lease"):
            await old.delete(CONFIGMAPS, "written", namespace="default")
        assert await old.get(CONFIGMAPS, "written", namespace="default")

    async def alone(candidates: Candidates) -> None:
        await story(candidates)

    play(alone)


def test_what_ends_the_leader_ends_the_election() -> None:
    class Broken(Leader):
        async def run(self) -> None:
            raise RuntimeError("broken")

    async def story(candidates: Candidates) -> None:
        context = Context(candidates.world.kube, candidates.world.clock, stream(1, "x"), logging.getLogger("test"))
        election = LeaderElection(context, "default", "lock", identity="x")
        with pytest.raises(RuntimeError, match="broken"):
            await election.run(lambda kube: Broken([], "x", kube))

    play(story)
