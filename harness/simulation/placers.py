"""Whole devices on nodes that keep what they have: the baselines that traces are played by beside systems' policies."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections.abc import Collection, Sequence
from typing import Any

from mews.kube.scheduling.bare_nodes import POD_LIMIT, BareNode, chosen
from mews.kube.system.simulation import JobSpot, SimulatedCluster, SimulatedJob, SimulatedNode, SteadyPlacer


class _FixedNode(BareNode, eq=False, kw_only=True):
    number: int
    devices: int
    free: int

    @classmethod
    def of(cls, number: int, node: SimulatedNode, pod_limit: int) -> _FixedNode:
        devices = len(node.devices)
        return cls(
            node.name,
            node.cpu_milli,
            node.memory_mib,
            pod_limit=pod_limit,
            number=number,
            devices=devices,
            free=devices,
        )


class FixedPlacer(SteadyPlacer, ABC):
    """What both have in common: each node has the devices that are on its ports, and nothing moves."""

    def __init__(self, cluster: SimulatedCluster, pod_limit: int = POD_LIMIT) -> None:
        self._nodes = [_FixedNode.of(number, node, pod_limit) for number, node in enumerate(cluster.nodes)]
        self._by_name = {node.name: node for node in self._nodes}

    def could_ever(self, job: SimulatedJob) -> bool:
        """Return whether some node has as much."""
        devices, cpu, memory = job.devices, job.cpu_milli, job.memory_mib
        return any(
            devices <= node.devices and cpu <= node.cpu_milli and memory <= node.memory_mib for node in self._nodes
        )

    @abstractmethod
    def place(self, job: SimulatedJob, now_s: float, *, besides: Collection[str] = ()) -> JobSpot | None:
        """Give the job its room, on none of the nodes ``besides``; None where there is none."""

    @abstractmethod
    def release(self, job: SimulatedJob, spot: JobSpot, now_s: float) -> None:
        """Its room is free."""

    def fits_after(self, job: SimulatedJob, node: str, freed: Sequence[SimulatedJob]) -> bool:
        """Return whether the job would fit on the node once these have ended."""
        there = self._by_name[node]
        return (
            job.devices <= there.free + sum(each.devices for each in freed)
            and job.cpu_milli <= there.cpu_milli - there.cpu_used + sum(each.cpu_milli for each in freed)
            and job.memory_mib <= there.memory_mib - there.memory_used + sum(each.memory_mib for each in freed)
            and there.pods - len(freed) < there.pod_limit
        )


_NO_LIMIT = 1 << 60
"""It plays machines, not kubelets."""


class PackedPlacer(FixedPlacer):
    """Best fit: the node with the fewest free devices that are enough, found by an index; of equals the one that came
    to have so few last."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster, _NO_LIMIT)
        self._by_free: dict[int, dict[int, _FixedNode]] = {}
        self._counts: list[int] = []
        for node in self._nodes:
            self._put(node)

    def _put(self, node: _FixedNode) -> None:
        there = self._by_free.get(node.free)
        if there is None:
            self._by_free[node.free] = {node.number: node}
            insort(self._counts, node.free)
        else:
            there[node.number] = node

    def _move(self, node: _FixedNode, free: int) -> None:
        there = self._by_free[node.free]
        if len(there) == 1:
            del self._by_free[node.free]
            del self._counts[bisect_left(self._counts, node.free)]
        else:
            del there[node.number]
        node.free = free
        self._put(node)

    def place(self, job: SimulatedJob, now_s: float, *, besides: Collection[str] = ()) -> JobSpot | None:
        """Give the job its room; None where there is none."""
        counts, wanted, cpu, memory = self._counts, job.devices, job.cpu_milli, job.memory_mib
        for place in range(bisect_left(counts, wanted), len(counts)):
            for node in reversed(self._by_free[counts[place]].values()):
                if node.fits(cpu, memory) and (not besides or node.name not in besides):
                    idle = node.free
                    node.cpu_used += cpu
                    node.memory_used += memory
                    node.pods += 1
                    if wanted:
                        self._move(node, idle - wanted)
                    return JobSpot(node.name, True, idle, node)
        return None

    def release(self, job: SimulatedJob, spot: JobSpot, now_s: float) -> None:
        """Its room is free."""
        node: Any = spot.token
        node.cpu_used -= job.cpu_milli
        node.memory_used -= job.memory_mib
        node.pods -= 1
        if job.devices:
            self._move(node, node.free + job.devices)


class DefaultPlacer(FixedPlacer):
    """The default kube-scheduler's scores: of the nodes where the job fits the least allocated and best balanced, of
    equals any."""

    def __init__(self, cluster: SimulatedCluster, rng: random.Random) -> None:
        super().__init__(cluster)
        self._rng = rng

    def place(self, job: SimulatedJob, now_s: float, *, besides: Collection[str] = ()) -> JobSpot | None:
        """Give the job its room; None where there is none."""
        devices, cpu, memory = job.devices, job.cpu_milli, job.memory_mib
        feasible = [
            node
            for node in self._nodes
            if devices <= node.free and node.fits(cpu, memory) and (not besides or node.name not in besides)
        ]
        if not feasible:
            return None
        if len(feasible) == 1:
            node = feasible[0]
        else:
            node = self._by_name[chosen([(each.score(cpu, memory), each.name) for each in feasible], self._rng)]
        idle = node.free
        node.take(cpu, memory)
        node.free -= devices
        return JobSpot(node.name, True, idle, node)

    def release(self, job: SimulatedJob, spot: JobSpot, now_s: float) -> None:
        """Its room is free."""
        node: Any = spot.token
        node.take(job.cpu_milli, job.memory_mib, -1)
        node.free += job.devices
