"""Puts manifests into a cluster, waits until what they describe runs, and takes it out again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from mews.harness.errors import RequirementError
from mews.harness.manifests.kinds import KINDS
from mews.harness.manifests.parts import COMPONENT, MANAGED
from mews.kube.api.errors import ApiError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, is_deleting, name_of, phase_of
from mews.kube.api.resources import CONFIGMAPS, DAEMON_SETS, DEPLOYMENTS, PODS
from mews.kube.client.port import DeleteOptions, KubeApi, Patch
from mews.kube.clock import rest

Notify = Callable[[str], None]

_MANAGER = "mews"
_READY_S = 240.0
_LOOK_S = 0.25
_GONE_S = 90.0


class Rollout:
    """One stack in one namespace; ``notify`` hears of the progress."""

    def __init__(self, kube: KubeApi, namespace: str, notify: Notify) -> None:
        self._kube = kube
        self._namespace = namespace
        self._notify = notify

    async def apply(self, objects: Sequence[Object], *, besides: bool = False) -> None:
        """Create or change them all; remove components that are no longer among them, unless they come ``besides``.

        Raises RequirementError where the cluster does not let us.
        """
        for obj in objects:
            resource = KINDS[obj["kind"]]
            metadata = obj["metadata"]
            try:
                await self._kube.patch(
                    resource,
                    metadata["name"],
                    obj,
                    kind=Patch.APPLY,
                    namespace=metadata.get("namespace"),
                    field_manager=_MANAGER,
                    force=True,
                )
            except ApiError as error:
                raise RequirementError(f"{obj['kind']} {metadata['name']} cannot be applied: {error}") from error
        if not besides:
            await self._prune({(obj["kind"], obj["metadata"]["name"]) for obj in objects})

    async def _workloads(self, resource: Any) -> list[Object]:
        answer = await self._kube.list(resource, namespace=self._namespace, label_selector=f"{MANAGED}=mews")
        return answer.items

    async def _prune(self, wanted: set[tuple[str, str]]) -> None:
        for resource in (DEPLOYMENTS, DAEMON_SETS, CONFIGMAPS):
            for obj in await self._workloads(resource):
                if (resource.kind, name_of(obj)) not in wanted:
                    await self._kube.delete(resource, name_of(obj), namespace=self._namespace)

    async def ready(self, check: Callable[[], Awaitable[None]] | None = None) -> None:
        """Wait until every pod runs and answers, and those of before are gone; ``check`` may see earlier why not.

        Raises RequirementError naming what does not, and why.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _READY_S
        while True:
            try:
                waiting = [text for resource in (DEPLOYMENTS, DAEMON_SETS) for text in await self._waiting(resource)]
                waiting += [f"{name} still ends" for name in await self._ending()]
            except UnavailableError as error:
                waiting = [f"the API server: {error}"]
            if not waiting:
                return
            if check is not None:
                await check()
            self._notify(f"waiting for {', '.join(waiting)}")
            if loop.time() > deadline:
                raise RequirementError(f"not within {_READY_S:g} s: {', '.join(waiting)}: {await self._why()}")
            await rest(_LOOK_S)

    async def _waiting(self, resource: Any) -> list[str]:
        found = []
        for obj in await self._workloads(resource):
            status, spec = obj.get("status") or {}, obj["spec"]
            daemons = resource is DAEMON_SETS
            wanted = status.get("desiredNumberScheduled", -1) if daemons else spec.get("replicas", 1)
            ready = status.get("numberReady", 0) if daemons else status.get("readyReplicas", 0)
            current = status.get("updatedNumberScheduled" if daemons else "updatedReplicas", 0)
            seen = status.get("observedGeneration") == obj["metadata"]["generation"]
            if not seen or ready < wanted or current < wanted or wanted < 0:
                found.append(f"{name_of(obj)} ({ready} of {max(wanted, 0)})")
        return found

    async def pods(self, component: str) -> list[Object]:
        """Return the living pods of a component."""
        answer = await self._kube.list(PODS, namespace=self._namespace, label_selector=f"{COMPONENT}={component}")
        return [pod for pod in answer.items if not is_deleting(pod) and phase_of(pod) not in ("Succeeded", "Failed")]

    async def _ending(self) -> list[str]:
        answer = await self._kube.list(PODS, namespace=self._namespace, label_selector=f"{MANAGED}=mews")
        return [name_of(pod) for pod in answer.items if is_deleting(pod)]

    async def _why(self) -> str:
        try:
            answer = await self._kube.list(PODS, namespace=self._namespace, label_selector=f"{MANAGED}=mews")
        except UnavailableError:
            return "nobody can be asked why"
        messages = []
        for pod in answer.items:
            for each in (pod.get("status") or {}).get("containerStatuses") or ():
                state = each.get("state") or {}
                reason = (state.get("waiting") or state.get("terminated") or {}).get("reason")
                if reason:
                    messages.append(f"{name_of(pod)}/{each['name']} {reason}")
            for condition in (pod.get("status") or {}).get("conditions") or ():
                if condition["type"] == "PodScheduled" and condition["status"] != "True":
                    messages.append(f"{name_of(pod)} {condition.get('message', '')}")
        return "; ".join(messages) or "no pod says why"

    async def remove(self, objects: Sequence[Object], namespaces: Sequence[str] = ()) -> None:
        """Delete them all and those namespaces, and wait until our own namespace is gone."""
        for name in namespaces:
            with contextlib.suppress(NotFoundError):
                await self._kube.delete(KINDS["Namespace"], name)
        for obj in reversed(objects):
            metadata = obj["metadata"]
            options = DeleteOptions(propagation="Foreground" if obj["kind"] in ("Deployment", "DaemonSet") else None)
            with contextlib.suppress(NotFoundError):
                await self._kube.delete(
                    KINDS[obj["kind"]], metadata["name"], namespace=metadata.get("namespace"), options=options
                )
        deadline = asyncio.get_running_loop().time() + _GONE_S
        with contextlib.suppress(NotFoundError):
            while asyncio.get_running_loop().time() < deadline:
                await self._kube.get(KINDS["Namespace"], self._namespace)
                await rest(_LOOK_S)
