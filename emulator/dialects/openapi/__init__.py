"""Descriptions of the plain dialects and of control (OpenAPI 3.1), as data."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

DESCRIBED = ("h3api", "resource-pool", "control")


def description(dialect: str) -> str:
    """Return the YAML text of a dialect's description.

    Raises ValueError for one that has none.
    """
    if dialect not in DESCRIBED:
        raise ValueError(f"dialect {dialect!r}: must be one of {', '.join(DESCRIBED)}")
    return files(__package__).joinpath(f"{dialect}.yaml").read_text(encoding="utf-8")


def document(dialect: str) -> dict[str, Any]:
    """Return the same, read.

    Raises ValueError.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    value: dict[str, Any] = yaml.load(description(dialect), Loader=loader)
    return value
