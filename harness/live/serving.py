"""A session for as long as its cluster is up: the journal on disk, the server beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from mews.harness.live.journal_file import JournalFile
from mews.harness.live.server import SessionServer
from mews.harness.live.session import LiveSession
from mews.harness.ports.cluster import ReachableCluster
from mews.harness.scenario.model import Scenario


@asynccontextmanager
async def serve_session(
    name: str,
    scenario: Scenario,
    cluster: ReachableCluster,
    folder: Path,
    page: Callable[[str], tuple[str, str, str] | None],
) -> AsyncIterator[tuple[SessionServer, LiveSession]]:
    """Serve until the end of the block."""
    session = LiveSession(name, scenario, cluster)
    watching: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    file = JournalFile(folder, cluster.journal)
    server = SessionServer(session, page)
    try:
        await server.start()
        watching = asyncio.ensure_future(session.start())
        yield server, session
    finally:
        watching.cancel()
        await server.close()
        await session.close()
        file.close()
