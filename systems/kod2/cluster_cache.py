"""What the operator reads: caches of what the API has, and the TFJobs as the operator itself last wrote them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from mews.kube.api.objects import (
    Object,
    is_deleting,
    is_terminal,
    key_of,
    name_of,
    node_name_of,
    uid_of,
    version_of,
)
from mews.kube.api.resources import CONFIGMAPS, LIMIT_RANGES, NODES, PODS, SERVICES
from mews.kube.client.informer import Informer
from mews.kube.component import Context
from mews.kube.scheduling.podinfo import Amounts, pod_info
from mews.systems.kod2.checks import MALFORMED, checked_tfjob
from mews.systems.kod2.config import OperatorConfig
from mews.systems.kod2.defaults import JobDefaults
from mews.systems.kod2.errors import TFJobError
from mews.systems.kod2.install import TFJOBS
from mews.systems.kod2.podspec import owner_uid, task_of
from mews.systems.kod2.status import generation_of
from mews.systems.kod2.tfjob import TFJob, key_parts

_POOL_PREFIX = "pool-"


class ClusterCache:
    """Run ``run()`` as a task, ``await synced()``, then read. ``on_*`` tell of changes."""

    def __init__(self, context: Context, config: OperatorConfig) -> None:
        kube = context.kube
        self._kube = kube
        self.tfjobs = Informer(kube, TFJOBS)
        self.pods = Informer(kube, PODS)
        self.nodes = Informer(kube, NODES)
        self.services = Informer(kube, SERVICES)
        self.pools = Informer(kube, CONFIGMAPS, namespace=config.pool_namespace)
        self.limit_ranges = Informer(kube, LIMIT_RANGES)
        self._defaults = JobDefaults(config, self.limit_ranges.items)
        self._written: dict[str, Object] = {}
        self._specs: dict[str, tuple[int, TFJob]] = {}
        self._requests: dict[str, Amounts] = {}
        self._owned: dict[str, dict[str, Object]] = {}
        self._bound: dict[str, dict[str, Object]] = {}
        self.pods.on_change(self._pod_changed)
        self.tfjobs.on_change(self._tfjob_changed)

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for informer in (self.tfjobs, self.pods, self.nodes, self.services, self.pools, self.limit_ranges):
                tasks.create_task(informer.run())

    async def synced(self) -> None:
        """Wait until all of it has been listed."""
        for informer in (self.tfjobs, self.pods, self.nodes, self.services, self.pools, self.limit_ranges):
            await informer.synced()

    # TFJobs

    def tfjob(self, key: str) -> Object | None:
        """Return the newest that is known: the cache's, or the operator's own last write that the cache does not show
        yet."""
        namespace, name = key_parts(key)
        cached = self.tfjobs.get(name, namespace)
        written = self._written.get(key)
        if cached is None or written is None or uid_of(cached) != uid_of(written):
            return cached
        return written if version_of(written) > version_of(cached) else cached

    def all_tfjobs(self) -> Iterator[Object]:
        """Yield all of them, the newest known of each, in order of key."""
        for cached in self.tfjobs.items():
            found = self.tfjob(key_of(cached))
            if found is not None:
                yield found

    async def write_status(self, tfjob: Object, status: Object) -> Object:
        """Write a status; nothing is written where nothing changed. Raises ApiError or UnavailableError."""
        if status == (tfjob.get("status") or {}):
            return tfjob
        written = await self._kube.replace(
            TFJOBS, {**tfjob, "status": status}, namespace=tfjob["metadata"]["namespace"], subresource="status"
        )
        self._written[key_of(written)] = written
        return written

    def spec_of(self, tfjob: Object) -> TFJob:
        """Return the TFJob as values. Raises TFJobError."""
        uid, generation = uid_of(tfjob), generation_of(tfjob)
        known = self._specs.get(uid)
        if known is None or known[0] != generation:
            known = self._specs[uid] = (generation, self._defaults.given_to(checked_tfjob(tfjob)))
        return known[1]

    def good_spec_of(self, tfjob: Object) -> TFJob | None:
        """Return the same, None for a bad one."""
        try:
            return self.spec_of(tfjob)
        except TFJobError:
            return None

    def _tfjob_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None and old is not None:
            self._written.pop(key_of(old), None)
            self._specs.pop(uid_of(old), None)

    # Pods

    def pods_of(self, uid: str) -> dict[str, Object]:
        """Task -> pod of that TFJob; the one that stays where a deleted one lingers beside it."""
        found: dict[str, Object] = {}
        for pod in self._owned.get(uid, {}).values():
            found[task_of(pod["metadata"].get("labels") or {})] = pod
        return found

    def services_of(self, uid: str) -> dict[str, Object]:
        """Task -> service of that TFJob."""
        services = (service for service in self.services.items() if owner_uid(service) == uid)
        return {task_of(service["metadata"].get("labels") or {}): service for service in services}

    def pods_on(self, node: str) -> Iterator[Object]:
        """Pods bound to a node that hold, or may still hold, resources there."""
        yield from self._bound.get(node, {}).values()

    def bound_pods(self) -> Iterator[tuple[str, Object]]:
        """(node, pod) for all of those."""
        for node, pods in self._bound.items():
            for pod in pods.values():
                yield node, pod

    def requests_of(self, pod: Object) -> Amounts:
        """Return what a pod asks of each resource."""
        uid = uid_of(pod)
        if uid not in self._requests:
            self._requests[uid] = _requests(pod)
        return self._requests[uid]

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        for pod in (old, new):
            if pod is not None:
                self._file(pod, gone=pod is old)
        if new is None and old is not None:
            self._requests.pop(uid_of(old), None)

    def _file(self, pod: Object, *, gone: bool) -> None:
        places = [(self._owned, owner_uid(pod))]
        if not is_terminal(pod):
            places.append((self._bound, node_name_of(pod)))
        for shelf, name in places:
            if not name:
                continue
            if gone:
                shelf.get(name, {}).pop(uid_of(pod), None)
            else:
                shelf.setdefault(name, {})[uid_of(pod)] = pod

    # Pools

    def pool_sizes(self) -> dict[str, int]:
        """Pool -> number of its devices, as Reconfig-Mgr publishes them."""
        return {pool: len(_listed(obj, "devices")) for pool, obj in self._pool_objects()}

    def pool_of_nodes(self) -> dict[str, str]:
        """Node -> its pool."""
        return {str(node): pool for pool, obj in self._pool_objects() for node in _listed(obj, "nodes")}

    def _pool_objects(self) -> Iterator[tuple[str, Object]]:
        for obj in self.pools.items():
            if name_of(obj).startswith(_POOL_PREFIX) and not is_deleting(obj):
                yield name_of(obj).removeprefix(_POOL_PREFIX), obj


def _requests(pod: Object) -> Amounts:
    """Return nothing where they cannot be read: a pod is somebody's, and nobody's jobs may wait for it to be mended."""
    try:
        return pod_info(pod).requests
    except MALFORMED:
        return {}


def _listed(obj: Object, key: str) -> list[Any]:
    try:
        value = json.loads((obj.get("data") or {}).get(key) or "[]")
    except (ValueError, RecursionError):
        return []
    return value if isinstance(value, list) else []
