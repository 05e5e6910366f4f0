"""The nodes of a kind cluster: containers of Docker's, in which systemd runs a kubelet."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from mews.harness.clusters.kind.cluster import KindCluster
from mews.harness.clusters.kind.runtime_proxy import install, remove
from mews.harness.clusters.kind.scheduler import DefaultScheduler
from mews.harness.clusters.kind.tools import call
from mews.harness.clusters.real.reset import SYSTEM
from mews.harness.clusters.real.target import DeploymentTarget
from mews.harness.errors import RequirementError
from mews.kube.runtimehook.port import HookPolicy

_KUBELET_DOWN = "systemctl kill --signal=SIGKILL kubelet; systemctl stop kubelet"
_KUBELET_UP = "systemctl reset-failed kubelet; systemctl start kubelet"


class KindAdmin:
    """The ClusterAdmin of ``--cluster kind``: works on the Docker containers that are the nodes."""

    name = "kind"

    def __init__(self, cluster: KindCluster, target: DeploymentTarget) -> None:
        self.target = target
        self._cluster = cluster
        self._scheduler = DefaultScheduler(cluster.control_plane)

    async def kill(self, component: str) -> None:
        """Kill -9 of a kubelet's or the default scheduler's process; containers run on."""
        kind, _, host = component.partition("/")
        if kind == "kubelet":
            await self._run(self._cluster.container(host), _KUBELET_DOWN)
        else:
            await asyncio.to_thread(self._scheduler.kill)

    async def start(self, component: str) -> None:
        """Start it again."""
        kind, _, host = component.partition("/")
        if kind == "kubelet":
            await self._run(self._cluster.container(host), _KUBELET_UP)
        else:
            await asyncio.to_thread(self._scheduler.start)

    async def restore(self) -> None:
        """Let the default scheduler be as kind made it, soon."""
        await asyncio.to_thread(self._scheduler.plain)

    async def extend(self, settings: Sequence[Mapping[str, Any]]) -> None:
        """Give the default scheduler extenders, and wait until it asks them; none: as kind made it."""
        if settings:
            await asyncio.to_thread(self._scheduler.extend, settings)
        await asyncio.to_thread(self._scheduler.ready, with_extenders=bool(settings))

    async def hook(self, policies: Mapping[str, HookPolicy]) -> None:
        """Put a proxy before the container runtimes of those hosts, and of no other. Raises RequirementError."""
        containers = {host: self._cluster.container(host) for host in self.target.nodes}
        waiting, without = [], (self.target.namespace, *SYSTEM)
        for host, container in containers.items():
            if host in policies:
                waiting.append(asyncio.to_thread(install, container, self.target.image, policies[host], without))
            else:
                waiting.append(asyncio.to_thread(remove, container))
        await asyncio.gather(*waiting)

    async def logs(self) -> Mapping[str, str]:
        """Return the kubelets' journals."""
        found = {}
        for host in self.target.nodes:
            argv = ["docker", "exec", self._cluster.container(host), "journalctl", "--unit", "kubelet", "--no-pager"]
            try:
                found[f"logs/kubelet_{host}.log"] = await asyncio.to_thread(call, [*argv, "--lines", "2000"])
            except RequirementError as error:
                found[f"logs/kubelet_{host}.log"] = f"no log: {error}\n"
        return found

    async def _run(self, container: str, script: str) -> str:
        argv: Sequence[str] = ["docker", "exec", container, "sh", "-c", script]
        return await asyncio.to_thread(call, argv)
