"""The driver of one node: its GPUs as NVML lists them, given to containers by their UUIDs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.dra.driver import DriverError, Result
from mews.kube.dra.gpus import DRIVER, VISIBLE, devices_of, uuids_of
from mews.kube.dra.port import ClaimReference
from mews.kube.system.facility import ContainerExtras
from mews.kube.system.nvml import NvmlError, NvmlPort, NvmlReading


class GpuDraDriver:
    """A ``mews.kube.dra.driver.DraDriver``. The library is closed between two looks: an open one keeps its GPUs from
    being removed."""

    name = DRIVER

    def __init__(self, nvml: NvmlPort, extras: ContainerExtras) -> None:
        self._nvml = nvml
        self._extras = extras

    async def devices(self) -> Sequence[Mapping[str, Any]]:
        """Return all GPUs that answer."""
        try:
            reading, described = await self._read(), await self._nvml.describe()
        except NvmlError as failed:
            raise DriverError(str(failed)) from failed
        finally:
            await self._let_go()
        self._listed(reading)
        known = {each.uuid: each for each in described.gpus}
        return devices_of(reading.gpus, known, described.driver_version)

    async def _read(self) -> NvmlReading:
        return await self._nvml.read()

    async def _let_go(self) -> None:
        await self._nvml.close()

    def _listed(self, reading: NvmlReading) -> None:
        """What NVML lists, those GPUs too that are not offered."""

    async def prepare(self, claim: Object, results: Sequence[Result]) -> Mapping[str, Any]:
        """Return the edits by GPU UUID, and those that every container with a GPU needs.

        Raises DriverError for a GPU that is gone.
        """
        try:
            reading = await self._read()
        except NvmlError as failed:
            raise DriverError(str(failed)) from failed
        finally:
            await self._let_go()
        names = [str(result["device"]) for result in results]
        uuids = self._uuids(results, reading)
        gone = [name for name in names if name not in uuids]
        if gone:
            raise DriverError(f"requested device is not allocatable: {', '.join(gone)}")
        env = self._extras.envs
        mounts = [
            {
                "hostPath": each.host_path,
                "containerPath": each.container_path,
                "options": ["ro" if each.read_only else "rw", "nosuid", "nodev", "rbind"],  # runc binds where told so
            }
            for each in self._extras.mounts
        ]
        return {
            "containerEdits": {"env": [f"{name}={value}" for name, value in env.items()], "mounts": mounts},
            "devices": {name: {"env": [f"{VISIBLE}={uuids[name]}"]} for name in names},
            "joined": [VISIBLE],
        }

    def _uuids(self, results: Sequence[Result], reading: NvmlReading) -> Mapping[str, str]:
        """Device -> UUID, of those that are there."""
        return uuids_of(reading.gpus)

    async def unprepare(self, claim: ClaimReference) -> None:
        """Nothing of it is left on the GPU."""
