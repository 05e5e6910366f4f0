"""The event service: subscriptions by POST, and a stream of server-sent events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from mews.emulator.dialects.redfish import patching, uris
from mews.emulator.dialects.redfish.accounts import MANAGER
from mews.emulator.dialects.redfish.events import (
    EXCLUDED,
    FILTERED,
    REGISTRY_PREFIXES,
    RESOURCE_TYPES,
    EventSubscription,
    RedfishEvent,
    chunk,
)
from mews.emulator.dialects.redfish.filters import parse_filter
from mews.emulator.dialects.redfish.messages import fail
from mews.emulator.dialects.redfish.replies import PreparedReply
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, RedfishWrite, collection, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.tasks import Done
from mews.emulator.dialects.redfish.uris import ref
from mews.emulator.dialects.wire import Request, Stream

SERVICE = f"{uris.ROOT}/EventService"
TEST, SUSPEND, RESUME = (
    "EventService.SubmitTestEvent",
    "EventDestination.SuspendSubscription",
    "EventDestination.ResumeSubscription",
)
SUBORDINATE = "SubordinateResources"
FILTERS = ("RegistryPrefixes", "MessageIds", "ResourceTypes", "OriginResources", "Severities")
SEVERITIES = ("OK", "Warning", "Critical")
POLICIES = ("TerminateAfterRetries", "SuspendRetries", "RetryForever")
MOST = 20
"""Subscriptions."""


def service(view: RedfishView) -> Body:
    """Return the event service."""
    return resource(
        "EventService",
        SERVICE,
        "Event service",
        ServiceEnabled=True,
        DeliveryRetryAttempts=3,
        DeliveryRetryIntervalSeconds=5,
        EventFormatTypes=["Event"],
        IncludeOriginOfConditionSupported=False,
        ExcludeMessageId=True,
        ExcludeRegistryPrefix=True,
        SubordinateResourcesSupported=True,
        RegistryPrefixes=list(REGISTRY_PREFIXES),
        ResourceTypes=list(RESOURCE_TYPES),
        Severities=list(SEVERITIES),
        ServerSentEventUri=uris.SSE,
        SSEFilterPropertiesSupported={
            "EventFormatType": True,
            "MessageId": True,
            "MetricReportDefinition": False,
            "OriginResource": True,
            "RegistryPrefix": True,
            "ResourceType": True,
            "SubordinateResources": False,
        },
        Status=dict(OK),
        Subscriptions=ref(uris.SUBSCRIPTIONS),
        Actions={f"#{TEST}": {"target": f"{SERVICE}/Actions/{TEST}"}},
    )


def subscriptions(view: RedfishView) -> Body:
    """Return all destinations."""
    found = [each.uri for each in view.state.hub.subscriptions.values()]
    return collection("EventDestination", uris.SUBSCRIPTIONS, "Subscriptions", found)


def subscription(view: RedfishView, name: str) -> Body | None:
    """Return one destination."""
    found = view.state.hub.subscriptions.get(name)
    if found is None:
        return None
    wanted: dict[str, Any] = {key: value for key, value in found.wanted.items() if key != "OriginResources"}
    if "OriginResources" in found.wanted:
        wanted["OriginResources"] = [ref(uri) for uri in found.wanted["OriginResources"]]
    actions = {f"#{each}": {"target": f"{found.uri}/Actions/{each}"} for each in (SUSPEND, RESUME)}
    return resource(
        "EventDestination",
        found.uri,
        f"Subscription {name}",
        Protocol="Redfish",
        SubscriptionType="SSE" if found.stream else "RedfishEvent",
        EventFormatType="Event",
        Destination=found.destination or None,
        Context=found.context,
        DeliveryRetryPolicy=found.policy,
        HttpHeaders=[],
        Status={"State": "Enabled" if found.open else "Disabled", "Health": "OK"},
        Actions={} if found.stream else actions,
        SubordinateResources=found.subordinate,
        **wanted,
        **found.unwanted,
    )


def subscribe(call: RedfishWrite) -> Done:
    """Return one more destination.

    Raises RedfishError: 400, and 503 where there are too many.
    """
    body = dict(call.body)
    _known(body)
    destination = body.get("Destination")
    if destination is None:
        raise fail(400, "CreateFailedMissingReqProperties", "Destination", about=("#/Destination",))
    if not isinstance(destination, str) or urlsplit(destination).scheme not in ("http", "https"):
        raise fail(400, "PropertyValueFormatError", str(destination)[:100], "Destination", about=("#/Destination",))
    for name, allowed in (
        ("Protocol", ("Redfish",)),
        ("SubscriptionType", ("RedfishEvent",)),
        ("EventFormatType", ("Event",)),
        ("DeliveryRetryPolicy", POLICIES),
    ):
        value = body.get(name, allowed[-1])
        if value not in allowed:
            raise fail(400, "PropertyValueNotInList", str(value)[:100], name, about=(f"#/{name}",))
    if "Protocol" not in body:
        raise fail(400, "CreateFailedMissingReqProperties", "Protocol", about=("#/Protocol",))
    if len(call.state.hub.subscriptions) >= MOST:
        raise fail(503, "ServiceTemporarilyUnavailable", "60")
    made = call.state.hub.subscribe(
        "Redfish",
        destination=destination,
        context=_text(body, "Context"),
        wanted=_wanted(body, FILTERS),
        unwanted=_wanted(body, tuple(EXCLUDED)),
        subordinate=_flag(body, SUBORDINATE),
        headers=_headers(body.get("HttpHeaders", [])),
        policy=body.get("DeliveryRetryPolicy", POLICIES[-1]),
    )
    return Done(201, subscription(call.view, made.id), {"Location": made.uri})


def _known(body: dict[str, Any]) -> None:
    known = ("Destination", "Protocol", "Context", "SubscriptionType", "EventFormatType", "HttpHeaders", "Name")
    for name in body:
        if name not in (
            *known,
            "DeliveryRetryPolicy",
            "EventTypes",
            SUBORDINATE,
            *EXCLUDED,
            *FILTERS,
        ) and not name.startswith("@odata."):
            raise fail(400, "PropertyUnknown", name[:100], about=(f"#/{name}",))


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name) or ""
    if not isinstance(value, str):
        raise fail(400, "PropertyValueTypeError", str(value)[:100], name, about=(f"#/{name}",))
    return value


def _flag(body: dict[str, Any], name: str) -> bool:
    value = body.get(name, False)
    if not isinstance(value, bool):
        raise fail(400, "PropertyValueTypeError", str(value)[:100], name, about=(f"#/{name}",))
    return value


def _wanted(body: dict[str, Any], filters: Sequence[str]) -> dict[str, list[str]]:
    wanted: dict[str, list[str]] = {}
    for name in filters:
        if name not in body:
            continue
        value = body[name]
        check = patching.links("@odata.id") if name == "OriginResources" else patching.texts
        if check(value) is not None:
            raise fail(400, "PropertyValueTypeError", str(value)[:100], name, about=(f"#/{name}",))
        wanted[name] = [each["@odata.id"] if isinstance(each, dict) else each for each in value if each]
    return wanted


def _headers(value: Any) -> dict[str, str]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise fail(400, "PropertyValueTypeError", str(value)[:100], "HttpHeaders", about=("#/HttpHeaders",))
    pairs = {str(name): str(text) for each in value for name, text in each.items()}
    if any(mark in name + text for name, text in pairs.items() for mark in "\r\n"):
        raise fail(400, "PropertyValueFormatError", "…", "HttpHeaders", about=("#/HttpHeaders",))
    return pairs


def patch(call: RedfishWrite) -> Done:
    """Return its context, its retry policy."""
    found = call.state.hub.subscriptions[call.args[0]]
    found.context = call.body.get("Context", found.context)
    found.policy = call.body.get("DeliveryRetryPolicy", found.policy)
    return Done()


def unsubscribe(call: RedfishWrite) -> Done:
    """End a subscription, and its stream."""
    call.state.hub.unsubscribe(call.state.hub.subscriptions[call.args[0]])
    return Done()


def submit(call: RedfishWrite) -> Done:
    """Tell everybody something."""
    for name in ("EventType", "MessageId", "Message", "OriginOfCondition", "Severity", "MessageSeverity"):
        if not isinstance(call.body.get(name, ""), str | dict):
            raise fail(400, "ActionParameterValueTypeError", str(call.body[name])[:100], name, TEST)
    message_id = str(call.body.get("MessageId", "ResourceEvent.1.4.TestMessage"))
    text = str(call.body.get("Message", "A test event."))
    call.state.emit(RedfishEvent(message_id, text, (), "OK", uris.MANAGER, "Manager"), call.now_s, log=False)
    return Done()


def _suspended(call: RedfishWrite, word: str) -> Done:
    call.state.hub.subscriptions[call.args[0]].open = word == RESUME
    return Done()


# The stream


def sse(view: RedfishView) -> Body:
    """Return a stub, which routing needs; ``stream`` answers the request."""
    return {"@odata.id": uris.SSE}


def stream(view: RedfishView, request: Request, args: tuple[str, ...]) -> PreparedReply:
    """Return a subscription that lasts as long as the connection; ``Last-Event-ID`` says what was heard already.

    Raises RedfishError: 501 for another query than ``$filter``, 400 for a filter that the service's properties do not
    offer.
    """
    for name in request.query:
        if name != "$filter":
            raise fail(501 if name.startswith("$") else 400, "QueryNotSupported", name[:100])
    text = request.query.get("$filter")
    try:
        test = None if text is None else parse_filter(text, FILTERED)
    except ValueError:
        raise fail(400, "QueryParameterValueError", str(text)[:100], "$filter") from None
    hub, last_seen = view.state.hub, request.headers.get("last-event-id", "")
    headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "Allow": "GET"}
    if request.method == "HEAD":
        return PreparedReply(200, b"", headers)
    made = hub.subscribe("Redfish", stream=True, context="stream", test=test)
    if last_seen.isascii() and last_seen.isdecimal():
        hub.replay(made, int(last_seen))
    return PreparedReply(200, b"", headers, Stream(lambda: _take(made), lambda: hub.unsubscribe(made)))


def _take(made: EventSubscription) -> list[bytes] | None:
    if not made.open:
        return None
    taken = [chunk(number, payload) for number, payload in made.waiting]
    made.waiting.clear()
    return taken


RULES = {
    "DeliveryRetryAttempts": patching.number(0, 10),
    "DeliveryRetryIntervalSeconds": patching.number(1, 600),
}
DESTINATION_RULES = {"Context": patching.text, "DeliveryRetryPolicy": patching.one_of(*POLICIES)}
ROUTES = (
    RedfishRoute(SERVICE, service, rules=RULES, privilege=MANAGER, actions={TEST: submit}),
    RedfishRoute(uris.SUBSCRIPTIONS, subscriptions, post=subscribe, privilege=MANAGER),
    RedfishRoute(
        f"{uris.SUBSCRIPTIONS}/{{subscription}}",
        subscription,
        rules=DESTINATION_RULES,
        patch=patch,
        delete=unsubscribe,
        privilege=MANAGER,
        actions={SUSPEND: lambda call: _suspended(call, SUSPEND), RESUME: lambda call: _suspended(call, RESUME)},
    ),
    RedfishRoute(uris.SSE, sse, answer=stream),
)
