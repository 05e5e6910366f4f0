"""Our own control plane in wall-clock time: the store behind its HTTP face."""

from __future__ import annotations

import base64
import os
import random
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mews.certificates import ClusterCertificates
from mews.harness.clusters.embedded.kubelet_server import KubeletServers
from mews.harness.clusters.programs.control_plane import Program, acting_as
from mews.harness.errors import RequirementError
from mews.harness.kubeconfig_file import write_kubeconfig
from mews.harness.options import ServingOptions
from mews.kube.api.objects import Object
from mews.kube.client.http import HttpKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.ports.kubelets import KubeletDirectory
from mews.kube.emulated.types.ignored_warnings import ignored_warnings
from mews.kube.releases.cluster_release import STANDARD, ClusterRelease

if TYPE_CHECKING:
    from mews.kube.emulated.kubelet.podnet.callers import Callers, PlaceOf

_JSON = "application/json"


class EmbeddedControlPlane:
    """The ControlPlane of ``--cluster embedded``: our own store, served on loopback; where there are certificates, over
    TLS and to who has the token. Their files need not be there before ``open``. ``attended``: somebody makes the
    service accounts that pods need; ``metrics``: serve metrics.k8s.io; ``containers``: unknown images run in
    containers; ``release``: which Kubernetes it is."""

    name = "embedded"

    def __init__(
        self,
        folder: Path,
        now: Callable[[], float],
        rng: random.Random,
        serving: ServingOptions | None = None,
        certificates: ClusterCertificates | None = None,
        *,
        attended: bool = True,
        metrics: bool = True,
        containers: bool = False,
        release: ClusterRelease = STANDARD,
    ) -> None:
        self._folder = folder
        self._serving = serving or ServingOptions()
        self._store = fresh_store(now, rng, attended=attended, release=release)
        if attended:  # a bare API server is compared with the real one, warning by warning
            self._store.advise = partial(_advice, containers)
        self._metrics = metrics
        self._release = release
        self._token = "" if certificates is None else secrets.token_hex(16)
        self._certificates = certificates
        self._own_door = str(folder / "api.sock")
        self._server: ApiServer | None = None
        self._kubes: list[HttpKube] = []
        self._kubelets: KubeletServers | None = None

    @property
    def url(self) -> str:
        """Where the API server is."""
        if self._server is None:
            raise RuntimeError("the API server does not run")
        return self._server.url

    async def open(self, kubelets: KubeletDirectory, hosts: Sequence[str]) -> None:
        """Serve.

        Raises RequirementError where the port is taken.
        """
        made = self._certificates
        context = None if made is None else made.server.server_context()
        self._server = ApiServer(
            self._store,
            kubelets=kubelets,
            tokens={self._token: "admin"} if self._token else None,
            ssl_context=context,
            usage=self._metrics,
            allow_hosts=self._serving.allow_hosts,
            authority=self.authority() or "",
            front=None if made is None else made.front,
        )
        try:
            await self._server.start("127.0.0.1", self._serving.port, unix_socket=self._own_door)
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise RequirementError(f"--api-port {self._serving.port}: {reason} on 127.0.0.1") from error
        if made is not None:
            self._kubelets = KubeletServers(kubelets, made.kubelet.server_context(), self.kube("kubelet"))
            await self._kubelets.open(hosts)

    def authority(self) -> str | None:
        """Return that of the certificates, if it serves TLS."""
        return None if self._certificates is None else self._certificates.server.authority.read_text(encoding="ascii")

    @property
    def pod_prefix(self) -> str:
        """Return none: this API server connects to loopback addresses, and so can whoever else is on this machine."""
        return ""

    def find_pods(self, place_of: PlaceOf) -> None:
        """Raises AssertionError: nothing is to be found elsewhere."""
        raise AssertionError("pods are where their addresses say")

    def kube(self, actor: str) -> HttpKube:
        """Return an HTTP client of this process' own, with the administrator's token and the actor's name: by a socket
        in the run's folder, which nobody else may enter. Each watch is a connection, and a handshake of TLS took both
        sides 4 ms: half a second of what a cluster needs to start."""
        kube = HttpKube(
            self.url,
            token=self._token or None,
            user_agent=f"mews-{actor}",
            headers=acting_as(actor),
            unix_socket=self._own_door,
        )
        self._kubes.append(kube)
        return kube

    def write_kubeconfig(self, path: Path) -> None:
        """With the token and the authority where they are asked for."""
        server = {"server": self.url}
        authority = self.authority()
        if authority is not None:
            server["certificate-authority-data"] = base64.b64encode(authority.encode()).decode()
        write_kubeconfig(path, server=server, user={"token": self._token} if self._token else {})

    def kubelet_address(self, host: str) -> tuple[str, int] | None:
        """Return None, since a node's kubelet has an address that pods alone reach."""
        return None

    def kubelet_place(self, host: str) -> tuple[str, int] | None:
        """Return where that host's kubelet is asked over TLS; None without it."""
        return None if self._kubelets is None else self._kubelets.address(host)

    def program(
        self,
        component: str,
        options: Mapping[str, Any],
        *,
        extenders: Sequence[Mapping[str, Any]] = (),
        kubeconfig: Path | None = None,
        callers: Callers | None = None,
    ) -> Program | None:
        """Return all of it is ours, but for a scheduler with extenders, and what is asked for by the program's name:
        those are Kubernetes' own where they are found."""
        own = self._folder / "admin.kubeconfig"
        asked_for = options.get("program")
        if component == "default-scheduler" and asked_for != "ours" and (extenders or asked_for == "kube-scheduler"):
            from mews.harness.clusters.programs.scheduler import kube_scheduler

            self.write_kubeconfig(own)
            return kube_scheduler(
                self._folder,
                kubeconfig or own,
                extenders=extenders,
                content_type=_JSON,
                release=self._release,
                options=options,
                callers=callers,
            )
        if component == "controller-manager" and asked_for == "kube-controller-manager":
            from mews.harness.clusters.programs.controllers import kube_controller_manager

            self.write_kubeconfig(own)
            form = f"--kube-api-content-type={_JSON}"
            return kube_controller_manager(
                self._folder,
                kubeconfig or own,
                run=options.get("run", ("*",)),
                flags=(form,),
                release=self._release,
                callers=callers,
            )
        return None

    async def close(self) -> None:
        """Close the clients and the servers."""
        if self._kubelets is not None:
            await self._kubelets.close()
        for kube in self._kubes:
            await kube.close()
        if self._server is not None:
            await self._server.stop()


def _advice(containers: bool, kind: Kind, obj: Object) -> list[str]:
    """Warnings of what is ignored on emulated clusters."""
    resource = kind.resource
    return ignored_warnings({**obj, "apiVersion": resource.api_version, "kind": resource.kind}, containers=containers)
