"""The part of a server's OpenAPI version 2 that is of one group and version (kube-openapi aggregator, FilterSpecByPaths
and MergeSpecs). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Body = dict[str, Any]
_DEFINITION = "#/definitions/"


def part_of_swagger(document: Mapping[str, Any], path: str) -> Body:
    """Paths below ``path``, and the definitions that they name."""
    paths = {url: item for url, item in (document.get("paths") or {}).items() if url == path or _below(url, path)}
    definitions: Mapping[str, Any] = document.get("definitions") or {}
    found: dict[str, Any] = {}
    waiting = list(_references(paths))
    while waiting:
        name = waiting.pop()
        if name in definitions and name not in found:
            found[name] = definitions[name]
            waiting += _references(definitions[name])
    return {"paths": paths, "definitions": found}


def _below(url: str, path: str) -> bool:
    return url.startswith(f"{path}/")


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        target = value.get("$ref")
        if isinstance(target, str) and target.startswith(_DEFINITION):
            yield target.removeprefix(_DEFINITION)
        for below in value.values():
            yield from _references(below)
    elif isinstance(value, list):
        for below in value:
            yield from _references(below)


def joined_swagger(document: Body, parts: list[Body]) -> Body:
    """Return a document with the parts of others; a definition that it has already stays as it is."""
    paths, definitions = dict(document["paths"]), dict(document["definitions"])
    for part in parts:
        paths |= part["paths"]
        definitions = {**part["definitions"], **definitions}
    return {**document, "paths": paths, "definitions": definitions}
