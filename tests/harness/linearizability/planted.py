"""Histories of two to four clients at one emulated chassis, with one answer wrong in each, and how many are found."""

from __future__ import annotations

import functools
import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import yaml
from msgspec.structs import replace

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.chassis.errors import AlreadyAttachedError
from mews.emulator.chassis.operation import Operation, OperationKind
from mews.emulator.hardware.inventory import ChassisSpec
from mews.emulator.hardware.latency import Uniform
from mews.emulator.inventory.reading import parse_hardware
from mews.harness.catalogue.files import shipped
from mews.harness.linearizability.checker import not_linearizable
from mews.harness.linearizability.lookup import LookupAnswer, LookupCall, LookupKind

CALLS = 40
DEVICES = ("000500", "000600")
PORTS = ("1", "2")
PAUSE_S = 6.0
"""Between what a client read back and its next write, on average; a write takes 1 to 3 s, and queues."""


@functools.cache
def _spec() -> ChassisSpec:
    path = shipped("hardware", "unattached")
    [spec] = parse_hardware(yaml.safe_load(path.read_text()), str(path)).chassis
    write, read = Uniform(1.0, 3.0), Uniform(0.2, 1.0)
    return replace(spec, profile=replace(spec.profile, attach=write, detach=write, read=read))


@dataclass
class World:
    """One history as it is made. ``plants`` is asked once about each answer, until it says that it changed one."""

    rng: random.Random
    plants: Callable[[World, Operation, LookupCall], LookupCall | None] = lambda world, operation, call: None
    calls: list[LookupCall] = field(default_factory=list)
    before: dict[str, list[tuple[float, str | None]]] = field(default_factory=dict)
    planted: LookupCall | None = None

    def __post_init__(self) -> None:
        self.box = EmulatedChassis(_spec(), random.Random(self.rng.random()))
        self.box.events.listen(self._moved)
        self.before = {device: [(0.0, None)] for device in DEVICES}

    def _moved(self, event) -> None:
        if event.event == "table-changed":
            self.before[event.fields["device"]].append((event.t, event.fields["new_port"]))

    def play(self, clients: int) -> list[LookupCall]:
        """Let so many clients write and read back, each on its own, as one that takes no reply for the truth does."""
        queue: list[tuple[float, int, str]] = [(self.rng.uniform(0.0, 2.0), client, "") for client in range(clients)]
        waiting: list[tuple[float, int, Operation, LookupCall]] = []
        number = 0
        while queue or waiting:
            if waiting and (not queue or waiting[0][0] <= queue[0][0]):
                ended_s, _, operation, call = heapq.heappop(waiting)
                self._answered(operation, call, ended_s)
                if number < CALLS:
                    reads_back = call.device if call.kind is not LookupKind.READ else ""
                    pause_s = 0.1 if reads_back else self.rng.expovariate(1 / PAUSE_S)
                    heapq.heappush(queue, (ended_s + pause_s, int(call.client), reads_back))
                continue
            begun_s, client, reads_back = heapq.heappop(queue)
            number += 1
            operation, call = self._ask(number, str(client), begun_s, reads_back)
            heapq.heappush(waiting, (operation.answer_s, number, operation, call))
        return self.calls

    def _ask(self, number: int, client: str, t: float, reads_back: str) -> tuple[Operation, LookupCall]:
        kind = self.rng.choice((LookupKind.ATTACH, LookupKind.ATTACH, LookupKind.DETACH))
        device, port = reads_back or self.rng.choice(DEVICES), self.rng.choice(PORTS)
        kind = LookupKind.READ if reads_back else kind
        if kind is LookupKind.ATTACH:
            return self.box.begin_attach(device, port, t), LookupCall(number, client, device, kind, t, t, port)
        if kind is LookupKind.DETACH:
            return self.box.begin_detach(device, t), LookupCall(number, client, device, kind, t, t)
        return self.box.begin_read(t), LookupCall(number, client, device, kind, t, t)

    def _answered(self, operation: Operation, call: LookupCall, t: float) -> None:
        answer = self.box.finish(operation, t)
        call = replace(call, ended_s=t)
        if operation.kind is OperationKind.READ:
            [port] = [row.port for row in answer.rows if row.device == call.device]
            call = replace(call, port=port)
        elif isinstance(answer.refusal, AlreadyAttachedError):
            call = replace(call, answer=LookupAnswer.REFUSED)
        wrong = None if self.planted is not None else self.plants(self, operation, call)
        if wrong is not None:
            self.planted = call = wrong
        self.calls.append(call)


def _draws(world: World) -> bool:
    return world.rng.random() < 0.2


def refused_attach_accepted(world, operation, call):
    if call.answer is LookupAnswer.REFUSED and _draws(world):
        return replace(call, answer=LookupAnswer.DONE)
    return None


def accepted_attach_refused(world, operation, call):
    if call.kind is LookupKind.ATTACH and call.answer is LookupAnswer.DONE and _draws(world):
        return replace(call, answer=LookupAnswer.REFUSED)
    return None


def _undone(kind):
    def undo(world, operation, call):
        """It is taken back behind the client that was told it is done."""
        changes = world.before[call.device]
        mine = call.kind is kind and call.answer is LookupAnswer.DONE and changes[-1][0] >= call.begun_s
        if (
            mine
            and len(changes) > 1
            and changes[-1][1] == call.port
            and not world.box.operations.pending()
            and _draws(world)
        ):
            world.box.edits.edit(call.device, changes[-2][1], world.box.now_s)
            return call
        return None

    return undo


def stale_read(world, operation, call):
    older = [port for t, port in world.before[call.device] if t < call.begun_s]
    if call.kind is LookupKind.READ and len(older) > 1 and older[-2] != call.port and _draws(world):
        return replace(call, port=older[-2])
    return None


PLANTED = {
    "refused attach accepted": refused_attach_accepted,
    "accepted attach refused": accepted_attach_refused,
    "lost update: attach": _undone(LookupKind.ATTACH),
    "lost update: detach": _undone(LookupKind.DETACH),
    "stale read": stale_read,
}


def found(plants, histories, seed=1):
    """Of so many histories in which it was planted, in how many the checker finds a wrong answer."""
    rng, count, good = random.Random(seed), 0, 0
    while count < histories:
        world = World(random.Random(rng.random()), plants)
        calls = world.play(rng.randint(2, 4))
        if world.planted is not None:
            count += 1
            good += bool(not_linearizable(calls, dict.fromkeys(DEVICES)))
    return good
