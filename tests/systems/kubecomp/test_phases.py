"""How long the phases of a reconfiguration take (paper, section V-B), in virtual time."""

from __future__ import annotations

import pytest

from mews.harness.clock import run_virtual
from mews.systems.kubecomp.metrics import Phase
from tests.systems.kubecomp.world import world

PROFILE = {"attach": 13, "detach": 7, "read": 3}
"""Latencies, seconds."""


def phases_of(gpus: int, *hosts: int, chassis: int) -> dict[Phase, float]:
    """Seconds of each phase while one pod is served that asks for so many GPUs."""

    async def serve() -> dict[Phase, float]:
        async with world(*hosts, chassis=chassis, profile=PROFILE) as w:
            await w.create("a", gpus, nodeSelector={"kubernetes.io/hostname": "host-1"})
            await w.runs("a", timeout_s=900)
            return {phase: sum(values) for phase, values in w.metrics.durations.items()}

    return run_virtual(serve)


@pytest.mark.parametrize("chassis", [1, 2, 4])
def test_all_chassis_are_asked_at_once(chassis: int) -> None:
    assert phases_of(5, 4, 4, chassis=chassis)[Phase.ALLOCATION_RETRIEVAL] == pytest.approx(3.0, abs=0.5)


def test_gpus_are_moved_one_after_the_other() -> None:
    took = [phases_of(4 + moved, 4, 4, chassis=1)[Phase.REALLOCATION] for moved in (1, 2, 4)]
    per_gpu = took[1] - took[0]
    assert per_gpu > 13 + 7
    assert took[2] - took[1] == pytest.approx(2 * per_gpu, rel=0.2)
