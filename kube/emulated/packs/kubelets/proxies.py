"""The ``proxy`` subresources: requests that are passed on to a pod, to a service's pods, to a node's kubelet."""

from __future__ import annotations

import contextlib
from typing import Any
from urllib.parse import quote

import aiohttp
from aiohttp import web
from msgspec import Struct
from multidict import CIMultiDict, CIMultiDictProxy

from mews.kube.api.errors import ApiError, BadRequestError, ServerError
from mews.kube.api.objects import Object, containers_of
from mews.kube.api.resources import NODES
from mews.kube.emulated.core.store.selection import Selection
from mews.kube.emulated.core.wire.call import MAX_BODY, Call
from mews.kube.emulated.packs.kubelets import containers
from mews.kube.emulated.packs.kubelets.kubelet_face import answer_as_kubelet
from mews.listening.connections import read_at_most
from mews.listening.limits import HOP_BY_HOP

_OWN = HOP_BY_HOP | {"host", "content-length", "authorization"}
AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that aiohttp's client adds to requests without them: a proxy hands on what it got."""
_CHUNK = 64 * 1024
_CONNECT_S = 30.0


class ProxyTarget(Struct, frozen=True):
    """Where a request goes: ``https`` is asked without looking at the certificate, as upstream."""

    scheme: str
    host: str
    port: int


async def proxy(call: Call) -> web.StreamResponse:
    """Pass the request on, and the answer back."""
    scheme, name, port = _split(call.route.name)
    match call.route.plural:
        case "nodes":
            node = call.world.store.get(call.kind, "", name)
            addresses = (node.get("status") or {}).get("addresses")
            if not addresses and call.world.kubelets.kubelet_of(node["metadata"]["name"]) is None:
                raise ServerError("no preferred addresses found; known addresses: []", reason="")
            kubelet = containers.kubelet_of(call.world.kubelets, node["metadata"]["name"])
            return await answer_as_kubelet(kubelet, call.request, call.route.rest, now=call.world.store.now())
        case "pods":
            return await _pass(call, _pod_target(call, scheme, name, port))
        case _:
            return await _pass(call, _service_target(call, scheme, name, port))


def _split(name: str) -> tuple[str, str, str]:
    """``[scheme:]name[:port]`` (apimachinery net.SplitSchemeNamePort)."""
    parts = name.split(":")
    if len(parts) > 3 or (len(parts) == 3 and parts[0] not in ("http", "https", "")) or not parts[-2:][0]:
        raise BadRequestError(f'invalid proxy request "{name}"')
    if len(parts) == 1:
        return "http", parts[0], ""
    if len(parts) == 2:
        return "http", parts[0], parts[1]
    return parts[0] or "http", parts[1], parts[2]


def _pod_target(call: Call, scheme: str, name: str, port: str) -> ProxyTarget:
    pod = call.world.store.get(call.kind, call.namespace, name)
    address = (pod.get("status") or {}).get("podIP")
    if not address:
        raise BadRequestError("address not allowed")
    if not port:
        declared = [each for container in containers_of(pod) for each in container.get("ports") or ()]
        port = str(declared[0]["containerPort"]) if declared else ("443" if scheme == "https" else "80")
    return ProxyTarget(scheme, address, _number(port))


def _service_target(call: Call, scheme: str, name: str, port: str) -> ProxyTarget:
    store = call.world.store
    service = store.get(call.kind, call.namespace, name)
    ports = (service.get("spec") or {}).get("ports") or []
    if not port and len(ports) == 1:
        port = str(ports[0].get("name") or "")
    elif port.isdigit():
        named = [each for each in ports if each["port"] == int(port)]
        if not named:
            raise _unavailable(f'no service port {port} found for service "{name}"')
        port = str(named[0].get("name") or "")
    kind = store.kinds.find("discovery.k8s.io", "v1", "endpointslices")
    assert kind is not None
    for piece in store.shelf(kind).select(Selection(call.namespace)):
        if (piece["metadata"].get("labels") or {}).get("kubernetes.io/service-name") == name:
            target = _endpoint(piece, scheme, port)
            if target is not None:
                return target
    raise _unavailable(f'no endpoints available for service "{call.route.name}"')


def _endpoint(piece: Object, scheme: str, port: str) -> ProxyTarget | None:
    numbers = [each["port"] for each in piece.get("ports") or () if (each.get("name") or "") == port]
    for endpoint in piece.get("endpoints") or ():
        ready = (endpoint.get("conditions") or {}).get("ready", True)
        if numbers and ready and endpoint.get("addresses"):
            return ProxyTarget(scheme, endpoint["addresses"][0], int(numbers[0]))
    return None


def _unavailable(text: str) -> ApiError:
    return ApiError(text, code=503, reason="ServiceUnavailable")


def _number(port: str) -> int:
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 0x10000):
        raise BadRequestError(f'invalid port "{port}"')
    return int(port)


def _hold_to_pods(call: Call, target: ProxyTarget) -> None:
    """A pod's status and an EndpointSlice are words of whoever may write them. Pods of processes have addresses of this
    machine, whose other ports are nobody's business: only what a kubelet gave away is reached.

    Raises BadRequestError, worded as upstream's proxyutil.IsProxyableIP.
    """
    store = call.world.store
    for node in store.shelf(store.kinds.of(NODES)).select(Selection()):
        kubelet = call.world.kubelets.kubelet_of(node["metadata"]["name"])
        if kubelet is not None and target.host in kubelet.addresses():
            return
    raise BadRequestError("address not allowed")


async def _pass(call: Call, target: ProxyTarget) -> web.StreamResponse:
    _hold_to_pods(call, target)
    request, rest = call.request, quote(call.route.rest, safe="/%:@!$&'()*+,;=~-._")
    if call.request.path.endswith("/") and rest:
        rest += "/"
    host = f"[{target.host}]" if ":" in target.host else target.host
    url = f"{target.scheme}://{host}:{target.port}/{rest}"
    query = request.rel_url.raw_query_string
    body = await read_at_most(request, MAX_BODY)
    if body is None:
        raise ApiError(f"Request entity too large: limit is {MAX_BODY}", code=413, reason="RequestEntityTooLarge")
    sent = CIMultiDict((key, value) for key, value in request.headers.items() if key.lower() not in _OWN)
    sent["X-Forwarded-Uri"] = request.path
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)
    async with aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session:
        try:
            answer = await session.request(
                request.method, _as_it_is(request, f"{url}?{query}" if query else url), headers=sent,
                data=body or None, allow_redirects=False, ssl=False, skip_auto_headers=AUTOMATIC,
            )  # fmt: skip
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            text = f"error trying to reach service: {_reason(error, target)}"
            raise _unavailable(text) from error
        async with answer:
            return await send_back(call.request, answer)


def _as_it_is(request: web.BaseRequest, url: str) -> Any:
    """Return a URL whose escapes stay as the client wrote them: of aiohttp's own type, which a request's is."""
    return type(request.rel_url)(url, encoded=True)


async def send_back(request: web.BaseRequest, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    """Return an answer as it comes, chunk by chunk."""
    response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=_kept(answer.headers))
    try:
        await response.prepare(request)
        if request.method != "HEAD":
            async for chunk in answer.content.iter_chunked(_CHUNK):
                await response.write(chunk)
    except ConnectionError:
        pass  # the client has gone away
    except aiohttp.ClientError:
        with contextlib.suppress(AttributeError):
            request.transport.abort()  # type: ignore[union-attr]
    return response


def _kept(given: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    return CIMultiDict((key, value) for key, value in given.items() if key.lower() not in HOP_BY_HOP)


def _reason(error: BaseException, target: ProxyTarget) -> str:
    cause = error.__cause__ or error
    refused = isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, ConnectionRefusedError)
    if refused or isinstance(cause, ConnectionRefusedError):
        return f"dial tcp {target.host}:{target.port}: connect: connection refused"
    return str(error)
