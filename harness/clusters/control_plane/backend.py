"""The backend ``control-plane``: emulated nodes around the real etcd and kube-apiserver."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mews.harness.backends import Backend
from mews.kube.releases.cluster_release import STANDARD

if TYPE_CHECKING:
    from mews.harness.clusters.control_plane.servers import Servers
    from mews.harness.clusters.request import ClusterRequest
    from mews.harness.clusters.session import ClusterSession
    from mews.harness.ports.cluster import ReachableCluster
    from mews.kube.releases.cluster_release import ClusterRelease


def _check_available() -> None:
    from mews.harness.clusters.programs.finding import needed

    needed()


def servers_of(session: ClusterSession, *, attended: bool = True, release: ClusterRelease = STANDARD) -> Servers:
    """Return the session's etcd and kube-apiserver of each release, with and without service accounts: started once,
    emptied between scenarios."""
    from mews.harness.clusters.control_plane.servers import Servers

    name = "control-plane" if attended else "unattended control-plane"
    name += "" if release.is_default else f" {release}"
    return session.share(name, partial(Servers, attended=attended, release=release), Servers.stop)


async def open_cluster(request: ClusterRequest) -> ReachableCluster:
    """Return a running cluster for that request."""
    from mews.harness.clusters.control_plane.kubernetes import KubernetesControlPlane
    from mews.harness.clusters.embedded.opening import open_served

    run = request.begin()
    stack = request.scenario.stack
    attended = stack.controllers.names("serviceaccount-controller")
    servers = None if request.session is None else servers_of(request.session, attended=attended, release=stack.release)

    return await open_served(
        request,
        run,
        lambda folder, certificates: KubernetesControlPlane(
            folder,
            servers=servers,
            speed=run.speed,
            attended=attended,
            metrics=stack.metrics == "on",
            release=stack.release,
        ),
    )


BACKEND = Backend(
    "control-plane",
    times=("wall",),
    opener="mews.harness.clusters.control_plane.backend:open_cluster",
    check_available=_check_available,
    stays_up=True,
)
