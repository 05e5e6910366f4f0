"""Keeps one pod of each DaemonSet on every node that is its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from mews.kube.api.errors import ApiError, NotFoundError
from mews.kube.api.objects import (
    Object,
    is_deleting,
    is_terminal,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    phase_of,
    uid_of,
)
from mews.kube.api.resources import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from mews.kube.component import Context
from mews.kube.emulated.controllers.daemonset import history, policy
from mews.kube.emulated.controllers.owners import Informers, controller_reference
from mews.kube.emulated.controllers.pod_control import (
    PodControl,
    is_terminating_namespace,
    owners_of_change,
    slow_start,
)
from mews.kube.emulated.controllers.pods import pod_of
from mews.kube.emulated.controllers.revisions import Revisions, current
from mews.kube.emulated.controllers.syncing import MANAGER, Expectations, SyncLoop
from mews.kube.events import EventRecorder


class DaemonSetController:
    """Component: one for a cluster. ``events`` records as ``daemonset-controller``."""

    def __init__(self, context: Context, *, informers: Informers, events: EventRecorder) -> None:
        self._context = context
        self._events = events
        self._sets = informers.of(DAEMON_SETS)
        self._nodes = informers.of(NODES)
        self._pods = informers.owned(PODS)
        self._revisions = informers.owned(CONTROLLER_REVISIONS)
        self._expectations = Expectations()
        self._history = Revisions(context.kube, owned=self._revisions, expectations=self._expectations)
        self._control = PodControl(
            context, events, resource=DAEMON_SETS, pods=self._pods, expectations=self._expectations
        )
        self._backoffs: dict[str, dict[str, tuple[float, float]]] = {}
        self._loop = SyncLoop(context, self._sync)

    async def run(self) -> None:
        """Run until cancelled."""
        for informer in (self._sets, self._nodes, self._pods.informer, self._revisions.informer):
            await informer.synced()
        self._sets.on_change(self._loop.add_changed)
        self._nodes.on_change(self._node_changed)
        for owned in (self._pods, self._revisions):
            owned.informer.on_change(self._owned_changed)
        await self._loop.run()

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and _shape(old) == _shape(new):
            return
        for daemon_set in self._sets.items():
            self._loop.add(key_of(daemon_set))

    def _owned_changed(self, old: Object | None, new: Object | None) -> None:
        for key in owners_of_change(old, new, DAEMON_SETS.kind):
            self._loop.add(key)

    async def _sync(self, key: str) -> None:
        daemon_set = self._sets.at(key)
        if daemon_set is None:
            self._expectations.forget(key)
            self._backoffs.pop(key, None)
            return
        if not self._expectations.met(key) or is_deleting(daemon_set):
            return
        revisions = [*self._revisions.of(uid_of(daemon_set))]
        revision = await self._history.newest(
            daemon_set,
            revisions,
            make=lambda: history.made(daemon_set, revisions),
            collided=lambda: self._bump_collisions(daemon_set),
        )
        code = labels_of(revision).get(policy.REVISION_LABEL, "")
        nodes = [policy.judge(node, daemon_set) for node in self._nodes.items()]
        pods: dict[str, list[Object]] = {}
        for pod in await self._control.claim(daemon_set):
            if is_deleting(pod) and is_terminal(pod):
                continue
            pods.setdefault(policy.target_of(pod), []).append(pod)
        now = self._context.clock.now()
        failure = await self._manage(daemon_set, policy.plan(daemon_set, nodes, pods, code, now), code)
        if failure is None and self._expectations.met(key):
            failure = await self._manage(daemon_set, policy.update(daemon_set, nodes, pods, code, now), code)
            await self._clean_up(daemon_set, revisions, pods)
        await self._write_status(daemon_set, policy.status(daemon_set, nodes, pods, code, self._context.clock.now()))
        if failure is not None:
            raise failure

    # Revisions

    async def _bump_collisions(self, daemon_set: Object) -> None:
        status = daemon_set.get("status") or {}
        await self._write_status(daemon_set, {**status, "collisionCount": int(status.get("collisionCount", 0)) + 1})

    async def _clean_up(
        self, daemon_set: Object, revisions: Sequence[Object], pods: Mapping[str, Sequence[Object]]
    ) -> None:
        live = [labels_of(pod).get(policy.REVISION_LABEL, "") for found in pods.values() for pod in found]
        known = current(daemon_set, revisions)
        live += [] if known is None else [labels_of(known).get(policy.REVISION_LABEL, "")]
        await self._history.drop(history.to_clean_up(daemon_set, revisions, live))

    # Pods

    async def _manage(self, daemon_set: Object, plan: policy.DaemonPlan, code: str) -> Exception | None:
        reference = controller_reference(daemon_set, DAEMON_SETS)
        generation = policy.template_generation(daemon_set)
        template = daemon_set["spec"]["template"]

        async def create(number: int) -> None:
            made = policy.template_for(template, plan.create[number], code, generation)
            await self._control.create(daemon_set, pod_of(made, name_of(daemon_set), reference))

        failure = await slow_start(len(plan.create), create)
        if failure is not None and is_terminating_namespace(failure):
            failure = None
        doomed = [*plan.delete, *(pod for pod in plan.ended if self._may_bury(daemon_set, pod))]
        return failure or await self._delete(daemon_set, doomed)

    def _may_bury(self, daemon_set: Object, pod: Object) -> bool:
        """Tell of a pod that ended; a failed one is left alone for a while after the last one there."""
        about, name = self._control.about(daemon_set), f"{namespace_of(pod)}/{name_of(pod)}"
        node, phase = policy.target_of(pod), phase_of(pod)
        if phase == "Succeeded":
            text = f"Found succeeded daemon pod {name} on node {node}, will try to delete it"
            self._events.event(about, "Normal", "SucceededDaemonPod", text)
            return True
        waits, now_s = self._backoffs.setdefault(key_of(daemon_set), {}), asyncio.get_running_loop().time()
        place = f"{uid_of(daemon_set)}/{node}"
        span_s, since_s = waits.get(place, (0.0, 0.0))
        if now_s - since_s < span_s:
            self._loop.add_after(key_of(daemon_set), span_s)
            return False
        forgotten = now_s - since_s > 2 * policy.LAST_BACKOFF_S
        longer_s = policy.FIRST_BACKOFF_S if span_s == 0.0 or forgotten else min(2 * span_s, policy.LAST_BACKOFF_S)
        waits[place] = (longer_s, now_s)
        text = f"Found failed daemon pod {name} on node {node}, will try to kill it"
        self._events.event(about, "Warning", "FailedDaemonPod", text)
        return True

    async def _delete(self, daemon_set: Object, doomed: Sequence[Object]) -> Exception | None:
        found = await asyncio.gather(*(self._control.delete(daemon_set, p) for p in doomed), return_exceptions=True)
        for result in found:
            if isinstance(result, ApiError):
                return result
            if isinstance(result, BaseException):
                raise result
        return None

    async def _write_status(self, daemon_set: Object, status: Mapping[str, object]) -> None:
        if status != (daemon_set.get("status") or {}):
            body = {**daemon_set, "status": dict(status)}
            try:
                written = await self._context.kube.replace(
                    DAEMON_SETS, body, subresource="status", field_manager=MANAGER
                )
            except NotFoundError:
                return
            self._expectations.wrote(key_of(daemon_set), self._sets, written)
        span_s = policy.min_ready_s(daemon_set)
        if span_s and status.get("numberReady", 0) != status.get("numberAvailable", 0):
            self._loop.add_after(key_of(daemon_set), span_s)


def _shape(node: Object) -> tuple[object, ...]:
    """Return what of a node may matter to a DaemonSet."""
    spec = node.get("spec") or {}
    return (labels_of(node), spec.get("taints"), spec.get("unschedulable"))
