"""Writing which devices a pod has onto it, and binding it as it then is."""

from __future__ import annotations

from mews.kube.api.errors import ConflictError, NotFoundError
from mews.kube.api.objects import Object, annotations_of, node_name_of, uid_of
from mews.kube.api.resources import PODS
from mews.kube.client.port import KubeApi
from mews.kube.scheduling.podinfo import PodInfo
from mews.systems.koordinator.names import ALLOCATED

_ATTEMPTS = 8


class DeviceNotes:
    """The annotation of pods that are on their way to a node. Methods raise ApiError and UnavailableError.

    A pod is bound at the very version that bears its annotation. So a scheduler that takes over has only to take the
    annotations of pods that are not bound off, and no binding of the one before can reach the server any more.
    """

    def __init__(self, kube: KubeApi) -> None:
        self._kube = kube
        self._written: dict[str, tuple[str, str]] = {}

    async def write(self, pod: PodInfo, text: str) -> None:
        """Say on the pod what it has."""
        self._written[pod.uid] = text, ""  # it may be there though no answer came: then it must come off again
        stored = await self._patch(pod.namespace, pod.name, pod.uid, text)
        self._written[pod.uid] = text, str(stored["metadata"]["resourceVersion"])

    async def bind(self, pod: PodInfo, node: str) -> None:
        """Bind it with that annotation; a change of the pod that leaves the annotation as it is does not matter.

        Raises ConflictError where it is not on the pod any more.
        """
        text, version = self._written[pod.uid]
        for _ in range(_ATTEMPTS):
            try:
                await self._kube.bind(pod.namespace, pod.name, node, uid=pod.uid, resource_version=version)
            except ConflictError:
                now = await self._kube.get(PODS, pod.name, namespace=pod.namespace)
                version = str(now["metadata"]["resourceVersion"])
                if uid_of(now) != pod.uid or node_name_of(now) or annotations_of(now).get(ALLOCATED) != text:
                    raise
            else:
                return
        raise ConflictError(f"pods {pod.name!r} changes faster than it can be bound")

    def forget(self, uid: str) -> None:
        """The pod is bound."""
        self._written.pop(uid, None)

    async def clear(self, pod: PodInfo) -> None:
        """Take the annotation off a pod that was given up, if it was written."""
        if self._written.pop(pod.uid, None) is not None:
            await self._clear(pod.namespace, pod.name, pod.uid)

    async def clear_left(self, pod: Object) -> Object | None:
        """Take it off a pod that somebody gave devices to and did not bind; the pod as it is then, None once gone."""
        metadata = pod["metadata"]
        return await self._clear(metadata["namespace"], metadata["name"], metadata["uid"])

    async def _clear(self, namespace: str, name: str, uid: str) -> Object | None:
        for _ in range(_ATTEMPTS):
            try:
                now = await self._kube.get(PODS, name, namespace=namespace)
                if uid_of(now) != uid:
                    return None
                if node_name_of(now) or ALLOCATED not in annotations_of(now):
                    return now
                return await self._patch(namespace, name, uid, None, str(now["metadata"]["resourceVersion"]))
            except NotFoundError:
                return None
            except ConflictError:
                continue
        raise ConflictError(f"pods {name!r} changes faster than its annotation can be taken off")

    async def _patch(self, namespace: str, name: str, uid: str, text: str | None, version: str = "") -> Object:
        # The uid keeps a pod of the same name that came later from being annotated in its place.
        metadata: dict[str, object] = {"uid": uid, "annotations": {ALLOCATED: text}}
        if version:
            metadata["resourceVersion"] = version
        return await self._kube.patch(PODS, name, {"metadata": metadata}, namespace=namespace)
