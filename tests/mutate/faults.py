"""Draws functions of a room, and in each of them one fault."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from tests.planted.mutate import Change, SourceText, changes
from tests.planted.rooms import ROOT


class Mutant(Struct, frozen=True):
    """``before`` at ``offset`` of the file becomes ``after``; ``first_line`` is that of the function."""

    file: str
    function: str
    first_line: int
    sort: str
    offset: int
    before: str
    after: str

    @property
    def line(self) -> int:
        """Where it is."""
        return (ROOT / self.file).read_text(encoding="utf-8").count("\n", 0, self.offset) + 1

    def text(self) -> str:
        """The file with the fault."""
        source = (ROOT / self.file).read_text(encoding="utf-8")
        return source[: self.offset] + self.after + source[self.offset + len(self.before) :]

    def __str__(self) -> str:
        was, now = (" ".join(text.split()) for text in (self.before, self.after))
        return f"{self.file}:{self.line} ({self.function}) {self.sort}: {was!r} -> {now!r}"


def mutants(room: str, seed: int, count: int) -> list[Mutant]:
    """So many faults, each in another function if there are as many. The draw depends on the sources and the seed."""
    rng = random.Random(f"{seed}/{room}")
    functions: list[list[Mutant]] = []
    for path in sorted((ROOT / room).rglob("*.py")):
        functions += _functions(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    for found in functions:
        rng.shuffle(found)
    rng.shuffle(functions)
    drawn: list[Mutant] = []
    while functions and len(drawn) < count:
        drawn += [found.pop() for found in functions][: count - len(drawn)]
        functions = [found for found in functions if found]
    return drawn


def _functions(file: str, source: str) -> Iterator[list[Mutant]]:
    """The faults of each function, without those of functions within it."""
    owners: dict[tuple[str, int], list[Mutant]] = {}
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for change in (*changes(source), *_swaps(source)):
        if change.sort == "order" and _may_stand_in_any_order(source[change.start : change.end]):
            continue
        line = source.count("\n", 0, change.start) + 1
        inner = max((node for node in nodes if node.lineno <= line <= (node.end_lineno or 0)), key=lambda n: n.lineno)
        first = min([inner.lineno, *(each.lineno for each in inner.decorator_list)])
        before = source[change.start : change.end]
        made = Mutant(file, inner.name, first, change.sort, change.start, before, change.text)
        if _compiles(source, made):
            owners.setdefault((inner.name, first), []).append(made)
    yield from owners.values()


def _may_stand_in_any_order(two_statements: str) -> bool:
    """Whether they only give names to values: what is no fault is not drawn."""
    try:
        statements = ast.parse("\n".join(line.strip() for line in two_statements.splitlines())).body
    except SyntaxError:
        return False
    assigned: list[str] = []
    read: list[str] = []
    for each in statements:
        if not isinstance(each, ast.Assign | ast.AnnAssign) or each.value is None:
            return False
        if any(isinstance(node, ast.Call | ast.Await | ast.Subscript | ast.NamedExpr) for node in ast.walk(each)):
            return False
        targets = each.targets if isinstance(each, ast.Assign) else [each.target]
        assigned += [ast.unparse(target) for target in targets]
        read += [ast.unparse(node) for node in ast.walk(each.value) if isinstance(node, ast.Name | ast.Attribute)]
    return len(set(assigned)) == len(assigned) and not set(assigned) & set(read)


def _compiles(source: str, mutant: Mutant) -> bool:
    try:
        compile(source[: mutant.offset] + mutant.after + source[mutant.offset + len(mutant.before) :], "x", "exec")
    except SyntaxError:
        return False
    return True


def _swaps(source: str) -> Iterator[Change]:
    """The first two arguments of a call in each other's place, and a result that is forgotten."""
    text = SourceText(source)
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if (
                isinstance(node, ast.Call)
                and len(node.args) > 1
                and all(isinstance(a, ast.Name) for a in node.args[:2])
            ):
                one, other = node.args[:2]
                between = source[text.end(one) : text.start(other)]
                if text.of(one) != text.of(other):
                    swapped = f"{text.of(other)}{between}{text.of(one)}"
                    yield Change("arguments-swapped", text.start(one), text.end(other), swapped)
            if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
                yield text.change("result-forgotten", node.value, "None")


def rooms() -> list[str]:
    """Every package two levels deep that has a folder of tests."""
    tops = ("emulator", "harness", "kube", "systems")
    found = (str(path.relative_to(ROOT)) for top in tops for path in sorted((ROOT / top).iterdir()) if path.is_dir())
    return [room for room in found if Path(ROOT, room, "__init__.py").is_file() and Path(ROOT, "tests", room).is_dir()]
