"""The backend ``kubeconfig``: any cluster that the user has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mews.harness.backends import Backend

if TYPE_CHECKING:
    from mews.harness.clusters.kubeconfig.cluster import KubeconfigCluster
    from mews.harness.clusters.request import ClusterRequest
    from mews.harness.clusters.session import ClusterSession
    from mews.harness.options import RunOptions
    from mews.harness.ports.cluster import ReachableCluster


def _cluster_of(session: ClusterSession, options: RunOptions) -> KubeconfigCluster:
    """Return the user's cluster, always the same one in a session."""
    from mews.harness.clusters.kubeconfig.cluster import KubeconfigCluster

    def make() -> KubeconfigCluster:
        return KubeconfigCluster(options.kubeconfig, options.context, keep=session.keep, notify=session.notify)

    return session.share("kubeconfig", make, KubeconfigCluster.close)


async def open_cluster(request: ClusterRequest) -> ReachableCluster:
    """Return a running cluster for that request."""
    from mews.harness.clusters.kubeconfig.admin import KubeconfigAdmin
    from mews.harness.clusters.real.opening import open_real
    from mews.harness.clusters.real.replacements import replacement_deployment
    from mews.harness.scenario.hardware import hardware_of

    session, scenario = request.needed_session(), request.scenario
    cluster = _cluster_of(session, request.options)
    hosts = [host.name for host in hardware_of(scenario).hosts]
    # Raises for what cannot be used, before anything is made.
    replacement_deployment(scenario, {host: host for host in hosts})
    target = await cluster.target(hosts)
    admin, replaced = KubeconfigAdmin(target), replacement_deployment(scenario, target.nodes)
    return await open_real(scenario, admin, request.begin(), notify=session.notify, replacements=replaced)


BACKEND = Backend(
    "kubeconfig",
    times=("wall",),
    opener="mews.harness.clusters.kubeconfig.backend:open_cluster",
    check_available=lambda: None,  # whether the cluster answers is found out when it is opened
    emulates_nodes=False,
    needs_session=True,
    is_the_users=True,
)
