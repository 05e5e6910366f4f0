"""The real control plane as a Plane: API server, default scheduler and controllers of Kubernetes, our kubelets."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mews.harness.clusters.control_plane.kubelet_server import KubeletServers
from mews.harness.clusters.control_plane.programs import CONTROLLERS, find
from mews.harness.clusters.control_plane.scheduler import kube_scheduler, no_server, program
from mews.harness.clusters.control_plane.servers import Servers
from mews.harness.clusters.embedded.kubelets import KubeletDirectory
from mews.harness.clusters.plane import Program, write_kubeconfig
from mews.kube.client.http import HttpKube

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

    def program(
        self, component: str, options: Mapping[str, Any], *, extenders: Sequence[Mapping[str, Any]] = ()
    ) -> Program | None:
        """kube-scheduler and kube-controller-manager, where they are found."""
        if component == "default-scheduler" and not options:
            return kube_scheduler(self._folder, self._admin, extenders=extenders)
        path = find(CONTROLLERS) if component == "controller-manager" else None
        return None if path is None else program(self._controllers(path), self._folder / f"{component}.log")

    def _controllers(self, path: str) -> list[str]:
        monitor = {"period": _MONITOR_PERIOD_S, "grace-period": _MONITOR_GRACE_S}
        return [
            *(path, *no_server(self._admin)),
            *(f"--kubeconfig={self._admin}", "--leader-elect=false", "--use-service-account-credentials=false"),
            *(f"--service-account-private-key-file={self._servers.identity.key}", "--kube-api-qps=500"),
            "--kube-api-burst=1000",
            # An Endpoints object must not name loopback addresses, which is what the pods have.
            "--controllers=*,-endpoints-controller,-endpointslice-controller,-endpointslice-mirroring-controller",
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
