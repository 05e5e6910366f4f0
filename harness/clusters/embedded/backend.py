"""The backend ``embedded``: emulated nodes around our own API server, in virtual or in wall-clock time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mews.harness.backends import Backend

if TYPE_CHECKING:
    from pathlib import Path

    from mews.certificates import ClusterCertificates
    from mews.harness.clusters.embedded.control_plane import EmbeddedControlPlane
    from mews.harness.clusters.request import ClusterRequest
    from mews.harness.ports.cluster import ReachableCluster


async def open_cluster(request: ClusterRequest) -> ReachableCluster:
    """Return a running cluster for that request."""
    run = request.begin()
    if request.options.time == "virtual":
        from mews.harness.clusters.embedded.opening import open_in_process

        return await open_in_process(request, run)
    from mews.harness.clusters.embedded.opening import open_served

    now, rng, serving = run.clock.now, run.rng("store"), request.options.serving
    stack = request.scenario.stack
    attended, metrics = stack.controllers.names("serviceaccount-controller"), stack.metrics == "on"

    containers = request.scenario.unknown_images == "container"

    def control_plane(folder: Path, certificates: ClusterCertificates | None) -> EmbeddedControlPlane:
        from mews.harness.clusters.embedded.control_plane import EmbeddedControlPlane  # while processes start

        return EmbeddedControlPlane(
            folder,
            now,
            rng,
            serving,
            certificates,
            attended=attended,
            metrics=metrics,
            containers=containers,
            release=stack.release,
        )

    return await open_served(request, run, control_plane)


BACKEND = Backend(
    "embedded",
    times=("virtual", "wall"),
    opener="mews.harness.clusters.embedded.backend:open_cluster",
    check_available=lambda: None,  # it is all in this package
    stays_up=True,
    chooses_api_port=True,
)
