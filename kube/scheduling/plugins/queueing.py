"""Which pods may queue and in what order (upstream schedulinggates, queuesort)."""

from __future__ import annotations

from collections.abc import Sequence

from mews.kube.scheduling.framework import SUCCESS, Handle, QueuedPod, Status, Wake, unresolvable
from mews.kube.scheduling.podinfo import PodInfo


class SchedulingGates:
    """Keeps pods out while they have gates."""

    name = "SchedulingGates"

    def __init__(self, handle: Handle) -> None:
        pass

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Keep a pod out of the queue while it has scheduling gates."""
        return unresolvable(f"waiting for scheduling gates: [{' '.join(pod.gates)}]") if pod.gates else SUCCESS

    def wakes_on(self) -> Sequence[Wake]:
        """Wake a pod for its own change only."""
        return ()


class PrioritySort:
    """Priority, then time of entering."""

    name = "PrioritySort"

    def __init__(self, handle: Handle) -> None:
        pass

    def sort_key(self, queued: QueuedPod) -> tuple[int, float]:
        """Sort pods of higher priority first, then those that entered the queue earlier."""
        return -queued.pod.priority, queued.entered_s
