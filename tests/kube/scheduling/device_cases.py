"""Drawn cases of device allocation: two nodes with slices, a class or two, one pod with one to three claims.

Each case has nodes, drivers and classes of its own, so that many can stand in one cluster; slices that are wrong reach
the nodes of their own case alone.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, name_of
from mews.kube.scheduling.devices.requests import has_alternatives, requests_of
from tests.kube.scheduling.drawn_slices import CASE, DOMAIN, MODELS, TAINTS, DrawnSlices


class DeviceCase(Struct, frozen=True):
    """What is made for a case, in this order; ``allocated`` is put into the status of the claims with those names."""

    number: int
    nodes: list[str]
    slices: list[Object]
    classes: list[Object]
    rules: list[Object]
    claims: list[Object]
    allocated: Mapping[str, Mapping[str, Any]]
    pod: Object
    breaks: bool
    """Whether devices that must be attached break, instead."""
    ordered: bool
    """Whether no node sees more than one pool and slice, so that the choice is the same on every version."""

    @property
    def labels(self) -> dict[str, str]:
        """Of its nodes."""
        return {CASE: str(self.number)}


def draw_case(seed: int, number: int, *, prefix: str = "", minor: int = 34) -> DeviceCase:
    """The case of that number, with what that minor version has."""
    return _Draw(random.Random(f"{seed}/{number}"), number, prefix, is_new=minor >= 37).case()


class _Draw:
    def __init__(self, rng: random.Random, number: int, prefix: str, *, is_new: bool) -> None:
        self.rng = rng
        self.number = number
        self.name = f"{prefix}c{number}"
        self.is_new = is_new
        self.nodes = [f"{self.name}-east", f"{self.name}-west"]
        self.offer = DrawnSlices(rng, number, self.name, self.nodes, is_new)
        self.driver = self.offer.driver

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def case(self) -> DeviceCase:
        slices = self.offer.draw()
        classes = self.classes()
        claims = [self.claim(index, classes) for index in range(self.rng.choice((1, 1, 1, 2, 3)))]
        extended = self.is_new and self.chance(0.12)
        if extended and self.chance(0.6):
            claims = []
        allocated = self.allocated(claims, slices) if claims and self.chance(0.15) else {}
        rules = [self.rule(slices)] if self.is_new and slices and self.chance(0.2) else []
        pod = self.pod(claims, shuffled=not allocated, extended=extended)
        return DeviceCase(
            self.number,
            self.nodes,
            slices,
            classes,
            rules,
            claims,
            allocated,
            pod,
            breaks=self.chance(0.6) and not any(has_alternatives(claim) for claim in claims),
            ordered=self.offer.most <= 1,
        )

    def pod(self, claims: list[Object], *, shuffled: bool, extended: bool) -> Object:
        names = [claim["metadata"]["name"] for claim in claims]
        if self.chance(0.15) and shuffled:
            self.rng.shuffle(names)
        container: dict[str, Any] = {"name": "m", "image": "x"}
        if extended:
            amount = {f"{self.name}.example.com/gpu": str(self.rng.choice((1, 1, 2, 3)))}
            container["resources"] = {"requests": amount, "limits": amount}
        spec: dict[str, Any] = {"containers": [container], "nodeSelector": {CASE: str(self.number)}}
        if names:
            spec["resourceClaims"] = [{"name": f"e{n}", "resourceClaimName": name} for n, name in enumerate(names)]
        if not any(has_alternatives(claim) for claim in claims):  # else devices say which node is better
            preferred = {"key": "kubernetes.io/hostname", "operator": "In", "values": [self.nodes[0]]}
            term = {"weight": 100, "preference": {"matchExpressions": [preferred]}}
            spec["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
        return {"metadata": {"name": "p"}, "spec": spec}

    def rule(self, slices: list[Object]) -> Object:
        spec = self.rng.choice(slices)["spec"]
        selector = {"driver": spec["driver"]}
        if self.chance(0.7):
            selector["pool"] = spec["pool"]["name"]
        if spec.get("devices") and self.chance(0.6):
            selector["device"] = self.rng.choice(spec["devices"])["name"]
        taint = {"key": self.rng.choice(TAINTS), "value": "a", "effect": self.rng.choice(("NoSchedule", "NoExecute"))}
        return {"metadata": {"name": f"{self.name}-rule"}, "spec": {"deviceSelector": selector, "taint": taint}}

    def classes(self) -> list[Object]:
        any_of_case = {"cel": {"expression": f'device.driver.endsWith("{self.driver}")'}}
        own = {"cel": {"expression": f'device.driver == "{self.driver}"'}}
        found: list[Object] = [
            {"metadata": {"name": f"{self.name}-own"}, "spec": {"selectors": [own]}},
            {"metadata": {"name": f"{self.name}-any"}, "spec": {"selectors": [any_of_case]}},
        ]
        if self.chance(0.5):
            found[0]["spec"]["selectors"].append({"cel": {"expression": self.expression()}})
        if self.chance(0.3):
            opaque = {"driver": self.driver, "parameters": {"kind": "Mode", "share": self.rng.randint(1, 3)}}
            found[0]["spec"]["config"] = [{"opaque": opaque}]
        if self.is_new:
            found[0]["spec"]["extendedResourceName"] = f"{self.name}.example.com/gpu"
        return found

    def expression(self) -> str:
        driver = f'device.attributes["{self.driver}"]'
        model = self.rng.choice(MODELS)
        guarded = [
            f'{driver}.?model.orValue("") == "{model}"',
            f"has({driver}.index) && {driver}.index >= {self.rng.randint(0, 4)}",
            f'"ecc" in {driver} && {driver}.ecc',
            f'has({driver}.driverVersion) && {driver}.driverVersion.isGreaterThan(semver("1.0.0"))',
            f'device.attributes["{DOMAIN}"].?root.orValue("") == "r0"',
            'device.attributes["nowhere.example.org"].?root.orValue("") == ""',
            f'has(device.capacity["{self.driver}"].memory) && '
            f'device.capacity["{self.driver}"].memory.compareTo(quantity("40Gi")) >= 0',
            f'cel.bind(own, {driver}, own.?model.orValue("x") != "{model}")',
            f'{driver}.?model.orValue("").startsWith("a")',
            f'device.attributes.size() > 0 && "{DOMAIN}" in device.attributes',
        ]
        if self.is_new:
            guarded.append("!device.allowMultipleAllocations")
        bare = [f'{driver}.model == "{model}"', f"{driver}.index < 3", f'{driver}.missing == "x"', f"{driver}.model"]
        return self.rng.choice(bare if self.chance(0.08) else guarded)

    def claim(self, index: int, classes: list[Object]) -> Object:
        requests = [self.request(f"r{n}", classes) for n in range(self.rng.choice((0, 1, 1, 1, 2, 2, 3)))]
        devices: dict[str, Any] = {"requests": requests} if requests else {}
        names = self.names(requests)
        if requests and self.chance(0.3):
            attribute = self.rng.choice((f"{DOMAIN}/root", f"{self.driver}/model", f"{self.driver}/ecc"))
            kind = "distinctAttribute" if self.is_new and self.chance(0.4) else "matchAttribute"
            wanted: dict[str, Any] = {kind: attribute}
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
        if self.is_new:
            if self.chance(0.15):
                amount = self.rng.choice(("3Gi", "8Gi", "20Gi", "31Gi", "60Gi"))
                wish["capacity"] = {"requests": {"absent" if self.chance(0.05) else "memory": amount}}
            if self.chance(0.25):
                wish["tolerations"] = [self.toleration()]
        return wish

    def toleration(self) -> dict[str, Any]:
        key = self.rng.choice((*TAINTS, ""))
        if not key or self.chance(0.5):
            found = {"operator": "Exists"}
        else:
            found = {"operator": "Equal", **({"value": "a"} if self.chance(0.5) else {})}
        if key:
            found["key"] = key
        if self.chance(0.3):
            found["effect"] = self.rng.choice(("NoSchedule", "NoExecute"))
        return found

    def allocated(self, claims: list[Object], slices: list[Object]) -> dict[str, Mapping[str, Any]]:
        """The first claim has devices already, of one slice."""
        offered = [each for each in slices if each["spec"].get("devices")]
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
        if self.is_new and self.chance(0.8):
            allocation["allocationTimestamp"] = "2026-01-01T00:00:00Z"
        if "nodeName" in spec:
            named = {"key": "metadata.name", "operator": "In", "values": [spec["nodeName"]]}
            allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [named]}]}
        return {"claim-0": allocation}


def uses(case: DeviceCase) -> set[str]:
    """The features that a case reaches: what it asks for, and of what is offered."""
    devices = [device for each in case.slices for device in each["spec"].get("devices", ())]
    wishes = []
    for claim in case.claims:
        for request in requests_of(claim):
            wishes += request.get("firstAvailable") or [request["exactly"]]
    constraints = [each for claim in case.claims for each in claim["spec"]["devices"].get("constraints", ())]
    found = {
        "CEL selectors": any("selectors" in wish for wish in wishes),
        "count": any(wish.get("count", 1) > 1 for wish in wishes),
        "all devices": any("allocationMode" in wish for wish in wishes),
        "administrators' access": any("adminAccess" in wish for wish in wishes),
        "capacity": any("capacity" in wish for wish in wishes),
        "tolerations": any("tolerations" in wish for wish in wishes),
        "prioritized lists": any(has_alternatives(claim) for claim in case.claims),
        "matchAttribute": any("matchAttribute" in each for each in constraints),
        "distinctAttribute": any("distinctAttribute" in each for each in constraints),
        "nodes by device": any("perDeviceNodeSelection" in each["spec"] for each in case.slices),
        "shared counters": any("consumesCounters" in device for device in devices),
        "shared devices": any("allowMultipleAllocations" in device for device in devices),
        "taints": any("taints" in device for device in devices),
        "taint rules": bool(case.rules),
        "binding conditions": any("bindingConditions" in device for device in devices),
        "extended resources": "resources" in case.pod["spec"]["containers"][0],
        "old generations": any(name_of(each).endswith("-old") for each in case.slices),
        "allocated before": bool(case.allocated),
    }
    return {feature for feature, is_used in found.items() if is_used}
