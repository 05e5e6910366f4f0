"""The types that a Kubernetes API server publishes (its OpenAPI v3), as recorded in ``published_types.json``.

``python -m tests.differential.generated record`` reads them from a real server; a test compares. Nothing of the
embedded server's own tables is in it, so what is generated from it can judge those tables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mews.kube.releases.release_data import DEFAULT
from tests.differential import sides

RECORD = Path(__file__).with_name("published_types.json")
_REFERENCE = "#/components/schemas/"
_KEPT = ("type", "format", "enum", "required", "oneOf")
Schema = Mapping[str, Any]


def documents(fetch: Any) -> list[Schema]:
    """All documents of groups and versions; ``fetch`` reads the JSON of a path."""
    index = fetch("/openapi/v3")["paths"]
    return [fetch(entry["serverRelativeURL"]) for path, entry in sorted(index.items()) if path.count("/") >= 1]


def recorded(fetch: Any) -> dict[str, Any]:
    """The record of a server."""
    return reduced(documents(fetch))


def reduced(found: list[Schema]) -> dict[str, Any]:
    """Types without prose, and the type of each kind by ``apps/v1/Deployment``."""
    types, kinds = {}, {}
    for document in found:
        for name, schema in document.get("components", {}).get("schemas", {}).items():
            types[name] = _reduced(schema)
            served = schema.get("x-kubernetes-group-version-kind") or ()
            if len(served) == 1 and "metadata" in schema.get("properties", {}):
                group, version, kind = (served[0][key] for key in ("group", "version", "kind"))
                kinds["/".join(part for part in (group, version, kind) if part)] = name
    return {"kinds": dict(sorted(kinds.items())), "types": dict(sorted(types.items()))}


def _reduced(schema: Schema) -> dict[str, Any]:
    found = {key: schema[key] for key in _KEPT if key in schema}
    if "$ref" in schema:
        found["ref"] = schema["$ref"].removeprefix(_REFERENCE)
    for part in schema.get("allOf") or ():
        found.update(_reduced(part))
    if "properties" in schema:
        found["fields"] = {name: _reduced(field) for name, field in schema["properties"].items()}
    if isinstance(schema.get("additionalProperties"), Mapping):
        found["members"] = _reduced(schema["additionalProperties"])
    if "items" in schema:
        found["items"] = _reduced(schema["items"])
    return found


def written(record: Mapping[str, Any]) -> str:
    """The text of the record: one line for each type."""
    parts = []
    for section in ("kinds", "types"):
        lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in record[section].items()]
        parts.append(f'"{section}": {{\n' + ",\n".join(lines) + "\n}")
    return "{" + ",\n".join(parts) + "}\n"


@cache
def _record() -> Mapping[str, Any]:
    """What is recorded of the first release; another real server is asked itself."""
    if not sides.lacking() and sides.release() != DEFAULT:
        found: Mapping[str, Any] = sides.real_documents(recorded)
    else:
        found = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


def type_of_kind(name: str) -> Schema:
    """The type of ``apps/v1/Deployment``."""
    return type_named(_record()["kinds"][name])


def type_named(name: str) -> Schema:
    """A type by its published name."""
    found: Schema = _record()["types"][name]
    return found


def resolved(schema: Schema) -> Schema:
    """What a reference points to, or the schema itself."""
    return type_named(schema["ref"]) if "ref" in schema else schema
