"""Waiting for the nodes and accounts of a cluster that comes up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from mews.harness.clusters.unit import Unit
from mews.harness.errors import RequirementError
from mews.harness.journal import Journal
from mews.harness.ports.cluster import ComponentsCrashedError
from mews.harness.scenario.brought import BroughtPrograms
from mews.kube.api.errors import UnavailableError
from mews.kube.api.objects import Object
from mews.kube.api.resources import NODES, SERVICE_ACCOUNTS, Resource
from mews.kube.client.port import KubeApi
from mews.kube.clock import Pace
from mews.kube.system.configured import ConfiguredSystem

_READY_S = 30.0
_READY_PER_NODE_S = 0.2
_AGAIN_S = 0.5
"""Until a server that gave no answer is asked once more."""


async def nodes_ready(kube: KubeApi, announced: Mapping[str, Mapping[str, int]], pace: Pace) -> None:
    """Watch until each node is Ready, untainted, and shows as many devices of each resource as it is to announce.

    Raises RequirementError naming those that are not in time.
    """
    if not (wanted := dict(announced)):
        return
    patience_s = _READY_S + _READY_PER_NODE_S * len(wanted) + pace.loop_s(60.0)
    try:
        async with asyncio.timeout(patience_s):
            async for node in _seen(kube, NODES):
                if _settled(node, wanted):
                    wanted.pop(node["metadata"]["name"], None)
                if not wanted:
                    return
    except TimeoutError:
        late = ", ".join(sorted(wanted)[:3])
        raise RequirementError(
            f"{len(wanted)} nodes did not become ready within {patience_s:.0f} s: {late} …"
        ) from None


async def default_account_made(kube: KubeApi, namespace: str) -> None:
    """Watch until a controller has made that namespace's ServiceAccount ``default``, without which pods are refused.

    Raises RequirementError when it is not in time.
    """
    try:
        async with asyncio.timeout(_READY_S):
            async for account in _seen(kube, SERVICE_ACCOUNTS, namespace):
                if account["metadata"]["name"] == "default":
                    return
    except TimeoutError:
        raise RequirementError(f"namespace {namespace} got no ServiceAccount default within {_READY_S:.0f} s") from None


async def while_they_run(waiting: Coroutine[Any, Any, None], journal: Journal, brought: BroughtPrograms | None) -> None:
    """Wait for that, but no longer than all programs of the user's run; None: however long it takes.

    Raises ComponentsCrashedError with the last lines of the first that has ended, and what the other raises.
    """
    ready, changed = asyncio.ensure_future(waiting), asyncio.Event()
    ready.add_done_callback(lambda _: changed.set())
    stop = journal.listen(lambda line: changed.set() if line.event == "crashed" else None)
    try:
        while not ready.done():
            crash = None if brought is None else brought.crash()
            if crash is not None:
                raise ComponentsCrashedError("\n".join((crash.text, *crash.output)))
            changed.clear()
            await changed.wait()
        ready.result()
    finally:
        stop()
        ready.cancel()
        await asyncio.gather(ready, return_exceptions=True)


def check_programs(units: Iterable[Unit]) -> None:
    """Raise RequirementError for a program that could not even be started."""
    for unit in units:
        if isinstance(unit.crash, RequirementError):
            raise RequirementError(f"{unit.name}: {unit.crash}")


def to_announce(
    hosts: Iterable[str],
    systems: Sequence[ConfiguredSystem],
    tables: Mapping[str, Mapping[str, Mapping[str, Any]]],
) -> dict[str, dict[str, int]]:
    """Node -> resource -> how many devices will be announced there: those on its ports, as the chassis' tables say."""
    wanted: dict[str, dict[str, int]] = {host: {} for host in hosts}
    rows = [row for table in tables.values() for row in table.values()]
    for each in systems:
        pooled, running = each.pooled, {component.name for _, component in each.components()}
        if pooled is None or pooled.announcer not in running:
            continue
        for row in rows:
            host = row["host"]
            if host is not None and row["kind"] == pooled.device_kind and host not in pooled.unannounced:
                there = wanted[host]
                there[pooled.resource] = there.get(pooled.resource, 0) + 1
    return wanted


async def _seen(kube: KubeApi, resource: Resource, namespace: str | None = None) -> AsyncIterator[Object]:
    """Yield the objects as they are and as they change, for ever: a real server ends a watch after a while, and one
    that is out of connections for the moment accepts none."""
    while True:
        try:
            async for event in kube.watch(resource, namespace=namespace, resource_version="0"):
                yield event.object
        except UnavailableError:
            await asyncio.sleep(_AGAIN_S)


def _settled(node: Object, wanted: Mapping[str, Mapping[str, int]]) -> bool:
    name, status = node["metadata"]["name"], node.get("status") or {}
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ())
    if name not in wanted or not ready or (node.get("spec") or {}).get("taints"):
        return False
    there = status.get("allocatable") or {}
    return all(int(there.get(resource, 0)) >= amount for resource, amount in wanted[name].items())
