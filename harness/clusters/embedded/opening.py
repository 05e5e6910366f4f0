"""Opens clusters of emulated nodes: the ports first, then the cluster that works through them."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from mews.descriptors import TooFewDescriptorsError, ensure_descriptors
from mews.harness.clock import HaltingLoop
from mews.harness.clusters.request import ClusterRequest
from mews.harness.errors import BadInputError
from mews.harness.extras import check_installed
from mews.harness.run_context import RunContext
from mews.harness.scenario.hardware import hardware_document, hardware_of
from mews.harness.scenario.images import container_wanted

if TYPE_CHECKING:
    from mews.emulator.hardware.inventory import Hardware
    from mews.harness.clusters.embedded.cluster import EmbeddedCluster
    from mews.harness.clusters.embedded.served import MakeControlPlane
    from mews.harness.clusters.ports import ClusterPorts
    from mews.kube.emulated.ports.kubelets import Kubelets


async def open_in_process(request: ClusterRequest, run: RunContext) -> EmbeddedCluster:
    """Return a cluster in this process, on the running virtual loop.

    Raises ScenarioError for hardware or options that cannot be read.
    """
    from mews.harness.clusters.embedded.cluster import EmbeddedCluster
    from mews.harness.clusters.embedded.in_process import in_process_ports
    from mews.kube.emulated.ports.kubelets import Kubelets

    hardware, kubelets = hardware_of(request.scenario), Kubelets()
    stack = request.scenario.stack
    attended = stack.controllers.names("serviceaccount-controller")
    metrics = stack.metrics == "on"
    ports = in_process_ports(hardware, run, kubelets, attended=attended, metrics=metrics, release=stack.release)
    return await _opened(EmbeddedCluster, request, run, hardware, ports, kubelets)


async def open_served(request: ClusterRequest, run: RunContext, control_plane: MakeControlPlane) -> EmbeddedCluster:
    """Return a cluster that other processes can reach; its control plane is made in the cluster's own folder.

    Raises ScenarioError for hardware or options that cannot be read, RequirementError for what this machine lacks.
    """
    # gRPC's C core reports on standard error what a killed plugin looks like from the other side.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from mews.harness.clusters.embedded.served import ServedPorts

    hardware = hardware_of(request.scenario)
    document, _ = hardware_document(request.scenario)
    _ensure_descriptors(hardware)
    check_installed("cluster")  # before chassis and hosts are started: what serves the API is imported after that
    served = ServedPorts(
        hardware,
        document,
        run,
        control_plane=control_plane,
        serving=request.options.serving,
        folder=request.options.folder,
        containers=container_wanted(request.scenario),
    )
    try:
        await served.begin()
        # All that comes later is imported while chassis and hosts start: they take longer than the API server.
        from mews.harness.clusters.embedded.cluster import EmbeddedCluster
        from mews.kube.emulated.ports.kubelets import Kubelets

        kubelets = Kubelets()
        await served.open(kubelets)
    except BaseException:
        await served.close()
        raise
    return await _opened(EmbeddedCluster, request, run, hardware, served.ports(), kubelets)


def descriptors_of(nodes: int) -> int:
    """Return how many files the process of so many nodes opens. Measured with devices announced: 220 for API and
    controllers, and 40 for each node, whose kubelet and agents have connections and sockets of their own. A third more
    are for clients."""
    return 320 + 50 * nodes


def _ensure_descriptors(hardware: Hardware) -> None:
    """For this process.

    Raises BadInputError.
    """
    nodes = len(hardware.hosts)
    try:
        ensure_descriptors(f"a cluster of {nodes} nodes", descriptors_of(nodes))
    except TooFewDescriptorsError as error:
        raise BadInputError(str(error)) from error


async def _opened(
    make: type[EmbeddedCluster],
    request: ClusterRequest,
    run: RunContext,
    hardware: Hardware,
    ports: ClusterPorts,
    kubelets: Kubelets,
) -> EmbeddedCluster:
    running: EmbeddedCluster | None = None
    try:
        running = make(
            request.scenario,
            hardware,
            name=request.options.cluster,
            run=run,
            ports=ports,
            kubelets=kubelets,
            monitored=request.options.monitored,
        )
        if request.options.halt is not None:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, HaltingLoop), "a run that stops is made on a loop that can be held"
            request.options.halt.watch(run.journal, running, loop.hold_next)
        await running.open(devices=request.options.wait == "devices")
    except BaseException:
        await (ports if running is None else running).close()
        raise
    return running
