"""Somebody's cluster: nothing below its API is ours to kill or to configure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.harness.clusters.real.target import DeploymentTarget
from mews.harness.scenario.errors import CapabilityError
from mews.kube.runtimehook.port import HookPolicy


class KubeconfigAdmin:
    """The ClusterAdmin of ``--cluster kubeconfig``: refuses whatever would change the user's own cluster."""

    name = "kubeconfig"

    def __init__(self, target: DeploymentTarget) -> None:
        self.target = target

    async def kill(self, component: str) -> None:
        """Raises CapabilityError: what is not ours is not killed."""
        raise CapabilityError(f"needs to kill {component}: it belongs to the cluster")

    async def start(self, component: str) -> None:
        """Raises CapabilityError."""
        raise CapabilityError(f"needs to start {component}: it belongs to the cluster")

    async def restore(self) -> None:
        """Nothing to do: nobody has changed it."""

    async def extend(self, settings: Sequence[Mapping[str, Any]]) -> None:
        """Raises CapabilityError for any: its scheduler belongs to the cluster."""
        if settings:
            raise CapabilityError("needs to give the default scheduler extenders: it belongs to the cluster")

    async def hook(self, policies: Mapping[str, HookPolicy]) -> None:
        """Raises CapabilityError for any: its nodes belong to the cluster."""
        if policies:
            raise CapabilityError("needs a proxy before the nodes' container runtimes: they belong to the cluster")

    async def logs(self) -> Mapping[str, str]:
        """Return no logs: the nodes are not ours to look into."""
        return {}
