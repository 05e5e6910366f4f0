"""Semantic versions as Kubernetes' CEL library reads them (blang/semver v4, apiserver/pkg/cel/library/semverlib.go)."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from msgspec import Struct

from mews.kube.api.quoted_text import quoted
from mews.kube.cel.values import CelError

_DIGITS, _SIGNS = re.compile(r"[0-9]*"), re.compile(r"[0-9A-Za-z-]*")
_UINT64 = 1 << 64


class Semver(Struct, frozen=True):
    """A semantic version."""

    cel_name: ClassVar[str] = "kubernetes.Semver"
    numbers: tuple[int, int, int]
    pre: tuple[str, ...]
    build: str

    @classmethod
    def parse(cls, text: str, *, loose: bool = False) -> Semver:
        """``1.2.3-rc.1+build``; ``loose`` takes ``v1.2`` too. Raises ``CelError``."""
        text = _filled_up(text) if loose else text
        if not text:
            raise CelError("Version string empty")
        parts = text.split(".", 2)
        if len(parts) != 3:
            raise CelError("No Major.Minor.Patch elements found")
        major, minor = _number(parts[0], "major"), _number(parts[1], "minor")
        rest, has_build, build = parts[2].partition("+")
        patch, has_pre, pre = rest.partition("-")
        found = (major, minor, _number(patch, "patch"))
        for part in pre.split(".") if has_pre else ():
            _check_pre(part)
        for part in build.split(".") if has_build else ():
            _check(part, "Build meta data is empty", "build meta data")
        return cls(found, tuple(pre.split(".")) if has_pre else (), build)

    def compare(self, other: Semver) -> int:
        """-1, 0 or 1."""
        mine, theirs = (self.numbers, _order(self.pre)), (other.numbers, _order(other.pre))
        return (mine > theirs) - (mine < theirs)


def _order(pre: tuple[str, ...]) -> tuple[Any, ...]:
    return (1,) if not pre else (0, *((0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre))


def _filled_up(text: str) -> str:
    """Return a version with three numbers and without leading zeros."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            bare = part.lstrip("0")
            parts[index] = bare if bare[:1].isdigit() and bare[:1].isascii() else f"0{bare}"
    if len(parts) < 3 and re.search("[+-]", parts[-1]):
        raise CelError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, *["0"] * (3 - len(parts))])


def _number(text: str, name: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise CelError(f"Invalid character(s) found in {name} number {quoted(text)}")
    if _has_leading_zeros(text):
        raise CelError(f"{name.capitalize()} number must not contain leading zeroes {quoted(text)}")
    return _uint(text)


def _has_leading_zeros(text: str) -> bool:
    return len(text) > 1 and text[0] == "0"


def _uint(text: str) -> int:
    if not text:
        raise CelError('strconv.ParseUint: parsing "": invalid syntax')
    if int(text) >= _UINT64:
        raise CelError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _check_pre(part: str) -> None:
    _check(part, "Prerelease is empty", "prerelease")
    if not _DIGITS.fullmatch(part):
        return
    if _has_leading_zeros(part):
        raise CelError(f"Numeric PreRelease version must not contain leading zeroes {quoted(part)}")
    _uint(part)


def _check(part: str, empty: str, name: str) -> None:
    if not part:
        raise CelError(empty)
    if not _SIGNS.fullmatch(part):
        raise CelError(f"Invalid character(s) found in {name} {quoted(part)}")
