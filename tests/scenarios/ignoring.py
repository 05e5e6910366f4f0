"""A scheduler that ignores pods: in the place of a plugin it turns every one away."""

from __future__ import annotations

from typing import ClassVar

from mews.kube.scheduling.framework import CycleState, Handle, Status, unschedulable
from mews.kube.scheduling.podinfo import PodInfo


class Ignoring:
    """Every pod waits for ever. ``ignored`` are those that were asked for, of all runs since it was last cleared."""

    name = "Ignoring"
    ignored: ClassVar[set[str]] = set()

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        """Turn every pod away."""
        self.ignored.add(pod.key)
        return unschedulable("ignored")
