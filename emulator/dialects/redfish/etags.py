"""Entity tags: a hash of what a resource says and of how often it was written, leaving out what moves by itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from mews.emulator.dialects.redfish.messages import fail

VOLATILE = frozenset(
    {"DateTime", "Reading", "ReadingTime", "PercentComplete", "MetricValues", "Timestamp", "SpeedRPM", "SpeedPercent"}
)


def etag(body: Mapping[str, Any], revision: int) -> str:
    """Return the strong tag of a body, quotes included."""
    stable = {name: value for name, value in body.items() if name not in VOLATILE}
    text = json.dumps([revision, stable], separators=(",", ":"), sort_keys=True)
    return f'"{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"'


def matches(header: str, tag: str) -> bool:
    """Return whether a list of tags (``*`` for any) names this one by weak comparison (RFC 9110 section 8.8.3.2)."""
    named = [each.strip().removeprefix("W/") for each in header.split(",")]
    return "*" in named or tag in named


def is_same(header: str, tag: str) -> bool:
    """Return the same by strong comparison: a weak tag is never the same as another."""
    named = [each.strip() for each in header.split(",")]
    return "*" in named or tag in named


def check(headers: Mapping[str, str], tag: str) -> None:
    """Hold a write's ``If-Match`` and ``If-None-Match`` against the resource's tag.

    Raises RedfishError: 412.
    """
    if not is_current(headers, tag):
        raise fail(412, "PreconditionFailed")


def is_current(headers: Mapping[str, str], tag: str) -> bool:
    """Return whether a read with this tag has something to answer that its client does not have: ``If-Match`` comes
    first (RFC 9110 section 13.2.2).

    Raises RedfishError: 412, where the client wants another state of the resource than this one.
    """
    wanted, unwanted = headers.get("if-match"), headers.get("if-none-match")
    if wanted is not None and not is_same(wanted, tag):
        raise fail(412, "PreconditionFailed")
    return unwanted is None or not matches(unwanted, tag)
