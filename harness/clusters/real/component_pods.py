"""The pods of a real cluster's components, and the keepers in them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from mews.harness.clusters.real.rollout import Rollout
from mews.harness.clusters.real.signals import signal
from mews.harness.errors import RequirementError
from mews.harness.manifests.nodes import NODE_AGENT
from mews.harness.manifests.replacements import extender_name
from mews.harness.manifests.spec import StackSpec
from mews.harness.ports.cluster import DEFAULT_SCHEDULER
from mews.kube.api.objects import name_of, node_name_of
from mews.kube.client.port import KubeApi


class ComponentPods:
    """``pods``: component -> its pod; ``agents``: host -> the pod with its agent. ``check`` may say better why a keeper
    was not reached."""

    def __init__(
        self,
        stack: StackSpec,
        hosts: Mapping[str, str],
        rollout: Rollout,
        *,
        kube: KubeApi,
        namespace: str,
        check: Callable[[], Awaitable[None]],
    ) -> None:
        self.pods: dict[str, str] = {}
        self.agents: dict[str, str] = {}
        self._stack = stack
        self._hosts = hosts
        self._rollout = rollout
        self._kube = kube
        self._namespace = namespace
        self._check = check

    async def find(self) -> None:
        """Look for them.

        Raises RequirementError for a node that has no agent.
        """
        stack, hosts = self._stack, {node: host for host, node in self._hosts.items()}
        extenders = {extender_name(number): f"extender/{number + 1}" for number in range(len(stack.extenders))}
        single = [name for name, component in stack.components() if not component.per_node]
        alone = {name: name for name in ("chassis", *single, DEFAULT_SCHEDULER)}
        for component, name in {**alone, **extenders}.items():
            for pod in await self._rollout.pods(component):
                self.pods[name] = name_of(pod)
        for component in (*stack.per_node(), NODE_AGENT):
            for pod in await self._rollout.pods(component):
                host = hosts.get(node_name_of(pod))
                if host is None:
                    continue
                if component != NODE_AGENT:
                    self.pods[f"{component}/{host}"] = name_of(pod)
                if any(each["name"] == "agent" for each in pod["spec"]["containers"]):
                    self.agents[host] = name_of(pod)
        self._check_agents()

    def _check_agents(self) -> None:
        component, apart = self._stack.node_component(), self._stack.nodes_apart()
        for host, node in self._hosts.items():
            if (node in apart or host in self._stack.managed(self._hosts)) and host not in self.agents:
                raise RequirementError(
                    f"{NODE_AGENT if node in apart else component}/{host}: no pod runs on its node {node}"
                )

    def software(self) -> list[str]:
        """Return the components that are no chassis."""
        return [name for name in self.pods if not name.startswith("chassis")]

    def kept(self) -> list[str]:
        """Return those under a keeper."""
        return [name for name in self.software() if self.is_kept(name)]

    def is_kept(self, name: str) -> bool:
        """Return whether a component runs under a keeper, which can kill and start it."""
        program = self._stack.programs.get(name.partition("/")[0])
        return program is None or program.kept

    async def signal(self, component: str, command: Sequence[str]) -> None:
        """Run one of the commands of a component's keeper.

        Raises RequirementError where it fails.
        """
        try:
            await signal(self._kube, self._namespace, self.pods[component], component, command)
        except RequirementError:
            await self._check()
            raise
