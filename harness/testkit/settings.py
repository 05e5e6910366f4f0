"""What a fixture or a context manager is to serve, and whether there is such a thing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from mews.harness.catalogue.files import file_of, missing, shipped
from mews.harness.errors import BadInputError
from mews.harness.options import check_dialect
from mews.harness.scenario.images import UNKNOWN
from mews.kube.releases.errors import ReleaseError
from mews.kube.releases.release_data import known_release
from mews.names import must_be
from mews.systems import registry

CHASSIS = ("hardware", "dialect", "tls", "speed")
"""What chassis and hosts take."""
CLUSTER = ("scenario", "stack", "kubernetes", "images", "unknown_images", *CHASSIS)
"""What a cluster takes: all there is."""


class Settings(Struct, frozen=True):
    """``hardware``: an inventory, a file or a shipped one's name. ``scenario``: hardware and stack are those of this
    file or shipped name, where the others do not say. ``stack``: systems by their names, with commas, or ``none``.
    ``kubernetes``: its release. ``images`` is a file of the user's own ones, ``unknown_images`` what others do.
    ``dialect``: the only one that the chassis speak (of a cluster: that the components use); ``tls``: False for plain
    HTTP; ``speed``: emulated seconds per second. None is the default everywhere. ``allow_outside``: the scenario may
    name files outside its folder."""

    hardware: str | None = None
    scenario: str | None = None
    stack: str | None = None
    kubernetes: str | None = None
    images: str | None = None
    unknown_images: str | None = None
    dialect: str | None = None
    tls: bool | None = None
    speed: float | None = None
    allow_outside: bool = False

    def options(self) -> list[str]:
        """Return the words of ``mews up`` for it."""
        further = (("--scenario", self.scenario), ("--stack", self.stack), ("--images", self.images))
        more = (("--unknown-images", self.unknown_images), ("--kubernetes", self.kubernetes))
        words = [*_words(further), *_words(more)]
        return [*self.of_chassis(), *words, *(["--allow-outside"] if self.allow_outside else [])]

    def of_chassis(self) -> list[str]:
        """Return the words of ``mews serve`` for it."""
        speed = None if self.speed is None else f"{self.speed:g}"
        words = _words((("--hardware", self.hardware), ("--dialect", self.dialect), ("--speed", speed)))
        return [*words, *(["--insecure"] if self.tls is False else [])]


def _words(options: Sequence[tuple[str, str | None]]) -> list[str]:
    return [word for name, value in options if value is not None for word in (name, value)]


def settings_of(
    given: Mapping[str, Any], folders: Sequence[Path] = (), *, allowed: Sequence[str] = CLUSTER
) -> Settings:
    """Return the settings with these names and values; a relative file is looked up in the folders, in their order,
    then in the working directory.

    Raises BadInputError: ``name=value: what is allowed``.
    """
    for name in given:
        if name not in allowed:
            raise BadInputError(f"{name}={given[name]!r}: {must_be(name, allowed)}")
    read = {name: _READ[name](value, folders) for name, value in given.items() if value is not None}
    return Settings(**read)


def merged(*several: Settings) -> Settings:
    """Return the settings of the first that has each."""
    names = [each.name for each in fields(Settings) if each.name != "allow_outside"]
    found = {name: next((v for s in several if (v := getattr(s, name)) is not None), None) for name in names}
    return Settings(**found, allow_outside=any(each.allow_outside for each in several))


def _hardware(value: Any, folders: Sequence[Path]) -> str:
    return _file_or_name("hardware", "hardware", value, folders)


def _scenario(value: Any, folders: Sequence[Path]) -> str:
    return _file_or_name("scenario", "scenario", value, folders)


def _file_or_name(name: str, kind: str, value: Any, folders: Sequence[Path]) -> str:
    path = Path(_text(name, value))
    for beside in (folder / path for folder in folders):
        if beside.is_file():
            return str(beside)
    if path.is_file() or shipped(kind, str(value)) is not None:
        return str(value)
    found = file_of(kind, path)
    if found.is_file():
        return str(found)
    raise BadInputError(f"{name}={str(value)!r}: {missing(kind, value)}")


def _stack(value: Any, folders: Sequence[Path]) -> str:
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
        raise BadInputError(f"stack={value!r}: must be names of systems, or none")
    wanted = [name.strip() for name in names]
    there = registry.names()
    for name in wanted if wanted not in ([], ["none"]) else []:
        if name not in there:
            raise BadInputError(f"stack={value!r}: {name!r}: {must_be(name, (*there, 'none'))}")
    return ",".join(wanted) or "none"


def _kubernetes(value: Any, folders: Sequence[Path]) -> str:
    try:
        return known_release(f"{value:g}" if isinstance(value, float) else str(value))
    except ReleaseError as error:
        raise BadInputError(f"kubernetes={value!r}: {str(error).partition(': ')[2]}") from None


def _images(value: Any, folders: Sequence[Path]) -> str:
    path = Path(_text("images", value))
    for candidate in (*(folder / path for folder in folders), path):
        if candidate.is_file():
            return str(candidate)
    raise BadInputError(f"images={str(value)!r}: no such file")


def _unknown_images(value: Any, folders: Sequence[Path]) -> str:
    if value not in UNKNOWN:
        raise BadInputError(f"unknown_images={value!r}: must be one of {', '.join(UNKNOWN)}")
    return str(value)


def _dialect(value: Any, folders: Sequence[Path]) -> str:
    text = _text("dialect", value)
    try:
        check_dialect(text)
    except BadInputError as error:
        raise BadInputError(f"dialect={text!r}: {str(error).partition(': ')[2]}") from None
    return text


def _tls(value: Any, folders: Sequence[Path]) -> bool:
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    found = value if isinstance(value, bool) else words.get(value.lower()) if isinstance(value, str) else None
    if found is None:
        raise BadInputError(f"tls={value!r}: must be True or False")
    return found


def _speed(value: Any, folders: Sequence[Path]) -> float:
    try:
        speed = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        speed = float("nan")
    if not 0 < speed < float("inf"):
        raise BadInputError(f"speed={value!r}: must be a number above 0")
    return speed


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str | Path) or not str(value):
        raise BadInputError(f"{name}={value!r}: must be a text")
    return str(value)


_READ: Mapping[str, Callable[[Any, Sequence[Path]], Any]] = {
    "hardware": _hardware,
    "scenario": _scenario,
    "stack": _stack,
    "kubernetes": _kubernetes,
    "images": _images,
    "unknown_images": _unknown_images,
    "dialect": _dialect,
    "tls": _tls,
    "speed": _speed,
}
