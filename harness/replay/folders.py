"""Reads what can be replayed: recordings, and mockup folders after DSP2043."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from mews.harness.conformance.recording import INDEX, load_exchanges
from mews.harness.errors import BadInputError, unreadable
from mews.harness.replay.replies import CREDENTIALS, RecordedReply, conditions_of

OPTION = "--recording"
ROOT = "redfish/v1"
BODY, HEADERS, METADATA = "index.json", "headers.json", "index.xml"
REDFISH_HEADERS = {"odata-version": "4.0", "allow": "GET, HEAD", "content-type": "application/json"}


class Replayable(Struct, frozen=True):
    """What a folder holds. ``mockup``: one reply per path, whatever the query and the credentials."""

    dialect: str
    replies: tuple[RecordedReply, ...]
    mockup: bool = False


def load_replayable(folder: Path) -> Replayable:
    """Return a recording of ``mews conform --record``, or a mockup folder: ``index.json`` per URI, below ``redfish/v1``
    or at the top itself (DSP2043), with ``headers.json`` beside it where it has headers of its own.

    Raises BadInputError, one line.
    """
    if (folder / INDEX).is_file():
        dialect, exchanges = load_exchanges(folder, OPTION)
        return Replayable(dialect, tuple(replies_of(exchanges)))
    root = next((path for path in (folder / ROOT, folder) if (path / BODY).is_file()), None)
    if root is None:
        raise BadInputError(
            f"{OPTION} {folder}: no {INDEX} of mews conform --record, and no {BODY} of a DSP2043 mockup"
        )
    replies = tuple(_mockup(root))
    return Replayable("redfish", replies, mockup=True)


def replies_of(exchanges: Iterable[Mapping[str, Any]]) -> Iterator[RecordedReply]:
    """Yield those of exchanges that had one, in their order."""
    for exchange in exchanges:
        request, reply = exchange["request"], exchange["reply"]
        if reply["status"] is None:
            continue
        names = {str(name).lower(): str(value) for name, value in request["headers"].items()}
        yield RecordedReply(
            method=request["method"],
            target=request["path"],
            known=any(name in names for name in CREDENTIALS),
            conditions=conditions_of(names),
            body=request["body"],
            status=reply["status"],
            headers={str(name).lower(): str(value) for name, value in reply["headers"].items()},
            text=reply["body"],
        )


def _mockup(root: Path) -> Iterator[RecordedReply]:
    top = _json(root / BODY)
    if not isinstance(top, dict) or "RedfishVersion" not in top:
        raise BadInputError(f"{root / BODY}: must be the service root of a mockup: it has no RedfishVersion")
    yield from _both("/redfish", {}, json.dumps({"v1": f"/{ROOT}/"}))
    for path in sorted(root.rglob(BODY)):
        value = _json(path)
        below = path.parent.relative_to(root).as_posix()
        target = f"/{ROOT}/" if below == "." else f"/{ROOT}/{below}"
        own = path.parent / HEADERS
        headers = _headers(own) if own.is_file() else {}
        yield from _both(target, headers, json.dumps(value))
    metadata = root / "$metadata" / METADATA
    if metadata.is_file():
        yield from _both(f"/{ROOT}/$metadata", {"content-type": "application/xml"}, _text(metadata))


def _both(target: str, headers: dict[str, str], text: str) -> Iterator[RecordedReply]:
    for method in ("GET", "HEAD"):
        yield RecordedReply(method, target, False, {}, "", 200, {**REDFISH_HEADERS, **headers}, text)


def _headers(path: Path) -> dict[str, str]:
    """Return those of ``GET``: ``{"GET": {name: value}}``."""
    value = _json(path)
    found = value.get("GET") if isinstance(value, dict) else None
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise BadInputError(f'{path}: must be {{"GET": {{name: text}}}}')
    return {name.lower(): each for name, each in found.items()}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(unreadable(path, error)) from error


def _json(path: Path) -> Any:
    try:
        return json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise BadInputError(f"{path}: not JSON: {error}") from error
