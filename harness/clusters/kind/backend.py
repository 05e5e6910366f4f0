"""The backend ``kind``: a real cluster in Docker, of our own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mews.harness.backends import Backend

if TYPE_CHECKING:
    from mews.harness.clusters.kind.cluster import KindCluster
    from mews.harness.clusters.request import ClusterRequest
    from mews.harness.clusters.session import ClusterSession
    from mews.harness.ports.cluster import ReachableCluster


def _check_available() -> None:
    from mews.harness.clusters.kind.tools import needed

    needed()


def _cluster_of(session: ClusterSession) -> KindCluster:
    """Return the session's kind cluster, created when a target in it is asked for."""
    from mews.harness.clusters.kind.cluster import KindCluster

    return session.share("kind", lambda: KindCluster(keep=session.keep, notify=session.notify), KindCluster.close)


async def open_cluster(request: ClusterRequest) -> ReachableCluster:
    """Return a running cluster for that request."""
    from mews.harness.clusters.kind.admin import KindAdmin
    from mews.harness.clusters.kind.needs import features_of, program_files
    from mews.harness.clusters.real.opening import open_real
    from mews.harness.clusters.real.replacements import replacement_deployment
    from mews.harness.scenario.hardware import hardware_of

    session, scenario, hardware = request.needed_session(), request.scenario, hardware_of(request.scenario)
    cluster, cpus = _cluster_of(session), {host.name: host.cpus for host in hardware.hosts}
    features, programs = features_of(scenario, hardware), program_files(scenario, hardware)
    replaced = replacement_deployment(scenario, {host: host for host in cpus})
    try:
        target = await asyncio.to_thread(cluster.target, list(cpus), cpus, features)
        known = await asyncio.to_thread(cluster.bring, replaced.images)
        identities = await asyncio.to_thread(cluster.bring_programs, programs)
    except asyncio.CancelledError:
        cluster.interrupt()
        raise
    admin, replaced = KindAdmin(cluster, target), replaced.with_images(known)
    return await open_real(
        scenario, admin, request.begin(), notify=session.notify, replacements=replaced, identities=identities
    )


BACKEND = Backend(
    "kind",
    times=("wall",),
    opener="mews.harness.clusters.kind.backend:open_cluster",
    check_available=_check_available,
    emulates_nodes=False,
    needs_session=True,
    stays_up=True,
)
