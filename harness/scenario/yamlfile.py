"""The YAML of scenario files: ``mews.emulator.yaml_document``, whose complaints are those of a scenario."""

from __future__ import annotations

from typing import Any

from mews.emulator.yaml_document import Document, DocumentError, Place, dotted, read_document
from mews.harness.scenario.errors import ScenarioError

__all__ = ["Document", "Place", "dotted", "read_yaml", "shown"]


def shown(value: Any) -> str:
    """Return a value for a complaint, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "…"


def read_yaml(text: str, name: str) -> Document:
    """Return the one document of a YAML text.

    Raises ScenarioError for syntax errors, several documents and duplicate keys.
    """
    try:
        return read_document(text, name)
    except DocumentError as error:
        raise ScenarioError(str(error)) from None
