"""The container engine of one cluster of emulated nodes: connected to once, used by the kubelet of each node."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mews.harness.errors import RequirementError
from mews.harness.leftovers import ENGINE_FILE, is_abandoned
from mews.kube.client.port import KubeApi
from mews.kube.emulated.kubelet.engine.client import ContainerEngine, remove_containers
from mews.kube.emulated.kubelet.engine.runtime import EngineRuntime
from mews.kube.emulated.kubelet.errors import EngineUnavailableError
from mews.kube.emulated.kubelet.in_cluster import InCluster
from mews.kube.emulated.kubelet.oci.node_driver import NodeDriver
from mews.kube.emulated.kubelet.runtime import EnginePort


class ServedEngine:
    """Its containers bear the name of the cluster's runtime folder, and go with it."""

    def __init__(self, engine: ContainerEngine, scratch: Path, *, host_allowed: bool) -> None:
        self._engine = engine
        self._host_allowed = host_allowed
        self._scratch = scratch
        self._in_cluster: InCluster | None = None
        self._kube: Callable[[], KubeApi] | None = None
        self._names: Path | None = None
        self._volumes: Path | None = None
        self._speed = 1.0

    @classmethod
    def connect(cls, scratch: Path, wanted: str, *, host_allowed: bool = False) -> ServedEngine:
        """Blocks until the engine has answered and what killed runs left with it is removed. ``wanted`` says what asks
        for it; ``host_allowed``: pods may ask for access to this machine.

        Raises RequirementError.
        """
        try:
            remove_containers(lambda owner: is_abandoned(Path(owner)))
            engine = ContainerEngine.connect(str(scratch))
        except EngineUnavailableError as error:
            raise RequirementError(f"{wanted}: container: {error}") from error
        (scratch / ENGINE_FILE).touch()
        return cls(engine, scratch, host_allowed=host_allowed)

    def serve(
        self, in_cluster: InCluster, kube: Callable[[], KubeApi], *, names: Path, volumes: Path, speed: float
    ) -> None:
        """What containers find of their cluster; ``volumes`` has the folders of its volumes."""
        self._in_cluster, self._kube, self._names, self._volumes = in_cluster, kube, names, volumes
        self._speed = speed

    def port(self, host: str, root: Path) -> EnginePort:
        """Return it for the kubelet of a host whose files lie below ``root``."""
        assert self._kube is not None, "the control plane is there before kubelets"
        runtime = EngineRuntime(
            self._engine,
            NodeDriver(root),
            self._scratch / "engine" / host,
            kube=self._kube,
            in_cluster=self._in_cluster,
            names=self._names,
            host_allowed=self._host_allowed,
            provisioned=self._volumes,
            speed=self._speed,
        )
        return EnginePort(runtime, self._engine)

    async def close(self) -> None:
        """Remove every container that is left."""
        await self._engine.close()
