"""The hardware of a cluster as processes that can be killed: each chassis, and in wall-clock time that of the hosts."""

from __future__ import annotations

from collections.abc import Sequence

from mews.harness.clusters.ports import ClusterPorts
from mews.harness.journal import Journal

HOSTS = "hosts"
"""The component that serves the hosts in wall-clock time."""


class HardwareProcesses:
    """Kills and starts them by the names of their components."""

    def __init__(self, chassis: Sequence[str], ports: ClusterPorts, journal: Journal) -> None:
        self._chassis = [f"chassis/{name}" for name in chassis]
        self._ports = ports
        self._journal = journal
        self._dead: set[str] = set()

    def names(self) -> Sequence[str]:
        """Return the components that are there."""
        return (*self._chassis, *(() if self._ports.host_server is None else (HOSTS,)))

    async def kill(self, component: str) -> None:
        """Kill -9.

        Raises ValueError for hosts that are no process.
        """
        if component != HOSTS:
            self._dead.add(component)
            await self._ports.chassis.kill(component.removeprefix("chassis/"))
        elif self._ports.host_server is None:
            raise ValueError("hosts: do not run as processes in virtual time")
        else:
            await self._ports.host_server.kill()
        self._journal.write("component", component, "killed")

    async def start(self, component: str) -> None:
        """Start a killed one anew; a chassis that runs stays."""
        if component == HOSTS:
            if self._ports.host_server is not None:
                await self._ports.host_server.start()
        elif component in self._dead:
            self._dead.discard(component)
            await self._ports.chassis.start(component.removeprefix("chassis/"))
        else:
            return
        self._journal.write("component", component, "started")
