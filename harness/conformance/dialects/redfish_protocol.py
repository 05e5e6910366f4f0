"""Clauses about how a Redfish service speaks (contract chassis.md 4, rules of the protocol), changing nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import Clause, must
from mews.harness.conformance.client import HttpReply
from mews.harness.conformance.dialects.redfish_model import schema_of, somewhere, walk
from mews.harness.conformance.dialects.redfish_table import ROOT, SESSIONS
from mews.harness.conformance.errors import MalformedError, NotJudgedError, UnmetClauseError
from mews.harness.conformance.fields import LINK, at, leaves, link_of, links, local, members, objects, text

PUBLIC = ("/redfish", ROOT, "/redfish/v1/odata", "/redfish/v1/$metadata")
PRIVATE = ("Systems", "Chassis", "Fabrics", "Managers", "SessionService", "AccountService")
RULES = "chassis.md 4: rules of the protocol"


def ask(
    bench: ClauseContext, method: str, path: str, *, known: bool = True, body: Any = None, **headers: str
) -> HttpReply:
    """Return one request, again while there is no answer."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    reply: HttpReply = bench.insist(lambda: bench.face.send(method, path, body, named, known=known))
    return reply


def extended(reply: HttpReply, what: str) -> Mapping[str, Any]:
    """Return the error of a reply.

    Raises UnmetClauseError where it has another form.
    """
    try:
        found = members(reply.json() if reply.body else {}, "error")
    except MalformedError as error:
        raise UnmetClauseError(f"{what}: {error}") from error
    form = isinstance(found.get("code"), str) and isinstance(found.get("message"), str)
    must(form, f"{what}: {reply.text[:120]!r}: must be error{{code,message,@Message.ExtendedInfo[…]}}")
    must(objects(found, "@Message.ExtendedInfo"), f"{what}: has no @Message.ExtendedInfo")
    return found


def status(reply: HttpReply, wanted: int | tuple[int, ...], what: str) -> None:
    """The reply must have one of these."""
    allowed = (wanted,) if isinstance(wanted, int) else wanted
    must(reply.status in allowed, f"{what}: HTTP {reply.status}, must be {' or '.join(map(str, allowed))}")


def resources(bench: ClauseContext) -> Iterator[tuple[str, HttpReply]]:
    """Path and reply of every resource of the walk."""
    found = walk(bench)
    return ((path, found.replies[path]) for path in found.resources)


def example(bench: ClauseContext) -> str:
    """Return a resource that can be looked at: a zone where there is one, else any other than the root."""
    with contextlib.suppress(NotJudgedError):
        ports = bench.insist(bench.face.read).ports
        if ports:
            found: str = bench.face.zone(ports[0])
            return found
    return next((path for path, value in walk(bench).resources.items() if path != ROOT and schema_of(value)), ROOT)


def collection(bench: ClauseContext) -> str:
    """Return a collection: that of the endpoints where there is one, else any other."""
    with contextlib.suppress(NotJudgedError):
        found: str = bench.insist(lambda: bench.face.path("Endpoints"))
        return found
    known = walk(bench).resources.items()
    other = next((path for path, value in known if isinstance(value.get("Members"), list)), None)
    if other is None:
        raise NotJudgedError("there is no collection")
    return other


def features(bench: ClauseContext) -> Mapping[str, Any]:
    """``ProtocolFeaturesSupported``."""
    return members(ask(bench, "GET", ROOT).json(), "ProtocolFeaturesSupported")


def _odata_version(bench: ClauseContext) -> None:
    for path, reply in resources(bench):
        found = reply.headers.get("odata-version")
        must(found == "4.0", f"GET {path}: OData-Version {found!r}, must be 4.0")
    status(ask(bench, "GET", ROOT, OData_Version="5.0"), 412, f"GET {ROOT} with OData-Version: 5.0")


def _public(bench: ClauseContext) -> None:
    for path in PUBLIC:
        status(ask(bench, "GET", path, known=False), 200, f"GET {path} without credentials")


def _private(bench: ClauseContext) -> None:
    root = ask(bench, "GET", ROOT, known=False).json()
    for name in PRIVATE:
        path = link_of(at(root, name))
        if not path:
            continue
        reply = ask(bench, "GET", path, known=False)
        status(reply, 401, f"GET {path} without credentials")
        must(reply.headers.get("www-authenticate"), f"GET {path} without credentials: 401 without WWW-Authenticate")
    status(ask(bench, "GET", "/redfish/v1/NoSuchThing", known=False), 401, "GET of nothing without credentials")


def _allow(bench: ClauseContext) -> None:
    for path, reply in resources(bench):
        allowed = reply.headers.get("allow", "")
        must("GET" in allowed, f"GET {path}: Allow {allowed!r}, must name the verbs")


def _described_by(bench: ClauseContext) -> None:
    for path, reply in resources(bench):
        found = reply.headers.get("link", "")
        must("describedby" in found, f"GET {path}: Link {found!r}, must be <schema>; rel=describedby")


def _sessions(bench: ClauseContext) -> None:
    reply = bench.face.login
    if reply is None:
        raise NotJudgedError("no login was made")
    status(reply, 201, "POST of a session")
    must(reply.headers.get("x-auth-token"), "a new session: no X-Auth-Token")
    must(reply.headers.get("location"), "a new session: no Location")


def _basic(bench: ClauseContext) -> None:
    if bench.client.credentials is None:
        raise NotJudgedError("there are no credentials")
    reply = ask(bench, "GET", "/redfish/v1/Systems", known=False, **bench.face.basic())
    status(
        reply, 200 if bench.client.encrypted else 401, f"Basic {'over TLS' if bench.client.encrypted else 'in clear'}"
    )


def _roles(bench: ClauseContext) -> None:
    roles = {text(value, "RoleId") or text(value, "Id") for value in walk(bench).of("Role")}
    missing = {"Administrator", "Operator", "ReadOnly"} - roles
    somewhere(bench, not missing, f"roles {', '.join(sorted(missing))} are missing")


def _etag(bench: ClauseContext) -> None:
    tagged = 0
    for path, reply in resources(bench):
        member, header = at(reply.json(), "@odata.etag"), reply.headers.get("etag")
        tagged += member is not None
        must(member is None or member == header, f"GET {path}: ETag {header!r}, @odata.etag {member!r}: must be equal")
    somewhere(bench, tagged, "no resource has an @odata.etag")


def _etag_stays(bench: ClauseContext) -> None:
    path = example(bench)
    first, second = (ask(bench, "GET", path).headers.get("etag") for _ in range(2))
    must(first and first == second, f"GET {path} twice: ETags {first!r} and {second!r}, must be the same")


def _if_none_match(bench: ClauseContext) -> None:
    path = example(bench)
    tag = ask(bench, "GET", path).headers.get("etag")
    if not tag:
        raise NotJudgedError(f"{path} has no ETag")
    status(ask(bench, "GET", path, If_None_Match=tag), 304, f"GET {path} with If-None-Match {tag}")


def _head(bench: ClauseContext) -> None:
    for path in (ROOT, example(bench)):
        got, reply = ask(bench, "GET", path), ask(bench, "HEAD", path)
        status(reply, got.status, f"HEAD {path}")
        must(not reply.body, f"HEAD {path}: has a body")
        for name in ("etag", "allow", "odata-version"):
            must(reply.headers.get(name) == got.headers.get(name), f"HEAD {path}: {name} differs from that of GET")


def _error(bench: ClauseContext) -> tuple[str, HttpReply]:
    path = f"{collection(bench).rstrip('/')}/mews-no-such-member"
    return f"GET {path}", ask(bench, "GET", path)


def _errors(bench: ClauseContext) -> None:
    what, reply = _error(bench)
    status(reply, 404, what)
    extended(reply, what)


def _error_type(bench: ClauseContext) -> None:
    what, reply = _error(bench)
    kind = reply.headers.get("content-type", "")
    must(
        kind.partition(";")[0].strip().lower() == "application/json", f"{what}: Content-Type {kind!r}: application/json"
    )


def _uris(bench: ClauseContext) -> None:
    """Links are paths of this service; a resource's own is what it was asked for by."""
    for path, value in walk(bench).raw.items():
        for place, each in leaves(value):
            if not place.endswith(LINK) or not isinstance(each, str):
                continue
            must(each.startswith("/") and "://" not in each, f"GET {path}: {place} {each!r}: must be a path")
            bare = each == ROOT or not each.endswith("/")
            must(bare, f"GET {path}: {place} {each!r}: ends with a slash, which is another URI")
        own = value.get(LINK)
        must(own == path or path == ROOT, f"GET {path}: @odata.id {own!r}: must be {path!r}")


def _pages(bench: ClauseContext) -> None:
    """The pages of a collection together are the collection."""
    in_pages(bench, collection(bench), 3).judge()


class Pages(Struct, frozen=True):
    """The members of a collection as it names them whole, and as its pages do."""

    what: str
    whole: Sequence[str]
    paged: Sequence[str]

    def judge(self) -> None:
        """Raise UnmetClauseError where a member is on two pages or on none."""
        twice = sorted({each for each in self.paged if self.paged.count(each) > 1})
        must(not twice, f"{self.what}: {', '.join(twice[:3])} is on two of them")
        missing = sorted({*self.whole} - {*self.paged})
        must(not missing, f"{self.what}: {', '.join(missing[:3])} is on none of them")


def in_pages(bench: ClauseContext, path: str, number: int, between: Callable[[], None] = lambda: None) -> Pages:
    """Read a collection whole, then in so many pages; ``between`` is called after the first. Where a page names the
    next one, that is followed, else $skip is used.

    Raises NotJudgedError where the service has no pages.
    """
    if not features(bench).get("TopSkipQuery"):
        raise NotJudgedError("the service has no $top and $skip")
    whole = links(ask(bench, "GET", path).json(), "Members")
    size = max(1, -(-len(whole) // number))
    paged: list[str] = []
    following: str | None = f"{path}?$top={size}&$skip=0"
    for page in range(1, len(whole) + 1):
        if following is None:
            break
        value = ask(bench, "GET", following).json()
        paged += links(value, "Members")
        named = text(value, "Members@odata.nextLink")
        left = page * size < len(whole)
        following = local(named) if named else f"{path}?$top={size}&$skip={page * size}" if left else None
        if page == 1:
            between()
    return Pages(f"GET {path} in pages of {size}", whole, paged)


def _once(bench: ClauseContext) -> None:
    """Sessions are counted before and after a login, and those that it opened are closed."""
    if bench.client.credentials is None:
        raise NotJudgedError("there are no credentials")
    before = {*links(ask(bench, "GET", SESSIONS).json(), "Members")}
    user, password = bench.client.credentials
    reply = ask(bench, "POST", SESSIONS, known=False, body={"UserName": user, "Password": password})
    if reply.status >= 400:
        raise NotJudgedError(f"POST {SESSIONS}: HTTP {reply.status}")
    bench.client.keep_secret(reply.headers.get("x-auth-token", ""))
    opened = [each for each in links(ask(bench, "GET", SESSIONS).json(), "Members") if each not in before]
    for each in opened:
        ask(bench, "DELETE", each)
    must(len(opened) <= 1, f"POST {SESSIONS}: one request opened {len(opened)} sessions")


def _unknown_query(bench: ClauseContext) -> None:
    path = f"{ROOT}?$frobnicate=1"
    status(ask(bench, "GET", path), 501, f"GET {path}")


def _bad_query(bench: ClauseContext) -> None:
    if not features(bench).get("TopSkipQuery"):
        raise NotJudgedError("the service has no $top and $skip")
    for query in ("$top=lots", "$skip=-1"):
        path = f"{collection(bench)}?{query}"
        status(ask(bench, "GET", path), 400, f"GET {path}")


def _queries(bench: ClauseContext) -> None:
    """Every feature that is claimed works, every one that is denied is 501."""
    offered = features(bench)
    endpoints = collection(bench)
    one = "/redfish/v1/Fabrics" if "/Fabrics/" in endpoints else endpoints
    expand = members(offered, "ExpandQuery")
    for claimed, path in (
        (expand.get("NoLinks"), f"{endpoints}?$expand=."),
        (expand.get("ExpandAll"), f"{one}?$expand=*"),
        (expand.get("Links"), f"{one}?$expand=~"),
        (offered.get("SelectQuery"), f"{example(bench)}?$select=Id,Name"),
        (offered.get("FilterQuery"), f"{endpoints}?$filter=Id%20eq%20'none'"),
        (offered.get("OnlyMemberQuery"), f"{one}?only"),
        (offered.get("TopSkipQuery"), f"{endpoints}?$top=1&$skip=1"),
    ):
        status(
            ask(bench, "GET", path), 200 if claimed else (501, 400), f"GET {path}, {'claimed' if claimed else 'denied'}"
        )
    if offered.get("SelectQuery"):
        selected = ask(bench, "GET", f"{example(bench)}?$select=Id").json()
        more = [name for name in members(selected) if not name.startswith("@") and name != "Id"]
        must(not more, f"$select=Id shows {', '.join(more)} too")
    if expand.get("NoLinks"):
        expanded = ask(bench, "GET", f"{endpoints}?$expand=.($levels=1)").json()
        must(all("Id" in member for member in objects(expanded, "Members")), "$expand=. leaves members unexpanded")


def _count(bench: ClauseContext) -> None:
    for where, value in walk(bench).resources.items():
        if isinstance(value.get("Members"), list) and at(value, "Members@odata.nextLink") is None:
            counted, listed = at(value, "Members@odata.count"), objects(value, "Members")
            right = counted is None or counted == len(listed)
            must(right, f"GET {where}: Members@odata.count {counted}: there are {len(listed)}")
    path = collection(bench)
    total = at(ask(bench, "GET", path).json(), "Members@odata.count")
    if features(bench).get("TopSkipQuery"):
        page = ask(bench, "GET", f"{path}?$top=1").json()
        found, listed = at(page, "Members@odata.count"), objects(page, "Members")
        must(found == total, f"GET {path}?$top=1: Members@odata.count {found}, must be the total, {total}")
        must(len(listed) <= 1, f"GET {path}?$top=1: {len(listed)} members")


def _event_stream(bench: ClauseContext) -> None:
    uri = next((text(value, "ServerSentEventUri") for value in walk(bench).of("EventService")), "")
    must(uri, "the EventService has no ServerSentEventUri")
    reply = bench.client.head_of_stream(local(uri), {"Accept": "text/event-stream", **bench.face.who()})
    kind = reply.headers.get("content-type", "")
    must(reply.status == 200, f"GET {uri}: HTTP {reply.status}")
    must(kind.startswith("text/event-stream"), f"GET {uri}: Content-Type {kind!r}, must be text/event-stream")


def _metadata(bench: ClauseContext) -> None:
    reply = ask(bench, "GET", "/redfish/v1/$metadata", known=False)
    must("xml" in reply.headers.get("content-type", ""), "$metadata is not XML")
    must(b"Edmx" in reply.body, "$metadata is no Edmx document")


URIS = Clause("4.uris", "links are paths of the service, each resource has one", RULES, _uris)

PROTOCOL: tuple[Clause, ...] = (
    Clause(
        "4.sessions",
        "a new session is 201 with X-Auth-Token and Location",
        RULES,
        _sessions,
        needs=("4.resource-SessionService",),
    ),
    Clause("4.public", "root, /redfish, odata and $metadata need no authentication", RULES, _public),
    Clause("4.metadata", "$metadata is an Edmx document", RULES, _metadata, needs=("4.public",)),
    Clause("4.private", "all else is 401 with WWW-Authenticate, before anything else is judged", RULES, _private),
    Clause("4.basic", "Basic over TLS only", RULES, _basic, needs=("4.private",)),
    Clause(
        "4.roles",
        "there are Administrator, Operator and ReadOnly",
        RULES,
        _roles,
        needs=("4.resource-AccountService",),
    ),
    Clause("4.odata-version", "OData-Version 4.0 on each reply, 412 for another", RULES, _odata_version),
    Clause("4.allow", "Allow on GET", RULES, _allow),
    Clause("4.describedby", "Link: <schema>; rel=describedby", RULES, _described_by),
    Clause("4.etag", "the ETag header is @odata.etag", RULES, _etag),
    Clause("4.etag-stays", "an ETag is unchanged while nothing changes", RULES, _etag_stays, needs=("4.etag",)),
    Clause(
        "4.if-none-match", "If-None-Match is 304 while nothing changes", RULES, _if_none_match, needs=("4.etag-stays",)
    ),
    Clause("4.head", "HEAD is GET without the body", RULES, _head, needs=("4.etag-stays",)),
    Clause("4.errors", "errors are error{code,message,@Message.ExtendedInfo[…]}", RULES, _errors),
    Clause("4.error-type", "errors are application/json", RULES, _error_type, needs=("4.errors",)),
    Clause("4.pages", "pages name each member once", RULES, _pages, needs=("4.count",)),
    Clause("4.once", "one login opens one session", RULES, _once, needs=("4.sessions",)),
    Clause("4.unknown-query", "an unknown $x is 501", RULES, _unknown_query),
    Clause("4.bad-query", "an invalid value of a query parameter is 400", RULES, _bad_query),
    Clause("4.queries", "query parameters are as ProtocolFeaturesSupported says", RULES, _queries),
    Clause("4.count", "Members@odata.count is the total", RULES, _count),
    Clause(
        "4.event-stream",
        "events can be had over SSE",
        "chassis.md 4: EventService with SSE",
        _event_stream,
        needs=("4.resource-EventService",),
    ),
)
