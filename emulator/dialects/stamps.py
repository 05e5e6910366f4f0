"""Times as bodies have them."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_text(unix_s: float) -> str:
    """Unix seconds as RFC 3339 in UTC, whole seconds: ``2026-01-01T00:00:00Z``."""
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def unix_s_of(text: str) -> float:
    """Unix seconds of such a time, in UTC or with an offset.

    Raises ValueError, also where no offset is given.
    """
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text!r}: must end in Z or in an offset such as +09:00")
    return found.timestamp()
