"""Koordinator's admission webhooks: pods with devices become our scheduler's, and nobody else binds them."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any

from mews.kube.api.errors import ApiError, ConflictError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object
from mews.kube.api.resources import PODS, Resource
from mews.kube.clock import rest
from mews.kube.component import Context, record
from mews.kube.system.services import ServicePort, ServiceReply
from mews.listening.reading import read_like_go
from mews.systems.koordinator.admission import json_patch, mutated, refused_binding
from mews.systems.koordinator.config import KoordinatorConfig
from mews.systems.koordinator.errors import InvalidRequestError
from mews.systems.koordinator.validation import refusal_of

MUTATE, VALIDATE, BIND = "/mutate-pod", "/validate-pod", "/validate-binding"
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

    A pod that cannot be rewritten or judged while nobody answers is created as it is (``failurePolicy: Ignore``): it
    asks for nothing that our scheduler does not understand, or refuses itself. A binding is refused then (``Fail``): it
    may be a foreign one.
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
            for kind, hooks in self._hooks().items():
                group.create_task(self._register(kind, hooks))
            group.create_task(self._renew_on())

    def _hooks(self, *, trusting: str = "") -> dict[Resource, list[dict[str, Any]]]:
        """Return all of them, and whom to trust for them: also ``trusting``, as a caBundle."""
        namespace = self._config.namespace
        mutate, validate, bind = (self._service.client_config(namespace, path) for path in (MUTATE, VALIDATE, BIND))
        writes = ("CREATE", "UPDATE")  # as upstream (pkg/webhook/pod/validating/webhooks.go)
        hooks = {
            MUTATING: [_hook("mutate-pod", mutate, "pods", policy="Ignore")],
            VALIDATING: [
                _hook("validate-pod", validate, "pods", policy="Ignore", operations=writes),
                # the second is the same by its older path
                _hook("validate-binding", bind, "pods/binding", "bindings", policy="Fail"),
            ],
        }
        for hook in (*hooks[MUTATING], *hooks[VALIDATING]):
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
                for kind, known in hooks.items():
                    await self._register(kind, known)
                await rest(_KNOWN_IN_S)
                self._service.renew()
                trusted = self._bundle()
                for kind, known in self._hooks().items():
                    await self._register(kind, known)
                record(self._context.log, "certificate-renewed")
            except (OSError, ValueError) as error:  # it is being replaced: both files are not there yet
                record(self._context.log, "certificate-not-renewed", error=str(error))
                await rest(_RETRY_S)

    def _bundle(self) -> str:
        found = self._service.client_config(self._config.namespace, MUTATE).get("caBundle", "")
        return str(found)

    async def _register(self, kind: Resource, hooks: list[dict[str, Any]]) -> None:
        body = {"metadata": {"name": NAME}, "webhooks": hooks}
        while True:
            try:
                try:
                    await self._context.kube.create(kind, body)
                except ConflictError:
                    await self._context.kube.patch(kind, NAME, {"webhooks": hooks})
                record(self._context.log, "webhook-registered", kind=kind.kind)
                return
            except (ApiError, UnavailableError) as error:
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
        if method != "POST" or where not in (MUTATE, VALIDATE, BIND):
            text = f"{method} {where}: must be POST {MUTATE}, {VALIDATE} or {BIND}"
            return ServiceReply(404, json.dumps({"error": text}).encode())
        try:
            if where == BIND:
                answer = await self._bind(request)
            else:
                answer = self._mutate(request) if where == MUTATE else _validate(request)
            response = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": {"uid": uid, **answer}}
        except (AttributeError, LookupError, TypeError, ValueError) as error:  # an object that no API server sends
            text = f"the review's object cannot be read: {type(error).__name__}"
            return ServiceReply(400, json.dumps({"error": text}).encode())
        return ServiceReply(200, json.dumps(response).encode())

    def _mutate(self, request: Mapping[str, Any]) -> dict[str, Any]:
        pod: Object = request["object"]
        try:
            after = mutated(pod, scheduler=self._config.scheduler_name, device_plugin=self._config.device_plugin)
        except InvalidRequestError as invalid:
            return {"allowed": False, "status": {"code": 422, "reason": "Invalid", "message": str(invalid)}}
        patch = json_patch(pod, after)
        if not patch:
            return {"allowed": True}
        text = base64.b64encode(json.dumps(patch).encode()).decode()
        return {"allowed": True, "patchType": "JSONPatch", "patch": text}

    async def _bind(self, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            pod = await self._context.kube.get(PODS, request["name"], namespace=request["namespace"])
        except NotFoundError:
            return {"allowed": True}  # the API server says so itself
        except (ApiError, UnavailableError) as error:
            return _forbidden(f"pod {request['namespace']}/{request['name']} cannot be read: {error}")
        user = str((request.get("userInfo") or {}).get("username", ""))
        refusal = refused_binding(pod, user, accounts=self._config.scheduler_accounts())
        return _forbidden(refusal) if refusal else {"allowed": True}


def _validate(request: Mapping[str, Any]) -> dict[str, Any]:
    """Refused with the code of a bad request, as upstream (pkg/webhook/pod/validating/validating_handler.go)."""
    refusal = refusal_of(request["object"], request.get("oldObject"))
    return {"allowed": False, "status": {"code": 400, "message": refusal}} if refusal else {"allowed": True}


def _forbidden(message: str) -> dict[str, Any]:
    return {"allowed": False, "status": {"code": 403, "reason": "Forbidden", "message": message}}


def _elsewhere(namespace: str) -> dict[str, Any]:
    """Return all namespaces but its own and the cluster's: else, while it is away, its own pod could not be bound
    either."""
    own = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [namespace, "kube-system"]}
    return {"matchExpressions": [own]}


def _hook(
    name: str,
    client: Mapping[str, Any],
    *resources: str,
    policy: str,
    operations: tuple[str, ...] = ("CREATE",),
) -> dict[str, Any]:
    return {
        "name": f"{name}.koordinator.sh",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": policy,
        "clientConfig": dict(client),
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": [*operations], "resources": [*resources]}],
    }
