"""Attaches and detaches by the chassis' API. What a reply says is noted; what the table says counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from mews.kube.chassis.port import ChassisApi, ChassisError, ChassisReply, ReplyOutcome
from mews.kube.clock import rest
from mews.kube.component import Context, record
from mews.systems.pooldra.config import PoolDraConfig
from mews.systems.pooldra.table import BelievedTable


class ChassisMover:
    """Attaches and detaches devices of one chassis. Operations may be repeated: what is already so is refused by the
    chassis and read back."""

    def __init__(self, context: Context, config: PoolDraConfig, chassis: ChassisApi, table: BelievedTable) -> None:
        self._context = context
        self._config = config
        self._chassis = chassis
        self._table = table

    async def read(self) -> bool:
        """Read the table once; whether an answer came."""
        try:
            async with asyncio.timeout(self._config.chassis_timeout_s):
                listing = await self._chassis.resources()
        except (ChassisError, TimeoutError) as error:
            record(self._context.log, "chassis-read-failed", error=str(error) or "timeout")
            return False
        self._table.take(listing)
        return True

    async def attach(self, device: str, port: str) -> str | None:
        """Put a free device on a port; the port on which the table has it at last."""
        return await self._carry_out("attach", device, self._chassis.attach(device, port), before=None)

    async def detach(self, device: str, port: str) -> str | None:
        """Take a device off its port; the port on which the table has it at last."""
        return await self._carry_out("detach", device, self._chassis.detach(device), before=port)

    async def _carry_out(
        self, operation: str, device: str, call: Awaitable[ChassisReply], *, before: str | None
    ) -> str | None:
        try:
            async with asyncio.timeout(self._config.chassis_timeout_s):
                reply = await call
        except TimeoutError:
            reply = ChassisReply(ReplyOutcome.UNKNOWN, f"no answer within {self._config.chassis_timeout_s:g} s")
        record(self._context.log, f"{operation}-replied", device=device, outcome=reply.outcome, remark=reply.remark)
        # One that was not answered may take effect for as long as another one may take.
        unknown = reply.outcome is ReplyOutcome.UNKNOWN
        bound_s = self._config.chassis_timeout_s if unknown else self._config.read_back_s
        port = await self._read_back(device, before, bound_s)
        record(self._context.log, f"{operation}-read-back", device=device, port=port)
        return port

    async def _read_back(self, device: str, before: str | None, bound_s: float) -> str | None:
        """Readings that fail or lack the device say nothing: one that has it is waited for beyond the bound."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + bound_s
        shown = False
        while True:
            if await self.read() and not self._table.lacked(device):
                shown = True
                if self._port(device) != before:
                    return self._port(device)
            is_late = loop.time() >= deadline_s
            if is_late and shown:
                return self._port(device)
            await (rest if is_late else asyncio.sleep)(self._config.read_back_poll_s)

    def _port(self, device: str) -> str | None:
        found = self._table.devices.get(device)
        return None if found is None else found.port
