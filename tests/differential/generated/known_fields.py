"""Differences of cases about fields that stay, and why."""

from __future__ import annotations

KNOWN_FIELDS: dict[tuple[str, str], str] = {
    ("EndpointSlice|Endpoints", "loopback range"): "pods and the server itself are on loopback, so endpoints may be",
    ("", "syntax error"): "of an expression in CEL that is wrong in several places ANTLR finds more than one",
}
"""(pattern of the case's name, pattern of the real server's words) -> reason."""
