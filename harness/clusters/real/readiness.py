"""When the nodes of a real cluster are as a scenario may begin: told so by device managers of this run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Set
from typing import Any

from mews.harness.clusters.real.rollout import Notify
from mews.harness.errors import RequirementError
from mews.harness.journal import Journal
from mews.harness.manifests.spec import StackSpec
from mews.kube.api.errors import UnavailableError
from mews.kube.api.objects import Object, condition_of, name_of
from mews.kube.api.quantities import whole
from mews.kube.api.resources import NODES
from mews.kube.client.port import KubeApi
from mews.kube.clock import rest
from mews.kube.runtimehook.port import HOOKS_SERVED
from mews.kube.system.kinds import kind_established

_READY_S = 90.0
_LOOK_S = 0.2


class Readiness:
    """Waits for the nodes that are hosts (node -> host), from the moment on in which this is made.

    ``managed`` are the hosts with a device manager; ``others``: it is the user's, of which only the devices that it
    announces are seen. On the hosts ``hooked`` an agent answers runtime hooks, as ``records`` show.
    """

    def __init__(
        self,
        kube: KubeApi,
        journal: Journal,
        records: Journal,
        hooked: Collection[str] = (),
        *,
        hosts: Mapping[str, str],
        managed: Set[str],
        others: bool,
    ) -> None:
        self._kube = kube
        self._journal = journal
        self._hosts = hosts
        self._managed = managed
        self._others = others
        self._begun = len(journal)
        self._records, self._hooked, self._recorded = records, frozenset(() if others else hooked), len(records)

    async def reached(
        self, wanted: Mapping[str, Mapping[str, int]], check: Callable[[], Awaitable[None]], notify: Notify
    ) -> None:
        """Wait until each node is Ready and offers that much of each resource; ``check`` may see earlier why not.

        Raises RequirementError naming what is late.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _READY_S
        while True:
            try:
                nodes = [node for node in (await self._kube.list(NODES)).items if name_of(node) in wanted]
                late = [text for node in nodes for text in self._late(node, wanted[name_of(node)])]
            except UnavailableError as error:
                late = [f"the API server: {error}"]
            if not late:
                return
            await check()
            notify(f"waiting for {late[0]}")
            if loop.time() > deadline:
                raise RequirementError(f"not ready within {_READY_S:g} s: {', '.join(late)}")
            await rest(_LOOK_S)

    def _late(self, node: Object, wanted: Mapping[str, int]) -> list[str]:
        """``wanted``: resource -> how much of it the node offers when it is as it should be."""
        name = name_of(node)
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        if (condition_of(node, "Ready") or {}).get("status") != "True":
            return [f"{name} is not Ready"]
        if self._hosts[name] in self._managed and not self._announced_enough(self._hosts[name], sum(wanted.values())):
            return [f"{name} to hear of its device manager"]
        if self._hosts[name] in self._hooked and not self._answers_hooks(self._hosts[name]):
            return [f"{name} to answer runtime hooks"]
        there = {resource: whole(allocatable.get(resource, 0)) for resource in wanted}
        return [
            f"{name} to offer {count} {resource}, not {there[resource]}"
            for resource, count in wanted.items()
            if there[resource] != count
        ]

    def _answers_hooks(self, host: str) -> bool:
        lines = self._records.find("component", HOOKS_SERVED, since=self._recorded)
        return any(line.actor.endswith(f"/{host}") for line in lines)

    def _announced_enough(self, host: str, count: int) -> bool:
        if self._others and count == 0:
            return True
        lines = self._journal.find("kubelet", "devices" if self._others else "registered", since=self._begun)
        return any(line.actor == f"kubelet/{host}" for line in lines)


def announced_devices(
    stack: StackSpec, nodes: Mapping[str, str], tables: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> dict[str, dict[str, int]]:
    """Node -> resource -> how much of it the chassis have attached, as their tables say, and a component announces.
    ``nodes``: host -> node."""
    pooled = [each.pooled for each in stack.systems if each.components and each.pooled is not None]
    managed = stack.managed(nodes)
    wanted = {node: {each.resource: 0 for each in pooled} for node in nodes.values()}
    for row in (row for table in tables.values() for row in table.values() if row["host"] in managed):
        node, kind = nodes[row["host"]], row["kind"]
        for each in (each for each in pooled if each.device_kind == kind and node not in each.unannounced):
            wanted[node][each.resource] += 1
    return wanted


async def kinds_served(kube: KubeApi, stack: StackSpec) -> None:
    """Wait until the API server serves the kinds of all systems of which something runs."""
    for installed in stack.systems:
        for kind in installed.system.kinds() if installed.components else ():
            await kind_established(kube, name_of(kind))
