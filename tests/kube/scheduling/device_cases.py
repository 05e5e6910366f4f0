"""Drawn cases of device allocation: two nodes with slices, a class or two, one pod with one to three claims.

Each case has nodes, drivers and classes of its own, so that many can stand in one cluster; slices that are wrong reach
the nodes of their own case alone.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object

CASE = "example.com/case"
_MODELS = ("a100", "h100", "l4")
_DOMAIN = "fabric.example.org"


class DeviceCase(Struct, frozen=True):
    """What is made for a case, in this order; ``allocated`` is put into the status of the claims with those names."""

    number: int
    nodes: list[str]
    slices: list[Object]
    classes: list[Object]
    claims: list[Object]
    allocated: Mapping[str, Mapping[str, Any]]
    pod: Object
    ordered: bool
    """Whether no node sees more than one pool and slice, so that the choice is the same on every version."""

    @property
    def labels(self) -> dict[str, str]:
        """Of its nodes."""
        return {CASE: str(self.number)}


def draw_case(seed: int, number: int, *, prefix: str = "") -> DeviceCase:
    """The case of that number."""
    return _Draw(random.Random(f"{seed}/{number}"), number, prefix).case()


class _Draw:
    def __init__(self, rng: random.Random, number: int, prefix: str) -> None:
        self.rng = rng
        self.number = number
        self.name = f"{prefix}c{number}"
        self.driver = f"{self.name}.example.com"
        self.nodes = [f"{self.name}-east", f"{self.name}-west"]
        self.pools = 0
        self.most = 0

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def case(self) -> DeviceCase:
        slices = self.slices()
        classes = self.classes()
        claims = [self.claim(index, classes) for index in range(self.rng.choice((1, 1, 1, 2, 3)))]
        allocated = self.allocated(claims, slices) if self.chance(0.15) else {}
        names = [claim["metadata"]["name"] for claim in claims]
        if self.chance(0.15) and not allocated:
            self.rng.shuffle(names)
        pod = {
            "metadata": {"name": "p"},
            "spec": {
                "containers": [{"name": "m", "image": "x"}],
                "nodeSelector": {CASE: str(self.number)},
                "resourceClaims": [{"name": f"e{n}", "resourceClaimName": name} for n, name in enumerate(names)],
            },
        }
        return DeviceCase(self.number, self.nodes, slices, classes, claims, allocated, pod, ordered=self.most <= 1)

    # ------------------------------------------------------------------------------------------------------------ offer

    def slices(self) -> list[Object]:
        found = []
        for node in self.nodes:
            on_node = 0 if self.chance(0.1) else self.rng.choice((1, 1, 1, 2))
            for _ in range(on_node):
                several = self.rng.choice((1, 1, 1, 2))
                found += self.pool({"nodeName": node}, several)
                self.most = max(self.most, on_node * several)
        if self.chance(0.2):
            term = {"matchExpressions": [{"key": CASE, "operator": "In", "values": [str(self.number)]}]}
            if self.chance(0.3):
                term["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": [self.nodes[0]]}]
            found += self.pool({"nodeSelector": {"nodeSelectorTerms": [term]}}, 1)
            self.most += 1
        return found

    def pool(self, place: dict[str, Any], several: int) -> list[Object]:
        self.pools += 1
        name, generation = f"pool-{self.pools}", self.rng.randint(1, 3)
        driver = self.driver if self.chance(0.85) else f"other.{self.driver}"
        count = several + (1 if self.chance(0.06) else 0)
        found, number = [], 0
        for index in range(several):
            devices = []
            for _ in range(self.rng.choice((0, 1, 2, 3, 4, 6))):
                devices.append(self.device(f"gpu-{number}"))
                number += 1
            if devices and self.chance(0.03) and number > len(devices):
                devices[-1]["name"] = "gpu-0"
            found.append(self.slice(f"{self.name}-{name}-{index}", driver, devices, place, name, generation, count))
        if self.chance(0.08):
            old = [self.device("gpu-old")]
            found.append(self.slice(f"{self.name}-{name}-old", driver, old, place, name, generation - 1, 1))
            self.most += 1
        return found

    def slice(
        self,
        name: str,
        driver: str,
        devices: list[dict[str, Any]],
        place: dict[str, Any],
        pool: str,
        generation: int,
        count: int,
    ) -> Object:
        described = {"name": pool, "generation": generation, "resourceSliceCount": count}
        spec = {"driver": driver, "pool": described, "devices": devices, **place}
        return {"metadata": {"name": name}, "spec": spec}

    def device(self, name: str) -> dict[str, Any]:
        attributes: dict[str, Any] = {
            "model": {"string": self.rng.choice(_MODELS)},
            "index": {"int": self.rng.randint(0, 5)},
            "ecc": {"bool": self.chance(0.5)},
            "driverVersion": {"version": self.rng.choice(("1.0.0", "1.2.0", "2.0.0-rc.1"))},
            f"{_DOMAIN}/root": {"string": self.rng.choice(("r0", "r1"))},
        }
        for absent in [key for key in attributes if self.chance(0.08)]:
            del attributes[absent]
        found: dict[str, Any] = {"name": name, "attributes": attributes}
        if self.chance(0.8):
            found["capacity"] = {"memory": {"value": self.rng.choice(("40Gi", "80Gi", "24Gi"))}}
        return found

    # ----------------------------------------------------------------------------------------------------------- demand

    def classes(self) -> list[Object]:
        any_of_case = {"cel": {"expression": f'device.driver.endsWith("{self.driver}")'}}
        own = {"cel": {"expression": f'device.driver == "{self.driver}"'}}
        found = [
            {"metadata": {"name": f"{self.name}-own"}, "spec": {"selectors": [own]}},
            {"metadata": {"name": f"{self.name}-any"}, "spec": {"selectors": [any_of_case]}},
        ]
        if self.chance(0.5):
            found[0]["spec"]["selectors"].append({"cel": {"expression": self.expression()}})
        if self.chance(0.3):
            opaque = {"driver": self.driver, "parameters": {"kind": "Mode", "share": self.rng.randint(1, 3)}}
            found[0]["spec"]["config"] = [{"opaque": opaque}]
        return found

    def expression(self) -> str:
        driver = f'device.attributes["{self.driver}"]'
        model = self.rng.choice(_MODELS)
        guarded = [
            f'{driver}.?model.orValue("") == "{model}"',
            f"has({driver}.index) && {driver}.index >= {self.rng.randint(0, 4)}",
            f'"ecc" in {driver} && {driver}.ecc',
            f'has({driver}.driverVersion) && {driver}.driverVersion.isGreaterThan(semver("1.0.0"))',
            f'device.attributes["{_DOMAIN}"].?root.orValue("") == "r0"',
            'device.attributes["nowhere.example.org"].?root.orValue("") == ""',
            f'has(device.capacity["{self.driver}"].memory) && '
            f'device.capacity["{self.driver}"].memory.compareTo(quantity("40Gi")) >= 0',
            f'cel.bind(own, {driver}, own.?model.orValue("x") != "{model}")',
            f'{driver}.?model.orValue("").startsWith("a")',
            f'device.attributes.size() > 0 && "{_DOMAIN}" in device.attributes',
        ]
        bare = [f'{driver}.model == "{model}"', f"{driver}.index < 3", f'{driver}.missing == "x"', f"{driver}.model"]
        return self.rng.choice(bare if self.chance(0.08) else guarded)

    def claim(self, index: int, classes: list[Object]) -> Object:
        requests = [self.request(f"r{n}", classes) for n in range(self.rng.choice((0, 1, 1, 1, 2, 2, 3)))]
        devices: dict[str, Any] = {"requests": requests} if requests else {}
        names = self.names(requests)
        if requests and self.chance(0.3):
            attribute = self.rng.choice((f"{_DOMAIN}/root", f"{self.driver}/model", f"{self.driver}/ecc"))
            wanted: dict[str, Any] = {"matchAttribute": attribute}
            if self.chance(0.5):
                wanted["requests"] = self.rng.sample(names, self.rng.randint(1, len(names)))
            devices["constraints"] = [wanted]
        if requests and self.chance(0.2):
            opaque = {"driver": self.driver, "parameters": {"kind": "Mode", "of": "claim"}}
            devices["config"] = [{"opaque": opaque, **({"requests": [names[-1]]} if self.chance(0.6) else {})}]
        return {"metadata": {"name": f"claim-{index}"}, "spec": {"devices": devices}}

    def names(self, requests: list[dict[str, Any]]) -> list[str]:
        found = []
        for request in requests:
            found.append(request["name"])
            found += [f"{request['name']}/{part['name']}" for part in request.get("firstAvailable", ())]
        return found if self.chance(0.5) else [request["name"] for request in requests]

    def request(self, name: str, classes: list[Object]) -> dict[str, Any]:
        if self.chance(0.2):
            parts = [self.wish(classes) | {"name": f"s{n}"} for n in range(self.rng.randint(1, 3))]
            return {"name": name, "firstAvailable": parts}
        wish = self.wish(classes)
        if self.chance(0.05):
            wish["adminAccess"] = True
        return {"name": name, "exactly": wish}

    def wish(self, classes: list[Object]) -> dict[str, Any]:
        known = [each["metadata"]["name"] for each in classes]
        wish: dict[str, Any] = {
            "deviceClassName": f"{self.name}-absent" if self.chance(0.02) else self.rng.choice(known)
        }
        if self.chance(0.15):
            wish["allocationMode"] = "All"
        elif self.chance(0.5):
            wish["count"] = self.rng.choice((1, 1, 2, 2, 3, 4)) if not self.chance(0.02) else 33
        if self.chance(0.4):
            wish["selectors"] = [{"cel": {"expression": self.expression()}}]
        return wish

    def allocated(self, claims: list[Object], slices: list[Object]) -> dict[str, Mapping[str, Any]]:
        """The first claim has devices already, of one slice."""
        offered = [each for each in slices if each["spec"]["devices"]]
        requests = claims[0]["spec"]["devices"].get("requests", ())
        exact = [request for request in requests if "exactly" in request]
        if not offered or not exact or len(exact) != len(requests):
            return {}
        spec = self.rng.choice(offered)["spec"]
        devices = spec["devices"][: len(exact)]
        results = [
            {
                "request": request["name"],
                "driver": spec["driver"],
                "pool": spec["pool"]["name"],
                "device": device["name"],
            }
            for request, device in zip(exact, devices, strict=False)
        ]
        allocation: dict[str, Any] = {"devices": {"results": results}}
        if "nodeName" in spec:
            named = {"key": "metadata.name", "operator": "In", "values": [spec["nodeName"]]}
            allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [named]}]}
        return {"claim-0": allocation}
