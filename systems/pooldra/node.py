"""One per node: serves its DRA driver, reports which GPUs the host shows, and lets go of those that are asked for.

A request stands on the node, so an incarnation that begins anew goes on where the last one ended; each step of a
removal may be repeated. A host that has let go of a device says so for that request alone.
"""

from __future__ import annotations

import asyncio

from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object
from mews.kube.api.resources import NODES, RESOURCE_CLAIMS
from mews.kube.client.informer import Informer
from mews.kube.component import Context, record
from mews.kube.divided_gpus import DividedGpus
from mews.kube.dra.driver import DriverComponent
from mews.kube.dra.port import DraLink
from mews.kube.events import EventRecorder
from mews.kube.pulse import Pulse
from mews.kube.system.host_steps import HostPlace, HostSteps, RemovalRefusedError
from mews.systems.pooldra.claims import kept_for, uses_of
from mews.systems.pooldra.config import PoolDraConfig
from mews.systems.pooldra.names import REPORT
from mews.systems.pooldra.node_driver import PoolGpuDriver
from mews.systems.pooldra.records import PoolNodeReport, PoolRefusal, annotation, report_of, requests_of


class PoolNode:
    """Component: one incarnation on one node. ``steps``: None where nobody can let the host go of a device in order:
    it is then let go of once no claim has it."""

    def __init__(
        self,
        context: Context,
        config: PoolDraConfig,
        node: str,
        driver: PoolGpuDriver,
        *,
        link: DraLink,
        steps: HostSteps | None,
        pulse: Pulse,
    ) -> None:
        self._context = context
        self._config = config
        self._node = node
        self._driver = driver
        self._link = link
        self._steps = steps
        self._pulse = pulse
        self._served = DriverComponent(context, driver, link=link, node=node, poll_s=config.poll_s)
        self._nodes = Informer(context.kube, NODES, field_selector=f"metadata.name={node}")
        self._events = EventRecorder(context, "pool-node-driver", node)
        self._reported = DividedGpus(self._events, node)
        self._off: dict[str, str] = {}
        self._refused: dict[str, PoolRefusal] = {}
        self._missing_since_s: dict[str, float] = {}

    async def run(self) -> None:
        """Serve, report and let go, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._nodes.run())
            group.create_task(self._events.run())
            await self._nodes.synced()
            self._recall()
            self._nodes.on_change(self._changed)
            self._driver.watch(self._served.look_again)
            group.create_task(self._served.run())
            while True:
                try:
                    await self._look()
                except (ApiError, UnavailableError) as error:
                    record(self._context.log, "not-reported", node=self._node, error=str(error))
                except OSError as error:
                    record(self._context.log, "host-unread", node=self._node, error=str(error))
                await self._pulse.wait(self._pause_s())

    def _pause_s(self) -> float:
        """Return the seconds until the next look, or until a device that is asked for will not come any more."""
        now_s = self._context.clock.now()
        dues = [since_s + self._config.coming_s - now_s for since_s in self._missing_since_s.values()]
        return min([self._config.poll_s, *(due_s for due_s in dues if due_s > 0)])

    def _recall(self) -> None:
        """What an earlier incarnation has answered stays answered."""
        report = report_of(self._nodes.get(self._node)) or PoolNodeReport()
        self._off, self._refused = dict(report.off), dict(report.refused)
        self._take_requests()

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if requests_of(old) != requests_of(new) or report_of(old) != report_of(new):
            self._pulse.beat()

    def _take_requests(self) -> dict[str, str]:
        """UUID -> request. The driver offers and prepares nothing of it from now on."""
        asked = requests_of(self._nodes.get(self._node))
        if asked is None:
            return {}
        leave = dict(asked.leave)
        self._off = {uuid: request for uuid, request in self._off.items() if leave.get(uuid) == request}
        self._refused = {uuid: each for uuid, each in self._refused.items() if leave.get(uuid) == each.request}
        self._missing_since_s = {uuid: since_s for uuid, since_s in self._missing_since_s.items() if uuid in leave}
        leaving = frozenset(leave) - frozenset(self._refused)
        if frozenset(asked.pool) != self._driver.pool or leaving != self._driver.leaving:
            self._driver.pool, self._driver.leaving = frozenset(asked.pool), leaving
            self._served.look_again()
        return leave

    async def _look(self) -> None:
        for uuid, request in sorted(self._take_requests().items()):
            if uuid not in self._off and uuid not in self._refused:
                await self._let_go(uuid, request)
        await self._report()

    async def _report(self) -> None:
        shown = {uuid: name for uuid, name in self._driver.shown.items() if uuid not in self._off}
        divided = frozenset(self._driver.divided - self._off.keys())
        self._reported.report(divided)
        report = PoolNodeReport(dict(sorted(shown.items())), self._off, self._refused, tuple(sorted(divided)))
        node = self._nodes.get(self._node)
        if node is not None and report_of(node) != report:
            body = {"metadata": {"annotations": {REPORT: annotation(report)}}}
            await self._context.kube.patch(NODES, self._node, body)

    # Letting go

    async def _let_go(self, uuid: str, request: str) -> None:
        """One look at a device that is asked for. Raises ApiError, UnavailableError, OSError."""
        if reason := await self._use(uuid):
            self._refuse(uuid, request, reason)
            return
        place = None if self._steps is None else await self._steps.find(uuid)
        if place is None and self._steps is not None and self._may_come(uuid):
            return
        if place is not None:
            try:
                await self._take_out(place)
            except RemovalRefusedError as refusal:
                self._refuse(uuid, request, str(refusal))
                await self._give_back(uuid)
                return
        self._missing_since_s.pop(uuid, None)
        self._off[uuid] = request
        record(self._context.log, "let-go", device=uuid, request=request)

    async def _use(self, uuid: str) -> str:
        """Return which claim has the device, "" for none: prepared on this node, or given to a pod that comes to it."""
        claims = await self._context.kube.list(RESOURCE_CLAIMS)
        own = self._driver.shown.get(uuid, "")
        return kept_for(uuid, self._node, own, self._link.cdi.files().values(), uses_of(claims.items))

    def _may_come(self, uuid: str) -> bool:
        """Return whether a device that the host does not show may still be on its way up."""
        now_s = self._context.clock.now()
        return now_s - self._missing_since_s.setdefault(uuid, now_s) < self._config.coming_s

    async def _take_out(self, place: HostPlace) -> None:
        assert self._steps is not None, "there are steps to take"
        async with self._driver.nvml_lock:
            await self._steps.take_out(place)

    async def _give_back(self, uuid: str) -> None:
        place = None if self._steps is None else await self._steps.find(uuid)
        if self._steps is not None and place is not None:
            await self._steps.undrain(place, persistence=False)

    def _refuse(self, uuid: str, request: str, reason: str) -> None:
        record(self._context.log, "kept", device=uuid, request=request, reason=reason)
        self._refused[uuid] = PoolRefusal(request, reason)
        self._take_requests()
