"""Differences that stay, and why. One that no longer differs has to leave this table."""

KNOWN: dict[str, str] = {}
