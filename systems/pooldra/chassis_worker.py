"""The pool driver's work on one chassis: look, offer, say, and carry out one operation at a time.

A chassis has one management processor, so operations wait for each other there anyway; what claims and nodes are told
does not wait for them.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator

from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.chassis.port import ChassisApi
from mews.kube.client.informer import Informer
from mews.kube.clock import rest
from mews.kube.component import Context, record
from mews.kube.pulse import Pulse
from mews.systems.pooldra import policy
from mews.systems.pooldra.asks import StandingRequests
from mews.systems.pooldra.claims import ClaimCondition
from mews.systems.pooldra.config import PoolChassis, PoolDraConfig
from mews.systems.pooldra.mover import ChassisMover
from mews.systems.pooldra.names import ATTACH_FAILED, ATTACHED, REALLOCATE, HandOver
from mews.systems.pooldra.policy import Act, Decision, Memory, PoolLimits, Situation
from mews.systems.pooldra.table import BelievedTable
from mews.systems.pooldra.view import ChassisView, KnownUses
from mews.systems.pooldra.writers import ConditionWriter, PoolSliceWriter

_RETRY_S = 1.0
_LAST_RETRY_S = 30.0
_HARDWARE = frozenset({policy.ATTACH_FAILED, policy.NOT_SHOWN, policy.DIVIDED})
"""Failures after which the device is not offered for a while."""


class ChassisWorker:
    """Moves devices of one chassis as claims and nodes want them, in one incarnation of the pool driver."""

    def __init__(
        self,
        context: Context,
        config: PoolDraConfig,
        chassis: PoolChassis,
        *,
        api: ChassisApi,
        uses: KnownUses,
        nodes: Informer,
        slices: Informer,
        asks: StandingRequests,
    ) -> None:
        self._context = context
        self._config = config
        self._chassis = chassis
        self.knows = frozenset({chassis.pool, *chassis.ports})
        """The pools whose devices it hears of: the chassis' own, and those of the nodes that are cabled to it."""
        self._asks = asks
        self._limits = PoolLimits(config.keep_s, config.appear_s, config.tries)
        self._table = BelievedTable(config.vanish_reads)
        self._mover = ChassisMover(context, config, api, self._table)
        self._uses = uses
        self._view = ChassisView(config, chassis, self._table, nodes=nodes, slices=slices, asks=asks)
        self._claim_writer = ConditionWriter(context)
        self._slice_writer = PoolSliceWriter(context, config, chassis, slices)
        self._memories: dict[str, Memory] = {}
        self._moving: tuple[str, asyncio.Task[None]] | None = None
        self._read_at_s = -math.inf
        self._due_s = -math.inf
        """When a clock of a device or of a node runs out: there is something to decide then."""
        self._decided_on = -1
        """The table's changes that the last round knew."""
        self._pulse = Pulse()

    def look_again(self) -> None:
        """Something changed on the API."""
        self._pulse.beat()

    async def run(self) -> None:
        """Serve until cancelled."""
        is_news = True
        async with asyncio.TaskGroup() as group:
            while True:
                await self._read()
                if self._table.is_known and (is_news or self._is_due()):
                    try:
                        await self._round(group)
                    except (ApiError, UnavailableError) as error:
                        record(self._context.log, "interrupted", chassis=self._chassis.name, error=str(error))
                        await rest(_RETRY_S)
                        is_news = True
                        continue
                is_news = await self._pulse.wait(self._pause_s())

    async def _read(self) -> None:
        if self._now() - self._read_at_s >= self._config.pool_poll_s and self._moving is None:
            self._read_at_s = self._now()
            await self._mover.read()

    def _is_due(self) -> bool:
        """Return whether there is something to decide though nothing happened on the API."""
        return self._table.changes != self._decided_on or self._now() >= self._due_s

    async def _round(self, group: asyncio.TaskGroup) -> None:
        self._decided_on = self._table.changes
        uses = self._uses.all()
        situations = self._view.situations(uses, self._now())
        if not self._memories:
            offered, until_s = self._slice_writer.offered(), self._now() + self._config.chassis_timeout_s
            for each in situations:
                policy.recall(self._memory(each), each, offered, until_s)
        now_s = self._now()
        for each in situations:
            policy.remember(self._memory(each), each, now_s)
        self._list_pool(situations)
        decisions = [(each, self._decide(each, now_s)) for each in situations]
        unready = policy.unready(decisions)
        # Slices first: a device that a claim is said to have on its node is to be found there.
        await self._slice_writer.write(situations, self._memories, self._now())
        for situation, decision in decisions:
            if not (self._is_released(decision) and decision.use and decision.use.uid in unready):
                await self._report(situation, decision)
        ours = [use for use in uses if self._view.is_ours(use)]
        for decision in policy.taken(ours, situations):
            await self._fail(decision)
        for decision in policy.gone(ours, [each.slot for each in situations]) if self._table.is_sure else ():
            await self._fail(decision)
        for node in self._chassis.ports:
            await self._asks.write(node)
        self._begin(group, [pair for pair in decisions if pair[1].act in (Act.ATTACH, Act.DETACH)])
        self._due_s = min(self._dues(), default=math.inf)

    def _list_pool(self, situations: list[Situation]) -> None:
        uuids = tuple(each.slot.uuid for each in situations if each.slot.uuid)
        for node in self._chassis.ports:
            self._asks.known(node, self._chassis.pool, uuids)

    def _decide(self, situation: Situation, now_s: float) -> Decision:
        if self._moving is not None and self._moving[0] == situation.slot.device:
            return policy.NOTHING
        return policy.decide(situation, self._memory(situation), self._limits, now_s)

    def _memory(self, situation: Situation) -> Memory:
        found = self._memories.get(situation.slot.device)
        if found is None:
            found = self._memories[situation.slot.device] = Memory()
        return found

    # What is said

    async def _report(self, situation: Situation, decision: Decision) -> None:
        slot, memory = situation.slot, self._memory(situation)
        if decision.act is Act.ASK:
            request = f"{self._context.rng.getrandbits(32):08x}"
            record(self._context.log, "asked", device=slot.uuid, node=decision.node, request=request)
            self._asks.ask(decision.node, slot.uuid, request)
        elif decision.act is Act.WITHDRAW:
            record(self._context.log, "withdrawn", device=slot.uuid, node=decision.node, reason=decision.reason)
            self._asks.withdraw(decision.node, slot.uuid)
            if decision.reason:
                memory.retry_at_s = self._now() + self._config.keep_s
        elif decision.act is Act.READY and decision.use is not None:
            done = REALLOCATE if self._config.hand_over is HandOver.REALLOCATE else ATTACHED
            if done not in decision.use.true:
                await self._claim_writer.write(
                    ClaimCondition(decision.use, done, "Attached", f"on node {decision.node}")
                )
        elif decision.act is Act.FAIL and decision.use is not None:
            if decision.reason in _HARDWARE:
                memory.bad_until_s = self._now() + self._config.retry_s
                memory.is_suspect = bool(slot.node)
            await self._fail(decision)

    def _is_released(self, decision: Decision) -> bool:
        """Return whether the claim is to be allocated anew, which ends all its allocation: nothing of it may be on its
        way."""
        return decision.act is Act.READY and self._config.hand_over is HandOver.REALLOCATE

    async def _fail(self, decision: Decision) -> None:
        assert decision.use is not None, "a claim fails"
        await self._claim_writer.write(ClaimCondition(decision.use, ATTACH_FAILED, decision.reason, decision.message))

    # What is done

    def _begin(self, group: asyncio.TaskGroup, due: list[tuple[Situation, Decision]]) -> None:
        if self._moving is not None or not due:
            return
        situation, decision = min(due, key=_urgency)
        work = self._attach if decision.act is Act.ATTACH else self._detach
        self._memory(situation).is_moving = True
        self._moving = (situation.slot.device, group.create_task(work(situation, decision)))

    async def _attach(self, situation: Situation, decision: Decision) -> None:
        slot, memory = situation.slot, self._memory(situation)
        record(self._context.log, "attaching", device=slot.uuid, node=decision.node)
        if await self._mover.attach(slot.device, self._chassis.ports[decision.node]) is None:
            memory.tries += 1
            memory.retry_at_s = self._now() + min(_RETRY_S * 2**memory.tries, _LAST_RETRY_S)
        self._ended(memory)

    async def _detach(self, situation: Situation, decision: Decision) -> None:
        slot, memory = situation.slot, self._memory(situation)
        assert slot.port is not None, "it is on a port"
        record(self._context.log, "detaching", device=slot.uuid, node=decision.node, forced=decision.forced)
        if await self._mover.detach(slot.device, slot.port) == slot.port:
            record(self._context.log, "not-detached", device=slot.uuid)
        else:
            memory.retry_at_s = 0.0
        self._ended(memory)

    def _ended(self, memory: Memory) -> None:
        memory.is_moving = False
        self._moving = None
        self._pulse.beat()

    def _pause_s(self) -> float:
        """Return the seconds until the chassis is to be read, or a clock may have run out."""
        return max(min(self._read_at_s + self._config.pool_poll_s, self._due_s) - self._now(), 0.0) or _RETRY_S

    def _dues(self) -> Iterator[float]:
        """Yield when clocks run out from now on."""
        now_s, limits = self._now(), self._limits
        for each in self._memories.values():
            starts = (each.idle_since_s, limits.keep_s), (each.on_port_since_s, limits.appear_s)
            ends = (each.retry_at_s, each.bad_until_s, each.may_move_until_s)
            dues = [*ends, *(start + span for start, span in starts if start is not None)]
            yield from (due_s for due_s in dues if due_s > now_s)
        yield from self._view.dues(now_s)

    def _now(self) -> float:
        return self._context.clock.now()


def _urgency(due: tuple[Situation, Decision]) -> tuple[bool, str, str]:
    """What goes makes room; of what comes, the claim that has waited longest is first."""
    situation, decision = due
    return decision.act is Act.ATTACH, decision.use.since if decision.use else "", situation.slot.device
