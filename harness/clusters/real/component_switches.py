"""Kills and starts the components of a real cluster: those in pods by their keepers, kubelets and the default scheduler
by whoever administers the cluster."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from mews.harness.clusters.real.admin import ClusterAdmin
from mews.harness.clusters.real.chassis import PodChassis
from mews.harness.clusters.real.component_pods import ComponentPods
from mews.harness.clusters.real.nodes import Nodes
from mews.harness.clusters.real.supervisor import KILL, START
from mews.harness.errors import RequirementError
from mews.harness.journal import Journal
from mews.harness.manifests.spec import StackSpec
from mews.harness.ports.cluster import DEFAULT_SCHEDULER
from mews.harness.scenario.errors import CapabilityError
from mews.kube.api.errors import ApiError, UnavailableError
from mews.names import must_be

_BELOW = ("kubelet/", DEFAULT_SCHEDULER)


class ComponentSwitches:
    """Switches components off and on. ``hosts`` and ``chassis_names`` are those of the
    scenario."""

    def __init__(
        self,
        pods: ComponentPods,
        admin: ClusterAdmin,
        *,
        chassis: PodChassis,
        chassis_names: Sequence[str],
        hosts: Sequence[str],
        stack: StackSpec,
        nodes: Nodes,
        journal: Journal,
    ) -> None:
        self._pods = pods
        self._admin = admin
        self._chassis = chassis
        self._chassis_names = chassis_names
        self._hosts = hosts
        self._stack = stack
        self._nodes = nodes
        self._journal = journal
        self._down: set[str] = set()
        self._killing: dict[str, asyncio.Task[None]] = {}

    def components(self) -> Sequence[str]:
        """Return what can be killed and started, or is at least there."""
        chassis = [f"chassis/{name}" for name in self._chassis_names]
        kubelets = [f"kubelet/{host}" for host in self._hosts]
        return tuple(dict.fromkeys((*kubelets, DEFAULT_SCHEDULER, *self._pods.software(), *chassis)))

    def cut(self, component: str) -> None:
        """Begin to kill it: from outside it cannot be stopped at the very line."""
        if component not in self._killing:
            self._killing[component] = asyncio.create_task(self._kill(component))

    async def kill(self, component: str) -> None:
        """Kill -9.

        Raises ValueError naming the components, CapabilityError for what nobody may kill here.
        """
        self._check_kept(component)
        if component not in self.components():
            raise ValueError(f"component {component!r}: {must_be(component, self.components())}")
        await (self._killing.pop(component, None) or self._kill(component))

    async def _kill(self, component: str) -> None:
        if component in self._down:
            return
        self._down.add(component)
        if self._is_below(component):
            await self._admin.kill(component)
        elif component.startswith("chassis/"):
            self._only_chassis(component)
            self._chassis.killed()
            await self._pods.signal("chassis", KILL)
        else:
            await self._pods.signal(component, KILL)
        self._journal.write("component", component, "killed")

    async def start(self, component: str) -> None:
        """Start a killed component anew; one that lives lives on.

        Raises ValueError naming the components, CapabilityError for what nobody may start here.
        """
        if component not in self.components():
            raise ValueError(f"component {component!r}: {must_be(component, self.components())}")
        if component not in self._down:
            return
        self._down.discard(component)
        if self._is_below(component):
            await self._admin.start(component)
            if component.startswith("kubelet/"):
                await self._nodes.knows_pods(component.partition("/")[2])
        elif component.startswith("chassis/"):
            await self._pods.signal("chassis", START)
            await self._chassis.started()
        else:
            await self._pods.signal(component, START)
        self._journal.write("component", component, "started")

    def _is_below(self, component: str) -> bool:
        return component.startswith(_BELOW) and component not in self._pods.pods

    def _check_kept(self, component: str) -> None:
        if component.partition("/")[0] in self._stack.documents:
            raise CapabilityError(
                f"needs to kill {component}: a manifest brings it, in which Mews' keeper is not process 1"
            )
        if not self._pods.is_kept(component):
            image = self._stack.programs[component.partition("/")[0]].image
            raise CapabilityError(
                f"needs to kill {component}: in {image} Mews' keeper is not process 1, which could do it"
            )

    def _only_chassis(self, component: str) -> None:
        if len(self._chassis_names) > 1:
            self._down.discard(component)
            raise CapabilityError(f"{component} alone cannot be killed: one process serves all chassis here")

    async def close(self) -> None:
        """Start what is down, as far as that can be; what is being killed is given up."""
        for name in sorted(self._down):
            with contextlib.suppress(CapabilityError, RequirementError, ApiError, UnavailableError):
                await self.start(name)
        for task in self._killing.values():
            task.cancel()
        await asyncio.gather(*self._killing.values(), return_exceptions=True)
