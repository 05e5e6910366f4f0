"""Which GPUs the driver holds for broken, and what it publishes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from mews.kube.dra.driver import WELL, HealthyDriver, unwell
from mews.kube.dra.gpu_driver import GpuDraDriver
from mews.kube.system.facility import ContainerExtras
from mews.kube.system.nvml import ListedGpu, NvmlDescription, NvmlReading, ReportedXid
from mews.systems.dra.driver import WatchedGpuDraDriver, driver_of
from mews.systems.dra.health import GpuConditions

ONE, TWO = ListedGpu(0, "GPU-1", "00:1", 0, 100), ListedGpu(1, "GPU-2", "00:2", 1, 100)
LOST = ListedGpu(1, "GPU-2", "00:2", 1, 100, lost=True)


def reading(*xids: tuple[str, int], gpus: Sequence[ListedGpu] = (ONE, TWO)) -> NvmlReading:
    return NvmlReading(tuple(gpus), tuple(ReportedXid(*each) for each in xids))


def tainted(*readings: NvmlReading) -> dict[str, list[str]]:
    """Device -> the values of its taints, after these readings."""
    health = GpuConditions()
    for each in readings:
        health.observe(each)
    return {name: [taint["value"] for taint in taints] for name, taints in health.taints().items()}


@pytest.mark.parametrize("xid", [48, 63, 74, 79, 94, 95])
def test_an_xid_that_no_program_causes_taints_its_gpu_for_good(xid: int) -> None:
    assert tainted(reading(("GPU-2", xid)), reading()) == {"gpu-1": [str(xid)]}


@pytest.mark.parametrize("xid", [13, 31, 43, 45, 68, 109])
def test_an_xid_that_a_program_causes_taints_nothing(xid: int) -> None:
    assert tainted(reading(("GPU-2", xid))) == {}
    assert tainted(reading(("GPU-2", 48)), reading(("GPU-2", xid))) == {"gpu-1": ["48"]}


def test_the_last_xid_is_the_one_that_is_shown() -> None:
    assert tainted(reading(("GPU-1", 48), ("GPU-1", 63)), reading(("GPU-1", 74))) == {"gpu-0": ["74"]}


def test_the_taint_is_the_one_of_nvidias_driver() -> None:
    health = GpuConditions()
    health.observe(reading(("GPU-1", 79)))
    assert health.taints() == {"gpu-0": [{"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}]}


def test_a_gpu_that_left_nvml_comes_back_whole() -> None:
    away = reading(gpus=[ONE])
    assert tainted(reading(("GPU-2", 48)), away) == {}
    assert tainted(reading(("GPU-2", 48)), away, reading()) == {}
    assert tainted(reading(("GPU-2", 48)), away, reading(("GPU-2", 74))) == {"gpu-1": ["74"]}


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (reading(), {"gpu-0": WELL, "gpu-1": WELL}),
        (reading(("GPU-1", 74)), {"gpu-0": unwell("XID 74"), "gpu-1": WELL}),
        (reading(gpus=[ONE, LOST]), {"gpu-0": WELL, "gpu-1": unwell("the GPU does not answer")}),
        (reading(("GPU-2", 79), gpus=[ONE, LOST]), {"gpu-0": WELL, "gpu-1": unwell("XID 79")}),
        (reading(gpus=[ONE]), {"gpu-0": WELL}),
    ],
)
def test_conditions_are_those_of_the_last_look(last: NvmlReading, expected: object) -> None:
    health = GpuConditions()
    health.observe(reading())
    health.observe(last)
    assert health.conditions() == expected


class Library:
    """An NVML whose readings are the test's."""

    def __init__(self, *readings: NvmlReading) -> None:
        self.readings = list(readings)
        self.closed = 0

    async def read(self) -> NvmlReading:
        return self.readings.pop(0)

    async def describe(self) -> NvmlDescription:
        return NvmlDescription("580.1")

    async def close(self) -> None:
        self.closed += 1


def test_the_driver_publishes_taints_and_keeps_the_library_open() -> None:
    async def main() -> None:
        library = Library(reading(), reading(("GPU-1", 48)), reading())
        driver = WatchedGpuDraDriver(library, ContainerExtras())
        assert [each.get("taints") for each in await driver.devices()] == [None, None]
        # An XID that comes while a claim is prepared is not lost.
        claim = {"metadata": {"name": "c"}}
        await driver.prepare(claim, [{"device": "gpu-1", "request": "r", "pool": "n"}])
        first, second = await driver.devices()
        assert [taint["value"] for taint in first["taints"]] == ["48"]
        assert "taints" not in second
        assert await driver.health() == {"gpu-0": unwell("XID 48"), "gpu-1": WELL}
        assert library.closed == 0

    asyncio.run(main())


def test_a_driver_that_does_not_watch_health_lets_the_library_go_and_reports_none() -> None:
    async def main() -> None:
        library = Library(reading(("GPU-1", 48)))
        driver = GpuDraDriver(library, ContainerExtras())
        assert [each.get("taints") for each in await driver.devices()] == [None, None]
        assert library.closed == 1
        assert not isinstance(driver, HealthyDriver)

    asyncio.run(main())


@pytest.mark.parametrize("health", [True, False])
def test_the_configuration_says_whether_health_is_watched(health: bool) -> None:
    assert isinstance(driver_of(Library(), ContainerExtras(), health=health), HealthyDriver) is health
