"""Carries out one move on the chassis. What a reply says is noted; what the table says counts (contract chassis.md 2).

The table drives it: on the origin port the device is detached, on no port attached, on the target port the move is
done, on any other port somebody else took it. So it can be begun anywhere, again and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum

from mews.kube.chassis.port import ChassisApi, ChassisReply, ReplyOutcome
from mews.kube.clock import rest
from mews.kube.component import Context, record
from mews.systems.kubecomp.config import Timing
from mews.systems.kubecomp.metrics import KubeCompCounter, KubeCompMetrics
from mews.systems.kubecomp.reader import ChassisReader
from mews.systems.kubecomp.records import Intent


class End(StrEnum):
    """How a move ended."""

    MOVED = "moved"
    RETURNED = "returned"
    """It could not be attached to the target and is back on its origin."""
    REFUSED = "refused"
    """It is or may be in use, and stays on its origin."""
    FAILED = "failed"
    """It could not be detached and stays on its origin."""
    TAKEN = "taken"
    """Another editor put it elsewhere, or it fell out of the chassis."""
    STUCK = "stuck"
    """It is on no port and no attach succeeds; the intent stays open."""


MayDetach = Callable[[], Awaitable[bool]]


def _end(intent: Intent, port: str | None) -> End:
    if port is not None and port == intent.target:
        return End.MOVED
    return End.RETURNED if port is not None and port == intent.origin else End.TAKEN


class Mover:
    """Moves devices of one pool, one at a time."""

    def __init__(
        self,
        context: Context,
        chassis: Mapping[str, ChassisApi],
        reader: ChassisReader,
        *,
        timing: Timing,
        metrics: KubeCompMetrics,
        reads_back: bool = True,
        goes_back: bool = True,
    ) -> None:
        self._reads_back = reads_back
        self._goes_back = goes_back
        self._context = context
        self._chassis = chassis
        self._reader = reader
        self._timing = timing
        self._metrics = metrics

    async def carry_out(
        self,
        intent: Intent,
        may_detach: MayDetach,
        *,
        go_back: bool = False,
        tries: int | None = None,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> End:
        """Bring the device from wherever it is to the target port, or to its origin first with ``go_back``.

        ``tries`` of each attach, where it is not the configuration's number. ``is_wanted`` is asked once the device is
        detached: one that nobody wants any more is turned back.
        """
        port = self._port(intent)
        if port is not None and port == intent.origin and port != intent.target:
            end, port = await self._detach(intent, may_detach)
            if end is not None:
                return end
            go_back = go_back or not is_wanted()
        if port is not None or self._is_gone(intent):
            return _end(intent, port)
        ways = (intent.origin, intent.target) if go_back else (intent.target, intent.origin)
        if not self._goes_back:
            ways = (intent.target, None)
        for way in ways:
            port = await self._attach(intent, way, tries or self._timing.retries) if way is not None else None
            if port is not None or self._is_gone(intent):
                return _end(intent, port)
        return End.STUCK

    async def await_late_detach(self, intent: Intent) -> None:
        """An earlier incarnation's detach may still be under way: give it its time to show."""
        await self.read_back(intent, lambda port: intent.origin is None or port != intent.origin)

    async def _detach(self, intent: Intent, may_detach: MayDetach) -> tuple[End | None, str | None]:
        """(None, the port it is on) once the device is off its origin. Before it is said to stay there, a detach that
        was not answered gets the time of another one: its node would lose the device when that comes late."""
        is_open = False
        for attempt in range(self._timing.retries):
            await self._pause(attempt)
            if not await may_detach():
                return await self._undetached(intent, End.REFUSED, is_open=is_open)
            reply = await self._call(self._chassis[intent.chassis].detach(intent.device))
            self._note("detach", intent, reply, intent.origin)
            port = await self.settled_port(intent, reply, before=intent.origin, wanted=None)
            if port != intent.origin:
                return None, port
            is_open = is_open or reply.outcome is ReplyOutcome.UNKNOWN
        return await self._undetached(intent, End.FAILED, is_open=is_open)

    async def _undetached(self, intent: Intent, end: End, *, is_open: bool) -> tuple[End | None, str | None]:
        if is_open and self._reads_back:
            bound_s = self._timing.chassis_timeout_s
            port = await self.read_back(intent, lambda port: port != intent.origin, bound_s=bound_s)
            if port != intent.origin:
                return None, port
        return end, intent.origin

    async def _attach(self, intent: Intent, target: str, tries: int) -> str | None:
        """Return the port it is on at last."""
        for attempt in range(tries):
            await self._pause(attempt)
            reply = await self._call(self._chassis[intent.chassis].attach(intent.device, target))
            self._note("attach", intent, reply, target)
            port = await self.settled_port(intent, reply, before=None, wanted=target)
            if port is not None or self._is_gone(intent):
                return port
        return None

    async def settled_port(
        self, intent: Intent, reply: ChassisReply, *, before: str | None, wanted: str | None
    ) -> str | None:
        """Return where the device is after an operation. The reply may lie, so the table alone is asked; the published
        code takes any answer for what it wanted."""
        if not self._reads_back:
            return wanted
        return await self.read_back(intent, lambda port: port != before)

    async def _pause(self, attempt: int) -> None:
        if attempt:
            self._metrics.count(KubeCompCounter.RETRIES)
            await asyncio.sleep(self._timing.retry_backoff_s * 2 ** (attempt - 1))

    async def _call(self, operation: Awaitable[ChassisReply]) -> ChassisReply:
        try:
            async with asyncio.timeout(self._timing.chassis_timeout_s):
                return await operation
        except TimeoutError:
            return ChassisReply(ReplyOutcome.UNKNOWN, f"no answer within {self._timing.chassis_timeout_s:g} s")

    async def read_back(
        self, intent: Intent, is_changed: Callable[[str | None], bool], *, bound_s: float | None = None
    ) -> str | None:
        """Read the device's chassis until its table shows the change or the bound (``read_back_bound_s``, if no other
        is given) has passed; the port it shows.

        Readings that fail, or lack the device, say nothing: one that shows it is waited for beyond the bound too.
        """
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + (self._timing.read_back_bound_s if bound_s is None else bound_s)
        shown = False
        while True:
            if await self._reader.read(intent.chassis) and not self._reader.lacked(intent.chassis, intent.device):
                shown = True
                if self._is_gone(intent) or is_changed(self._port(intent)):
                    break
            late = loop.time() >= deadline_s
            if late and shown:
                break
            await (rest if late else asyncio.sleep)(self._timing.read_back_poll_s)
        record(self._context.log, "read-back", device=intent.gpuid, port=self._port(intent))
        return self._port(intent)

    def _port(self, intent: Intent) -> str | None:
        found = self._reader.device(intent.chassis, intent.device)
        return found.port if found else None

    def _is_gone(self, intent: Intent) -> bool:
        return self._reader.device(intent.chassis, intent.device) is None

    def _note(self, operation: str, intent: Intent, reply: ChassisReply, port: str | None) -> None:
        record(
            self._context.log,
            f"{operation}-replied",
            device=intent.gpuid,
            port=port,
            outcome=reply.outcome.value,
            remark=reply.remark,
        )
