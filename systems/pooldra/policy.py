"""What is to be done with each device of a pool. Pure: it follows from the chassis' table, the claims and the nodes.

::

    free ──── a claim has it ────► attach ──► on the claim's host ── the host shows it ──► condition True
      ▲                              │ in vain                │ not shown in time
      │                              ▼                        ▼
      │                       failure condition        failure condition
      │                                                       │
      └── detach ◄── the host let go of it ◄── asked ◄── no claim uses it, or one on another host has it

Once a host has let go of a device it is detached, whoever wants it by then: an incarnation that begins in between, or a
detach whose answer was lost, leads to the same end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum

from msgspec import Struct

from mews.systems.pooldra.claims import Use
from mews.systems.pooldra.names import ATTACHED, HandOver, device_name
from mews.systems.pooldra.records import PoolNodeReport


class Act(StrEnum):
    """What is to be done next with a device."""

    NOTHING = "nothing"
    ATTACH = "attach"
    ASK = "ask"
    """Ask its host to let go of it."""
    WITHDRAW = "withdraw"
    """The request to its host has been answered, or is void."""
    DETACH = "detach"
    READY = "ready"
    """Its host shows it: the claim's condition is to say so."""
    FAIL = "fail"
    """The claim cannot have it."""


class Slot(Struct, frozen=True):
    """A device of a chassis: on no port, on a node's (``node``), or on another one (``port`` alone)."""

    device: str
    uuid: str
    port: str | None = None
    node: str = ""

    @property
    def name(self) -> str:
        """What the pool calls it."""
        return device_name(self.uuid)


class NodeView(Struct, frozen=True):
    """What is known of a node. ``asked``: UUID -> the request that stands; ``is_lost``: it has not been ready for so
    long that nobody waits for its answers."""

    is_ready: bool = True
    is_lost: bool = False
    report: PoolNodeReport = PoolNodeReport()
    asked: Mapping[str, str] = {}


class Memory(Struct):
    """What an incarnation remembers of a device; all of it may be lost. Times are seconds of one clock."""

    on_port_since_s: float | None = None
    idle_since_s: float | None = None
    tries: int = 0
    retry_at_s: float = 0.0
    bad_until_s: float = 0.0
    """Until then it is not offered."""
    is_suspect: bool = False
    """Its host did not show it: it goes back without waiting."""
    is_moving: bool = False
    """An operation is under way: where it is will be known after it."""
    may_move_until_s: float = 0.0
    """Until then an operation that an earlier incarnation began may still put it on a host."""


class Decision(Struct, frozen=True):
    """``node``: where; ``use``: for which claim; ``reason`` is of a failure."""

    act: Act
    node: str = ""
    use: Use | None = None
    reason: str = ""
    message: str = ""
    forced: bool = False


NOTHING = Decision(Act.NOTHING)
ATTACH_FAILED, NOT_SHOWN, NODE_NOT_READY, NOT_CABLED, ELSEWHERE, LOST, GONE, DIVIDED = (
    "AttachFailed", "NotShown", "NodeNotReady", "NotCabled", "OnAnotherPort", "TakenByAnother", "Gone", "InMIGMode",
)  # fmt: skip
"""Reasons of failure conditions."""


class PoolLimits(Struct, frozen=True):
    """Seconds and numbers of ``PoolDraConfig``."""

    keep_s: float
    appear_s: float
    tries: int


class Situation(Struct, frozen=True):
    """All that is known of one device. ``wanted``: the first claim that was given it from the pool and has not failed;
    ``user``: a claim that was given it from its node's own slice; ``ports``: the nodes that it can be attached to."""

    slot: Slot
    wanted: Use | None
    user: str
    nodes: Mapping[str, NodeView]
    ports: Collection[str]
    hand_over: HandOver

    def node(self, name: str) -> NodeView:
        """Return the node's view; one that is gone is not ready."""
        return self.nodes.get(name, NodeView(is_ready=False))

    @property
    def is_shown(self) -> bool:
        """Whether its host shows it, and was not asked for it."""
        view = self.node(self.slot.node)
        return self.slot.uuid in view.report.shown and self.slot.uuid not in view.asked

    @property
    def is_divided(self) -> bool:
        """Whether its host reports that it is in MIG mode."""
        return self.slot.uuid in self.node(self.slot.node).report.divided


def remember(memory: Memory, situation: Situation, now_s: float) -> None:
    """Start and stop the clocks."""
    slot = situation.slot
    if not slot.node:
        memory.on_port_since_s, memory.is_suspect = None, False
    elif memory.on_port_since_s is None:
        memory.on_port_since_s, memory.tries, memory.may_move_until_s = now_s, 0, 0.0
    if situation.wanted is None:
        memory.tries = 0
    wanted_here = situation.wanted is not None and situation.wanted.node == slot.node
    if not slot.node or wanted_here or situation.user:
        memory.idle_since_s = None
    elif memory.idle_since_s is None:
        memory.idle_since_s = now_s


def recall(memory: Memory, situation: Situation, offered: Collection[str] | None, until_s: float) -> None:
    """Begin an incarnation. ``offered`` are the devices of the pool's own slice as the last one left it, None where
    nobody has: what it had taken out there, it may have begun to attach."""
    if offered is not None and situation.slot.port is None and situation.slot.name not in offered:
        memory.may_move_until_s = until_s


def decide(situation: Situation, memory: Memory, limits: PoolLimits, now_s: float) -> Decision:
    """Return the next act for a device."""
    slot = situation.slot
    if slot.node:
        return _on_host(situation, memory, limits, now_s)
    stale = next((name for name, view in situation.nodes.items() if slot.uuid in view.asked), "")
    if stale:
        return Decision(Act.WITHDRAW, stale)
    return _off_host(situation, memory, limits, now_s)


def _off_host(situation: Situation, memory: Memory, limits: PoolLimits, now_s: float) -> Decision:
    use = situation.wanted
    if use is None:
        return NOTHING
    if situation.slot.port is not None:
        return _failed(use, ELSEWHERE, "it is on a port of another host")
    if use.node not in situation.ports:
        return _failed(use, NOT_CABLED, f"node {use.node or '(none)'} is not cabled to its chassis")
    if not situation.node(use.node).is_ready:
        return _failed(use, NODE_NOT_READY, f"node {use.node} is not ready")
    if memory.tries >= limits.tries:
        return _failed(use, ATTACH_FAILED, f"{memory.tries} attaches in vain")
    return NOTHING if now_s < memory.retry_at_s else Decision(Act.ATTACH, use.node, use)


def _on_host(situation: Situation, memory: Memory, limits: PoolLimits, now_s: float) -> Decision:
    slot, use = situation.slot, situation.wanted
    view = situation.node(slot.node)
    request = view.asked.get(slot.uuid)
    if request is not None:
        return _asked(slot, view, request)
    if use is not None and use.node == slot.node:
        return _arrived(situation, memory, limits, now_s)
    if situation.user:
        return NOTHING
    idle_s = 0.0 if memory.idle_since_s is None else now_s - memory.idle_since_s
    if use is None and idle_s < limits.keep_s and not memory.is_suspect:
        return NOTHING
    if view.is_lost:
        return Decision(Act.DETACH, slot.node, forced=True)
    return NOTHING if now_s < memory.retry_at_s else Decision(Act.ASK, slot.node)


def _asked(slot: Slot, view: NodeView, request: str) -> Decision:
    if view.report.off.get(slot.uuid) == request:
        return Decision(Act.DETACH, slot.node)
    refusal = view.report.refused.get(slot.uuid)
    if refusal is not None and refusal.request == request:
        return Decision(Act.WITHDRAW, slot.node, reason=refusal.reason)
    return Decision(Act.DETACH, slot.node, forced=True) if view.is_lost else NOTHING


def _arrived(situation: Situation, memory: Memory, limits: PoolLimits, now_s: float) -> Decision:
    use = situation.wanted
    assert use is not None, "somebody wants it here"
    if situation.is_shown:
        if situation.user:
            return _failed(use, LOST, f"{situation.user} has taken it from the node's slice")
        return Decision(Act.READY, use.node, use)
    if ATTACHED in use.true:
        return NOTHING  # Its pod may be running: what becomes of it there is between its driver and its kubelet.
    if situation.is_divided:
        return _failed(use, DIVIDED, f"it is in MIG mode on node {use.node}")
    since_s = now_s if memory.on_port_since_s is None else memory.on_port_since_s
    if now_s - since_s >= limits.appear_s:
        return _failed(use, NOT_SHOWN, f"node {use.node} has not shown it for {limits.appear_s:g} s")
    return NOTHING


def unready(decisions: Iterable[tuple[Situation, Decision]]) -> set[str]:
    """Return the claims (by uid) of which a device has not arrived yet."""
    return {each.wanted.uid for each, made in decisions if each.wanted is not None and made.act is not Act.READY}


def gone(uses: Iterable[Use], slots: Collection[Slot]) -> list[Decision]:
    """Return the claims whose device has left the chassis before it could be attached."""
    there = {slot.name for slot in slots}
    message = "it is not in its chassis any more"
    lost = [use for use in uses if use.device not in there and ATTACHED not in use.true and not use.has_failed]
    return [_failed(use, GONE, message) for use in lost]


def taken(uses: Iterable[Use], situations: Iterable[Situation]) -> list[Decision]:
    """Return the claims that were given a device of the pool which another claim has: two schedulers do not know of
    each other's allocations. They fail at once, so that their pods need not wait until the binding takes too long."""
    holders = {each.slot.name: each.wanted for each in situations if each.wanted is not None}
    lost = [
        (use, holder)
        for use in uses
        if (holder := holders.get(use.device)) is not None and holder.uid != use.uid
        if not use.admin and not use.has_failed and ATTACHED not in use.true
    ]
    return [_failed(use, LOST, f"claim {holder.claim} has it") for use, holder in lost]


def _failed(use: Use, reason: str, message: str) -> Decision:
    return Decision(Act.FAIL, use.node, use, reason, message)


# ------------------------------------------------------------------------------------------------------------- offered


def is_offered(situation: Situation, memory: Memory, now_s: float) -> bool:
    """Return whether the pool's own slice, of no node, has the device. Where claims are allocated anew its node's slice
    has it under another name, so that the pool's is without it before it is attached."""
    slot = situation.slot
    if now_s < memory.bad_until_s or not slot.uuid:
        return False
    if slot.port is None:
        # Its host may show it before the attach has been answered, and its claim may be gone by then.
        may_move = memory.is_moving or now_s < memory.may_move_until_s
        return situation.hand_over is not HandOver.REALLOCATE or (situation.wanted is None and not may_move)
    if situation.hand_over is HandOver.REALLOCATE or not slot.node or situation.node(slot.node).is_lost:
        return False
    if situation.is_divided:
        return False
    if situation.hand_over is HandOver.IN_PLACE:
        return True
    wanted_here = situation.wanted is not None and situation.wanted.node == slot.node
    return wanted_here and not situation.is_shown


def is_on_node(situation: Situation, memory: Memory, now_s: float) -> bool:
    """Return whether the slice of the device's node has it, in the pool: where devices move from slice to slice."""
    slot = situation.slot
    if situation.hand_over is not HandOver.MOVE or not slot.node or now_s < memory.bad_until_s:
        return False
    return situation.is_shown and situation.node(slot.node).is_ready
