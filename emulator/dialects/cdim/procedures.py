"""Migration procedures: read strictly from a request, and made from a layout that is desired (contract cohdi.md 2.4,
2.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, ValidationError, convert

from mews.emulator.dialects.cdim.errors import RefusedRequestError
from mews.emulator.dialects.cdim.records import CPU, DESTINATION, SOURCE, CdimResource
from mews.emulator.dialects.wire import JsonError, Request, read_object
from mews.listening.reading import read_like_go

CONNECT, DISCONNECT = "connect", "disconnect"
POWER = ("boot", "shutdown", "start", "stop")
"""The documents have the first two, the published server takes the others, too."""
OPERATIONS = (*POWER[:2], CONNECT, DISCONNECT, *POWER[2:])
MOST = 1000
"""Procedures in one request."""


class Procedure(Struct, frozen=True):
    """One operation: ``node`` is the CPU of the document, or the adapter of the operator's body; "" for power."""

    id: int
    operation: str
    node: str
    device: str
    dependencies: tuple[int, ...]
    shown: Mapping[str, Any]
    """As it was sent."""

    def reversed(self, number: int, dependencies: tuple[int, ...]) -> Procedure:
        """Return what undoes it, in the document's words."""
        operation = DISCONNECT if self.operation == CONNECT else CONNECT
        return move(number, operation, self.node, self.device, dependencies)

    def after(self, dependencies: tuple[int, ...]) -> Procedure:
        """Return the same, waiting for these only."""
        shown = {**self.shown, "dependencies": list(dependencies)}
        return Procedure(self.id, self.operation, self.node, self.device, dependencies, shown)


def move(number: int, operation: str, node: str, device: str, dependencies: tuple[int, ...]) -> Procedure:
    """Return a connect or disconnect, in the document's words."""
    shown = {
        "operationID": number,
        "operation": operation,
        "targetCPUID": node,
        "targetDeviceID": device,
        "dependencies": list(dependencies),
    }
    return Procedure(number, operation, node, device, dependencies, shown)


class _Sent(Struct):
    operationID: int
    operation: str
    dependencies: list[int]
    targetDeviceID: str | None = None
    targetCPUID: str | None = None
    destinationDeviceID: str | None = None
    sourceDeviceID: str | None = None


class _ApplyRequest(Struct):
    procedures: list[dict[str, Any]]


class _Devices(Struct):
    deviceIDs: list[str]


class _OneDevice(Struct):
    deviceID: str


class _DesiredNode(Struct):
    device: dict[str, Any]


class _Nodes(Struct):
    nodes: list[_DesiredNode]


class _Desired(Struct):
    desiredLayout: _Nodes
    targetNodeIDs: list[str] | None = None


def read_procedures(request: Request) -> tuple[Procedure, ...]:
    """Return the procedures of a layout-apply, in either form; an empty list is allowed.

    Raises RefusedRequestError.
    """
    sent = _converted(_object(request, "invalid"), _ApplyRequest, "invalid").procedures
    if len(sent) > MOST:
        raise RefusedRequestError("invalid", f"procedures: {len(sent)}, at most {MOST} are allowed")
    found = tuple(_procedure(each, index) for index, each in enumerate(sent))
    _check_order(found)
    return found


def _procedure(value: Mapping[str, Any], index: int) -> Procedure:
    place = f"procedures[{index}]"
    sent = _converted(value, _Sent, "invalid", place)
    if sent.operation not in OPERATIONS:
        raise RefusedRequestError("invalid", f"{place}.operation: {sent.operation!r} is not one of {list(OPERATIONS)}")
    device = sent.targetDeviceID or sent.destinationDeviceID or ""
    node = sent.targetCPUID or sent.sourceDeviceID or ""
    if not device:
        raise RefusedRequestError("invalid", f"{place}: 'targetDeviceID' is a required property")
    if sent.operation in (CONNECT, DISCONNECT) and not node:
        raise RefusedRequestError("invalid", f"{place}: 'targetCPUID' is a required property of {sent.operation}")
    return Procedure(sent.operationID, sent.operation, node, device, tuple(sent.dependencies), value)


def _check_order(found: Sequence[Procedure]) -> None:
    """Every procedure must come to be done: IDs are known and unique, and no two wait for each other."""
    known = [each.id for each in found]
    if len(set(known)) != len(known):
        raise RefusedRequestError("invalid", "procedures: an operationID is there twice")
    for each in found:
        strange = next((number for number in each.dependencies if number not in known), None)
        if strange is not None:
            raise RefusedRequestError(
                "invalid", f"operationID {each.id}: dependencies: no procedure has operationID {strange}"
            )
    waiting, done = list(found), set[int]()
    while waiting:
        ready = [each for each in waiting if set(each.dependencies) <= done]
        if not ready:
            raise RefusedRequestError("invalid", f"operationID {waiting[0].id}: dependencies: it waits for itself")
        done |= {each.id for each in ready}
        waiting = [each for each in waiting if each.id not in done]


def migration(request: Request, found: Sequence[CdimResource]) -> list[dict[str, Any]]:
    """Return the procedures that lead from the nodes as they are to those of a body: all disconnects, then the
    connects.

    Raises RefusedRequestError.
    """
    desired = _converted(_object(request, "invalid-layout"), _Desired, "invalid-layout")
    now = {each.id: each for each in found}
    nodes = {each.id for each in found if each.device["type"] == CPU}
    targets = nodes if desired.targetNodeIDs is None else {each.lower() for each in desired.targetNodeIDs}
    if not targets <= nodes:
        raise RefusedRequestError("unknown-nodes")
    wanted: dict[str, str] = {}
    for index, node in enumerate(desired.desiredLayout.nodes):
        wanted.update(_wanted(node.device, f"desiredLayout.nodes[{index}].device", now, nodes))
    movable = {each.id: each.node for each in found if each.device["type"] not in (CPU, SOURCE, DESTINATION)}
    leaving = sorted(device for device, node in movable.items() if node and _leaves(node, wanted.get(device), targets))
    coming = sorted(device for device, node in wanted.items() if movable.get(device, node) != node)
    made = [move(number, DISCONNECT, movable[each], each, ()) for number, each in enumerate(leaving, start=1)]
    numbers = {each.device: each.id for each in made}
    for number, device in enumerate(coming, start=len(made) + 1):
        waits = (numbers[device],) if device in numbers else ()
        made.append(move(number, CONNECT, wanted[device], device, waits))
    return [dict(each.shown) for each in made]


def _leaves(node: str, wanted: str | None, targets: set[str]) -> bool:
    """Return whether a device leaves its node: it is wanted elsewhere, or its node is a target and does not want it."""
    return wanted != node if wanted is not None else node in targets


def _wanted(
    device: Mapping[str, Any], place: str, now: Mapping[str, CdimResource], nodes: set[str]
) -> Mapping[str, str]:
    """Device -> node, of one desired node."""
    kinds = {kind.lower(): value for kind, value in device.items()}
    cpus = _converted(kinds.get("cpu"), _Devices, "invalid-layout", f"{place}.cpu").deviceIDs
    if len(cpus) != 1 or cpus[0].lower() not in nodes:
        raise RefusedRequestError("invalid-layout", f"{place}.cpu.deviceIDs: must be the CPU of one node")
    found: dict[str, str] = {}
    for kind, value in kinds.items():
        if kind == "cpu":
            continue
        if kind == "gpu":
            ids = [each.deviceID for each in _converted(value, list[_OneDevice], "invalid-layout", f"{place}.gpu")]
        else:
            ids = _converted(value, _Devices, "invalid-layout", f"{place}.{kind}").deviceIDs
        for each in ids:
            known = now.get(each.lower())
            if known is None or known.device["type"] in (CPU, SOURCE, DESTINATION):
                raise RefusedRequestError("invalid-layout", f"{place}.{kind}: {each!r} is not a device of this pool")
            found[each.lower()] = cpus[0].lower()
    return found


def _object(request: Request, reason: str) -> dict[str, Any]:
    if request.too_large:
        raise RefusedRequestError(reason, "the body is too large")
    try:
        return read_object(request.body)
    except JsonError as error:
        raise RefusedRequestError(reason, f"the body must be a JSON object: {error}") from error


def read_items(request: Request, kind: Any) -> list[Any]:
    """Return the elements of a body that is a JSON array, all of that kind.

    Raises RefusedRequestError.
    """
    if request.too_large:
        raise RefusedRequestError("invalid", "the body is too large")
    try:
        value = read_like_go(request.body)
    except ValueError as error:
        raise RefusedRequestError("invalid", f"the body must be a JSON array: {error}") from error
    found: list[Any] = _converted(value, list[kind], "invalid")
    return found


def read_members(request: Request, kind: type[Any]) -> Any:
    """Return the members of a body of the configuration manager.

    Raises RefusedRequestError.
    """
    return _converted(_object(request, "invalid"), kind, "invalid")


def _converted(value: Any, kind: Any, reason: str, place: str = "") -> Any:
    try:
        return convert(value, kind)
    except ValidationError as error:
        raise RefusedRequestError(reason, f"{place}: {error}" if place else str(error)) from error
