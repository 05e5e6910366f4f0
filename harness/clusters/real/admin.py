"""What can be done below a cluster's API: where a kind cluster of our own and somebody's cluster differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mews.harness.clusters.real.target import DeploymentTarget
from mews.kube.runtimehook.port import HookPolicy


class ClusterAdmin(Protocol):
    """Administers the programs below a cluster's API: its kubelets and its default scheduler."""

    name: str
    target: DeploymentTarget

    async def kill(self, component: str) -> None:
        """Kill -9 ``kubelet/<host>`` or ``default-scheduler``, and keep it down.

        Raises CapabilityError where nobody may.
        """
        ...

    async def start(self, component: str) -> None:
        """Start it again.

        Raises CapabilityError where nobody may.
        """
        ...

    async def restore(self) -> None:
        """Let the default scheduler be again what it was before any scenario: not killed, without extenders. Soon."""
        ...

    async def extend(self, settings: Sequence[Mapping[str, Any]]) -> None:
        """Give a restored default scheduler extenders (entries of KubeSchedulerConfiguration), and wait until it has
        them; none: until it is restored.

        Raises RequirementError, CapabilityError where nobody may.
        """
        ...

    async def hook(self, policies: Mapping[str, HookPolicy]) -> None:
        """Have the container runtimes of those hosts ask an agent of their node about containers, and no others.

        Raises RequirementError, CapabilityError where nobody may.
        """
        ...

    async def logs(self) -> Mapping[str, str]:
        """Logs that the API does not have, by file name: the kubelets'."""
        ...
