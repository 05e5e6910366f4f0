"""The steps on a host, where a component ends in the middle of one."""

import asyncio
import gc
import sys

from mews.harness.clock import run_virtual
from mews.kube.system.host_steps import HostSteps
from mews.systems.kubecomp.config import Timing


class Blocked:
    """A host without devices, on which every write blocks."""

    async def names(self, path):
        return []

    async def write(self, path, text):
        await asyncio.Event().wait()


def test_a_component_that_is_killed_in_a_rescan_leaves_nothing_behind(monkeypatch):
    left = []
    monkeypatch.setattr(sys, "unraisablehook", left.append)

    async def main():
        task = asyncio.create_task(HostSteps(Blocked(), None, Timing()).rescan([], kept_out=()))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        del task
        gc.collect()

    run_virtual(main)
    gc.collect()
    assert left == []
