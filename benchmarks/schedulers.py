"""Our scheduler, and the real one, on our API beside our controller of claims: what benchmarks of claims measure."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.clusters.programs.scheduler import kube_scheduler
from mews.harness.kubeconfig_file import write_kubeconfig
from mews.harness.ports.fence import Fence
from mews.kube.client.port import KubeApi
from mews.kube.clock import Clock, Pace, stream
from mews.kube.component import Context, Runnable
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer
from mews.kube.emulated.controllers.manager import ControllerManager
from mews.kube.releases.cluster_release import ClusterRelease
from mews.kube.scheduling.config import SchedulerConfig, SchedulerProfile
from mews.kube.scheduling.devices.gated_features import features_of
from mews.kube.scheduling.plugins import default_plugins
from mews.kube.scheduling.scheduler import Scheduler

RUN = ("resourceclaim-controller",)
"""The only controller that runs."""
JSON = "application/json"
Measured = TypeVar("Measured")
Measure = Callable[[KubeApi, Sequence[Runnable]], Awaitable[Measured]]
"""Runs these components on the API, and measures them."""


def on_our_scheduler(measure: Measure[Measured], release: ClusterRelease) -> Measured:
    """Our scheduler and controller on our API, in virtual time."""

    async def main() -> Measured:
        clock = virtual_clock()
        kube = InProcessKube(fresh_store(clock.now, stream(1, "store"), attended=True, release=release))

        def context(name: str) -> Context:
            return Context(kube, clock, stream(1, name), logging.getLogger(f"mews.bench.{name}"))

        profile = SchedulerProfile("default-scheduler", default_plugins(devices=features_of(release)))
        scheduler = Scheduler(context("scheduler"), SchedulerConfig((profile,)))
        return await measure(kube, [scheduler, _controllers(context("controllers"))])

    return run_virtual(main)


def on_the_real_scheduler(measure: Measure[Measured], release: ClusterRelease, folder: Path) -> Measured:
    """Return the real scheduler on our API over HTTP, with our controller, in wall-clock time."""

    async def main() -> Measured:
        clock = Clock.wall()
        store = fresh_store(clock.now, random.Random(1), attended=True, release=release)
        server = ApiServer(store)
        await server.start()
        kubeconfig = folder / "kubeconfig"
        write_kubeconfig(kubeconfig, server={"server": server.url}, user={})
        scheduler = kube_scheduler(folder, kubeconfig, content_type=JSON, release=release)
        assert scheduler is not None, "there is a kube-scheduler of that release"
        kube = InProcessKube(store)
        context = Context(kube, clock, stream(1, "controllers"), logging.getLogger("mews.bench"))
        try:
            return await measure(kube, [scheduler(Fence()), _controllers(context)])
        finally:
            await server.stop()

    return asyncio.run(main())


def _controllers(context: Context) -> ControllerManager:
    return ControllerManager(context, Pace(), controllers=RUN)
