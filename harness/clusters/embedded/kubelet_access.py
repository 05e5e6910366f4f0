"""Who may ask a kubelet what: the API says, by reviews of tokens and of access (kubelet's webhook modes).

Sources: pkg/kubelet/server/auth.go and server.go (InstallAuthFilter); defaults of KubeletConfiguration.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from aiohttp import web

from mews.kube.api.objects import Object
from mews.kube.api.resources import Resource

_TOKENS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
_ACCESS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
_KNOWN_S, _ALLOWED_S, _DENIED_S = 120.0, 300.0, 30.0
_MOST = 1_000
_VERBS = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_FINE = {"pods": "pods", "healthz": "healthz", "configz": "configz", "runningpods": "pods"}
_COARSE = {"stats": "stats", "metrics": "metrics", "logs": "log", "checkpoint": "checkpoint", "statusz": "statusz"}
_COARSE |= {"flagz": "configz"}


class ReviewApi(Protocol):
    """The API, as far as it is asked here."""

    async def create(self, resource: Resource, obj: Object, /) -> Object:
        """Return the answer to a review.

        Raises ApiError, UnavailableError.
        """
        ...


class KubeletAccess:
    """Asks the API, and remembers its answers as long as upstream does."""

    def __init__(self, kube: ReviewApi) -> None:
        self._kube = kube
        self._users: dict[str, tuple[float, Mapping[str, Any] | None]] = {}
        self._allowed: dict[tuple[str, ...], tuple[float, bool]] = {}

    async def refusal(self, request: web.BaseRequest, host: str) -> web.Response | None:
        """Return what somebody is answered who may not ask this of that host's kubelet; None: they may.

        Raises ApiError, UnavailableError where the API does not say.
        """
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        user = await self._user(token.strip()) if scheme.lower() == "bearer" and token.strip() else None
        if user is None:
            return web.Response(status=401, text="Unauthorized")
        verb, parts = _VERBS.get(request.method, ""), subresources(request.path)
        for part in parts:
            if await self._may(user, verb, part, host):
                return None
        shown = f"user={user.get('username', '')}, verb={verb}, resource=nodes, subresource(s)=[{' '.join(parts)}]"
        return web.Response(status=403, text=f"Forbidden ({shown})\n")

    async def _user(self, token: str) -> Mapping[str, Any] | None:
        now = asyncio.get_running_loop().time()
        until, user = self._users.get(token, (0.0, None))
        if now < until:
            return user
        answer = await self._kube.create(_TOKENS, _asked(_TOKENS, {"token": token}))
        status = answer["status"]
        user = status.get("user") if status.get("authenticated") else None
        _remember(self._users, token, (now + _KNOWN_S, user))
        return user

    async def _may(self, user: Mapping[str, Any], verb: str, part: str, host: str) -> bool:
        now, groups = asyncio.get_running_loop().time(), list(user.get("groups") or ())
        key = (str(user.get("username")), *groups, verb, part, host)
        until, allowed = self._allowed.get(key, (0.0, False))
        if now < until:
            return allowed
        asked = {"verb": verb, "version": "v1", "resource": "nodes", "subresource": part, "name": host}
        spec = {"user": user.get("username"), "groups": groups, "uid": user.get("uid", ""), "resourceAttributes": asked}
        answer = await self._kube.create(_ACCESS, _asked(_ACCESS, spec))
        allowed = bool(answer["status"].get("allowed"))
        _remember(self._allowed, key, (now + (_ALLOWED_S if allowed else _DENIED_S), allowed))
        return allowed


def subresources(path: str) -> list[str]:
    """Return those of nodes, any of which allows to ask for that path."""
    first = path.lstrip("/").partition("/")[0]
    fine = [_FINE[first.lower()]] if first.lower() in _FINE else []
    return [*fine, _COARSE.get(first, "proxy")]


def _asked(resource: Resource, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "spec": dict(spec)}


def _remember(known: dict[Any, Any], key: Any, value: Any) -> None:
    if len(known) >= _MOST:
        known.clear()
    known[key] = value
