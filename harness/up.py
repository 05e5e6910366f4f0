"""Brings up a cluster that other processes use, says when it is ready, and takes it down on a signal."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mews.harness.errors import BadInputError
from mews.harness.ports.cluster import ReachableCluster
from mews.own_files import write_own

if TYPE_CHECKING:
    from mews.harness.clusters.session import ClusterSession
    from mews.harness.live.session import LiveSession
    from mews.harness.options import RunOptions
    from mews.harness.scenario.model import Scenario
    from mews.harness.termination import TerminationGuard


log = logging.getLogger(__name__)


async def run_up(
    scenario: Scenario,
    options: RunOptions,
    folder: Path,
    notify: Callable[[Mapping[str, Any]], None],
    *,
    guard: TerminationGuard,
    age_s: Callable[[], float],
    name: str = "mews",
    page: Callable[[str], tuple[str, str, str] | None] = lambda name: None,
    restored: Mapping[str, Any] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, as the guard says. ``folder`` gets the kubeconfig and ready.json, whose content
    ``notify`` is called with: once the API answers and the nodes are Ready, and again when their devices are announced;
    once alone where the options wait for those. ``age_s`` says for how long it has been coming up; ``name`` is the
    session's, ``page`` has the files of its live page, ``restored`` is a snapshot that it is made as before devices are
    said to be there."""
    from mews.harness.backends import backend_of
    from mews.harness.clusters import open_cluster

    ended = guard.watch()
    opened = replace(options, folder=folder, wait="nodes")
    shared = _shared() if backend_of(options.cluster).needs_session else None
    opening = asyncio.ensure_future(open_cluster(scenario, opened, seed=scenario.seed, session=shared))
    cluster: ReachableCluster | None = None
    file = folder / "ready.json"
    try:
        cluster = await _unless(ended, opening)
        if cluster is None:
            return
        cluster.keep_alive()
        from mews.harness.live.serving import serve_session  # aiohttp with it: chassis and hosts started meanwhile
        from mews.harness.scenario.accounts.sessions import left_out_of_session

        async with serve_session(name, scenario, cluster, folder, page) as (server, session):
            ready = {
                **_with_kubeconfig_in(folder, cluster.ready()),
                "session": server.ready(),
                "metrics": server.metrics(),
                "pid": os.getpid(),
                "ready_s": round(age_s(), 2),
                "devices_s": None,
                "ignored": [each.as_dict() for each in left_out_of_session(scenario, options.cluster)],
            }

            def publish() -> None:
                write_whole(file, json.dumps(ready, indent=2) + "\n")
                notify(ready)

            if options.wait == "nodes":
                publish()
            announced = asyncio.ensure_future(_announced(cluster))
            if await _unless(ended, announced):
                session.announced()
                if restored is not None:
                    await _restore(session, restored)
                ready["devices_s"] = round(age_s(), 2)
                ready["services"] = cluster.ready().get("services", {})  # components have come up meanwhile
                publish()
            await ended.wait()
    finally:
        with contextlib.suppress(OSError):  # whatever has become of the folder, the cluster is closed
            file.unlink(missing_ok=True)
            if shared is not None:
                (folder / "kubeconfig").unlink(missing_ok=True)
        if cluster is not None:
            await cluster.close()
        if shared is not None:
            await asyncio.to_thread(shared.close)


def _shared() -> ClusterSession:
    """Return what the cluster is made in, and ends with; what takes its time is logged."""
    from mews.harness.clusters.session import ClusterSession

    return ClusterSession(notify=lambda text: log.warning("%s", text))


def _with_kubeconfig_in(folder: Path, ready: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same with the kubeconfig where the commands on an instance look for it, in its folder."""
    there = Path(ready["kubeconfig"])
    here = folder / "kubeconfig"
    if there != here:
        write_own(here, there.read_text(encoding="utf-8"))
    return {**ready, "kubeconfig": str(here)}


async def _restore(session: LiveSession, snapshot: Mapping[str, Any]) -> None:
    """Make the session so; what it is not is logged.

    Raises BadInputError for a snapshot that cannot be restored.
    """
    await session.watched()
    try:
        for problem in await session.restore(snapshot):
            log.warning("--snapshot: not as it was: %s", problem)
    except ValueError as error:
        raise BadInputError(f"--snapshot: {error}") from error


async def _announced(cluster: ReachableCluster) -> bool:
    """Return whether all devices are announced, in the end; if not, it is said why."""
    from mews.harness.errors import RequirementError

    try:
        await cluster.announced()
    except RequirementError as error:
        log.warning("%s", error)
        return False
    return True


async def _unless(ended: asyncio.Event, opening: asyncio.Future[Any]) -> Any:
    """Return the opened cluster, or None when a signal came first (opening is then given up, which closes what was
    begun)."""
    waiting = asyncio.ensure_future(ended.wait())
    await asyncio.wait([opening, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if opening.done():
        return opening.result()
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    return None


def write_whole(path: Path, text: str) -> None:
    """Write a file so that nobody ever reads half of it, and none but its owner: it holds tokens."""
    part = path.with_name(path.name + ".part")
    write_own(part, text)
    part.replace(path)
