"""The oracle of one run: listens to the journal, watches pods and nodes, and takes a last look when the run ends."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, MutableMapping, Sequence

from msgspec.structs import replace

from mews.harness.invariant_registry import made
from mews.harness.invariants.agreement import at_the_end
from mews.harness.invariants.bounds import Bounds
from mews.harness.invariants.judge import InvariantJudge
from mews.harness.invariants.systems import bounds_of, judged_systems
from mews.harness.invariants.verdict import Violation
from mews.harness.invariants.vocabulary import Vocabulary
from mews.harness.invariants.watches import missing
from mews.harness.journal import Line
from mews.harness.ports.cluster import Cluster
from mews.harness.watch_feed import Feed, WatchRecord
from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object, key_of
from mews.kube.api.resources import (
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    ENDPOINTS,
    JOBS,
    NODES,
    PODS,
    REPLICA_SETS,
    SERVICES,
    STATEFUL_SETS,
)
from mews.kube.deviceplugin.port import PluginError, PodDevices
from mews.kube.system.invariant import Breach, ClusterObjects

WIRE_LAG_S = 2.0
"""The least lag that is allowed to hardware events in wall-clock time."""

_LOOK_EVERY_S = 0.25
_CONTROLLED = (SERVICES, ENDPOINT_SLICES, ENDPOINTS, REPLICA_SETS, STATEFUL_SETS, DEPLOYMENTS, JOBS)
"""Kinds besides nodes and pods at which laws of controllers look."""


def _on_a_busy_machine(bounds: Bounds) -> float | None:
    """Return it in wall-clock time the machine is part of what a pod waits for: ten times as long, up to the bound that
    holds where nobody says another."""
    given_s, most_s = bounds.scheduled_s, Bounds().scheduled_s
    return given_s if given_s is None or most_s is None else max(given_s, min(10 * given_s, most_s))


class Oracle:
    """``await start()`` once the cluster runs, ``await finish()`` before it is closed. Violations are written to the
    journal as they are found. ``named``: invariants that a scenario wants beside those that are always judged;
    ``by_laws``: the scenario's steps judge nothing. ``looks_every_s``: nodes and pods are looked at no more often, for
    clusters that stay up with many of them, and ``remember`` makes where they are kept."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        bounds: Bounds | None = None,
        named: Sequence[str] = (),
        by_laws: bool = False,
        looks_every_s: float = 0.0,
        remember: Callable[[], MutableMapping[str, Object]] = dict,
    ) -> None:
        self._cluster = cluster
        self._journal = cluster.journal
        systems = judged_systems(cluster.systems, cluster.components(), by_laws=by_laws)
        systems = replace(systems, invariants=(*systems.invariants, *made(named)))
        bounds = bounds or Bounds(systems=bounds_of(cluster.systems))
        if cluster.time == "wall":
            bounds = replace(bounds, lag_s=max(bounds.lag_s, WIRE_LAG_S), scheduled_s=_on_a_busy_machine(bounds))
        ours = cluster.time == "virtual" and cluster.parts_are_ours
        self._judge = InvariantJudge(bounds, systems, ours=ours, beside=(Vocabulary(),), report=self._write)
        self._feeds = {
            resource: Feed(cluster.kube, resource, self._on_sight, objects=remember()) for resource in (NODES, PODS)
        }
        self._others = [Feed(cluster.kube, resource, lambda _: None) for resource in _CONTROLLED if ours]
        self._looks_every_s = looks_every_s
        self._looked_s = -math.inf
        self._tasks: list[asyncio.Task[None]] = []
        self._stop: Callable[[], None] = lambda: None

    @property
    def violations(self) -> Sequence[Violation]:
        """What was found so far."""
        return tuple(self._judge.violations)

    @property
    def known(self) -> Sequence[Violation]:
        """What was found so far of laws that a published system breaks by design."""
        return tuple(self._judge.known)

    def read(self) -> None:
        """Judge what the journal says by now."""
        for line in self._journal.lines():
            self._judge.on_line(line)

    async def start(self) -> None:
        """Take in what the journal already says, then judge every line and watch event as it comes."""
        self.read()
        self._stop = self._journal.listen(self._on_line)
        feeds = [*self._feeds.values(), *self._others]
        self._tasks = [asyncio.create_task(feed.run()) for feed in feeds]
        for feed in feeds:
            await feed.synced()

    def _on_line(self, line: Line) -> None:
        """Judge it. Look also as steps end and hardware changes: that a pod goes on waiting is no event of its own, and
        a timer of ours would wake the loop at other moments than without a judge."""
        self._judge.on_line(line)
        if line.layer in ("step", "chassis"):
            self._look()

    async def finish(self) -> list[Violation]:
        """Take a last look, stop listening, and return all violations: also of what happens as the last look ends."""
        try:
            await self.conclude()
        finally:
            await self.stop()
        return list(self._judge.violations)

    async def conclude(self) -> list[Violation]:
        """Take a whole look now, and return all violations so far."""
        self._judge.pass_time(self._journal.elapsed_s)
        self._looked_s = -math.inf
        self._look()
        self._judge.compare(await self._settled(self._gaps), self._journal.elapsed_s)
        self._judge.conclude(await self._settled(self._disagreements), self._journal.elapsed_s)
        return list(self._judge.violations)

    async def stop(self) -> None:
        """Listen no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._stop()

    def _write(self, violation: Violation) -> None:
        first = None if violation.first is None else violation.first.number
        event = "known" if violation.known else "violated"
        after = {} if violation.after is None else {"after": violation.after.number}
        self._journal.write("invariant", str(violation.invariant), event, what=violation.what, first=first, **after)

    def _on_sight(self, seen: WatchRecord) -> None:
        self._judge.on_sight(seen, self._journal.elapsed_s)
        self._look()

    def _look(self) -> None:
        elapsed_s = self._journal.elapsed_s
        if elapsed_s < self._looked_s + self._looks_every_s:
            return
        self._looked_s = elapsed_s
        nodes, pods = self._feeds[NODES].objects, self._feeds[PODS].objects
        others = {feed.resource.plural: feed.objects for feed in self._others}
        self._judge.on_objects(elapsed_s, ClusterObjects(nodes, pods, self._cluster.clock.now(), others))

    async def _settled(self, look: Callable[[], Awaitable[list[Breach]]]) -> list[Breach]:
        """Return what a look finds, after everything that lags had its moment to follow."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._judge.state.bounds.settle_s
        found = await look()
        while found and loop.time() < deadline:
            await asyncio.sleep(_LOOK_EVERY_S)
            found = await look()
        return found

    async def _gaps(self) -> list[Breach]:
        found: list[Breach] = []
        for feed in self._feeds.values():
            with contextlib.suppress(ApiError, UnavailableError):
                listed = {key_of(obj): obj for obj in (await self._cluster.kube.list(feed.resource)).items}
                await asyncio.sleep(0)
                found += missing(feed.resource.plural, listed, feed.objects)
        return found

    async def _disagreements(self) -> list[Breach]:
        world = self._judge.state.world
        if any(name.startswith("chassis/") for name in self._judge.state.windows.down()):
            return []  # Nobody is there to ask.
        reports: dict[str, Sequence[PodDevices]] = {}
        for host in sorted({holding.host for holding in world.holdings.values()}):
            with contextlib.suppress(PluginError):
                reports[host] = await self._cluster.pod_resources(host)
        return list(at_the_end(self._judge.state, await self._cluster.hardware.table(), reports))
