"""Make ``kube/emulated/core/wire/wire_numbers.json`` from the published generated.proto files of k8s.io/api.

``python ci/wire_numbers.py FOLDER`` with the folder that holds ``api`` and ``apimachinery`` (a Go module cache's
``k8s.io`` with the versions cut off will do). A struct becomes a line of ``number name`` pairs; ``~group/v1.Type``
stands for a message whose fields belong to the struct itself.
"""

from __future__ import annotations

import glob
import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

OUT = Path(__file__).parent.parent / "kube" / "emulated" / "core" / "wire" / "wire_numbers.json"
_FIELD = re.compile(
    r"^  (?:optional|repeated|required) (?P<type>[\w.]+) (?P<name>\w+) = (?P<number>\d+);", re.MULTILINE
)
_MAP = re.compile(r"^  map<string, (?P<type>[\w.]+)> (?P<name>\w+) = (?P<number>\d+);", re.MULTILINE)
_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)


Structs = Mapping[str, Collection[str]]
"""Struct (``core/v1.PodSpec``) -> the names of its fields."""


def messages(folders: Iterable[Path]) -> Iterator[tuple[str, str, str]]:
    """``(core/v1, PodSpec, body)`` of every message."""
    files = {file for folder in folders for file in glob.glob(f"{folder}/**/generated.proto", recursive=True)}
    for path in sorted(map(Path, files)):
        package = f"{path.parent.parent.name}/{path.parent.name}"
        for match in _MESSAGE.finditer(path.read_text(encoding="utf-8")):
            yield package, match[1], match[2]


def _line(package: str, body: str, known: Collection[str] | None) -> str:
    """Return the numbers of one struct's fields."""
    words = []
    for match in sorted([*_FIELD.finditer(body), *_MAP.finditer(body)], key=lambda match: int(match["number"])):
        name_ = _json_name(match["name"], known or ())
        *elsewhere, type_ = match["type"].split(".")
        inlined = known is not None and name_ not in known and type_[:1].isupper()
        shown = f"~{'/'.join(elsewhere[-2:]) or package}.{type_}" if inlined else name_
        words.append(f"{match['number']} {shown}")
    return " ".join(words)


def _json_name(name: str, known: Collection[str]) -> str:
    """Return the field as JSON names it: ``$ref`` and ``x-kubernetes-list-type`` are no names for a message's field."""
    if name in known or not known:
        return name
    kebab = re.sub("[A-Z]", lambda match: "-" + match[0].lower(), name)
    return next((word for word in (f"${name}", kebab) if word in known), name)


def lines_of(folders: Iterable[Path], structs: Structs) -> dict[str, str]:
    """Return the lines of all messages that are structs of these, and of those they take in."""
    found = {f"{package}.{name}": (package, body) for package, name, body in messages(folders)}
    wanted = [ref for ref in found if ref in structs]
    lines: dict[str, str] = {}
    while wanted:
        ref = wanted.pop()
        if ref in lines or ref not in found:
            continue
        lines[ref] = _line(*found[ref], structs.get(ref))
        wanted += [word[1:] for word in lines[ref].split() if word.startswith("~")]
    return dict(sorted(lines.items()))


def main(folder: Path) -> None:
    """Write the table of the first release."""
    structs = {
        f"{file.stem}/{name}": lines
        for file in (Path(__file__).parent.parent / "kube/releases/1.34/types").glob("*.json")
        for name, lines in json.loads(file.read_text(encoding="utf-8")).items()
    }
    OUT.write_text(json.dumps(lines_of([folder], structs), indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not any(messages([Path(sys.argv[1])])):
        sys.exit("usage: python ci/wire_numbers.py FOLDER, with generated.proto files below it")
    main(Path(sys.argv[1]))
