"""Undoing what a scenario did to a cluster that the next one will use."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Mapping, Sequence, Set

from mews.harness.clusters.real.rollout import Notify
from mews.harness.clusters.real.target import DeploymentTarget
from mews.harness.errors import RequirementError
from mews.harness.manifests.parts import CA_FILE, MANAGED, TOKEN_SECRET, labels
from mews.harness.manifests.spec import ServerCertificate
from mews.kube.api.errors import AlreadyExistsError, ApiError, NotFoundError
from mews.kube.api.objects import name_of, namespace_of
from mews.kube.api.resources import CONFIGMAPS, EVENTS, NAMESPACES, NODES, PODS, SECRETS, Resource
from mews.kube.client.port import DeleteOptions, KubeApi
from mews.kube.clock import rest

SYSTEM = ("kube-system", "kube-public", "kube-node-lease", "local-path-storage")
"""Namespaces of a kind cluster's own."""
CORDONED = "mews.dev/cordoned"
_GONE_S = 120.0


class Reset:
    """What scenarios leave in one cluster, and how it goes. ``swept`` are the kinds of systems of whose objects none
    stays; ``notes`` where they have ConfigMaps in namespaces of others, and with what their names begin; ``on_nodes``
    with what those of their resources and labels on nodes do."""

    def __init__(
        self,
        kube: KubeApi,
        target: DeploymentTarget,
        notify: Notify,
        swept: Sequence[Resource] = (),
        notes: Sequence[tuple[str, str]] = (),
        on_nodes: Sequence[str] = (),
    ) -> None:
        self._notes = notes
        self._on_nodes = tuple(on_nodes)
        self._kube = kube
        self._target = target
        self._notify = notify
        self._swept = swept
        self._made: dict[tuple[Resource, str, str | None], None] = {}

    def made(self, resource: Resource, name: str, namespace: str | None) -> None:
        """The scenario has created an object."""
        self._made[resource, name, namespace] = None

    async def token(self, fresh: str) -> str:
        """Return the token of the stack that is there, else a fresh one."""
        with contextlib.suppress(NotFoundError):
            secret = await self._kube.get(SECRETS, TOKEN_SECRET, namespace=self._target.namespace)
            return base64.b64decode(secret["data"]["token"]).decode()
        return fresh

    async def certificate(self, secret: str, trust: str, fresh: ServerCertificate | None) -> ServerCertificate | None:
        """Return the certificate of the stack that is there, else a fresh one; ``secret`` has it, the ConfigMap
        ``trust`` what to trust."""
        namespace = self._target.namespace
        with contextlib.suppress(NotFoundError):
            files = (await self._kube.get(SECRETS, secret, namespace=namespace))["data"]
            trusted = (await self._kube.get(CONFIGMAPS, trust, namespace=namespace))["data"][CA_FILE]
            certificate, key = (base64.b64decode(files[name]).decode() for name in ("tls.crt", "tls.key"))
            return ServerCertificate(certificate, key, trusted)
        return fresh

    async def namespaces(self) -> None:
        """Make the scenario's own, where it has such."""
        for name in self._target.namespaces.values():
            with contextlib.suppress(AlreadyExistsError):
                await self._kube.create(NAMESPACES, {"metadata": {"name": name, "labels": labels("scenario")}})

    async def scenario_objects(self) -> None:
        """Delete what the scenario created, and on nodes of our own all pods and events outside the system's."""
        for resource, name, namespace in reversed(self._made):
            options = DeleteOptions(grace_period_s=0 if resource == PODS else None, propagation="Background")
            with contextlib.suppress(NotFoundError):
                await self._kube.delete(resource, name, namespace=namespace, options=options)
        mine = {(resource, name, namespace) for resource, name, namespace in self._made if resource == PODS}
        self._made.clear()
        if self._target.ours:
            mine |= await self._sweep()
        await self._gone(mine)

    async def _sweep(self) -> set[tuple[Resource, str, str | None]]:
        kept = (*SYSTEM, self._target.namespace)
        found: set[tuple[Resource, str, str | None]] = set()
        await self._delete_swept()
        for namespace in (await self._kube.list(NAMESPACES)).items:
            if name_of(namespace) in kept:
                continue
            for pod in (await self._kube.list(PODS, namespace=name_of(namespace))).items:
                found.add((PODS, name_of(pod), namespace_of(pod)))
                with contextlib.suppress(NotFoundError):
                    await self._kube.delete(
                        PODS, name_of(pod), namespace=namespace_of(pod), options=DeleteOptions(grace_period_s=0)
                    )
            await self._kube.delete_collection(EVENTS, namespace=name_of(namespace))
        return found

    async def _gone(self, objects: Set[tuple[Resource, str, str | None]]) -> None:
        deadline = asyncio.get_running_loop().time() + _GONE_S
        for resource, name, namespace in objects:
            with contextlib.suppress(NotFoundError):
                while True:
                    await self._kube.get(resource, name, namespace=namespace)
                    if asyncio.get_running_loop().time() > deadline:
                        raise RequirementError(f"{resource.kind} {namespace}/{name} is not gone after {_GONE_S:g} s")
                    await rest(0.1)

    async def boards(self) -> None:
        """Delete what the components told each other."""
        namespace = self._target.namespace
        for board in (await self._kube.list(CONFIGMAPS, namespace=namespace)).items:
            name = name_of(board)
            labelled = MANAGED in (board["metadata"].get("labels") or {})
            if not labelled and name != "kube-root-ca.crt":
                with contextlib.suppress(NotFoundError):
                    await self._kube.delete(CONFIGMAPS, name, namespace=namespace)
        if self._target.ours:
            await self._delete_notes()
            await self._delete_swept()  # again: a component that lived has made some anew
            await self._clear_nodes()

    async def _delete_swept(self) -> None:
        for resource in self._swept:
            with contextlib.suppress(NotFoundError):  # where the kind has never been installed
                for obj in (await self._kube.list(resource)).items:
                    with contextlib.suppress(NotFoundError):
                        await self._kube.delete(resource, name_of(obj), namespace=namespace_of(obj) or None)

    async def _delete_notes(self) -> None:
        for where in dict.fromkeys(where for where, _ in self._notes):
            starts = tuple(start for each, start in self._notes if each == where)
            for note in (await self._kube.list(CONFIGMAPS, namespace=where)).items:
                if name_of(note).startswith(starts):
                    with contextlib.suppress(NotFoundError):
                        await self._kube.delete(CONFIGMAPS, name_of(note), namespace=where)

    async def _clear_nodes(self) -> None:
        """A kubelet goes on naming what others have written into its node's status."""
        for name in self._target.ours if self._on_nodes else ():
            node = await self._kube.get(NODES, name)
            labels = self._written(node["metadata"].get("labels"))
            if labels:
                await self._kube.patch(NODES, name, {"metadata": {"labels": labels}})
            status = node.get("status") or {}
            found = {part: self._written(status.get(part)) for part in ("capacity", "allocatable")}
            if any(found.values()):
                await self._kube.patch(NODES, name, {"status": found}, subresource="status")

    def _written(self, there: Mapping[str, object] | None) -> dict[str, None]:
        """Return what systems wrote there, as a patch that takes it away."""
        return {name: None for name in there or () if name.startswith(self._on_nodes)}

    async def cordon(self, wanted: set[str] | None) -> None:
        """Close those of our own nodes for which the scenario has no host, open the others; None: open all."""
        for name in self._target.ours:
            closed = wanted is not None and name not in wanted
            node = await self._kube.get(NODES, name)
            if bool((node.get("spec") or {}).get("unschedulable")) is not closed:
                with contextlib.suppress(ApiError):
                    await self._kube.patch(NODES, name, {"spec": {"unschedulable": closed or None}})
