"""The operator: caches, a queue of keys, one worker, and the elastic scheduler (the KOD2 paper, section 4.2).

All that it decides is written to the TFJobs' status before it is acted on: whenever it dies, its successor reads the
queues from there. Decisions shrink before they place, so that half of them is safe.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping
from functools import partial

from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import (
    Object,
    is_deleting,
    is_terminal,
    key_of,
    micro_timestamp,
    node_name_of,
    timestamp,
    uid_of,
)
from mews.kube.client.workqueue import WorkQueue
from mews.kube.clock import rest
from mews.kube.component import Context, record
from mews.systems.kod2 import status as statuses
from mews.systems.kod2.cluster_cache import ClusterCache
from mews.systems.kod2.config import OperatorConfig, Scheduling
from mews.systems.kod2.events import TFJobEventWriter
from mews.systems.kod2.metrics import Kod2Counter, Kod2MemoryMetrics, Kod2Metrics
from mews.systems.kod2.model import (
    Decision,
    ElasticJob,
    Placed,
    Queues,
    Running,
    ScaledIn,
    ScaledOut,
    Starved,
    State,
    WaitReason,
    is_worker,
)
from mews.systems.kod2.podspec import owner_uid, task_of
from mews.systems.kod2.policy import decide, next_look_s, published, weights_of
from mews.systems.kod2.reconciler import Reconciler
from mews.systems.kod2.room import FreeRoom
from mews.systems.kod2.scaling import rehome
from mews.systems.kod2.tfjob import TFJob
from mews.systems.kod2.view import QueueView

PASS = "*"
"""The key that stands for a scheduling pass."""
_FIRST_PAUSE_S = 0.1


class Kod2Operator:
    """Component ``operator``. One runs at a time."""

    def __init__(
        self, context: Context, config: OperatorConfig | None = None, metrics: Kod2Metrics | None = None
    ) -> None:
        self._context = context
        self._config = config or OperatorConfig()
        self._metrics: Kod2Metrics = metrics if metrics is not None else Kod2MemoryMetrics()
        self._cache = ClusterCache(context, self._config)
        self._view = QueueView(self._cache, self._config)
        self._events = TFJobEventWriter(context)
        self._queue = WorkQueue()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._left_alone: dict[str, tuple[int, float]] = {}
        self._moved: dict[tuple[str, str], float] = {}
        self._reconciler = Reconciler(
            context,
            self._config,
            self._cache,
            self._view,
            events=self._events,
            metrics=self._metrics,
            again=self._again,
            decide=self._decide,
        )

    async def run(self) -> None:
        """Run until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._cache.run())
                tasks.create_task(self._events.run())
                await self._cache.synced()
                self._cache.tfjobs.on_change(self._tfjob_changed)
                self._cache.pods.on_change(self._pod_changed)
                self._cache.services.on_change(self._service_changed)
                self._cache.nodes.on_change(self._node_changed)
                self._cache.pools.on_change(lambda old, new: self._decide())
                tasks.create_task(self._tick())
                await self._work()
        finally:
            for timer in self._timers.values():
                timer.cancel()

    # What makes it look

    def _decide(self) -> None:
        if self._config.scheduling == Scheduling.KOD2:
            self._queue.add(PASS)

    def _again(self, key: str, delay_s: float) -> None:
        """Look at the key once more by then; only the earliest of several such wishes counts."""
        loop = asyncio.get_running_loop()
        known, due = self._timers.get(key), loop.time() + delay_s
        if known is not None and not known.cancelled() and loop.time() < known.when() <= due:
            return
        if known is not None:
            known.cancel()
        self._timers[key] = loop.call_later(delay_s, self._queue.add, key)

    def _forget_timer(self, key: str) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    async def _tick(self) -> None:
        while True:
            await rest(self._config.tick_s)
            if self._config.scheduling == Scheduling.KOD2:
                self._decide()
            else:
                self._show_states()

    def _tfjob_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._queue.add(key_of(new))
        if new is None or old is None or statuses.generation_of(old) != statuses.generation_of(new):
            self._decide()

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        owner = self._look_at_owner(new or old or {})
        freed = new is None or (is_terminal(new) and not (old is not None and is_terminal(old)))
        bound = new is not None and node_name_of(new) and not (old is not None and node_name_of(old))
        if freed:
            for key in sorted(self._reconciler.lacking):
                self._queue.add(key)
        if freed or (bound and not owner):
            self._decide()

    def _service_changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is None:
            self._look_at_owner(old)

    def _look_at_owner(self, owned: Object) -> str:
        """Queue the TFJob that owns an object; its name, "" where there is none."""
        metadata = owned["metadata"]
        owner = next((ref["name"] for ref in metadata.get("ownerReferences") or () if ref["kind"] == "TFJob"), "")
        if owner and owner_uid(owned):
            self._queue.add(f"{metadata['namespace']}/{owner}")
        return str(owner)

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if old is None or new is None or _room_of(old) != _room_of(new):
            self._decide()

    # The worker

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                await (self._pass() if key == PASS else self._sync(key))
            except (ApiError, UnavailableError) as error:
                self._metrics.count(Kod2Counter.RETRIES)
                self._context.log.info("%s is tried again: %s", key, error)
                self._queue.retry(key)
            except Exception as error:
                # Whatever it is, it is this key's: nobody else's job waits for it.
                self._context.log.exception("%s failed and is tried again", key)
                self._queue.retry(key)
                await self._failed(key, error)
            else:
                self._queue.forget(key)

    async def _failed(self, key: str, error: Exception) -> None:
        """A TFJob over which the operator itself failed gives its room back and says so."""
        self._metrics.count(Kod2Counter.ERRORS)
        tfjob = None if key == PASS else self._cache.tfjob(key)
        try:
            if tfjob is not None and statuses.stall_of(tfjob) is None:
                await self._reconciler.hold_back(tfjob, "ReconcileError", f"{type(error).__name__}: {error}")
        except Exception:
            self._context.log.exception("%s: that it failed could not be written", key)

    async def _sync(self, key: str) -> None:
        tfjob = self._cache.tfjob(key)
        if tfjob is not None and not is_deleting(tfjob):
            # Whatever it must be looked at again for, it asks for anew.
            self._forget_timer(key)
            await self._reconciler.sync(tfjob)
        else:
            self._reconciler.lacking.discard(key)
            self._left_alone.pop(key, None)
            self._forget_timer(key)

    # The elastic scheduler

    async def _pass(self) -> None:
        loop = asyncio.get_running_loop()
        begun_s, now_s = loop.time(), self._context.clock.now()
        queues = self._view.queues(now_s, self._held(now_s))
        verdict = decide(queues, now_s, self._config.options)
        self._metrics.decided(loop.time() - begun_s)
        await self._show_weights(queues)
        for decision in verdict.decisions:
            if not await self._tried(decision.job, self._act(decision)):
                self._queue.add(PASS)  # what follows may have counted on it: the rest is decided anew, without that job
                return
        for key in sorted(verdict.reasons):
            await self._tried(key, self._explain(key, verdict.reasons[key]))
        await self._follow(queues, verdict.reasons)
        await self._rehome(queues, {decision.job for decision in verdict.decisions})
        self._show_states()
        then = self._view.queues(now_s, self._held(now_s)) if verdict.decisions else queues
        look_s = next_look_s(then, now_s, self._config.options)
        if look_s is not None:
            self._again(PASS, look_s - now_s)

    async def _follow(self, queues: Queues, reasons: Mapping[str, WaitReason]) -> None:
        """The bounds of jobs whose spec was changed, and that it has been acted on."""
        for runner in queues.running:
            if not runner.held:
                key = runner.job.key
                await self._tried(key, self._show_bounds(runner.job, replicas=runner.job.wanted))
                if key not in reasons:
                    await self._tried(key, self._lacks_nothing(key))
        for entry in queues.waiting:
            await self._tried(entry.job.key, self._show_bounds(entry.job))

    async def _lacks_nothing(self, key: str) -> None:
        tfjob = self._cache.tfjob(key)
        if tfjob is not None and "reason" in (tfjob["status"].get("elastic") or {}):
            await self._cache.write_status(tfjob, statuses.with_elastic(statuses.status_of(tfjob), reason=None))

    async def _show_bounds(self, job: ElasticJob, **fields: int) -> None:
        tfjob = self._cache.tfjob(job.key)
        if tfjob is None:
            return
        status = statuses.status_of(tfjob)
        shown: dict[str, float] = {"min": job.minimum, "max": job.maximum, **fields}
        if any(status["elastic"].get(name) != value for name, value in shown.items()):
            if fields and statuses.state_of(status) == State.RUNNING:
                shown["weight"] = self._base_weight(job.key)
            await self._cache.write_status(tfjob, statuses.with_elastic(status, **shown))

    async def _tried(self, key: str, act: Awaitable[object]) -> bool:
        """Do something about one TFJob; whether it was done. If not, since the server did not take it or the operator
        failed over it, the others go on without that job, which passes leave alone for a while."""
        try:
            await act
        except UnavailableError:
            raise  # nobody's could be done
        except Exception as error:
            times = self._left_alone.get(key, (0, 0.0))[0]
            delay_s = statuses.delay_s(times, first_s=_FIRST_PAUSE_S)
            self._left_alone[key] = (times + 1, self._context.clock.now() + delay_s)
            refused = isinstance(error, ApiError)
            self._metrics.count(Kod2Counter.RETRIES if refused else Kod2Counter.ERRORS)
            level, trace = (logging.INFO, None) if refused else (logging.ERROR, error)
            self._context.log.log(level, "%s is left alone for %g s: %s", key, delay_s, error, exc_info=trace)
            self._again(PASS, delay_s)
            return False
        self._left_alone.pop(key, None)
        return True

    def _held(self, now_s: float) -> set[str]:
        return {key for key, (_, until_s) in self._left_alone.items() if until_s > now_s}

    async def _show_weights(self, queues: Queues) -> None:
        raw = weights_of(queues)
        for entry in queues.waiting:
            shown = round(1.0 if entry.starving else published(raw[entry.job.key]), 6)
            await self._tried(entry.job.key, self._show_weight(entry.job.key, shown))

    async def _show_weight(self, key: str, shown: float) -> None:
        tfjob = self._cache.tfjob(key)
        if tfjob is not None and tfjob["status"]["elastic"].get("weight") != shown:
            await self._cache.write_status(tfjob, statuses.with_elastic(statuses.status_of(tfjob), weight=shown))

    async def _act(self, decision: Decision) -> None:
        tfjob = self._cache.tfjob(decision.job)
        if tfjob is None:
            return
        status, now_s = statuses.status_of(tfjob), self._context.clock.now()
        stamp = micro_timestamp(now_s)
        tasks = statuses.placement_of(status)
        match decision:
            case Starved():
                status = statuses.with_elastic(status, state=State.STARVING.value, weight=1.0)
                kind, reason = "Warning", "Starving"
                text = f"it waits for longer than {self._config.starve_limit_s:g} s and goes before all others now"
                self._metrics.count(Kod2Counter.STARVED)
            case Placed():
                status = statuses.with_elastic(
                    status, state=State.RUNNING.value, placement=dict(decision.tasks), reason=None,
                    workers=_workers(decision.tasks), weight=self._base_weight(decision.job),
                    replicas=self._replicas(tfjob),
                )  # fmt: skip
                status["startTime"] = timestamp(now_s)
                kind, reason, text = "Normal", "Placed", f"placed: {_where(decision.tasks)}"
                self._metrics.count(Kod2Counter.PLACED)
            case ScaledIn():
                left = {task: node for task, node in tasks.items() if task not in decision.tasks}
                status = statuses.with_elastic(status, placement=left, workers=_workers(left), scaledAt=stamp)
                kind, reason = "Normal", "ScaledIn"
                why = f"for {decision.beneficiary}" if decision.beneficiary else "as its spec asks for"
                text = f"gives {', '.join(decision.tasks)} {why}; {_workers(left)} worker(s) left"
                self._metrics.count(Kod2Counter.SCALED_IN, len(decision.tasks))
            case ScaledOut():
                more = {**tasks, **decision.tasks}
                status = statuses.with_elastic(status, placement=more, workers=_workers(more), scaledAt=stamp)
                kind, reason = "Normal", "ScaledOut"
                text = f"gets {_where(decision.tasks)}; {_workers(more)} worker(s) now"
                self._metrics.count(Kod2Counter.SCALED_OUT, len(decision.tasks))
        record(self._context.log, reason.lower(), job=decision.job, text=text)
        tfjob = await self._cache.write_status(tfjob, status)
        self._queue.add(decision.job)
        await self._events.emit(tfjob, kind, reason, text)

    def _replicas(self, tfjob: Object) -> int | None:
        job = self._cache.good_spec_of(tfjob)
        return None if job is None else job.workers.count

    def _base_weight(self, key: str) -> float:
        return round(published(weights_of(self._view.queues(self._context.clock.now())).get(key, 0.0)), 6)

    async def _explain(self, key: str, reason: WaitReason) -> None:
        tfjob = self._cache.tfjob(key)
        if tfjob is None:
            return
        status = statuses.status_of(tfjob)
        reported = str((status.get("elastic") or {}).get("reason") or "")
        text = f"{reason.code}: {reason.text}"
        if reported == text:
            return
        tfjob = await self._cache.write_status(tfjob, statuses.with_elastic(status, reason=text))
        if reported.partition(":")[0] != reason.code:
            kind = "Warning" if reason.code in ("LargerThanCluster", "PlacementNotFound") else "Normal"
            await self._events.emit(tfjob, kind, reason.code, reason.text)

    # Nodes that do not take what was placed on them

    async def _rehome(self, queues: Queues, busy: set[str]) -> None:
        room = FreeRoom(queues.cluster, queues.running)
        # Where no node takes a task, it would go to and fro between two of them without end: once in a tick is enough.
        now = self._context.clock.now()
        self._moved = {task: at for task, at in self._moved.items() if now - at < self._config.tick_s}
        for runner in queues.running:
            if runner.job.key not in busy:
                await self._tried(runner.job.key, self._rehome_job(room, runner))

    async def _rehome_job(self, room: FreeRoom, runner: Running) -> None:
        tfjob = self._cache.tfjob(runner.job.key)
        job = self._cache.good_spec_of(tfjob) if tfjob is not None else None
        if tfjob is None or job is None:
            return
        pods = self._cache.pods_of(uid_of(tfjob))
        for task, node in runner.tasks.items():
            if task in pods or not job.has_task(task) or (runner.job.key, task) in self._moved:
                continue
            if not self._is_stuck(runner.job.key, node):
                continue
            home = rehome(room, runner, task, partial(self._may_start, job, task))
            if home is None:
                continue
            placement = {**statuses.placement_of(tfjob["status"]), task: home}
            status = statuses.with_elastic(statuses.status_of(tfjob), placement=placement)
            tfjob = await self._cache.write_status(tfjob, status)
            self._moved[runner.job.key, task] = self._context.clock.now()
            self._queue.add(runner.job.key)
            await self._events.emit(
                tfjob, "Normal", "Moved", f"{task} goes to {home}: {node} does not take it any more"
            )
            return

    def _is_stuck(self, key: str, node: str) -> bool:
        """The node is gone or closed; or it has no room and nobody there is on the way out."""
        if not self._view.takes(node):
            return True
        return key in self._reconciler.lacking and not self._is_being_left(node)

    def _may_start(self, job: TFJob, task: str, node: str) -> bool:
        """Return whether a node has the room for a task, pods aside that are on their way out; a pool may give it."""
        pooled = self._view.is_pooled(job, job.role_of(task))
        return pooled or self._view.room_for(job, task, node) or self._is_being_left(node)

    def _is_being_left(self, node: str) -> bool:
        return any(is_deleting(pod) or self._is_leaving(pod) for pod in self._cache.pods_on(node))

    def _is_leaving(self, pod: Object) -> bool:
        """Return a TFJob's pod that its job does not count on any more."""
        for reference in pod["metadata"].get("ownerReferences") or ():
            tfjob = self._cache.tfjob(f"{pod['metadata']['namespace']}/{reference['name']}")
            if tfjob is not None and uid_of(tfjob) == owner_uid(pod):
                labels = pod["metadata"].get("labels") or {}
                return task_of(labels) not in statuses.placement_of(tfjob.get("status") or {})
        return False

    def _show_states(self) -> None:
        known = {key_of(tfjob): tfjob.get("status") or {} for tfjob in self._cache.all_tfjobs()}
        self._metrics.states(Counter(map(statuses.state_of, known.values())))
        running = {key: status for key, status in known.items() if statuses.state_of(status) == State.RUNNING}
        self._metrics.workers({key: int(status["elastic"].get("workers") or 0) for key, status in running.items()})


def _workers(tasks: Iterable[str]) -> int:
    return sum(is_worker(task) for task in tasks)


def _where(tasks: Mapping[str, str]) -> str:
    by_node: dict[str, list[str]] = {}
    for task, node in tasks.items():
        by_node.setdefault(node, []).append(task)
    return "; ".join(f"{', '.join(names)} on {node}" for node, names in sorted(by_node.items()))


def _room_of(node: Object) -> tuple[object, ...]:
    spec, status = node.get("spec") or {}, node.get("status") or {}
    ready = [c.get("status") for c in status.get("conditions") or () if c.get("type") == "Ready"]
    return (
        spec.get("unschedulable"),
        spec.get("taints"),
        status.get("allocatable"),
        ready,
        node["metadata"].get("labels"),
    )
