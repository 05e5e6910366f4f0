"""The faults between the components of one cluster and its API: put in place, told to the journal, and taken away."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any, cast

from mews.emulator.chassis.faults.placed import declared, described
from mews.harness.api_faults.board import ApiFaultBoard, ArmedApiFault
from mews.harness.api_faults.faulty_kube import FaultyKube
from mews.harness.api_faults.plans import ApiRequest, EventPlan, RequestPlan
from mews.harness.api_faults.processes import FrozenProcess
from mews.harness.api_faults.registry import parse_api_fault
from mews.harness.api_faults.rpcs import PausedRpc, RpcGate
from mews.harness.journal import Journal
from mews.kube.api.resources import NAMESPACES
from mews.kube.client.port import KubeApi
from mews.kube.clock import Pace
from mews.names import must_be

Freeze = Callable[[str, bool], bool]
"""Stops a component's process, or lets it go on; False where it has none of its own."""


class ApiFaults:
    """Those of one cluster, for the components whose API is ``around``; ``kube`` tells which version it is at."""

    def __init__(
        self,
        kube: KubeApi,
        journal: Journal,
        pace: Pace,
        rng: random.Random,
        freeze: Freeze = lambda component, frozen: False,
    ) -> None:
        self._freeze = freeze
        self._kube = kube
        self._journal = journal
        self._pace = pace
        self._clients: set[str] = set()
        self._gates: set[str] = set()
        self._board = ApiFaultBoard(rng, self._on_fired)
        self._endings: dict[str, asyncio.TimerHandle] = {}
        self._waiting: list[asyncio.Future[None]] = []

    def stand_between(self, component: str) -> None:
        """From now on that component may have faults: a proxy stands between it and the API."""
        self._clients.add(component)

    def around(self, component: str, kube: KubeApi) -> KubeApi:
        """Return the API as that component sees it."""
        self._clients.add(component)
        return cast(KubeApi, FaultyKube(kube, component, self))

    def gate(self, component: str) -> RpcGate:
        """Return where that component's RPCs pass."""
        self._clients.add(component)
        self._gates.add(component)
        return RpcGate(self, component)

    def clients(self) -> list[str]:
        """Return the components that may have faults, sorted."""
        return sorted(self._clients)

    async def add(self, component: str, spec: Mapping[str, Any], *, version: str | None = None) -> str:
        """Put a fault in place and return its ID. ``version``: that of the cluster now, where it is known.

        Raises ValueError naming what is allowed.
        """
        if component not in self._clients:
            raise ValueError(f"component {component!r}: {must_be(component, self.clients())}")
        if spec.get("kind") == FrozenProcess.kind:
            parse_api_fault(spec)
            if not self._freeze(component, True):
                raise ValueError(f"fault {FrozenProcess.kind}: {component} is not a running program")
        if spec.get("kind") == PausedRpc.kind and component not in self._gates:
            among = must_be(component, sorted(self._gates))
            raise ValueError(f"fault {PausedRpc.kind}: {component} has no RPCs: {among}")
        version = version or (await self._kube.list(NAMESPACES, limit=1)).resource_version
        armed = self._board.add(component, spec, self._pace.now(), version)
        self._write(armed, "added", **declared(armed))
        if armed.when.expires_s is not None:
            ends_in_s = self._pace.loop_s(armed.when.expires_s)
            loop = asyncio.get_running_loop()
            self._endings[armed.id] = loop.call_later(ends_in_s, self._clear, component, armed.id)
        self._changed()
        return armed.id

    def clear(self, component: str | None = None) -> None:
        """Take away those of one component, or all."""
        self._clear(component, None)

    def _clear(self, component: str | None, fault_id: str | None) -> None:
        for armed in self._board.clear(component, fault_id):
            ending = self._endings.pop(armed.id, None)
            if ending is not None:
                ending.cancel()
            self._write(armed, "cleared", fault=armed.id, kind=armed.fault.kind)
            if isinstance(armed.fault, FrozenProcess) and not self._board.freezes(armed.component, self._pace.now()):
                self._freeze(armed.component, False)
        self._changed()

    def listed(self) -> dict[str, list[dict[str, Any]]]:
        """Component -> the faults in place there, as a chassis lists its own."""
        return self._board.listed(self._pace.now())

    def close(self) -> None:
        """Forget the timers."""
        for ending in self._endings.values():
            ending.cancel()
        self._endings.clear()

    # What the components' clients ask

    def strikes(self, component: str) -> bool:
        """Return whether any fault is in place there."""
        return self._board.strikes(component)

    def on_request(self, component: str, request: ApiRequest) -> RequestPlan:
        """Return what becomes of a request; ``hold_s`` in seconds of the loop."""
        plan = self._board.on_request(component, request, self._pace.now())
        if not plan.hold_s:
            return plan
        return RequestPlan(self._pace.loop_s(plan.hold_s), plan.is_forwarded, plan.failure, plan.version)

    async def hold(self, component: str, request: ApiRequest, hold_s: float) -> None:
        """Hold a request so long, in seconds of the loop; infinite: until what holds it ends."""
        if hold_s < float("inf"):
            await asyncio.sleep(hold_s)
            return
        while self._board.holds(component, request, self._pace.now()):
            await self._change(hold_s)

    def opened(self) -> int:
        """Return a number for a watch that begins."""
        return self._board.opened()

    def on_event(self, component: str, request: ApiRequest, watch: int) -> EventPlan:
        """Return what becomes of an event that is due."""
        return self._board.on_event(component, request, watch, self._pace.now())

    async def release(self, component: str, request: ApiRequest, watch: int, arrived_s: float) -> None:
        """Wait until an event that arrived at that time of the loop may go on."""
        arrived = arrived_s * self._pace.speed
        while True:
            now_s = self._pace.now()
            due_s = self._board.release_s(component, request, watch, arrived, now_s)
            if due_s <= now_s:
                return
            await self._change(self._pace.loop_s(due_s - now_s))

    async def _change(self, within_s: float) -> None:
        """Wait until a fault comes or goes, at most so long."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting.append(waiter)
        timer = None if within_s == float("inf") else loop.call_later(within_s, _resolve, waiter)
        try:
            await waiter
        finally:
            if timer is not None:
                timer.cancel()
            if waiter in self._waiting:
                self._waiting.remove(waiter)

    def _changed(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            _resolve(waiter)

    def _on_fired(self, armed: ArmedApiFault, request: ApiRequest) -> None:
        shown = {key: value for key, value in described(armed).items() if key in ("fault", "kind", "fired", "left")}
        resource = "/".join(filter(None, (request.resource, request.subresource)))
        self._write(armed, "fired", **shown, verb=request.verb, resource=resource)

    def _write(self, armed: ArmedApiFault, event: str, **fields: Any) -> None:
        """A fault that has a count hinders from each time that it fires on; another one as long as it is there."""
        counts = armed.when.count is not None
        if event == "fired":
            fields["excuses"] = {}
        if counts == (event == "fired") or event == "cleared":
            fields["hinders_s"] = None if event == "added" else armed.fault.grace_s
        self._journal.write("fault", armed.component, event, **fields)


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
