"""What the systems of a cluster measure of themselves, over all incarnations of their components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.harness.clusters.embedded.late_measures import LateMeasures
from mews.harness.clusters.exposition import merged
from mews.harness.clusters.ports import ServicesPort
from mews.kube.system.configured import ConfiguredSystem
from mews.kube.system.system_parts import ExposedMeasures
from mews.names import must_be


class SystemMeasures:
    """Keeps what the systems of one cluster measure of themselves. ``kept``: system -> what its components measure
    themselves with.

    ``monitored``: the systems measure themselves for Prometheus, and nothing is known of it to ``measured``.
    """

    def __init__(self, systems: Sequence[ConfiguredSystem], services: ServicesPort, *, monitored: bool) -> None:
        self._systems = systems
        self._services = services
        self._exposed: dict[str, ExposedMeasures] = {
            each.system.name: LateMeasures(each.system.measuring.monitored)
            for each in systems
            if monitored and each.system.measuring.monitored
        }
        self.kept: Mapping[str, Any] = {
            each.system.name: self._exposed.get(each.system.name) or each.system.measuring.measures()
            for each in systems
        }

    def measured(self) -> dict[str, Any]:
        """Return what they measured so far, by the names of ``SystemMeasuring.measured``."""
        found: dict[str, Any] = {}
        for each in [each for each in self._systems if each.system.name not in self._exposed]:
            found |= each.system.measuring.measured(self.kept[each.system.name])
        return found

    def exposing(self) -> Sequence[str]:
        """Return the systems whose measures ``exposition`` has."""
        served = [each.system.name for each in self._systems if each.system.measuring.service]
        return (*self._exposed, *served)

    async def exposition(self, system: str) -> bytes:
        """Return what the components of a system measure of themselves, in Prometheus' text form.

        Raises ValueError for a system that exposes nothing, ConnectionError where what would is down.
        """
        if system in self._exposed:
            return self._exposed[system].exposition()
        service = {each.system.name: each.system.measuring.service for each in self._systems}.get(system)
        if not service:
            raise ValueError(f"metrics of {system!r}: {must_be(system, self.exposing())}")
        replies = await self._services.ask_all(service, "/metrics")
        if any(reply.status != 200 for reply in replies):
            raise ConnectionError(
                f"metrics of {system!r}: {service} has none: the component's replacement serves no /metrics"
            )
        return merged([reply.body.decode() for reply in replies]).encode()
