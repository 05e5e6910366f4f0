"""The language's part of the JSON Schema of scenarios: ``${name}`` wherever a value stands, and what is put in its
place before the model sees it."""

from __future__ import annotations

from typing import Any

from mews.harness.scenario.language.expand import PARTS

_USE = {"type": "string", "pattern": r"^\$\{[^}]+\}$", "description": "a binding, a forEach value or an output"}
_FOR_EACH = {
    "type": "object",
    "minProperties": 1,
    "description": "once for each value; of several names every combination",
    "additionalProperties": {
        "anyOf": [
            {"type": "array", "minItems": 1},
            {
                "type": "object",
                "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}},
                "required": ["from", "to"],
                "additionalProperties": False,
            },
            _USE,
        ]
    },
}
_WITH = {"type": "object", "description": "bindings for what is put in here"}
_FILE = {"type": "string", "description": "a file, relative to this one"}


def _mapping(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [required], "additionalProperties": False}


def add_language(published: dict[str, Any]) -> None:
    """Put what the language allows into the published schema."""
    definitions, properties = published["$defs"], published["properties"]
    _allow_uses(published)
    steps = {"type": "array", "items": {"$ref": "#/$defs/StepOrSteps"}}
    definitions["Step"]["properties"]["forEach"] = _FOR_EACH
    definitions["StepOrSteps"] = {
        "anyOf": [
            {"$ref": "#/$defs/Step"},
            {
                **_mapping("steps", steps=steps, bindings={"type": "object"}, forEach=_FOR_EACH),
                "description": "several steps, with names of their own or for each of some values",
            },
            {
                **_mapping("include", include=_FILE, forEach=_FOR_EACH, **{"with": _WITH}),
                "description": "the steps of another file: a list",
            },
        ]
    }
    for part in PARTS:
        properties[part] = {**steps, "description": properties[part].get("description", "")}
    definitions["ObjectsOfTemplate"] = {
        **_mapping("template", template={"type": "string"}, forEach=_FOR_EACH, **{"with": _WITH}),
        "description": "an object, or with forEach several, of templates",
    }
    definitions["ObjectsOfFile"] = {
        "anyOf": [
            {**_mapping("file", file=_FILE), "description": "a manifest as it is"},
            {
                **_mapping("include", include=_FILE, forEach=_FOR_EACH, **{"with": _WITH}),
                "description": "with bindings",
            },
        ]
    }
    for name in ("templates", "bindings"):
        properties[name]["properties"] = {"include": _FILE}
    definitions["Stack"].setdefault("properties", {})["include"] = _FILE


# Complex: one loop for each place in which a schema nests.
def _allow_uses(node: Any) -> None:  # noqa: C901
    """Let ``${name}`` stand for each value that is no text."""
    if isinstance(node, list):
        for item in node:
            _allow_uses(item)
    if not isinstance(node, dict):
        return
    for key, item in node.items():
        if key not in ("properties", "$defs", "patternProperties"):
            _allow_uses(item)
    for group in ("properties", "$defs"):
        for name, each in node.get(group, {}).items():
            _allow_uses(each)
            if group == "properties" and name not in ("apiVersion", "kind", "bindings", "templates", *PARTS):
                node[group][name] = _or_use(each)
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            node[key] = _or_use(node[key])


def _or_use(schema: Any) -> Any:
    if not isinstance(schema, dict) or (
        schema.get("type") == "string" and "enum" not in schema and "pattern" not in schema
    ):
        return schema
    about = {key: schema[key] for key in ("description", "default") if key in schema}
    return {"anyOf": [schema, _USE], **about}
