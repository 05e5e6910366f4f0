"""The DRA driver of one node: the devices of its own, and those that the pool has put on its ports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.dra.driver import DriverError, Result
from mews.kube.dra.gpu_driver import GpuDraDriver
from mews.kube.dra.gpus import uuids_of
from mews.kube.system.facility import ContainerExtras
from mews.kube.system.nvml import NvmlPort, NvmlReading
from mews.systems.pooldra.names import HandOver, device_name


class PoolGpuDriver(GpuDraDriver):
    """A ``mews.kube.dra.driver.DraDriver``.

    With ``reallocate`` the node's slice has all its GPUs, otherwise those alone that are of no pool. A device of a pool
    is prepared by its name, which is its UUID. ``looked`` is called when another set of GPUs is shown.
    """

    def __init__(
        self, nvml: NvmlPort, extras: ContainerExtras, node: str, hand_over: HandOver, *, looked: Callable[[], None]
    ) -> None:
        super().__init__(nvml, extras)
        self._node = node
        self._hand_over = hand_over
        self._looked = looked
        self.pool: frozenset[str] | None = None
        """The UUIDs of the pools' devices; None until the pool driver has said which they are."""
        self.leaving: Collection[str] = frozenset()
        """UUIDs of those that the host is to let go of."""
        self.shown: Mapping[str, str] = {}
        """UUID -> the node's name of the device, of those that NVML lists and that are whole."""
        self.divided: frozenset[str] = frozenset()
        """UUIDs of those that are in MIG mode."""
        self.nvml_lock = asyncio.Lock()
        """Whoever has NVML open keeps every GPU of the host."""

    def watch(self, changed: Callable[[], None]) -> None:
        """Have ``changed`` called when GPUs come or go, where the library reports it."""
        self._nvml.watch(changed)

    async def devices(self) -> Sequence[Mapping[str, Any]]:
        """Return what the node's own slice has. Raises DriverError."""
        before = self.shown, self.divided
        async with self.nvml_lock:
            devices = await super().devices()
        self.shown = {str(each["attributes"]["uuid"]["string"]): str(each["name"]) for each in devices}
        if (self.shown, self.divided) != before:
            self._looked()
        hidden = self._hidden()
        return [each for each in devices if str(each["attributes"]["uuid"]["string"]) not in hidden]

    def _listed(self, reading: NvmlReading) -> None:
        self.divided = frozenset(gpu.uuid for gpu in reading.gpus if gpu.divided)

    def _hidden(self) -> Collection[str]:
        if self._hand_over is HandOver.REALLOCATE:
            return self.leaving
        return self.shown if self.pool is None else self.pool

    async def prepare(self, claim: Object, results: Sequence[Result]) -> Mapping[str, Any]:
        """Return them as every GPU driver does. Raises DriverError, also for a device that is being let go of."""
        async with self.nvml_lock:
            edits = await super().prepare(claim, results)
        # Nothing is awaited between here and the moment at which the claim counts as prepared.
        going = [name for name in edits["devices"] if self._uuid_of(name) in self.leaving]
        if going:
            raise DriverError(f"requested device is being detached: {', '.join(going)}")
        return edits

    def _uuid_of(self, name: str) -> str:
        known = {**{own: uuid for uuid, own in self.shown.items()}, **{device_name(uuid): uuid for uuid in self.shown}}
        return known.get(name, "")

    def _uuids(self, results: Sequence[Result], reading: NvmlReading) -> Mapping[str, str]:
        own = uuids_of(reading.gpus)
        of_pools = {str(each["device"]) for each in results if each["pool"] != self._node}
        pooled = {device_name(uuid): uuid for uuid in own.values()}
        return {**own, **{name: uuid for name, uuid in pooled.items() if name in of_pools}}
