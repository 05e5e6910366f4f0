"""How a component gets whole devices of a node back that another component hands out in parts there.

Both speak by annotations of the Node, with one writer each:

- ``device-requests.mews.dev/HOLDER``: UUID -> request, by whoever wants devices whole for a move. It is there, if
  empty, as soon as somebody may ask. ``device-requests.mews.dev/HOLDER.ASKER``: likewise by another asker.
- ``device-holder.mews.dev/HOLDER``: how many pods use each device that the holder hands out, and its answers.

Whoever asks takes no answer, and an answer to another request, as "in use". A holder that has answered ``released`` has
the device open no longer and gives it to nobody while the request stands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from mews.kube.api.objects import Object, annotations_of

REQUESTS_PREFIX, HOLDER_PREFIX = "device-requests.mews.dev/", "device-holder.mews.dev/"


class ReleaseState(StrEnum):
    """What a holder says to a request."""

    RELEASING = "releasing"
    """Its users are being sent away; until then it waits."""
    RELEASED = "released"
    REFUSED = "refused"


class DeviceRequest(Struct, frozen=True):
    """A whole device is wanted; the request lapses at ``until_s`` (unix s) unless it is renewed."""

    request: str
    until_s: float


class DeviceAnswer(Struct, frozen=True):
    """The answer to one request: ``reason`` of a refusal, ``until_s`` (unix s) of one that needs time."""

    request: str
    state: ReleaseState
    reason: str = ""
    until_s: float = 0.0


class HolderRecord(Struct, frozen=True):
    """What a holder says: UUID -> how many pods use parts of it, of all that it hands out; UUID -> answer."""

    users: Mapping[str, int] = field(default_factory=dict)
    answers: Mapping[str, DeviceAnswer] = field(default_factory=dict)


def may_ask(node: Object | None, holder: str) -> bool:
    """Return whether somebody asks that holder for devices, now or some time."""
    return node is not None and any(_is_asked(key, holder) for key in annotations_of(node))


def _is_asked(key: str, holder: str) -> bool:
    own = REQUESTS_PREFIX + holder
    return key == own or key.startswith(f"{own}.")


def device_requests(node: Object | None, holder: str) -> dict[str, DeviceRequest]:
    """UUID -> request, of all askers; one that asks for a device that another one wants waits for that one."""
    keys = [key for key in annotations_of(node or {"metadata": {}}) if _is_asked(key, holder)]
    found: dict[str, DeviceRequest] = {}
    for key in sorted(keys):
        found = {**_requests(node, key), **found}
    return found


def asked_by(node: Object | None, holder: str, asker: str = "") -> dict[str, DeviceRequest]:
    """UUID -> request of one asker, "" for whoever moves devices."""
    return _requests(node, _requests_key(holder, asker))


def _requests_key(holder: str, asker: str) -> str:
    return REQUESTS_PREFIX + (f"{holder}.{asker}" if asker else holder)


def _requests(node: Object | None, key: str) -> dict[str, DeviceRequest]:
    """What cannot be read is as if it were not there."""
    found = {}
    for uuid, row in _mapping(node, key).items():
        try:
            found[uuid] = DeviceRequest(str(row["request"]), float(row["until"]))
        except (KeyError, TypeError, ValueError):
            continue
    return found


def requests_annotation(holder: str, requests: Mapping[str, DeviceRequest], *, asker: str = "") -> dict[str, str]:
    """Return the annotation with these requests of an asker."""
    rows = {uuid: {"request": each.request, "until": round(each.until_s, 3)} for uuid, each in requests.items()}
    return {_requests_key(holder, asker): _text(rows)}


def holder_record(node: Object | None, holder: str) -> HolderRecord:
    """Return what the holder wrote; nothing where it cannot be read."""
    read = _mapping(node, HOLDER_PREFIX + holder)
    answers = {}
    for uuid, row in _dict(read.get("answers")).items():
        try:
            state, reason = ReleaseState(row["state"]), str(row.get("reason", ""))
            answers[uuid] = DeviceAnswer(str(row["request"]), state, reason, float(row.get("until", 0.0)))
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
    users = {uuid: count for uuid, count in _dict(read.get("users")).items() if isinstance(count, int)}
    return HolderRecord(users, answers)


def holder_annotation(holder: str, record: HolderRecord) -> dict[str, str]:
    """Return the annotation that says this."""
    answers = {uuid: _answer_row(answer) for uuid, answer in record.answers.items()}
    return {HOLDER_PREFIX + holder: _text({"users": dict(record.users), "answers": answers})}


def _answer_row(answer: DeviceAnswer) -> dict[str, Any]:
    row: dict[str, Any] = {"request": answer.request, "state": answer.state.value}
    if answer.reason:
        row["reason"] = answer.reason
    if answer.until_s:
        row["until"] = round(answer.until_s, 3)
    return row


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _mapping(node: Object | None, annotation: str) -> dict[str, Any]:
    try:
        return _dict(json.loads(annotations_of(node or {"metadata": {}}).get(annotation, "{}")))
    except ValueError:
        return {}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
