"""The HTTP face of the store: what kubectl and any other client of Kubernetes speaks to."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from aiohttp import web

from mews.certificates import Certificates
from mews.kube.api.errors import ApiError, BadRequestError, ForbiddenError, TooManyRequestsError
from mews.kube.emulated.apiserver import component_statuses, health
from mews.kube.emulated.apiserver.bootstrap import note_legacy_tokens
from mews.kube.emulated.apiserver.first_objects import furnish, keep_addresses
from mews.kube.emulated.apiserver.housekeeping import Housekeeping
from mews.kube.emulated.apiserver.openapi_cache import SwaggerCache
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.long_work import LONG_WORK, LongWork
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.core.store.users import User
from mews.kube.emulated.core.wire import discovery, openapi, reads, routes, streams, writes
from mews.kube.emulated.core.wire.call import (
    Call,
    ObjectResponse,
    ServerContext,
    answer,
    headers,
    indented,
    refuse,
    text,
    warning,
)
from mews.kube.emulated.core.wire.negotiation import JSON, accepted, wants_indented
from mews.kube.emulated.core.wire.parameters import flag
from mews.kube.emulated.packs.access.account_tokens import AccountTokens
from mews.kube.emulated.packs.access.authentication import Authenticator, ImpersonationError
from mews.kube.emulated.packs.access.authorization import Attributes, Authorizer
from mews.kube.emulated.packs.access.delegation import keep_trust
from mews.kube.emulated.packs.access.server_access import ServerAccess
from mews.kube.emulated.packs.aggregation.aggregator import Aggregator
from mews.kube.emulated.packs.aggregation.openapi_parts import joined_swagger
from mews.kube.emulated.packs.kubelets import connects, measures, metrics_api, pod_streams, proxies
from mews.kube.emulated.packs.policies.webhook_calls import HttpWebhooks
from mews.kube.emulated.ports.kubelets import KubeletDirectory, NoKubelets
from mews.kube.emulated.streaming.metrics import GROUP as METRICS_GROUP
from mews.listening.connections import begin_stream
from mews.listening.http import HttpListener

Handler = Callable[[Call], Awaitable[web.StreamResponse]]

IN_CLUSTER = tuple(f"kubernetes{rest}" for rest in ("", ".default", ".default.svc", ".default.svc.cluster.local"))
"""The API server's names within its cluster."""

_OF_OBJECTS: Mapping[str, Handler] = {
    "GET": reads.get,
    "POST": writes.post,
    "PUT": writes.put,
    "PATCH": writes.patch,
    "DELETE": writes.delete,
}
_OF_COLLECTIONS: Mapping[str, Handler] = {
    "GET": reads.list_,
    "POST": writes.post,
    "DELETE": writes.delete_collection,
}
_KEYS = "application/jwk-set+json"
_OF_STREAMS: Mapping[str, Handler] = {
    "log": pod_streams.log,
    "exec": pod_streams.exec_,
    "attach": pod_streams.attach,
    "portforward": pod_streams.portforward,
    "proxy": proxies.proxy,
}
_UPGRADED = ("GET", "POST")
_STREAM_METHODS: Mapping[str, tuple[str, ...]] = {
    "log": ("GET",),
    "exec": _UPGRADED,
    "attach": _UPGRADED,
    "portforward": _UPGRADED,
    "proxy": ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"),
}
_REVIEWS = ("authentication.k8s.io", "authorization.k8s.io")
"""Groups whose objects are questions, which are asked by POST."""
_VERBS: Mapping[str, str] = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class ApiServer:
    """Serves a store on loopback or elsewhere.

    ``tokens`` maps bearer tokens to users, or to the names of administrators; without any everybody is the
    administrator. ``ssl_context`` makes it TLS, which is what kubectl wants before it sends a token. ``usage``: what
    the kubelets' pods use is served, as a metrics-server would. Who watches and takes nothing for ``patience_s`` is cut
    off. Requests of web pages, and by names that are not the server's, are refused (``mews.callers``); ``allow_hosts``
    adds names. ``authority``, in PEM, has signed certificates of this cluster; ``front`` is shown to servers behind
    APIServices, so that they know who asks. ``reads_only``: why nothing but reads is answered, and the server adds no
    object of its own; "" where all is.
    """

    def __init__(
        self,
        store: Store,
        *,
        kubelets: KubeletDirectory | None = None,
        tokens: Mapping[str, str | User] | None = None,
        ssl_context: ssl.SSLContext | None = None,
        usage: bool = False,
        patience_s: float = 30.0,
        allow_hosts: Iterable[str] = (),
        reads_only: str = "",
        authority: str = "",
        front: Certificates | None = None,
    ) -> None:
        self._reads_only = reads_only
        store.keeps_owners = True
        if store.webhooks is None:
            store.webhooks = HttpWebhooks(store)
        authorizer = Authorizer(store)
        authenticator = Authenticator(tokens, AccountTokens(store), authorizer)
        self._access = ServerAccess(authenticator, authorizer)
        self._world = ServerContext(store, kubelets or NoKubelets(), self._access, patience_s)
        self._swagger = SwaggerCache()
        self._aggregator = Aggregator(store, front)
        self._trust = (authority, front)
        self._ssl = ssl_context
        self._listener = HttpListener(self._handle, refuse=_refused, names=(*IN_CLUSTER, *allow_hosts))
        self._usage = usage
        self._stops: list[Callable[[], object]] = []
        self._address = ("", 0)

    @property
    def url(self) -> str:
        """``http://127.0.0.1:6443``."""
        host, port = self._address
        return f"{'https' if self._ssl else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"

    @property
    def watches(self) -> int:
        """How many watches are open."""
        return len(self._world.watches)

    async def start(self, host: str = "127.0.0.1", port: int = 0, *, unix_socket: str = "") -> None:
        """Listen; port 0 takes a free one. On ``unix_socket`` the same is served without TLS."""
        await self._listener.open(host, port, tls=self._ssl, unix_socket=unix_socket)
        self._address = self._listener.address
        if self._reads_only:
            return
        store = self._world.store
        note_legacy_tokens(store)
        furnish(store, self.url)
        self._stops.append(keep_addresses(store))
        self._stops.append(keep_trust(store, *self._trust))
        self._aggregator.start()
        if self._usage:
            measures.serve_kinds(store)
        keeping = asyncio.create_task(Housekeeping(store).run())
        self._stops.append(keeping.cancel)

    async def stop(self) -> None:
        """End all watches, then close."""
        for subscription in list(self._world.watches):
            subscription.end()
        while self._stops:
            self._stops.pop()()
        await self._aggregator.stop()
        self._world.long_work.close()
        await self._listener.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        token = LONG_WORK.set(LongWork(self._world.long_work))
        try:
            response = await self._answer(request)
        except ApiError as error:
            response = refuse(error, request)
        except (ImpersonationError, routes.NoRouteError) as error:
            return text(f"Internal Server Error: {refusals.shown(request.path_qs)}: {error}\n", 500)
        finally:
            LONG_WORK.reset(token)
        asked = (request.query.get("pretty", ""), request.headers.get("User-Agent", ""))
        if isinstance(response, ObjectResponse) and wants_indented(*asked):
            response.indent()
        return response

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        parts = routes.split(request.path)
        user = self._access.authenticator.user_of(request.headers)
        route = routes.parse(parts)
        self._access.authorizer.check(user, _attributes(request, route))
        if self._reads_only and not _only_reads(request, route):
            raise ForbiddenError(f"{request.method} {request.path}: {self._reads_only}")
        remote = self._aggregator.api(parts)
        if remote is not None:
            return await self._aggregator.pass_on(request, user, remote)
        if route is None:
            return self._about(request, parts)
        kinds = self._world.store.kinds
        served = kinds.group_versions().get((route.group, route.version), [])
        if all(kind.custom and kind.plural != route.plural for kind in served):
            return self._unserved(route.group, route.version)
        kind = route.kind(kinds)
        streamed = _is_watch(request, route)
        stored = "get" in kind.verbs or request.method != "POST"
        forms = accepted(request.headers.get("Accept", ""), streamed=streamed, reshaped=stored)
        call = Call(self._world, request, user, route, kind, forms)
        asked = self._world.metrics.begin(_verb(request, route), route)
        try:
            handler = _handler(call)
            if route.subresource in connects.CONNECTED:
                await connects.admit(call)
            response = await handler(call)
        except ApiError as error:
            asked.end(error.code)
            refused = error.reason == "MethodNotAllowed" and not streamed  # before the handler that would warn
            error.warnings = [*([kind.warning] if kind.warning and not refused else []), *call.warnings]
            raise
        asked.end(response.status)
        if kind.warning and not response.prepared:
            others = response.headers.popall("Warning", [])
            response.headers.extend([("Warning", text) for text in (warning(kind.warning), *others)])
        return response

    # Complex: one case for each path that is no resource.
    def _about(self, request: web.BaseRequest, parts: list[str]) -> web.Response:  # noqa: C901
        """Return everything that is not a resource: discovery, OpenAPI, health, version."""
        if request.method != "GET" and (parts[:1] in (["version"], ["api"]) or request.method == "TRACE"):
            raise refusals.wrong_method()
        if request.method not in ("GET", "HEAD") and len(parts) > 1 and not _takes_any_method(parts):
            raise refusals.wrong_method()
        # The whole table of paths that are no resource, in one place as in a router: most cases are one expression, and
        # what they share (405 before, 404 after, the media type) stands around the table once.
        kinds, others = self._world.store.kinds, self._aggregator.documents
        body = None
        match parts:
            case [] | ["index.html"]:
                return indented(others.extend_paths(discovery.root_paths(kinds, health.paths())))
            case ["version"]:
                return indented(discovery.version(kinds.release))
            case [name, *rest] if name in health.FACES:
                return health.answer(self._world.store, name, rest, request.query)
            case ["metrics"]:
                return self._world.metrics.answer(self._world.store, len(self._world.watches))
            case [".well-known", "openid-configuration"]:
                return answer(
                    self._access.authenticator.accounts.configuration(self.url),
                    cache="public, max-age=3600",
                    ends_line=False,
                )
            case ["openid", "v1", "jwks"]:
                return _key_set(request, self._access.authenticator.accounts.public_keys())
            case ["api"] | ["apis"]:
                return self._discovery(request, core=parts[0] == "api")
            case ["api", version]:
                body = discovery.resource_list(kinds, ("", version))
            case ["apis", group]:
                body = others.extend_group(group, discovery.group(kinds, group))
            case ["apis", group, version]:
                body = discovery.resource_list(kinds, (group, version))
            case ["openapi", "v2"] if openapi.ASKED_IN_PROTOBUF in request.headers.get("Accept", ""):
                return web.Response(
                    body=openapi.empty(kinds.release), headers={**headers(), "Content-Type": openapi.IN_PROTOBUF}
                )
            case ["openapi", "v2"] if accepted(request.headers.get("Accept", ""))[0].media == JSON:
                return self._swagger.answer(kinds, request.headers.get("If-None-Match", ""), others)
            case ["openapi", "v2"]:
                body = joined_swagger(openapi.swagger(kinds), list(others.swaggers()))
            case ["openapi", "v3"] if not request.path.endswith("/"):
                index = others.extend_index(openapi.index(kinds))
                return answer(index, content_type="text/plain; charset=utf-8", ends_line=False)
            case ["openapi", "v3", *rest]:
                body = openapi.document(kinds, "/".join(rest)) if rest else None
                if body is None:
                    return web.Response(status=404, headers=headers())
        if body is None:
            if parts[0] not in ("api", "apis"):
                return text("404 page not found\n", 404)
            return self._unserved(*([*parts[1:3], ""][:2] if parts[0] == "apis" else ("", parts[1])))
        media = accepted(request.headers.get("Accept", ""))[0].media
        return answer(body, media=media, ends_line=parts[0] != "openapi")

    def _unserved(self, group: str, version: str) -> web.Response:
        """Return what is not there: of a group that is served it is a resource."""
        store = self._world.store
        found = discovery.group(store.kinds, group) if group else {}
        own = any(not kind.custom and kind.resource.group == group for kind in store.kinds)
        if found is None or not own:
            return text("404 page not found\n", 404)
        raise refusals.unknown_resource()

    def _discovery(self, request: web.BaseRequest, *, core: bool) -> web.Response:
        kinds, others = self._world.store.kinds, self._aggregator.documents
        for form in accepted(request.headers.get("Accept", "")):
            if discovery.wants_aggregated(form):
                kind = f"application/json;g=apidiscovery.k8s.io;v={form.version};as={discovery.AGGREGATED}"
                body = discovery.aggregated(kinds, core=core, version=form.version)
                return answer(body if core else others.extend_discovery(body), content_type=kind, cache="public")
            if not form.kind:
                address = self.url.partition("//")[2]
                listed = discovery.core_versions(address) if core else others.extend_groups(discovery.group_list(kinds))
                return answer(listed, media=form.media)
        raise refusals.unknown_resource()


def _takes_any_method(parts: Sequence[str]) -> bool:
    """OpenAPI and the index of a group are handlers without a method of their own; versions are web services."""
    return parts[0] == "openapi" or (parts[0] == "apis" and len(parts) == 2)


def _key_set(request: web.BaseRequest, keys: Mapping[str, Any]) -> web.Response:
    """Return the keys in their own media type, and in no other."""
    asked = [part.partition(";")[0].strip() for part in request.headers.get("Accept", "*/*").split(",")]
    if not {"*/*", "application/*", _KEYS}.intersection(asked):
        raise ApiError(
            f"406: Not Acceptable\n\nAvailable representations: {_KEYS}", code=406, reason="NotAcceptable", details={}
        )
    return answer(keys, content_type=_KEYS, cache="public, max-age=3600", ends_line=False)


def _refused(request: web.BaseRequest, status: int, text: str) -> web.StreamResponse:
    """Return what the listener refuses, as a Status."""
    match status:
        case 403:
            error: ApiError = ForbiddenError(text)
        case 429:
            error = TooManyRequestsError(text)
        case 500:
            error = ApiError("Internal error occurred", reason="InternalError")
        case _:
            error = BadRequestError(text)
    return refuse(error, request)


# Complex: one branch for each kind of route.
def _handler(call: Call) -> Handler:  # noqa: C901
    """Return what serves the request; 405 when nothing does."""
    route, method = call.route, call.request.method
    if (
        route.group == METRICS_GROUP
        and not route.subresource
        and method == "GET"
        and not _is_watch(call.request, route)
    ):
        return metrics_api.serve
    if route.plural == component_statuses.RESOURCE and not route.group and not route.subresource and method == "GET":
        if _is_watch(call.request, route):
            raise component_statuses.no_watch()
        return component_statuses.serve
    if route.rest and route.subresource != "proxy":
        raise refusals.unknown_resource()
    if route.subresource in _OF_STREAMS and method in _STREAM_METHODS[route.subresource]:
        if flag(call.query, "follow") or route.subresource not in ("log", "proxy"):
            begin_stream(call.request)
        return _OF_STREAMS[route.subresource]
    if route.subresource:
        sub = call.kind.subresource(route.subresource)
        if sub is None or _VERBS.get(method) not in sub.verbs:
            raise refusals.wrong_method()
        if route.subresource in _OF_STREAMS:  # never the object itself: a DELETE would take that away
            reads.check_there(call)
            raise refusals.wrong_method()
    elif _verb(call.request, route) not in call.kind.verbs or _deletes_everywhere(call):
        raise refusals.wrong_method()
    elif _is_watch(call.request, route):
        begin_stream(call.request)
        return streams.watch
    handler = (_OF_OBJECTS if route.name else _OF_COLLECTIONS).get(method)
    if handler is None:
        raise refusals.wrong_method()
    return handler


def _only_reads(request: web.BaseRequest, route: routes.Route | None) -> bool:
    """Return whether it changes nothing: not the cluster, and nothing that runs in it."""
    if route is not None and route.group in _REVIEWS:
        return True
    connects_to = route is not None and route.subresource in connects.CONNECTED
    return request.method in ("GET", "HEAD") and not connects_to


def _is_watch(request: web.BaseRequest, route: routes.Route) -> bool:
    if request.method != "GET" or route.subresource:
        return False
    return route.watched or (not route.name and flag(request.query, "watch"))


def _deletes_everywhere(call: Call) -> bool:
    """Collections are deleted in one namespace at a time."""
    route = call.route
    return (
        call.request.method == "DELETE" and not route.name and call.kind.resource.namespaced and route.namespace is None
    )


def _verb(request: web.BaseRequest, route: routes.Route) -> str:
    """Return the verb as authorisation names it."""
    verb = _VERBS.get(request.method, request.method.lower())
    if _is_watch(request, route):
        return "watch"
    if not route.name:
        return {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    return verb


def _attributes(request: web.BaseRequest, route: routes.Route | None) -> Attributes:
    """Return what the request asks for, as authorisation names it."""
    if route is None:
        return Attributes(request.method.lower(), path=request.path)
    verb, name = _verb(request, route), route.name
    if not name and verb in ("list", "watch", "deletecollection"):
        name = _selected(request.query.get("fieldSelector", ""))
    itself = name if (route.group, route.plural) == ("", "namespaces") else ""
    namespace = route.namespace or itself
    return Attributes(verb, route.group, route.plural, route.subresource, namespace, name)


def _selected(fields: str) -> str:
    """Return the one name that a field selector leaves, if it does."""
    key, _, name = fields.partition("=")
    return name.lstrip("=") if key == "metadata.name" and "," not in name else ""
