"""What a scenario requires, held against what a cluster has."""

from __future__ import annotations

from mews.harness.clusters.port import Cluster
from mews.harness.scenario.errors import Lacking
from mews.harness.scenario.model import Requires
from mews.kube.api.quantities import parse
from mews.kube.api.resources import NODES


async def demand(requires: Requires, cluster: Cluster) -> None:
    """Check all requirements.

    Raises Lacking with the first that cannot be had.
    """
    for name, wanted, there in (
        ("time", (requires.time,) if requires.time else (), cluster.time),
        ("dialect", requires.dialect, cluster.dialect),
        ("cluster", requires.cluster, cluster.name),
    ):
        if wanted and there not in wanted:
            raise Lacking(f"needs {name} {' or '.join(wanted)}, this run has {there}")
    for feature in requires.features:
        reason = cluster.lacks(feature)
        if reason is not None:
            raise Lacking(f"needs {feature}: {reason}")
    if requires.node_cpus:
        await _node_cpus(requires.node_cpus, cluster)


async def _node_cpus(wanted: int, cluster: Cluster) -> None:
    nodes = (await cluster.kube.list(NODES)).items
    least = min((parse((n.get("status") or {}).get("capacity", {}).get("cpu", 0)) for n in nodes), default=parse(0))
    if least < wanted:
        raise Lacking(f"needs nodes of {wanted} CPUs, the smallest has {least}")
