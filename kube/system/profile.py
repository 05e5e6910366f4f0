"""What starting a pod costs on a measured testbed, beyond what the emulated kubelet itself takes."""

from __future__ import annotations

import random
from collections.abc import Callable

from msgspec import Struct

from mews.kube.api.objects import Object


class NodeState(Struct, frozen=True):
    """A node as a pod is about to start on it: pods that are there, healthy devices of all resources, and those of
    them that a running container of another pod holds."""

    pods: int
    devices: int
    held: int

    @property
    def idle(self) -> int:
        """Devices that nobody holds yet, the pod's own included."""
        return self.devices - self.held


class Delay(Struct, frozen=True):
    """Extra seconds before a pod's first container runs, from a container's start until its pod is shown Running, and
    between its end and its terminal phase."""

    start_s: float = 0.0
    shown_s: float = 0.0
    stop_s: float = 0.0


Overhead = Callable[[Object, NodeState], Delay]
"""What a testbed takes longer than the measured kubelet; asked once per pod, as its sandbox is made."""

MakeOverhead = Callable[[random.Random], Overhead]
"""Makes the overhead of one node from its own chance: a named profile of ``stack.profile``."""
