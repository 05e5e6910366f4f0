"""A live session over HTTP: what the commands that act on a running ``mews up`` ask, and the live page.

It listens on loopback and lets nobody in without the session's token, in ``Authorization: Bearer …``; the page itself
holds no secrets and gets the token from the fragment of its own address, which no browser sends anywhere. Plain HTTP: a
browser would refuse the run's own authority, and what crosses loopback only root can read. Requests by another name
than that of this machine are refused, so that no page of somebody else's gets here by a name of its own.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from mews.harness.journal import Line
from mews.harness.live.explanation import pod_named
from mews.harness.live.session import LiveSession
from mews.kube.api.errors import ApiError, Unavailable

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_NAMES = ("127.0.0.1", "localhost", "[::1]")
_KEEP_ALIVE_S = 15.0
_BEHIND = 20_000
"""Lines that a reader may be behind before it is let go; it asks again from the last that it has."""
_MOST_BYTES = 256 * 1024 * 1024
"""Of a request: a snapshot of thousands of pods is one."""
_SECURITY = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}


def shown(line: Line) -> dict[str, Any]:
    """A line with its number."""
    return {"number": line.number, **line.as_dict()}


class SessionServer:
    """``await start()``; then ``url`` and ``token`` say how to reach it. ``page`` is asked for the file of that name
    that the live page consists of: (text, media type), None for what there is not."""

    def __init__(
        self, session: LiveSession, page: Callable[[str], tuple[str, str] | None] = lambda name: None, port: int = 0
    ) -> None:
        self.session = session
        self._page = page
        self._port = port
        self._runner: web.AppRunner | None = None
        self._ending = asyncio.Event()
        self.token = secrets.token_urlsafe(24)
        self.url = ""

    async def start(self) -> None:
        """Listen.

        Raises OSError where the port is taken.
        """
        app = web.Application(middlewares=[self._guarded], client_max_size=_MOST_BYTES)
        app.router.add_get("/v1/session", self._about)
        app.router.add_get("/v1/status", self._status)
        app.router.add_get("/v1/verdict", self._verdict)
        app.router.add_get("/metrics/{system}", self._metrics)
        app.router.add_get("/v1/journal", self._journal)
        app.router.add_get("/v1/events", self._events)
        app.router.add_get("/v1/hardware", self._hardware)
        app.router.add_get("/v1/faults", self._faults)
        app.router.add_get("/v1/recording", self._recording)
        app.router.add_get("/v1/snapshot", self._snapshot)
        app.router.add_post("/v1/snapshot", self._restore)
        app.router.add_post("/v1/steps", self._steps)
        app.router.add_get("/v1/explain/pod/{namespace}/{name}", self._explain)
        app.router.add_get("/{file:[a-z_.-]*}", self._file)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"

    async def close(self) -> None:
        """End every stream, and listen no more."""
        self._ending.set()
        if self._runner is not None:
            await self._runner.cleanup()

    def ready(self) -> dict[str, str]:
        """``session`` of ready.json."""
        return {"url": self.url, "token": self.token}

    def metrics(self) -> dict[str, str]:
        """``metrics`` of ready.json: where Prometheus finds those of each system, with the session's token."""
        return {name: f"{self.url}/metrics/{name}" for name in self.session.cluster.exposing()}

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.host.rpartition(":")[0] not in _NAMES and request.host not in _NAMES:
            return _refusal(421, f"{request.host}: this is not its name; it is {self.url}")
        if request.path.startswith(("/v1/", "/metrics")):
            given = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), self.token.encode()):
                return _refusal(401, "Authorization: Bearer TOKEN is missing or wrong; ready.json has it under session")
        try:
            return await handler(request)
        except web.HTTPException as error:
            return _refusal(error.status, f"{request.method} {request.path}: {error.reason}")
        except ValueError as error:
            return _refusal(400, str(error))
        except (ApiError, Unavailable, OSError, RuntimeError) as error:
            return _refusal(502, f"{type(error).__name__}: {error}")

    async def _about(self, _: web.Request) -> web.Response:
        return _answer(self.session.about() | {"t": round(self.session.journal.elapsed_s, 3)})

    async def _status(self, _: web.Request) -> web.Response:
        return _answer({**await self.session.status(), "metrics": self.metrics()})

    async def _verdict(self, _: web.Request) -> web.Response:
        return _answer((await self.session.judged()).as_dict())

    async def _metrics(self, request: web.Request) -> web.Response:
        body = await self.session.cluster.exposition(request.match_info["system"])
        return web.Response(body=body, headers={**_SECURITY, "Content-Type": "text/plain; version=0.0.4"})

    async def _journal(self, request: web.Request) -> web.Response:
        journal = self.session.journal
        lines = [shown(line) for line in journal.lines(_since(request))]
        return _answer({"next": len(journal), "lines": lines})

    async def _hardware(self, _: web.Request) -> web.Response:
        return _answer(await self.session.hardware())

    async def _recording(self, request: web.Request) -> web.Response:
        return _answer({"scenario": self.session.record(request.query.get("name") or self.session.name)})

    async def _faults(self, _: web.Request) -> web.Response:
        return _answer({"faults": [fault.as_dict() for fault in await self.session.faults()]})

    async def _explain(self, request: web.Request) -> web.Response:
        namespace, name = pod_named(f"pod/{request.match_info['namespace']}/{request.match_info['name']}")
        return _answer((await self.session.explain(namespace, name)).as_dict())

    async def _snapshot(self, request: web.Request) -> web.Response:
        return _answer(await self.session.snapshot(request.query.get("name") or self.session.name))

    async def _restore(self, request: web.Request) -> web.Response:
        problems = await self.session.restore(await _json_of(request))
        return _answer({"verdict": "failed" if problems else "passed", "reason": "; ".join(problems)})

    async def _steps(self, request: web.Request) -> web.Response:
        given = await _json_of(request)
        if not isinstance(given, dict):
            raise ValueError("the body must be a step of a scenario, a JSON object")
        answer = await self.session.perform(given)
        return _answer({"verdict": answer.verdict, "reason": answer.reason, "text": answer.text})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        last = request.headers.get("Last-Event-ID", "")
        since = int(last) + 1 if last.isdecimal() else _since(request)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **_SECURITY})
        await response.prepare(request)
        journal, grown = self.session.journal, asyncio.Event()
        stop = journal.listen(lambda _: grown.set())
        ending = asyncio.ensure_future(self._ending.wait())
        try:
            while not self._ending.is_set():
                grown.clear()
                lines = journal.lines(since)
                if len(lines) > _BEHIND:
                    lines = lines[-_BEHIND:]
                if lines:
                    since = lines[-1].number + 1
                    await response.write(b"".join(_event(line) for line in lines))
                    continue
                growing = asyncio.ensure_future(grown.wait())
                await asyncio.wait([growing, ending], timeout=_KEEP_ALIVE_S, return_when=asyncio.FIRST_COMPLETED)
                growing.cancel()
                if not grown.is_set() and not self._ending.is_set():
                    await response.write(b": still there\n\n")
        except ConnectionResetError:
            pass
        finally:
            stop()
            ending.cancel()
        return response

    async def _file(self, request: web.Request) -> web.Response:
        found = self._page(request.match_info["file"] or "page.html")
        if found is None:
            raise web.HTTPNotFound
        text, kind = found
        return web.Response(text=text, content_type=kind, headers=_SECURITY)


def _event(line: Line) -> bytes:
    return f"id: {line.number}\ndata: {json.dumps(shown(line), ensure_ascii=False)}\n\n".encode()


async def _json_of(request: web.Request) -> Any:
    try:
        return await request.json()
    except ValueError as error:
        raise ValueError(f"the body is not JSON: {error}") from error


def _since(request: web.Request) -> int:
    text = request.query.get("since") or "0"
    if not text.isdecimal():
        raise ValueError(f"since={text!r}: must be the number of a line")
    return int(text)


def _answer(value: Any) -> web.Response:
    return web.json_response(value, headers=_SECURITY)


def _refusal(status: int, text: str) -> web.Response:
    return web.json_response({"error": text}, status=status, headers=_SECURITY)
