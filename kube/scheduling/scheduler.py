"""The scheduler at work: watches, queue, cycle, and what follows a decision.

``Scheduler(context, SchedulerConfig(profiles=(Profile("default-scheduler", default_plugins()),)))``, then ``run()``.
It takes pending pods whose ``spec.schedulerName`` is one of its profiles and counts the bound pods of all. All it
knows is rebuilt from the API at the start; a pod that an earlier incarnation had assumed is simply pending again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any

from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object, is_terminal, name_of, node_name_of, uid_of
from mews.kube.api.resources import NODES, PODS, Resource
from mews.kube.client.informer import Informer
from mews.kube.component import Context, record
from mews.kube.scheduling import binding, messages
from mews.kube.scheduling.binding import Attempt
from mews.kube.scheduling.cache import Cache
from mews.kube.scheduling.config import SchedulerConfig
from mews.kube.scheduling.cycle import Decider, Found, best
from mews.kube.scheduling.errors import OvertakenError, ProfileError
from mews.kube.scheduling.events import ProfileEventRecorder, SchedulingEventWriter
from mews.kube.scheduling.extenders import SchedulerExtender, narrow
from mews.kube.scheduling.framework import SUCCESS, CycleState, Status, error, unschedulable
from mews.kube.scheduling.handle import ProfileHandle
from mews.kube.scheduling.late import LateInformers, NeededBy
from mews.kube.scheduling.nodeinfo import matters
from mews.kube.scheduling.nominations import Nominations
from mews.kube.scheduling.podinfo import PodInfo, pod_info
from mews.kube.scheduling.points import ExtensionPoints
from mews.kube.scheduling.queue import Entry, Queue
from mews.kube.scheduling.statuses import StatusWriter
from mews.kube.scheduling.verdict import failed
from mews.kube.scheduling.waiting import PodAtPermit as Waiting

LIVE_PODS = "status.phase!=Succeeded,status.phase!=Failed"
"""What is watched of pods: a finished one leaves the watch and so the books (contract apiserver.md section 1)."""


class Scheduler:
    """One queue and one cache under one or several profiles. Made within a running loop."""

    def __init__(self, context: Context, config: SchedulerConfig, extenders: Sequence[SchedulerExtender] = ()) -> None:
        self._context = context
        self._extenders = tuple(extenders)
        self._config = config
        self._informers: dict[tuple[Resource, str | None], Informer] = {}
        self._waking: list[tuple[Resource, Informer]] = []
        self._late = LateInformers(self._make_late, self.spawn, self._pending)
        self._tasks: asyncio.TaskGroup | None = None
        self._early: list[Coroutine[Any, Any, None]] = []
        self._waiting: dict[str, Waiting] = {}
        self._early_pods: list[Object] | None = []
        self._cache = Cache()
        self._nominations = Nominations()
        self._events = SchedulingEventWriter(context.kube, context.clock, config.instance)
        self._statuses = StatusWriter(context.kube, context.clock)
        self._informers[PODS, None] = Informer(context.kube, PODS, field_selector=LIVE_PODS, lean=True)
        self._informers[NODES, None] = Informer(context.kube, NODES, lean=True)
        self._informers[NODES, None].on_change(self._node_changed)
        self._informers[PODS, None].on_change(self._pod_changed)
        self._points = {p.scheduler_name: ExtensionPoints(p, ProfileHandle(self, p)) for p in config.profiles}
        self._decider = Decider(self._cache, self._nominations.on, self._nominations.__bool__)
        self._queue = self._make_queue()
        self._watch_wakes()

    def _make_queue(self) -> Queue:
        sorters = {p.queue_sort[0].name: p.queue_sort[0] for p in self._points.values() if p.queue_sort}
        if len(sorters) != 1 or not all(p.queue_sort for p in self._points.values()):
            raise ProfileError(
                f"profiles share one queue, so one QueueSort plugin; they have {sorted(sorters) or 'none'}"
            )
        return Queue(
            self._config,
            now=self._context.clock.now,
            sort_key=next(iter(sorters.values())).sort_key,
            may_queue=lambda pod: self._points[pod.scheduler_name].may_queue(pod),
            wakes={(name, plugin): w for name, p in self._points.items() for plugin, w in p.wakes.items()},
        )

    def _watch_wakes(self) -> None:
        for points in self._points.values():
            for wakes in points.wakes.values():
                for wake in wakes:
                    if wake.resource not in self._late:
                        self.informer(wake.resource, wake.namespace)
        for resource, informer in self._waking + [(each, made) for (each, _), made in self._informers.items()]:
            if resource not in (PODS, NODES):
                informer.on_change(lambda old, new, resource=resource: self._queue.change(resource, old, new))  # type: ignore[misc]

    # ------------------------------------------------------------------------------------------------------- running

    async def run(self) -> None:
        """Schedule pods until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            for informer in self._informers.values():
                tasks.create_task(informer.run())
            for informer in self._informers.values():
                await informer.synced()
            self._take_over()
            tasks.create_task(self._events.run())
            tasks.create_task(self._statuses.run())
            for work in self._early:
                self.spawn(work)
            while True:
                entry = await self._queue.pop()
                await self._decide(entry)
                for plugin in self._points[entry.pod.scheduler_name].holds_cycle:
                    await plugin.cycle_free()
                # Let watches and bindings go on between two decisions.
                await asyncio.sleep(0)

    def _take_over(self) -> None:
        """Queue what was pending at the start, the oldest first."""
        early, self._early_pods = self._early_pods or [], None
        for pod in sorted(early, key=lambda p: (p["metadata"].get("creationTimestamp") or "", name_of(p))):
            current = self._informers[PODS, None].get(name_of(pod), pod["metadata"]["namespace"])
            if current is not None and uid_of(current) == uid_of(pod) and not node_name_of(current):
                self._pending(pod_info(current))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work beside the cycle; errors of the API are logged."""
        if self._tasks is None:
            self._early.append(work)
            return
        task = self._tasks.create_task(self._guarded(work))
        task.add_done_callback(lambda _: work.close())  # one that is cancelled before its first step awaits nothing

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (ApiError, UnavailableError) as failed:
            self._context.log.warning("scheduler: %s", failed)

    def informer(self, resource: Resource, namespace: str | None = None) -> Informer:
        """Return the shared informer, made when first asked for."""
        key = (resource, namespace)
        if key not in self._informers:
            if self._tasks is not None:
                raise ProfileError(
                    f"informer of {resource.plural}: too late: plugins must request it in their constructors"
                )
            self._informers[key] = Informer(self._context.kube, resource, namespace=namespace)
        return self._informers[key]

    def late_informer(self, resource: Resource, needed_by: NeededBy) -> Informer:
        """Return the shared informer of a resource that only such pods need."""
        if self._tasks is not None:
            raise ProfileError(
                f"informer of {resource.plural}: too late: plugins must request it in their constructors"
            )
        return self._late.informer(resource, needed_by)

    def _make_late(self, resource: Resource) -> Informer:
        """Its users' handlers come first, so that they know of a change before a pod is retried for it."""
        informer = Informer(self._context.kube, resource)
        self._waking.append((resource, informer))
        return informer

    # ------------------------------------------------------------------------------------------------------- watches

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._cache.set_node(new)
        elif old is not None:
            self._cache.remove_node(name_of(old))
        if old is None or new is None or matters(old, new):
            self._queue.change(NODES, old, new)

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None and is_terminal(new):
            new = None
        if old is not None and (new is None or uid_of(old) != uid_of(new)):
            self._gone(old)
            old = None
        if new is None:
            return
        if node_name_of(new):
            self._bound_pod(old, new)
        elif self._early_pods is not None:
            if old is None:
                self._early_pods.append(new)
        elif str(new["spec"].get("schedulerName") or "default-scheduler") in self._points:
            known = self._queue.get(uid_of(new))
            self._pending(pod_info(new, known.pod if known is not None else None))

    def _pending(self, pod: PodInfo) -> None:
        if pod.scheduler_name not in self._points or self._late.keep(pod):
            return
        known = self._queue.get(pod.uid)
        if pod.nominated_node != (known.pod.nominated_node if known else ""):
            self._nominations.set(pod, pod.nominated_node)
        self._queue.add(pod)

    def _bound_pod(self, old: Object | None, new: Object) -> None:
        known = self._queue.get(uid_of(new))
        pod = pod_info(new, known.pod if known is not None else None)
        self._cache.set_pod(pod)
        if old is not None and not node_name_of(old):
            self._late.forget(pod.uid)
            self._queue.remove(pod.uid)
            self._nominations.remove(pod.uid)
            self._statuses.forget(pod.uid)
            old = None
        self._queue.change(PODS, old, new)

    def _gone(self, old: Object) -> None:
        uid = uid_of(old)
        self._late.forget(uid)
        nominated = self._nominations.node_of(uid)
        self._queue.remove(uid)
        self._nominations.remove(uid)
        self._statuses.forget(uid)
        if node_name_of(old):
            self._cache.remove_pod(uid)
        waiting = self._waiting.get(uid)
        if waiting is not None:
            waiting.reject("", "pod deleted while waiting on permit")
        if node_name_of(old) or nominated:
            self._queue.change(PODS, old, None)

    # ------------------------------------------------------------------------------------------------------ deciding

    async def _decide(self, entry: Entry) -> None:
        """One scheduling cycle. Awaits nothing but extenders, so nothing changes under it without them."""
        points, state, pod = self._points[entry.pod.scheduler_name], CycleState(), entry.pod
        if pod.deleting:
            self._queue.remove(pod.uid)
            return
        try:
            status = await self._cycle(entry, points, state)
        except Exception as failed:
            self._context.log.exception("scheduling of %s failed", pod.key)
            status = error(str(failed))
        if not status.ok:
            self._queue.fail(entry)
            self._report(points, entry, status)

    async def _cycle(self, entry: Entry, points: ExtensionPoints, state: CycleState) -> Status:
        pod = entry.pod
        if not self._cache.order:
            self._refuse(entry, points, messages.NO_NODES, ())
            return SUCCESS
        hoped_for = self._nominations.node_of(pod.uid) or pod.nominated_node
        found = self._decider.find(points, state, pod, hoped_for=hoped_for)
        if self._extenders and found.error is None:
            await narrow(found, self._extenders, pod)
            if self._queue.get(pod.uid) is not entry:  # gone while they were asked
                return SUCCESS
            found.feasible = [node for node in found.feasible if node.name in self._cache.nodes]
        if found.error is not None:
            return found.error
        if not found.feasible:
            self._refused_everywhere(entry, points, state, found)
            return SUCCESS
        node = best(points, state, pod, found.feasible, self._context.rng)
        self._assume(Attempt(entry, points, state, pod, node))
        return SUCCESS

    def _refused_everywhere(self, entry: Entry, points: ExtensionPoints, state: CycleState, found: Found) -> None:
        explanations: list[str] = []
        nominated: str | None = None
        for plugin in points.post_filter:
            result = plugin.post_filter(state, entry.pod, found.refusals)
            nominated = result.nominated if result.nominated is not None else nominated
            if result.status.ok:
                explanations = []
                break
            explanations += [result.status.message] if result.status.message else []
            if not result.status.rejected:
                explanations = explanations[-1:]
                break
        if nominated is not None:
            self._nominations.set(entry.pod, nominated)
        message = messages.no_fit(
            len(self._cache.order), found.refusals, pre_filter=found.pre_filter, post_filter=", ".join(explanations)
        )
        self._refuse(entry, points, message, found.refused_by, nominated=nominated)

    def _refuse(
        self,
        entry: Entry,
        points: ExtensionPoints,
        message: str,
        refused_by: Iterable[str],
        *,
        nominated: str | None = None,
    ) -> None:
        self._queue.refuse(entry, refused_by)
        self._report(points, entry, Status(reasons=(message,)), reason="Unschedulable", nominated=nominated)

    def _report(
        self,
        points: ExtensionPoints,
        entry: Entry,
        status: Status,
        *,
        reason: str = "SchedulerError",
        nominated: str | None = None,
    ) -> None:
        """Event, and condition of a pod that is still pending. One that was deleted on its way gets the event, too
        (schedule_one.go, handleSchedulingFailure)."""
        pod, note = entry.pod, status.message
        is_gone = self._queue.get(pod.uid) is None
        if is_gone and self._cache.has(pod.uid):  # another scheduler has bound it
            return
        record(self._context.log, "unschedulable", pod=pod.key, reason=reason, message=note)
        name = points.profile.scheduler_name
        ProfileEventRecorder(self._events, name).record(
            pod, kind="Warning", reason="FailedScheduling", action="Scheduling", note=note
        )
        if not is_gone:
            self._statuses.refused(pod, reason, note, nominated)

    # ------------------------------------------------------------------------------------------------------- binding

    def _assume(self, attempt: Attempt) -> None:
        pod = attempt.pod
        self._cache.assume(pod, attempt.node)
        record(self._context.log, "assumed", pod=pod.key, node=attempt.node)
        refusal = SUCCESS
        for plugin in attempt.points.reserve:
            status = plugin.reserve(attempt.state, pod, attempt.node)
            if not status.ok:
                refusal = failed(f'running Reserve plugin "{plugin.name}"', plugin.name, status)
                break
        assert self._tasks is not None
        self._tasks.create_task(self._carry_on(attempt, refusal))

    async def _carry_on(self, attempt: Attempt, status: Status) -> None:
        """Beside the cycle: from Permit to the end, good or bad."""
        try:
            if status.ok and attempt.points.permit:
                status = await self._permit(attempt)
            if status.ok:
                status = await binding.bound(attempt, self._context.kube, self._extenders)
        except OvertakenError as overtaken:
            status = error(str(overtaken))
            if not is_terminal(overtaken.pod):  # the watch has told of its end already, and will not again
                self._cache.set_pod(pod_info(overtaken.pod))
            self._queue.remove(attempt.pod.uid)
        except Exception as failed:
            self._context.log.exception("binding of %s failed", attempt.pod.key)
            status = error(str(failed))
        if status.ok:
            await self._succeed(attempt)
        else:
            await self._give_up(attempt, status)

    async def _permit(self, attempt: Attempt) -> Status:
        """Known as waiting from before Permit is asked until the last word is spoken."""
        if self._queue.get(attempt.pod.uid) is not attempt.entry:
            return unschedulable("pod deleted before permit")
        waiting = self._waiting[attempt.pod.uid] = Waiting(attempt.pod, attempt.node)
        try:
            return await binding.permitted(attempt, waiting)
        finally:
            if self._waiting.get(attempt.pod.uid) is waiting:
                del self._waiting[attempt.pod.uid]

    async def _succeed(self, attempt: Attempt) -> None:
        pod, node = attempt.pod, attempt.node
        record(self._context.log, "bound", pod=pod.key, node=node)
        self._nominations.remove(pod.uid)
        self._queue.remove(pod.uid)
        self._statuses.forget(pod.uid)
        ProfileEventRecorder(self._events, attempt.points.profile.scheduler_name).record(
            pod, kind="Normal", reason="Scheduled", action="Binding", note=messages.assigned(pod.key, node)
        )
        for plugin in attempt.points.post_bind:
            await self._tidying(plugin.post_bind(attempt.state, pod, node), f"post-bind of {pod.key} by {plugin.name}")

    async def _give_up(self, attempt: Attempt, status: Status) -> None:
        """Unreserve, forget, queue again, and let others have the room."""
        entry, pod = attempt.entry, attempt.pod
        record(self._context.log, "given-up", pod=pod.key, node=attempt.node, message=status.message)
        for plugin in attempt.points.unreserve:
            what = f"unreserve of {pod.key} by {plugin.name}"
            await self._tidying(plugin.unreserve(attempt.state, pod, attempt.node), what)
        self._cache.forget(pod.uid)
        if status.rejected:
            final = binding.given_up(status, attempt.node)
            self._refuse(entry, attempt.points, final.message, (status.plugin,))
            self._queue.change(PODS, pod.pod, None, besides=pod.uid)
        else:
            self._queue.fail(entry)
            self._report(attempt.points, entry, status)
            self._queue.change(PODS, pod.pod, None)

    async def _tidying(self, work: Coroutine[Any, Any, None], what: str) -> None:
        """A plugin that fails here must not keep the room of a pod from being settled."""
        try:
            await work
        except (ApiError, UnavailableError) as failed:
            self._context.log.warning("%s: %s", what, failed)
        except Exception:
            self._context.log.exception("%s failed", what)

    # ------------------------------------------------------------------------------------------ what the handles need

    @property
    def context(self) -> Context:
        """The context that the scheduler was made with: clock, client, log."""
        return self._context

    @property
    def cache(self) -> Cache:
        """The scheduler's own view of the nodes, which changes as pods are assumed and bound."""
        return self._cache

    @property
    def waiting(self) -> Mapping[str, Waiting]:
        """Pods between assuming and binding, by uid."""
        return self._waiting

    @property
    def nominations(self) -> Nominations:
        """Which pods wait for room that preemption makes, and on which nodes."""
        return self._nominations

    @property
    def queue(self) -> Queue:
        """The pods that wait to be scheduled."""
        return self._queue

    @property
    def events(self) -> SchedulingEventWriter:
        """The writer that all profiles share."""
        return self._events

    def points(self, scheduler_name: str) -> ExtensionPoints:
        """Return the plugins of a profile by extension point."""
        return self._points[scheduler_name]
