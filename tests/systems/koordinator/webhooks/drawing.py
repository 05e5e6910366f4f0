"""Pods of chance as they are created or changed, as documents that upstream's program and ours both read."""

from __future__ import annotations

import random
from typing import Any

from tests.systems.koordinator.upstream.drawing import CORE, FPGA, MEMORY, NVIDIA, RATIO, RDMA, SHARED, WHOLE, Case

VENDORS = (NVIDIA, "amd.com/gpu", "dcu.com/gpu")
DESIGN = ("kubernetes.io/gpu", "kubernetes.io/gpu-core", "kubernetes.io/gpu-memory-ratio")
"""Names of the design of which today's webhook knows nothing."""
RESERVE_POD = "scheduling.koordinator.sh/reserve-pod"
PREEMPTIBLE, QUOTA = "quota.scheduling.koordinator.sh/preemptible", "quota.scheduling.koordinator.sh/name"
QOS = "koordinator.sh/qosClass"
_NUMBERS = (
    *("0", "1", "2", "3", "4", "50", "70", "99", "100", "101", "150", "200", "201", "300", "400"),
    *("1k", "1001", "2000", "1010"),
)
_BYTES = ("0", "1Gi", "4096Mi", "4000", "8G", "1025Ki")
_FRACTIONS = ("500m", "1500m", "0.5")


def drawn(seed: int) -> Case:
    """A case: a pod, and what it was before where it is changed."""
    rng = random.Random(seed)
    return _Draw(rng, created=rng.random() < 0.6).case()


def drawn_created(seed: int) -> Case:
    """A case: a pod as somebody creates it."""
    return _Draw(random.Random(seed), created=True).case()


class _Draw:
    def __init__(self, rng: random.Random, *, created: bool) -> None:
        self.rng = rng
        self.created = created

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def case(self) -> Case:
        pod = self._pod()
        if self.created:
            return {"operation": "CREATE", "pod": pod}
        return {"operation": "UPDATE", "pod": pod, "old": {**self._pod(), "metadata": self._metadata()}}

    def _pod(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"containers": [self._container(n) for n in range(self.rng.choice((1, 1, 1, 2, 3)))]}
        if self.chance(0.08):
            spec["initContainers"] = [{**self._container(0), "name": "first"}]
        if self.chance(0.02):
            spec["nodeName"] = "n"
        if self.chance(0.1):
            spec["priority"] = self.rng.choice((0, 3500, 5500, 7500, 9500))
        return {"apiVersion": "v1", "kind": "Pod", "metadata": self._metadata(), "spec": spec}

    def _metadata(self) -> dict[str, Any]:
        labels, notes = dict[str, str](), dict[str, str]()
        if self.chance(0.15):
            labels[QOS] = self.rng.choice(("LSE", "LSR", "LS", "BE", "SYSTEM"))
        if self.chance(0.1):
            labels[QUOTA] = "q"
        if self.chance(0.15):
            labels[PREEMPTIBLE] = self.rng.choice(("true", "false"))
        if self.chance(0.03):
            notes[RESERVE_POD] = self.rng.choice(("", "true"))
        return {"name": "p", "namespace": "default", "labels": labels, "annotations": notes}

    def _container(self, number: int) -> dict[str, Any]:
        requests = self._requests()
        if self.chance(0.3):
            requests["cpu"] = "2"
        resources: dict[str, Any] = {"requests": requests, "limits": dict(requests)}
        if self.created and self.chance(0.05):
            del resources["limits"]
        elif self.created and requests and self.chance(0.03):
            resources["limits"] = {**requests, self.rng.choice(sorted(requests)): "7"}
        return {"name": f"c{number}", "image": "x", "resources": resources if requests else {}}

    def _requests(self) -> dict[str, str]:
        names: tuple[str, ...] = self.rng.choice(
            (
                *((WHOLE,),) * 6,
                *((CORE, RATIO),) * 6,
                *((SHARED, RATIO), (SHARED, CORE, RATIO), (SHARED, MEMORY), (SHARED, CORE, MEMORY)),
                *((SHARED, CORE, RATIO), (SHARED, MEMORY, RATIO), (SHARED,)),
                *((MEMORY,), (RATIO,), (CORE, MEMORY), (CORE,), (CORE, MEMORY, RATIO)) * 2,
                *((WHOLE, SHARED), (WHOLE, CORE), (RDMA,), (FPGA, WHOLE), ()),
                *((self.rng.choice(VENDORS),), (self.rng.choice(DESIGN),)),
                tuple(self.rng.sample((CORE, MEMORY, RATIO, SHARED, WHOLE, RDMA, *VENDORS), 3)),
            )
        )
        return {name: self._amount(name) for name in names}

    def _amount(self, name: str) -> str:
        if not self.created and self.chance(0.05):
            return self.rng.choice(_FRACTIONS)  # of a pod that is created the next check refuses them
        if name == MEMORY:
            return self.rng.choice(_BYTES)
        if name in (SHARED, *VENDORS):
            return self.rng.choice(("0", "1", "1", "2", "2", "3", "4"))
        if self.chance(0.5):
            return self.rng.choice(("50", "100", "200", "400"))
        return self.rng.choice(_NUMBERS)
