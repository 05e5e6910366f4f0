"""A proxy between one component and its API server, which plays the component's faults: for programs of others.

It speaks HTTP/1.1, reads what a request is about from its path, and asks for the events of watches in JSON, so that
each can be held, repeated or left out; what else it forwards it does not read. Not for virtual runs: imports aiohttp.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from pathlib import Path
from socket import socket
from typing import Any
from urllib.parse import urlencode

from aiohttp import ClientError, ClientResponse, web
from msgspec import Struct

from mews.certificates import Certificates
from mews.harness.api_faults.plans import NO_ANSWER, ApiFailure, RequestPlan
from mews.harness.api_faults.struck_events import ComponentFaults, struck_events
from mews.harness.api_faults.wire import (
    JSON,
    ApiCall,
    call_of,
    event_line,
    initial_events,
    items_of,
    list_query,
    one_query,
    readable_forms,
    snapshot_query,
    status_of,
)
from mews.harness.kubeconfig_file import write_kubeconfig
from mews.kube.api.errors import GoneError, UnavailableError
from mews.kube.client.connection import ApiConnection, lines
from mews.kube.client.kubeconfig.access import read_kubeconfig
from mews.listening.connections import begin_stream, whole_body
from mews.listening.http import HttpListener
from mews.listening.reading import bears

_BODY_BYTES = 64 * 1024 * 1024
"""The server behind has its own limit, and says so in its own words."""
_NOT_FORWARDED = {
    "accept-encoding", "authorization", "connection", "content-encoding", "content-length", "date", "host",
    "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade",
}  # fmt: skip
"""Headers of one connection (RFC 9110 7.6.1), and those that are the proxy's own on each side."""
_NO_UPGRADE = (
    "exec, attach and port-forward do not pass a proxy that plays faults: use the kubeconfig of the API server itself"
)


def connection_of(kubeconfig: Path | None, context: str | None = None) -> ApiConnection:
    """Return the API server of a kubeconfig, and its credentials.

    Raises KubeconfigError.
    """
    access = read_kubeconfig(None if kubeconfig is None else str(kubeconfig), context)
    return ApiConnection(access.base_url, token=access.tokens, ssl_context=access.ssl_context, headers=access.headers)


class _Asked(Struct, frozen=True):
    """A request as it came, and what it is about."""

    request: web.BaseRequest
    call: ApiCall
    headers: Mapping[str, str]
    body: bytes

    @property
    def query(self) -> list[tuple[str, str]]:
        """Names and values."""
        return list(self.request.query.items())


class ApiProxy:
    """Stands between one component and the API, and plays faults. ``held``: the bound socket that it will listen on;
    with ``certificates`` it serves TLS, and lets in who bears ``token``; ``names`` are further ones of the server.
    ``await open()``, ``await close()``."""

    def __init__(
        self,
        component: str,
        faults: ComponentFaults,
        upstream: ApiConnection,
        held: socket,
        certificates: Certificates | None = None,
        *,
        names: Sequence[str] = (),
    ) -> None:
        self._component = component
        self._faults = faults
        self._upstream = upstream
        self._held = held
        self._certificates = certificates
        self.token = "" if certificates is None else secrets.token_urlsafe(24)
        host, port = held.getsockname()[:2]
        self.url = f"{'http' if certificates is None else 'https'}://{host}:{port}"
        self._begun = set[int]()
        """Requests whose answers have begun: no other can take their place."""
        self._listener = HttpListener(
            self._answer, refuse=_refused, admit=self._admit if self.token else None, names=names
        )

    @property
    def authority(self) -> str | None:
        """Whom its client trusts, in PEM; None for plain HTTP."""
        return None if self._certificates is None else self._certificates.authority.read_text(encoding="ascii")

    def write_kubeconfig(self, path: Path) -> None:
        """What the component is given: readable by its owner alone."""
        server: dict[str, Any] = {"server": self.url}
        if self._certificates is not None:
            server["certificate-authority"] = str(self._certificates.authority)
        write_kubeconfig(path, server=server, user={"token": self.token} if self.token else {})

    async def open(self) -> None:
        """Listen."""
        context = None if self._certificates is None else self._certificates.server_context()
        await self._listener.open_on(self._held, tls=context)

    async def close(self) -> None:
        """Listen no more, and close what is open to the server behind."""
        await self._listener.close()
        self._held.close()
        await self._upstream.close()

    def _admit(self, request: web.BaseRequest, headers: Mapping[str, str]) -> str | None:
        return None if bears(headers, self.token) else "Unauthorized"

    # One request

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if "upgrade" in request.headers.get("Connection", "").lower():
            return _refused(request, 400, _NO_UPGRADE)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _NOT_FORWARDED}
        body = await whole_body(request, _BODY_BYTES)
        call = call_of(request.method, request.path, request.query)
        try:
            if call is None:
                return await self._forwarded(request, request.raw_path, headers, body)
            return await self._asked(_Asked(request, call, headers, body))
        except UnavailableError as error:
            if id(request) in self._begun:
                _hang_up(request)
            return _refused(request, 503, str(error))
        finally:
            self._begun.discard(id(request))

    async def _asked(self, asked: _Asked) -> web.StreamResponse:
        about = asked.call.request
        if not self._faults.strikes(self._component):
            return await self._planned(asked, "")
        plan = self._faults.on_request(self._component, about)
        held_last = plan.is_forwarded and plan.failure is not None
        if plan.hold_s and not held_last:
            await self._faults.hold(self._component, about, plan.hold_s)
        if plan.failure is None:
            return await self._planned(asked, plan.version)
        if plan.is_forwarded and about.verb != "watch":
            refused = await self._effect(asked)
            if refused is not None:
                return refused
        return await self._failed(asked, plan, plan.failure, held=held_last)

    async def _effect(self, asked: _Asked) -> web.StreamResponse | None:
        """Make the request; what the server refuses it with, None where it took effect and nobody is told."""
        async with self._exchange(asked.request, asked.request.raw_path, asked.headers, asked.body) as answer:
            return await _whole(answer) if answer.status >= 400 else None

    async def _failed(self, asked: _Asked, plan: RequestPlan, failure: ApiFailure, *, held: bool) -> web.StreamResponse:
        if held and plan.hold_s:
            await self._faults.hold(self._component, asked.call.request, plan.hold_s)
        if failure.code == NO_ANSWER:
            _hang_up(asked.request)
        return _status(failure)

    async def _planned(self, asked: _Asked, version: str) -> web.StreamResponse:
        """Return the server's answer, or what it was at that version."""
        call, path = asked.call, asked.request.raw_path
        if call.request.verb == "watch":
            return await self._watched(asked, version)
        if version and call.request.verb == "list":
            path = f"{asked.request.rel_url.raw_path}?{list_query(asked.query, version)}"
        elif version and call.request.verb == "get" and not call.request.subresource:
            return await self._one_at(asked, version)
        return await self._forwarded(asked.request, path, asked.headers, asked.body, streamed=call.is_streamed)

    async def _one_at(self, asked: _Asked, version: str) -> web.StreamResponse:
        about = asked.call.request
        listed = await self._listed(asked, f"{asked.call.path}?{one_query(about.name, version)}")
        if isinstance(listed, web.StreamResponse):
            return listed
        for item in items_of(listed):
            return web.json_response(item)
        return _status(ApiFailure(404, "NotFound", f'{about.resource} "{about.name}" not found'))

    async def _listed(self, asked: _Asked, path: str) -> dict[str, Any] | web.StreamResponse:
        """Return a list in JSON; what the server refuses it with."""
        async with self._exchange(asked.request, path, {**asked.headers, "Accept": JSON}, method="GET") as answer:
            if answer.status >= 400:
                return await _whole(answer)
            found: dict[str, Any] = json.loads(await answer.read())
            return found

    # Watches

    async def _watched(self, asked: _Asked, version: str) -> web.StreamResponse:
        if version:
            listed = await self._listed(asked, f"{asked.call.path}?{snapshot_query(asked.query, version)}")
            if isinstance(listed, web.StreamResponse):
                return listed
            # What comes after it is held as long as the fault is there: that is what goes on from that version.
            at = str(listed["metadata"]["resourceVersion"])
            left_out = ("sendInitialEvents", "resourceVersionMatch", "resourceVersion")
            kept = [(name, value) for name, value in asked.query if name not in left_out]
            path = f"{asked.request.rel_url.raw_path}?{urlencode([*kept, ('resourceVersion', at)])}"
            return await self._events(asked, path, initial_events(listed))
        return await self._events(asked, asked.request.raw_path, ())

    async def _events(self, asked: _Asked, path: str, first: Any) -> web.StreamResponse:
        request = asked.request
        headers = {**asked.headers, "Accept": readable_forms(request.headers.get("Accept", ""))}
        async with self._exchange(request, path, headers) as answer:
            if answer.status >= 400:
                return await _whole(answer)
            response = await self._begin(request, answer)
            for line in first:
                await response.write(line)
            try:
                async with contextlib.aclosing(self._struck(asked, _lines(answer))) as coming:
                    async for line in coming:
                        await response.write(line + b"\n")
            except GoneError as gone:
                await response.write(event_line("ERROR", status_of(ApiFailure(410, "Expired", str(gone)))))
            except UnavailableError:
                _hang_up(request)
            await response.write_eof()
            return response

    async def _struck(self, asked: _Asked, stream: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        async for line in stream:
            if self._faults.strikes(self._component):
                about = asked.call.request
                async with contextlib.aclosing(
                    struck_events(self._faults, self._component, about, line, stream)
                ) as late:
                    async for each in late:
                        yield each
                return
            yield line

    # The way to the server behind

    @contextlib.asynccontextmanager
    async def _exchange(
        self, request: web.BaseRequest, path: str, headers: Mapping[str, str], body: bytes = b"", method: str = ""
    ) -> AsyncIterator[ClientResponse]:
        async with self._upstream.exchange(method or request.method, path, headers=headers, body=body) as answer:
            yield answer

    async def _begin(self, request: web.BaseRequest, answer: ClientResponse) -> web.StreamResponse:
        """Begin to answer with what goes on."""
        begin_stream(request)
        self._begun.add(id(request))
        response = web.StreamResponse(status=answer.status)
        response.headers.extend(_kept(answer))
        await response.prepare(request)
        return response

    async def _forwarded(
        self,
        request: web.BaseRequest,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        streamed: bool = False,
    ) -> web.StreamResponse:
        async with self._exchange(request, path, headers, body) as answer:
            if not streamed:
                return await _whole(answer)
            response = await self._begin(request, answer)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response


async def _lines(answer: ClientResponse) -> AsyncIterator[bytes]:
    """Yield the lines of a stream.

    Raises UnavailableError where its connection breaks.
    """
    try:
        async for line in lines(answer.content.iter_any()):
            yield line
    except (ClientError, OSError) as error:
        raise UnavailableError(f"{type(error).__name__}: {error}") from error


def _kept(answer: ClientResponse) -> list[tuple[str, str]]:
    return [(name, value) for name, value in answer.headers.items() if name.lower() not in _NOT_FORWARDED]


async def _whole(answer: ClientResponse) -> web.Response:
    response = web.Response(status=answer.status, body=await answer.read())
    response.headers.clear()
    response.headers.extend(_kept(answer))
    return response


def _status(failure: ApiFailure) -> web.Response:
    headers = {} if failure.retry_after_s is None else {"Retry-After": str(failure.retry_after_s)}
    return web.json_response(status_of(failure), status=failure.code, headers=headers)


_REASONS = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 413: "RequestEntityTooLarge"}


def _refused(request: web.BaseRequest, status: int, text: str) -> web.Response:
    reason = _REASONS.get(status, "ServiceUnavailable" if status == 503 else "InternalError")
    return _status(ApiFailure(status, reason, text, 1 if status == 429 else None))


def _hang_up(request: web.BaseRequest) -> None:
    """End the connection without an answer.

    Raises ConnectionResetError, with which the listener goes on.
    """
    transport = request.transport
    if isinstance(transport, asyncio.Transport):
        transport.abort()
    raise ConnectionResetError("hung up")
