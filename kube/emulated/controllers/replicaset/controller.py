"""Keeps as many pods of each ReplicaSet, and of each ReplicationController, as it wants."""

from __future__ import annotations

import asyncio

from mews.kube.api.errors import ApiError, NotFoundError
from mews.kube.api.objects import Object, is_deleting, key_of, labels_of, name_of, namespace_of, uid_of
from mews.kube.api.resources import PODS, REPLICA_SETS, Resource
from mews.kube.api.selectors import match_expressions
from mews.kube.component import Context
from mews.kube.emulated.controllers.owners import Informers, controller_of, controller_reference
from mews.kube.emulated.controllers.pod_control import (
    PodControl,
    is_terminating_namespace,
    owners_of_change,
    slow_start,
)
from mews.kube.emulated.controllers.pods import is_active, next_availability_s, pod_of
from mews.kube.emulated.controllers.replicaset import policy
from mews.kube.emulated.controllers.syncing import MANAGER, Expectations, SyncLoop
from mews.kube.events import EventRecorder


class ReplicaSetController:
    """Component: one for a cluster. ``events`` records as ``replicaset-controller``, or ``replication-controller``
    where ``resource`` is that: upstream, too, has one code for both (pkg/controller/replication/conversion.go)."""

    def __init__(
        self, context: Context, *, informers: Informers, events: EventRecorder, resource: Resource = REPLICA_SETS
    ) -> None:
        self._context = context
        self._resource = resource
        self._sets = informers.of(resource)
        self._siblings = informers.owned(resource)
        self._pods = informers.owned(PODS)
        self._expectations = Expectations()
        self._control = PodControl(context, events, resource=resource, pods=self._pods, expectations=self._expectations)
        self._loop = SyncLoop(context, self._sync)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._sets.synced()
        await self._pods.informer.synced()
        self._sets.on_change(self._loop.add_changed)
        self._pods.informer.on_change(self._pod_changed)
        await self._loop.run()

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        for key in owners_of_change(old, new, self._resource.kind):
            self._loop.add(key)
        if new is not None and controller_of(new) is None and len(self._sets):
            for replica_set in self._sets.items():
                if namespace_of(replica_set) == namespace_of(new) and _selects(_with_a_selector(replica_set), new):
                    self._loop.add(key_of(replica_set))

    async def _sync(self, key: str) -> None:
        stored = self._sets.at(key)
        if stored is None:
            self._expectations.forget(key)
            return
        replica_set = _with_a_selector(stored)
        if not self._expectations.met(key):
            return
        claimed = await self._control.claim(replica_set)
        active = [pod for pod in claimed if is_active(pod)]
        failure: Exception | None = None
        if not is_deleting(replica_set):
            failure = await self._manage(replica_set, active)
        await self._write_status(stored, active, failure)
        if failure is not None:
            raise failure

    async def _manage(self, replica_set: Object, active: list[Object]) -> Exception | None:
        missing = policy.to_create(replica_set, active)
        if missing:
            pod = pod_of(
                replica_set["spec"]["template"], name_of(replica_set), controller_reference(replica_set, self._resource)
            )
            failure = await slow_start(missing, lambda _: self._control.create(replica_set, pod))
            return None if failure is not None and is_terminating_namespace(failure) else failure
        doomed = policy.to_delete(replica_set, active, self._related(replica_set), self._context.clock.now())
        found = await asyncio.gather(*(self._control.delete(replica_set, p) for p in doomed), return_exceptions=True)
        for result in found:
            if isinstance(result, BaseException):
                if not isinstance(result, ApiError):
                    raise result
                return result
        return None

    def _related(self, replica_set: Object) -> list[Object]:
        owner = controller_of(replica_set)
        family = [replica_set] if owner is None else self._siblings.of(str(owner["uid"]))
        return [pod for relative in family for pod in self._pods.of(uid_of(relative))]

    async def _write_status(self, replica_set: Object, active: list[Object], failure: Exception | None) -> None:
        now = self._context.clock.now()
        message = None if failure is None else getattr(failure, "message", str(failure))
        status = policy.status(replica_set, active, message, now)
        if status != (replica_set.get("status") or {}):
            try:
                written = await self._context.kube.replace(
                    self._resource, {**replica_set, "status": status}, subresource="status", field_manager=MANAGER
                )
            except NotFoundError:
                return
            self._expectations.wrote(key_of(replica_set), self._sets, written)
        span_s = policy.min_ready_s(replica_set)
        if span_s and status.get("readyReplicas", 0) != status.get("availableReplicas", 0):
            self._loop.add_after(key_of(replica_set), next_availability_s(active, span_s, now))


def _with_a_selector(workload: Object) -> Object:
    """Return it with a selector of labels and expressions: a ReplicationController's is the labels themselves."""
    selector = workload["spec"].get("selector") or {}
    if "matchLabels" in selector or "matchExpressions" in selector:
        return workload
    return {**workload, "spec": {**workload["spec"], "selector": {"matchLabels": selector}}}


def _selects(replica_set: Object, pod: Object) -> bool:
    return match_expressions(replica_set["spec"].get("selector") or {}, labels_of(pod))
