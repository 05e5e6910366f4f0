"""Keeps the numbers of PodDisruptionBudgets current, by which evictions are judged."""

from __future__ import annotations

from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import Object, key_of, labels_of, name_of, namespace_of, uid_of
from mews.kube.api.resources import (
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)
from mews.kube.api.selectors import match_expressions
from mews.kube.component import Context
from mews.kube.emulated.controllers.disruption import policy
from mews.kube.emulated.controllers.owners import Informers, controller_of
from mews.kube.emulated.controllers.syncing import MANAGER, Expectations, SyncLoop
from mews.kube.events import EventRecorder, reference

_SCALED = {each.kind: each for each in (REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS, DEPLOYMENTS)}


class DisruptionController:
    """Component: one for a cluster. ``events`` records as ``controllermanager``, as upstream's does."""

    def __init__(self, context: Context, *, informers: Informers, events: EventRecorder) -> None:
        self._context = context
        self._events = events
        self._budgets = informers.of(DISRUPTION_BUDGETS)
        self._pods = informers.of(PODS)
        self._expectations = Expectations()
        self._loop = SyncLoop(context, self._sync)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._budgets.synced()
        await self._pods.synced()
        self._budgets.on_change(self._budget_changed)
        self._pods.on_change(self._pod_changed)
        await self._loop.run()

    def _budget_changed(self, _old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._loop.add(key_of(new))

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        for budget in self._budgets.items():
            for pod in (old, new):
                if pod is not None and _covers(budget, pod):
                    self._loop.add(key_of(budget))

    async def _sync(self, key: str) -> None:
        budget = self._budgets.at(key)
        if budget is None:
            self._expectations.forget(key)
            return
        if not self._expectations.met(key):
            return
        pods = [pod for pod in self._pods.items() if _covers(budget, pod)]
        about = reference({**budget, "kind": DISRUPTION_BUDGETS.kind, "apiVersion": DISRUPTION_BUDGETS.api_version})
        if not pods:
            self._events.event(about, "Normal", "NoPods", "No matching pods found")
        scale = await self._scale(pods) if policy.needs_scale(budget) else 0
        now = self._context.clock.now()
        for pod in policy.overdue(budget, pods, now):
            text = f"Pod was expected by PDB {key} to be deleted but it wasn't"
            self._events.event(reference(pod, kind="Pod"), "Warning", "NotDeleted", text)
        status = policy.status(budget, pods, scale, now)
        if status.get("disruptedPods"):
            self._loop.add_after(key, policy.recheck_s(status["disruptedPods"], now))
        if status != (budget.get("status") or {}):
            try:
                written = await self._context.kube.replace(
                    DISRUPTION_BUDGETS, {**budget, "status": status}, subresource="status", field_manager=MANAGER
                )
            except NotFoundError:
                return
            self._expectations.wrote(key, self._budgets, written)

    async def _scale(self, pods: list[Object]) -> int:
        """Return what the controllers of the pods want in all; pods without one count for nothing."""
        sizes: dict[str, int] = {}
        for pod in pods:
            owner = controller_of(pod)
            if owner is not None and str(owner["uid"]) not in sizes:
                size = await self._size(str(owner["kind"]), str(owner["name"]), namespace_of(pod), str(owner["uid"]))
                sizes |= size
        return sum(sizes.values())

    async def _size(self, kind: str, name: str, namespace: str, uid: str) -> dict[str, int]:
        """uid -> size of a controller; of a ReplicaSet's Deployment where it has one."""
        resource = _SCALED.get(kind)
        if resource is None:
            return {}
        try:
            found = await self._context.kube.get(resource, name, namespace=namespace)
        except NotFoundError:
            return {}
        owner = controller_of(found)
        if kind == REPLICA_SETS.kind and owner is not None and owner.get("kind") == DEPLOYMENTS.kind:
            return await self._size(DEPLOYMENTS.kind, str(owner["name"]), namespace, str(owner["uid"]))
        return {uid_of(found): int(found["spec"].get("replicas", 1))} if uid_of(found) == uid else {}


def _covers(budget: Object, pod: Object) -> bool:
    selector = budget["spec"].get("selector")
    if selector is None or namespace_of(budget) != namespace_of(pod) or not name_of(pod):
        return False
    return match_expressions(selector, labels_of(pod))
