"""Clusters with shared GPUs of chance, and pods that come to them: documents that both extenders are played."""

from __future__ import annotations

import random
from typing import Any

from tests.upstream.oracles.model import Case

ENDINGS = ("Succeeded", "Failed", "deleted", "deleted", "deleting")
"""What becomes of a bound pod between the two parts of a case, in which the extender begins anew."""


def drawn(seed: int) -> Case:
    """``nodes`` with their pods, ``arrivals`` that are filtered and bound one by one, ``endings`` of pods, and ``late``
    arrivals after those."""
    return _Draw(random.Random(seed)).case()


class _Draw:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def case(self) -> Case:
        rng = self.rng
        nodes = [self._node(f"n{number}") for number in range(rng.choice((1, 2, 2, 3)))]
        sharing = [node for node in nodes if node["memory"]]
        pods = [self._holder(f"h{number}", sharing) for number in range(rng.randint(0, 4) if sharing else 0)]
        arrivals = [self._arrival(f"a{number}", nodes) for number in range(rng.randint(1, 4))]
        names = [pod["name"] for pod in (*pods, *arrivals)]
        ended = rng.sample(names, min(len(names), rng.choice((0, 1, 1, 2))))
        return {
            "nodes": nodes,
            "pods": pods,
            "arrivals": arrivals,
            "endings": {name: rng.choice(ENDINGS) for name in sorted(ended)},
            "late": [self._arrival(f"z{number}", nodes) for number in range(rng.choice((0, 1, 2)))],
        }

    def _node(self, name: str) -> dict[str, Any]:
        """Sums of memory, of which nobody says how they are divided."""
        count = self.rng.choice((1, 2, 2, 2, 4))
        memory = count * self.rng.choice((8, 15, 16)) + (self.rng.choice((0, 0, 0, 1)) if count > 1 else 0)
        node: dict[str, Any] = {"name": name, "memory": memory, "count": count}
        if self.chance(0.08):
            node |= self.rng.choice(({"memory": 0}, {"memory": 0, "count": 0}, {"count": 0}))
        if self.chance(0.12):
            node["unhealthy"] = self.rng.choice(("0", "1", "0,1", "3", "", "0,x"))
        return node

    def _holder(self, name: str, nodes: list[dict[str, Any]]) -> dict[str, Any]:
        """A pod that is there already, with what an extender or somebody else wrote on it."""
        rng = self.rng
        node = rng.choice(nodes)
        each = node["memory"] // node["count"] if node["count"] else 8
        memory = rng.randint(1, max(each // 2, 1)) if self.chance(0.9) else rng.randint(1, 40)
        index: str = str(rng.randrange(max(node["count"], 1)))
        if self.chance(0.05):
            index = rng.choice(("7", "-1", "x"))
        pod: dict[str, Any] = {
            "name": name,
            "asks": [memory],
            "node": node["name"],
            "index": index,
            "memory": str(memory),
        }
        if self.chance(0.05):
            pod["memory"] = rng.choice(("0", "x", "-3"))
        if self.chance(0.06):
            pod["node"] = ""  # a binding that failed has left its annotations
        pod["phase"] = rng.choice(("Running", "Running", "Running", "Pending", "Succeeded", "Failed"))
        if pod["node"] and self.chance(0.06):
            pod["phase"] = "deleting"
        return pod

    def _arrival(self, name: str, nodes: list[dict[str, Any]]) -> dict[str, Any]:
        """``order``: nodes as the scheduler would rather have them; ``bound_anyway``: to the first even if it is
        filtered out."""
        rng = self.rng
        asks = [rng.choice((1, 2, 3, 4, 6, 8, 10, 12, 15, 16, 20)) for _ in range(rng.choice((1, 1, 1, 2)))]
        pod: dict[str, Any] = {"name": name, "asks": asks, "order": rng.sample([n["name"] for n in nodes], len(nodes))}
        if self.chance(0.06):
            pod["first"] = [rng.choice((1, 2, 8, 16))]
        if self.chance(0.1):
            pod["bound_anyway"] = True
        return pod
