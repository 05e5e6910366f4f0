"""The driver of one node: its GPUs as NVML lists them, given to containers by their UUIDs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.dra.driver import DriverError, Result
from mews.kube.dra.port import ClaimReference
from mews.kube.system.facility import ContainerExtras
from mews.kube.system.nvml import NvmlError, NvmlPort
from mews.systems.dra.config import DRIVER
from mews.systems.dra.policy import device_name, devices_of, missing

VISIBLE = "NVIDIA_VISIBLE_DEVICES"


class GpuDraDriver:
    """A ``mews.kube.dra.driver.DraDriver``. The library is closed between two looks: an open one keeps its GPUs from
    being removed."""

    name = DRIVER

    def __init__(self, nvml: NvmlPort, extras: ContainerExtras) -> None:
        self._nvml = nvml
        self._extras = extras

    async def devices(self) -> Sequence[Mapping[str, Any]]:
        """All GPUs that answer."""
        try:
            reading, described = await self._nvml.read(), await self._nvml.describe()
        except NvmlError as failed:
            raise DriverError(str(failed)) from failed
        finally:
            await self._nvml.close()
        known = {each.uuid: each for each in described.gpus}
        return devices_of(reading.gpus, known, described.driver_version)

    async def prepare(self, claim: Object, results: Sequence[Result]) -> Mapping[str, Any]:
        """Each GPU's UUID, with what every container with a GPU needs.

        Raises DriverError for a GPU that is gone.
        """
        try:
            reading = await self._nvml.read()
        except NvmlError as failed:
            raise DriverError(str(failed)) from failed
        finally:
            await self._nvml.close()
        names = [str(result["device"]) for result in results]
        gone = missing(names, reading.gpus)
        if gone:
            raise DriverError(f"requested device is not allocatable: {', '.join(gone)}")
        uuids = {device_name(gpu): gpu.uuid for gpu in reading.gpus}
        env = self._extras.envs
        mounts = [
            {
                "hostPath": each.host_path,
                "containerPath": each.container_path,
                "options": ["ro"] if each.read_only else [],
            }
            for each in self._extras.mounts
        ]
        return {
            "containerEdits": {"env": [f"{name}={value}" for name, value in env.items()], "mounts": mounts},
            "devices": {name: {"env": [f"{VISIBLE}={uuids[name]}"]} for name in names},
            "joined": [VISIBLE],
        }

    async def unprepare(self, claim: ClaimReference) -> None:
        """Nothing of it is left on the GPU."""
