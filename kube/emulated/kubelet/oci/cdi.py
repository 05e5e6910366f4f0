"""CDI: specifications, qualified device names and their resolution (github.com/cncf-tags/container-device-interface,
SPEC.md 0.8). Pure: files are read elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml
from msgspec import Struct

from mews.kube.deviceplugin.port import ContainerHook, DeviceNode, Mount
from mews.kube.emulated.kubelet.oci.edits import ContainerEdits, combined

FOLDERS = ("etc/cdi", "var/run/cdi")
"""Where a node keeps its specifications; a device of a later folder hides one of an earlier folder."""

ANNOTATION = "cdi.k8s.io/"
"""Prefix of annotations whose value is a list of qualified names."""

_KIND = re.compile(r"[A-Za-z][A-Za-z0-9._-]*/[A-Za-z][A-Za-z0-9_-]*")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*")
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class CdiError(Exception):
    """A specification or a name that cannot be used; the message says which."""


class CdiSpec(Struct, frozen=True):
    """One specification: its kind (``nvidia.com/gpu``), the edits of each device, and those of any of them."""

    kind: str
    devices: Mapping[str, ContainerEdits]
    edits: ContainerEdits


def qualified(name: str) -> tuple[str, str] | None:
    """Kind and device of ``vendor.com/class=name``; None for any other text."""
    kind, equals, device = name.partition("=")
    return (kind, device) if equals and _KIND.fullmatch(kind) and _NAME.fullmatch(device) else None


def annotated(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Return the qualified names in annotations, each once.

    Raises CdiError for one that is none.
    """
    found: dict[str, None] = {}
    for key in sorted(annotations):
        if not key.startswith(ANNOTATION):
            continue
        for name in annotations[key].split(","):
            if qualified(name) is None:
                raise CdiError(f'invalid CDI device name "{name}" in annotation {key}; want vendor.com/class=name')
            found[name] = None
    return tuple(found)


def resolve(names: Sequence[str], folders: Iterable[Sequence[CdiSpec]]) -> ContainerEdits:
    """Return the edits for these devices; ``folders``: the specifications of each folder, in order of priority.

    Raises CdiError for devices that no specification has, or that two of one folder have.
    """
    known: dict[str, tuple[CdiSpec, ContainerEdits] | None] = {}
    for specs in folders:
        here: dict[str, tuple[CdiSpec, ContainerEdits] | None] = {}
        for spec in specs:
            for device, edits in spec.devices.items():
                name = f"{spec.kind}={device}"
                here[name] = None if name in here else (spec, edits)
        known |= here
    missing = [name for name in names if known.get(name) is None]
    if missing:
        raise CdiError(f"unresolvable CDI devices {', '.join(missing)}")
    used: list[ContainerEdits] = []
    begun: list[CdiSpec] = []
    for spec, edits in (found for name in dict.fromkeys(names) if (found := known[name]) is not None):
        if not any(spec is other for other in begun):
            begun.append(spec)
            used.append(spec.edits)
        used.append(edits)
    return combined(used)


def parse_spec(text: str, where: str) -> CdiSpec:
    """Return a specification in JSON or YAML.

    Raises CdiError naming the file and the field.
    """
    try:
        document = json.loads(text) if text.lstrip().startswith("{") else yaml.load(text, _Loader)
    except (ValueError, yaml.YAMLError) as error:
        raise CdiError(f"{where}: neither JSON nor YAML: {' '.join(str(error).split())}") from error
    document = _mapping(document, where, "the specification")
    kind, version = str(document.get("kind", "")), document.get("cdiVersion")
    if not isinstance(version, str):
        raise CdiError(f"{where}: cdiVersion: {version!r}: must be a version such as 0.8.0")
    if not _KIND.fullmatch(kind):
        raise CdiError(f"{where}: kind: {kind!r}: must be vendor.com/class")
    devices: dict[str, ContainerEdits] = {}
    for number, entry in enumerate(_list(document, "devices", where)):
        place = f"devices[{number}]"
        entry = _mapping(entry, where, place)
        name = str(entry.get("name", ""))
        if not _NAME.fullmatch(name) or name in devices:
            raise CdiError(f"{where}: {place}.name: {name!r}: must be a device's name, each once")
        devices[name] = _edits(entry, where, place)
    return CdiSpec(kind, devices, _edits(document, where, ""))


def _edits(owner: Mapping[str, Any], where: str, place: str) -> ContainerEdits:
    given = owner.get("containerEdits")
    place = f"{place}.containerEdits".lstrip(".")
    edits = {} if given is None else _mapping(given, where, place)
    env = dict(_variable(entry, where, place) for entry in _list(edits, "env", where))
    mounts = [_mapping(entry, where, f"{place}.mounts") for entry in _list(edits, "mounts", where)]
    nodes = [_mapping(entry, where, f"{place}.deviceNodes") for entry in _list(edits, "deviceNodes", where)]
    hooks = [_mapping(entry, where, f"{place}.hooks") for entry in _list(edits, "hooks", where)]
    return ContainerEdits(
        env=env,
        mounts=tuple(
            Mount(
                _path(entry, "containerPath", where, f"{place}.mounts"),
                _path(entry, "hostPath", where, f"{place}.mounts"),
                "ro" in (entry.get("options") or ()),
            )
            for entry in mounts
        ),
        devices=tuple(
            DeviceNode(
                _path(entry, "path", where, f"{place}.deviceNodes"),
                str(entry.get("hostPath") or entry["path"]),
                str(entry.get("permissions") or "rw"),
            )
            for entry in nodes
        ),
        hooks=tuple(
            ContainerHook(
                str(entry.get("hookName", "")),
                _path(entry, "path", where, f"{place}.hooks"),
                tuple(map(str, entry.get("args") or ())),
            )
            for entry in hooks
        ),
    )


def _variable(entry: Any, where: str, place: str) -> tuple[str, str]:
    name, equals, value = str(entry).partition("=")
    if not equals or not name:
        raise CdiError(f"{where}: {place}.env: {entry!r}: must be NAME=value")
    return name, value


def _path(entry: Mapping[str, Any], key: str, where: str, place: str) -> str:
    path = entry.get(key)
    if not isinstance(path, str) or not path.startswith("/"):
        raise CdiError(f"{where}: {place}.{key}: {path!r}: must be an absolute path")
    return path


def _list(owner: Mapping[str, Any], key: str, where: str) -> Sequence[Any]:
    found = owner.get(key)
    if found is not None and not isinstance(found, list):
        raise CdiError(f"{where}: {key}: {found!r}: must be a list")
    return found or ()


def _mapping(value: Any, where: str, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise CdiError(f"{where}: {place}: {value!r}: must be a mapping")
    return value
