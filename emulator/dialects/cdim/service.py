"""One chassis as NEC's composable infrastructure shows it: configuration manager and layout-apply on one port.

It serves the published documents as patched (``openapi/cdim``). Beyond them it serves what the operator of CoHDI sends:
its body of a layout-apply, ``detail`` of the list of nodes, and links of both kinds (contract cohdi.md 2.4, 2.5).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.chassis.events import ChassisEvent
from mews.emulator.chassis.operation import Answer, OperationOutcome
from mews.emulator.chassis.table import DeviceRow
from mews.emulator.dialects.cdim.errors import RefusedRequestError, answered
from mews.emulator.dialects.cdim.groups import ResourceGroups
from mews.emulator.dialects.cdim.manager import LayoutManager
from mews.emulator.dialects.cdim.procedures import migration, read_items, read_members, read_procedures
from mews.emulator.dialects.cdim.queries import flag, listed, one_of
from mews.emulator.dialects.cdim.records import CdimResource, CdimView
from mews.emulator.dialects.redfish.settings import RedfishSettings, without_a_wire
from mews.emulator.dialects.stamps import utc_text
from mews.emulator.dialects.wire import Dropped, Pending, Request, Response

PREFIX = "/cdim/"
API = "/cdim/api/v1"
APPLY = f"{API}/layout-apply"
MIGRATION = f"{API}/migration-procedures"

_Act = Callable[[Request, str, float], Pending]
_Show = Callable[[tuple[DeviceRow, ...]], Any]


class _Named(Struct):
    name: str
    description: str


class _Annotation(Struct):
    available: bool


class _Collected(Struct):
    deviceID: str


class CdimFace:
    """One chassis. Reads show the table as it is when they are due; layouts go on after their answer."""

    def __init__(self, box: EmulatedChassis, settings: RedfishSettings | None = None) -> None:
        found = settings or without_a_wire(box.spec.name)
        self._box, self._epoch_s = box, found.epoch_s
        self._groups = ResourceGroups(box.spec.name, utc_text(found.epoch_s))
        self._view = CdimView(box, self._groups)
        self._layouts = LayoutManager(
            box, self._view, unix_s=lambda now_s: found.epoch_s + now_s, new_id=lambda: found.secret()[:10]
        )
        box.events.listen(self._notice)
        routes: tuple[tuple[str, dict[str, _Act]], ...] = (
            ("resources()", {"GET": self._list_resources}),
            ("resources/available()", {"GET": self._available}),
            ("resources/unused()", {"GET": self._unused}),
            ("resources/([^/]+)", {"GET": self._resource}),
            ("resources/([^/]+)/annotation", {"PUT": self._annotate}),
            ("resources/([^/]+)/resource-groups", {"PUT": self._regroup}),
            ("resource-groups()", {"GET": self._list_groups, "POST": self._add_group}),
            (
                "resource-groups/([^/]+)",
                {"GET": self._group, "PUT": self._change_group, "DELETE": self._remove_group},
            ),
            ("nodes()", {"GET": self._list_nodes}),
            ("nodes/([^/]+)", {"GET": self._node}),
            ("cxlswitches()", {"GET": self._list_switches}),
            ("cxlswitches/([^/]+)", {"GET": self._switch}),
            ("racks/([^/]+)", {"GET": self._rack}),
            ("devices()", {"POST": self._collect}),
            ("layout-apply()", {"GET": self._list_layouts, "POST": self._apply}),
            (
                "layout-apply/([^/]+)",
                {"GET": self._layout, "PUT": self._change_layout, "DELETE": self._delete_layout},
            ),
            ("migration-procedures()", {"POST": self._migrate}),
        )
        self._routes = tuple((re.compile(f"{API}/{path}"), verbs) for path, verbs in routes)

    def _notice(self, event: ChassisEvent) -> None:
        """A reset takes the managers back to their start, too."""
        if event.event == "reset":
            self._groups.reset()
            self._layouts.reset()

    def begin(self, request: Request, now_s: float) -> Pending:
        """Read the request, begin what it asks for."""
        if self._box.management.down(now_s):
            return Pending(now_s, operation=self._box.begin_read(now_s))
        try:
            return self._begin(request, now_s)
        except RefusedRequestError as refused:
            return Pending(now_s, reply=refused.response(layouts=_of_layouts(request)))

    def finish(self, pending: Pending, now_s: float) -> Response | Dropped:
        """Return the answer."""
        operation = pending.operation
        if operation is None:
            assert pending.reply is not None
            return pending.reply
        answer = self._box.finish(operation, now_s)
        if answer.outcome is OperationOutcome.DROPPED:
            return Dropped()
        if answer.outcome is OperationOutcome.ERROR or pending.render is None:
            reply = RefusedRequestError("failed", "Internal Server Error").response(layouts=pending.render is None)
            return Response(answer.status if answer.status >= 400 else 500, reply.headers, reply.body)
        return pending.render(answer)

    def _begin(self, request: Request, now_s: float) -> Pending:
        for pattern, verbs in self._routes:
            match = pattern.fullmatch(request.path)
            if match is None:
                continue
            act = verbs.get(request.method)
            if act is None:
                allowed = ", ".join(verbs)
                raise RefusedRequestError("method", f"{request.method}: must be {allowed}", allow=allowed)
            return act(request, match[1].lower(), now_s)
        raise RefusedRequestError("path", f"there is nothing at {quote(request.path)}")

    def _read(self, now_s: float, show: _Show, *, layouts: bool = False) -> Pending:
        """Return the table when the read is due; what it shows may refuse the request."""

        def render(answer: Answer) -> Response:
            try:
                return answered(show(answer.rows))
            except RefusedRequestError as refused:
                return refused.response(layouts=layouts)

        return Pending(now_s, operation=self._box.begin_read(now_s), render=render)

    def _now(self, now_s: float) -> str:
        return utc_text(self._epoch_s + now_s)

    # Resources

    def _list_resources(self, request: Request, named: str, now_s: float) -> Pending:
        detail = flag(request, "detail")

        def show(rows: tuple[DeviceRow, ...]) -> Any:
            found = self._view.resources(rows)
            return _counted("resources", [self._view.resource(each, detail=detail) for each in found])

        return self._read(now_s, show)

    def _resource(self, request: Request, named: str, now_s: float) -> Pending:
        def show(rows: tuple[DeviceRow, ...]) -> Any:
            return self._view.resource(_with_id(self._view.resources(rows), named))

        return self._read(now_s, show)

    def _available(self, request: Request, named: str, now_s: float) -> Pending:
        def show(rows: tuple[DeviceRow, ...]) -> Any:
            found = self._offered(request, rows)
            return _counted("resources", [self._view.resource(each) for each in found])

        return self._read(now_s, show)

    def _unused(self, request: Request, named: str, now_s: float) -> Pending:
        def show(rows: tuple[DeviceRow, ...]) -> Any:
            found = [each for each in self._offered(request, rows) if not each.device["links"]]
            return _counted("resources", [self._view.unused(each) for each in found])

        return self._read(now_s, show)

    def _offered(self, request: Request, rows: tuple[DeviceRow, ...]) -> list[CdimResource]:
        """Return what a design may use, of these groups; in ascending order of type, then ID."""
        groups = request.values("resourceGroupID")
        found = [
            each
            for each in self._view.resources(rows)
            if each.usable
            and self._groups.available(each.id)
            and (not groups or self._groups.group_of(each.id) in groups)
        ]
        return sorted(found, key=lambda each: (str(each.device["type"]), each.id))

    def _annotate(self, request: Request, named: str, now_s: float) -> Pending:
        self._known(named, now_s)
        wanted: _Annotation = read_members(request, _Annotation)
        self._groups.annotate(named, available=wanted.available)
        return _now_answered(now_s, {"available": wanted.available})

    def _regroup(self, request: Request, named: str, now_s: float) -> Pending:
        self._known(named, now_s)
        groups = read_items(request, str)
        self._groups.put(named, groups)
        return _now_answered(now_s, {"count": 1, "resourceGroupIDs": groups})

    def _known(self, named: str, now_s: float) -> None:
        self._box.settle(now_s)
        _with_id(self._view.resources(self._box.table.listing()), named)

    def _collect(self, request: Request, named: str, now_s: float) -> Pending:
        """The hardware is what the table says; a collection says which of it was detected."""
        self._box.settle(now_s)
        known = {each.id for each in self._view.resources(self._box.table.listing())}
        found = [each.deviceID for each in read_items(request, _Collected)]
        strange = next((each for each in found if each.lower() not in known), None)
        if strange is not None:
            raise RefusedRequestError("invalid", f"deviceID {strange!r}: there is no such hardware in this pool")
        self._groups.collected({each.lower() for each in found}, known)
        return _now_answered(now_s, {"count": len(found), "deviceIDs": found}, 201)

    # Resource groups

    def _list_groups(self, request: Request, named: str, now_s: float) -> Pending:
        whole = flag(request, "withResources")

        def show(rows: tuple[DeviceRow, ...]) -> Any:
            found = self._view.resources(rows) if whole else None
            return _counted("resourceGroups", [self._with_members(each.id, found) for each in self._groups.all()])

        return self._read(now_s, show)

    def _group(self, request: Request, named: str, now_s: float) -> Pending:
        return self._read(now_s, lambda rows: self._with_members(named, self._view.resources(rows)))

    def _with_members(self, group: str, found: Iterable[CdimResource] | None) -> dict[str, Any]:
        shown = self._groups.find(group).shown()
        if found is None:
            return shown
        own = [self._view.resource(each) for each in found if self._groups.group_of(each.id) == group]
        return {**shown, "resources": own}

    def _add_group(self, request: Request, named: str, now_s: float) -> Pending:
        wanted: _Named = read_members(request, _Named)
        return _now_answered(now_s, self._groups.add(wanted.name, wanted.description, self._now(now_s)).shown(), 201)

    def _change_group(self, request: Request, named: str, now_s: float) -> Pending:
        self._groups.find(named)
        wanted: _Named = read_members(request, _Named)
        changed = self._groups.change(named, wanted.name, wanted.description, self._now(now_s))
        return _now_answered(now_s, changed.shown())

    def _remove_group(self, request: Request, named: str, now_s: float) -> Pending:
        self._groups.remove(named)
        return Pending(now_s, reply=Response(204, {}, b""))

    # Nodes, switches, racks

    def _list_nodes(self, request: Request, named: str, now_s: float) -> Pending:
        detail = flag(request, "detail")
        return self._read(now_s, lambda rows: _counted("nodes", self._view.nodes(rows, detail=detail)))

    def _node(self, request: Request, named: str, now_s: float) -> Pending:
        def show(rows: tuple[DeviceRow, ...]) -> Any:
            node = next((each for each in self._view.nodes(rows, detail=True) if each["id"] == named), None)
            if node is None:
                raise RefusedRequestError("unknown", f"node {named}: does not exist")
            return node

        return self._read(now_s, show)

    def _list_switches(self, request: Request, named: str, now_s: float) -> Pending:
        def show(rows: tuple[DeviceRow, ...]) -> Any:
            return _counted("CXLSwitches", [self._view.switch(self._view.resources(rows), detail=True)])

        return self._read(now_s, show)

    def _switch(self, request: Request, named: str, now_s: float) -> Pending:
        if named != self._view.switch_id:
            raise RefusedRequestError("unknown", f"CXL switch {named}: does not exist")
        return self._read(now_s, lambda rows: self._view.switch(self._view.resources(rows), detail=False))

    def _rack(self, request: Request, named: str, now_s: float) -> Pending:
        detail = flag(request, "detail")
        if named != self._view.rack_id:
            raise RefusedRequestError("unknown", f"rack {named}: does not exist")
        made = self._now(0.0)
        return self._read(now_s, lambda rows: self._view.rack(self._view.resources(rows), detail=detail, made=made))

    # Layouts

    def _apply(self, request: Request, named: str, now_s: float) -> Pending:
        """202 at once, unless a fault strikes the first operation: its answer, or the lack of one, is the request's."""
        procedures = read_procedures(request)
        self._layouts.look()
        layout, begun = self._layouts.apply(procedures, now_s)
        reply = answered({"applyID": layout.id}, 202)
        struck = next((each for each in begun if each.outcome is not OperationOutcome.REPLY), None)
        if struck is None:
            return Pending(now_s, reply=reply)
        return Pending(now_s, operation=struck)

    def _list_layouts(self, request: Request, named: str, now_s: float) -> Pending:
        self._settled(now_s)
        return _now_answered(now_s, listed(request, self._layouts.all()))

    def _layout(self, request: Request, named: str, now_s: float) -> Pending:
        self._settled(now_s)
        _checked(named)
        return _now_answered(now_s, self._layouts.find(named).shown())

    def _change_layout(self, request: Request, named: str, now_s: float) -> Pending:
        _checked(named)
        self._box.settle(now_s)
        action = one_of(request, "action", ("cancel", "resume"))
        if not action:
            raise RefusedRequestError("invalid", "action: must be cancel or resume")
        if action == "resume":
            self._layouts.look()
            status, body = self._layouts.resume(named, now_s)
            return _now_answered(now_s, body, status)
        rollback = flag(request, "rollbackOnCancel")
        self._layouts.look(but=named)
        status, body = self._layouts.cancel(named, now_s, rollback=rollback)
        return _now_answered(now_s, body, status)

    def _delete_layout(self, request: Request, named: str, now_s: float) -> Pending:
        self._settled(now_s)
        _checked(named)
        self._layouts.delete(named)
        return Pending(now_s, reply=Response(204, {}, b""))

    def _settled(self, now_s: float) -> None:
        self._box.settle(now_s)
        self._layouts.look()

    def _migrate(self, request: Request, named: str, now_s: float) -> Pending:
        return self._read(now_s, lambda rows: migration(request, self._view.resources(rows)), layouts=True)


def _of_layouts(request: Request) -> bool:
    """Return whether the request is layout-apply's, whose errors have another form."""
    return request.path.startswith((APPLY, MIGRATION))


def _counted(name: str, values: list[Any]) -> dict[str, Any]:
    return {"count": len(values), name: values}


def _now_answered(now_s: float, value: Any, status: int = 200) -> Pending:
    return Pending(now_s, reply=answered(value, status))


def _with_id(found: Iterable[CdimResource], named: str) -> CdimResource:
    for each in found:
        if each.id == named:
            return each
    raise RefusedRequestError("unknown", f"resource {named}: does not exist")


def _checked(layout: str) -> None:
    """An ID is 10 hexadecimal digits."""
    if not re.fullmatch("[0-9a-f]{10}", layout):
        raise RefusedRequestError("invalid", f"{layout!r} does not match '^[0-9a-f]{{10}}$'")
