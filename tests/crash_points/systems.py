"""Whose crash points are tried: the scenarios of each system that stand for the others."""

from __future__ import annotations

SYSTEMS: dict[str, tuple[str, ...]] = {
    "kubecomp": ("demo", "multi-container", "two-at-once", "over-ask"),
    "gpushare": (
        "gpushare-bind",
        "gpushare-pool-refuse",
        "gpushare-pool-evict",
        "gpushare-143",
        "gpushare-beside-the-pool",
    ),
    "koordinator": ("koordinator-shared", "koordinator-gang", "koordinator-exclusive", "koordinator-pool"),
    "remediation": ("remediation-xid", "remediation-lost-board", "remediation-shared", "remediation-budget"),
    "kod2": ("elastic-scale-in", "elastic-scale-out", "elastic-with-the-pool"),
    "pooldra": ("fabric-in-place", "fabric-reallocate", "fabric-move", "fabric-reused", "fabric-last-device"),
    "mixed": ("mixed-side-by-side", "mixed-lent-and-taken-back", "mixed-lives-and-ends"),
}
"""KubeComp: one GPU, a pod with several containers, two at the same time, one that cannot be served. GPU Share:
promises alone, and both ways in which the pool takes a GPU. Koordinator: parts, a gang, exclusive devices, pooled ones.
Remediation: a GPU that is mended, one that is not, one that pods share, one that a budget keeps.
KOD2: a job that shrinks, one that grows, workers with pooled GPUs.
Pool driver: a claim by each way to hand its device over, a device that is kept for the next claim, two claims for the
last one. ``mixed``: pods of all four in one cluster."""


def scenarios_of(system: str) -> tuple[str, ...]:
    """The scenarios of a system.

    Raises ValueError for a name that is none.
    """
    if system not in SYSTEMS:
        raise ValueError(f"--system {system!r}: must be one of {', '.join(SYSTEMS)}")
    return SYSTEMS[system]
