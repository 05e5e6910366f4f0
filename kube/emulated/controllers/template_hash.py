"""pod-template-hash as Kubernetes 1.34 computes it, so that names of ReplicaSets are the same everywhere.

It is the FNV-1a of a Go struct as a debugging printer shows it (k8s.io/kubernetes pkg/controller ComputeHash, spew's
``%#v``), so the layout of the structs counts: ``pod_template.json`` has it, by type a list of ``Field json-name type``
(facts of k8s.io/api 0.34.2, read by reflection).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mews.kube.api.quantities import parse

_DIGITS = "bcdfghjklmnpqrstvwxz2456789"
_ZERO = {"string": "", "bool": "false", "int32": "0", "int64": "0"}
_UNDERLYING = re.compile("=[a-z0-9]+")
_QUANTITY = re.compile(r"([+-]?[0-9.]+)(?:([eE][+-]?[0-9]+)|([numkMGTPE]))?")
_SCALES = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def template_hash(template: Mapping[str, Any], collisions: int | None = None) -> str:
    """Return the hash of a pod template with all defaults, ``collisions``: ``status.collisionCount``."""
    text = "".join(_shown("v1.PodTemplateSpec", template, named=True))
    return safe(fnv(text.encode() + (b"" if collisions is None else collisions.to_bytes(8, "little"))))


def fnv(data: bytes) -> int:
    """Hash bytes with FNV-1a, 32 bits."""
    value = 2166136261
    for byte in data:
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value


def safe(number: int) -> str:
    """Return a number in letters that spell no words (k8s.io/apimachinery util/rand)."""
    return "".join(_DIGITS[ord(digit) % len(_DIGITS)] for digit in str(number))


@cache
def _types() -> Mapping[str, Sequence[tuple[str, str, str]]]:
    text = Path(__file__).with_name("pod_template.json").read_text(encoding="utf-8")
    return {name: [_field(line) for line in lines] for name, lines in json.loads(text).items()}


def _field(line: str) -> tuple[str, str, str]:
    name, json_name, kind = line.split(" ")
    return name, json_name, kind


def _shown(kind: str, value: Any, *, named: bool) -> Iterator[str]:
    name, under = _named(kind)
    if named:
        yield f"({name})"
    if under.startswith("*"):
        yield from ("<nil>",) if value is None else _shown(under[1:], value, named=False)
    elif under.startswith("[]"):
        yield from _list(under[2:], value)
    elif under.startswith("map["):
        yield from _map(under.partition("]")[2], value)
    elif name in _types():
        yield from _struct(_types()[name], value)
    elif name in _SPECIAL:
        yield _SPECIAL[name](value)
    elif isinstance(value, bool):
        yield "true" if value else "false"
    else:
        yield _ZERO[under] if value is None else str(value)


def _named(kind: str) -> tuple[str, str]:
    """Return a type's name as Go prints it, and what it is: ``v1.Protocol=string``; of ``[]v1.X=string`` both are of
    use."""
    if kind.startswith(("*", "[]", "map[")):
        return _UNDERLYING.sub("", kind), kind
    name, _, under = kind.partition("=")
    return name, under or name


def _list(element: str, value: Any) -> Iterator[str]:
    if value is None:
        yield "<nil>"
        return
    yield "["
    for index, item in enumerate(value):
        yield " " if index else ""
        yield from _shown(element, item, named=False)
    yield "]"


def _map(element: str, value: Any) -> Iterator[str]:
    if value is None:
        yield "<nil>"
        return
    yield "map["
    for index, key in enumerate(sorted(value)):
        yield f"{' ' if index else ''}{key}:"
        yield from _shown(element, value[key], named=False)
    yield "]"


def _struct(fields: Sequence[tuple[str, str, str]], value: Any) -> Iterator[str]:
    yield "{"
    for index, (name, json_name, kind) in enumerate(fields):
        yield f"{' ' if index else ''}{name}:"
        inner = (value or {}).get(json_name) if json_name else value
        yield from _shown(kind, inner, named=True)
    yield "}"


def _quantity(value: Any) -> str:
    """Return it as ParseQuantity leaves it: the text is kept where it is canonical beyond doubt. (What does not fit
    into 64 bits looks otherwise in Go; its hash is another one here.)"""
    text = "" if value is None else str(value)
    number, scale, form, kept = _parsed(text) if text else (0, 0, "", False)
    amount = f"i:(resource.int64Amount){{value:(int64){number} scale:(resource.Scale){scale}}}"
    none = "d:(resource.infDecAmount){Dec:(*inf.Dec)<nil>}"
    return f"{{{amount} {none} s:(string){text if kept else ''} Format:(resource.Format){form}}}"


def _parsed(text: str) -> tuple[int, int, str, bool]:
    """(digits, power of ten, format, whether the text is kept)."""
    if text == "0":
        return 0, 0, "DecimalSI", True
    if text.endswith("i"):
        return int(parse(text)), 0, "BinarySI", bool(int(parse(text[:-2])) & 7)
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return 0, 0, "", False
    digits, exponent, suffix = match.groups()
    whole, _, part = digits.partition(".")
    scale = (int(exponent[1:]) if exponent else _SCALES.get(suffix or "", 0)) - len(part)
    shifted = whole.lstrip("+-") + part
    kept = scale % 3 == 0 and not shifted.endswith("000") and not shifted.startswith("0")
    return int(whole + part), scale, "DecimalExponent" if exponent else "DecimalSI", kept


def _moment(_: Any) -> str:
    """Templates have no times."""
    return "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}"


def _number_or_text(value: Any) -> str:
    if isinstance(value, str):
        return f"{{Type:(intstr.Type)1 IntVal:(int32)0 StrVal:(string){value}}}"
    return f"{{Type:(intstr.Type)0 IntVal:(int32){value or 0} StrVal:(string)}}"


_SPECIAL = {"resource.Quantity": _quantity, "v1.Time": _moment, "intstr.IntOrString": _number_or_text}
