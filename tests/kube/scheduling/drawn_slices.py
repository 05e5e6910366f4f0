"""Drawn resource slices: pools of a node, of a selector, or whose devices choose nodes for themselves; incomplete, old
and invalid ones; with taints, shares, partitions and binding conditions where a release has them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object

MODELS = ("a100", "h100", "l4")
DOMAIN = "fabric.example.org"
TAINTS = ("sick", "reserved")
CASE = "example.com/case"

_POLICIES: Sequence[dict[str, Any]] = (
    {},
    {"default": "1Gi", "validRange": {"min": "1Gi", "step": "2Gi", "max": "23Gi"}},
    {"default": "8Gi", "validValues": ["8Gi", "16Gi", "24Gi"]},
)


class DrawnSlices(Struct):
    """``number``, ``name`` and ``nodes`` are the case's; ``is_new``: what 1.37 has is drawn, too."""

    rng: random.Random
    number: int
    name: str
    nodes: Sequence[str]
    is_new: bool
    pools: int = 0
    most: int = 0
    """Pools, or slices of one, that a node sees at most."""

    @property
    def driver(self) -> str:
        """Of most pools; another's name ends with it."""
        return f"{self.name}.example.com"

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def draw(self) -> list[Object]:
        found = []
        for node in self.nodes:
            on_node = 0 if self.chance(0.1) else self.rng.choice((1, 1, 1, 2))
            for _ in range(on_node):
                several = self.rng.choice((1, 1, 1, 2))
                found += self._pool({"nodeName": node}, several)
                self.most = max(self.most, on_node * several)
        if self.chance(0.2):
            found += self._pool({"nodeSelector": {"nodeSelectorTerms": [self._term()]}}, 1)
            self.most += 1
        if self.is_new and self.chance(0.2):
            found += self._pool({"perDeviceNodeSelection": True}, 1)
        if self.is_new and self.chance(0.25):
            found += self._partitions(self.rng.choice(self.nodes))
        return found

    def _term(self) -> dict[str, Any]:
        term: dict[str, Any] = {"matchExpressions": [{"key": CASE, "operator": "In", "values": [str(self.number)]}]}
        if self.chance(0.3):
            term["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": [self.nodes[0]]}]
        return term

    def _pool(self, place: dict[str, Any], several: int) -> list[Object]:
        self.pools += 1
        name, generation = f"pool-{self.pools}", self.rng.randint(1, 3)
        driver = self.driver if self.chance(0.85) else f"other.{self.driver}"
        count = several + (1 if self.chance(0.06) else 0)
        found, number = [], 0
        for index in range(several):
            devices = []
            for _ in range(self.rng.choice((0, 1, 2, 3, 4, 6))):
                devices.append(self._device(f"gpu-{number}", apart="perDeviceNodeSelection" in place))
                number += 1
            if devices and self.chance(0.03) and number > len(devices):
                devices[-1]["name"] = "gpu-0"
            found.append(self._slice(f"{name}-{index}", driver, {"devices": devices, **place}, (generation, count)))
        if self.chance(0.08):
            old = [self._device("gpu-old", apart="perDeviceNodeSelection" in place)]
            found.append(self._slice(f"{name}-old", driver, {"devices": old, **place}, (generation - 1, 1)))
            self.most += 1
        return found

    def _slice(self, name: str, driver: str, spec: dict[str, Any], age: tuple[int, int]) -> Object:
        generation, count = age
        pool = {"name": name.rpartition("-")[0], "generation": generation, "resourceSliceCount": count}
        return {"metadata": {"name": f"{self.name}-{name}"}, "spec": {"driver": driver, "pool": pool, **spec}}

    def _device(self, name: str, *, apart: bool = False) -> dict[str, Any]:
        attributes: dict[str, Any] = {
            "model": {"string": self.rng.choice(MODELS)},
            "index": {"int": self.rng.randint(0, 5)},
            "ecc": {"bool": self.chance(0.5)},
            "driverVersion": {"version": self.rng.choice(("1.0.0", "1.2.0", "2.0.0-rc.1"))},
            f"{DOMAIN}/root": {"string": self.rng.choice(("r0", "r1"))},
        }
        for absent in [key for key in attributes if self.chance(0.08)]:
            del attributes[absent]
        found: dict[str, Any] = {"name": name, "attributes": attributes}
        if self.chance(0.8):
            found["capacity"] = {"memory": {"value": self.rng.choice(("40Gi", "80Gi", "24Gi"))}}
        if apart:
            term = {"nodeSelectorTerms": [self._term()]}
            place: tuple[str, Any] = self.rng.choice(
                (("nodeName", self.nodes[0]), ("nodeName", self.nodes[1]), ("nodeSelector", term))
            )
            found[place[0]] = place[1]
        if self.is_new:
            self._add_new(found)
        return found

    def _add_new(self, device: dict[str, Any]) -> None:
        if self.chance(0.15):
            device["taints"] = [self._taint()]
        if self.chance(0.06):
            device["bindingConditions"] = ["Attached"]
            device["bindingFailureConditions"] = ["Broken"]
            if self.chance(0.3):
                device["bindsToNode"] = True
        if self.chance(0.2) and "capacity" in device:
            device["allowMultipleAllocations"] = True
            policy = self.rng.choice(_POLICIES)
            if policy:
                device["capacity"]["memory"]["requestPolicy"] = policy

    def _taint(self) -> dict[str, Any]:
        effect = self.rng.choice(("NoSchedule", "NoSchedule", "NoExecute", "None"))
        value = {"value": "a"} if self.chance(0.5) else {}
        return {"key": self.rng.choice(TAINTS), "effect": effect, **value}

    def _partitions(self, node: str) -> list[Object]:
        """A pool of one slice with counter sets and one with a whole device and its parts."""
        self.pools += 1
        name, place = f"parts-{self.pools}", {"nodeName": node}
        total = self.rng.choice(("40Gi", "80Gi"))
        counters = [{"name": "card", "counters": {"memory": {"value": total}, "engines": {"value": "4"}}}]
        devices = []
        for part, memory, engines in (("half-0", "20Gi", "2"), ("half-1", "20Gi", "2"), ("full", total, "4")):
            device = self._device(part)
            taken = {"memory": {"value": memory}, "engines": {"value": engines}}
            counter_set = "absent" if self.chance(0.02) else "card"
            device["consumesCounters"] = [{"counterSet": counter_set, "counters": taken}]
            devices.append(device)
        self.rng.shuffle(devices)
        return [
            self._slice(f"{name}-0", self.driver, {"sharedCounters": counters, **place}, (1, 2)),
            self._slice(f"{name}-1", self.driver, {"devices": devices, **place}, (1, 2)),
        ]
