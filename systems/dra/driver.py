"""The driver of one node that also watches the XIDs of its GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.dra.driver import Condition
from mews.kube.dra.gpu_driver import GpuDraDriver
from mews.kube.system.facility import ContainerExtras
from mews.kube.system.nvml import NvmlPort, NvmlReading
from mews.systems.dra.health import GpuConditions


class WatchedGpuDraDriver(GpuDraDriver):
    """Also a ``HealthyDriver``. The library stays open, as it reports only those XIDs that come while it is."""

    def __init__(self, nvml: NvmlPort, extras: ContainerExtras) -> None:
        super().__init__(nvml, extras)
        self._health = GpuConditions()

    async def devices(self) -> Sequence[Mapping[str, Any]]:
        """Return those that answer, with the taints of the broken ones.

        Raises DriverError.
        """
        devices = await super().devices()
        taints = self._health.taints()
        return [{**each, "taints": taints[each["name"]]} if each["name"] in taints else each for each in devices]

    async def health(self) -> Mapping[str, Condition]:
        """Return how the GPUs were at the last look."""
        return self._health.conditions()

    async def _read(self) -> NvmlReading:
        reading = await super()._read()
        self._health.observe(reading)
        return reading

    async def _let_go(self) -> None:
        """It stays open."""


def driver_of(nvml: NvmlPort, extras: ContainerExtras, *, health: bool) -> GpuDraDriver:
    """Return the driver of one node; with ``health`` it watches its GPUs (``DraConfig``)."""
    return (WatchedGpuDraDriver if health else GpuDraDriver)(nvml, extras)
