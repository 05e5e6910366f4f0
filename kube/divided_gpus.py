"""GPUs in MIG mode on a node whose component gives GPUs, or their memory, as a whole: reported, and not offered."""

from __future__ import annotations

from collections.abc import Iterable

from mews.kube.events import EventRecorder, node_reference
from mews.kube.system.nvml import ListedGpu

IN_MIG_MODE = "GPUInMIGMode"
"""The event's reason."""


class DividedGpus:
    """What a node's component has reported of its GPUs in MIG mode."""

    def __init__(self, events: EventRecorder, node: str) -> None:
        self._events = events
        self._node = node
        self._known: frozenset[str] = frozenset()

    def look(self, gpus: Iterable[ListedGpu]) -> None:
        """Report the GPUs that are in MIG mode and were not at the last look, with an event of the node."""
        self.report(frozenset(gpu.uuid for gpu in gpus if gpu.divided))

    def report(self, divided: frozenset[str]) -> None:
        """The same by UUIDs."""
        for uuid in sorted(divided - self._known):
            text = f"GPU {uuid} is not offered: it is in MIG mode"
            self._events.event(node_reference(self._node), "Warning", IN_MIG_MODE, text)
        self._known = divided
