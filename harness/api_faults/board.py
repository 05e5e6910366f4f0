"""The faults in place between components and the API, and what they decide. Pure: time and chance are given.

Seconds are emulated ones, except within the plans that come out: whoever acts on them paces them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct, field

from mews.emulator.chassis.faults.bench import ChassisFault
from mews.emulator.chassis.faults.placed import chosen, described, ending, fires, parameters
from mews.emulator.chassis.faults.spec import FaultTrigger
from mews.harness.api_faults.plans import UNTOUCHED, ApiRequest, EventPlan, RequestPlan
from mews.harness.api_faults.processes import FrozenProcess
from mews.harness.api_faults.registry import parse_api_fault


@runtime_checkable
class StrikesRequests(Protocol):
    """A fault of requests."""

    def strike(self, request: ApiRequest) -> RequestPlan:
        """Decide what becomes of it."""
        ...


@runtime_checkable
class StrikesEvents(Protocol):
    """A fault of the events of watches."""

    def event(self) -> EventPlan:
        """Decide what becomes of one."""
        ...


@runtime_checkable
class DelaysEvents(Protocol):
    """A fault by which events of watches come late."""

    def lag_s(self, rng: random.Random) -> float:
        """Return it by how much those of one watch do, in emulated seconds; infinite: as long as the fault is there."""
        ...


@runtime_checkable
class ShowsThePast(Protocol):
    """A fault of gets and lists."""

    def read(self, version: str) -> RequestPlan:
        """Decide what one shows; ``version`` is that of the cluster when the fault was added."""
        ...


class ArmedApiFault(Struct, eq=False):
    """A fault in place. ``version``: that of the cluster when it was added."""

    id: str
    component: str
    fault: ChassisFault
    when: FaultTrigger
    rng: random.Random
    spec: Mapping[str, Any]
    until_s: float
    version: str = ""
    lags: dict[int, float] = field(default_factory=dict)
    """Watch -> by how much its events are late."""
    seen: set[int] = field(default_factory=set)
    """Watches on which it has fired, of a fault that counts watches and not events."""

    def is_over(self, now_s: float) -> bool:
        """Return whether it strikes no more."""
        return self.when.spent or now_s > self.until_s

    def admits(self, request: ApiRequest) -> bool:
        """Return whether the request is one that it looks at."""
        if request.verb not in self.fault.on or self.when.operation not in (None, request.verb):
            return False
        return request.is_of(getattr(self.fault, "resource", None))


Report = Callable[[ArmedApiFault, ApiRequest], None]
"""Called as a fault has fired."""


class ApiFaultBoard:
    """Adds, lists, fires and clears the faults of all components."""

    def __init__(self, rng: random.Random, on_fired: Report) -> None:
        self._rng = rng
        self._on_fired = on_fired
        self._armed: dict[str, list[ArmedApiFault]] = {}
        self._numbers = 0
        self._watches = 0

    def strikes(self, component: str) -> bool:
        """Return whether any fault is in place there: asked before each request."""
        return component in self._armed

    def add(self, component: str, spec: Mapping[str, Any], now_s: float, version: str = "") -> ArmedApiFault:
        """Put a fault in place.

        Raises ValueError naming what is allowed.
        """
        fault, when = parse_api_fault(spec)
        self._numbers += 1
        until_s = float("inf") if when.expires_s is None else now_s + when.expires_s
        rng = random.Random(self._rng.getrandbits(64))
        armed = ArmedApiFault(f"a{self._numbers}", component, fault, when, rng, dict(spec), until_s, version)
        self._armed.setdefault(component, []).append(armed)
        return armed

    def clear(self, component: str | None = None, fault_id: str | None = None) -> list[ArmedApiFault]:
        """Take away one fault, those of one component, or all; what was taken away.

        Raises ValueError for an unknown ID.
        """
        found = [each for each in self._all() if component in (None, each.component)]
        gone = chosen(found, fault_id)
        for armed in gone:
            kept = [each for each in self._armed[armed.component] if each is not armed]
            if kept:
                self._armed[armed.component] = kept
            else:
                del self._armed[armed.component]
        return gone

    def listed(self, now_s: float) -> dict[str, list[dict[str, Any]]]:
        """Component -> the faults in place there, as a chassis lists its own."""
        return {
            component: [{**described(each), "spec": parameters(each), **ending(each, now_s)} for each in armed]
            for component, armed in sorted(self._armed.items())
        }

    def freezes(self, component: str, now_s: float) -> bool:
        """Return whether the component's process must be stopped now."""
        armed = self._armed.get(component, ())
        return any(isinstance(each.fault, FrozenProcess) and not each.is_over(now_s) for each in armed)

    def _all(self) -> Iterator[ArmedApiFault]:
        for armed in self._armed.values():
            yield from armed

    def _of(self, request: ApiRequest, component: str, now_s: float) -> list[ArmedApiFault]:
        armed = self._armed.get(component, ())
        return [each for each in armed if not each.is_over(now_s) and each.admits(request)]

    # Decisions

    def on_request(self, component: str, request: ApiRequest, now_s: float) -> RequestPlan:
        """Return what becomes of a request."""
        plan = UNTOUCHED
        for armed in self._of(request, component, now_s):
            if isinstance(armed.fault, StrikesRequests):
                if plan.failure is None and fires(armed, now_s):
                    plan = plan.joined(armed.fault.strike(request))
                    self._fired(armed, request)
            elif isinstance(armed.fault, ShowsThePast) and _reads(request) and fires(armed, now_s):
                plan = plan.joined(armed.fault.read(armed.version))
                self._fired(armed, request)
        return plan

    def holds(self, component: str, request: ApiRequest, now_s: float) -> bool:
        """Return whether a fault holds such a request as long as it is there."""
        armed = self._of(request, component, now_s)
        faults = [each.fault for each in armed if isinstance(each.fault, StrikesRequests)]
        return any(fault.strike(request).hold_s == float("inf") for fault in faults)

    def opened(self) -> int:
        """Return a number for a watch that begins."""
        self._watches += 1
        return self._watches

    def release_s(self, component: str, request: ApiRequest, watch: int, arrived_s: float, now_s: float) -> float:
        """Return when an event of a watch that arrived then may go on to the component; infinite as long as it is
        held."""
        due_s = arrived_s
        for armed in self._of(request, component, now_s):
            if isinstance(armed.fault, DelaysEvents):
                if watch not in armed.lags:
                    is_late = fires(armed, now_s)
                    armed.lags[watch] = armed.fault.lag_s(armed.rng) if is_late else 0.0
                    if is_late:
                        self._fired(armed, request)
                due_s = max(due_s, arrived_s + armed.lags[watch])
        return due_s

    def on_event(self, component: str, request: ApiRequest, watch: int, now_s: float) -> EventPlan:
        """Return what becomes of an event of a watch that is due."""
        copies = 0
        for armed in self._of(request, component, now_s):
            if not isinstance(armed.fault, StrikesEvents):
                continue
            plan = armed.fault.event()
            if plan.ends:
                if fires(armed, now_s):
                    self._fired(armed, request)
                    return plan
            elif watch in armed.seen or fires(armed, now_s):
                copies += plan.copies
                if watch not in armed.seen:
                    armed.seen.add(watch)
                    self._fired(armed, request)
        return EventPlan(copies=copies)

    def _fired(self, armed: ArmedApiFault, request: ApiRequest) -> None:
        armed.when.fired += 1
        self._on_fired(armed, request)


def _reads(request: ApiRequest) -> bool:
    return request.verb in ("get", "list") or request.shows_all
