"""Resources inside custom objects (``x-kubernetes-embedded-resource``): their metadata is decoded and checked as an
object's own. Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import part_errors
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.types import strictness
from mews.kube.emulated.types.custom import go_text
from mews.kube.emulated.types.custom.trees import Schema, below, item_of
from mews.kube.emulated.types.decoding import decoder
from mews.kube.emulated.types.gotypes import struct

_META = "meta/v1.ObjectMeta"


def coerce(value: Any, schema: Schema | None, path: str = "") -> tuple[list[FieldError], list[str]]:
    """Decode, in place, the metadata of embedded resources; the first that cannot be, and paths of what is unknown."""
    unknown: list[str] = []
    error = next(_coerce(value, schema, path, unknown), None)
    return ([error] if error is not None else []), unknown


def _coerce(value: Any, schema: Schema | None, path: str, unknown: list[str]) -> Iterator[FieldError]:
    if schema is None:
        return
    if isinstance(value, dict):
        if schema.get("x-kubernetes-embedded-resource"):
            yield from _coerce_head(value, path, unknown)
        for key, item in value.items():
            yield from _coerce(item, below(schema, key), f"{path}.{key}" if path else key, unknown)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _coerce(item, item_of(schema), f"{path}[{index}]", unknown)


def _coerce_head(value: dict[str, Any], path: str, unknown: list[str]) -> Iterator[FieldError]:
    for key in ("apiVersion", "kind"):
        if key in value and not isinstance(value[key], str):
            yield go_text.wrong(f"{path}.{key}".lstrip("."), value[key], "must be a string")
    if "metadata" not in value:
        return
    place = f"{path}.metadata".lstrip(".")
    lost: list[str] = []
    try:
        metadata = decoder(_META)(value["metadata"] or {}, lost)
    except ValueError:
        yield go_text.wrong(place, value["metadata"], _mismatch(value["metadata"]))
        return
    unknown += [f"{place}.{name}" for name in lost]
    if metadata.get("creationTimestamp") is None:
        metadata.pop("creationTimestamp", None)
    value["metadata"] = metadata


def _mismatch(metadata: Any) -> str:
    if not isinstance(metadata, Mapping):
        return f"json: cannot unmarshal {strictness.json_type(metadata)} into Go value of type v1.ObjectMeta"
    return strictness.mismatch(metadata, struct(_META))


def embedded_errors(value: Any, schema: Schema | None, path: str = "") -> Iterator[FieldError]:
    """Yield what is wrong with the heads of embedded resources."""
    if schema is None:
        return
    if isinstance(value, dict):
        if schema.get("x-kubernetes-embedded-resource"):
            yield from _head_errors(value, path)
        properties = schema.get("properties") or {}
        for key, item in value.items():
            place = f"{path}.{key}".lstrip(".") if key in properties else f"{path}[{key}]"
            yield from embedded_errors(item, below(schema, key), place)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from embedded_errors(item, item_of(schema), f"{path}[{index}]")


def _head_errors(value: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    prefix = f"{path}." if path else ""
    for key in ("apiVersion", "kind"):
        if key not in value:
            yield refusals.required(f"{prefix}{key}")
        elif not isinstance(value[key], str):
            yield go_text.wrong(f"{prefix}{key}", value[key], "must be a string")
        elif not value[key]:
            yield go_text.wrong(f"{prefix}{key}", "", "must not be empty")
    version = value.get("apiVersion")
    if isinstance(version, str) and version.count("/") > 1:
        yield go_text.wrong(f"{prefix}apiVersion", version, f"unexpected GroupVersion string: {version}")
    kind = value.get("kind")
    if isinstance(kind, str) and kind and not names.is_dns_1035(kind.lower()):
        text = f"may have mixed case, but should otherwise match: {names.DNS_1035_TEXT}"
        yield go_text.wrong(f"{prefix}kind", kind, text)
    metadata = value.get("metadata")
    if isinstance(metadata, Mapping):
        yield from _metadata_errors(metadata, f"{prefix}metadata")


def _metadata_errors(metadata: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    for key in ("generateName", "name"):
        text = metadata.get(key) or ""
        if text in (".", ".."):
            yield go_text.wrong(f"{path}.{key}", text, f"may not be '{text}'")
        for char in (char for char in "/%" if char in text):
            yield go_text.wrong(f"{path}.{key}", text, f"may not contain '{char}'")
    namespace = metadata.get("namespace") or ""
    if namespace and not re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", namespace):
        yield go_text.wrong(f"{path}.namespace", namespace, names.LABEL_TEXT)
    for error in part_errors(metadata):
        yield FieldError(error.path.replace("metadata", path, 1), error.reason, error.text)
