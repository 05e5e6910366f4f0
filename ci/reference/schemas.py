"""Scenario and hardware files, from their JSON Schemas: what ``mews validate --schema`` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ci.reference.markdown import code, doc, line, paragraphs, table, words
from mews.emulator.host import act
from mews.emulator.inventory.schema import hardware_schema
from mews.harness.scenario import match
from mews.harness.scenario.actions import ACTIONS
from mews.harness.scenario.loader import schema
from mews.systems import registry

Schema = Mapping[str, Any]

_STEPS_AND_CHECKS = ("Step", "Check")


def scenario_page() -> str:
    """Return the whole file but for steps and checks, which have pages of their own."""
    whole = schema()
    shown = _reached(whole, leave_out=_STEPS_AND_CHECKS)
    sections = [f"## {name}\n\n{_section(whole, whole['$defs'][name])}" for name in shown]
    systems = [_system(name) for name in registry.names()]
    return paragraphs(
        "# Scenario files",
        "[The format by example](../scenario-files.md); here each key of it. `mews validate --schema` prints the same "
        "as a JSON Schema, which editors understand. [Steps](steps.md) and [checks](checks.md) have their own pages.",
        _section(whole, whole),
        *sections,
        "## Options of systems",
        *systems,
    )


def steps_page() -> str:
    """Return each action."""
    return paragraphs(
        "# Steps",
        doc_of("Step"),
        "## Keys of every step",
        _beside_the_action(),
        *_each("Step", [name.rstrip("_") for name in ACTIONS]),
        "## What an operator does on a host",
        doc(act),
    )


def checks_page() -> str:
    """Return each check, and how values match."""
    names = list(schema()["$defs"]["Check"]["properties"])
    return paragraphs(
        "# Checks",
        f"`wait`, `assert` and `hold` take one or a list of these. {doc_of('Check')}",
        *_each("Check", names),
        "## Patterns",
        doc(match),
    )


def hardware_page() -> str:
    """Return the hardware file."""
    whole = hardware_schema()
    rows = list(_nested(whole, whole, ""))
    return paragraphs(
        "# Hardware files",
        "Each key, with its place in the file; `[]` stands for each entry of a list. `mews validate --schema hardware` "
        "prints the same as a JSON Schema; `python -m mews.emulator.fixture_tool --help` makes such files.",
        table(("key", "value", "default", "what it is"), rows),
    )


def _beside_the_action() -> str:
    """Return the keys of a step that are no action."""
    whole, actions = schema(), {name.rstrip("_") for name in ACTIONS}
    keys = {name: each for name, each in whole["$defs"]["Step"]["properties"].items() if name not in actions}
    return _keys(whole, {"properties": keys})


def doc_of(name: str) -> str:
    """Return the words of a definition."""
    return words(schema()["$defs"][name].get("description", ""))


def _system(name: str) -> str:
    system = registry.system(name)
    options = system.options.model_json_schema()
    tables = [_keys(options, options)]
    tables += [f"`{each}`: {doc_in(options, each)}\n\n{_keys(options, found)}" for each, found in _definitions(options)]
    return paragraphs(f"### {name}", words(system.summary), *tables)


def doc_in(whole: Schema, name: str) -> str:
    """Return the words of a definition of that schema, in a line."""
    return line(words(whole["$defs"][name].get("description", "")))


def _definitions(whole: Schema) -> list[tuple[str, Schema]]:
    return [(name, each) for name, each in whole.get("$defs", {}).items() if each.get("properties")]


def _each(owner: str, names: list[str]) -> Iterator[str]:
    whole = schema()
    for name in names:
        found = whole["$defs"][owner]["properties"][name]
        target = _target(whole, found)
        text = words(found.get("description", "")) or words((target or {}).get("description", ""))
        own = words((target or {}).get("description", "")) if found.get("description") and target is not None else ""
        keys = _keys(whole, target) if target is not None and target.get("properties") else ""
        if name in ("wait", "assert"):
            keys, own = "See [checks](checks.md).", ""
        nested = [
            f"`{each}`: {doc_in(whole, each)}\n\n{_keys(whole, whole['$defs'][each])}"
            for each in sorted(_names_in(target or {}) - set(_STEPS_AND_CHECKS))
            if name not in ("wait", "assert")
        ]
        yield paragraphs(f"## `{name}`", text, own, f"Value: {_type(whole, found)}", keys, *nested)


def _target(whole: Schema, found: Schema) -> Schema | None:
    """Return the definition that a value refers to, if it is one."""
    if "$ref" in found:
        target: Schema = whole["$defs"][found["$ref"].rpartition("/")[2]]
        return target
    inner = (*found.get("anyOf", ()), *filter(None, (found.get("items"),)))
    return next((target for each in inner if (target := _target(whole, each)) is not None), None)


def _names_in(value: Any) -> set[str]:
    """Return the definitions that something refers to."""
    if isinstance(value, Mapping):
        own = {str(value["$ref"]).rpartition("/")[2]} if "$ref" in value else set()
        return own.union(*map(_names_in, value.values()))
    return set().union(*map(_names_in, value)) if isinstance(value, list) else set()


def _reached(whole: Schema, leave_out: tuple[str, ...]) -> list[str]:
    """Definitions that are met on the way from the top, in alphabetical order."""
    found: set[str] = set()
    open_ = _names_in(whole["properties"])
    while open_:
        name = open_.pop()
        if name not in found and name not in leave_out:
            found.add(name)
            open_ |= _names_in(whole["$defs"][name])
    return sorted(name for name in found if not name.startswith("Replacements_"))


def _section(whole: Schema, found: Schema) -> str:
    return paragraphs(words(found.get("description", "")), _keys(whole, found) if found.get("properties") else "")


def _keys(whole: Schema, found: Schema) -> str:
    required = found.get("required", ())
    rows = (
        (code(name), _type(whole, each), _default(name, each, required), _words(whole, each))
        for name, each in found.get("properties", {}).items()
    )
    return table(("key", "value", "default", "what it is"), rows)


def _words(whole: Schema, found: Schema) -> str:
    target = _target(whole, found) or {}
    return line(words(found.get("description", "") or target.get("description", "").partition("\n\n")[0]))


def _default(name: str, found: Schema, required: Any) -> str:
    if name in required:
        return "*required*"
    default = found.get("default")
    return "" if default in (None, "", [], {}) else code(json.dumps(default, ensure_ascii=False))


def _type(whole: Schema, found: Schema) -> str:
    """Return what may stand there, in words."""
    if "anyOf" in found:
        kinds = dict.fromkeys(_type(whole, each) for each in found["anyOf"] if each.get("type") != "null")
        return " or ".join(kinds)
    if "$ref" in found:
        name = found["$ref"].rpartition("/")[2]
        return "check" if name == "Check" else code(name)
    if "const" in found:
        return code(found["const"])
    if "enum" in found:
        return ", ".join(code(each) for each in found["enum"])
    if found.get("type") == "array":
        return f"list of {_type(whole, found.get('items', {}))}"
    if found.get("pattern", "").startswith(r"^(\d+"):
        return "duration such as `90s`, `5m`"
    if found.get("pattern") == r"^[^:\s]+:[^:\s]+$":
        return "`module:attribute`"
    names = {"integer": "whole number", "string": "text", "boolean": "`true`, `false`", "object": "mapping"}
    return names.get(found.get("type", ""), found.get("type", "any value"))


def _nested(whole: Schema, found: Schema, place: str) -> Iterator[tuple[str, str, str, str]]:
    """Rows of a schema without definitions, level by level."""
    required = found.get("required", ())
    for name, each in found.get("properties", {}).items():
        here = f"{place}{name}"
        yield code(here), _type(whole, each), _default(name, each, required), _words(whole, each)
        for inner in (each, *each.get("anyOf", ())):
            if inner.get("type") == "array":
                yield from _nested(whole, inner.get("items", {}), f"{here}[].")
            else:
                yield from _nested(whole, inner, f"{here}.")
