"""What may befall the worlds of one scenario, and the drawing of it."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.dialects import DEFAULT, DIALECTS
from mews.emulator.hardware.inventory import ChassisSpec, Hardware
from mews.harness.api_faults.rpcs import PausedRpc
from mews.harness.fuzz.api_faults import API_KINDS, LASTING, SHORT, draw_api_fault, is_short
from mews.harness.fuzz.choices import DrawnDisruption, Entry, WorldPlan
from mews.harness.fuzz.faults import KINDS, PASSING, admits, draw_fault
from mews.harness.scenario.hardware import hardware_of
from mews.harness.scenario.known import KnownNames
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.requirements import comes_in_pods

MOST = 6
"""Choices in one world."""
AWAY_S = (0.0, 1.0, 5.0, 45.0, 120.0)
"""How long a crashed component stays away: within a lease, and longer than any."""
TAILS_S = (60.0, 60.0, 60.0, 400.0)
"""How long a world goes on: some until the longest clocks have run out."""
LONG_TAILS_S = (200.0, 200.0, 400.0)
"""Of worlds with faults that last for a time: all clocks start anew after them."""
LATEST_S = 60.0
"""How long after a step began something may come, at most; most comes close upon it."""
WORDS = ("kill", "fault", "api-fault", "edit", "delete", "force-delete", "replace", "copy")
"""What a choice is, in a word."""
_NEVER_KILLED = ("hosts", "service-names")
"""Components that a run in virtual time has no process of."""


ORDERS = 1000
"""So many orders of what is due at one moment are drawn from."""


class Moments(Struct, frozen=True):
    """When steps of the undisturbed run began (name, "" where it has none; emulated seconds after the first)."""

    begins: tuple[tuple[str, float], ...] = (("", 0.0),)

    def draw(self, rng: random.Random) -> dict[str, Any]:
        """Return a moment: a step that has a name, or the first one, and a time after it."""
        name, began_s = rng.choice(self.begins)
        later_s = rng.choice((0.0, rng.uniform(0, 3), rng.uniform(0, 15), rng.uniform(0, LATEST_S)))
        if name:
            return {"at": round(later_s, 3), "since": name}
        return {"at": round(began_s + later_s, 3)}


class Menu(Struct, frozen=True):
    """What can be drawn for one scenario. ``without``: kinds that are not, as ``kill`` or ``fault slow-operation``."""

    scenario: Scenario
    hardware: Hardware
    components: tuple[str, ...]
    clients: tuple[str, ...]
    objects: tuple[Mapping[str, Any], ...]
    moments: Moments
    without: tuple[str, ...] = ()

    @classmethod
    def of(cls, scenario: Scenario, moments: Moments, without: Sequence[str] = ()) -> Menu:
        """Return what that scenario's hardware, stack and objects let befall it."""
        hardware = hardware_of(scenario)
        known = KnownNames(scenario, hardware, {})
        components = tuple(name for name in known.components if name not in _NEVER_KILLED)
        clients = tuple(
            name for name in known.clients if name not in _NEVER_KILLED and not comes_in_pods(scenario, name)
        )
        return cls(scenario, hardware, components, clients, _pods(scenario), moments, tuple(without))

    def kinds(self) -> list[str]:
        """Return what may be drawn."""
        pooled = any(one.devices for one in self.hardware.chassis)
        wordless = DIALECTS.find(self.scenario.stack.dialect or DEFAULT).wordless
        faults = [f"fault {kind}" for kind in KINDS if admits(kind, self.hardware) and kind not in wordless]
        found = [
            *(["kill"] * (1 + len(faults) // 2) if self.components else ()),
            *faults,
            *(f"api-fault {kind}" for kind in API_KINDS),
            *(["edit", "edit"] if pooled else ()),
            *(["delete", "force-delete", "replace", "copy"] * 2 if self.objects else ()),
        ]
        return [kind for kind in found if not any(kind == no or kind.startswith(f"{no} ") for no in self.without)]

    def draw(self, kind: str, rng: random.Random) -> DrawnDisruption:
        """Return a choice of that kind."""
        word, _, rest = kind.partition(" ")
        return _DRAWN[word](self, rest, rng, self.moments.draw(rng))

    def plan(self, rng: random.Random) -> WorldPlan:
        """Return a world: half of them of nothing but what passes, so that the scenario's own waits can be held against
        it."""
        kinds = self.kinds()
        if rng.random() < 0.5:
            kinds = [kind for kind in kinds if _passes(kind)] or kinds
        count = rng.choice((1, 1, 2, 2, 3, 4, MOST)) if kinds else 0
        choices = tuple(self.draw(rng.choice(kinds), rng) for _ in range(count))
        lasting = any(choice.kind.partition(" ")[2] in LASTING for choice in choices)
        tail_s = rng.choice(LONG_TAILS_S if lasting else TAILS_S)
        return WorldPlan(self.scenario.seed, choices, tail_s, rng.choice((0, 0, 0, rng.randint(1, ORDERS))))

    def changed(self, plan: WorldPlan, rng: random.Random) -> WorldPlan:
        """Return that world with one choice more, less, elsewhere or at another time."""
        choices = list(plan.choices)
        how = rng.choice(("more", "less", "moved", "other"))
        if how == "more" or not choices:
            choices.append(self.draw(rng.choice(self.kinds()), rng))
        else:
            place = rng.randrange(len(choices))
            if how == "less" and len(choices) > 1:
                del choices[place]
            elif how == "moved":
                choices[place] = choices[place].moved(rng.uniform(-10, 10))
            else:
                choices[place] = self.draw(rng.choice(self.kinds()), rng)
        return WorldPlan(plan.seed, tuple(choices[-MOST:]), plan.tail_s, plan.order)


def _passes(kind: str) -> bool:
    word, _, fault = kind.partition(" ")
    return word == "kill" or fault in PASSING or (word == "api-fault" and fault in SHORT)


def _pods(scenario: Scenario) -> tuple[Mapping[str, Any], ...]:
    """Return the pods that the scenario makes itself, as it writes them."""
    made = [*scenario.objects]
    for step in scenario.steps:
        made += [*(step.apply or ()), *(step.create or ())]
    return tuple(obj for obj in made if obj.get("kind") == "Pod" and obj.get("metadata", {}).get("name"))


def _kill(menu: Menu, _: str, rng: random.Random, moment: Entry) -> DrawnDisruption:
    component = rng.choice(menu.components)
    away_s = rng.choice(AWAY_S)
    kind = f"kill {component.partition('/')[0]}"
    if away_s == 0:
        return DrawnDisruption(kind, ({**moment, "restart": component},))
    back = {**moment, "at": round(moment["at"] + away_s, 3)}
    return DrawnDisruption(kind, ({**moment, "kill": component}, {**back, "start": component}))


def _fault(menu: Menu, kind: str, rng: random.Random, moment: Entry) -> DrawnDisruption:
    drawn = draw_fault(kind, menu.hardware, rng)
    where = {"host": drawn.on} if drawn.is_host else {"chassis": drawn.on}
    entry = {**moment, "fault": {**where, "add": dict(drawn.spec)}}
    return DrawnDisruption(f"fault {kind}", (entry,), passing=kind in PASSING)


def _api_fault(menu: Menu, kind: str, rng: random.Random, moment: Entry) -> DrawnDisruption:
    # First which component, then on which node: a node's are many, and no more worth than the one scheduler.
    clients = [name for name in menu.clients if kind != PausedRpc.kind or name.startswith("kubelet/")]
    sort = rng.choice(list(dict.fromkeys(name.partition("/")[0] for name in clients)))
    component = rng.choice([name for name in clients if name.partition("/")[0] == sort])
    spec = draw_api_fault(kind, rng)
    entry = {**moment, "fault": {"component": component, "add": spec}}
    return DrawnDisruption(f"api-fault {kind}", (entry,), passing=is_short(spec))


def _edit(menu: Menu, _: str, rng: random.Random, moment: Entry) -> DrawnDisruption:
    chassis: ChassisSpec = rng.choice([one for one in menu.hardware.chassis if one.devices])
    port = rng.choice([None, *(port for port, host in chassis.ports.items() if host)])
    edit = {"chassis": chassis.name, "device": rng.choice(chassis.devices).id, "port": port}
    return DrawnDisruption("edit", ({**moment, "chassis": {"edit": edit}},), passing=False)


def _target(obj: Mapping[str, Any]) -> dict[str, Any]:
    named = {"kind": "Pod", "name": obj["metadata"]["name"], "wait": False, "missingOk": True}
    namespace = obj["metadata"].get("namespace")
    return named if namespace is None else {**named, "namespace": namespace}


def _delete(menu: Menu, _: str, rng: random.Random, moment: Entry) -> DrawnDisruption:
    return DrawnDisruption("delete", ({**moment, "delete": _target(rng.choice(menu.objects))},), passing=False)


def _force_delete(menu: Menu, _: str, rng: random.Random, moment: Entry) -> DrawnDisruption:
    target = {**_target(rng.choice(menu.objects)), "gracePeriod": 0}
    return DrawnDisruption("force-delete", ({**moment, "delete": target},), passing=False)


def _replace(menu: Menu, _: str, rng: random.Random, moment: Entry) -> DrawnDisruption:
    """Deleted, by force or not, and made anew under the same name."""
    obj = rng.choice(menu.objects)
    force = {"gracePeriod": 0} if rng.random() < 0.7 else {}
    again = {**moment, "at": round(moment["at"] + rng.choice((0.0, 0.5, 5.0)), 3)}
    delete = {**moment, "delete": {**_target(obj), **force, "wait": not force}}
    return DrawnDisruption("replace", (delete, {**again, "apply": dict(obj)}), passing=False)


def _copy(menu: Menu, _: str, rng: random.Random, moment: Entry) -> DrawnDisruption:
    """Return one more pod like one of the scenario's."""
    obj = copy.deepcopy(dict(rng.choice(menu.objects)))
    obj["metadata"] = {**obj["metadata"], "name": f"{obj['metadata']['name']}-copy-{rng.randint(1, 3)}"}
    return DrawnDisruption("copy", ({**moment, "apply": obj},), passing=False)


_DRAWN: Mapping[str, Callable[[Menu, str, random.Random, Entry], DrawnDisruption]] = {
    "kill": _kill,
    "fault": _fault,
    "api-fault": _api_fault,
    "edit": _edit,
    "delete": _delete,
    "force-delete": _force_delete,
    "replace": _replace,
    "copy": _copy,
}
