"""The dialect toy: how its chassis answers (face), how it is asked (client), what it is judged by (clauses).

A real dialect keeps face and client apart and shares no code between them, so that one may be wrong without the other.
"""

import json

from mews.dialects import Dialect
from mews.emulator.chassis.operation import OperationOutcome as Happened
from mews.emulator.dialects.wire import JSON, DialectFace, Dropped, Pending, Response, as_json, read_strings
from mews.harness.conformance.clause import Clause, must
from mews.harness.conformance.dialects.registry import DialectClauses
from mews.harness.conformance.moves import moving
from mews.harness.conformance.table import ListedDevice, ListedTable, Versions
from mews.kube.chassis.port import (
    ChassisError,
    ChassisReply,
    DeviceRecord,
    Listing,
    ReplyOutcome,
    TransportError,
    WireRequest,
)

DEVICES = "/toy/devices"


class Face:
    """One chassis as it answers: GET lists the devices, PUT puts one on a port, DELETE takes it off."""

    def __init__(self, box):
        self._box = box

    def begin(self, request, now_s):
        """Read the request, begin what it asks for."""
        device = request.path.removeprefix(DEVICES).removeprefix("/")
        if request.method == "GET" and not device:
            return Pending(now_s, operation=self._box.begin_read(now_s), render=_listed)
        if request.method == "PUT":
            try:
                port = read_strings(request.body, ("port",))["port"]
            except ValueError as error:
                return Pending(now_s, reply=Response(400, JSON, as_json({"error": str(error)})))
            return Pending(now_s, operation=self._box.begin_attach(device, port, now_s), render=_moved)
        if request.method == "DELETE":
            return Pending(now_s, operation=self._box.begin_detach(device, now_s), render=_moved)
        return Pending(now_s, reply=Response(404, JSON, as_json({"error": "no such path"})))

    def finish(self, pending, now_s):
        """The answer, once its time has come."""
        if pending.operation is None:
            return pending.reply
        answer = self._box.finish(pending.operation, now_s)
        if answer.outcome is Happened.DROPPED:
            return Dropped()
        if answer.outcome is Happened.ERROR:
            return Response(answer.status, JSON, as_json({"error": "internal"}))
        return pending.render(answer)


def _listed(answer):
    rows = [{"device": row.device, "uuid": row.uuid, "port": row.port} for row in answer.rows]
    return Response(200, JSON, as_json(rows))


def _moved(answer):
    if answer.ok:
        return Response(200, JSON, as_json({"done": True}))
    return Response(409, JSON, as_json({"error": answer.refusal.code if answer.refusal else "failed"}))


class Client:
    """One chassis as the components ask it: a ChassisApi (mews.kube.chassis.port)."""

    def __init__(self, transport):
        self._transport = transport

    async def resources(self):
        """The device table. Raises ChassisError."""
        try:
            response = await self._transport.send(WireRequest("GET", DEVICES))
            rows = json.loads(response.body)
            return Listing(tuple(DeviceRecord(row["device"], row["uuid"], row["port"]) for row in rows))
        except (TransportError, ValueError, KeyError, TypeError) as error:
            raise ChassisError(f"GET {DEVICES}: {error}") from error

    async def attach(self, device, port):
        """Put a device on a port; no answer is an unknown outcome."""
        return await self._move("PUT", device, json.dumps({"port": port}).encode())

    async def detach(self, device):
        """Take a device off its port."""
        return await self._move("DELETE", device, b"")

    async def _move(self, method, device, body):
        try:
            response = await self._transport.send(WireRequest(method, f"{DEVICES}/{device}", body))
        except TransportError as error:
            return ChassisReply(ReplyOutcome.UNKNOWN, str(error))
        if response.status >= 500:
            return ChassisReply(ReplyOutcome.UNKNOWN, f"HTTP {response.status}")
        return ChassisReply(ReplyOutcome.DONE if response.status < 400 else ReplyOutcome.FAILED, response.body.decode())


class Judged:
    """The same table as `mews conform` reads and changes it."""

    def __init__(self, client):
        self._client = client

    def read(self):
        """The listing."""
        rows = self._client.send("GET", DEVICES).json()
        return ListedTable({row["device"]: ListedDevice(row["uuid"], row["port"]) for row in rows})

    def attach(self, device, port):
        """What the answer claims."""
        return self._client.send("PUT", f"{DEVICES}/{device}", json.dumps({"port": port}).encode()).status < 400

    def detach(self, device):
        """What the answer claims."""
        return self._client.send("DELETE", f"{DEVICES}/{device}").status < 400

    def versions(self):
        """Nothing is known."""
        return Versions()

    def close(self):
        """Nothing is kept."""


def _list(bench):
    must(isinstance(bench.get(DEVICES).json(), list), f"GET {DEVICES}: must be a list")


CLAUSES = (
    Clause("1.list", "the listing is a JSON list", f"GET {DEVICES}", _list),
    *moving(1, attach=f"PUT {DEVICES}/ID", detach=f"DELETE {DEVICES}/ID", unknown_port="9999"),
)

DIALECT = Dialect(
    "toy",
    face=DialectFace(lambda box, settings: Face(box), prefix="/toy"),
    client=lambda transport, account, patience_s: Client(transport),
    clauses=DialectClauses(Judged, CLAUSES, __file__, lists_ports=False),
)
