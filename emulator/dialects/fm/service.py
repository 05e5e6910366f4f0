"""One chassis as Fujitsu's fabric manager shows it, with the cluster manager and the token service beside it.

Each chassis is one fabric and has one manager (contract cohdi.md 2.1 to 2.3). Not known of the real one and marked
"assumed": statuses and codes of errors, the form of a 401, the words of devices in transit, and ``GET /resources``,
which lists free devices, too: no public client asks for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.chassis.operation import Answer, OperationOutcome
from mews.emulator.chassis.table import DeviceRow
from mews.emulator.dialects.fm.bodies import Wanted, attach_body, detach_body, query_condition, resize_body
from mews.emulator.dialects.fm.cluster_manager import ClusterManager
from mews.emulator.dialects.fm.errors import FAILURES, FabricManagerError, error_response
from mews.emulator.dialects.fm.records import FabricView
from mews.emulator.dialects.fm.tokens import TOKEN_PATH, TokenService
from mews.emulator.dialects.identities import CLUSTER, TENANT
from mews.emulator.dialects.machines import CabledMachine, leave_only
from mews.emulator.dialects.redfish.settings import ADMIN, RedfishSettings, without_a_wire
from mews.emulator.dialects.wire import JSON, Dropped, Pending, Request, Response, as_json

FABRIC = "/fabric_manager/api/v1"
AUTOSCALER = "/cluster_manager/cluster_autoscaler"
PREFIXES = ("/fabric_manager/", "/cluster_manager/", "/id_manager/")
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="mews"'}

_MACHINES = re.compile(rf"{FABRIC}/machines")
_MACHINE = re.compile(rf"{FABRIC}/machines/([^/]+)")
_AVAILABLE = re.compile(rf"{FABRIC}/machines/([^/]+)/available-reserved-resources")
_UPDATE = re.compile(rf"{FABRIC}/machines/([^/]+)/update")
_RESOURCES = re.compile(rf"{FABRIC}/resources")
_CLUSTER = rf"{AUTOSCALER}/v3/tenants/([^/]+)/clusters/([^/]+)/machines/([^/]+)"
_CLUSTER_MACHINE = re.compile(_CLUSTER)
_RESIZE = re.compile(rf"{_CLUSTER}/actions/resize")
_GROUPS = re.compile(rf"{AUTOSCALER}/v2/tenants/([^/]+)/clusters/([^/]+)/nodegroups")
_GROUP = re.compile(rf"{AUTOSCALER}/v2/tenants/([^/]+)/clusters/([^/]+)/nodegroups/([^/]+)")

_Act = Callable[[Request, tuple[str, ...], float], Pending]


class FmFace:
    """One chassis. ``begin`` asks for a token first, then for the tenant, then for what the path is about."""

    def __init__(self, box: EmulatedChassis, settings: RedfishSettings | None = None) -> None:
        self._settings = settings or without_a_wire(box.spec.name)
        self._box = box
        self.tenant = self._settings.tenant or TENANT
        self.password = self._settings.password
        self._view = FabricView(box, self.tenant)
        self._tokens = TokenService(ADMIN, self.password, self._settings.secret(), self.tenant)
        self._clusters = ClusterManager(box, self._view, self.tenant)
        self._routes: tuple[tuple[re.Pattern[str], dict[str, _Act]], ...] = (
            (_MACHINES, {"GET": self._list_machines}),
            (_MACHINE, {"GET": self._machine}),
            (_AVAILABLE, {"GET": self._available}),
            (_UPDATE, {"PATCH": self._attach, "DELETE": self._detach}),
            (_RESOURCES, {"GET": self._resources}),
            (_CLUSTER_MACHINE, {"GET": self._cluster_machine}),
            (_RESIZE, {"POST": self._resize}),
            (_GROUPS, {"GET": self._groups}),
            (_GROUP, {"GET": self._group}),
        )

    def begin(self, request: Request, now_s: float) -> Pending:
        """Read the request, begin what it asks for."""
        if self._box.management.down(now_s):
            return Pending(now_s, operation=self._box.begin_read(now_s))
        login = TOKEN_PATH.fullmatch(request.path)
        if login is not None:
            return Pending(now_s, reply=self._tokens.answer(request, login[1], self._unix_s(now_s)))
        try:
            why_not = self._tokens.why_not(request, self._unix_s(now_s))
            if why_not:
                raise FabricManagerError("unauthorized", why_not, CHALLENGE)
            return self._begin(request, now_s)
        except FabricManagerError as refused:
            return Pending(now_s, reply=refused.response())

    def finish(self, pending: Pending, now_s: float) -> Response | Dropped:
        """Return the answer."""
        operation = pending.operation
        if operation is None:
            assert pending.reply is not None
            return pending.reply
        answer = self._box.finish(operation, now_s)
        if operation.ends_login:
            self._tokens.revoke(self._unix_s(now_s))
        if answer.outcome is OperationOutcome.DROPPED:
            return Dropped()
        if answer.outcome is OperationOutcome.ERROR or pending.render is None:
            if answer.status == 401:
                return FabricManagerError("unauthorized", "the token has expired", CHALLENGE).response()
            status = answer.status if answer.status >= 400 else 500
            return error_response(status, FAILURES["failed"][1], "Internal Server Error")
        try:
            return pending.render(answer)
        except FabricManagerError as refused:
            return refused.response()

    def _unix_s(self, now_s: float) -> float:
        """Tokens live in real time, however fast the hardware is."""
        wall_s = self._settings.wall_s
        return self._settings.epoch_s + now_s if wall_s is None else wall_s()

    def _begin(self, request: Request, now_s: float) -> Pending:
        for pattern, verbs in self._routes:
            match = pattern.fullmatch(request.path)
            if match is None:
                continue
            act = verbs.get(request.method)
            if act is None:
                allowed = ", ".join(verbs)
                raise FabricManagerError("method", f"{request.method}: must be {allowed}", {"Allow": allowed})
            self._check_tenant(request, match.groups())
            return act(request, match.groups(), now_s)
        raise FabricManagerError("path", f"there is nothing at {quote(request.path)}")

    def _check_tenant(self, request: Request, named: tuple[str, ...]) -> None:
        """A fabric manager's tenant stands in the query, a cluster manager's in the path, before its cluster."""
        if request.path.startswith(FABRIC):
            given = request.query.get("tenant_uuid", "")
            if not given:
                raise FabricManagerError("bad-request", "tenant_uuid: must be in the query")
        else:
            given = named[0]
            if given == self.tenant and named[1] != CLUSTER:
                raise FabricManagerError("path", f"cluster {named[1]}: not one of this tenant")
        if given != self.tenant:
            raise FabricManagerError("other-tenant", f"tenant {given}: not one of this account")

    # Fabric manager

    def _read(self, now_s: float, show: Callable[[tuple[DeviceRow, ...]], Any]) -> Pending:
        operation = self._box.begin_read(now_s)
        return Pending(now_s, operation=operation, render=lambda answer: _ok(show(answer.rows)))

    def _list_machines(self, request: Request, named: tuple[str, ...], now_s: float) -> Pending:
        def show(rows: tuple[DeviceRow, ...]) -> Any:
            return {"data": {"machines": [self._view.machine(each) for each in self._view.seen(rows).values()]}}

        return self._read(now_s, show)

    def _machine(self, request: Request, named: tuple[str, ...], now_s: float) -> Pending:
        def show(rows: tuple[DeviceRow, ...]) -> Any:
            machine = self._view.seen(rows).get(named[0])
            if machine is None:
                raise _no_machine(named[0])
            own = [row for row in rows if row.port == machine.port]
            return {"data": {"machines": [self._view.machine(machine, own)]}}

        return self._read(now_s, show)

    def _resources(self, request: Request, named: tuple[str, ...], now_s: float) -> Pending:
        def show(rows: tuple[DeviceRow, ...]) -> Any:
            machines = [self._view.machine(each) for each in self._view.seen(rows).values()]
            return {"data": {"machines": machines, "resources": [self._view.placed(row) for row in rows]}}

        return self._read(now_s, show)

    def _available(self, request: Request, named: tuple[str, ...], now_s: float) -> Pending:
        wanted = query_condition(request.query)
        self._known(named[0])

        def show(rows: tuple[DeviceRow, ...]) -> Any:
            free = {row.device for row in rows if row.port is None and self._fits(row, wanted)}
            return {"fabric_id": self._view.fabric_id, "reserved_res_num_per_fabric": len(free)}

        return self._read(now_s, show)

    def _attach(self, request: Request, named: tuple[str, ...], now_s: float) -> Pending:
        machine = self._known(named[0])
        wanted = attach_body(request, self.tenant, machine.uuid)
        device = self._chosen(wanted, now_s)
        operation = self._box.begin_attach(device, machine.port, now_s)

        def show(answer: Answer) -> Response:
            _must_be_done(answer)
            row = self._box.row(device, self._box.now_s)
            return _ok({"data": {"machines": [self._view.machine(machine, [row])]}})

        return Pending(now_s, operation=operation, render=show)

    def _detach(self, request: Request, named: tuple[str, ...], now_s: float) -> Pending:
        machine = self._known(named[0])
        leaving = detach_body(request, self.tenant, machine.uuid)
        device = self._view.device(leaving.res_uuid)
        if device is None:
            raise FabricManagerError("unknown-device", f"resource {leaving.res_uuid}: not in this fabric")
        row = self._box.row(device, now_s)
        if row.port != machine.port or row.kind.lower() != leaving.kind.lower():
            raise FabricManagerError(
                "elsewhere", f"resource {leaving.res_uuid}: is no {leaving.kind} of machine {machine.uuid}"
            )
        operation = self._box.begin_detach(device, now_s)
        leave_only(self._box, operation, machine.port)

        def show(answer: Answer) -> Response:
            _must_be_done(answer)
            return Response(204, {}, b"")

        return Pending(now_s, operation=operation, render=show)

    def _known(self, uuid: str) -> CabledMachine:
        machine = self._view.machines.get(uuid)
        if machine is None:
            raise _no_machine(uuid)
        return machine

    def _fits(self, row: DeviceRow, wanted: Wanted) -> bool:
        own = {"model": self._view.model(row.device), "res_uuid": self._view.uuid(row.device)}
        return row.kind.lower() == wanted.kind.lower() and all(own[c] == v for c, v in wanted.conditions.items())

    def _chosen(self, wanted: Wanted, now_s: float) -> str:
        """Return the device that a request means: the one it names, or the first free one that nobody is moving."""
        self._box.settle(now_s)
        rows, moving = self._box.table.listing(), self._box.operations.pending()
        fitting = [row for row in rows if self._fits(row, wanted)]
        if "res_uuid" in wanted.conditions:
            if not fitting:
                raise FabricManagerError("unknown-device", "no resource of this fabric fulfils the conditions")
            return fitting[0].device
        for row in fitting:
            if row.port is None and row.device not in moving:
                return row.device
        raise FabricManagerError("none-free", "no free resource fulfils the conditions")

    # Cluster manager

    def _cluster_machine(self, request: Request, named: tuple[str, ...], now_s: float) -> Pending:
        machine = self._known(named[2])
        return self._read(now_s, lambda rows: self._clusters.machine(machine, rows))

    def _resize(self, request: Request, named: tuple[str, ...], now_s: float) -> Pending:
        """What it begins goes on after the answer; a connection is dropped, and an error answered, at once."""
        machine = self._known(named[2])
        begun = self._clusters.resize(machine, resize_body(request), now_s)
        struck = next((each for each in begun if each.outcome is not OperationOutcome.REPLY), None)
        if struck is None:
            return Pending(now_s, reply=_ok({"data": {}}, 202))
        return Pending(now_s, operation=struck)

    def _groups(self, request: Request, named: tuple[str, ...], now_s: float) -> Pending:
        group = {"uuid": self._view.group_uuid, "name": self._box.spec.name}
        return self._read(now_s, lambda rows: {"nodegroups": [group]})

    def _group(self, request: Request, named: tuple[str, ...], now_s: float) -> Pending:
        if named[2] != self._view.group_uuid:
            raise FabricManagerError("path", f"node group {named[2]}: not one of this cluster")
        group = {"uuid": self._view.group_uuid, "name": self._box.spec.name, "mach_ids": [*self._view.machines]}
        return self._read(now_s, lambda rows: group)


def _ok(value: Any, status: int = 200) -> Response:
    return Response(status, JSON, as_json(value))


def _no_machine(uuid: str) -> FabricManagerError:
    return FabricManagerError("unknown-machine", f"machine {uuid}: not one of this fabric")


def _must_be_done(answer: Answer) -> None:
    """Raise FabricManagerError unless a move is answered as done."""
    if answer.ok:
        return
    if answer.refusal is not None and not answer.lie:
        code = answer.refusal.code
        raise FabricManagerError(code if code in FAILURES else "failed", str(answer.refusal))
    raise FabricManagerError("lie", "link timeout")
