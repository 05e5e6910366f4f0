"""Protobuf bodies of kubectl's typed commands (contract apiserver.md section 1): ``k8s\\0`` + runtime.Unknown.

``MESSAGES`` is data: field numbers of k8s.io/api and apimachinery, for the kinds that kubectl posts so.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from mews.harness.clusters.embedded.protobuf_access import ACCESS_MESSAGES
from mews.kube.api.errors import ApiError, BadRequest
from mews.kube.api.objects import timestamp

MAGIC = b"k8s\x00"

# A field's type: a scalar (string, int, bool, bytes, time, quantity), a message's name, a list as [type], or a map of
# strings to a type as {type}, written "map:type".
Fields = Mapping[int, tuple[str, str]]

MESSAGES: Mapping[str, Fields] = {
    "ObjectMeta": {
        1: ("name", "string"), 2: ("generateName", "string"), 3: ("namespace", "string"), 4: ("selfLink", "string"),
        5: ("uid", "string"), 6: ("resourceVersion", "string"), 7: ("generation", "int"),
        8: ("creationTimestamp", "time"), 9: ("deletionTimestamp", "time"), 10: ("deletionGracePeriodSeconds", "int"),
        11: ("labels", "map:string"), 12: ("annotations", "map:string"), 13: ("ownerReferences", "[OwnerReference]"),
        14: ("finalizers", "[string]"),
    },
    "OwnerReference": {
        1: ("kind", "string"), 3: ("name", "string"), 4: ("uid", "string"), 5: ("apiVersion", "string"),
        6: ("controller", "bool"), 7: ("blockOwnerDeletion", "bool"),
    },
    "Namespace": {1: ("metadata", "ObjectMeta"), 2: ("spec", "NamespaceSpec"), 3: ("status", "NamespaceStatus")},
    "NamespaceSpec": {1: ("finalizers", "[string]")},
    "NamespaceStatus": {1: ("phase", "string")},
    "ConfigMap": {
        1: ("metadata", "ObjectMeta"), 2: ("data", "map:string"), 3: ("binaryData", "map:bytes"),
        4: ("immutable", "bool"),
    },
    "Secret": {
        1: ("metadata", "ObjectMeta"), 2: ("data", "map:bytes"), 3: ("type", "string"), 4: ("stringData", "map:string"),
        5: ("immutable", "bool"),
    },
    "ServiceAccount": {
        1: ("metadata", "ObjectMeta"), 2: ("secrets", "[ObjectReference]"),
        3: ("imagePullSecrets", "[LocalObjectReference]"), 4: ("automountServiceAccountToken", "bool"),
    },
    "ObjectReference": {
        1: ("kind", "string"), 2: ("namespace", "string"), 3: ("name", "string"), 4: ("uid", "string"),
        5: ("apiVersion", "string"), 6: ("resourceVersion", "string"), 7: ("fieldPath", "string"),
    },
    "LocalObjectReference": {1: ("name", "string")},
    "PriorityClass": {
        1: ("metadata", "ObjectMeta"), 2: ("value", "int"), 3: ("globalDefault", "bool"), 4: ("description", "string"),
        5: ("preemptionPolicy", "string"),
    },
    "ResourceQuota": {
        1: ("metadata", "ObjectMeta"), 2: ("spec", "ResourceQuotaSpec"), 3: ("status", "ResourceQuotaStatus"),
    },
    "ResourceQuotaSpec": {1: ("hard", "map:quantity"), 2: ("scopes", "[string]")},
    "ResourceQuotaStatus": {1: ("hard", "map:quantity"), 2: ("used", "map:quantity")},
    "Deployment": {
        1: ("metadata", "ObjectMeta"), 2: ("spec", "DeploymentSpec"), 3: ("status", "DeploymentStatus"),
    },
    "DeploymentStatus": {},
    "DeploymentSpec": {
        1: ("replicas", "int"), 2: ("selector", "LabelSelector"), 3: ("template", "PodTemplateSpec"),
        4: ("strategy", "DeploymentStrategy"), 5: ("minReadySeconds", "int"), 6: ("revisionHistoryLimit", "int"),
        7: ("paused", "bool"), 9: ("progressDeadlineSeconds", "int"),
    },
    "DeploymentStrategy": {1: ("type", "string")},
    "LabelSelector": {1: ("matchLabels", "map:string"), 2: ("matchExpressions", "[LabelSelectorRequirement]")},
    "LabelSelectorRequirement": {1: ("key", "string"), 2: ("operator", "string"), 3: ("values", "[string]")},
    "PodTemplateSpec": {1: ("metadata", "ObjectMeta"), 2: ("spec", "PodSpec")},
    "PodSpec": {
        2: ("containers", "[Container]"), 3: ("restartPolicy", "string"), 4: ("terminationGracePeriodSeconds", "int"),
        5: ("activeDeadlineSeconds", "int"), 6: ("dnsPolicy", "string"), 7: ("nodeSelector", "map:string"),
        8: ("serviceAccountName", "string"), 10: ("nodeName", "string"), 11: ("hostNetwork", "bool"),
        14: ("securityContext", "PodSecurityContext"), 19: ("schedulerName", "string"),
    },
    "PodSecurityContext": {},
    "Container": {
        1: ("name", "string"), 2: ("image", "string"), 3: ("command", "[string]"), 4: ("args", "[string]"),
        5: ("workingDir", "string"), 6: ("ports", "[ContainerPort]"), 7: ("env", "[EnvVar]"),
        8: ("resources", "ResourceRequirements"), 13: ("terminationMessagePath", "string"),
        14: ("imagePullPolicy", "string"), 16: ("stdin", "bool"), 18: ("tty", "bool"),
        20: ("terminationMessagePolicy", "string"),
    },
    "ContainerPort": {
        1: ("name", "string"), 2: ("hostPort", "int"), 3: ("containerPort", "int"), 4: ("protocol", "string"),
        5: ("hostIP", "string"),
    },
    "EnvVar": {1: ("name", "string"), 2: ("value", "string")},
    "ResourceRequirements": {1: ("limits", "map:quantity"), 2: ("requests", "map:quantity")},
    **ACCESS_MESSAGES,
}  # fmt: skip

_TYPE_META: Fields = {1: ("apiVersion", "string"), 2: ("kind", "string")}
_UNKNOWN: Fields = {
    1: ("typeMeta", "TypeMeta"),
    2: ("raw", "raw"),
    3: ("contentEncoding", "string"),
    4: ("contentType", "string"),
}


def decode(body: bytes) -> dict[str, Any]:
    """The object in a protobuf body.

    Raises ``ApiError`` 415 for a kind or a field that is not in ``MESSAGES``, ``BadRequest`` for broken bytes.
    """
    if not body.startswith(MAGIC):
        raise BadRequest("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    try:
        unknown = _message(body[len(MAGIC) :], _UNKNOWN, "Unknown")
        meta = unknown.get("typeMeta", {})
        kind = meta.get("kind", "")
        if kind not in MESSAGES:
            raise _unsupported(f"{meta.get('apiVersion', '')} {kind}")
        return {**meta, **_message(unknown.get("raw", b""), MESSAGES[kind], kind)}
    except (IndexError, UnicodeDecodeError) as error:
        raise BadRequest(f"unable to decode the protobuf body: {error}") from None


def _unsupported(what: str) -> ApiError:
    return ApiError(
        f"protobuf of {what} is not decoded here; send application/json", code=415, reason="UnsupportedMediaType"
    )


def _message(data: bytes, fields: Fields, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, raw in _wire(data):
        if number not in fields:
            if raw in (b"", 0):
                continue
            raise _unsupported(f"{name} field {number}")
        key, kind = fields[number]
        if kind.startswith("map:"):
            entry = _message(raw, {1: ("key", "string"), 2: ("value", kind[4:])}, "entry")
            found.setdefault(key, {})[entry.get("key", "")] = entry.get("value", "")
        elif kind.startswith("["):
            found.setdefault(key, []).append(_value(raw, kind[1:-1]))
        elif (value := _value(raw, kind)) not in ("", None):
            found[key] = value
    return found


def _value(raw: Any, kind: str) -> Any:
    match kind:
        case "string":
            return raw.decode()
        case "bytes":
            return base64.b64encode(raw).decode()
        case "raw":
            return raw
        case "int":
            return raw - (1 << 64) if raw >= 1 << 63 else raw
        case "bool":
            return bool(raw)
        case "time":
            stamp = _message(raw, {1: ("seconds", "int"), 2: ("nanos", "int")}, "Time")
            return timestamp(stamp["seconds"]) if stamp.get("seconds") else None
        case "quantity":
            return _message(raw, {1: ("string", "string")}, "Quantity").get("string", "0")
        case "TypeMeta":
            return _message(raw, _TYPE_META, kind)
    return _message(raw, MESSAGES[kind], kind)


def _wire(data: bytes) -> Iterator[tuple[int, Any]]:
    """Fields of a message as (number, integer or bytes)."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, position = _varint(data, position)
            yield number, value
        elif wire_type == 2:
            length, position = _varint(data, position)
            if position + length > len(data):
                raise IndexError("unexpected EOF")
            yield number, data[position : position + length]
            position += length
        else:
            width = {1: 8, 5: 4}.get(wire_type)
            if width is None:
                raise IndexError(f"illegal wireType {wire_type}")
            yield number, data[position : position + width]
            position += width


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
