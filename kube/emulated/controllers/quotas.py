"""Counts what a namespace uses of its ResourceQuotas (k8s.io/kubernetes pkg/controller/resourcequota, pkg/quota)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from mews.kube.api.errors import NotFound
from mews.kube.api.objects import Object, is_terminal, key_of, namespace_of
from mews.kube.api.pod_requests import pod_amount, pod_limit
from mews.kube.api.quantities import canonical, parse
from mews.kube.api.resources import (
    CONFIGMAPS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_QUOTAS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from mews.kube.component import Context
from mews.kube.emulated.controllers.owners import Informers
from mews.kube.emulated.controllers.syncing import MANAGER, Expectations, SyncLoop

_PLAIN = ("cpu", "memory", "ephemeral-storage")
_COUNTED: Mapping[str, Resource] = {
    **{
        name: each
        for each in (CONFIGMAPS, SECRETS, SERVICES, REPLICATION_CONTROLLERS, RESOURCE_QUOTAS)
        for name in (each.plural, f"count/{each.plural}")
    },
    **{
        f"count/{each.plural}.{each.group}": each
        for each in (DEPLOYMENTS, REPLICA_SETS, DAEMON_SETS, STATEFUL_SETS, JOBS, CRON_JOBS)
    },
}


def of_pods(name: str, pods: Sequence[Object]) -> str | None:
    """What pods that have not ended use of a resource; None for one that pods do not use."""
    alive = [pod for pod in pods if not is_terminal(pod)]
    if name in ("pods", "count/pods"):
        return str(len(alive) if name == "pods" else len(pods))
    part, _, rest = name.partition(".")
    if part in ("requests", "limits") and rest and rest != "storage":
        return canonical(str(sum((_of(pod, part, rest) for pod in alive), Decimal())))
    if name in _PLAIN:
        return canonical(str(sum((_of(pod, "requests", name) for pod in alive), Decimal())))
    return None


def _of(pod: Object, part: str, resource: str) -> Decimal:
    return pod_limit(pod, resource, parse) if part == "limits" else pod_amount(pod, resource, parse)


class QuotaController:
    """Component: one for a cluster."""

    def __init__(self, context: Context, *, informers: Informers) -> None:
        self._kube = context.kube
        self._quotas = informers.of(RESOURCE_QUOTAS)
        self._pods = informers.of(PODS)
        self._expectations = Expectations()
        self._loop = SyncLoop(context, self._sync)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._quotas.synced()
        await self._pods.synced()
        self._quotas.on_change(self._quota_changed)
        self._pods.on_change(self._pod_changed)
        await self._loop.run()

    def _quota_changed(self, _old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._loop.add(key_of(new))

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and is_terminal(old) == is_terminal(new):
            return
        namespace = namespace_of(new or old or {})
        for quota in self._quotas.items():
            if namespace_of(quota) == namespace:
                self._loop.add(key_of(quota))

    async def _sync(self, key: str) -> None:
        quota = self._quotas.at(key)
        if quota is None:
            self._expectations.forget(key)
            return
        if not self._expectations.met(key):
            return
        hard = quota["spec"].get("hard") or {}
        used = await self._used(hard, namespace_of(quota))
        status = {"hard": dict(hard), "used": used} if hard else {}
        if status != (quota.get("status") or {}):
            try:
                written = await self._kube.replace(
                    RESOURCE_QUOTAS, {**quota, "status": status}, subresource="status", field_manager=MANAGER
                )
            except NotFound:
                return
            self._expectations.wrote(key, self._quotas, written)

    async def _used(self, hard: Mapping[str, str], namespace: str) -> dict[str, str]:
        pods = [pod for pod in self._pods.items() if namespace_of(pod) == namespace]
        used: dict[str, str] = {}
        for name in hard:
            amount = of_pods(name, pods)
            if amount is None and name in _COUNTED:
                amount = str(len((await self._kube.list(_COUNTED[name], namespace=namespace)).items))
            if amount is not None:
                used[name] = amount
        return used
