"""What the client under test asked of the chassis, and assertions about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, overload

from msgspec import Struct, field
from msgspec.structs import fields

from mews.harness.linearizability.checker import not_linearizable
from mews.harness.linearizability.requests import calls_of

_SHOWN = 12
_BODY_SHOWN = 100


class SentRequest(Struct, frozen=True):
    """One request that a chassis was sent, with its answer.

    ``t`` is when it came and ``took_s`` how long its answer took, in emulated seconds; ``status`` is None where the
    connection was dropped without an answer; ``body`` and ``answer`` are texts (``json()`` reads the body), passwords
    and tokens in them left out; ``agent`` is the client's User-Agent.
    """

    number: int
    t: float
    took_s: float
    chassis: str
    dialect: str
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    status: int | None = None
    answer: str = ""
    agent: str = ""

    def json(self) -> Any:
        """Return the body as JSON.

        Raises ValueError where it is none.
        """
        return json.loads(self.body)

    def as_dict(self) -> dict[str, Any]:
        """Return all of it by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __str__(self) -> str:
        status = "dropped" if self.status is None else str(self.status)
        query = "?" + "&".join(f"{name}={value}" for name, value in self.query.items()) if self.query else ""
        body = f"  {self.body[:_BODY_SHOWN]}" if self.body else ""
        return f"{self.number:>4}  {self.t:.3f} s  {self.method} {self.path}{query}  -> {status}{body}"


class SentRequests(Sequence[SentRequest]):
    """The requests since the last ``clear()`` (a fixture clears them before each test), in the order of their answers.

    Each look asks the chassis anew. ``fetch(number)`` gives those after that number as dicts.
    """

    def __init__(self, fetch: Callable[[int], Sequence[Mapping[str, Any]]]) -> None:
        self._fetch = fetch
        self._since = 0

    def clear(self) -> None:
        """Forget what has come so far."""
        known = self._all()
        self._since = known[-1].number if known else self._since

    def _all(self) -> list[SentRequest]:
        return [SentRequest(**each) for each in self._fetch(self._since)]

    @overload
    def __getitem__(self, index: int) -> SentRequest: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[SentRequest]: ...
    def __getitem__(self, index: int | slice) -> SentRequest | Sequence[SentRequest]:
        return self._all()[index]

    def __iter__(self) -> Iterator[SentRequest]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def matching(self, method: str | None = None, path: str | None = None, **wanted: Any) -> list[SentRequest]:
        """Return those that are so. ``path`` may have ``*``. ``wanted``: ``body`` (a text, or what the JSON body must
        contain at least), ``query`` (at least these), ``status``, ``chassis``, ``dialect``, ``agent`` (may have ``*``).

        Raises TypeError for another name.
        """
        expected = _expected(method, path, wanted)
        return [each for each in self._all() if not _differences(each, expected)]

    def assert_requested(
        self, method: str | None = None, path: str | None = None, *, times: int | None = None, **wanted: Any
    ) -> SentRequest:
        """Return the first request that is so (see ``matching``); ``times``: there must be exactly as many.

        Raises AssertionError with what came instead, and what of the nearest one differs.
        """
        __tracebackhide__ = True
        expected = _expected(method, path, wanted)
        came = self._all()
        found = [each for each in came if not _differences(each, expected)]
        if found and times in (None, len(found)):
            return found[0]
        counted = "" if times is None else f" {times} times"
        raise AssertionError(
            f"expected {_worded(expected)}{counted}; it came {len(found)} times.\n{_overview(came, expected)}"
        )

    def assert_linearizable(self, start: Mapping[str, str | None] | None = None) -> None:
        """Raise AssertionError if answers contradict each other: no order in which the chassis could have done the
        requests explains them. Of dialects `resource-pool` and `h3api`; ``start``: ``<chassis>/<device>`` -> its port
        before the first of them, where that is known."""
        __tracebackhide__ = True
        wrong = not_linearizable(calls_of(each.as_dict() for each in self._all()), start or {})
        if wrong:
            raise AssertionError("\n".join(map(str, wrong)))

    def assert_not_requested(self, method: str | None = None, path: str | None = None, **wanted: Any) -> None:
        """Raise AssertionError if a request is so (see ``matching``)."""
        __tracebackhide__ = True
        expected = _expected(method, path, wanted)
        found = [each for each in self._all() if not _differences(each, expected)]
        if found:
            listed = "\n".join(map(str, found[:_SHOWN]))
            raise AssertionError(f"expected no {_worded(expected)}; it came {len(found)} times:\n{listed}")


_NAMES = ("body", "query", "status", "chassis", "dialect", "agent")


def _expected(method: str | None, path: str | None, wanted: Mapping[str, Any]) -> dict[str, Any]:
    for name in wanted:
        if name not in _NAMES:
            raise TypeError(f"{name}: must be one of method, path, {', '.join(_NAMES)}")
    given = {"method": None if method is None else method.upper(), "path": path, **wanted}
    return {name: value for name, value in given.items() if value is not None or (name == "status" and name in wanted)}


def _worded(expected: Mapping[str, Any]) -> str:
    head = " ".join(str(expected[name]) for name in ("method", "path") if name in expected)
    rest = ", ".join(f"{name} {value!r}" for name, value in expected.items() if name not in ("method", "path"))
    return " with ".join(filter(None, (f"request {head}".strip(), rest)))


def _overview(came: Sequence[SentRequest], expected: Mapping[str, Any]) -> str:
    if not came:
        return "The chassis was sent no request at all: does the client use its URL?"
    shown = came[-_SHOWN:]
    head = f"The chassis was sent {len(came)}" + (f"; the last {len(shown)}:" if len(shown) < len(came) else ":")
    lines = [head, *map(str, shown)]
    nearest = min(came, key=lambda each: (len(_differences(each, expected)), -each.number))
    wrong = _differences(nearest, expected)
    if wrong and len(wrong) < len(expected):
        lines.append(f"Nearest is {nearest.number}: {'; '.join(wrong)}")
    return "\n".join(lines)


def _differences(request: SentRequest, expected: Mapping[str, Any]) -> list[str]:
    found = []
    for name, value in expected.items():
        there = getattr(request, name)
        if name in ("path", "agent"):
            holds = fnmatchcase(there, value)
        elif name == "query":
            holds = {key: there.get(key) for key in value} == {key: str(each) for key, each in value.items()}
        elif name == "body" and not isinstance(value, str):
            found += _within(_json_or_text(request.body), value, "body")
            continue
        else:
            holds = there == value
        if not holds:
            found.append(f"{name} is {there!r}, expected {value!r}")
    return found


def _json_or_text(body: str) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body


def _within(there: Any, wanted: Any, place: str) -> list[str]:
    """Return where it does not contain what is wanted: of mappings these members at least, all else equal."""
    if isinstance(wanted, Mapping) and isinstance(there, Mapping):
        missing = [f"{place}.{key} is missing" for key in wanted if key not in there]
        inside = [_within(there[key], value, f"{place}.{key}") for key, value in wanted.items() if key in there]
        return missing + [each for several in inside for each in several]
    return [] if there == wanted else [f"{place} is {there!r}, expected {wanted!r}"]
