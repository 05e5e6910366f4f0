"""Make ``systems/kod2/pod_template.json``: the schema of a pod template as definitions of kinds hold it.

``python ci/pod_template_schema.py``, after ``ci/api_types.py``: it is made from the embedded API's table of types, that
is from the published OpenAPI. As controller-gen writes it, there are no enums and no defaults: what a value may be is
the pod's own validation's to say. Lists are plain, so that duplicates are its to find as well.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mews.kube.emulated.types.gotypes import struct

OUT = Path(__file__).parent.parent / "systems" / "kod2" / "pod_template.json"
QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_EITHER = [{"type": "integer"}, {"type": "string"}]
_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
LEAVES: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "time": {"type": "string", "format": "date-time"},
    "quantity": {"anyOf": _EITHER, "pattern": QUANTITY, "x-kubernetes-int-or-string": True},
    "intstr": {"anyOf": _EITHER, "x-kubernetes-int-or-string": True},
    "meta/v1.ObjectMeta": {
        "type": "object",
        "properties": {
            "annotations": _TEXTS,
            "finalizers": {"type": "array", "items": {"type": "string"}},
            "labels": _TEXTS,
            "name": {"type": "string"},
            "namespace": {"type": "string"},
        },
    },
}
"""What is not looked into further. Of the metadata that a template may have, what a pod is given of it."""


def schema_of(type_: str) -> dict[str, Any]:
    """Return the structural schema of a type."""
    if type_.startswith("[]"):
        return {"type": "array", "items": schema_of(type_[2:])}
    if type_.startswith("{}"):
        return {"type": "object", "additionalProperties": schema_of(type_[2:])}
    if type_ in LEAVES:
        return LEAVES[type_]
    fields = struct(type_).fields.values()
    made: dict[str, Any] = {"type": "object"}
    if required := sorted(field.name for field in fields if field.required):
        made["required"] = required
    return {**made, "properties": {field.name: schema_of(field.type) for field in fields}}


def text() -> str:
    """Return the file's."""
    return json.dumps(schema_of("core/v1.PodTemplateSpec"), sort_keys=True, separators=(",", ":")) + "\n"


if __name__ == "__main__":
    OUT.write_text(text(), encoding="utf-8")
