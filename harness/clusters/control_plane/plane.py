"""The real control plane as a Plane: API server, default scheduler and controllers of Kubernetes, our kubelets."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mews.harness.clusters.control_plane.kubelet_server import KubeletServers
from mews.harness.clusters.control_plane.programs import CONTROLLERS, SCHEDULER, find
from mews.harness.clusters.control_plane.servers import Servers
from mews.harness.clusters.embedded.kubelets import KubeletDirectory
from mews.harness.clusters.plane import Program, write_kubeconfig
from mews.harness.clusters.process import ProcessComponent
from mews.harness.ports.fence import Fence
from mews.kube.client.http import HttpKube
from mews.kube.component import Component

_MONITOR_PERIOD_S, _MONITOR_GRACE_S = 5.0, 50.0
"""kube-controller-manager's defaults (contract kubelet.md section 11); heartbeats run at the same pace."""


class ControlPlane:
    """``servers`` may have served another scenario: they are emptied. Whoever gave them stops them."""

    name = "control-plane"

    def __init__(self, folder: Path, *, servers: Servers | None, speed: float) -> None:
        self._folder = folder
        self._given = servers is not None
        self._servers = servers or Servers()
        self._speed = speed
        self._kubelets: KubeletServers | None = None
        self._kubes: list[HttpKube] = []
        self._admin = folder / "admin.kubeconfig"

    @property
    def url(self) -> str:
        """Where kube-apiserver is."""
        return self._servers.url

    async def open(self, kubelets: KubeletDirectory, hosts: Sequence[str]) -> None:
        """Start or empty the servers; serve the kubelets' APIs."""
        await asyncio.to_thread(self._servers.ready)
        self.write_kubeconfig(self._admin)
        self._kubelets = KubeletServers(kubelets, self._servers.identity.kubelet_context())
        await self._kubelets.open(hosts)

    def kube(self, actor: str) -> HttpKube:
        """A client with the administrator's token."""
        identity = self._servers.identity
        kube = HttpKube(self.url, token=identity.token, ssl=identity.client_context(), user_agent=f"mews-{actor}")
        self._kubes.append(kube)
        return kube

    def write_kubeconfig(self, path: Path) -> None:
        """With the token and the certificate."""
        identity = self._servers.identity
        authority = base64.b64encode(identity.certificate.read_bytes()).decode()
        server = {"server": self.url, "certificate-authority-data": authority}
        write_kubeconfig(path, server=server, user={"token": identity.token})

    def kubelet_address(self, host: str) -> tuple[str, int] | None:
        """On loopback, each on a port of its own."""
        return None if self._kubelets is None else self._kubelets.address(host)

    def program(self, component: str, options: Mapping[str, Any]) -> Program | None:
        """kube-scheduler and kube-controller-manager, where they are found."""
        if component == "default-scheduler" and not options:
            path = find(SCHEDULER)
            argv = [*_common(path, self._admin), f"--config={self._scheduler_config()}"] if path else []
        elif component == "controller-manager":
            path = find(CONTROLLERS)
            argv = self._controllers(path) if path else []
        else:
            return None
        return self._component(component, argv) if argv else None

    def _component(self, name: str, argv: Sequence[str]) -> Program:
        log = self._folder / f"{name}.log"

        def make(fence: Fence) -> Component:
            return ProcessComponent(argv, fence=fence, log=log)

        return make

    def _scheduler_config(self) -> Path:
        path = self._folder / "kube-scheduler.json"
        connection = {"kubeconfig": str(self._admin), "qps": 1000, "burst": 2000}
        content = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": connection,
            "leaderElection": {"leaderElect": False},
        }
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    def _controllers(self, path: str) -> list[str]:
        monitor = {"period": _MONITOR_PERIOD_S, "grace-period": _MONITOR_GRACE_S}
        return [
            *_common(path, self._admin),
            *(f"--kubeconfig={self._admin}", "--leader-elect=false", "--use-service-account-credentials=false"),
            *(f"--service-account-private-key-file={self._servers.identity.key}", "--kube-api-qps=500"),
            "--kube-api-burst=1000",
            *(f"--node-monitor-{name}={int(1000 * span_s / self._speed)}ms" for name, span_s in monitor.items()),
        ]

    async def close(self) -> None:
        """Close the clients and the kubelets' servers; stop the servers unless they are others'."""
        for kube in self._kubes:
            await kube.close()
        if self._kubelets is not None:
            await self._kubelets.close()
        if not self._given:
            await asyncio.to_thread(self._servers.stop)


def _common(path: str, kubeconfig: Path) -> list[str]:
    return [
        path,
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--secure-port=0",
    ]
