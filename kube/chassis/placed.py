"""Moves where a request must name the machine that gets or has the device (dialects ``fm`` and ``cdim``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping

from mews.kube.chassis.port import ChassisError, ChassisReply, ReplyOutcome


async def attach_placed(
    device: str,
    port: str,
    places: Callable[[], MutableMapping[str, str]],
    *,
    read: Callable[[], Awaitable[object]],
    find: Callable[[], tuple[bool, str]],
    attach: Callable[[str], Awaitable[ChassisReply]],
    noun: str,
) -> ChassisReply:
    """Attach a device to the machine on a host port; if one of them is not known, the chassis is read first.

    ``find()``: whether the device is listed, and the machine, "" for none; ``attach(machine)`` sends the request;
    ``noun``: what the dialect calls a machine. ``places`` and ``read`` as in ``detach_placed``.
    """
    if not all(find()):
        try:
            await read()
        except ChassisError as error:
            return ChassisReply(ReplyOutcome.FAILED, str(error))
    is_listed, machine = find()
    if not is_listed or not machine:
        missing = f"a {noun} on host port {port}" if is_listed else f"device {device}"
        return ChassisReply(ReplyOutcome.FAILED, f"{missing}: not listed")
    reply = await attach(machine)
    if reply.outcome is ReplyOutcome.DONE:
        places()[device] = machine
    return reply


async def detach_placed(
    device: str,
    places: Callable[[], MutableMapping[str, str]],
    *,
    read: Callable[[], Awaitable[object]],
    is_listed: Callable[[], bool],
    detach: Callable[[str], Awaitable[ChassisReply]],
    elsewhere: str,
) -> ChassisReply:
    """Detach a device from the machine that it was last on; if that is unknown or wrong, the chassis is read first.

    ``places()``: device -> machine, as the client knows it now; ``read`` lists the chassis and makes it again.
    ``detach(machine)`` sends the request; its remark begins with ``elsewhere`` if the device is not there.
    """
    for looks in (False, True):
        if looks or device not in places():
            try:
                await read()
            except ChassisError as error:
                return ChassisReply(ReplyOutcome.UNKNOWN, str(error))
        if not is_listed():
            return ChassisReply(ReplyOutcome.FAILED, f"device {device}: not listed")
        machine = places().pop(device, "")
        if not machine:
            return ChassisReply(ReplyOutcome.DONE, "free already")
        reply = await detach(machine)
        if not reply.remark.startswith(elsewhere):
            return reply
    return reply
