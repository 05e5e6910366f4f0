"""Requests for groups of other servers: handed on to them, and their answers back.

Sources: k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go, k8s.io/apimachinery/pkg/util/proxy.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl

from aiohttp import web
from multidict import CIMultiDict

from mews.kube.api.errors import ApiError
from mews.kube.emulated.core.store.users import User
from mews.kube.emulated.core.wire.call import MAX_BODY, text
from mews.kube.emulated.packs.aggregation.remote_apis import RemoteApi
from mews.kube.emulated.packs.aggregation.remote_client import (
    RemoteClient,
    UnreachedError,
    UnresolvedError,
    identity_headers,
)
from mews.kube.emulated.packs.kubelets.proxies import send_back
from mews.kube.emulated.packs.networking.service_places import untrusted
from mews.listening.connections import Tunnel, begin_stream, open_tunnel, read_at_most
from mews.listening.limits import HOP_BY_HOP

_UNAVAILABLE, _BAD_GATEWAY, _SWITCHED, _ERRORS = 503, 502, 101, 400
_REDIRECTED = "the backend attempted to redirect this request, which is not permitted"
_CHUNK, _LONGEST_HEAD = 64 * 1024, 64 * 1024
_TRUE = ("1", "true")


class _UpgradeError(Exception):
    """Why a stream did not begin, in the words of apimachinery's UpgradeAwareHandler."""


async def pass_on(client: RemoteClient, request: web.BaseRequest, user: User, api: RemoteApi) -> web.StreamResponse:
    """Return the server's answer; 503 in upstream's words where it gives none."""
    if not api.available:
        return text("service unavailable\n", _UNAVAILABLE)
    try:
        if "upgrade" in request.headers.get("Connection", "").lower():
            return await _pass_upgrade(client, request, user, api)
        return await _pass(client, request, user, api)
    except _UpgradeError as error:
        return text(f"{error}\n", _UNAVAILABLE)
    except UnresolvedError:
        return text("service unavailable\n", _UNAVAILABLE)
    except UnreachedError as error:
        return text(f"error trying to reach service: {error}\n", _UNAVAILABLE)
    except ssl.SSLError:  # a caBundle that is no certificate
        return text("unable to load root certificates: unable to parse bytes as PEM block\n", 500)


async def _pass(client: RemoteClient, request: web.BaseRequest, user: User, api: RemoteApi) -> web.StreamResponse:
    body = await read_at_most(request, MAX_BODY)
    if body is None:
        raise ApiError(f"Request entity too large: limit is {MAX_BODY}", code=413, reason="RequestEntityTooLarge")
    if request.query.get("watch", "").lower() in _TRUE or f"{api.path}/watch/" in request.path:
        begin_stream(request)
    answer = await client.ask(api, request.method, request.raw_path, _headers(client, request, user, api), body=body)
    async with answer:
        if 300 <= answer.status < _ERRORS and answer.headers.get("Location"):
            return web.Response(status=_BAD_GATEWAY, text=_REDIRECTED)
        return await send_back(request, answer)


def _headers(client: RemoteClient, request: web.BaseRequest, user: User, api: RemoteApi) -> CIMultiDict[str]:
    dropped = HOP_BY_HOP | {"host", "content-length"}
    given = [(name, value) for name, value in request.headers.items() if name.lower() not in dropped]
    headers = identity_headers(user, given)
    known = [part for part in (headers.get("X-Forwarded-For", ""), request.remote or "") if part]
    if known:
        headers["X-Forwarded-For"] = ", ".join(known)
    headers["X-Forwarded-Host"], headers["X-Forwarded-Proto"] = client.place(api).shown, "https"
    headers["X-Forwarded-Uri"] = request.path
    return headers


async def _pass_upgrade(
    client: RemoteClient, request: web.BaseRequest, user: User, api: RemoteApi
) -> web.StreamResponse:
    place, context = client.place(api), client.context(api)
    try:
        host, port = client.endpoint(place)
    except UnreachedError as error:
        raise _UpgradeError(f"error dialing backend: {error}") from error
    name = f"{api.service}.{api.namespace}.svc"
    try:
        reader, writer = await asyncio.open_connection(
            host, port, ssl=context, server_hostname=name, limit=_LONGEST_HEAD
        )
    except ssl.SSLCertVerificationError as error:
        raise _UpgradeError(f"error dialing backend: {untrusted(error)}") from error
    except ssl.SSLError as error:
        raise _UpgradeError(f"error dialing backend: tls: {error.reason or error}") from error
    except OSError as error:
        refused = isinstance(error, ConnectionRefusedError)
        reason = "connection refused" if refused else (error.strerror or str(error)).lower()
        raise _UpgradeError(f"error dialing backend: dial tcp {place.shown}: connect: {reason}") from error
    try:
        headers = _headers(client, request, user, api)
        headers["Host"], headers["Connection"] = place.shown, "Upgrade"
        headers["Upgrade"] = request.headers.get("Upgrade", "")
        lines = "".join(f"{key}: {value}\r\n" for key, value in headers.items())
        writer.write(f"{request.method} {request.raw_path} HTTP/1.1\r\n{lines}\r\n".encode())
        await writer.drain()
        return await _switched(request, reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _switched(
    request: web.BaseRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> web.StreamResponse:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise _UpgradeError("unexpected EOF") from error
    first, *lines = head.split("\r\n")
    words = first.split(maxsplit=2)
    if len(words) < 2 or not words[1].isdigit():
        raise _UpgradeError(f'malformed HTTP response "{first}"')
    status = int(words[1])
    headers = CIMultiDict((key, value.strip()) for key, _, value in (line.partition(":") for line in lines if line))
    if status != _SWITCHED:
        if status < _ERRORS:
            return text(f"invalid upgrade response: status code {status}\n", _UNAVAILABLE)
        return await _refusal(reader, status, headers)
    tunnel, response = await open_tunnel(request, headers)
    await _join(tunnel, reader, writer)
    return response


async def _refusal(reader: asyncio.StreamReader, status: int, headers: CIMultiDict[str]) -> web.Response:
    length = headers.get("Content-Length", "")
    try:
        body = await (reader.readexactly(min(int(length), MAX_BODY)) if length.isdigit() else reader.read(MAX_BODY))
    except asyncio.IncompleteReadError as error:
        body = error.partial
    kept = {key: value for key, value in headers.items() if key.lower() not in HOP_BY_HOP | {"content-length"}}
    return web.Response(status=status, body=body, headers=kept)


async def _join(tunnel: Tunnel, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Both ways, until one side ends."""

    async def there() -> None:
        while data := await tunnel.read():
            writer.write(data)
            await writer.drain()

    async def back() -> None:
        while data := await reader.read(_CHUNK):
            await tunnel.write(data)

    ways = [asyncio.create_task(there()), asyncio.create_task(back())]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
