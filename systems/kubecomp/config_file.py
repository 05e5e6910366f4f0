"""Reads ``KubeCompConfig`` from YAML; every complaint is one line with file, place, value and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import NODEFAULT, Struct, structs

from mews.dialects import DEFAULT, DIALECTS
from mews.kube.config_text import read_config
from mews.kube.deviceplugin.port import Mount
from mews.registry import NotRegisteredError
from mews.systems.kubecomp.config import (
    PERMIT_BOUND,
    REMOVALS,
    SCORINGS,
    AllocateConfig,
    ChassisConfig,
    KubeCompConfig,
    NodeConfig,
    Timing,
)
from mews.systems.kubecomp.errors import KubeCompConfigError
from mews.systems.kubecomp.faults import check_mode, chosen_faults
from mews.systems.kubecomp.policy import Policy
from mews.systems.kubecomp.published import PERMIT_BOUNDS

_OF_THE_HARNESS = "foreign"

_RESOURCE = re.compile(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")


class _Reader:
    """One mapping of the file; ``where`` is its place, for messages."""

    def __init__(self, file: Path, where: str, value: Any) -> None:
        self._file = file
        self._where = where
        if not isinstance(value, dict):
            raise KubeCompConfigError(f"{file}: {where or 'the file'}: {value!r}: must be a mapping")
        self._left = dict(value)

    @property
    def file(self) -> Path:
        """What is read."""
        return self._file

    def place(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where else key

    def wrong(self, key: str, value: Any, allowed: str) -> KubeCompConfigError:
        return KubeCompConfigError(f"{self._file}: {self.place(key)}: {value!r}: must be {allowed}")

    def take(self, key: str, kind: type, default: Any = NODEFAULT) -> Any:
        if key not in self._left:
            if default is NODEFAULT:
                raise KubeCompConfigError(f"{self._file}: {self.place(key)}: is missing; must be {_word(kind)}")
            return default
        value = self._left.pop(key)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.wrong(key, value, _word(kind))
        return value

    def texts(self, key: str) -> dict[str, str]:
        """Return a mapping of texts; numbers are read as texts (port ids)."""
        value = self.take(key, dict, {})
        for name, text in value.items():
            if not isinstance(text, (str, int)) or isinstance(text, bool):
                raise self.wrong(f"{key}.{name}", text, "a text")
        return {str(name): str(text) for name, text in value.items()}

    def under(self, key: str) -> _Reader:
        return _Reader(self._file, self.place(key), self.take(key, dict, {}))

    def each(self, key: str) -> list[_Reader]:
        values = self.take(key, list)
        if not values:
            raise self.wrong(key, values, "a list with at least one entry")
        return [_Reader(self._file, f"{self.place(key)}[{i}]", value) for i, value in enumerate(values)]

    def end(self, allowed: tuple[str, ...]) -> None:
        if self._left:
            key = sorted(map(str, self._left))[0]
            raise KubeCompConfigError(
                f"{self._file}: {self.place(key)}: unknown field; must be one of {', '.join(allowed)}"
            )


def _word(kind: type) -> str:
    return {str: "a text", int: "a whole number", float: "a number", bool: "true or false", dict: "a mapping"}.get(
        kind, "a list"
    )


def _fields(cls: type[Struct]) -> tuple[str, ...]:
    return tuple(field.name for field in structs.fields(cls))


def load_config(path: Path | str) -> KubeCompConfig:
    """Return the configuration in a YAML file whose keys are the fields of ``KubeCompConfig``.

    ``nodes`` and ``chassis`` are lists of mappings. Raises ConfigError with one line.
    """
    file = Path(path)
    try:
        document = read_config(file)
    except ValueError as error:
        raise KubeCompConfigError(str(error)) from error
    return _config(_Reader(file, "", document))


def _config(reader: _Reader) -> KubeCompConfig:
    chassis = tuple(_chassis(entry) for entry in reader.each("chassis"))
    _distinct(reader, "chassis", [c.name for c in chassis], [str(c.index) for c in chassis])
    nodes = tuple(_node(entry, chassis) for entry in reader.each("nodes"))
    _distinct(reader, "nodes", [node.name for node in nodes])
    plain: dict[str, Any] = {}
    for field in structs.fields(KubeCompConfig):
        if isinstance(field.default, (str, bool)):
            plain[field.name] = reader.take(field.name, type(field.default), field.default)
    if not _RESOURCE.match(plain["resource"]):
        raise reader.wrong("resource", plain["resource"], "domain/name, for example falcon.com/gpu")
    if plain["policy"] not in [policy.value for policy in Policy]:
        raise reader.wrong("policy", plain["policy"], f"one of {', '.join(Policy)}")
    if plain["scoring"] not in SCORINGS:
        raise reader.wrong("scoring", plain["scoring"], f"one of {', '.join(SCORINGS)}")
    if plain["removal"] not in REMOVALS:
        raise reader.wrong("removal", plain["removal"], f"one of {', '.join(REMOVALS)}")
    if plain["permit_bound"] not in PERMIT_BOUNDS:
        raise reader.wrong("permit_bound", plain["permit_bound"], f"one of {', '.join(PERMIT_BOUNDS)}")
    permit = plain["permit_bound"] if plain["permit_bound"] != PERMIT_BOUND else None
    plain["faults"] = _faults(reader, plain["mode"], plain["removal"], permit)
    allocate = _allocate(reader.under("allocate"))
    timing = _timing(reader.under("timing"))
    reader.end(tuple(name for name in _fields(KubeCompConfig) if name != _OF_THE_HARNESS))
    return KubeCompConfig(chassis=chassis, nodes=nodes, allocate=allocate, timing=timing, **plain)


def _faults(reader: _Reader, mode: str, removal: str, permit: str | None) -> tuple[str, ...]:
    named = reader.take("faults", list, None)
    try:
        faults = chosen_faults(named) if named or (mode == "public" and named is None) else ()
        check_mode(mode, faults, removal, permit=permit)
    except ValueError as error:
        raise KubeCompConfigError(f"{reader.file}: {error}") from error
    return faults


def _distinct(reader: _Reader, key: str, *columns: list[str]) -> None:
    for column in columns:
        for value in column:
            if column.count(value) > 1:
                raise reader.wrong(key, value, "unique among them")


def _chassis(reader: _Reader) -> ChassisConfig:
    found = ChassisConfig(
        name=reader.take("name", str),
        index=reader.take("index", int),
        pool=reader.take("pool", str, "pool-0"),
        endpoint=reader.take("endpoint", str, ""),
        dialect=reader.take("dialect", str, DEFAULT),
        user=reader.take("user", str, "admin"),
        password_file=reader.take("password_file", str, ""),
        ca_file=reader.take("ca_file", str, ""),
        prefixed=reader.take("prefixed", bool, True),
    )
    try:
        DIALECTS.find(found.dialect)
    except NotRegisteredError as error:
        raise reader.wrong("dialect", found.dialect, f"one of {', '.join(DIALECTS.names())}") from error
    reader.end(_fields(ChassisConfig))
    return found


def _node(reader: _Reader, chassis: tuple[ChassisConfig, ...]) -> NodeConfig:
    found = NodeConfig(
        name=reader.take("name", str),
        ports=reader.texts("ports"),
        pool=reader.take("pool", str, "pool-0"),
        lent_to=reader.take("lent_to", str, ""),
        remedied=reader.take("remedied", bool, False),
    )
    own = [c.name for c in chassis if c.pool == found.pool]
    for name in found.ports:
        if name not in own:
            raise reader.wrong("ports", name, f"a chassis of {found.pool} ({', '.join(own) or 'there is none'})")
    reader.end(_fields(NodeConfig))
    return found


def _allocate(reader: _Reader) -> AllocateConfig:
    mounts = []
    for entry in reader.take("mounts", list, []):
        mount = _Reader(reader._file, reader.place("mounts"), entry)
        mounts.append(
            Mount(mount.take("container_path", str), mount.take("host_path", str), mount.take("read_only", bool, False))
        )
        mount.end(_fields(Mount))
    found = AllocateConfig(envs=reader.texts("envs"), mounts=tuple(mounts))
    reader.end(_fields(AllocateConfig))
    return found


def _timing(reader: _Reader) -> Timing:
    values: dict[str, Any] = {}
    for field in structs.fields(Timing):
        kind = type(field.default)
        values[field.name] = value = reader.take(field.name, kind, field.default)
        if value <= 0:
            raise reader.wrong(field.name, value, "above 0")
    reader.end(_fields(Timing))
    return Timing(**values)


def as_document(config: KubeCompConfig) -> Mapping[str, Any]:
    """Return the configuration as the YAML document that ``load_config`` reads back."""
    convert: Callable[[Any], Any] = _plain
    names = [field.name for field in structs.fields(KubeCompConfig) if field.name != _OF_THE_HARNESS]
    return {name: convert(getattr(config, name)) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return {field.name: _plain(getattr(value, field.name)) for field in structs.fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
