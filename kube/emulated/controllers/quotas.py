"""Counts what a namespace uses of its ResourceQuotas (k8s.io/kubernetes pkg/controller/resourcequota, pkg/quota).

Admission counts what comes in; this counts anew when a quota changes and when something that it counts changes or goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial

from mews.kube.api.claim_quota import (
    REQUESTS,
    ClassResources,
    class_resources,
    extended_usage,
    is_used_by_claims,
    pod_name_of,
    stands_for,
)
from mews.kube.api.errors import NotFoundError
from mews.kube.api.extended_resources import may_be_a_class
from mews.kube.api.objects import Object, is_terminal, key_of, name_of, namespace_of
from mews.kube.api.quota_usage import amount_text, is_binary, is_used_by_pods, matches_scopes, usage_of
from mews.kube.api.resources import (
    CONFIGMAPS,
    DEVICE_CLASSES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICATION_CONTROLLERS,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    SECRETS,
    SERVICES,
    Resource,
)
from mews.kube.component import Context
from mews.kube.emulated.controllers.owners import Informers
from mews.kube.emulated.controllers.syncing import MANAGER, SyncLoop

_BY_NAME: Mapping[str, Resource] = {
    **{each.plural: each for each in (CONFIGMAPS, SECRETS, SERVICES)},
    **{each.plural: each for each in (REPLICATION_CONTROLLERS, RESOURCE_QUOTAS, PERSISTENT_VOLUME_CLAIMS)},
    "services.nodeports": SERVICES,
    "services.loadbalancers": SERVICES,
    "requests.storage": PERSISTENT_VOLUME_CLAIMS,
}


class QuotaController:
    """Component: one for a cluster."""

    def __init__(self, context: Context, *, informers: Informers) -> None:
        self._kube = context.kube
        self._informers = informers
        self._quotas = informers.of(RESOURCE_QUOTAS)
        self._watched: dict[Resource, None] = {}
        self._served: dict[tuple[str, str], Resource] = {}
        self._loop = SyncLoop(context, self._sync)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._quotas.synced()
        self._quotas.on_change(self._quota_changed)
        await self._loop.run()

    def _quota_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            return
        counted_by_admission = old is not None and old.get("spec") == new.get("spec")
        if not counted_by_admission or (new.get("status") or {}).get("hard") != new["spec"].get("hard"):
            self._loop.add(key_of(new))

    def _counted_changed(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        """Something was deleted, ended or changed what it uses; admission has counted what came in."""
        if old is None:
            return
        if new is not None and resource == PODS and is_terminal(old) == is_terminal(new):
            return
        if new is not None and resource not in (PODS, SERVICES, PERSISTENT_VOLUME_CLAIMS):
            return
        namespace = namespace_of(old)
        for quota in self._quotas.items():
            if namespace_of(quota) == namespace:
                self._loop.add(key_of(quota))

    async def _sync(self, key: str) -> None:
        known = self._quotas.at(key)
        if known is None:
            return
        hard, namespace = known["spec"].get("hard") or {}, namespace_of(known)
        classes = await self._classes(hard)
        resources = {name: await self._counted_in(name, classes) for name in hard}
        for resource in _all_of(resources):
            if resource not in self._watched:
                self._watched[resource] = None
                informer = self._informers.of(resource)
                await informer.synced()
                informer.on_change(partial(self._counted_changed, resource))
        try:
            # The quota is read before what it counts: whatever admission counts in between is a conflict.
            quota = await self._kube.get(RESOURCE_QUOTAS, known["metadata"]["name"], namespace=namespace)
            hard = quota["spec"].get("hard") or {}
            used = await self._used(quota, resources, classes)
            status = {"hard": dict(hard), "used": used} if hard else {}
            if status != (quota.get("status") or {}):
                await self._kube.replace(
                    RESOURCE_QUOTAS, {**quota, "status": status}, subresource="status", field_manager=MANAGER
                )
        except NotFoundError:
            return

    async def _classes(self, hard: Mapping[str, str]) -> ClassResources:
        """Return what device classes stand for, asked where a quota may count that."""
        if not any(may_be_a_class(name.removeprefix(REQUESTS)) for name in hard if name.startswith(REQUESTS)):
            return {}
        return class_resources((await self._kube.list(DEVICE_CLASSES)).items)

    async def _used(
        self, quota: Object, resources: Mapping[str, Sequence[Resource]], classes: ClassResources
    ) -> dict[str, str]:
        namespace, totals, binary = namespace_of(quota), dict[str, Decimal](), dict[str, bool]()
        for resource in _all_of(resources):
            objects = (await self._kube.list(resource, namespace=namespace)).items
            extended = await self._extended_usages(namespace, objects, classes) if resource == RESOURCE_CLAIMS else {}
            for obj in objects:
                if not matches_scopes(quota["spec"], resource.plural, obj):
                    continue
                usage = usage_of(resource.group, resource.plural, obj) | extended.get(key_of(obj), {})
                for name, amount in usage.items():
                    if not totals.get(name):
                        binary[name] = is_binary(obj, name)
                    totals[name] = totals.get(name, Decimal()) + amount
        return {
            name: amount_text(totals.get(name, Decimal()), binary=binary.get(name, False))
            for name, each in resources.items()
            if each
        }

    async def _extended_usages(
        self, namespace: str, claims: Sequence[Object], classes: ClassResources
    ) -> dict[str, dict[str, Decimal]]:
        """Return what claims use of extended resources, without what their pods are counted for."""
        if not classes:
            return {}
        pods = {name_of(pod): pod for pod in (await self._kube.list(PODS, namespace=namespace)).items}
        found = {}
        for claim in claims:
            pod = pods.get(pod_name_of(claim))
            counted = usage_of("", PODS.plural, pod) if pod is not None and stands_for(claim, pod, claims) else {}
            found[key_of(claim)] = extended_usage(claim, classes, counted)
        return found

    async def _counted_in(self, name: str, classes: ClassResources) -> Sequence[Resource]:
        """Return the resources whose objects use what a quota names, none for what nothing uses."""
        plain = await self._plain(name)
        claims = [RESOURCE_CLAIMS] if is_used_by_claims(name, classes) else []
        return [*([] if plain is None else [plain]), *claims]

    async def _plain(self, name: str) -> Resource | None:
        if name.startswith("count/"):
            plural, _, group = name.removeprefix("count/").partition(".")
            if (group, plural) not in self._served:
                served = await self._kube.discovery()
                self._served = {(each.group, each.plural): each for each in reversed(served) if each.namespaced}
            return self._served.get((group, plural))
        if is_used_by_pods(name):
            return PODS
        return PERSISTENT_VOLUME_CLAIMS if ".storageclass.storage.k8s.io/" in name else _BY_NAME.get(name)


def _all_of(resources: Mapping[str, Sequence[Resource]]) -> list[Resource]:
    return list(dict.fromkeys(each for found in resources.values() for each in found))
