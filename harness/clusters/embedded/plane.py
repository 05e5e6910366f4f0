"""Our own control plane in wall-clock time: the store behind its HTTP face."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mews.harness.clusters.embedded.kubelets import KubeletDirectory
from mews.harness.clusters.embedded.server import ApiServer
from mews.harness.clusters.embedded.store import Store
from mews.harness.clusters.plane import Program, write_kubeconfig
from mews.kube.client.http import HttpKube


class EmbeddedPlane:
    """Plane of the embedded cluster: no credentials, on loopback."""

    name = "embedded"

    def __init__(self, folder: Path, now: Callable[[], float], rng: random.Random) -> None:
        self._folder = folder
        self._store = Store(now, rng)
        self._server: ApiServer | None = None
        self._kubes: list[HttpKube] = []

    @property
    def url(self) -> str:
        """Where the API server is."""
        if self._server is None:
            raise RuntimeError("the API server does not run")
        return self._server.url

    async def open(self, kubelets: KubeletDirectory, hosts: Sequence[str]) -> None:
        """Serve on a free port."""
        self._server = ApiServer(self._store, kubelets=kubelets)
        await self._server.start("127.0.0.1", 0)

    def kube(self, actor: str) -> HttpKube:
        """An HTTP client."""
        kube = HttpKube(self.url, user_agent=f"mews-{actor}")
        self._kubes.append(kube)
        return kube

    def write_kubeconfig(self, path: Path) -> None:
        """It names no user's credentials: none are asked for."""
        write_kubeconfig(path, server={"server": self.url}, user={})

    def kubelet_address(self, host: str) -> tuple[str, int] | None:
        """Logs and commands are asked of the kubelets in process."""
        return None

    def program(
        self, component: str, options: Mapping[str, Any], *, extenders: Sequence[Mapping[str, Any]] = ()
    ) -> Program | None:
        """All of it is ours, but for a scheduler with extenders: that is kube-scheduler where it is found."""
        if component != "default-scheduler" or not extenders:
            return None
        from mews.harness.clusters.control_plane.scheduler import kube_scheduler

        kubeconfig = self._folder / "admin.kubeconfig"
        self.write_kubeconfig(kubeconfig)
        return kube_scheduler(self._folder, kubeconfig, extenders=extenders, content_type="application/json")

    async def close(self) -> None:
        """Close the clients and the server."""
        for kube in self._kubes:
            await kube.close()
        if self._server is not None:
            await self._server.stop()
