"""Clusters behind one narrow Cluster protocol."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mews.harness.options import check_available

if TYPE_CHECKING:
    from mews.harness.clusters.control_plane.port import ControlPlane
    from mews.harness.clusters.embedded.cluster import EmbeddedCluster
    from mews.harness.clusters.embedded.control_plane import Access
    from mews.harness.clusters.kubeconfig.cluster import KubeconfigCluster
    from mews.harness.clusters.real.cluster import RealCluster
    from mews.harness.clusters.session import ClusterSession
    from mews.harness.ports.cluster import ServedCluster
    from mews.harness.scenario.model import Scenario


async def open_cluster(
    scenario: Scenario,
    *,
    cluster: str = "embedded",
    time: str = "virtual",
    seed: int = 1,
    speed: float = 1.0,
    dialect: str | None = None,
    folder: Path | None = None,
    shared: ClusterSession | None = None,
    kubeconfig: Path | None = None,
    context: str | None = None,
    access: Access | None = None,
) -> ServedCluster:
    """A running cluster for a scenario, on the running loop; close it.

    ``folder`` gets the kubeconfig, logs and files of a wall-clock cluster; without one a temporary folder does.
    ``shared`` is what a cluster may find running from the one before, and leave; without it each starts its own.

    ``kubeconfig`` and ``context`` name the cluster of ``--cluster kubeconfig``. ``access`` says how a wall-clock
    embedded cluster's API is reached.

    Raises ScenarioError for hardware or options that cannot be read, Lacks where this machine lacks something.
    """
    check_available(cluster)
    if cluster == "kind":
        return await _kind(scenario, speed=speed, dialect=dialect, seed=seed, shared=_needed(shared))
    if cluster == "kubeconfig":
        site = _needed(shared).site(kubeconfig, context)
        return await _somebodys(scenario, site, speed=speed, dialect=dialect, seed=seed, tell=_needed(shared).tell)
    from mews.harness.clock import virtual_clock
    from mews.harness.clusters.embedded.cluster import EmbeddedCluster
    from mews.harness.clusters.embedded.world import World
    from mews.harness.journal import Journal
    from mews.harness.scenario.hardware import hardware_document, hardware_of
    from mews.kube.clock import Clock, Pace, stream
    from mews.kube.emulated.apiserver.wire.kubelets import Kubelets

    loop = asyncio.get_running_loop()
    hardware = hardware_of(scenario)
    start_s = loop.time()
    journal = Journal(lambda: loop.time() - start_s)
    pace = Pace(speed)
    rng = stream(seed, "store")
    world: World
    if time == "virtual":
        from mews.harness.clusters.embedded.local_world import LocalWorld

        clock = virtual_clock()
        world = LocalWorld(hardware, journal=journal, clock=clock, pace=pace, seed=seed, rng=rng)
    else:
        # gRPC's C core reports on standard error what a killed plugin looks like from the other side.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        from mews.harness.clusters.embedded.wire_world import WireWorld

        clock = Clock.wall()
        document, _ = hardware_document(scenario)

        def plane(root: Path) -> ControlPlane:
            if cluster == "control-plane":
                from mews.harness.clusters.control_plane.kubernetes import KubernetesControlPlane

                servers = None if shared is None else shared.servers()
                return KubernetesControlPlane(root, servers=servers, speed=speed)
            from mews.harness.clusters.embedded.control_plane import EmbeddedControlPlane

            return EmbeddedControlPlane(root, clock.now, rng, access=access)

        world = WireWorld(hardware, document, plane=plane, journal=journal, speed=speed, seed=seed, folder=folder)
    kubelets = Kubelets()
    running: EmbeddedCluster | None = None
    try:
        await world.open(kubelets)
        running = EmbeddedCluster(
            scenario,
            hardware,
            world=world,
            kubelets=kubelets,
            journal=journal,
            clock=clock,
            pace=pace,
            dialect=dialect or scenario.stack.dialect or "h3api",
            seed=seed,
        )
        await running.open()
    except BaseException:
        await (running or world).close()
        raise
    return running


async def _kind(
    scenario: Scenario, *, speed: float, dialect: str | None, seed: int, shared: ClusterSession
) -> RealCluster:
    from mews.harness.clusters.kind.admin import KindAdmin
    from mews.harness.clusters.real.bringing import baggage
    from mews.harness.clusters.real.opening import open_real
    from mews.harness.scenario.hardware import hardware_of

    machine, cpus = shared.kind(), {host.name: host.cpus for host in hardware_of(scenario).hosts}
    brings = baggage(scenario, {host: host for host in cpus})
    try:
        place = await asyncio.to_thread(machine.target, list(cpus), cpus)
        known = await asyncio.to_thread(machine.bring, brings.images)
    except asyncio.CancelledError:
        machine.interrupt()
        raise
    chosen = dialect or scenario.stack.dialect or "h3api"
    ground, brings = KindAdmin(machine, place), brings.with_images(known)
    return await open_real(scenario, ground, dialect=chosen, speed=speed, seed=seed, tell=shared.tell, brings=brings)


async def _somebodys(
    scenario: Scenario,
    site: KubeconfigCluster,
    *,
    speed: float,
    dialect: str | None,
    seed: int,
    tell: Callable[[str], None],
) -> RealCluster:
    from mews.harness.clusters.kubeconfig.admin import KubeconfigAdmin
    from mews.harness.clusters.real.bringing import baggage
    from mews.harness.clusters.real.opening import open_real
    from mews.harness.scenario.hardware import hardware_of

    hosts = [host.name for host in hardware_of(scenario).hosts]
    baggage(scenario, {host: host for host in hosts})  # raises for what cannot be used, before anything is made
    place = await site.target(hosts)
    ground, brings = KubeconfigAdmin(place), baggage(scenario, place.nodes)
    chosen = dialect or scenario.stack.dialect or "h3api"
    return await open_real(scenario, ground, dialect=chosen, speed=speed, seed=seed, tell=tell, brings=brings)


def _needed(shared: ClusterSession | None) -> ClusterSession:
    assert shared is not None, "what a real cluster gets is shared by scenarios: its owner ends it"
    return shared
