"""Where the texts are that users read, each with its place."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import typer.main

from ci.reference import PAGES
from ci.reference.values import laws
from mews.harness import cli
from mews.harness.commands.further import all_commands

ROOT = Path(__file__).parents[2]
CODE = ("src", "harness", "emulator", "systems", "kube")
_BUILT_IN = {"ValueError", "TypeError", "LookupError", "OSError", "RuntimeError", "KeyError", "AttributeError"}
_HELPERS = {"refuse", "refusal", "fail", "wrong", "error", "Lost"}
"""Functions of ours whose texts become errors, and values that stand for one."""
_NOT_OURS = ("kube/emulated", "kube/api", "kube/cel", "kube/deviceplugin", "kube/admission", "kube/workloads")
"""Whose errors are upstream's, word by word."""

_MORE_THAN_A_NAME = re.compile(r"[a-z]{2} [a-z…]|… [a-z]{2}")

Text = tuple[str, str]
"""A place, as a reader of a failure finds it, and the text."""


@cache
def helps() -> tuple[Text, ...]:
    """Summary and options of every command, and the arguments of every other program of the package."""
    return tuple(_helps())


@cache
def errors() -> tuple[Text, ...]:
    """What exceptions of ours say of what a user gave, with … for values."""
    return tuple(_errors())


def _helps() -> Iterator[Text]:
    yield from _of_typer(typer.main.get_command(cli.app), "mews")
    for command in all_commands().values():
        yield f"mews {command.name}", command.summary
        for option, text in command.options.items():
            yield f"mews {command.name} {option}", text
    for path, tree in _modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("add_argument", "addoption", "add")):
                text = next((_text(keyword.value) for keyword in node.keywords if keyword.arg == "help"), "")
                if re.search(r"[a-z]{3} [a-z]", text):  # more than a value
                    yield f"{path}:{node.lineno}", text


def _of_typer(command: object, name: str) -> Iterator[Text]:
    yield name, (getattr(command, "help", "") or "").partition("\n\n")[0]
    for option in getattr(command, "params", ()):
        if getattr(option, "help", None):
            yield f"{name} {(option.opts or [option.name])[0]}", option.help
    for word, below in getattr(command, "commands", {}).items():
        if word not in all_commands() and not getattr(below, "hidden", False):
            yield from _of_typer(below, f"{name} {word}")


def _errors() -> Iterator[Text]:
    names = _BUILT_IN | _HELPERS | _exceptions()
    for path, tree in _modules():
        if path.startswith(_NOT_OURS):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in names:
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
                for text in filter(_MORE_THAN_A_NAME.search, map(_text, given)):
                    yield f"{path}:{node.lineno}", text


@cache
def _exceptions() -> frozenset[str]:
    """Classes of the package that are raised, whatever module they are from."""
    bases = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for _, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    found: set[str] = {"Exception", "UsageError", "BadParameter", "ArgumentTypeError", *_BUILT_IN, "ConnectionError"}
    while more := {name for name, above in bases.items() if above & found} - found:
        found |= more
    return frozenset(found)


def pages() -> Iterator[Text]:
    """Sentences of the pages that people write, without code."""
    for page in sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "scenarios" / "README.md")):
        name = str(page.relative_to(ROOT))
        yield from ((name, sentence) for sentence in sentences(page.read_text(encoding="utf-8")))


def titles() -> Iterator[Text]:
    """What the first comment of each scenario says of it."""
    for path in sorted((ROOT / "scenarios").rglob("*.yaml")):
        lines = itertools.takewhile(lambda line: line.startswith("#"), path.read_text(encoding="utf-8").splitlines())
        title = " ".join(line.lstrip("# ") for line in lines)
        yield from ((str(path.relative_to(ROOT)), sentence) for sentence in sentences(title))


def references() -> Iterator[Text]:
    """The pages that are made from docstrings and data, without the names of laws, which results and users quote."""
    names = {f"{law.number} {law.name}" for law, _ in laws()}
    for name, make in PAGES.items():
        for sentence in sentences(make()):
            if sentence.partition(" {: id=")[0] not in names:
                yield name, sentence


def scripts() -> Iterator[Text]:
    """What the HTML report and the live page show, with … for values."""
    for path in sorted((ROOT / "harness" / "report" / "picture").glob("*.js")):
        code = re.sub(r"^\s*(//|/\*|\*).*|// .*", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for found in re.finditer(r'"([^"\n]*)"|`([^`\n]*)`', code):
            text = re.sub(r"\$\{[^}]*\}", "…", found[1] or found[2] or "")
            if re.search(r"[a-z] [a-z]", text) and not re.search(r"[=&|]{2}|=>", text):
                yield from ((path.name, sentence) for sentence in sentences(text))


def sentences(markdown: str) -> Iterator[str]:
    """A page's sentences, table cells and list items; a span of code counts as a word."""
    plain = re.sub(r"<!--.*?-->|^```.*?^```", "", markdown, flags=re.DOTALL | re.MULTILINE)
    plain = re.sub(r"`[^`]*`", "CODE", plain)
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", plain)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.))|\|", plain):
        for sentence in re.split(r"(?<=[.:?!])\s+(?=[A-Z])", " ".join(block.split())):
            if found := sentence.strip(" -*#_"):
                yield found


@cache
def _modules() -> tuple[tuple[str, ast.Module], ...]:
    paths = sorted(path for folder in CODE for path in (ROOT / folder).rglob("*.py"))
    return tuple((str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))) for path in paths)


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(value.value if isinstance(value, ast.Constant) else "…" for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left) + (_text(right) or "…")
        case ast.IfExp(body=body, orelse=other):
            return f"{_text(body)} {_text(other)}".strip()
    return ""
