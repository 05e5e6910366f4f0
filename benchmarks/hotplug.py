"""Hot-plug with profile instant: from the chassis' attach to NVML seeing the GPU, and to the node offering it."""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path

from benchmarks.common import progress, report
from mews.harness.catalogue.files import shipped
from mews.harness.clusters import open_cluster
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import parse_scenario
from mews.kube.api.resources import NODES

ROUNDS = 3
SCENARIO = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: hotplug}
hardware: demo
"""


def gpu_count(state: Path) -> int:
    """GPUs in an NVML state file, which is replaced whole."""
    return state.read_bytes().count(b"\ngpu\n")


async def measure() -> tuple[list[float], list[float], list[float]]:
    """Return seconds from attach to visible, to allocatable; and of a bare control request."""
    scenario = parse_scenario(SCENARIO, shipped("hardware", "demo").parent / "hotplug.yaml")
    cluster = await open_cluster(scenario, RunOptions(time="wall"), seed=1)
    try:
        visible, offered, bare = [], [], []
        state = Path(cluster.ready()["nodes"]["host-1"]["env"]["LD_LIBRARY_PATH"]) / "nvml.state"
        for _ in range(ROUNDS):
            await cluster.hardware.edit("A", "000500", None)
            await _until(lambda: gpu_count(state) == 4)
            await _allocatable(cluster, "4")
            begin = time.perf_counter()
            await cluster.hardware.edit("A", "000500", "1")
            bare.append(time.perf_counter() - begin)
            await _until(lambda: gpu_count(state) == 5)
            visible.append(time.perf_counter() - begin)
            await _allocatable(cluster, "5")
            offered.append(time.perf_counter() - begin)
        return visible, offered, bare
    finally:
        await cluster.close()


async def _until(condition) -> None:  # noqa: ANN001
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def _allocatable(cluster, amount: str) -> None:  # noqa: ANN001
    async with asyncio.timeout(60):
        while (await cluster.kube.get(NODES, "host-1"))["status"]["allocatable"].get("falcon.com/gpu") != amount:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def main() -> None:
    """Print both medians."""
    progress(f"hot-plug: {ROUNDS} attaches")
    visible, offered, bare = asyncio.run(measure())
    name = "the attach request itself"
    report(
        "hotplug_nvml_visible", statistics.median(visible), "s", baseline=statistics.median(bare), baseline_name=name
    )
    name = "NVML sees it"
    report(
        "hotplug_allocatable", statistics.median(offered), "s", baseline=statistics.median(visible), baseline_name=name
    )


if __name__ == "__main__":
    main()
