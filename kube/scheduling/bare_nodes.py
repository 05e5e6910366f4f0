"""A node's books for simulations of jobs that name no node, port, volume, taint or neighbour: what the default plugins
tell nodes apart by then, in their own arithmetic and without their objects."""

from __future__ import annotations

import random
from collections.abc import Sequence

from msgspec import Struct

from mews.kube.scheduling.plugins.balanced import deviation
from mews.kube.scheduling.plugins.resources_fit import least
from mews.kube.scheduling.podinfo import DEFAULT_MEMORY, DEFAULT_MILLI_CPU
from mews.kube.scheduling.scores import MAX_SCORE

POD_LIMIT = 110
"""Pods on one node, a kubelet's default."""
_MIB = 1024 * 1024
_DEFAULT_MEMORY_MIB = DEFAULT_MEMORY // _MIB


class BareNode(Struct, eq=False):
    """What a node has, and what is requested of it; CPU in thousandths, memory in MiB."""

    name: str
    cpu_milli: int
    memory_mib: int
    cpu_used: int = 0
    memory_used: int = 0
    scoring_cpu: int = 0
    scoring_memory: int = 0
    pods: int = 0
    pod_limit: int = POD_LIMIT

    def fits(self, cpu_milli: int, memory_mib: int) -> bool:
        """Return whether there is so much of both, and a pod more may run here."""
        return (
            cpu_milli <= self.cpu_milli - self.cpu_used
            and memory_mib <= self.memory_mib - self.memory_used
            and self.pods < self.pod_limit
        )

    def take(self, cpu_milli: int, memory_mib: int, sign: int = 1) -> None:
        """Put a pod on the books, or with ``sign`` -1 off them."""
        self.cpu_used += sign * cpu_milli
        self.memory_used += sign * memory_mib
        self.scoring_cpu += sign * (cpu_milli or DEFAULT_MILLI_CPU)
        self.scoring_memory += sign * (memory_mib or _DEFAULT_MEMORY_MIB)
        self.pods += sign

    def score(self, cpu_milli: int, memory_mib: int) -> int:
        """NodeResourcesFit (LeastAllocated) and NodeResourcesBalancedAllocation, as the default profile adds them."""
        total, parts = 0, 0
        if self.cpu_milli:
            total, parts = least(self.scoring_cpu + (cpu_milli or DEFAULT_MILLI_CPU), self.cpu_milli), 1
        if self.memory_mib:
            asked = (self.scoring_memory + (memory_mib or _DEFAULT_MEMORY_MIB)) * _MIB
            total, parts = total + least(asked, self.memory_mib * _MIB), parts + 1
        fit = total // parts if parts else 0
        if not cpu_milli and not memory_mib:
            return fit  # such pods change no balance
        shares = [
            min(1.0, (used + asked) / there)
            for used, asked, there in (
                (self.cpu_used, cpu_milli, self.cpu_milli),
                (self.memory_used, memory_mib, self.memory_mib),
            )
            if there
        ]
        return fit + int((1 - deviation(shares)) * MAX_SCORE)


def chosen(scores: Sequence[tuple[int, str]], rng: random.Random | None) -> str:
    """Return the name with the highest score; equals by chance, or without any the first by name."""
    highest = max(scores)[0]
    equals = [name for score, name in scores if score == highest]
    if len(equals) == 1:
        return equals[0]
    return min(equals) if rng is None else rng.choice(equals)
