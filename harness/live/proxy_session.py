"""The session of ``mews proxy``: faults between one program and its API server, and nothing besides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from mews.harness.api_faults.control import ApiFaults
from mews.harness.api_faults.registry import API_FAULTS
from mews.harness.journal import Journal
from mews.harness.live.session import step_of
from mews.harness.live.standing import StandingFault, StandingTroubles
from mews.harness.live.step_answer import StepAnswer
from mews.names import must_be


class ProxySession:
    """``component`` is what the journal calls the program; ``url`` is the server's behind."""

    def __init__(self, name: str, component: str, url: str, faults: ApiFaults, journal: Journal) -> None:
        self.name = name
        self.journal = journal
        self._component = component
        self._url = url
        self._faults = faults
        self._standing = StandingTroubles()
        journal.listen(self._standing.take)

    @property
    def measures(self) -> ProxySession:
        """Itself: nothing measures anything."""
        return self

    def exposing(self) -> Sequence[str]:
        """Return no system."""
        return ()

    async def exposition(self, system: str) -> bytes:
        """Return no measures."""
        self._lacks(f"metrics of {system!r}")

    async def perform(self, given: Mapping[str, Any]) -> StepAnswer:
        """Add or clear a fault; a step that names nobody is about the program.

        Raises ValueError, in one line, for another step.
        """
        action = step_of(self._placed(given)).fault
        if action is None or action.host is not None or (action.add is not None and action.component is None):
            raise ValueError("this session has no cluster: only faults between the program and its API server")
        name = action.component if action.add is not None else action.clear
        known = [self._component, *(["all"] if action.add is None else [])]
        if name not in known:
            raise ValueError(f"component {name!r}: {must_be(str(name), known)}")
        if action.add is None:
            self._faults.clear()
        else:
            await self._faults.add(self._component, action.add)
        return StepAnswer()

    def _placed(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        fault = given.get("fault")
        if not isinstance(fault, dict) or "add" not in fault or fault.get("chassis") != "*":
            return given
        return {**given, "fault": {"component": self._component, "add": fault["add"]}}

    async def faults(self) -> list[StandingFault]:
        """Return those that were added and not cleared."""
        listed = {str(each["fault"]): each for each in self._faults.listed().get(self._component, ())}
        return [each.seen(listed.get(each.number, {})) for each in self._standing.faults.values()]

    async def status(self) -> dict[str, Any]:
        """Return them as that of a cluster, of which nothing is known."""
        return {
            **self.about(),
            "api": self._url,
            "t": round(self.journal.elapsed_s, 3),
            "nodes": {},
            "pods": {},
            "devices": {},
            "down": {},
            "active_faults": [fault.as_dict() for fault in await self.faults() if not fault.ended],
            "operations": 0,
        }

    def about(self) -> dict[str, Any]:
        """Return what it is, and what can be done to it."""
        return {
            "name": self.name,
            "cluster": "proxy",
            "systems": [],
            "components": [self._component],
            "chassis": [],
            "hosts": [],
            "faults": {"chassis": [], "host": [], "component": sorted(API_FAULTS.names())},
        }

    async def snapshot(self, name: str) -> dict[str, Any]:
        """Return no snapshot."""
        self._lacks("snapshot")

    async def restore(self, document: Any) -> list[str]:
        """Return no snapshot."""
        self._lacks("snapshot")

    def go_on(self) -> None:
        """Raise ValueError: it does not stand still."""
        raise ValueError("this session is not stopped; only `mews run --break-at` stops")

    async def explain(self, namespace: str, name: str) -> NoReturn:
        """Raise no explanation."""
        self._lacks(f"explanation of pod {namespace}/{name}")

    def record(self, name: str) -> str:
        """Return no recording."""
        self._lacks("recording")

    async def judged(self) -> NoReturn:
        """Raise no verdict."""
        self._lacks("verdict")

    async def hardware(self) -> dict[str, Any]:
        """Return no hardware."""
        self._lacks("hardware")

    def _lacks(self, what: str) -> NoReturn:
        raise ValueError(f"`mews proxy` starts no cluster and therefore has no {what}")
