"""What runs the containers of each emulated node, and what is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mews.harness.clusters.ports import ClusterPorts, ProcessesPort
from mews.harness.ports.cluster import DEVICE_ENV
from mews.kube.emulated.kubelet.container_hooks import ContainerHooks
from mews.kube.emulated.kubelet.runtime import EnginePort, Runtime
from mews.kube.emulated.kubelet.users import ReportingRuntime
from mews.kube.system.configured import ConfiguredSystem


class NodeRuntimes:
    """Makes the container runtimes of one cluster's nodes; ``folder`` is the scenario's."""

    def __init__(self, ports: ClusterPorts, systems: Sequence[ConfiguredSystem], folder: Path | None) -> None:
        self._ports = ports
        self._systems = systems
        self._folder = folder

    def prepared(self, processes: ProcessesPort, host: str) -> Runtime:
        """Return what runs containers as processes on that host, from images that are laid out where it has a driver
        root."""
        reporting, root = self.reporting(processes.runtime, host), self._ports.hosts.driver_root(host)
        if root is None:
            return reporting
        from mews.kube.emulated.kubelet.oci import node_driver, runtime

        return runtime.OciRuntime(reporting, node_driver.NodeDriver(root), processes.scratch / "containers" / host)

    def engine(self, processes: ProcessesPort, host: str) -> EnginePort | None:
        """Return what runs real images on that host, None where no image asks for it."""
        found, root = processes.engine(host), self._ports.hosts.driver_root(host)
        if found is None:
            return None
        from mews.kube.emulated.kubelet.oci import node_driver, runtime

        node = None if root is None else node_driver.NodeDriver(root)
        return EnginePort(runtime.EditingRuntime(self.reporting(found.runtime, host), node), found.store)

    def reporting(self, runtime: Runtime, host: str) -> Runtime:
        """Return that runtime, which tells the host which devices its containers use."""
        pooled = [each.pooled.device_env for each in self._systems if each.pooled is not None]
        envs = tuple(dict.fromkeys(pooled)) or (DEVICE_ENV,)
        return ReportingRuntime(runtime, self._ports.hosts.users(host), envs, self._folder)

    def hooks(self, host: str) -> ContainerHooks | None:
        """Return it in the place of a CRI proxy, where a system of the stack answers it."""
        for each in self._systems:
            policy = each.system.runtime_hooks(each.configuration).get(host)
            if policy is not None:
                return ContainerHooks(self._ports.kubelets.hooks(host), policy)
        return None
