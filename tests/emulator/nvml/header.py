"""The facts of NVML's header that ``ci/nvml_header.py`` writes down, as values."""

import re
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parents[3] / "ci" / "nvml-header"


class Argument(NamedTuple):
    """``type`` without its star."""

    name: str
    type: str
    pointer: bool


class Member(NamedTuple):
    name: str
    offset: int
    size: int
    pointer: bool
    handle: bool


class Type(NamedTuple):
    """``kind``: handle, number or struct; ``versions``: the words that its first member may have."""

    kind: str
    size: int
    members: tuple[Member, ...]
    versions: tuple[int, ...]


PLAIN = {"char": 1, "int": 4, "unsigned-int": 4, "unsigned-long": 8, "unsigned-long-long": 8}


def lines(name):
    return [line.split() for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def functions():
    """Name -> its arguments."""
    return {name: tuple(map(argument, words)) for name, *words in lines("functions.txt")}


def argument(word):
    name, kind = word.split(":")
    return Argument(name, kind.removesuffix("*"), kind.endswith("*"))


def types():
    """Name -> all that is known of a type."""
    found = {name: Type("number", size, (), ()) for name, size in PLAIN.items()}
    for name, kind, size, *words in lines("types.txt"):
        members = tuple(map(member, (word for word in words if "@" in word)))
        versions = tuple(int(word[1:], 16) for word in words if word.startswith("="))
        found[name] = Type(kind, int(size), members, versions)
    return found


def member(word):
    name, place = word.split("@")
    offset, size = place.rstrip("*&").split(":")
    return Member(name, int(offset), int(size), place.endswith("*"), place.endswith("&"))


def family(name, known):
    """The version words of a struct and of all its other versions."""
    mine = known[name]
    twins = [other for other, each in known.items() if mine.versions and each == mine]
    bases = {re.sub(r"(_v\d+)?_t$", "", other) for other in (name, *twins)}
    same = [each for other, each in known.items() if re.sub(r"(_v\d+)?_t$", "", other) in bases]
    return sorted({word for each in same for word in each.versions})


def fields():
    """Field identifier -> name."""
    return {int(number): name for number, name in lines("fields.txt")}
