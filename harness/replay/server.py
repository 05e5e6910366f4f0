"""Serves a recording over HTTP."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from mews.callers import callers
from mews.emulator.dialects.app import wire_app
from mews.emulator.dialects.strangers import gate
from mews.emulator.http_server import HttpServer
from mews.emulator.ready_file import write_ready
from mews.emulator.serve import await_ending, endings_held_back
from mews.harness import terminal
from mews.harness.replay.folders import Replayable
from mews.harness.replay.replies import Replay


class ReplayServer:
    """A recording on a port of its own; for use within a process too (``start``, ``stop``).

    Raises OSError for a port that cannot be had.
    """

    def __init__(
        self, replayable: Replayable, host: str = "127.0.0.1", port: int = 0, *, allow_hosts: Sequence[str] = ()
    ) -> None:
        replay = Replay(replayable.replies, mockup=replayable.mockup)
        self._server = HttpServer(wire_app(replay.answer, gate(callers(host, allow_hosts))), host, port)
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self._server.port}"

    def start(self) -> None:
        """Serve, on threads of its own."""
        self._server.start()

    def stop(self) -> None:
        """End."""
        self._server.stop()


@endings_held_back()
def serve_recording(
    replayable: Replayable, listen: tuple[str, int], *, ready: Path | None = None, allow_hosts: Sequence[str] = ()
) -> None:
    """Serve until SIGTERM or SIGINT; only from a process' main thread. Raises as ``ReplayServer`` does."""
    server = ReplayServer(replayable, *listen, allow_hosts=allow_hosts)
    server.start()
    try:
        if ready is not None:
            write_ready(ready, {"recording": {replayable.dialect: server.url}})
        terminal.out(f"recording: {replayable.dialect} {server.url}\n")
        sys.stdout.flush()
        await_ending()
    finally:
        server.stop()
        if ready is not None:
            ready.unlink(missing_ok=True)
