"""Watches a cluster and its chassis together for a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from msgspec import structs

from mews.harness.recording.chassis_polls import ChassisPolls
from mews.harness.recording.clocks import server_offset
from mews.harness.recording.cluster_watch import ClusterWatch
from mews.harness.recording.observations import ClusterObservations
from mews.kube.client.port import KubeApi

_TICK_S = 0.5


async def watched(
    kube: KubeApi,
    url: str,
    chassis: Sequence[ChassisPolls],
    *,
    for_s: float,
    now: Callable[[], float],
    stop: asyncio.Event,
    progress: Callable[[float, str], None],
) -> ClusterObservations:
    """Return what was seen within that time, or until ``stop``. ``progress`` is called with the seconds so far, and
    what has been seen.

    Raises RequirementError where the cluster or a chassis does not answer at the start.
    """
    cluster = ClusterWatch(kube, now)
    await cluster.open(url)
    for each in chassis:
        await each.open()
    began = now()
    tasks = [asyncio.create_task(cluster.run()), *(asyncio.create_task(each.run()) for each in chassis)]
    try:
        while (elapsed := now() - began) < for_s and not stop.is_set():
            progress(elapsed, _so_far(cluster, chassis))
            failed = next((task for task in tasks if task.done()), None)
            if failed is not None:
                await failed
            try:
                await asyncio.wait_for(stop.wait(), min(_TICK_S, for_s - elapsed))
            except TimeoutError:
                continue
        for each in chassis:
            await each.look()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return _observations(cluster, chassis, began, now())


def _so_far(cluster: ClusterWatch, chassis: Sequence[ChassisPolls]) -> str:
    pods = {each.key for each in cluster.sightings if each.key[0] == "Pod"}
    changes = sum(len(each.readings) - 1 for each in chassis)
    return f"{len(pods)} pods, {len(cluster.sightings)} changes of objects, {changes} of tables"


def _observations(
    cluster: ClusterWatch, chassis: Sequence[ChassisPolls], began: float, ended: float
) -> ClusterObservations:
    offset = server_offset(cluster.differences)
    notes = list(cluster.notes)
    if offset:
        notes.append(f"this machine's clock is {-offset:+.0f} s off the API server's: corrected")
    return ClusterObservations(
        objects=tuple(
            each if each.at is None else structs.replace(each, at=each.at + offset) for each in cluster.sightings
        ),
        readings=tuple(structs.replace(row, at=(row.at or 0.0) + offset) for each in chassis for row in each.readings),
        lost=tuple(structs.replace(row, at=row.at + offset) for each in chassis for row in each.lost),
        notes=tuple(notes),
        began=began + offset,
        ended=ended + offset,
    )
