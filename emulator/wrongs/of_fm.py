"""Wrongs of the fabric manager, its cluster manager and its token service."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from mews.emulator.dialects.wire import JSON, Request, Response, as_json
from mews.emulator.wrongs.parts import Make, headers, instead_of, replies
from mews.emulator.wrongs.tables import FM as WORDS
from mews.emulator.wrongs.tables import fm_error, with_json
from mews.emulator.wrongs.wrong import Ask, Handler, Reply, Stage, Wrong

FM = ("fm",)
_FABRIC = "/fabric_manager/api/v1"
_MACHINE = re.compile(rf"{_FABRIC}/machines/[^/]+")
_AVAILABLE = re.compile(rf"{_FABRIC}/machines/[^/]+/available-reserved-resources")
_CLUSTER_MACHINE = re.compile(r"/cluster_manager/cluster_autoscaler/v3/.*/machines/[^/]+")
_RESIZE = re.compile(r"/cluster_manager/.*/actions/resize")
_GROUPS = re.compile(r"/cluster_manager/.*/nodegroups")
_SECONDS_LEFT = 20


def _logs_in(request: Request) -> bool:
    return request.path.startswith("/id_manager/")


def _gets(pattern: re.Pattern[str] | str) -> Callable[[Request], bool]:
    return lambda request: request.method == "GET" and re.fullmatch(pattern, request.path) is not None


def _resizes(request: Request) -> bool:
    return request.method == "POST" and _RESIZE.fullmatch(request.path) is not None


def _value(when: Callable[[Request], bool], change: Callable[[Any], Any]) -> Make:
    """Return the JSON of every good reply to such a request, changed."""

    def changed(reply: Response) -> Response:
        return with_json(reply, change(json.loads(reply.body))) if reply.status == 200 and reply.body else reply

    return replies(when, changed)


def _each_resource(change: Callable[[dict[str, Any]], object]) -> Make:
    """Return every resource that the fabric manager shows, changed in its place."""

    def changed(value: Any) -> Any:
        data = value.get("data", {})
        machines = data.get("machines", [])
        for each in (*data.get("resources", []), *(one for m in machines for one in m.get("resources", []))):
            change(each)
        return value

    return _value(lambda request: request.path.startswith(_FABRIC), changed)


def _each_machine(change: Callable[[dict[str, Any]], object]) -> Make:
    """Return every machine of the list of machines, changed in its place."""

    def changed(value: Any) -> Any:
        for each in value["data"]["machines"]:
            change(each)
        return value

    return _value(_gets(f"{_FABRIC}/machines"), changed)


def _each_spec(change: Callable[[dict[str, Any]], object]) -> Make:
    """Return every specification of a machine of the cluster manager, changed in its place."""

    def changed(value: Any) -> Any:
        for each in value["data"]["cluster"]["machine"]["resspecs"]:
            change(each)
        return value

    return _value(_gets(_CLUSTER_MACHINE), changed)


def _lets_in(when: Callable[[Request], bool]) -> Make:
    """Such a request is answered as if it had the last good token."""

    def make(stage: Stage) -> Handler:
        good: list[str] = []

        def handler(request: Request, ask: Ask) -> Reply:
            reply = ask(request)
            given = request.headers.get("authorization", "")
            if not isinstance(reply, Response) or _logs_in(request):
                return reply
            if reply.status == 401 and good and when(request):
                return ask(replace(request, headers={**request.headers, "authorization": good[0]}))
            if reply.status != 401 and given:
                good[:] = [given]
            return reply

        return handler

    return make


def _claims(change: Callable[[dict[str, Any]], object]) -> Make:
    """Tokens with other claims, which are good all the same."""

    def make(stage: Stage) -> Handler:
        real: dict[str, str] = {}

        def handler(request: Request, ask: Ask) -> Reply:
            scheme, _, token = request.headers.get("authorization", "").partition(" ")
            if token in real:
                request = replace(request, headers={**request.headers, "authorization": f"{scheme} {real[token]}"})
            reply = ask(request)
            if not _logs_in(request) or not isinstance(reply, Response) or reply.status != 200:
                return reply
            value = json.loads(reply.body)
            head, packed, signature = value["access_token"].split(".")
            claims = json.loads(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)))
            change(claims)
            other = f"{head}.{base64.urlsafe_b64encode(as_json(claims)).rstrip(b'=').decode()}.{signature}"
            real[other] = value["access_token"]
            return with_json(reply, {**value, "access_token": other, "id_token": other})

        return handler

    return make


def _ends_soon(claims: dict[str, Any]) -> None:
    claims["exp"] = claims["iat"] + _SECONDS_LEFT


def _two_parts(value: Any) -> Any:
    return {**value, "access_token": value["access_token"].rpartition(".")[0]}


def _encoded_only(stage: Stage) -> Handler:
    """A form with a raw space is refused."""

    def handler(request: Request, ask: Ask) -> Reply:
        refused = Response(400, JSON, as_json({"error": "invalid_request", "error_description": "malformed form"}))
        return refused if _logs_in(request) and b" " in request.body else ask(request)

    return handler


def _any_password(stage: Stage) -> Handler:
    """Return a login that is refused is answered as the last good one."""
    good: list[bytes] = []

    def handler(request: Request, ask: Ask) -> Reply:
        reply = ask(request)
        if not _logs_in(request) or not isinstance(reply, Response):
            return reply
        if reply.status == 200:
            good[:] = [request.body]
        return ask(replace(request, body=good[0])) if reply.status == 401 and good else reply

    return handler


def _any_tenant(stage: Stage) -> Handler:
    """Other tenants are shown what the last one that there is was shown."""
    good: list[str] = []

    def handler(request: Request, ask: Ask) -> Reply:
        reply = ask(request)
        given = request.query.get("tenant_uuid")
        if given is None or not isinstance(reply, Response):
            return reply
        if reply.status == 403 and good:
            return ask(replace(request, query={**request.query, "tenant_uuid": good[0]}))
        if reply.status != 403:
            good[:] = [given]
        return reply

    return handler


def _as_the_mock(reply: Response) -> Response:
    if reply.status < 400 or reply.status == 401:
        return reply
    return Response(reply.status, reply.headers, as_json({"error": json.loads(reply.body)["detail"]["message"]}))


def _another_first(value: Any) -> Any:
    """An attach is answered with another resource before the new one."""
    for machine in value["data"]["machines"]:
        first = machine["resources"][0]
        machine["resources"].insert(0, {**first, "res_uuid": "00000000-0000-4000-8000-000000000001"})
    return value


def _attaching(request: Request) -> bool:
    return request.method == "PATCH" and WORDS.updates(request)


def _grows(stage: Stage) -> Handler:
    """Return a resize adds a device each time that it is asked for."""

    def handler(request: Request, ask: Ask) -> Reply:
        if not _resizes(request):
            return ask(request)
        value = json.loads(request.body)
        if value.get("increase_resource_count", {}).get("spec_uuid"):
            value["increase_resource_count"]["device_count"] += 1
        return ask(replace(request, body=as_json(value)))

    return handler


def _no_model(resource: dict[str, Any]) -> None:
    resource["res_spec"] = {"condition": []}


def _count_as_text(value: Any) -> Any:
    return {**value, "reserved_res_num_per_fabric": str(value["reserved_res_num_per_fabric"])}


def _one_more(value: Any) -> Any:
    return {**value, "reserved_res_num_per_fabric": value["reserved_res_num_per_fabric"] + 1}


def _lacks_last(value: Any) -> Any:
    for machine in value["data"]["machines"]:
        machine["resources"] = machine["resources"][:-1]
    return value


def _by_resource(spec: dict[str, Any]) -> None:
    for each in spec["devices"]:
        each["device_id"] = each["detail"]["res_uuid"]


def _counts_one_more(spec: dict[str, Any]) -> None:
    spec["device_count"] += 1


def _no_specs(value: Any) -> Any:
    value["data"]["cluster"]["machine"]["resspecs"] = {}
    return value


def _names_only(stage: Stage) -> Handler:
    """Return an attach that names no resource is refused."""

    def handler(request: Request, ask: Ask) -> Reply:
        unnamed = _attaching(request) and WORDS.move(request) is None and WORDS.specification(request) is not None
        return fm_error(400, "res_uuid is missing") if unnamed else ask(request)

    return handler


_NO_MACHINES = Response(200, JSON, as_json({"data": {"machines": []}}))
_ACCEPTED = Response(202, JSON, as_json({"data": {}}))

OF_FM: tuple[Wrong, ...] = (
    Wrong("two-part-token", "a token has two parts", FM, _value(_logs_in, _two_parts)),
    Wrong("exp-text", "exp is a text", FM, _claims(lambda claims: claims.update(exp=str(claims["exp"])))),
    Wrong("no-exp", "a token has no exp", FM, _claims(lambda claims: claims.pop("exp"))),
    Wrong("short-token", "a token lasts no longer than it is renewed before its end", FM, _claims(_ends_soon)),
    Wrong("mac-token", "token_type is mac", FM, _value(_logs_in, lambda value: {**value, "token_type": "mac"})),
    Wrong("encoded-only", "a form with a raw space is refused", FM, _encoded_only),
    Wrong("any-password", "any password is taken", FM, _any_password),
    Wrong("no-token-asked", "no token is asked for", FM, _lets_in(lambda r: not r.headers.get("authorization"))),
    Wrong("any-token", "a forged token is taken", FM, _lets_in(lambda r: bool(r.headers.get("authorization")))),
    Wrong("any-tenant", "another tenant is shown everything", FM, _any_tenant),
    Wrong("no-bearer-challenge", "a 401 does not name Bearer", FM, headers(lambda r: True, WWW_Authenticate=None)),
    Wrong("mock-errors", "errors are {error: text}", FM, replies(lambda r: not _logs_in(r), _as_the_mock)),
    Wrong("fabric-text", "fabric_id of a machine is a text", FM, _each_machine(lambda m: m.update(fabric_id="0"))),
    Wrong("no-mach-uuid", "a listed machine has no mach_uuid", FM, _each_machine(lambda m: m.pop("mach_uuid"))),
    Wrong("bare-machine", "a machine is not wrapped in data", FM, _value(_gets(_MACHINE), lambda value: value["data"])),
    Wrong("type-number", "res_type is a number", FM, _each_resource(lambda one: one.update(res_type=1))),
    Wrong("status-text", "res_status is a text", FM, _each_resource(lambda one: one.update(res_status="ok"))),
    Wrong("no-op-status", "res_op_status is empty", FM, _each_resource(lambda one: one.update(res_op_status=""))),
    Wrong("no-model", "a resource does not name its model", FM, _each_resource(_no_model)),
    Wrong("other-table", "a machine lacks a resource that is in it", FM, _value(_gets(_MACHINE), _lacks_last)),
    Wrong("count-text", "the number of available devices is a text", FM, _value(_gets(_AVAILABLE), _count_as_text)),
    Wrong("count-wrapped", "availability is wrapped in data", FM, _value(_gets(_AVAILABLE), lambda v: {"data": v})),
    Wrong("count-more", "one more device is available than is free", FM, _value(_gets(_AVAILABLE), _one_more)),
    Wrong(
        "unknown-machine-empty",
        "a machine that there is not is an empty list",
        FM,
        instead_of(lambda asked, found: found.status == 404 and _gets(_MACHINE)(asked), _NO_MACHINES),
    ),
    Wrong("another-first", "an attach is answered with another resource first", FM, _value(_attaching, _another_first)),
    Wrong("names-only", "an attach by model is refused", FM, _names_only),
    Wrong(
        "any-body",
        "a move in another form is answered as done",
        FM,
        instead_of(
            lambda asked, found: found.status == 400 and bool(asked.body) and WORDS.updates(asked),
            Response(200, JSON, as_json({"data": {"machines": []}})),
        ),
    ),
    Wrong("specs-object", "resspecs is an object", FM, _value(_gets(_CLUSTER_MACHINE), _no_specs)),
    Wrong("cluster-by-resource", "device_id is the resource's UUID", FM, _each_spec(_by_resource)),
    Wrong("cluster-count-more", "device_count counts one more", FM, _each_spec(_counts_one_more)),
    Wrong("grows", "a resize adds one each time", FM, _grows),
    Wrong(
        "any-specification",
        "a resize without a specification is accepted",
        FM,
        instead_of(lambda asked, found: found.status == 400 and _resizes(asked), _ACCEPTED),
    ),
    Wrong("groups-wrapped", "node groups are wrapped in data", FM, _value(_gets(_GROUPS), lambda v: {"data": v})),
)
