"""``bindings``: the names that a scenario gives to values, and what ``--set`` may make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mews.harness.scenario.containment import NamedFiles
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.language.names import NAME, MisusedNameError, extent, put_in
from mews.harness.scenario.overrides import Override
from mews.harness.scenario.yamlfile import shown
from mews.names import among

Refuse = Callable[..., ScenarioError]
"""``refuse(value, reason, *place)``."""


_MOST = 100_000
"""Of one value; bindings of bindings grow by a power."""


def named_values(
    given: Any, refuse: Refuse, *, known: Mapping[str, Any] | None = None, late: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the values, each of which may use those before it and those that are ``known``.

    Raises ScenarioError for what is no mapping, a name that is none, and a use of what is not known.
    """
    here = () if known is not None else ("bindings",)
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise refuse(given, "must be a mapping of names to values", *here)
    values: dict[str, Any] = {}
    for name, value in given.items():
        if NAME.fullmatch(str(name)) is None:
            raise refuse(name, "must be a name: letters, digits, '_' and '-', a letter first", *here, name)
        try:
            values[name] = put_in(value, {**(known or {}), **values}, late or {})
        except MisusedNameError as error:
            raise refuse(error.value, str(error), *here, name, *error.place) from None
        if extent(values[name]) > _MOST:
            raise refuse(value, f"becomes too large: at most {_MOST} characters", *here, name)
    return values


def check_bindings(files: NamedFiles, written: Any, overrides: Sequence[Override]) -> None:
    """What is overridden must be there as it is ``written``, and keeps its type.

    Raises ScenarioError.
    """
    declared = written if isinstance(written, Mapping) else {}
    for override in overrides:
        if len(override.place) != 2 or override.place[0] != "bindings":
            continue
        name, where = override.place[1], f"--set {override.text}: bindings.{override.place[1]}"
        if name not in declared:
            reason = f"no such binding in {files.document.name}; bindings: {among(name, declared)}"
            raise ScenarioError(f"{where}: {reason}")
        before = declared[name]
        if before is not None and not _fits(override.value, before):
            text = f"must be {_type_of(before)}, as {shown(before)} in {files.document.name}"
            raise ScenarioError(f"{where}: {shown(override.value)}: {text}")


def _fits(value: Any, before: Any) -> bool:
    if isinstance(before, bool) or isinstance(value, bool):
        return isinstance(before, bool) and isinstance(value, bool)
    if isinstance(before, float):
        return isinstance(value, int | float)
    return isinstance(value, type(before))


def _type_of(value: Any) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    return names.get(type(value), "a list" if isinstance(value, list) else "a mapping")
