"""The dialect: a request is let in, routed, read or written through the chassis core, and answered with due headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.chassis.operation import OperationOutcome
from mews.emulator.chassis.table import DeviceRow
from mews.emulator.dialects.redfish import etags, gate
from mews.emulator.dialects.redfish.documents import document
from mews.emulator.dialects.redfish.events import Hub
from mews.emulator.dialects.redfish.messages import RedfishError, RedfishMessage, fail
from mews.emulator.dialects.redfish.patching import merge, sift
from mews.emulator.dialects.redfish.query import shape
from mews.emulator.dialects.redfish.replies import PreparedReply, dress
from mews.emulator.dialects.redfish.resources.registry import ROUTES
from mews.emulator.dialects.redfish.route import Body, RedfishRoute, RedfishWrite, Requester, RouteTree
from mews.emulator.dialects.redfish.service_state import RedfishView, ServiceState
from mews.emulator.dialects.redfish.settings import RedfishSettings, without_a_wire
from mews.emulator.dialects.redfish.tasks import Done, Started
from mews.emulator.dialects.redfish.work import StartedWork, reply_of
from mews.emulator.dialects.wire import Dropped, JsonError, Pending, Request, Response, read_object

VERBS = ("GET", "HEAD", "POST", "PATCH", "DELETE", "PUT", "OPTIONS")


class RedfishFace:
    """One chassis as a Redfish service.

    Without ``settings`` it is for use in process: nobody can know its password but by ``password``.
    """

    def __init__(self, box: EmulatedChassis, settings: RedfishSettings | None = None) -> None:
        self._box = box
        self.state = ServiceState(box, settings or without_a_wire(box.spec.name))
        self._tree = RouteTree(ROUTES)

    @property
    def password(self) -> str:
        """The first account's password, as it was at the start."""
        return self.state.settings.password

    @property
    def hub(self) -> Hub:
        """The subscriptions, and the events that wait for them."""
        return self.state.hub

    # The dialect

    def begin(self, request: Request, now_s: float) -> Pending:
        """Let in, route, begin what is asked."""
        if self._box.management.down(now_s):
            return Pending(now_s, operation=self._box.begin_read(now_s))
        now_s = self._box.now_s
        self.state.sync()
        self.state.tasks.sweep(now_s)
        path = request.path.rstrip("/") or "/"
        try:
            return self._begin(request, path, now_s)
        except RedfishError as failure:
            return self._ready(request, now_s, PreparedReply(failure.status, failure.body(), failure.headers))

    def finish(self, pending: Pending, now_s: float) -> Response | Dropped:
        """Return the answer."""
        if pending.operation is None:
            assert pending.reply is not None
            return pending.reply
        answer = self._box.finish(pending.operation, now_s)
        if answer.outcome is OperationOutcome.DROPPED:
            return Dropped()
        if answer.outcome is OperationOutcome.ERROR or pending.render is None:
            failure = fail(answer.status if answer.status >= 400 else 500, "InternalError")
            return dress(PreparedReply(failure.status, failure.body()), head=False)
        return pending.render(answer)

    def _ready(self, request: Request, now_s: float, reply: PreparedReply) -> Pending:
        return Pending(now_s, reply=dress(reply, head=request.method == "HEAD"))

    # Routing

    def _begin(self, request: Request, path: str, now_s: float) -> Pending:
        who = gate.identify(request, path, self.state.accounts, now_s)
        if request.headers.get("odata-version", "4.0") != "4.0":
            raise fail(412, "HeaderInvalid", "OData-Version")
        if request.method not in VERBS:
            raise fail(501, "OperationNotAllowed")
        if (found := document(request.method, path, ROUTES)) is not None:
            gate.acceptable(request, path)
            return self._ready(request, now_s, found)
        if "/Actions/" in path:
            return self._act(request, path, who, now_s)
        route, args, path = self._route(path, request.method)
        gate.acceptable(request, path)
        gate.admit(who, request.method, path, route.privilege)
        if request.method in ("GET", "HEAD"):
            if route.answer is not None:
                view = self._view(self._box.rows(now_s), now_s)
                return self._ready(request, now_s, route.answer(view, request, args))
            return self._get(request, route, path, now_s)
        if request.method == "OPTIONS":
            return self._ready(request, now_s, PreparedReply(204, None, {"Allow": route.allow()}))
        if request.method not in route.allow().split(", "):
            raise RedfishError(405, (RedfishMessage("OperationNotAllowed"),), {"Allow": route.allow()})
        return self._write(request, route, args, path, who, now_s)

    def _route(self, path: str, method: str) -> tuple[RedfishRoute, tuple[str, ...], str]:
        if method == "POST":
            path = path.removesuffix("/Members")
        found = self._tree.find(path)
        if found is None:
            raise fail(404, "InvalidURI", path)
        return *found, path

    def _view(self, rows: tuple[DeviceRow, ...], now_s: float) -> RedfishView:
        return RedfishView(self.state, rows, now_s)

    def _body(self, view: RedfishView, path: str) -> Body | None:
        """Return a resource as it is, written properties and tag included; None if there is none."""
        path = path.rstrip("/")
        found = self._tree.find(path)
        body = None if found is None else found[0].read(view, *found[1])
        if body is None:
            return None
        over = self.state.overlays.get(path)
        if over:
            body = merge(body, over)
        body["@odata.etag"] = etags.etag(body, self.state.revisions.get(path, 0))
        return body

    # Reading

    def _get(self, request: Request, route: RedfishRoute, path: str, now_s: float) -> Pending:
        if route.listing:
            head = request.method == "HEAD"
            return Pending(
                now_s,
                operation=self._box.begin_read(now_s),
                render=lambda answer: dress(self._shown(request, route, path, self._at(answer.rows)), head=head),
            )
        if request.method == "GET" and not request.query:
            return Pending(now_s, reply=self._kept(request, route, path, now_s))
        view = self._view(self._box.rows(now_s), now_s)
        return self._ready(request, now_s, self._shown(request, route, path, view))

    def _kept(self, request: Request, route: RedfishRoute, path: str, now_s: float) -> Response:
        """Return the reply to a plain GET: the one of last time, where nothing has changed since."""
        kept = self.state.rendered.get(path)
        if kept is None:
            view = self._view(self._box.rows(now_s), now_s)
            shown = self._shown(request, route, path, view)
            reply = dress(shown, head=False)
            if shown.status == 200 and not view.timed:
                self.state.rendered.keep(path, reply, shown.headers["ETag"])
            return reply
        reply, tag = kept
        if not etags.is_current(request.headers, tag):
            return dress(PreparedReply(304, None, {"ETag": tag, "Allow": route.allow()}), head=False)
        return reply

    def _at(self, rows: tuple[DeviceRow, ...]) -> RedfishView:
        return self._view(rows, self._box.now_s)

    def _shown(self, request: Request, route: RedfishRoute, path: str, view: RedfishView) -> PreparedReply:
        try:
            body = self._body(view, path)
            if body is None:
                raise fail(404, "ResourceMissingAtURI", path)
            tag = body["@odata.etag"]
            headers = {"ETag": tag, "Allow": route.allow()}
            if not etags.is_current(request.headers, tag):
                return PreparedReply(304, None, headers)
            shown = shape(body, request.query, lambda uri: self._body(view, uri), self.state.settings.page)
        except RedfishError as failure:
            return PreparedReply(failure.status, failure.body(), failure.headers)
        return PreparedReply(200, shown, headers)

    # Writing

    def _act(self, request: Request, path: str, who: Requester, now_s: float) -> Pending:
        target, _, name = path.partition("/Actions/")
        found = self._tree.find(target)
        handler = found[0].actions.get(name) if found else None
        if found is None or handler is None:
            raise fail(404, "ActionNotSupported", name)
        route, args = found
        gate.acceptable(request, path)
        gate.admit(who, "POST", path, route.privilege)
        if request.method != "POST":
            raise RedfishError(405, (RedfishMessage("OperationNotAllowed"),), {"Allow": "POST"})
        call = self._call(request, route, args, target, who, now_s)
        return self._done(request, call, handler(call), now_s)

    def _write(
        self, request: Request, route: RedfishRoute, args: tuple[str, ...], path: str, who: Requester, now_s: float
    ) -> Pending:
        call = self._call(request, route, args, path, who, now_s)
        etags.check(request.headers, call.shown["@odata.etag"])
        if request.method == "PATCH":
            return self._patch(request, route, call, now_s)
        handler = route.post if request.method == "POST" else route.delete
        assert handler is not None
        return self._done(request, call, handler(call), now_s)

    def _call(
        self, request: Request, route: RedfishRoute, args: tuple[str, ...], path: str, who: Requester, now_s: float
    ) -> RedfishWrite:
        view = self._view(self._box.rows(now_s), now_s)
        shown = self._body(view, path)
        if shown is None:
            raise fail(404, "ResourceMissingAtURI", path)
        body = {} if request.method == "DELETE" else _json(request)
        return RedfishWrite(view, path, args, body, who, request, shown, lambda uri: self._body(view, uri))

    def _patch(self, request: Request, route: RedfishRoute, call: RedfishWrite, now_s: float) -> Pending:
        rules = route.rules if isinstance(route.rules, Mapping) else route.rules(call.view)
        changes, problems = sift(call.body, rules, call.shown)
        asked = RedfishWrite(call.view, call.uri, call.args, changes, call.who, request, call.shown, call.read)
        if route.patch is None:
            self.state.overlays[call.uri] = merge(self.state.overlays.get(call.uri, {}), changes)
            done: Done | Started = Done()
        else:
            done = route.patch(asked)
        return self._done(request, call, done, now_s, problems=problems)

    def _done(
        self,
        request: Request,
        call: RedfishWrite,
        done: Done | Started,
        now_s: float,
        *,
        problems: list[RedfishMessage] | None = None,
    ) -> Pending:
        if isinstance(done, Started):
            return StartedWork(self._box, self.state, request, call).pending(
                done, now_s, lambda ended: self._written(request, call, ended, problems)
            )
        return Pending(now_s, reply=dress(self._written(request, call, done, problems), head=False))

    def _written(
        self, request: Request, call: RedfishWrite, done: Done, problems: list[RedfishMessage] | None
    ) -> PreparedReply:
        if done.status < 400:
            self.state.touch(call.uri)
        if request.method != "PATCH" or done.status not in (200, 204):
            return reply_of(done)
        view = self._view(self._box.rows(self._box.now_s), self._box.now_s)
        body = self._body(view, call.uri) or {}
        headers = {"ETag": body["@odata.etag"]} if body else {}
        if problems:
            body = {**body, "@Message.ExtendedInfo": [message.render() for message in problems]}
        return PreparedReply(200, body, headers)


def _json(request: Request) -> dict[str, Any]:
    """Return the body of a write; an action may have none.

    Raises RedfishError: 400, 413, 415.
    """
    if request.too_large:
        raise fail(413, "MissingOrMalformedPart")
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if request.body and kind != "application/json":
        raise fail(415, "UnsupportedMediaType")
    if not request.body and "/Actions/" in request.path:
        return {}
    try:
        if request.body.strip() == b"null":
            raise fail(400, "MalformedJSON")
        return read_object(request.body)
    except JsonError:
        raise fail(400, "MalformedJSON") from None
