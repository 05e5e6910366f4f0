"""Drawn cases of extended resources: two nodes with device plugins, slices or both, and one pod that asks for them.

Each case has nodes, resources and classes of its own, so that many can stand in one cluster; the pod prefers one node.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object

CASE = "example.com/case"
_MODELS = ("a100", "h100")
IMPLICIT = "deviceclass.resource.kubernetes.io/"


class ExtendedCase(Struct, frozen=True):
    """``announced``: what device plugins have put on the nodes. ``left``: a claim that an attempt before left of the
    pod, None for none."""

    number: int
    announced: Mapping[str, Mapping[str, str]]
    slices: list[Object]
    classes: list[Object]
    claims: list[Object]
    pod: Object
    left: Object | None

    @property
    def labels(self) -> dict[str, str]:
        return {CASE: str(self.number)}


def draw_extended_case(seed: int, number: int) -> ExtendedCase:
    return _Draw(random.Random(f"extended/{seed}/{number}"), number).case()


class _Draw:
    def __init__(self, rng: random.Random, number: int) -> None:
        self.rng = rng
        self.number = number
        self.name = f"c{number}"
        self.domain = f"{self.name}.example.com"
        self.nodes = (f"{self.name}-east", f"{self.name}-west")

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def case(self) -> ExtendedCase:
        classes = [self.device_class("gpu"), self.device_class("nic")]
        resources = [*(each["spec"].get("extendedResourceName") for each in classes)]
        resources += [f"{IMPLICIT}{self.name}-gpu"] if self.chance(0.3) else []
        resources += [f"{self.domain}/unknown"] if self.chance(0.1) else []
        named = [each for each in resources if each]
        announced = {node: self.announced(named) for node in self.nodes}
        slices = [self.resource_slice(node) for node in self.nodes if self.chance(0.85)]
        claims = [self.claim()] if self.chance(0.2) else []
        left = self.left(slices[0]) if slices and self.chance(0.1) else None
        if claims and self.chance(0.3):  # 1.37 makes a claim of no requests then, and fails
            announced = {node: dict.fromkeys(named, "9") for node in self.nodes}
        pod = self.pod(named or [f"{self.domain}/gpu"], claims)
        return ExtendedCase(self.number, announced, slices, classes, claims, pod, left)

    def left(self, resource_slice: Object) -> Object:
        request = {"name": "old", "exactly": {"deviceClassName": f"{self.name}-gpu"}}
        pool = resource_slice["spec"]["pool"]["name"]
        result = {"request": "old", "driver": self.domain, "pool": pool, "device": "d0"}
        status = {"allocation": {"devices": {"results": [result]}}}
        return {"spec": {"devices": {"requests": [request]}}, "status": status}

    def device_class(self, kind: str) -> Object:
        selectors = [{"cel": {"expression": f"device.driver == '{self.domain}'"}}]
        if self.chance(0.4):
            model = self.rng.choice(_MODELS)
            selectors.append({"cel": {"expression": f"device.attributes['{self.domain}'].model == '{model}'"}})
        spec: dict[str, Any] = {"selectors": selectors}
        if self.chance(0.85):
            spec["extendedResourceName"] = f"{self.domain}/{kind}"
        return {"metadata": {"name": f"{self.name}-{kind}"}, "spec": spec}

    def announced(self, resources: list[str]) -> dict[str, str]:
        plain = [each for each in resources if not each.startswith(IMPLICIT)]
        return {each: self.rng.choice("0012") for each in plain if self.chance(0.3)}

    def resource_slice(self, node: str) -> Object:
        devices = [
            {"name": f"d{index}", "attributes": {"model": {"string": self.rng.choice(_MODELS)}}}
            for index in range(self.rng.randint(1, 5))
        ]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": self.domain, "nodeName": node, "pool": pool, "devices": devices}
        return {"metadata": {"name": f"{node}-slice"}, "spec": spec}

    def claim(self) -> Object:
        request = {"name": "r", "exactly": {"deviceClassName": f"{self.name}-{self.rng.choice(('gpu', 'nic'))}"}}
        return {"metadata": {"name": "mine"}, "spec": {"devices": {"requests": [request]}}}

    def pod(self, resources: list[str], claims: list[Object]) -> Object:
        containers = [self.container(f"m{index}", resources, 0.8) for index in range(self.rng.randint(1, 2))]
        init = [self.container(f"i{index}", resources, 0.6) for index in range(self.rng.choice((0, 0, 1, 2, 3)))]
        for each in init:
            if self.chance(0.4):
                each["restartPolicy"] = "Always"
        preferred = {"key": "kubernetes.io/hostname", "operator": "In", "values": [self.nodes[0]]}
        affinity = {"weight": 100, "preference": {"matchExpressions": [preferred]}}
        spec: dict[str, Any] = {
            "containers": containers,
            "nodeSelector": {CASE: str(self.number)},
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [affinity]}},
            "schedulingGates": [{"name": "example.com/made"}],
        }
        if init:
            spec["initContainers"] = init
        if claims:
            spec["resourceClaims"] = [{"name": "e", "resourceClaimName": "mine"}]
        return {"metadata": {"name": "p"}, "spec": spec}

    def container(self, name: str, resources: list[str], share: float) -> dict[str, Any]:
        wanted = {each: str(self.rng.choice((0, 1, 1, 1, 2, 3))) for each in resources if self.chance(share / 1.3)}
        if self.chance(0.4):
            wanted["cpu"] = "10m"
        if self.chance(0.2):
            wanted["memory"] = "1Mi"
        return {"name": name, "image": "x", "resources": {"requests": wanted, "limits": dict(wanted)}}
