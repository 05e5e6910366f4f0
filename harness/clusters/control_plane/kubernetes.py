"""The real control plane: API server, default scheduler and controllers of Kubernetes, with our kubelets as nodes."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mews.harness.clusters.control_plane.metrics_server import AggregatedMetrics
from mews.harness.clusters.control_plane.servers import Servers
from mews.harness.clusters.embedded.kubelet_server import KubeletServers
from mews.harness.clusters.embedded.node_addresses import node_address
from mews.harness.clusters.programs.control_plane import Program, acting_as
from mews.harness.clusters.programs.controllers import kube_controller_manager
from mews.harness.clusters.programs.scheduler import kube_scheduler
from mews.harness.kubeconfig_file import write_kubeconfig
from mews.kube.client.http import HttpKube
from mews.kube.emulated.kubelet.podnet.callers import Callers, PlaceOf
from mews.kube.emulated.ports.kubelets import KubeletDirectory
from mews.kube.releases.cluster_release import STANDARD, ClusterRelease

_OF_SCHEDULER = {"program", "device_binding_timeout_s"}
"""The options of the default scheduler that kube-scheduler has, too."""
_OF_ENDPOINTS = ("endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller")


class KubernetesControlPlane:
    """The ControlPlane of ``--cluster control-plane``: etcd and kube-apiserver as processes.

    ``servers`` may have served another scenario: they are emptied. Whoever gave them stops them. ``metrics``: register
    a server of metrics.k8s.io.
    """

    name = "control-plane"

    def __init__(
        self,
        folder: Path,
        *,
        servers: Servers | None,
        speed: float,
        attended: bool = True,
        metrics: bool = True,
        release: ClusterRelease = STANDARD,
    ) -> None:
        self._folder = folder
        self._given = servers is not None
        self._servers = servers or Servers(attended=attended, release=release)
        self._speed = speed
        self._release = release
        self._serves_metrics = metrics
        self._kubelets: KubeletServers | None = None
        self._metrics: AggregatedMetrics | None = None
        self._kubes: list[HttpKube] = []
        self._admin = folder / "admin.kubeconfig"
        self._finds_pods = False

    @property
    def url(self) -> str:
        """Where kube-apiserver is."""
        return self._servers.url

    async def open(self, kubelets: KubeletDirectory, hosts: Sequence[str]) -> None:
        """Start or empty the servers; serve the kubelets' APIs."""
        await asyncio.to_thread(self._servers.ready)
        self.write_kubeconfig(self._admin)
        addresses = [node_address(number) for number, _ in enumerate(hosts)]
        context = await asyncio.to_thread(self._servers.identity.node_context, addresses)
        self._kubelets = KubeletServers(kubelets, context, self.kube("kubelet"))
        await self._kubelets.open(hosts)
        if not self._serves_metrics:
            return
        own = self._servers.identity.kubelet_context()
        self._metrics = AggregatedMetrics(self.kube("metrics-server"), kubelets, own, self.authority())
        await self._metrics.open()

    @property
    def pod_prefix(self) -> str:
        """As kubeadm and kind have it: this API server connects to no pod that has a loopback address."""
        return "10.244"

    def find_pods(self, place_of: PlaceOf) -> None:
        """kube-apiserver's connections to pods and Services lead where that function says."""
        self._finds_pods = True
        self._servers.find_pods(place_of)

    def kube(self, actor: str) -> HttpKube:
        """Return a client with the administrator's token, and the actor's name."""
        identity = self._servers.identity
        kube = HttpKube(
            self.url,
            token=identity.token,
            ssl=identity.client_context(),
            user_agent=f"mews-{actor}",
            headers=acting_as(actor),
        )
        self._kubes.append(kube)
        return kube

    def write_kubeconfig(self, path: Path) -> None:
        """With the token and the certificate."""
        identity = self._servers.identity
        authority = base64.b64encode(self.authority().encode()).decode()
        server = {"server": self.url, "certificate-authority-data": authority}
        write_kubeconfig(path, server=server, user={"token": identity.token})

    def authority(self) -> str:
        """Return the certificate that all of it shares."""
        return self._servers.identity.certificate.read_text(encoding="ascii")

    def kubelet_address(self, host: str) -> tuple[str, int] | None:
        """Return them on loopback, each on a port of its own; None where the API server is led to the nodes."""
        return None if self._kubelets is None or self._finds_pods else self._kubelets.address(host)

    def kubelet_place(self, host: str) -> tuple[str, int] | None:
        """Return where the node's kubelet listens; None where that is what the node's address says."""
        return self._kubelets.address(host) if self._kubelets is not None and self._finds_pods else None

    def program(
        self,
        component: str,
        options: Mapping[str, Any],
        *,
        extenders: Sequence[Mapping[str, Any]] = (),
        kubeconfig: Path | None = None,
        callers: Callers | None = None,
    ) -> Program | None:
        """kube-scheduler and kube-controller-manager, where they are found."""
        if component == "default-scheduler" and options.get("program") != "ours" and options.keys() <= _OF_SCHEDULER:
            return kube_scheduler(
                self._folder,
                kubeconfig or self._admin,
                extenders=extenders,
                release=self._release,
                options=options,
                callers=callers,
            )
        if component != "controller-manager" or options.get("program") == "ours":
            return None
        run = [*options.get("run", ("*",))]
        if not self._finds_pods:  # an Endpoints object must not name loopback addresses, which is what they have
            run += (f"-{name}" for name in _OF_ENDPOINTS)
        key = f"--service-account-private-key-file={self._servers.identity.key}"
        return kube_controller_manager(
            self._folder,
            kubeconfig or self._admin,
            run=run,
            speed=self._speed,
            flags=(key,),
            release=self._release,
            callers=callers,
        )

    async def close(self) -> None:
        """Close the clients and the kubelets' servers; stop the servers unless they are others'."""
        if self._finds_pods:
            self._servers.find_pods(None)
        for kube in self._kubes:
            await kube.close()
        if self._metrics is not None:
            await self._metrics.close()
        if self._kubelets is not None:
            await self._kubelets.close()
        if not self._given:
            await asyncio.to_thread(self._servers.stop)
