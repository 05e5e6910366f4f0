"""Watches a real cluster, and changes nothing: only lists and watches are sent, and never of Secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from mews.harness.errors import RequirementError
from mews.harness.recording.histories import stamp
from mews.harness.recording.observations import Object, ObjectSighting
from mews.harness.recording.reduction import WORKLOADS, reduced, system_kinds
from mews.harness.watch_feed import LISTED, Feed, WatchRecord
from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.resources import EVENTS, NODES, PODS, Resource
from mews.kube.client.port import KubeApi

_ANSWER_S = 30.0


class ClusterWatch:
    """What is seen of nodes, pods, events and what makes pods. ``differences``: of objects that were made during the
    recording, this machine's time less the API server's."""

    def __init__(self, kube: KubeApi, now: Callable[[], float]) -> None:
        self._kube = kube
        self._now = now
        self._resources: list[Resource] = []
        self.sightings: list[ObjectSighting] = []
        self.differences: list[float] = []
        self.notes: list[str] = []

    async def open(self, url: str) -> None:
        """Find out what can be watched.

        Raises RequirementError for a cluster that does not answer, and where neither nodes nor pods may be listed.
        """
        try:
            async with asyncio.timeout(_ANSWER_S):
                served = await self._kube.discovery()
                for resource in (NODES, PODS, EVENTS, *_workloads(served)):
                    await self._try(resource)
        except TimeoutError as error:
            raise RequirementError(f"--kubeconfig: {url} did not answer within {_ANSWER_S:g} s") from error
        except (ApiError, UnavailableError) as error:
            raise RequirementError(f"--kubeconfig: the cluster cannot be read: {error}") from error
        if NODES not in self._resources and PODS not in self._resources:
            raise RequirementError("--kubeconfig: this user may list neither nodes nor pods")

    async def _try(self, resource: Resource) -> None:
        try:
            await self._kube.list(resource, limit=1)
        except ApiError as error:
            if error.code not in (401, 403, 404, 405):
                raise
            self.notes.append(f"this user may not list {resource.plural} (HTTP {error.code})")
            return
        self._resources.append(resource)

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for resource in self._resources:
                group.create_task(Feed(self._kube, resource, self._saw, keep=_identity).run())

    def _saw(self, seen: WatchRecord) -> None:
        now_s = self._now()
        if seen.new is None:
            if seen.old is not None:
                self.sightings.append(ObjectSighting(seen.old, now_s, gone=True))
            return
        small = reduced({"kind": seen.resource.kind, "apiVersion": seen.resource.api_version, **seen.new})
        if small is None:
            return
        created = stamp(small["metadata"].get("creationTimestamp"))
        if seen.old is None and seen.type != LISTED and created is not None:
            self.differences.append(now_s - created)
        self.sightings.append(ObjectSighting(small, now_s))


def _workloads(served: Sequence[Resource]) -> list[Resource]:
    wanted = {*WORKLOADS, *system_kinds()}
    found = {each.kind: each for each in reversed(served) if each.kind in wanted and each.namespaced}
    return sorted(found.values())


def _identity(obj: Object) -> dict[str, object]:
    """Return all that is remembered between two sightings."""
    metadata = obj["metadata"]
    kept = {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion") if name in metadata}
    return {"kind": obj.get("kind", ""), "apiVersion": obj.get("apiVersion", ""), "metadata": kept}
