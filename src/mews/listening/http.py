"""HTTP on a loop: one listener, and all that every face of ours has before its handler is asked.

In this order: the head in time and of a bounded size, callers (``mews.callers``), the token, then the handler; bodies
within their limit, in time, and all of a listener's within a common one; an error that nobody expected is answered in
the face's own words and logged without secrets. A face brings its handler, its words for a refusal, and who may ask.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from socket import socket
from typing import Any

from aiohttp import web

from mews.callers import Callers, callers
from mews.listening.connections import BodyError, BusyError, TooLargeError, guarded_server, let_go
from mews.listening.exhaustion import name_exhaustion
from mews.listening.limits import HEAD_S, LINGER_S
from mews.listening.reading import redacted

log = logging.getLogger(__name__)

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
Refuse = Callable[[web.BaseRequest, int, str], web.StreamResponse]
Admit = Callable[[web.BaseRequest, Mapping[str, str]], str | None]

_BACKLOG = 1024
_INTERNAL = "internal error"


def in_plain_text(request: web.BaseRequest, status: int, text: str) -> web.StreamResponse:
    """Return a refusal for faces whose protocol has no form of its own for errors."""
    body = f"{text}\n".encode("utf-8", "backslashreplace")
    return web.Response(status=status, body=body, headers={"Content-Type": "text/plain; charset=utf-8"})


def headers_of(request: web.BaseRequest) -> dict[str, str]:
    """Return the headers, names in lower case."""
    return {name.lower(): value for name, value in request.headers.items()}


class HttpListener:
    """``await open(...)``, then ``address``; ``await close()`` ends it.

    ``refuse`` makes an answer of a status and a text, in the face's protocol. ``admit`` says why a request is not
    authorised (401), None where it is: it is asked before anything of the body is read. ``names``: host names of the
    server besides the one it listens on. ``ends_s``: real seconds in which requests may finish on ``close``.
    """

    def __init__(
        self,
        answer: Answer,
        *,
        refuse: Refuse = in_plain_text,
        admit: Admit | None = None,
        names: Iterable[str] = (),
        ends_s: float = 1.0,
    ) -> None:
        self._answer = answer
        self._refuse = refuse
        self._admit = admit
        self._names = tuple(names)
        self._callers = callers("localhost", self._names)
        self._tls: ssl.SSLContext | None = None
        self._ends_s = ends_s
        self._runner: web.ServerRunner | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens.

        Raises RuntimeError before it does.
        """
        if self._runner is None or not self._runner.addresses:
            raise RuntimeError("the listener is not open")
        host, port = self._runner.addresses[0][:2]
        return str(host), int(port)

    async def open(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        tls: ssl.SSLContext | None = None,
        unix_socket: str = "",
        let_in: Callers | None = None,
    ) -> None:
        """Listen; port 0 takes a free one. On ``unix_socket`` the same is served without TLS. ``let_in`` replaces the
        callers that follow from the address.

        Raises OSError where it cannot listen there.
        """
        runner = await self._begun(host, tls, let_in)
        timeout = None if tls is None else HEAD_S
        await _Port(runner, host, port, ssl_context=tls, handshake_s=timeout).start()
        if unix_socket:
            await web.UnixSite(runner, unix_socket, backlog=_BACKLOG).start()

    async def open_on(self, listening: socket, *, tls: ssl.SSLContext | None = None) -> None:
        """Listen on a socket that is bound already."""
        runner = await self._begun(listening.getsockname()[0], tls, None)
        timeout = None if tls is None else HEAD_S
        await _Port(runner, "", 0, ssl_context=tls, handshake_s=timeout, held=listening).start()

    async def close(self) -> None:
        """Listen no more; end what is open."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _begun(self, host: str, tls: ssl.SSLContext | None, let_in: Callers | None) -> web.ServerRunner:
        self._callers = let_in or callers(host, self._names)
        self._tls = tls
        self._runner = web.ServerRunner(guarded_server(self._handle), shutdown_timeout=self._ends_s)
        await self._runner.setup()
        return self._runner

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            refusal = self._refusal(request)
            if refusal is not None:
                return self._refuse(request, *refusal)
            return await self._answer(request)
        except BusyError as error:
            return _later(self._refuse(request, 429, str(error)))
        except TooLargeError as error:
            return self._refuse(request, 413, str(error))
        except BodyError as error:
            return self._refuse(request, 400, str(error))
        except web.HTTPException as error:  # aiohttp's own refusal, of a WebSocket's version for example
            return self._refuse(request, error.status, error.text or error.reason)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception:
            log.exception("%s failed", redacted(f"{request.method} {request.path_qs}"))
            return self._refuse(request, 500, _INTERNAL)
        finally:
            let_go(request)

    def _refusal(self, request: web.BaseRequest) -> tuple[int, str] | None:
        headers = headers_of(request)
        if len(request.headers.getall("Host", ())) > 1:
            return 400, "more than one Host"
        text = self._callers.refusal(headers, secure=self._tls is not None)
        if text is not None:
            return 403, text
        text = None if self._admit is None else self._admit(request, headers)
        return None if text is None else (401, text)


def _later(response: web.StreamResponse) -> web.StreamResponse:
    with contextlib.suppress(RuntimeError):  # its head has gone out already
        response.headers["Retry-After"] = "1"
    return response


class _Port(web.BaseSite):
    """A port, or a socket that is bound; aiohttp's own sites know no time limit for a handshake."""

    __slots__ = ("_handshake_s", "_held", "_where")

    def __init__(
        self,
        runner: web.BaseRunner,
        host: str,
        port: int,
        *,
        ssl_context: ssl.SSLContext | None,
        handshake_s: float | None,
        held: socket | None = None,
    ) -> None:
        super().__init__(runner, ssl_context=ssl_context, backlog=_BACKLOG)
        self._where = (host, port)
        self._handshake_s = handshake_s
        self._held = held

    @property
    def name(self) -> str:
        """For aiohttp's own messages."""
        return "listener"

    async def start(self) -> None:
        """Listen."""
        await super().start()
        server = self._runner.server
        assert server is not None
        name_exhaustion(asyncio.get_running_loop())
        options: dict[str, Any] = {
            "ssl": self._ssl_context, "backlog": self._backlog, "ssl_handshake_timeout": self._handshake_s
        }  # fmt: skip
        if self._ssl_context is not None:
            options["ssl_shutdown_timeout"] = LINGER_S  # asyncio's 30 s are the client's to take
        loop = asyncio.get_running_loop()
        if self._held is not None:
            self._server = await loop.create_server(server, sock=self._held, **options)
        else:
            self._server = await loop.create_server(server, *self._where, **options)
