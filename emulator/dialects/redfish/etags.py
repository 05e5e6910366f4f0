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
    """The strong tag of a body, quotes included."""
    stable = {name: value for name, value in body.items() if name not in VOLATILE}
    text = json.dumps([revision, stable], separators=(",", ":"), sort_keys=True)
    return f'"{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"'


def matches(header: str, tag: str) -> bool:
    """Whether a list of tags (``*`` for any) names this one; weak comparison."""
    named = [each.strip().removeprefix("W/") for each in header.split(",")]
    return "*" in named or tag in named


def check(headers: Mapping[str, str], tag: str | None) -> None:
    """Hold a write's ``If-Match`` and ``If-None-Match`` against the resource's tag; None is no resource.

    Raises Failed: 412.
    """
    wanted, unwanted = headers.get("if-match"), headers.get("if-none-match")
    if wanted is not None and (tag is None or not matches(wanted, tag)):
        raise fail(412, "PreconditionFailed")
    if unwanted is not None and tag is not None and matches(unwanted, tag):
        raise fail(412, "PreconditionFailed")
