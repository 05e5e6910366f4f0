"""metrics.k8s.io behind the real API server's aggregator: ``kubectl top`` on ``--cluster control-plane``.

kube-apiserver authenticates and authorises whoever asks, and shows its certificate here, as to the kubelets; it finds
this server by a Service that is a name: its address is on loopback, which Endpoints must not name.
"""

from __future__ import annotations

import base64
import ssl
from typing import Any

from aiohttp import web

from mews.kube.api.errors import AlreadyExistsError, ApiError
from mews.kube.api.objects import Object
from mews.kube.api.resources import NODES, PODS, SERVICES, Resource
from mews.kube.client.port import KubeApi
from mews.kube.clock import Clock
from mews.kube.emulated.ports.kubelets import KubeletDirectory
from mews.kube.emulated.streaming.metrics import GROUP, VERSION, listed, node_metrics, one, pod_metrics
from mews.listening.http import HttpListener

NAME, NAMESPACE = "metrics-server", "kube-system"
_APIS = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)
_CLOCK = Clock.wall()
_KINDS = {"nodes": ("NodeMetrics", False), "pods": ("PodMetrics", True)}
_READY_PRIORITY = 100


class AggregatedMetrics:
    """``context`` serves those alone who show the control plane's certificate; ``authority`` is it, in PEM."""

    def __init__(self, kube: KubeApi, kubelets: KubeletDirectory, context: ssl.SSLContext, authority: str) -> None:
        self._kube = kube
        self._kubelets = kubelets
        self._context = context
        self._authority = authority
        names = [f"{NAME}.{NAMESPACE}{rest}" for rest in ("", ".svc", ".svc.cluster.local")]
        self._listener = HttpListener(self._answer, refuse=_refused, names=names)

    async def open(self) -> None:
        """Listen, and let the API server know where."""
        await self._listener.open(tls=self._context)
        _, port = self._listener.address
        service = {"metadata": {"name": NAME}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
        api = {
            "metadata": {"name": f"{VERSION}.{GROUP}"},
            "spec": {
                "group": GROUP,
                "version": VERSION,
                "service": {"name": NAME, "namespace": NAMESPACE, "port": port},
                "caBundle": base64.b64encode(self._authority.encode()).decode(),
                "groupPriorityMinimum": _READY_PRIORITY,
                "versionPriority": _READY_PRIORITY,
            },
        }
        for resource, body, namespace in ((SERVICES, service, NAMESPACE), (_APIS, api, "")):
            try:
                await self._kube.create(resource, body, namespace=namespace)
            except AlreadyExistsError:
                continue

    async def close(self) -> None:
        """Stop listening."""
        await self._listener.close()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        base, parts = f"/apis/{GROUP}/{VERSION}", [part for part in request.path.split("/") if part]
        if request.path.rstrip("/") == base:
            return web.json_response(_resources())
        if not request.path.startswith(f"{base}/") or request.method != "GET":
            return web.json_response(_status("the server could not find the requested resource"), status=404)
        try:
            found = await self._found(parts[3:], request)
        except ApiError as error:
            return web.json_response(_status(error.message, error.code, error.reason), status=error.code)
        if found is None:
            return web.json_response(_status(f'{parts[-2]}.{GROUP} "{parts[-1]}" not found'), status=404)
        return web.json_response(found)

    async def _found(self, parts: list[str], request: web.BaseRequest) -> Object | None:
        """``nodes[/NAME]``, ``pods``, ``namespaces/NAMESPACE/pods[/NAME]``."""
        namespace = parts[1] if parts[0] == "namespaces" and len(parts) > 2 else None
        plural, *name = parts[2:] if namespace is not None else parts
        if plural not in _KINDS or len(name) > 1:
            return None
        resource = NODES if plural == "nodes" else PODS
        labels, fields = (request.query.get(key, "") for key in ("labelSelector", "fieldSelector"))
        there = await self._kube.list(resource, namespace=namespace, label_selector=labels, field_selector=fields)
        measure = node_metrics if plural == "nodes" else pod_metrics
        metrics = measure(there.items, self._kubelets.kubelet_of, _CLOCK.now())
        kind = _KINDS[plural][0]
        return one(kind, metrics, name[0]) if name else listed(kind, metrics)


def _resources() -> dict[str, Any]:
    resources = [
        {"name": plural, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get", "list"]}
        for plural, (kind, namespaced) in _KINDS.items()
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{VERSION}", "resources": resources}


def _status(message: str, code: int = 404, reason: str = "NotFound") -> dict[str, Any]:
    head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return {**head, "message": message, "reason": reason, "code": code}


def _refused(request: web.BaseRequest, status: int, text: str) -> web.StreamResponse:
    reasons = {403: "Forbidden", 429: "TooManyRequests", 500: "InternalError"}
    return web.json_response(_status(text, status, reasons.get(status, "BadRequest")), status=status)
