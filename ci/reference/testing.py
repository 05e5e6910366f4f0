"""The pytest plugin: fixtures, what they hand out, marker, options."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator
from typing import Any

import pytest

from ci.reference.markdown import code, doc, line, paragraphs, table, words
from mews.harness import pytest_plugin


def page() -> str:
    """Return all of it."""
    return paragraphs(
        "# The pytest plugin",
        doc(pytest_plugin),
        "## Fixtures",
        *(_fixture(name, function) for name, function in fixtures().items()),
        "## Marker",
        *markers(),
        "## Options of the command line",
        table(("option", "default", "what it does"), options()),
        "## Options of the ini file",
        table(("option", "default", "what it does"), ini_options()),
    )


def fixtures() -> dict[str, Any]:
    """Public fixture -> its function."""
    found = {}
    for name, value in vars(pytest_plugin).items():
        function = getattr(value, "_fixture_function", None) or getattr(value, "__wrapped__", None)
        if type(value).__name__ == "FixtureFunctionDefinition" and not name.startswith("_"):
            found[name] = function
    return found


def _fixture(name: str, function: Any) -> str:
    hints = typing.get_type_hints(function, localns=_handed_out())
    made = hints.get("return")
    methods: list[str] = []
    if inspect.isclass(made) and made.__module__.startswith("mews."):
        methods = [f"It is a `{made.__module__}.{made.__qualname__}`. {line(doc(made))}", _members(made)]
    return paragraphs(f"### `{name}`", doc(function), *methods)


def _handed_out() -> dict[str, Any]:
    """Return the names that the plugin imports for types alone."""
    from importlib import import_module

    source = inspect.getsource(pytest_plugin).partition("if TYPE_CHECKING:\n")[2]
    found: dict[str, Any] = {}
    for each in source.splitlines():
        if not each.startswith("    from "):
            break
        module, _, names = each.strip().removeprefix("from ").partition(" import ")
        found |= {name.strip(): getattr(import_module(module), name.strip()) for name in names.split(",")}
    return found


def _members(made: type) -> str:
    rows = []
    for name, member in inspect.getmembers(made):
        if (name.startswith("_") and name != "__call__") or not (callable(member) or isinstance(member, property)):
            continue
        text = doc(member)
        shown = name if isinstance(member, property) else f"{name}{_signature(member)}"
        rows.append((code(shown), line(text)))
    return table(("member", "what it does"), rows)


def _signature(member: Any) -> str:
    try:
        found = inspect.signature(member)
    except (TypeError, ValueError):
        return "(…)"
    parameters = [each.replace(annotation=inspect.Parameter.empty) for each in found.parameters.values()]
    without = [each for each in parameters if each.name != "self"]
    return str(found.replace(parameters=without, return_annotation=inspect.Signature.empty))


class _Collected:
    """Takes what the plugin registers."""

    def __init__(self) -> None:
        self.options: list[tuple[str, str, str]] = []
        self.ini: list[tuple[str, str, str]] = []
        self.markers: list[str] = []

    def getgroup(self, *names: str, **more: Any) -> _Collected:
        """Return it as pytest's parser has it."""
        return self

    def addoption(self, *names: str, **given: Any) -> None:
        """As pytest's parser has it."""
        shown = " ".join(filter(None, (", ".join(names), given.get("metavar") or "")))
        allowed = f" ({', '.join(given['choices'])})" if given.get("choices") else ""
        self.options.append((code(shown), code(given.get("default", "")), given.get("help", "") + allowed))

    def addini(self, name: str, help: str, **given: Any) -> None:
        """As pytest's parser has it."""
        self.ini.append((code(name), code(given.get("default", "")), help))

    def getoption(self, name: str) -> None:
        """As pytest's configuration has it: nothing was given."""

    def getini(self, name: str) -> str:
        """Return it as pytest's configuration has it: nothing was given."""
        return ""

    def addinivalue_line(self, name: str, text: str) -> None:
        """As pytest's configuration has it."""
        self.markers.append(text)


def options() -> list[tuple[str, str, str]]:
    """Option, default, words."""
    taken = _Collected()
    pytest_plugin.pytest_addoption(typing.cast(pytest.Parser, taken))
    return taken.options


def ini_options() -> list[tuple[str, str, str]]:
    """Option, default, words."""
    taken = _Collected()
    pytest_plugin.pytest_addoption(typing.cast(pytest.Parser, taken))
    return taken.ini


def markers() -> Iterator[str]:
    """Yield each marker."""
    taken = _Collected()
    pytest_plugin.pytest_configure(typing.cast(pytest.Config, taken))
    for text in taken.markers:
        name, _, what = text.partition(": ")
        yield f"`@pytest.mark.{name}`: {words(what)}"
