"""A host that is switched off takes all that runs on it along: its kubelet, its containers, its node's components.

Source: contract kubelet.md sections 8 (node reboot) and 11 (a kubelet that stops). The journal's lines of layer host
say when; that is so in virtual time and where hosts are a process of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from mews.harness.clusters.unit import Unit
from mews.harness.journal import Journal, Line
from mews.kube.emulated.kubelet.machine import Machine

OFF, ON = "powered-off", "powered-on"


class PoweredHosts:
    """Follows the hosts' power. ``units``: all components, those of a host as ``NAME/HOST``, its kubelet first."""

    def __init__(self, journal: Journal, machines: Mapping[str, Machine], units: Mapping[str, Unit]) -> None:
        self._machines = machines
        self._units = units
        self._is_off: set[str] = set()
        self._work: dict[str, asyncio.Task[None]] = {}
        self._unlisten = journal.listen(self._on_line)

    def is_off(self, component: str) -> bool:
        """Return whether a component is of a host that is switched off."""
        return component.partition("/")[2] in self._is_off

    def check_on(self, component: str) -> None:
        """Raise ValueError for a component of a host that is switched off."""
        if self.is_off(component):
            raise ValueError(f"component {component!r}: its host is switched off")

    def _on_line(self, line: Line) -> None:
        host = line.actor.partition("/")[2]
        if line.layer != "host" or line.event not in (OFF, ON) or host not in self._machines:
            return
        if line.event == OFF:
            self._is_off.add(host)
            for unit in self._of(host):
                unit.cut()  # now: what is on its way out is lost
        else:
            self._is_off.discard(host)
        following = self._follow(host, line.event == ON, self._work.get(host))
        self._work[host] = asyncio.get_running_loop().create_task(following)

    def _of(self, host: str) -> Sequence[Unit]:
        return [unit for name, unit in self._units.items() if name.partition("/")[2] == host]

    async def _follow(self, host: str, on: bool, before: asyncio.Task[None] | None) -> None:
        """Bring the host's programs where its power went; one switch after the other, however fast they come."""
        if before is not None:
            await before
        if not on:
            for unit in self._of(host):
                await unit.kill()
            await self._machines[host].reboot()
        elif host not in self._is_off:  # it may be off again already
            for unit in self._of(host):
                unit.start()

    async def close(self) -> None:
        """Listen no more; what has begun is given up."""
        self._unlisten()
        for task in self._work.values():
            task.cancel()
        await asyncio.gather(*self._work.values(), return_exceptions=True)
