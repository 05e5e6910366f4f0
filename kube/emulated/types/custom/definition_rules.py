"""All that is wrong with the schema of a version: its structure, its defaults, its words, its rules, in that order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.types.custom import cel_rules, go_text, structural
from mews.kube.emulated.types.custom.default_rules import default_errors
from mews.kube.emulated.types.custom.definition_schemas import schema_errors


def version_schema_errors(
    schema: Mapping[str, Any], path: str, *, unchanged: bool = False, above: bool = False
) -> list[FieldError]:
    """Return what is wrong with the schema at that path; ``unchanged`` when it was taken before, so that no cost is
    held against it; ``above`` when something else is wrong with it already, which hides that it cannot be read."""
    found: list[FieldError] = []
    unreadable = structural.unsupported(schema)
    if not unreadable:
        found = structural.structural_errors(schema, path) or default_errors(schema, path)
    readable = not unreadable and not found
    words = schema_errors(schema, path)
    found += words
    if readable:
        found += cel_rules.definition_errors(schema, path, spoilt=[error.path for error in words], unchanged=unchanged)
    if unreadable and not found and not above:
        found = [go_text.wrong(path, "", unreadable)]
    return found
