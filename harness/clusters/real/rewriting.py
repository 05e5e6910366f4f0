"""The cluster as scenarios write to it: what they apply is fitted to real nodes, unnoticed by them.

Images that only emulated nodes have become our component image with the command that they stand for, and node names
become those of the hosts' nodes. Where a driver of the user's gives containers the devices of their claims, they also
get what our NVML library reads: the driver gives them the library alone."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mews.harness.clusters.real.hidden_nodes import HiddenNodes
from mews.harness.manifests.nodes import HOST_MOUNT, HOST_VOLUME, STATE_FILE
from mews.harness.systems import find_program
from mews.kube.api.objects import Object
from mews.kube.api.resources import Resource
from mews.kube.client.port import DeleteOptions, EventType, ExecResult, KubeApi, ObjectList, Patch, WatchEvent
from mews.kube.emulated.kubelet.engine.node_files import STATE
from mews.kube.emulated.kubelet.images import COMPONENTS, ContainerBehaviour, Image, ImageBook
from mews.kube.emulated.kubelet.oci.container_root import DEVICES
from mews.kube.system.deployment import SystemDeployment

DURATION = "mews.dev/duration-s"
RUN = "mews.dev/run"
"""Label of what scenarios create in somebody's cluster: the run."""
_HOSTNAME = "kubernetes.io/hostname"
_STATE_VOLUME = {**HOST_VOLUME, "name": "mews-host"}
_STATE_MOUNT = {**HOST_MOUNT, "name": "mews-host", "readOnly": True}

_PLAY = """\
import os, re, signal, sys, threading
duration, code, term, obeys, log = {duration!r}, {code!r}, {term!r}, {obeys!r}, {log!r}
def value(match):
    text = os.environ.get(match[1], "")
    return "".join(f"{{part}}\\n" for part in text.split(",") if part) if match[2] else text
sys.stdout.write(re.sub(r"\\$\\{{([A-Za-z_]\\w*)(\\|lines)?\\}}", value, log))
sys.stdout.flush()
signal.signal(signal.SIGTERM, (lambda *_: sys.exit(term)) if obeys else (lambda *_: None))
threading.Event().wait(duration)
sys.exit(code)
"""


class Fitting:
    """Fits objects to the nodes: ``image`` is our component image, ``nodes`` maps hosts to nodes, ``speed`` divides
    simulated durations. ``systems`` say where their kinds have pod templates. ``foreign_claims``: see ``StackSpec``.
    """

    def __init__(
        self,
        book: ImageBook,
        image: str,
        nodes: Mapping[str, str],
        speed: float,
        systems: Sequence[SystemDeployment] = (),
        *,
        foreign_claims: bool = False,
    ) -> None:
        self._foreign_claims = foreign_claims
        self._book = book
        self._image = image
        self._nodes = nodes
        self._speed = speed
        self._systems = systems

    def __call__(self, obj: Mapping[str, Any]) -> Object:
        """Return the object with every pod or pod template in it fitted."""
        fitted: Object = copy.deepcopy(dict(obj))
        self._walk(fitted)
        return fitted

    def _walk(self, obj: Any) -> None:
        if not isinstance(obj, dict):
            return
        spec = obj.get("spec")
        if isinstance(spec, dict):
            if isinstance(spec.get("containers"), list):
                self._pod(obj, spec)
            for key in ("template", "jobTemplate"):
                self._walk(spec.get(key))
            for template in [found for system in self._systems for found in system.pod_templates(obj)]:
                self._walk(template)

    def _pod(self, obj: Object, spec: Object) -> None:
        annotations = (obj.get("metadata") or {}).get("annotations") or {}
        for container in [*spec["containers"], *(spec.get("initContainers") or ())]:
            if isinstance(container, dict) and isinstance(container.get("image"), str):
                self._container(container, annotations)
        if self._foreign_claims:
            _show_state(spec)
        selector = spec.get("nodeSelector") or {}
        if selector.get(_HOSTNAME) in self._nodes:
            selector[_HOSTNAME] = self._nodes[selector[_HOSTNAME]]
        if spec.get("nodeName") in self._nodes:
            spec["nodeName"] = self._nodes[spec["nodeName"]]

    def _container(self, container: Object, annotations: Mapping[str, str]) -> None:
        image = self._book.find(container["image"])
        if image is None or not image.image:
            return
        container["image"] = image.image.replace(COMPONENTS, self._image)
        container.setdefault("imagePullPolicy", "IfNotPresent")
        if image.simulate is not None and image.process is None and not image.simulate.plays_command:
            container.pop("args", None)
            container["command"] = self._command(image, annotations)
        elif "command" not in container and not image.is_replaced_by(container.get("args") or ()):
            container["command"] = self._command(image, annotations)
        if image.simulate is not None and image.simulate.program:
            _add_variables(container, find_program(image.simulate.program).environment(annotations, self._speed))
        if image.image == COMPONENTS:  # any other image has its own
            _add_variables(container, image.env)

    def _command(self, image: Image, annotations: Mapping[str, str]) -> list[str]:
        if image.process is not None:
            return list(image.written)
        assert image.simulate is not None
        return ["python3", "-c", self._play(image.simulate, annotations)]

    def _play(self, simulate: ContainerBehaviour, annotations: Mapping[str, str]) -> str:
        declared = simulate.duration_s or 0.0
        duration = float(annotations.get(DURATION, declared)) / self._speed
        return _PLAY.format(
            duration=None if duration == float("inf") else duration,
            code=simulate.exit_code,
            term=simulate.term_exit_code,
            obeys=simulate.obeys_term,
            log=simulate.log,
        )


def _add_variables(container: Object, added: Mapping[str, str]) -> None:
    known = container.get("env") or []
    names = {entry["name"] for entry in known}
    new = [{"name": name, "value": value} for name, value in added.items() if name not in names]
    if new:
        container["env"] = [*known, *new]


def _show_state(pod_spec: Object) -> None:
    """Mount the host's files into containers with claims, and have the library there show the GPUs of their ``/dev``,
    as it does in containers of emulated nodes."""
    containers = [*pod_spec["containers"], *(pod_spec.get("initContainers") or ())]
    using = [each for each in containers if isinstance(each, dict) and (each.get("resources") or {}).get("claims")]
    volumes = pod_spec.get("volumes") or []
    if not using or _STATE_VOLUME in volumes:
        return
    pod_spec["volumes"] = [*volumes, _STATE_VOLUME]
    for container in using:
        container["env"] = [*(container.get("env") or ()), {"name": STATE, "value": STATE_FILE}]
        container["env"].append({"name": DEVICES, "value": "/dev"})
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), _STATE_MOUNT]


class FittingKube:
    """KubeApi whose writes are fitted; ``made`` hears of everything that it creates. ``namespaces`` maps the
    scenario's namespaces to real ones: asked for and told of under the scenario's names, nothing of others is seen.
    ``mark`` labels what it creates, so that it can be found by others. ``strangers`` are not seen, either."""

    def __init__(
        self,
        kube: KubeApi,
        fit: Fitting,
        made: Callable[[Resource, str, str | None], None] = lambda *_: None,
        *,
        strangers: HiddenNodes,
        namespaces: Mapping[str, str] | None = None,
        mark: str | None = None,
    ) -> None:
        self._strangers = strangers
        self._mark = mark
        self._kube = kube
        self._plain = fit
        self._made = made
        self._there = dict(namespaces or {})
        self._here = {real: named for named, real in self._there.items()}

    def _fit(self, obj: Mapping[str, Any]) -> Object:
        fitted = self._plain(obj)
        metadata = fitted.get("metadata")
        if isinstance(metadata, dict) and metadata.get("namespace") in self._there:
            metadata["namespace"] = self._there[metadata["namespace"]]
        return fitted

    def _real(self, namespace: str | None) -> str | None:
        return None if namespace is None else self._there.get(namespace, namespace)

    def _shown(self, obj: Object) -> Object:
        shown = dict(self._strangers.shown(obj))
        for part in ("metadata", "involvedObject"):
            namespace = (obj.get(part) or {}).get("namespace")
            if namespace in self._here:
                shown[part] = {**obj[part], "namespace": self._here[namespace]}
        return shown

    def _seen(self, resource: Resource, obj: Object) -> bool:
        if self._strangers.hides(resource, obj):
            return False
        return not self._here or not resource.namespaced or obj["metadata"].get("namespace") in self._here

    async def get(
        self, resource: Resource, name: str, *, namespace: str | None = None, subresource: str | None = None
    ) -> Object:
        """Return one object."""
        found = await self._kube.get(resource, name, namespace=self._real(namespace), subresource=subresource)
        return self._shown(found)

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        limit: int | None = None,
        continue_token: str = "",
        resource_version: str = "",
    ) -> ObjectList:
        """Objects."""
        found = await self._kube.list(
            resource,
            namespace=self._real(namespace),
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            continue_token=continue_token,
            resource_version=resource_version,
        )
        return replace(found, items=[self._shown(obj) for obj in found.items if self._seen(resource, obj)])

    async def watch(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        timeout_s: int | None = None,
        bookmarks: bool = False,
    ) -> AsyncIterator[WatchEvent]:
        """Events."""
        async for event in self._kube.watch(
            resource,
            namespace=self._real(namespace),
            label_selector=label_selector,
            field_selector=field_selector,
            resource_version=resource_version,
            timeout_s=timeout_s,
            bookmarks=bookmarks,
        ):
            if event.type is EventType.BOOKMARK:
                yield event
            elif self._seen(resource, event.object):
                yield WatchEvent(event.type, self._shown(event.object))

    async def create(
        self, resource: Resource, obj: Mapping[str, Any], *, namespace: str | None = None, field_manager: str = ""
    ) -> Object:
        """Create it, fitted."""
        where, fitted = self._real(namespace), self._fit(obj)
        if self._mark is not None:
            labels = (fitted.get("metadata") or {}).get("labels") or {}
            fitted["metadata"] = {**(fitted.get("metadata") or {}), "labels": {**labels, RUN: self._mark}}
        stored = await self._kube.create(resource, fitted, namespace=where, field_manager=field_manager)
        self._made(resource, stored["metadata"]["name"], stored["metadata"].get("namespace"))
        return self._shown(stored)

    async def replace(
        self,
        resource: Resource,
        obj: Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str = "",
    ) -> Object:
        """Replace it, fitted."""
        fitted = self._fit(obj)
        stored = await self._kube.replace(
            resource, fitted, namespace=self._real(namespace), subresource=subresource, field_manager=field_manager
        )
        return self._shown(stored)

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        kind: Patch = Patch.MERGE,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str = "",
        force: bool = False,
    ) -> Object:
        """Patch it, fitted."""
        stored = await self._kube.patch(
            resource,
            name,
            self._fit(body) if isinstance(body, Mapping) else body,
            kind=kind,
            namespace=self._real(namespace),
            subresource=subresource,
            field_manager=field_manager,
            force=force,
        )
        return self._shown(stored)

    async def delete(
        self, resource: Resource, name: str, *, namespace: str | None = None, options: DeleteOptions | None = None
    ) -> Object:
        """Delete it."""
        return self._shown(await self._kube.delete(resource, name, namespace=self._real(namespace), options=options))

    async def delete_collection(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        options: DeleteOptions | None = None,
    ) -> ObjectList:
        """Delete several."""
        return await self._kube.delete_collection(
            resource,
            namespace=self._real(namespace),
            label_selector=label_selector,
            field_selector=field_selector,
            options=options,
        )

    async def bind(
        self,
        namespace: str,
        pod: str,
        node: str,
        *,
        uid: str | None = None,
        annotations: Mapping[str, str] | None = None,
        resource_version: str | None = None,
    ) -> None:
        """Bind it."""
        there = self._there.get(namespace, namespace)
        await self._kube.bind(there, pod, node, uid=uid, annotations=annotations, resource_version=resource_version)

    async def evict(self, namespace: str, pod: str, *, options: DeleteOptions | None = None) -> None:
        """Evict it."""
        await self._kube.evict(self._there.get(namespace, namespace), pod, options=options)

    def log(
        self,
        namespace: str,
        pod: str,
        *,
        container: str | None = None,
        follow: bool = False,
        previous: bool = False,
        tail_lines: int | None = None,
    ) -> AsyncIterator[bytes]:
        """Return its log."""
        return self._kube.log(
            self._there.get(namespace, namespace),
            pod,
            container=container,
            follow=follow,
            previous=previous,
            tail_lines=tail_lines,
        )

    async def exec(
        self, namespace: str, pod: str, command: Sequence[str], *, container: str | None = None
    ) -> ExecResult:
        """Run a command in it."""
        return await self._kube.exec(self._there.get(namespace, namespace), pod, command, container=container)

    async def discovery(self) -> Sequence[Resource]:
        """Return all resources."""
        return await self._kube.discovery()

    async def close(self) -> None:
        """Give back connections."""
        await self._kube.close()
