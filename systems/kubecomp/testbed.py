"""The testbed of the KubeComp paper as the emulation plays it: what starting a pod costs there.

Measured (contract kubecomp.md section 4, the 100 rows of the fixed splits): a job takes ``jct - wait - run`` seconds
beyond its run, 4 to 24 s, more where one node holds all GPUs. The driver ran with persistence mode off, so whoever
opens NVML initialises every GPU of the node that nobody holds open. Over all rows at once, least squares against the
number of such **idle GPUs**, the pod's own included, gives ``1.89 + 2.81 x idle`` seconds with a residual of 0.67 s;
adding the pod's own GPUs, the node's GPUs or its running pods improves nothing. The same two numbers serve every run.
"""

from __future__ import annotations

import random

from mews.kube.api.objects import Object
from mews.kube.system.profile import Delay, NodeState, Overhead

BASE_S = 1.89
"""Seconds beyond the run with no idle GPU: sandbox and start."""

PER_IDLE_GPU_S = 2.81
"""Seconds to initialise one GPU that no process holds open."""

RESIDUAL_S = 0.67
"""Standard deviation of what the model leaves unexplained."""


def overhead_s(idle_gpus: int, rng: random.Random) -> float:
    """Return seconds that a pod spends beyond its run, on a node with that many GPUs idle (its own included)."""
    return max(0.0, BASE_S + PER_IDLE_GPU_S * idle_gpus + rng.gauss(0.0, RESIDUAL_S))


KUBELET_S = 0.98
"""What the emulated kubelet itself takes from a pod's first status to its process, on average (its ``Timings``)."""

RECONFIGURE_S = 3.267 + 3.325
"""Measured, means of 73 and 74: the update of GPU availability and the retrieval of the allocation, before moves."""

GATE_S = 1.80
"""Measured, all fixed splits: from a container's start to the creation of the next pod, where the driver waited for
nothing else. It looks once a second."""

ROOM_S = 1.98
"""Measured, all fixed splits: from a container's end to the start of the pod that waited for its room."""

SHOWN_S = GATE_S - (0.5 + 0.5)
"""What is left for the pod to be shown Running: a relist and a look of the driver take half a second each."""

STOP_S = ROOM_S - (0.5 + 1.23)
"""What is left for the pod's end: half a second until the relist, and what the emulated kubelet takes from there
(``Timings.finished``)."""


def testbed_overhead(rng: random.Random) -> Overhead:
    """Return the kubelet's hook for one node: what the testbed takes longer than the measured kubelet."""

    def overhead(pod: Object, node: NodeState) -> Delay:
        return Delay(start_s=max(0.0, overhead_s(node.idle, rng) - KUBELET_S), shown_s=SHOWN_S, stop_s=STOP_S)

    return overhead
