"""The words of conditions and events (contract apiserver.md section 8; measured data/scheduler-1.34)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from mews.kube.scheduling.framework import Status

NO_NODES = "no nodes available to schedule pods"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."
NO_CLAIMS = "no new claims to deallocate"
STILL = "still not schedulable"
DEALLOCATED = "deallocation of ResourceClaim completed"
DELETED = "deletion of ResourceClaim completed"
NO_STATE = "not found"
"""What upstream's dynamicresources says when PreFilter never got to it (measured: "missing claim")."""


def no_claim(key: str) -> str:
    """Return what the cache of claims says of one that is not there (assume_cache.go)."""
    return f'could not find ResourceClaim "{key}"'


def not_found(kind: str, name: str) -> str:
    """Return what upstream's listers say of an object that is not there; ``kind`` in lower case, with its group."""
    return f'{kind} "{name}" not found'


def narrowed(plugins: list[str]) -> str:
    """Return why nodes that PreFilter left out cannot be had."""
    return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}]"


def assigned(pod_key: str, node: str) -> str:
    """Note of a Scheduled event."""
    return f"Successfully assigned {pod_key} to {node}"


def preempted(by_uid: str, node: str) -> str:
    """Note of a Preempted event."""
    return f"Preempted by pod {by_uid} on node {node}"


def preempting(scheduler_name: str) -> str:
    """Message of a victim's DisruptionTarget condition."""
    return f"{scheduler_name}: preempting to accommodate a higher priority pod"


def no_fit(total: int, refusals: Mapping[str, Status], *, pre_filter: str = "", post_filter: str = "") -> str:
    """Return why none of ``total`` nodes will do: reasons counted and sorted as text, or PreFilter's alone."""
    message = f"0/{total} nodes are available:"
    if pre_filter:
        message += f" {pre_filter}."
    else:
        counts = Counter(reason for status in refusals.values() for reason in status.reasons)
        if counts:
            message += f" {', '.join(sorted(f'{n} {reason}' for reason, n in counts.items()))}."
    return f"{message} {post_filter}" if post_filter else message
