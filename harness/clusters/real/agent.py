"""What one node's kubelet does with devices, told to a harness: ``python -m mews.harness.clusters.real.agent``.

Runs beside DisagGPU-DevMgr, in its pod. Over HTTP, with the header ``X-Mews-Token``:

| path | answer |
|---|---|
| GET /v1/events | server-sent events, all of them from ``Last-Event-ID`` on: ``{"seq", "event", …}`` |
| GET /v1/seq | ``{"seq"}`` of the last event so far |
| GET /v1/pod-resources | podresources v1 List, now, ``[{namespace, name, containers}]``; 503 without a kubelet |

Events: ``checkpoint`` ``{entries: [[uid, container, resource, [id], {env}]], registered: {resource: [id]}}`` whenever
the kubelet has written its file; ``record`` ``{record}``, what DevMgr logs (``mews.kube.records_file``).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hmac
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aiohttp import web

from mews.callers import callers
from mews.kube.clock import rest
from mews.kube.deviceplugin.grpc_client import GrpcPodResources
from mews.kube.deviceplugin.port import PluginError, PodDevices
from mews.kube.emulated.kubelet.devices.checkpoint import Checkpoint, from_text
from mews.kube.emulated.kubelet.devices.errors import CheckpointError
from mews.listening.connections import begin_stream
from mews.listening.http import HttpListener

TOKEN_HEADER = "X-Mews-Token"
TOKEN = "MEWS_CONTROL_TOKEN"
CHECKPOINT = "kubelet_internal_checkpoint"
_ANYWHERE = "0.0.0.0"
_LOOK_S = 0.05
_BEAT_S = 10.0
_LONGEST_SEQ = 15
"""Digits."""

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class AgentEvents:
    """All events that a node's agent has told so far, and a way to wait for the next."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._more = asyncio.Event()

    def notify(self, event: str, **fields: Any) -> None:
        """One more."""
        self.events.append({"seq": len(self.events) + 1, "event": event, **fields})
        self._more.set()
        self._more = asyncio.Event()

    async def after(self, seq: int) -> list[dict[str, Any]]:
        """Return those after that number; waits a while for one, may be none."""
        if len(self.events) <= seq:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._more.wait(), _BEAT_S)
        return self.events[seq:]


class NodeObserver:
    """Looks at the checkpoint and at DevMgr's records, again and again: records first, since what they tell comes
    before what the kubelet writes down of it."""

    def __init__(self, story: AgentEvents, checkpoint: Path, records: Sequence[Path]) -> None:
        self._story = story
        self._checkpoint = checkpoint
        self._read = dict.fromkeys(records, 0)
        self._seen: tuple[int, int, int] | None = None

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self.look()
            await rest(_LOOK_S)

    def look(self) -> None:
        """Tell what is new."""
        for records in self._read:
            with contextlib.suppress(FileNotFoundError):
                self._new_records(records)
        with contextlib.suppress(FileNotFoundError):
            self._new_checkpoint()

    def _new_records(self, records: Path) -> None:
        with records.open("rb") as file:
            if file.seek(0, 2) < self._read[records]:
                self._read[records] = 0  # another file by now
            file.seek(self._read[records])
            whole, end, _ = file.read().rpartition(b"\n")
        self._read[records] += len(whole) + len(end)
        for line in whole.splitlines():
            with contextlib.suppress(ValueError):
                self._story.notify("record", record=json.loads(line))

    def _new_checkpoint(self) -> None:
        status = self._checkpoint.stat()
        seen = (status.st_mtime_ns, status.st_ino, status.st_size)
        if seen == self._seen:
            return
        self._seen = seen
        with contextlib.suppress(CheckpointError):
            self._story.notify(
                "checkpoint", **checkpoint_fields(from_text(self._checkpoint.read_text(encoding="utf-8")))
            )


def checkpoint_fields(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return a checkpoint as the event has it."""
    entries = [
        [
            holding.pod_uid,
            holding.container,
            holding.resource,
            [device for _, ids in sorted(holding.by_numa.items()) for device in ids],
            dict(holding.allocation.envs),
        ]
        for holding in checkpoint.holdings
    ]
    return {"entries": entries, "registered": {name: list(ids) for name, ids in checkpoint.registered.items()}}


def shown(pods: Sequence[PodDevices]) -> list[dict[str, Any]]:
    """podresources as JSON."""
    return [
        {
            "namespace": pod.namespace,
            "name": pod.name,
            "containers": [
                [name, [[entry.resource, list(entry.device_ids)] for entry in devices]]
                for name, devices in pod.containers
            ],
        }
        for pod in pods
    ]


class AgentServer:
    """The HTTP side."""

    def __init__(self, story: AgentEvents, pod_resources: GrpcPodResources, token: str) -> None:
        self._story = story
        self._pod_resources = pod_resources
        self._token = token
        self._handlers: dict[str, Handler] = {
            "/v1/events": self._events,
            "/v1/seq": self._seq,
            "/v1/pod-resources": self._list,
        }

    def listener(self) -> HttpListener:
        """Return what answers, not yet open."""
        return HttpListener(self._handle, refuse=lambda _, *why: _refused(*why), admit=self._admit, ends_s=0.1)

    def _admit(self, _: web.BaseRequest, headers: Mapping[str, str]) -> str | None:
        given = headers.get(TOKEN_HEADER.lower(), "").encode("utf-8", "surrogateescape")
        return None if hmac.compare_digest(given, self._token.encode()) else f"{TOKEN_HEADER} is required"

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        handler = self._handlers.get(request.path)
        if handler is None:
            return _refused(404, f"{request.path}: there are {', '.join(self._handlers)}")
        if request.method != "GET":
            return _refused(405, f"{request.method}: must be GET")
        return await handler(request)

    async def _list(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return web.json_response(shown(await self._pod_resources.list()))
        except PluginError as error:
            return web.json_response({"error": str(error)}, status=503)

    async def _seq(self, request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"seq": len(self._story.events)})

    async def _events(self, request: web.BaseRequest) -> web.StreamResponse:
        text = request.headers.get("Last-Event-ID") or "0"
        if not text.isdecimal() or len(text) > _LONGEST_SEQ:
            return _refused(400, f"Last-Event-ID {text[:40]!r}: must be an event's seq")
        seq = int(text)
        begin_stream(request)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(request)
        await response.write(b": mews\n\n")
        while True:
            events = await self._story.after(seq)
            text = "".join(f"id: {event['seq']}\ndata: {json.dumps(event)}\n\n" for event in events)
            try:
                await response.write(text.encode() or b": still here\n\n")
            except ConnectionError:
                return response
            seq += len(events)


def _refused(status: int, text: str) -> web.Response:
    # As bytes in ASCII: a path may have what is no UTF-8.
    return web.Response(status=status, body=json.dumps({"error": text}).encode(), content_type="application/json")


async def serve(options: argparse.Namespace) -> None:
    """Until SIGTERM or SIGINT."""
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    story = AgentEvents()
    pod_resources = GrpcPodResources(options.pod_resources / "kubelet.sock")
    # By way of the API server's proxy a request bears the Host by which the client calls that server.
    listener = AgentServer(story, pod_resources, os.environ.get(TOKEN, "")).listener()
    await listener.open(_ANYWHERE, options.port, let_in=callers(_ANYWHERE, options.allow_host))
    looking = asyncio.create_task(NodeObserver(story, options.device_plugins / CHECKPOINT, options.records).run())
    try:
        await asyncio.wait([looking, asyncio.ensure_future(ended.wait())], return_when=asyncio.FIRST_COMPLETED)
        if looking.done():
            looking.result()
    finally:
        looking.cancel()
        await listener.close()
        await pod_resources.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the command line."""
    parser = argparse.ArgumentParser(prog="mews.harness.clusters.real.agent", description="Tell what a kubelet does.")
    parser.add_argument("--device-plugins", type=Path, required=True, metavar="DIR")
    parser.add_argument("--pod-resources", type=Path, required=True, metavar="DIR")
    parser.add_argument("--records", type=Path, action="append", required=True, metavar="FILE")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--allow-host", action="append", default=[], metavar="NAME", help="accept this host name, too")
    asyncio.run(serve(parser.parse_args(arguments)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
