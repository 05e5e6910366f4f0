"""Query parameters, exactly as ``ProtocolFeaturesSupported`` says (DSP0266, query parameters)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from mews.emulator.dialects.redfish.filters import parse_filter
from mews.emulator.dialects.redfish.messages import RedfishError, fail

KNOWN = ("$expand", "$select", "$filter", "$top", "$skip", "only")
LEVELS = 3
"""How deep ``$expand`` may go."""
MOST = 4000
"""Resources that one answer may expand."""

FEATURES: Mapping[str, Any] = {
    "DeepOperations": {"DeepPATCH": False, "DeepPOST": False},
    "ExcerptQuery": False,
    "ExpandQuery": {"ExpandAll": True, "Levels": True, "Links": True, "MaxLevels": LEVELS, "NoLinks": True},
    "FilterQuery": True,
    "FilterQueryComparisonOperations": True,
    "FilterQueryCompoundOperations": True,
    "IncludeOriginOfConditionQuery": False,
    "MultipleHTTPRequests": True,
    "OnlyMemberQuery": True,
    "SelectQuery": True,
    "TopSkipQuery": True,
}
"""``ProtocolFeaturesSupported`` of the service root."""

EXPAND = re.compile(r"([.*~])(?:\(\$levels=(\d+)\))?")
Reader = Callable[[str], Mapping[str, Any] | None]
"""URI -> the resource's body; None if there is none."""


def shape(body: Mapping[str, Any], query: Mapping[str, str], read: Reader, page: int) -> dict[str, Any]:
    """Return a resource's body as the query wants it; ``page`` is how many members a collection shows at a time.

    Raises RedfishError: 501 for an unknown ``$`` parameter, 400 for a value that cannot be used.
    """
    for name in query:
        if name.startswith("$") and name not in KNOWN:
            raise fail(501, "QueryNotSupported", name)
    shown = dict(body)
    if "only" in query:
        shown = _only(shown, query, read)
    shown = _members(shown, query, read, page)
    if "$expand" in query:
        shown = _Expansion(read).run(shown, query["$expand"])
    if "$select" in query:
        shown = _select(shown, query["$select"])
    return shown


def _only(body: dict[str, Any], query: Mapping[str, str], read: Reader) -> dict[str, Any]:
    if query["only"]:
        raise fail(400, "QueryParameterValueFormatError", query["only"], "only")
    if "Members" not in body:
        raise fail(400, "QueryNotSupportedOnResource")
    if set(query) & {"$expand", "$top", "$skip", "$filter"}:
        raise fail(400, "QueryNotSupportedOnResource")
    if len(body["Members"]) != 1:
        return body
    return dict(read(body["Members"][0]["@odata.id"]) or body)


def _members(body: dict[str, Any], query: Mapping[str, str], read: Reader, page: int) -> dict[str, Any]:
    asked = {"$filter", "$top", "$skip"} & set(query)
    if "Members" not in body:
        if asked:
            raise fail(400, "QueryNotSupportedOnResource")
        return body
    members = list(body["Members"])
    if "$filter" in query:
        members = _filtered(members, query["$filter"], read)
    body["Members@odata.count"] = len(members)
    skip, top = _count(query, "$skip", 0), _count(query, "$top", len(members))
    size = min(top, page)
    body["Members"] = members[skip : skip + size]
    if size < top and skip + size < len(members):
        rest = {"$skip": str(skip + size)} | ({"$top": str(top - size)} if "$top" in query else {})
        kept = {name: value for name, value in query.items() if name not in ("$skip", "$top")} | rest
        text = "&".join(f"{name}={quote(value)}" for name, value in kept.items())
        body["Members@odata.nextLink"] = f"{body['@odata.id']}?{text}"
    return body


def _filtered(members: list[dict[str, Any]], text: str, read: Reader) -> list[dict[str, Any]]:
    try:
        test = parse_filter(text)
    except ValueError:
        raise fail(400, "QueryParameterValueFormatError", text[:100], "$filter") from None
    return [member for member in members if (body := read(member["@odata.id"])) is not None and test(body)]


def _count(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        failure: RedfishError = fail(400, "QueryParameterValueFormatError", text[:100], name)
        if re.fullmatch(r"-?\d+", text, re.ASCII):
            failure = fail(400, "QueryParameterOutOfRange", text[:100], name, "0 and up")
        raise failure
    return int(text)


class _Expansion:
    """One ``$expand``, level by level: how many resources a level comes to is known before any of them is read."""

    def __init__(self, read: Reader) -> None:
        self._read = read
        self._bodies: dict[str, Mapping[str, Any] | None] = {}
        self._done = 0

    def run(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        """Return the body with its links expanded.

        Raises RedfishError: 400.
        """
        match = EXPAND.fullmatch(text)
        levels = 1 if match is None or match[2] is None else int(match[2])
        if match is None:
            raise fail(400, "QueryParameterValueFormatError", text[:100], "$expand")
        if not 1 <= levels <= LEVELS:
            raise fail(400, "QueryParameterOutOfRange", text[:100], "$expand", f"1 to {LEVELS} levels")
        expanded: dict[str, Any] = _copied(body)
        places = [*_places(expanded, match[1], linked=False)]
        for _ in range(levels):
            self._count(places, match[1])
            places = [inner for place in places for inner in self._fill(place, match[1])]
        return expanded

    def _count(self, places: list[_Place], which: str) -> None:
        self._done += len(places)
        if self._done > MOST:
            raise fail(400, "QueryParameterOutOfRange", which, "$expand", f"{MOST} resources")

    def _fill(self, place: _Place, which: str) -> Iterator[_Place]:
        """Put the resource where its link was; the places of its own links."""
        holder, key = place
        uri = holder[key]["@odata.id"]
        if uri not in self._bodies:
            self._bodies[uri] = self._read(uri)
        body = self._bodies[uri]
        if body is not None:
            holder[key] = _copied(body)
            yield from _places(holder[key], which, linked=False)


_Place = tuple[Any, Any]
"""An object or a list, and where in it a link stands."""


def _copied(value: Any) -> Any:
    """Return a copy that shares no object and no list with the value."""
    if isinstance(value, Mapping):
        return {name: _copied(each) for name, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value


def _places(holder: Any, which: str, *, linked: bool) -> Iterator[_Place]:
    """Yield where links to other resources stand that ``which`` (``*``, ``.`` or ``~``) wants expanded, in their
    order."""
    entries = holder.items() if isinstance(holder, dict) else enumerate(holder)
    for key, value in entries:
        within = linked or key == "Links"
        if isinstance(value, dict) and set(value) == {"@odata.id"}:
            wanted = which == "*" or within == (which == "~")
            if wanted and "#" not in value["@odata.id"]:
                yield holder, key
        elif isinstance(value, dict | list):
            yield from _places(value, which, linked=within)


def _select(body: dict[str, Any], text: str) -> dict[str, Any]:
    paths = [each.strip().split("/") for each in text.split(",")]
    if not all(step and re.fullmatch(r"[@#\w.*]+", step) for path in paths for step in path):
        raise fail(400, "QueryParameterValueFormatError", text[:100], "$select")
    if "Members" in body:
        paths = [path for path in paths if path[0] != "Members"]
        members = [_picked(member, paths) if len(member) > 1 else member for member in body["Members"]]
        return {**body, "Members": members}
    return _picked(body, paths)


def _picked(body: Mapping[str, Any], paths: list[list[str]]) -> dict[str, Any]:
    picked = {name: value for name, value in body.items() if name.startswith("@odata.")}
    for name, value in body.items():
        inner = [path[1:] for path in paths if path[0] in (name, "*")]
        if not inner:
            continue
        whole = not all(inner) or not isinstance(value, dict)
        picked[name] = value if whole else _picked(value, inner)
    return picked
