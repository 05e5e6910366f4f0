"""A live session over HTTP: what the commands that act on a running ``mews up`` ask, and the live page.

It listens on loopback and lets nobody in without the session's token, in ``Authorization: Bearer …``; the page itself
holds no secrets and gets the token from the fragment of its own address, which no browser sends anywhere. Plain HTTP: a
browser would refuse the run's own authority, and what crosses loopback only root can read. Names, origins, sizes and
times are the listener's business (``mews.listening.http``).
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from mews.harness.journal import Line
from mews.harness.live.explanation import pod_named
from mews.harness.live.served_session import ServedSession
from mews.kube.api.errors import ApiError, UnavailableError
from mews.listening.connections import BodyError, begin_stream, whole_body
from mews.listening.http import HttpListener
from mews.listening.reading import bears, read_json, readable, whole_number

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_KEEP_ALIVE_S = 15.0
_BEHIND = 20_000
"""Lines that a reader may be behind before it is let go; it asks again from the last that it has."""
_STEP_BYTES = 4 * 1024 * 1024
"""Of a step: an object that it applies has three MiB at the most."""
_SNAPSHOT_BYTES = 64 * 1024 * 1024
"""Of a snapshot: thousands of pods are 20 MiB."""
_PAGE_FILE = re.compile(r"/([a-z_.-]*)")
_SYSTEM = re.compile(r"/metrics/([^/]+)")
_POD = re.compile(r"/v1/explain/pod/([^/]+)/([^/]+)")
_FRAMED = "frame-ancestors 'none'"
"""What a policy in a document cannot say."""
_SECURITY = {
    "Content-Security-Policy": f"default-src 'none'; {_FRAMED}",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}


def shown(line: Line) -> dict[str, Any]:
    """Return a line with its number."""
    return {"number": line.number, **line.as_dict()}


class NotThereError(Exception):
    """No such path."""


class SessionServer:
    """``await start()``; then ``url`` and ``token`` say how to reach it. ``page`` is asked for the file of that name
    that the live page consists of: (text, media type, Content-Security-Policy), None where there is none."""

    def __init__(
        self,
        session: ServedSession,
        page: Callable[[str], tuple[str, str, str] | None] = lambda name: None,
        port: int = 0,
    ) -> None:
        self.session = session
        self._page = page
        self._port = port
        self._listener = HttpListener(self._handle, refuse=lambda _, *why: _refusal(*why), admit=self._admit)
        self._ending = asyncio.Event()
        self.token = secrets.token_urlsafe(24)
        self.url = ""
        self._routes: Mapping[str, Mapping[str, Handler]] = {
            "/v1/session": {"GET": self._about},
            "/v1/status": {"GET": self._status},
            "/v1/verdict": {"GET": self._verdict},
            "/v1/journal": {"GET": self._journal},
            "/v1/events": {"GET": self._events},
            "/v1/hardware": {"GET": self._hardware},
            "/v1/faults": {"GET": self._faults},
            "/v1/recording": {"GET": self._recording},
            "/v1/snapshot": {"GET": self._snapshot, "POST": self._restore},
            "/v1/steps": {"POST": self._steps},
            "/v1/continue": {"POST": self._continue},
        }

    async def start(self) -> None:
        """Listen.

        Raises OSError where the port is taken.
        """
        await self._listener.open(port=self._port)
        host, port = self._listener.address
        self.url = f"http://{host}:{port}"

    async def close(self) -> None:
        """End every stream, and listen no more."""
        self._ending.set()
        await self._listener.close()

    def ready(self) -> dict[str, str]:
        """``session`` of ready.json."""
        return {"url": self.url, "token": self.token}

    def metrics(self) -> dict[str, str]:
        """``metrics`` of ready.json: where Prometheus finds those of each system, with the session's token."""
        return {name: f"{self.url}/metrics/{name}" for name in self.session.measures.exposing()}

    def _admit(self, request: web.BaseRequest, headers: Mapping[str, str]) -> str | None:
        """Return all but the page itself, which holds no secrets, is for those who have the token."""
        if not request.path.startswith(("/v1/", "/metrics")) or bears(headers, self.token):
            return None
        return "Authorization: Bearer TOKEN is missing or wrong; ready.json has it under session"

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        verbs = self._verbs(request.path)
        if verbs is None:
            return _refusal(404, f"{request.method} {request.path}: Not Found")
        if request.method not in verbs:
            return _refusal(405, f"{request.method} {request.path}: must be {', '.join(verbs)}")
        try:
            return await verbs[request.method](request)
        except NotThereError:
            return _refusal(404, f"{request.method} {request.path}: Not Found")
        except BodyError:
            raise
        except ValueError as error:
            return _refusal(400, str(error))
        except (ApiError, UnavailableError, OSError, RuntimeError) as error:
            return _refusal(503, f"{type(error).__name__}: {error}")

    def _verbs(self, path: str) -> Mapping[str, Handler] | None:
        if path in self._routes:
            return self._routes[path]
        if _SYSTEM.fullmatch(path):
            return {"GET": self._metrics}
        if _POD.fullmatch(path):
            return {"GET": self._explain}
        return {"GET": self._file} if _PAGE_FILE.fullmatch(path) else None

    async def _about(self, _: web.BaseRequest) -> web.Response:
        return _answer(self.session.about() | {"t": round(self.session.journal.elapsed_s, 3)})

    async def _status(self, _: web.BaseRequest) -> web.Response:
        return _answer({**await self.session.status(), "metrics": self.metrics()})

    async def _verdict(self, _: web.BaseRequest) -> web.Response:
        return _answer((await self.session.judged()).as_dict())

    async def _metrics(self, request: web.BaseRequest) -> web.Response:
        system = _matched(_SYSTEM, request)[0]
        body = await self.session.measures.exposition(system)
        return web.Response(body=body, headers={**_SECURITY, "Content-Type": "text/plain; version=0.0.4"})

    async def _journal(self, request: web.BaseRequest) -> web.Response:
        journal = self.session.journal
        lines = [shown(line) for line in journal.lines(_since(request))]
        return _answer({"next": len(journal), "lines": lines})

    async def _hardware(self, _: web.BaseRequest) -> web.Response:
        return _answer(await self.session.hardware())

    async def _recording(self, request: web.BaseRequest) -> web.Response:
        return _answer({"scenario": self.session.record(request.query.get("name") or self.session.name)})

    async def _faults(self, _: web.BaseRequest) -> web.Response:
        return _answer({"faults": [fault.as_dict() for fault in await self.session.faults()]})

    async def _explain(self, request: web.BaseRequest) -> web.Response:
        namespace, name = pod_named("/".join(["pod", *_matched(_POD, request)]))
        return _answer((await self.session.explain(namespace, name)).as_dict())

    async def _snapshot(self, request: web.BaseRequest) -> web.Response:
        return _answer(await self.session.snapshot(request.query.get("name") or self.session.name))

    async def _restore(self, request: web.BaseRequest) -> web.Response:
        problems = await self.session.restore(await _json_of(request, _SNAPSHOT_BYTES))
        return _answer({"verdict": "failed" if problems else "passed", "reason": "; ".join(problems)})

    async def _steps(self, request: web.BaseRequest) -> web.Response:
        given = await _json_of(request, _STEP_BYTES)
        if not isinstance(given, dict):
            raise ValueError("the body must be a step of a scenario, a JSON object")
        answer = await self.session.perform(given)
        return _answer({"verdict": answer.verdict, "reason": answer.reason, "text": answer.text})

    async def _continue(self, _: web.BaseRequest) -> web.Response:
        self.session.go_on()
        return _answer({})

    async def _events(self, request: web.BaseRequest) -> web.StreamResponse:
        last = request.headers.get("Last-Event-ID", "")
        since = whole_number(last, "Last-Event-ID") + 1 if last else _since(request)
        begin_stream(request)
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

    async def _file(self, request: web.BaseRequest) -> web.Response:
        found = self._page(_matched(_PAGE_FILE, request)[0] or "page.html")
        if found is None:
            raise NotThereError
        text, kind, policy = found
        headers = {**_SECURITY, "Content-Security-Policy": f"{policy}; {_FRAMED}"}
        return web.Response(text=text, content_type=kind, headers=headers)


def _event(line: Line) -> bytes:
    return f"id: {line.number}\ndata: {json.dumps(shown(line), ensure_ascii=False)}\n\n".encode()


def _matched(pattern: re.Pattern[str], request: web.BaseRequest) -> tuple[str, ...]:
    match = pattern.fullmatch(request.path)
    if match is None:
        raise NotThereError
    return match.groups()


async def _json_of(request: web.BaseRequest, limit: int) -> Any:
    return read_json(await whole_body(request, limit))


def _since(request: web.BaseRequest) -> int:
    return whole_number(request.query.get("since") or "0", "since")


def _answer(value: Any) -> web.Response:
    return web.json_response(value, headers=_SECURITY)


def _refusal(status: int, text: str) -> web.Response:
    return web.json_response({"error": readable(text)}, status=status, headers=_SECURITY)
