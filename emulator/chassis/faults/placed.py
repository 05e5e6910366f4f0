"""What faults have in common in a chassis and in a host: how one is put in place, fires and is told."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from mews.emulator.chassis.faults.bench import ChassisFault
from mews.emulator.chassis.faults.spec import FaultTrigger, parse_fault
from mews.registry import ValueRegistry


class PlacedFault(Protocol):
    """A fault in place, as far as it does not matter where that is."""

    @property
    def id(self) -> str:
        """By which it is cleared."""
        ...

    @property
    def fault(self) -> ChassisFault:
        """What it does."""
        ...

    @property
    def when(self) -> FaultTrigger:
        """When it fires, and how often it did."""
        ...

    @property
    def rng(self) -> random.Random:
        """Its own chance."""
        ...

    @property
    def spec(self) -> Mapping[str, Any]:
        """As it was given."""
        ...

    @property
    def until_s(self) -> float:
        """The emulated time after which it is forgotten."""
        ...


Placed = TypeVar("Placed", bound=PlacedFault)


class FaultParts(Struct, frozen=True):
    """What a fault in place is made of."""

    id: str
    fault: ChassisFault
    when: FaultTrigger
    rng: random.Random
    spec: Mapping[str, Any]
    until_s: float


class FaultPlacer:
    """Numbers the faults of one place, and gives each a chance of its own."""

    def __init__(self, letter: str, registry: ValueRegistry[type[Any]], rng: random.Random) -> None:
        self._letter = letter
        self._registry = registry
        self._rng = rng
        self._numbers = 0

    def parts(
        self, spec: Mapping[str, Any], now_s: float, check: Callable[[ChassisFault, FaultTrigger], None]
    ) -> FaultParts:
        """Return the parts of the next fault; ``check`` refuses devices that are not there.

        Raises ValueError naming what is allowed; then no number is used up.
        """
        fault, when = parse_fault(spec, self._registry)
        check(fault, when)
        self._numbers += 1
        until_s = float("inf") if when.expires_s is None else now_s + when.expires_s
        rng = random.Random(self._rng.getrandbits(64))
        return FaultParts(f"{self._letter}{self._numbers}", fault, when, rng, dict(spec), until_s)


def fires(placed: PlacedFault, now_s: float) -> bool:
    """Return whether a fault that looks at what happens now fires: by count, expiry, skips, and then by chance."""
    when = placed.when
    if when.spent or now_s > placed.until_s:
        return False
    if when.skip > 0:
        when.skip -= 1
        return False
    return when.probability >= 1 or placed.rng.random() < when.probability


def chosen(placed: Sequence[Placed], fault_id: str | None) -> list[Placed]:
    """Return the fault of that ID, or all.

    Raises ValueError for an unknown ID.
    """
    found = [each for each in placed if fault_id in (None, each.id)]
    if fault_id is not None and not found:
        raise ValueError(f"fault {fault_id!r}: active faults are {', '.join(each.id for each in placed) or 'none'}")
    return found


def described(placed: PlacedFault) -> dict[str, Any]:
    """Return a fault for people and programs: fault (its ID), kind, fired, left, may_break, grace_s (null = as long as
    it lasts)."""
    fault, when = placed.fault, placed.when
    return {
        "fault": placed.id,
        "kind": fault.kind,
        "fired": when.fired,
        "left": None if when.count is None else when.count - when.fired,
        "may_break": list(fault.may_break),
        "grace_s": None if fault.grace_s == float("inf") else fault.grace_s,
    }


def declared(placed: PlacedFault) -> dict[str, Any]:
    """Return what is told of a fault that is put in place: fault (its ID), kind, spec (its parameters and conditions as
    they were given) and count (how often it may fire; null for no limit)."""
    return {"fault": placed.id, "kind": placed.fault.kind, "spec": parameters(placed), "count": placed.when.count}


def ending(placed: PlacedFault, now_s: float) -> dict[str, Any]:
    """Return whether it has ended: it has fired as often as it may, or its time is over. ``count`` is how often it may
    fire, ``device`` the one that it is about; both null for no limit."""
    when = placed.when
    return {
        "count": when.count,
        "device": getattr(placed.fault, "device", None) or when.device,
        "ended": when.spent or now_s > placed.until_s,
    }


def parameters(placed: PlacedFault) -> dict[str, Any]:
    """Return its spec without the kind; distributions are written out."""
    return {key: _plain(value) for key, value in placed.spec.items() if key != "kind"}


def _plain(value: Any) -> Any:
    return {type(value).__name__.lower(): asdict(value)} if hasattr(value, "draw") else value
