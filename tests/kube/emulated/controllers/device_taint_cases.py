"""Drawn cases of tainted devices: slices, claims, pods and rules; then taints, and then a change.

Each case has a namespace and a driver of its own, and its rules select by that driver, so that many can stand in one
cluster. No kubelet and no other controller runs: what happens to pods is the doing of one controller.
"""

from __future__ import annotations

import random
from typing import Any

from msgspec import Struct, field

Body = dict[str, Any]

LONG_AGO = "2020-01-01T00:00:00Z"
EXTENDED: Body = {"resources": {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}}
SOON_S, NEVER_S = 8, 1000
"""Tolerations that end between two looks at the case, and after the last one."""
CHANGES = (
    "nothing",
    "taint removed",
    "taint softened",
    "taint of another value",
    "newer slice",
    "slice deleted",
    "rule removed",
    "rule softened",
    "rule for another device",
    "rule evicts",
    "rule made anew",
    "pod deleted",
    "pod bound",
    "claim deallocated",
    "claim deleted",
    "claim for another pod",
)
OLD_CHANGES = (*CHANGES, "class changed", "class deleted", "class made")
"""Of 1.34, whose rules may select by class. Cases are drawn in turn, so each change meets each kind of rule."""


class PodCase(Struct, frozen=True):
    """A pod of a case: its entries of ``spec.resourceClaims``, and what its status names."""

    name: str
    spec: Body
    named: list[Body]
    extended: str = ""
    """The claim for its extended resources."""


class ClaimCase(Struct, frozen=True):
    """A claim of a case: the results of its allocation, and the pods that it is reserved for."""

    name: str
    results: list[Body]
    users: list[str]
    owner: str = ""
    """The pod that controls it."""


class TaintCase(Struct, frozen=True):
    """What is made for a case in this order, and then its taints, by device, and rules."""

    name: str
    devices: list[str]
    pods: list[PodCase]
    claims: list[ClaimCase]
    taints: dict[str, list[Body]] = field(default_factory=dict)
    rules: dict[str, Body] = field(default_factory=dict)
    change: str = "nothing"
    classes: dict[str, Body] = field(default_factory=dict)
    """Device classes, by name."""

    @property
    def driver(self) -> str:
        return f"{self.name}.example.com"


def draw_case(seed: int, number: int, *, old: bool = False) -> TaintCase:
    """The case of that number; ``old``: of 1.34."""
    return (_OldDraw if old else _Draw)(random.Random(f"{seed}/{number}"), number).case()


class _Draw:
    changes = CHANGES
    effects = ("NoExecute", "NoExecute", "NoExecute", "NoSchedule", "None")
    soft = ("None", "NoSchedule")

    def __init__(self, rng: random.Random, number: int) -> None:
        self.rng = rng
        self.number = number
        self.name = f"taints-{number}"
        self.devices = [f"gpu-{n}" for n in range(4)]

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def case(self) -> TaintCase:
        pods, claims = [], []
        for number in range(self.rng.choice((1, 2, 2, 3))):
            pod, its = self.pod(f"p{number}")
            pods.append(pod)
            claims += its
        if len(pods) > 1 and claims and self.chance(0.4):
            self.share(pods, claims)
        change = self.changes[self.number % len(self.changes)]
        rules = {} if self.chance(0.3) and not change.startswith(("rule", "class")) else self.rules(change)
        taints = {} if rules and self.chance(0.4) else self.taints()
        return TaintCase(self.name, self.devices, pods, claims, taints, rules, change, self.classes())

    def classes(self) -> dict[str, Body]:
        return {}

    # ------------------------------------------------------------------------------------------------------------- pods

    def pod(self, name: str) -> tuple[PodCase, list[ClaimCase]]:
        entries: list[Body] = []
        named: list[Body] = []
        claims: list[ClaimCase] = []
        extended = ""
        for number in range(self.rng.choice((1, 1, 2))):
            claim, entry = f"{name}-c{number}", {"name": f"e{number}"}
            users = [name] if self.chance(0.9) else []
            how = self.rng.choice(("by name", "by name", "of a template", "of another's template", "extended"))
            if how == "extended" and not extended:
                extended = claim
                claims.append(ClaimCase(claim, self.results(), users, name if self.chance(0.8) else ""))
                continue
            if how == "by name" or how == "extended":
                entries.append({**entry, "resourceClaimName": claim})
                claims.append(ClaimCase(claim, self.results(), users))
                continue
            entries.append({**entry, "resourceClaimTemplateName": "t"})
            if self.chance(0.8):
                named.append({"name": entry["name"], "resourceClaimName": claim})
            claims.append(ClaimCase(claim, self.results(), users, name if how == "of a template" else ""))
        spec: Body = {
            "containers": [{"name": "m", "image": "x", **(EXTENDED if extended else {})}],
            "terminationGracePeriodSeconds": self.rng.choice((0, 30)),
            "resourceClaims": entries,
        }
        if self.chance(0.85):
            spec["nodeName"] = "nowhere"
        return PodCase(name, spec, named, extended), claims

    def share(self, pods: list[PodCase], claims: list[ClaimCase]) -> None:
        """Let the last pod use the first claim, too."""
        claim, pod = claims[0], pods[-1]
        if pod.name not in claim.users:
            claim.users.append(pod.name)
        pod.spec["resourceClaims"].append({"name": "shared", "resourceClaimName": claim.name})

    def results(self) -> list[Body]:
        if self.chance(0.05):
            return []
        return [
            {
                "request": "r",
                "driver": f"{self.name}.example.com",
                "pool": "p",
                "device": device,
                **({"tolerations": self.tolerations()} if self.chance(0.75) else {}),
            }
            for device in self.rng.sample([*self.devices, "unpublished"], self.rng.choice((1, 1, 2)))
        ]

    def tolerations(self) -> list[Body]:
        return [self.toleration() for _ in range(self.rng.choice((1, 1, 2)))]

    def toleration(self) -> Body:
        made: Body = {"operator": "Exists"}
        if self.chance(0.3):
            made["key"] = self.rng.choice(("a", "b"))
        if "key" in made and self.chance(0.3):
            made |= {"operator": "Equal", "value": self.rng.choice(("v", "w"))}
        if self.chance(0.85):
            made["effect"] = self.rng.choice(("NoExecute", "NoExecute", "NoExecute", "NoSchedule"))
        seconds = self.rng.choice((None, 0, -5, SOON_S, SOON_S, NEVER_S, NEVER_S))
        if seconds is not None and made.get("effect") == "NoExecute":
            made["tolerationSeconds"] = seconds
        return made

    # ----------------------------------------------------------------------------------------------------------- taints

    def taints(self) -> dict[str, list[Body]]:
        tainted = self.rng.sample(self.devices, self.rng.choice((1, 2, 3)))
        return {device: [self.taint(key) for key in self.rng.choice(("a", "b", "ab"))] for device in tainted}

    def taint(self, key: str) -> Body:
        made: Body = {
            "key": key,
            "effect": self.rng.choice(self.effects),
        }
        if self.chance(0.5):
            made["value"] = "v"
        if self.chance(0.2):
            made["timeAdded"] = LONG_AGO
        return made

    def rules(self, change: str) -> dict[str, Body]:
        count = self.rng.choice((1, 1, 2))
        made = {f"{self.name}-r{number}": self.rule("ab"[number]) for number in range(count)}
        if change == "rule evicts":
            made[f"{self.name}-r0"]["taint"]["effect"] = self.rng.choice(self.soft)
        return made

    def rule(self, key: str) -> Body:
        selector = {"driver": f"{self.name}.example.com"}
        if self.chance(0.5):
            selector["device"] = self.rng.choice(self.devices)
        if self.chance(0.2):
            selector["pool"] = self.rng.choice(("p", "q"))
        return {"deviceSelector": selector, "taint": self.taint(key)}


def by(expression: str, driver: str) -> Body:
    """A selector of devices by their number."""
    return {"cel": {"expression": f"device.attributes['{driver}'].{expression}"}}


class _OldDraw(_Draw):
    """Without the effect None; rules may select by class and expression."""

    changes = OLD_CHANGES
    effects = ("NoExecute", "NoExecute", "NoExecute", "NoSchedule")
    soft = ("NoSchedule",)

    def classes(self) -> dict[str, Body]:
        driver = f"{self.name}.example.com"
        made = {"low": {"selectors": [by("number < 2", driver)]}, "all": {}}
        return {f"{self.name}-{name}": spec for name, spec in made.items()}

    def rule(self, key: str) -> Body:
        made, driver = super().rule(key), f"{self.name}.example.com"
        selector = made["deviceSelector"]
        if self.changes[self.number % len(self.changes)].startswith("class") or self.chance(0.4):
            selector["deviceClassName"] = f"{self.name}-{self.rng.choice(('low', 'low', 'all', 'new'))}"
            selector.pop("device", None)
        if self.chance(0.4):
            expression = self.rng.choice(("number < 3", "number > 0", "odd", "missing == 1"))
            selector["selectors"] = [by(expression, driver)]
        return made
