"""Differences that stay, and why. One that no longer differs has to leave its table."""

KNOWN_SITUATIONS: dict[str, str] = {}

KNOWN_FIELDS: dict[str, str] = {}
