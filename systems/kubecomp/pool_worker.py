"""Reconfig-Mgr's work on one pool: one reconfiguration at a time, so no device is planned twice (seed IV-D, V-A)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.chassis.port import ChassisApi
from mews.kube.clock import rest
from mews.kube.component import Context, record
from mews.kube.events import EventRecorder
from mews.kube.pulse import Pulse
from mews.systems.kubecomp import policy, published, rules
from mews.systems.kubecomp.config import KubeCompConfig, Topology
from mews.systems.kubecomp.config_map_writer import ConfigMapWriter
from mews.systems.kubecomp.faults import KubeCompFault
from mews.systems.kubecomp.journal import MoveJournal
from mews.systems.kubecomp.metrics import KubeCompCounter, KubeCompMetrics, Phase, ReconfigurationTiming, timed
from mews.systems.kubecomp.mover import End, Mover
from mews.systems.kubecomp.policy import Gpu
from mews.systems.kubecomp.pool_table import PoolTable
from mews.systems.kubecomp.reader import ChassisReader
from mews.systems.kubecomp.records import POOL_PREFIX, REFUSAL_REASON, Intent, pool_data, pool_state, refusal_message
from mews.systems.kubecomp.view import ClusterView, PodShortOfDevices
from mews.systems.kubecomp.withdrawal import Withdrawals


class Served(StrEnum):
    """How far a reconfiguration came."""

    MET = "met"
    SHORT = "short"
    """Too few candidates: nothing was moved; looked at again later."""
    AGAIN = "again"
    """A chosen device could not be had: planned anew without it."""


class _Backoff(Struct):
    """``users``: how many pods used parts of the device that was refused."""

    due_s: float
    delay_s: float
    users: int = 0


class PoolWorker:
    """Serves the waiting pods of one pool; keeps ``pool-<pool>`` current."""

    def __init__(
        self,
        context: Context,
        config: KubeCompConfig,
        pool: str,
        *,
        topology: Topology,
        chassis: Mapping[str, ChassisApi],
        view: ClusterView,
        board: ConfigMapWriter,
        metrics: KubeCompMetrics,
        events: EventRecorder,
    ) -> None:
        self.pool = pool
        self._context = context
        self._config = config
        self._timing = config.timing
        self._topology = topology
        self._view = view
        self._board = board
        self._metrics = metrics
        self._events = events
        own = {entry.name: chassis[entry.name] for entry in topology.chassis_of(pool)}
        self._reader = ChassisReader(own, config, context.log)
        self._table = PoolTable(pool, topology, self._reader, view)
        self._mover = Mover(
            context,
            own,
            self._reader,
            timing=config.timing,
            metrics=metrics,
            reads_back=not config.has(KubeCompFault.REPLY_BELIEVED),
            goes_back=not config.has(KubeCompFault.NO_RETRY),
        )
        per_device_s = config.timing.removal_timeout_s if config.removal == "orderly" else 0.0
        self._withdrawals = Withdrawals(context, board, view, config.timing, per_device_s=per_device_s)
        self._journal = MoveJournal(board, keeps=not config.has(KubeCompFault.NO_JOURNAL))
        self._execs = published.ExecCache() if config.has(KubeCompFault.EXEC_HOLDERS) else None
        self._asks_pods = self._execs is not None or config.has(KubeCompFault.PENDING_SPIN)
        self._moved_for_event = 0
        self._pulse = Pulse()
        self._is_clean = False
        self._is_published = False
        self._published_in = -1
        self._backoffs: dict[str, _Backoff] = {}
        self._stuck: dict[str, float] = {}
        self._refusals: dict[str, _Backoff] = {}
        self._placed: dict[str, tuple[str | None, float]] = {}
        """GPUID -> the port that it was last moved from, and when."""
        self._next_poll_s = 0.0

    def on_change(self, news: bool) -> None:
        """Something of this pool changed on the API; with ``news`` pods that could not be served are due again soon."""
        self._withdrawals.answered.beat()
        if news:
            self._is_published = False
            soon_s = self._loop_s() + self._timing.requeue_first_s
            for backoff in self._backoffs.values():
                backoff.due_s = min(backoff.due_s, soon_s)
                backoff.delay_s = self._timing.requeue_first_s
        self._pulse.beat()

    async def run(self) -> None:
        """Recover what was left, then serve until cancelled."""
        await self._view.synced()
        failures = 0
        while True:
            try:
                await self._round()
                failures = 0
            except (ApiError, UnavailableError) as error:
                # Whatever was under way is in the journal: the next round begins with it.
                self._is_clean = self._is_published = False
                failures += 1
                record(self._context.log, "interrupted", pool=self.pool, error=str(error))
                await rest(min(2.0**failures, self._timing.requeue_last_s))

    async def _round(self) -> None:
        if not self._is_clean:
            await self._recover()
        if self._loop_s() >= self._next_poll_s:
            await self._reader.read_all(self._table.chassis)
            self._next_poll_s = self._loop_s() + self._timing.pool_poll_s
        await self._publish()
        pod = self._next_pod()
        if pod is not None:
            await self._serve(pod)
        elif not await self._retry_stuck():
            await self._pulse.wait(self._next_due_s() - self._loop_s())

    def _next_pod(self) -> PodShortOfDevices | None:
        if self._config.has(KubeCompFault.STALE_DEMAND):
            return self._view.next_event(self.pool)
        waiting = self._view.waiting(self.pool)
        alive = {pod.uid for pod in waiting}
        for uid in [uid for uid in self._backoffs if uid not in alive]:
            del self._backoffs[uid]
        now_s = self._loop_s()
        for pod in waiting:
            backoff = self._backoffs.get(pod.uid)
            if (backoff is None or backoff.due_s <= now_s) and self._shortfall(pod):
                return pod
        return None

    def _next_due_s(self) -> float:
        """Return when to come round by itself. A pod whose backoff has passed and that still lacks nothing waits for
        news."""
        now_s = self._loop_s()
        dues = [*(backoff.due_s for backoff in self._backoffs.values()), *self._stuck.values()]
        return min(due_s for due_s in (now_s + self._timing.pool_poll_s, self._next_poll_s, *dues) if due_s > now_s)

    async def _publish(self) -> None:
        """Unless what was published is still so; whoever read a chassis since then may have found anything new."""
        read = self._reader.version
        if self._table.is_known and not (self._is_published and self._published_in == read):
            self._is_published, self._published_in = True, read
            await self._board.write(f"{POOL_PREFIX}{self.pool}", pool_data(self._table.state()))

    # One pod

    async def _serve(self, pod: PodShortOfDevices) -> None:
        record(self._context.log, "reconfiguring", pod=pod.key, node=pod.node)
        excluded = {*self._stuck, *self._refused()}
        served, moved, self._moved_for_event = Served.AGAIN, 0, 0
        spent: dict[Phase, float] = {}
        while served is Served.AGAIN:
            served, more = await self._reconfigure(pod, excluded, spent)
            moved += more
        if moved:
            self._metrics.count(KubeCompCounter.RECONFIGURATIONS)
            self._metrics.reconfigured(ReconfigurationTiming(pod.key, moved, spent))
        record(self._context.log, "reconfigured", pod=pod.key, node=pod.node, outcome=served.value, moved=moved)
        before = self._backoffs.get(pod.uid)
        delay_s = min(2 * before.delay_s, self._timing.requeue_last_s) if before else self._timing.requeue_first_s
        self._backoffs[pod.uid] = _Backoff(self._loop_s() + delay_s, delay_s)

    def _refused(self) -> list[str]:
        """Return what hosts refused not long ago, and will again: unless fewer pods use parts of it than did."""
        users = self._table.users()
        return [
            gpuid
            for gpuid, kept in self._refusals.items()
            if kept.due_s > self._loop_s() and users.get(gpuid, 0) >= kept.users
        ]

    async def _reconfigure(
        self, pod: PodShortOfDevices, excluded: set[str], spent: dict[Phase, float]
    ) -> tuple[Served, int]:
        """Retrieve, plan once, move; GPUIDs that could not be had are added to ``excluded``, seconds to ``spent``. The
        published code asks the pods first, and reads what the event's pod asks for only then."""
        if self._asks_pods:
            with timed(self._metrics, Phase.AVAILABILITY_UPDATE, spent):
                await self._ask_pods()
        if pod.stale_demand is not None:
            now = self._view.as_annotated(pod, self.pool)
            if now is None:
                return Served.MET, 0
            pod = now
        with timed(self._metrics, Phase.ALLOCATION_RETRIEVAL, spent):
            await self._reader.read_all(self._table.chassis)
        if self._is_behind():
            return Served.SHORT, 0
        shortfall = self._shortfall(pod)
        if not shortfall:
            return (Served.MET if self._table.is_known else Served.SHORT), 0
        if self._asks_pods:
            found = self._candidates(pod, excluded)
        else:
            with timed(self._metrics, Phase.AVAILABILITY_UPDATE, spent):
                found = self._candidates(pod, excluded)
        chosen = policy.plan(found, shortfall, partial=self._config.partial)
        record(
            self._context.log,
            "planned",
            pod=pod.key,
            demand=shortfall,
            candidates=len(found),
            moves=[gpu.gpuid for gpu in chosen],
        )
        if not chosen:
            return Served.SHORT, 0
        with timed(self._metrics, Phase.REALLOCATION, spent):
            return await self._reallocate(pod, chosen, excluded)

    def _is_behind(self) -> bool:
        """Return whether the last readings show a device where it was before it was moved, and seen to have moved, not
        long ago: they are old, and a device must not be taken off a host by them that nobody asked for it. The
        published code believes them."""
        if self._config.faults:
            return False
        since_s, devices = self._loop_s() - self._timing.read_back_bound_s, self._table.devices()
        self._placed = {gpuid: placed for gpuid, placed in self._placed.items() if placed[1] > since_s}
        behind = [
            gpuid for gpuid, (port, _) in self._placed.items() if gpuid in devices and devices[gpuid].port == port
        ]
        if behind:
            record(self._context.log, "listing-stale", pool=self.pool, devices=sorted(behind))
        return bool(behind)

    async def _ask_pods(self) -> None:
        """The published code's way to learn who holds what; ours reads the nodes' reports."""
        while self._config.has(KubeCompFault.PENDING_SPIN) and not all(self._pods().values()):
            await rest(published.SPIN_S)
        if self._execs is not None:
            held = {gpuid: pod for node in self._table.nodes for gpuid, pod in self._view.report(node).held.items()}
            self._execs.look(self._pods(), held)
            await asyncio.sleep(published.update_s(self._context.rng))

    def _pods(self) -> Mapping[str, bool]:
        return self._view.running(self._table.nodes)

    def _candidates(self, pod: PodShortOfDevices, excluded: set[str]) -> tuple[Gpu, ...]:
        now_s = self._context.clock.now()
        believed = self._execs.holdings() if self._execs is not None else None
        return self._table.candidates(pod, excluded=excluded, now_s=now_s, timing=self._timing, believed=believed)

    def _shortfall(self, pod: PodShortOfDevices) -> int:
        if not self._table.is_known:
            return 0
        if pod.stale_demand is not None:
            return max(pod.stale_demand - self._moved_for_event, 0)
        return rules.remaining_demand(self._view, pod, self._table.attached(pod.node))

    async def _reallocate(
        self, pod: PodShortOfDevices, chosen: Sequence[Gpu], excluded: set[str]
    ) -> tuple[Served, int]:
        self._is_clean = False
        unasked = self._config.has(KubeCompFault.UNASKED_MOVE)
        attached = [gpu for gpu in chosen if gpu.port is not None and not unasked]
        requests = await self._withdrawals.ask(attached)
        consented = await self._withdrawals.wait(attached, requests)
        lacking = {gpu.gpuid for gpu in attached} - consented
        self._note_refusals(pod, attached, self._withdrawals.reasons(attached, requests))
        moved = 0
        if not lacking:
            for gpu in chosen:
                if not self._shortfall(pod):
                    break
                end = await self._move(pod, gpu, requests.get(gpu.gpuid, ""))
                moved += end is End.MOVED
                self._moved_for_event += end is End.MOVED
                if end is not End.MOVED:
                    lacking.add(gpu.gpuid)
        await self._withdrawals.ask_back()
        self._is_clean = True
        excluded |= lacking
        if pod.stale_demand is not None:
            return Served.MET, moved  # An event is served once, whatever came of it.
        return (Served.AGAIN if self._shortfall(pod) and lacking else Served.MET), moved

    def _note_refusals(self, pod: PodShortOfDevices, gpus: Sequence[Gpu], reasons: Mapping[str, str]) -> None:
        """What a host keeps is no candidate for a while; the pod's events and a metric say so."""
        namespace, _, name = pod.key.partition("/")
        involved = {"kind": "Pod", "apiVersion": "v1", "namespace": namespace, "name": name, "uid": pod.uid}
        for gpu in gpus:
            if gpu.gpuid not in reasons:
                self._refusals.pop(gpu.gpuid, None)
                continue
            reason, before = reasons[gpu.gpuid], self._refusals.get(gpu.gpuid)
            last_s = self._timing.requeue_last_s
            delay_s = min(2 * before.delay_s, last_s) if before else self._timing.refusal_backoff_s
            self._refusals[gpu.gpuid] = _Backoff(self._loop_s() + delay_s, delay_s, gpu.users)
            record(self._context.log, "removal-refused", device=gpu.gpuid, node=gpu.node, pod=pod.key, reason=reason)
            self._metrics.count(KubeCompCounter.REFUSED)
            self._events.event(involved, "Warning", REFUSAL_REASON, refusal_message(gpu.gpuid, gpu.node, reason))

    async def _move(self, pod: PodShortOfDevices, gpu: Gpu, request: str) -> End:
        device = self._table.devices()[gpu.gpuid]
        looks = not (self._moved_for_event and self._config.has(KubeCompFault.UNASKED_MOVE))  # not between two moves
        if looks and self._reader.age_s(device.chassis) > policy.STALE_READING_S:
            await self._reader.read(device.chassis)
            if self._table.devices().get(gpu.gpuid) != device:
                return End.TAKEN
        node = self._topology.node(pod.node)
        target = node.ports.get(device.chassis) if node else None
        if target is None:
            return End.FAILED
        intent = Intent(
            pool=self.pool,
            request=request,
            gpuid=gpu.gpuid,
            chassis=device.chassis,
            device=device.device,
            origin=gpu.port,
            origin_node=gpu.node,
            target=target,
            target_node=pod.node,
            pod=pod.key,
            uid=pod.uid,
        )
        await self._journal.begin(intent)
        record(self._context.log, "move-begun", device=gpu.gpuid, origin=gpu.node, target=pod.node, pod=pod.key)
        return await self._finish(intent, pod)

    async def _finish(self, intent: Intent, pod: PodShortOfDevices | None, *, go_back: bool = False) -> End:
        async def may_detach() -> bool:
            if pod is None or not self._shortfall(pod):
                return False
            if self._config.has(KubeCompFault.UNASKED_MOVE):
                return True
            await self._withdrawals.renew()
            if await self._withdrawals.is_in_use(intent.origin_node, intent.gpuid, intent.request):
                return False
            now_s = self._context.clock.now()
            return self._table.spares(intent.gpuid, pod, now_s=now_s, timing=self._timing)

        once = self._config.has(KubeCompFault.NO_RETRY)
        tries = 1 if once or intent.gpuid in self._stuck else None
        end = await self._mover.carry_out(
            intent,
            may_detach,
            go_back=go_back,
            tries=tries,
            is_wanted=lambda: pod is None or pod.stale_demand is not None or self._shortfall(pod) > 0,
        )
        record(self._context.log, "move-ended", device=intent.gpuid, end=end.value)
        if end is End.MOVED:
            self._placed[intent.gpuid] = intent.origin, self._loop_s()
        self._metrics.count(KubeCompCounter.MOVED if end is End.MOVED else KubeCompCounter.ABANDONED)
        if end is End.STUCK and not once:
            self._stuck[intent.gpuid] = self._loop_s() + self._timing.requeue_last_s
        else:
            self._stuck.pop(intent.gpuid, None)
            await self._journal.end(intent)
        self._is_published = False
        await self._publish()
        return end

    # What was left

    async def _recover(self) -> None:
        """Bring to an end what an earlier incarnation or a failure left; each step may be repeated."""
        await self._forget_nothing()
        for intent in await self._journal.open(self.pool):
            if intent.gpuid not in self._stuck:
                await self._resume(intent)
        await self._withdrawals.ask_back()
        self._is_clean = True

    async def _forget_nothing(self) -> None:
        self._reader.seed(pool_state(await self._board.read(f"{POOL_PREFIX}{self.pool}")))
        await self._withdrawals.adopt(self._table.nodes)
        while not self._table.is_known:
            await self._reader.read_all(self._table.chassis)
            if not self._table.is_known:
                await rest(self._timing.read_back_poll_s)

    async def _resume(self, intent: Intent) -> None:
        pod = next((pod for pod in self._view.waiting(self.pool) if pod.uid == intent.uid), None)
        wanted = pod is not None and pod.node == intent.target_node
        record(self._context.log, "resuming", device=intent.gpuid, pod=intent.pod, wanted=wanted)
        await self._mover.await_late_detach(intent)
        end = await self._finish(intent, pod if wanted else None, go_back=not wanted)
        if end is not End.STUCK:
            self._metrics.count(KubeCompCounter.RECOVERED)

    async def _retry_stuck(self) -> bool:
        """Try the next device that no attach brought up once more, after all pods; whether there was one."""
        due = [gpuid for gpuid, due_s in sorted(self._stuck.items()) if due_s <= self._loop_s()]
        for intent in await self._journal.open(self.pool) if due else ():
            if intent.gpuid in due:
                await self._resume(intent)
                return True
        for gpuid in due:
            del self._stuck[gpuid]
        return False

    def _loop_s(self) -> float:
        return asyncio.get_running_loop().time()
