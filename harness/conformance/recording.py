"""Keeps what a chassis replied, and compares it with what another one does.

A recording is a folder with an index and a line of JSON per exchange, in the order in which they were made, replies as
they came (without credentials). A comparison looks at shapes: identifiers, addresses, numbers and times of one box are
none of the other, and a list of any length is its different kinds of elements.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from mews.harness.conformance.exchange import Exchange
from mews.harness.conformance.judge import ClauseResult
from mews.harness.errors import BadInputError
from mews.own_files import make_own_folder, write_own

INDEX = "recording.json"
EXCHANGES = "exchanges.jsonl"
VERSION = 2
EMPTY = "an empty list"
HEADERS = ("content-type", "allow", "odata-version", "www-authenticate", "retry-after", "cache-control", "link")
"""Reply headers that are compared; of others, such as Date and Server, nothing is expected."""

PATTERNS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I), "<gpu-uuid>"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I), "<uuid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)?"), "<time>"),
    (re.compile(r'(W/)?"[^"]*"'), "<etag>"),
    (re.compile(r"[0-9A-F]{2,}h", re.I), "<hex>h"),
    (re.compile(r"(?=.*\d)[0-9A-Fa-f]{6,}"), "<id>"),
    (re.compile(r"-?\d+(\.\d+)*(e[+-]?\d+)?", re.I), "<number>"),
)
LITERAL = re.compile(
    r"(^@odata\.type$|Type$|State$|Health$|^LinkStatus$|^MessageId$|^code$|^remark$|^action$|^dev_type$)"
)
"""Members whose text is a word of the dialect, compared as it is."""


class RecordingDifference(Struct, frozen=True):
    """What differs for one request: ``here`` and ``there`` (the recording) are shapes, or "" for nothing."""

    clause: str
    request: str
    place: str
    here: str
    there: str

    def __str__(self) -> str:
        return (
            f"{self.clause} {self.request}: {self.place}: {self.here or 'nothing'}, recorded {self.there or 'nothing'}"
        )


def record(folder: Path, dialect: str, log: Iterable[Exchange]) -> None:
    """Write the recording; the folder is made.

    Raises OSError.
    """
    make_own_folder(folder)
    write_own(folder / INDEX, json.dumps({"version": VERSION, "dialect": dialect}) + "\n")
    lines = (json.dumps({"clause": each.clause, **each.as_dict(most=None)}) + "\n" for each in log)
    write_own(folder / EXCHANGES, "".join(lines))


def load(folder: Path, dialect: str) -> dict[str, list[dict[str, Any]]]:
    """Clause -> exchanges of a recording of that dialect.

    Raises BadInputError.
    """
    found, exchanges = load_exchanges(folder, "--diff")
    if found != dialect:
        raise BadInputError(f"--diff {folder}: is a recording of {found}, must be of {dialect}")
    by_clause: dict[str, list[dict[str, Any]]] = {}
    for exchange in exchanges:
        by_clause.setdefault(exchange["clause"], []).append(exchange)
    return by_clause


def load_exchanges(folder: Path, option: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the dialect of a recording and its exchanges, in the order in which they were made.

    Raises BadInputError.
    """
    wrong = f"{option} {folder}: is no recording of mews conform --record"
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        dialect, version = index["dialect"], index["version"]
        if version != VERSION:
            raise BadInputError(
                f"{option} {folder}: is a recording of version {version}, must be {VERSION}: record it again"
            )
        lines = (folder / EXCHANGES).read_text(encoding="utf-8").splitlines()
        exchanges = [json.loads(line) for line in lines]
        for number, exchange in enumerate(exchanges, 1):
            request, reply = exchange["request"], exchange["reply"]
            texts = (exchange["clause"], request["method"], request["path"], request["body"], reply["body"])
            right = all(isinstance(text, str) for text in texts) and isinstance(reply["status"], int | None)
            if not (right and isinstance(request["headers"], dict) and isinstance(reply["headers"], dict)):
                raise BadInputError(f"{folder / EXCHANGES}: line {number}: is not an exchange")
    except OSError as error:
        raise BadInputError(f"{wrong}: {error.filename}: {error.strerror}") from error
    except ValueError as error:
        raise BadInputError(f"{wrong}: not JSON: {error}") from error
    except KeyError as error:
        raise BadInputError(f"{wrong}: {error.args[0]} is missing") from error
    except (TypeError, AttributeError) as error:
        raise BadInputError(f"{wrong}: {INDEX} and each line of {EXCHANGES} must be objects") from error
    return str(dialect), exchanges


def compare(results: Sequence[ClauseResult], recorded: Mapping[str, list[dict[str, Any]]]) -> list[RecordingDifference]:
    """Return what differs, request by request, of the clauses that both have looked at."""
    differences: list[RecordingDifference] = []
    here = {result.clause.id: [e.as_dict(most=None) for e in result.exchanges] for result in results}
    words = _words([*here.values(), *recorded.values()])
    for clause in here:
        if here[clause] and recorded.get(clause):
            differences.extend(_compare(clause, _shapes(here[clause], words), _shapes(recorded[clause], words)))
    return differences


def _compare(clause: str, here: Mapping[str, Any], there: Mapping[str, Any]) -> Iterable[RecordingDifference]:
    for request in sorted({*here, *there}):
        if request not in here or request not in there:
            continue
        mine, theirs = _flat(here[request]), _flat(there[request])
        bare = _empty_lists(mine, theirs)
        for place in sorted({*mine, *theirs}):
            one, other = mine.get(place, set()) - {EMPTY}, theirs.get(place, set()) - {EMPTY}
            if one != other and not place.startswith(bare):
                yield RecordingDifference(clause, request, place, " | ".join(sorted(one)), " | ".join(sorted(other)))


def _empty_lists(*sides: Mapping[str, set[str]]) -> tuple[str, ...]:
    """Beginnings of places in lists that are always empty on one side: those say nothing about their elements."""
    return tuple(f"{place}[]" for side in sides for place, leaves in side.items() if leaves == {EMPTY})


def _shapes(exchanges: Sequence[Mapping[str, Any]], words: frozenset[str]) -> dict[str, list[Any]]:
    """Request -> the shapes of its replies. Requests without an answer are left out."""
    shapes: dict[str, list[Any]] = {}
    for exchange in exchanges:
        request, reply = exchange["request"], exchange["reply"]
        if reply["status"] is None:
            continue
        asked = f"{request['method']} {_path(request['path'], words)}"
        body = _body(request["body"])
        if body != "":
            asked += f" {json.dumps(_shape(body, words), sort_keys=True)}"
        headers = {name: _text(value, words) for name, value in reply["headers"].items() if name in HEADERS}
        shape = {"status": str(reply["status"]), "headers": headers, "body": _shape(_body(reply["body"]), words)}
        shapes.setdefault(asked, []).append(shape)
    return shapes


def _body(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _shape(value: Any, words: frozenset[str], name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _shape(each, words, key) for key, each in value.items()}
    if isinstance(value, list):
        return [_shape(each, words, name) for each in value]
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        return "number"
    if LITERAL.search(name) or not words:
        return value
    return _text(value, words)


def _text(text: str, words: frozenset[str]) -> str:
    if text.startswith("/"):
        return _path(text, words)
    for pattern, shown in PATTERNS:
        if pattern.fullmatch(text):
            return shown
    if "Members" in words and not re.fullmatch(r"[\w.+-]+/[\w.+; =-]+|[A-Z, ]+|", text):
        return "<text>"
    return text


def _path(path: str, words: frozenset[str]) -> str:
    """Return a path whose segments are names of members of the dialect, others left out: ``/redfish/v1/Systems/{}``."""
    if not path.startswith("/redfish/v1/") or path == "/redfish/v1/":
        return path
    where, mark, query = path.removeprefix("/redfish/v1/").partition("?")
    kept = [part if part in words else "{}" for part in where.rstrip("/").split("/")]
    return "/redfish/v1/" + "/".join(kept) + mark + query


def _words(recordings: Iterable[Sequence[Mapping[str, Any]]]) -> frozenset[str]:
    """Return every member name of every reply."""
    words: set[str] = {"-"}

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            words.update(value)
            for each in value.values():
                collect(each)
        elif isinstance(value, list):
            for each in value:
                collect(each)

    for exchanges in recordings:
        for exchange in exchanges:
            collect(_body(exchange["reply"]["body"]))
    return frozenset(words)


def _flat(value: Any, place: str = "") -> dict[str, set[str]]:
    """Place -> the different leaves there; places of list elements are those of the list."""
    if isinstance(value, dict):
        items = [(f"{place}.{key}" if place else key, each) for key, each in value.items()]
    elif isinstance(value, list):
        items = [(place if place == "" else f"{place}[]", each) for each in value]
    else:
        return {place: {str(value)}}
    found: dict[str, set[str]] = {} if items or not place else {place: {EMPTY}}
    for where, each in items:
        for leaf, values in _flat(each, where).items():
            found.setdefault(leaf, set()).update(values)
    return found
