"""GPU Share's policy as traces are played by it: memory of one GPU per job, the tightest that is enough, on the node
that the default scheduler scores best."""

from __future__ import annotations

import random
from collections.abc import Mapping

from msgspec import Struct

from mews.kube.scheduling.bare_nodes import BareNode, chosen
from mews.kube.system.simulation import WHOLE, JobSpot, SimulatedCluster, SimulatedJob, SteadyPlacer, TracePolicy
from mews.systems.gpushare import policy
from mews.systems.gpushare.policy import SharedGpu


class _SharingNode(Struct, eq=False):
    """A node with the memory that jobs were given of each GPU, in MiB by UUID."""

    books: BareNode
    gpus: tuple[SharedGpu, ...]
    used: dict[str, int]


class SharingPlacer(SteadyPlacer):
    """Jobs on parts of GPUs. A job's share of a device is that share of its memory."""

    def __init__(self, cluster: SimulatedCluster, rng: random.Random) -> None:
        self._rng = rng
        self._nodes = [
            _SharingNode(
                BareNode(node.name, node.cpu_milli, node.memory_mib),
                tuple(SharedGpu(index, each.gpuid, each.memory_mib) for index, each in enumerate(node.devices)),
                {each.gpuid: 0 for each in node.devices},
            )
            for node in cluster.nodes
        ]
        self._by_name = {node.books.name: node for node in self._nodes}

    def could_ever(self, job: SimulatedJob) -> bool:
        """Return whether one GPU of some node has as much: a job of several GPUs is none for GPU Share."""
        return any(
            (not job.share or (job.share <= WHOLE and node.gpus))
            and job.cpu_milli <= node.books.cpu_milli
            and job.memory_mib <= node.books.memory_mib
            for node in self._nodes
        )

    @staticmethod
    def _asked(job: SimulatedJob, node: _SharingNode) -> int:
        return -(-job.share * node.gpus[0].memory // WHOLE) if node.gpus else 1

    def _fits(self, job: SimulatedJob, node: _SharingNode) -> bool:
        if not node.books.fits(job.cpu_milli, job.memory_mib):
            return False
        if not job.share:
            return True
        largest = max(policy.free_memory(node.gpus, node.used).values(), default=None)
        return not policy.refusal(node.books.name, self._asked(job, node), largest)

    def place(self, job: SimulatedJob, now_s: float) -> JobSpot | None:
        """Filter as the extender does, score as the default scheduler, then best fit among the node's GPUs."""
        fitting = [node for node in self._nodes if self._fits(job, node)]
        if not fitting:
            return None
        scores = [(node.books.score(job.cpu_milli, job.memory_mib), node.books.name) for node in fitting]
        node = self._by_name[chosen(scores, self._rng)]
        idle, given = sum(not used for used in node.used.values()), ("", 0)
        if job.share:
            request = self._asked(job, node)
            gpu = policy.best_fit(request, node.gpus, policy.free_memory(node.gpus, node.used))
            assert gpu is not None, "the node was asked before"
            given = gpu.uuid, request
            node.used[gpu.uuid] += request
        node.books.take(job.cpu_milli, job.memory_mib)
        return JobSpot(node.books.name, True, idle, given)

    def release(self, job: SimulatedJob, spot: JobSpot, now_s: float) -> None:
        """Its memory is free."""
        node, (uuid, amount) = self._by_name[spot.node], spot.token
        node.books.take(job.cpu_milli, job.memory_mib, -1)
        if uuid:
            node.used[uuid] -= amount


def _placer(cluster: SimulatedCluster, rng: random.Random, options: Mapping[str, str]) -> SharingPlacer:
    return SharingPlacer(cluster, rng)


TRACE_POLICIES = (
    TracePolicy(
        "gpushare",
        "jobs share GPUs by memory: best fit on one device",
        placer=_placer,
        left_out=(
            "jobs of more than one GPU (they are unplaceable), Allocates that are matched to other pods, evictions"
        ),
        fractions=True,
    ),
)
