"""Koordinator's admission webhooks: pods with devices become our scheduler's, and nobody else binds them."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any

from mews.kube.api.errors import ApiError, Conflict, NotFound, Unavailable
from mews.kube.api.objects import Object
from mews.kube.api.resources import PODS, Resource
from mews.kube.clock import rest
from mews.kube.component import Context, record
from mews.kube.system.services import ServicePort, ServiceReply
from mews.listening.reading import read_like_go
from mews.systems.koordinator.admission import json_patch, mutated, refused_binding
from mews.systems.koordinator.config import KoordinatorConfig
from mews.systems.koordinator.errors import InvalidRequest

MUTATE, BIND = "/mutate-pod", "/validate-binding"
_GROUP, _V1 = "admissionregistration.k8s.io", "v1"
MUTATING = Resource(
    _GROUP, _V1, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False
)  # fmt: skip
VALIDATING = Resource(
    _GROUP, _V1, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
)  # fmt: skip
NAME = "koordinator"
_RETRY_S = 1.0
_KNOWN_IN_S = 2.0
"""Within which API servers have seen whom to trust."""


class KoordWebhook:
    """One incarnation. Its configurations stand in the API, so that what it answers for waits while it is away.

    A pod that cannot be rewritten while nobody answers is created as it is (``failurePolicy: Ignore``): it asks for
    nothing that our scheduler does not understand. A binding is refused then (``Fail``): it may be a foreign one.
    """

    def __init__(self, context: Context, config: KoordinatorConfig, service: ServicePort) -> None:
        self._context = context
        self._config = config
        self._service = service

    async def run(self) -> None:
        """Serve and be registered, until cancelled. Raises ValueError where it is not served under TLS."""
        self._hooks()  # before anything is begun
        async with asyncio.TaskGroup() as group:
            group.create_task(self._service.serve(self.handle))
            await self._service.reached()  # before anybody is sent there
            for kind, hook in self._hooks().items():
                group.create_task(self._register(kind, hook))
            group.create_task(self._renew_on())

    def _hooks(self, *, trusting: str = "") -> dict[Resource, dict[str, Any]]:
        """Both, and whom to trust for them: also ``trusting``, as a caBundle."""
        namespace = self._config.namespace
        hooks = {
            MUTATING: _hook("mutate-pod", self._service.client_config(namespace, MUTATE), "pods", policy="Ignore"),
            VALIDATING: _hook(
                "validate-binding",
                self._service.client_config(namespace, BIND),
                "pods/binding",
                "bindings",  # the same by its older path
                policy="Fail",
            ),
        }
        for hook in hooks.values():
            hook["namespaceSelector"] = _elsewhere(namespace)
            bundle = hook["clientConfig"].get("caBundle", "")
            if trusting and trusting != bundle:
                both = base64.b64decode(trusting) + base64.b64decode(bundle)
                hook["clientConfig"]["caBundle"] = base64.b64encode(both).decode()
        return hooks

    async def _renew_on(self) -> None:
        """Show each new certificate once those who ask trust it, and the old one, too: no call is lost between."""
        trusted = self._bundle()
        while True:
            await self._service.superseded()
            try:
                hooks = self._hooks(trusting=trusted)
                for kind, hook in hooks.items():
                    await self._register(kind, hook)
                await rest(_KNOWN_IN_S)
                self._service.renew()
                trusted = self._bundle()
                for kind, hook in self._hooks().items():
                    await self._register(kind, hook)
                record(self._context.log, "certificate-renewed")
            except (OSError, ValueError) as error:  # it is being replaced: both files are not there yet
                record(self._context.log, "certificate-not-renewed", error=str(error))
                await rest(_RETRY_S)

    def _bundle(self) -> str:
        found = self._service.client_config(self._config.namespace, MUTATE).get("caBundle", "")
        return str(found)

    async def _register(self, kind: Resource, hook: Mapping[str, Any]) -> None:
        body = {"metadata": {"name": NAME}, "webhooks": [dict(hook)]}
        while True:
            try:
                try:
                    await self._context.kube.create(kind, body)
                except Conflict:
                    await self._context.kube.patch(kind, NAME, {"webhooks": [dict(hook)]})
                record(self._context.log, "webhook-registered", kind=kind.kind)
                return
            except (ApiError, Unavailable) as error:
                record(self._context.log, "webhook-not-registered", kind=kind.kind, error=str(error))
                await rest(_RETRY_S)

    async def handle(self, method: str, path: str, body: bytes) -> ServiceReply:
        """Answer one AdmissionReview."""
        try:
            review = read_like_go(body)
            request = review["request"]
            uid = request["uid"]
        except (KeyError, TypeError, ValueError):
            return ServiceReply(400, b'{"error": "the body must be an AdmissionReview of admission.k8s.io/v1"}')
        where = path.partition("?")[0]
        if method != "POST" or where not in (MUTATE, BIND):
            return ServiceReply(
                404, json.dumps({"error": f"{method} {where}: must be POST {MUTATE} or {BIND}"}).encode()
            )
        answer = self._mutate(request) if where == MUTATE else await self._bind(request)
        response = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": {"uid": uid, **answer}}
        return ServiceReply(200, json.dumps(response).encode())

    def _mutate(self, request: Mapping[str, Any]) -> dict[str, Any]:
        pod: Object = request["object"]
        try:
            after = mutated(pod, scheduler=self._config.scheduler_name, device_plugin=self._config.device_plugin)
        except InvalidRequest as invalid:
            return {"allowed": False, "status": {"code": 422, "reason": "Invalid", "message": str(invalid)}}
        patch = json_patch(pod, after)
        if not patch:
            return {"allowed": True}
        text = base64.b64encode(json.dumps(patch).encode()).decode()
        return {"allowed": True, "patchType": "JSONPatch", "patch": text}

    async def _bind(self, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            pod = await self._context.kube.get(PODS, request["name"], namespace=request["namespace"])
        except NotFound:
            return {"allowed": True}  # the API server says so itself
        except (ApiError, Unavailable) as error:
            return _forbidden(f"pod {request['namespace']}/{request['name']} cannot be read: {error}")
        user = str((request.get("userInfo") or {}).get("username", ""))
        refusal = refused_binding(pod, user, accounts=self._config.scheduler_accounts())
        return _forbidden(refusal) if refusal else {"allowed": True}


def _forbidden(message: str) -> dict[str, Any]:
    return {"allowed": False, "status": {"code": 403, "reason": "Forbidden", "message": message}}


def _elsewhere(namespace: str) -> dict[str, Any]:
    """All namespaces but its own and the cluster's: else, while it is away, its own pod could not be bound either."""
    own = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [namespace, "kube-system"]}
    return {"matchExpressions": [own]}


def _hook(name: str, client: Mapping[str, Any], *resources: str, policy: str) -> dict[str, Any]:
    return {
        "name": f"{name}.koordinator.sh",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": policy,
        "clientConfig": dict(client),
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [*resources]}],
    }
