"""The definition of the kind Device, in the form of upstream's (contract koordinator.md section 1)."""

from __future__ import annotations

from typing import Any

from mews.kube.api.objects import Object
from mews.systems.koordinator.names import DEVICES, GROUP

_TEXT, _NUMBER, _FLAG = {"type": "string"}, {"type": "integer", "format": "int32"}, {"type": "boolean"}
_LABELS = {"type": "object", "additionalProperties": _TEXT}
_QUANTITIES = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    },
}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


_DEVICE = _object(
    type=_TEXT,
    deviceType=_TEXT,
    id=_TEXT,
    minor=_NUMBER,
    moduleID=_NUMBER,
    health=_FLAG,
    labels=_LABELS,
    resources=_QUANTITIES,
    resource=_QUANTITIES,
    topology=_object(socketID=_NUMBER, nodeID=_NUMBER, pcieID=_TEXT, busID=_TEXT),
    vfGroups=_list(_object(labels=_LABELS, vfs=_list(_object(minor=_NUMBER, busID=_TEXT)))),
)
_SCHEMA = _object(
    apiVersion=_TEXT,
    kind=_TEXT,
    metadata={"type": "object"},
    spec=_object(devices=_list(_DEVICE)),
    status={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
)


def device_definition() -> Object:
    """The CustomResourceDefinition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{DEVICES.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"kind": DEVICES.kind, "plural": DEVICES.plural, "singular": "device", "listKind": "DeviceList"},
            "scope": "Cluster",
            "versions": [
                {
                    "name": DEVICES.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _SCHEMA},
                    "subresources": {"status": {}},
                }
            ],
        },
    }
