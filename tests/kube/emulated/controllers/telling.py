"""Tells all stories at once: in virtual time with our controllers, or on the real control plane with its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.clusters.control_plane.servers import Servers
from mews.harness.clusters.programs.controllers import kube_controller_manager
from mews.harness.kubeconfig_file import write_kubeconfig
from mews.harness.ports.fence import Fence
from mews.kube.api.resources import NAMESPACES
from mews.kube.client.http import HttpKube
from mews.kube.client.port import KubeApi
from mews.kube.clock import Clock, Pace, stream
from mews.kube.component import Context, Runnable
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.controllers.manager import ControllerManager
from tests.kube.emulated.controllers.puppet import Puppeteer, raise_stage
from tests.kube.emulated.controllers.staging import Stage

Story = Callable[[Stage], Awaitable[None]]
Told = dict[str, tuple[list[tuple[str, list[str]]], dict[str, list[str]]]]
"""By story: what was there at each of its turns, and the events."""
RUN = ("*", "-node-lifecycle-controller", "-taint-eviction-controller")
"""Nobody renews the leases of the stage's nodes."""


def title(story: Story) -> str:
    return str(getattr(story, "__name__", story)).replace("_", "-")


async def tell(kube: KubeApi, clock: Clock, controllers: Runnable, stories: Sequence[Story]) -> Told:
    for name in ("stage-1", "stage-2"):
        await raise_stage(kube, clock, name=name)
    running = [asyncio.create_task(each.run()) for each in (controllers, Puppeteer(kube, clock))]
    try:
        return dict(await asyncio.gather(*(_one(kube, story) for story in stories)))
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _one(kube: KubeApi, story: Story) -> tuple[str, Any]:
    stage = Stage(kube, title(story))
    await kube.create(NAMESPACES, {"metadata": {"name": stage.namespace}})
    await asyncio.sleep(0.5)
    await story(stage)
    return stage.namespace, (stage.seen, await stage.told())


class Mortal:
    """A component that dies every so often, at any point of its work, and is made anew."""

    def __init__(self, make: Callable[[], Runnable], lives_s: float) -> None:
        self._make = make
        self._lives_s = lives_s

    async def run(self) -> None:
        while True:
            task = asyncio.create_task(self._make().run())
            try:
                await asyncio.sleep(self._lives_s)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


def ours(stories: Sequence[Story], *, seed: int = 1, run: Sequence[str] = RUN, lives_s: float | None = None) -> Told:
    """With our controllers, in virtual time; ``lives_s``: they die that often."""

    async def main() -> Told:
        clock = virtual_clock()
        kube = InProcessKube(fresh_store(clock.now, stream(seed, "store"), attended=True))
        context = Context(kube, clock, stream(seed, "controllers"), logging.getLogger("controllers"))

        def make() -> Runnable:
            return ControllerManager(context, Pace(), controllers=run)

        return await tell(kube, clock, make() if lives_s is None else Mortal(make, lives_s), stories)

    return run_virtual(main)


def theirs(stories: Sequence[Story], folder: Path) -> Told:
    """On the real API server with the real kube-controller-manager."""
    servers = Servers()

    async def main() -> Told:
        await asyncio.to_thread(servers.ready)
        identity, kubeconfig = servers.identity, folder / "kubeconfig"
        cluster = {"server": servers.url, "certificate-authority": str(identity.certificate)}
        write_kubeconfig(kubeconfig, server=cluster, user={"token": identity.token})
        program = kube_controller_manager(folder, kubeconfig, run=RUN)
        assert program is not None
        kube = HttpKube(servers.url, token=identity.token, ssl=identity.client_context())
        try:
            return await tell(kube, Clock.wall(), program(Fence()), stories)
        finally:
            await kube.close()

    try:
        return asyncio.run(main())
    finally:
        servers.stop()
