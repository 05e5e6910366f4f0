"""Koordinator's policy as traces are played by it: hundredths of GPUs, or several whole ones, chosen by ``policy``."""

from __future__ import annotations

import random
from collections.abc import Mapping

from msgspec import Struct

from mews.kube.scheduling.bare_nodes import BareNode, chosen
from mews.kube.system.simulation import (
    WHOLE,
    JobSpot,
    SimulatedCluster,
    SimulatedJob,
    SimulatedNode,
    SteadyPlacer,
    TracePolicy,
)
from mews.systems.koordinator import policy
from mews.systems.koordinator.allocations import Allocations
from mews.systems.koordinator.devices import NodeDevice, NodeDeviceReport
from mews.systems.koordinator.names import CORE, GPU, RATIO
from mews.systems.koordinator.policy import NoDevices
from mews.systems.koordinator.requests import DeviceAsk, DeviceDemand
from mews.systems.koordinator.usage import NodeUse, PodUse, gpu_resources

_MIB = 1024 * 1024


class _ReportingNode(Struct, eq=False):
    books: BareNode
    use: NodeUse


class FractionPlacer(SteadyPlacer):
    """Jobs on hundredths of GPUs; above one they are whole ones, rounded up, as upstream refuses 150."""

    def __init__(self, cluster: SimulatedCluster, rng: random.Random) -> None:
        self._rng = rng
        self._number = 0
        self._asks: dict[int, DeviceAsk] = {}
        self._nodes = [
            _ReportingNode(BareNode(node.name, node.cpu_milli, node.memory_mib), NodeUse.of(_report(node)))
            for node in cluster.nodes
        ]
        self._by_name = {node.books.name: node for node in self._nodes}
        self._empty = [(node.books.cpu_milli, node.books.memory_mib, node.use) for node in self._nodes]

    def _ask(self, job: SimulatedJob) -> DeviceAsk:
        ask = self._asks.get(job.share)
        if ask is None:
            count = 1 if job.share <= WHOLE else job.devices
            each = min(job.share, WHOLE)
            ask = DeviceAsk((DeviceDemand(GPU, count, {CORE: each, RATIO: each}, job.share),))
            self._asks[job.share] = ask
        return ask

    def could_ever(self, job: SimulatedJob) -> bool:
        """Return whether an empty node can serve it."""
        return any(
            job.cpu_milli <= cpu
            and job.memory_mib <= memory
            and (not job.share or not isinstance(policy.allocate(self._ask(job), use), NoDevices))
            for cpu, memory, use in self._empty
        )

    def place(self, job: SimulatedJob, now_s: float) -> JobSpot | None:
        """Filter and Score as the plugin does, beside the default plugins."""
        found: dict[str, Allocations] = {}
        raw: dict[str, int] = {}
        for node in self._nodes:
            if not node.books.fits(job.cpu_milli, job.memory_mib):
                continue
            given = policy.allocate(self._ask(job), node.use) if job.share else ()
            if not isinstance(given, NoDevices):
                found[node.books.name] = given
                raw[node.books.name] = policy.node_score(self._ask(job), node.use) if job.share else 0
        if not found:
            return None
        scores = policy.normalized(raw)
        rated = [
            (scores[name] + self._by_name[name].books.score(job.cpu_milli, job.memory_mib), name) for name in found
        ]
        node = self._by_name[chosen(rated, self._rng)]
        self._number += 1
        uid = str(self._number)
        idle = len(node.use.report.devices) - len(node.use.users)
        node.use = node.use.plus(PodUse(uid, job.name, found[node.books.name]))
        node.books.take(job.cpu_milli, job.memory_mib)
        return JobSpot(node.books.name, True, idle, uid)

    def release(self, job: SimulatedJob, spot: JobSpot, now_s: float) -> None:
        """Its devices are free."""
        node = self._by_name[spot.node]
        node.use = node.use.minus(spot.token)
        node.books.take(job.cpu_milli, job.memory_mib, -1)


def _report(node: SimulatedNode) -> NodeDeviceReport:
    devices = (
        NodeDevice(GPU, minor, each.gpuid, True, gpu_resources(each.memory_mib * _MIB))
        for minor, each in enumerate(node.devices)
    )
    return NodeDeviceReport(node.name, tuple(devices))


def _placer(cluster: SimulatedCluster, rng: random.Random, options: Mapping[str, str]) -> FractionPlacer:
    return FractionPlacer(cluster, rng)


TRACE_POLICIES = (
    TracePolicy(
        "koordinator",
        "jobs have hundredths of a GPU, or several whole ones",
        placer=_placer,
        left_out=(
            "links and NUMA nodes (hardware files of traces are taken without them), partitions, gangs, other devices"
        ),
        fractions=True,
    ),
)
