"""Make ``ci/nvml-header/*.txt`` from the ``nvml.h`` that go-nvml publishes: the facts of NVML's ABI, one a line.

``python -m ci.nvml_header NVML_H`` with the header's path (``gen/nvml/nvml.h`` of the Go module) and a C compiler.

- ``functions.txt``: a function, then its arguments as ``name:type``.
- ``types.txt``: a type, its kind (``handle``, ``number`` or ``struct``) and size in bytes; of a struct also its members
  as ``name@offset:size``, with ``*`` behind pointers and ``&`` behind handles, and its versions as ``=word``.
- ``fields.txt``: a field identifier, and its name without ``NVML_FI_``.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

OUT = Path(__file__).parent / "nvml-header"
_COMPILER = "cc"
_FUNCTION = re.compile(r"(?:nvmlReturn_t|const char *\*) *(nvml\w+) *\(([^()]*)\) *;")
_STRUCT = re.compile(r"typedef (?:struct|union)\s*\w*\s*\{")
_ALIAS = re.compile(r"typedef (?:struct )?(\w+) (nvml\w+_t);")
_HANDLE = re.compile(r"typedef struct (?:\w+) *\* *(nvml\w+_t);")
_NUMBER = re.compile(r"(?:typedef enum\s*\w*\s*\{[^{}]*\}|typedef unsigned (?:int|char)) *(nvml\w+_t);")
_FIELD = re.compile(r"#define (NVML_FI_\w+)[ \t]+(\d+)\b")
_VERSION = re.compile(r"#define (nvml\w+_v\d+)[ \t\\]+NVML_STRUCT_VERSION\((\w+), (\d+)\)")


def main(header: str) -> None:
    """Write the files."""
    source = Path(header).read_text(encoding="utf-8")
    plain = _preprocessed(header)
    OUT.mkdir(exist_ok=True)
    (OUT / "functions.txt").write_text("".join(f"{line}\n" for line in _functions(plain)), encoding="utf-8")
    (OUT / "types.txt").write_text("".join(f"{line}\n" for line in _types(header, source, plain)), encoding="utf-8")
    (OUT / "fields.txt").write_text("".join(f"{line}\n" for line in _fields(source)), encoding="utf-8")


def _preprocessed(header: str) -> str:
    command = [_COMPILER, "-E", "-P", "-DNVML_NO_UNVERSIONED_FUNC_DEFS", header]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _functions(plain: str) -> Iterator[str]:
    for name, arguments in sorted(set(_FUNCTION.findall(plain))):
        words = [_argument(each) for each in arguments.split(",") if each.strip() not in ("", "void")]
        yield " ".join((name, *words))


def _argument(text: str) -> str:
    """``unsigned int *count`` -> ``count:unsigned-int*``."""
    words = text.replace("*", " * ").replace("const", "").split()
    name = words.pop()
    if name.endswith("]"):
        name, words = name.partition("[")[0], [*words, "*"]
    stars = "*" * words.count("*")
    return f"{name}:{'-'.join(word for word in words if word not in ('*', 'struct'))}{stars}"


def _fields(source: str) -> Iterator[str]:
    found = {int(number): name.removeprefix("NVML_FI_") for name, number in _FIELD.findall(source)}
    yield from (f"{number} {name}" for number, name in sorted(found.items()) if name != "MAX")


def _types(header: str, source: str, plain: str) -> Iterator[str]:
    structs = dict(_structs(plain))
    same = {alias: told for told, alias in _ALIAS.findall(plain) if told.startswith("nvml")}
    for alias, told in same.items():
        while told in same:
            told = same[told]
        if told in structs:
            structs[alias] = structs[told]
    versions = {name: f"nvml{base}_v{number}_t" for name, base, number in _VERSION.findall(source)}
    printed = iter(_compiled(header, structs, versions, _numbers(plain)))
    yield from sorted(f"{name} handle 8" for name in _HANDLE.findall(plain))
    yield from sorted(f"{name} number {next(printed)}" for name in _numbers(plain))
    words: dict[str, list[str]] = {name: [] for name in structs}
    for name in structs:
        size, *members = next(printed).split()
        words[name] = [size, *(f"{m}{s}" for m, s in zip(members, structs[name].values(), strict=True))]
    for name in versions.values():
        word = next(printed)
        for alias, members in structs.items():
            if alias == name or members is structs[name] or same.get(alias, alias) == name:
                words[alias].append(f"={word}")
    yield from sorted(f"{name} struct {' '.join(each)}" for name, each in words.items())


def layouts(header: str) -> dict[str, tuple[int, ...]]:
    """Struct of a header -> its size, then the offset and the size of each member, as the C compiler lays it out."""
    plain = re.sub(r"/\*.*?\*/", "", Path(header).read_text(encoding="utf-8"), flags=re.DOTALL)
    structs = dict(_structs(plain))
    printed = _compiled(header, structs, {}, ())
    return {
        name: tuple(int(each) for each in re.findall(r"\d+", re.sub(r"\w+@", "", line)))
        for name, line in zip(structs, printed, strict=True)
    }


def _numbers(plain: str) -> list[str]:
    return sorted(set(_NUMBER.findall(plain)))


def _structs(plain: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Name -> its members, each with what stands behind its size."""
    handles = set(_HANDLE.findall(plain))
    for begin in _STRUCT.finditer(plain):
        depth, at = 1, begin.end()
        parts, part = [], at
        while depth:
            depth += {"{": 1, "}": -1}.get(plain[at], 0)
            if plain[at] == ";" and depth == 1:
                parts.append(plain[part:at])
                part = at + 1
            at += 1
        names = re.match(r"([\s\w,]+);", plain[at:])
        for name in names[1].split(",") if names is not None else ():
            named = (each for each in parts if not each.rstrip().endswith("}"))
            yield name.strip(), dict(member for each in named for member in _members(each, handles))


def _members(text: str, handles: set[str]) -> Iterator[tuple[str, str]]:
    """Yield those of one declaration, which may have several."""
    outer = re.sub(r"\{.*\}", " ", text, flags=re.DOTALL)
    outer = re.sub(r"\(\*(\w+)\)\s*\(.*\)", r"* \1", outer, flags=re.DOTALL)  # a pointer to a function
    handle = any(re.search(rf"\b{each}\b", outer) for each in handles)
    for part in outer.split(","):
        found = re.search(r"(\w+)\s*(?:\[.*)?$", part.strip(), flags=re.DOTALL)
        if found is None:
            raise ValueError(f"declaration {text.strip()!r}: no name of a member")
        yield found[1], "*" if "*" in part else "&" if handle else ""


def _compiled(
    header: str, structs: Mapping[str, Mapping[str, str]], versions: Mapping[str, str], numbers: Sequence[str]
) -> list[str]:
    """Return what a program that includes the header prints: a line a number, a struct and a version."""
    lines = ["#include <stdio.h>", "#include <stddef.h>", f'#include "{header}"', "int main(void) {"]
    lines += [f'printf("%zu\\n", sizeof({name}));' for name in numbers]
    for name, members in structs.items():
        lines.append(f'printf("%zu", sizeof({name}));')
        size = f"sizeof((({name} *)0)->%s)"
        lines += [f'printf(" {m}@%zu:%zu", offsetof({name}, {m}), {size % m});' for m in members]
        lines.append('puts("");')
    lines += [f'printf("0x%x\\n", {name});' for name in versions]
    with tempfile.TemporaryDirectory() as made:
        source, program = Path(made) / "facts.c", Path(made) / "facts"
        source.write_text("\n".join([*lines, "}\n"]), encoding="utf-8")
        subprocess.run([_COMPILER, "-w", "-o", str(program), str(source)], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


if __name__ == "__main__":
    main(*sys.argv[1:])
