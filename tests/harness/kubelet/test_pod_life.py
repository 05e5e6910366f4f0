"""Pods from their binding to their end, in virtual time."""

from __future__ import annotations

import asyncio

from mews.harness.clock import run_virtual
from mews.kube.api.objects import condition_of
from tests.harness.kubelet.bench import Bench


def test_a_bound_pod_runs_and_succeeds_with_the_kubelet_s_events() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await bench.pod("a", ["sh", "-c", "sleep 3"])
            running = await bench.phase("a", "Running")
            assert condition_of(running, "Ready")["status"] == "True"
            done = await bench.phase("a", "Succeeded")
            assert done["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
            assert [reason for _, reason, _, _ in await bench.events("a")] == ["Pulled", "Created", "Started"]
        await bench.containerd.close()

    run_virtual(main)


def test_containers_outlive_their_kubelet_and_the_next_one_finishes_their_pods() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await bench.pod("a", ["sleep", "60"])
            before = await bench.phase("a", "Running")
        await asyncio.sleep(5)
        async with bench.running():
            await asyncio.sleep(10)
            after = await bench.get("a")
            assert after["status"] == before["status"]
            done = await bench.phase("a", "Succeeded")
            assert done["status"]["containerStatuses"][0]["restartCount"] == 0
        await bench.containerd.close()

    run_virtual(main)
