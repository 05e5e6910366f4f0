"""The shapes of built-in kinds as far as somebody here reads them: what has another one is refused, as Go's JSON
decoder does, so that no component ever meets it. Fields that are not named here may have any shape.

Source: the types of k8s.io/api and apimachinery; wording of encoding/json and of the API server's decoder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from mews.kube.api.errors import BadRequest
from mews.kube.api.resources import Resource


@dataclass(frozen=True, slots=True)
class Struct:
    """A Go struct: its name, and its fields."""

    name: str
    fields: Mapping[str, Shape]


@dataclass(frozen=True, slots=True)
class Many:
    """A slice, or a map with strings as keys, of items of one shape."""

    item: Shape
    keyed: bool = False


Shape: TypeAlias = "str | Struct | Many"
"""Text names a scalar: string, int32, int64, bool, quantity."""

_TEXTS, _TEXT_MAP, _AMOUNTS = Many("string"), Many("string", keyed=True), Many("quantity", keyed=True)
_REQUIREMENTS = Many(Struct("NodeSelectorRequirement", {"key": "string", "operator": "string", "values": _TEXTS}))
_NODE_TERM = Struct("NodeSelectorTerm", {"matchExpressions": _REQUIREMENTS, "matchFields": _REQUIREMENTS})
_NODE_AFFINITY = Struct(
    "NodeAffinity",
    {
        "requiredDuringSchedulingIgnoredDuringExecution": Struct(
            "NodeSelector", {"nodeSelectorTerms": Many(_NODE_TERM)}
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": Many(
            Struct("PreferredSchedulingTerm", {"weight": "int32", "preference": _NODE_TERM})
        ),
    },
)
_FIELD = Struct("EnvVarSource", {"fieldRef": Struct("ObjectFieldSelector", {"fieldPath": "string"})})
_PROBE = Struct("Probe", {"httpGet": Struct("HTTPGetAction", {}), "exec": Struct("ExecAction", {"command": _TEXTS})})
_CONTAINER = Struct(
    "Container",
    {
        "name": "string",
        "image": "string",
        "imagePullPolicy": "string",
        "restartPolicy": "string",
        "workingDir": "string",
        "command": _TEXTS,
        "args": _TEXTS,
        "env": Many(Struct("EnvVar", {"name": "string", "value": "string", "valueFrom": _FIELD})),
        "ports": Many(Struct("ContainerPort", {"containerPort": "int32", "hostPort": "int32", "name": "string"})),
        "resources": Struct("ResourceRequirements", {"limits": _AMOUNTS, "requests": _AMOUNTS}),
        "volumeMounts": Many(Struct("VolumeMount", {"name": "string", "mountPath": "string"})),
        "livenessProbe": _PROBE,
        "readinessProbe": _PROBE,
        "startupProbe": _PROBE,
    },
)
_SOURCES = ("emptyDir", "hostPath", "configMap", "secret", "downwardAPI", "projected")
_VOLUME = Struct("Volume", {"name": "string", **{name: Struct("VolumeSource", {}) for name in _SOURCES}})
_TOLERATION = Struct(
    "Toleration",
    {"key": "string", "operator": "string", "value": "string", "effect": "string", "tolerationSeconds": "int64"},
)
_CONDITION = Struct("Condition", {"type": "string", "status": "string", "reason": "string", "message": "string"})
_POD = {
    "spec": Struct(
        "PodSpec",
        {
            "containers": Many(_CONTAINER),
            "initContainers": Many(_CONTAINER),
            "ephemeralContainers": Many(_CONTAINER),
            "volumes": Many(_VOLUME),
            "nodeName": "string",
            "nodeSelector": _TEXT_MAP,
            "affinity": Struct(
                "Affinity",
                {
                    "nodeAffinity": _NODE_AFFINITY,
                    "podAffinity": Struct("PodAffinity", {}),
                    "podAntiAffinity": Struct("PodAntiAffinity", {}),
                },
            ),
            "tolerations": Many(_TOLERATION),
            "schedulerName": "string",
            "serviceAccountName": "string",
            "priority": "int32",
            "priorityClassName": "string",
            "preemptionPolicy": "string",
            "restartPolicy": "string",
            "hostname": "string",
            "hostNetwork": "bool",
            "terminationGracePeriodSeconds": "int64",
            "activeDeadlineSeconds": "int64",
            "overhead": _AMOUNTS,
            "schedulingGates": Many(Struct("PodSchedulingGate", {"name": "string"})),
        },
    ),
    "status": Struct(
        "PodStatus",
        {
            "phase": "string",
            "reason": "string",
            "message": "string",
            "nominatedNodeName": "string",
            "podIP": "string",
            "conditions": Many(_CONDITION),
            "containerStatuses": Many(Struct("ContainerStatus", {"name": "string", "restartCount": "int32"})),
            "initContainerStatuses": Many(Struct("ContainerStatus", {"name": "string", "restartCount": "int32"})),
        },
    ),
}
_NODE = {
    "spec": Struct(
        "NodeSpec",
        {
            "unschedulable": "bool",
            "podCIDR": "string",
            "taints": Many(Struct("Taint", {"key": "string", "value": "string", "effect": "string"})),
        },
    ),
    "status": Struct(
        "NodeStatus",
        {
            "capacity": _AMOUNTS,
            "allocatable": _AMOUNTS,
            "conditions": Many(_CONDITION),
            "addresses": Many(Struct("NodeAddress", {"type": "string", "address": "string"})),
            "nodeInfo": Struct("NodeSystemInfo", {}),
        },
    ),
}
_NAMES = Struct("CustomResourceDefinitionNames", {"plural": "string", "kind": "string", "shortNames": _TEXTS})
_VERSION = Struct(
    "CustomResourceDefinitionVersion",
    {"name": "string", "served": "bool", "storage": "bool", "schema": Struct("CustomResourceValidation", {})},
)
_KINDS: Mapping[str, Mapping[str, Shape]] = {
    "Pod": _POD,
    "Node": _NODE,
    "Namespace": {
        "spec": Struct("NamespaceSpec", {"finalizers": _TEXTS}),
        "status": Struct("NamespaceStatus", {"phase": "string"}),
    },
    "ConfigMap": {"data": _TEXT_MAP, "binaryData": _TEXT_MAP, "immutable": "bool"},
    "Secret": {"data": _TEXT_MAP, "stringData": _TEXT_MAP, "type": "string"},
    "Service": {"spec": Struct("ServiceSpec", {"selector": _TEXT_MAP, "ports": Many(Struct("ServicePort", {}))})},
    "Lease": {"spec": Struct("LeaseSpec", {"holderIdentity": "string", "leaseDurationSeconds": "int32"})},
    "Event": {
        "involvedObject": Struct("ObjectReference", {"kind": "string", "name": "string", "namespace": "string"}),
        "reason": "string",
        "message": "string",
        "type": "string",
        "count": "int32",
    },
    "PriorityClass": {"value": "int32", "globalDefault": "bool", "preemptionPolicy": "string"},
    "CustomResourceDefinition": {
        "spec": Struct(
            "CustomResourceDefinitionSpec",
            {"group": "string", "scope": "string", "names": _NAMES, "versions": Many(_VERSION)},
        ),
        "status": Struct("CustomResourceDefinitionStatus", {"conditions": Many(_CONDITION)}),
    },
}
_META = Struct(
    "ObjectMeta",
    {
        "name": "string",
        "generateName": "string",
        "namespace": "string",
        "uid": "string",
        "resourceVersion": "string",
        "labels": _TEXT_MAP,
        "annotations": _TEXT_MAP,
        "finalizers": _TEXTS,
        "deletionTimestamp": "string",
        "creationTimestamp": "string",
        "deletionGracePeriodSeconds": "int64",
        "ownerReferences": Many(
            Struct(
                "OwnerReference",
                {"apiVersion": "string", "kind": "string", "name": "string", "uid": "string", "controller": "bool"},
            )
        ),
    },
)
_BITS = {"int32": 31, "int64": 63}
_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def check_shape(resource: Resource, obj: Mapping[str, Any], *, custom: bool = False) -> None:
    """Check a body against the shape of its kind; of a custom kind the metadata only.

    Raises ``BadRequest`` at the first value of a wrong shape.
    """
    fields: dict[str, Shape] = {"metadata": _META}
    if not custom:
        fields.update(_KINDS.get(resource.kind, {}))
    try:
        _check_fields(obj, Struct(resource.kind, fields), "")
    except _Wrong as wrong:
        raise BadRequest(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {wrong}'
        ) from None


class _Wrong(Exception):
    """In the decoder's words."""


def _check_fields(value: Mapping[str, Any], shape: Struct, path: str) -> None:
    for name, inner in shape.fields.items():
        if value.get(name) is not None:
            _check(value[name], inner, shape.name, f"{path}.{name}" if path else name)


def _check(value: Any, shape: Shape, struct: str, path: str) -> None:
    if value is None:
        return
    if isinstance(shape, str):
        _check_scalar(value, shape, struct, path)
    elif isinstance(shape, Struct):
        if not isinstance(value, Mapping):
            raise _mismatch(value, shape, struct, path)
        _check_fields(value, shape, path)
    elif not isinstance(value, Mapping if shape.keyed else list | tuple):
        raise _mismatch(value, shape, struct, path)
    else:
        for item in value.values() if isinstance(value, Mapping) else value:
            _check(item, shape.item, struct, path)


def _check_scalar(value: Any, shape: str, struct: str, path: str) -> None:
    if shape == "quantity":
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise _Wrong(_QUANTITY)
    elif shape == "string":
        if not isinstance(value, str):
            raise _mismatch(value, shape, struct, path)
    elif shape == "bool":
        if not isinstance(value, bool):
            raise _mismatch(value, shape, struct, path)
    elif isinstance(value, bool) or not isinstance(value, int):
        raise _mismatch(value, shape, struct, path)
    elif not -(2 ** _BITS[shape]) <= value < 2 ** _BITS[shape]:
        raise _mismatch(value, shape, struct, path, f"number {value}")


def _mismatch(value: Any, shape: Shape, struct: str, path: str, given: str = "") -> _Wrong:
    return _Wrong(
        f"json: cannot unmarshal {given or json_type(value)} into Go struct field {struct}.{path} of type "
        f"{_go_type(shape)}"
    )


def _go_type(shape: Shape) -> str:
    if isinstance(shape, str):
        return "resource.Quantity" if shape == "quantity" else shape
    if isinstance(shape, Struct):
        return f"v1.{shape.name}"
    return f"{'map[string]' if shape.keyed else '[]'}{_go_type(shape.item)}"


def json_type(value: Any) -> str:
    """A value's type in the decoder's words."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, Mapping):
        return "object"
    return "string" if isinstance(value, str) else "array"
