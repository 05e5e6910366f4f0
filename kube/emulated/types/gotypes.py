"""The types of the built-in kinds: fields, merge keys, enums and defaults, from ``kube/releases``, one file per group.

The tables hold facts measured on Kubernetes 1.34.2: its OpenAPI, the decoder's messages, and which fields an object
shows that said nothing (``ci/api_types.py`` makes them), and what the published sources of later releases changed
(``ci/release_data.py``). A struct's reference names its release where that is not the first: ``core@1.37/v1.PodSpec``.
A field is a line of words, the first of which is its type::

    "ports": "[]core/v1.ContainerPort list=map:containerPort,protocol patch=merge:containerPort"

Types are ``string int32 int64 float64 bool bytes time microtime quantity intstr fields raw any schemaorlist
schemaorbool`` (a JSON schema or what stands for one), a struct
(``core/v1.PodSpec``), a list (``[]`` before the item's type) or a map (``{}`` likewise). Words: ``req``; ``keep``
(shown even when empty) and ``null`` (shown as null); ``ptr`` (an empty value is kept when said); ``go=`` the Go type
where it is not the type's own name; ``in=`` the embedded struct that has the field, which decoders since 1.35 name;
``list=`` and ``atomic`` as in OpenAPI's list and map types; ``patch=`` strategy and merge key; ``enum=`` by ``|``;
``default=``; ``oadefault=`` a default that only OpenAPI tells.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from mews.kube.api.resources import Resource
from mews.kube.releases.release_data import DEFAULT, merged, renamed_lines

SCALARS = frozenset(
    ("string", "int32", "int64", "float64", "bool", "bytes", "time", "microtime", "quantity", "intstr", "fields")
) | {"raw", "any", "schemaorlist", "schemaorbool"}
_GO = {
    "bytes": "[]uint8",
    "time": "v1.Time",
    "microtime": "v1.MicroTime",
    "quantity": "resource.Quantity",
    "intstr": "intstr.IntOrString",
    "raw": "runtime.RawExtension",
    "any": "v1.JSON",
    "schemaorlist": "v1.JSONSchemaPropsOrArray",
    "schemaorbool": "v1.JSONSchemaPropsOrBool",
}
JSON_SCHEMA = "apiextensions/v1.JSONSchemaProps"
"""The type of what ``schemaorlist`` and ``schemaorbool`` may hold."""


class Field(msgspec.Struct, frozen=True):
    """One field of a struct; see the module for the words. ``default`` is None when there is none."""

    name: str
    type: str
    go: str = ""
    within: str = ""
    empty: str = ""
    pointer: bool = False
    required: bool = False
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    atomic: bool = False
    strategies: tuple[str, ...] = ()
    merge_key: str = ""
    enum: tuple[str, ...] = ()
    default: Any = None
    shown_default: Any = None

    @property
    def go_type(self) -> str:
        """As the decoder names it: ``v1.RestartPolicy``."""
        return self.go or go_name(self.type)


class Struct(msgspec.Struct, frozen=True):
    """A Go struct: ``ref`` is ``core/v1.PodSpec``, ``name`` ``PodSpec``; ``kind`` is group/version/Kind of a root."""

    ref: str
    fields: Mapping[str, Field]
    atomic: bool = False
    kind: str = ""

    @property
    def name(self) -> str:
        """``PodSpec``."""
        return self.ref.rpartition(".")[2]


def go_name(type_: str) -> str:
    """Return the Go type of a type expression."""
    if type_.startswith("[]"):
        return f"[]{go_name(type_[2:])}"
    if type_.startswith("{}"):
        return f"map[string]{go_name(type_[2:])}"
    return _GO.get(type_, type_.rpartition("/")[2])


def release_mark(release: str) -> str:
    """Return what follows the group in references to structs of a release: nothing for the first, ``@1.37``."""
    return "" if release == DEFAULT else f"@{release}"


def plain_ref(ref: str) -> str:
    """Return a reference without its release."""
    return _MARK.sub("", ref)


_MARK = re.compile(r"@[\d.]+")
_REFERRED = re.compile(r"(\w+)/")
_FILES = {"": "core", "internal": "apiserverinternal"}
"""Files of groups that do not bear the first word of the group's name."""


@cache
def table(group: str) -> Mapping[str, Mapping[str, str] | str]:
    """Return all types of a group's file (``core``, ``core@1.37``), by version and name; none for a group that is not
    built in. A type that is another version's but for the version is that version's name."""
    file, _, release = group.partition("@")
    found: Mapping[str, Mapping[str, str] | str] = merged(release or DEFAULT, f"types/{file}.json")
    return found


@cache
def struct(ref: str) -> Struct:
    """Return the struct of a reference such as ``core/v1.PodSpec``; ``KeyError`` when there is none."""
    group, _, name = ref.partition("/")
    lines = dict(_lines(group, name))
    head = lines.pop("", "").split()
    kind = next((word[5:] for word in head if word.startswith("kind=")), "")
    mark = "".join(group.partition("@")[1:])
    return Struct(ref, {name: _field(name, line, mark) for name, line in lines.items()}, "atomic" in head, kind)


def _lines(group: str, name: str) -> Mapping[str, str]:
    lines = table(group)[name]
    if not isinstance(lines, str):
        return lines
    version, _, bare = name.partition(".")
    return renamed_lines(group.partition("@")[0], _lines(group, f"{lines}.{bare}"), lines, version)


def root_of(resource: Resource, release: str = DEFAULT) -> Struct | None:
    """Return the struct of a kind in a release, None for what is not built in."""
    return _root(resource.group, resource.version, resource.kind, release)


@cache
def _root(group: str, version: str, kind: str, release: str) -> Struct | None:
    word = group.partition(".")[0]
    file, name = _FILES.get(word, word) + release_mark(release), f"{version}.{kind}"
    return struct(f"{file}/{name}") if name in table(file) else None


def _field(name: str, line: str, mark: str) -> Field:
    type_, *words = line.split()
    known: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition("=")
        known.update(_WORDS[key](value))
    return Field(name, _REFERRED.sub(rf"\1{mark}/", type_) if mark else type_, **known)


def _list_words(value: str) -> dict[str, Any]:
    kind, _, keys = value.partition(":")
    return {"list_type": kind, "list_keys": tuple(keys.split(",")) if keys else ()}


def _patch_words(value: str) -> dict[str, Any]:
    strategies, _, key = value.partition(":")
    return {"strategies": tuple(strategies.split(",")), "merge_key": key}


_WORDS: Mapping[str, Any] = {
    "keep": lambda _: {"empty": "keep"},
    "null": lambda _: {"empty": "null"},
    "ptr": lambda _: {"pointer": True},
    "req": lambda _: {"required": True},
    "go": lambda value: {"go": value},
    "in": lambda value: {"within": value},
    "list": _list_words,
    "atomic": lambda _: {"atomic": True},
    "patch": _patch_words,
    "enum": lambda value: {"enum": tuple(option.replace("%20", " ") for option in value.split("|"))},
    "default": lambda value: {"default": json.loads(value)},
    "oadefault": lambda value: {"shown_default": json.loads(value)},
}
