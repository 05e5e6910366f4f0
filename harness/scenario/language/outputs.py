"""``outputs``: what later steps may use of what came of a step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from mews.harness.scenario.base import Model, OrScalar
from mews.harness.scenario.errors import Failure, StepFailedError
from mews.harness.scenario.language.bindings import Refuse
from mews.harness.scenario.language.names import NAME

OutputType = Literal["string", "integer", "number", "boolean", "array", "object"]
_SAMPLES: Mapping[str, Any] = {"integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}
_WHOLE = re.compile(r"^\{(.*)\}$", re.DOTALL)


class Output(Model):
    """One value of a step's result, by JSONPath (kubectl's). ``type`` is what later steps may take it for."""

    path: str = Field(description="JSONPath, such as .spec.nodeName; . is all of it")
    type: OutputType = "string"

    @field_validator("path")
    @classmethod
    def _readable(cls, path: str) -> str:
        found_at({}, path)
        return path


def _path(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


OutputSpec = Annotated[Output, BeforeValidator(_path), OrScalar("string")]
"""An output; its path alone may stand for it."""


def declared(given: Any, refuse: Refuse) -> dict[str, str]:
    """Name -> type of what a step gives out, as far as it can be told before the step is checked.

    Raises ScenarioError for a name that is none.
    """
    if not isinstance(given, Mapping):
        return {}
    for name in given:
        if NAME.fullmatch(str(name)) is None:
            raise refuse(name, "must be a name: letters, digits, '_' and '-', a letter first", name)
    return {
        str(name): str(value.get("type", "string")) if isinstance(value, Mapping) else "string"
        for name, value in given.items()
    }


def sample(name: str, kind: str) -> Any:
    """Return what stands for an output while steps that use it are checked."""
    return _SAMPLES.get(kind, f"${{{name}}}")


def found_at(result: Any, path: str) -> list[Any]:
    """Return all values at a JSONPath.

    Raises ValueError for one that cannot be read.
    """
    from mews.kube.emulated.core.tables.jsonpaths import find

    whole = _WHOLE.match(path.strip())
    inner = (whole[1] if whole is not None else path).strip().removeprefix("$")
    if not inner:
        raise ValueError("must be a JSONPath, such as .spec.nodeName; . is all of it")
    if inner[0] not in ".[":
        inner = f".{inner}"
    return [result] if inner == "." else find(result, inner)


def given_out(outputs: Mapping[str, Output], result: Any) -> dict[str, Any]:
    """Return the outputs of a step that came to this result.

    Raises StepFailedError where there is nothing at a path, or a value of another type.
    """
    return {name: _value(name, output, result) for name, output in outputs.items()}


def _value(name: str, output: Output, result: Any) -> Any:
    found = found_at(result, output.path)
    if not found:
        raise StepFailedError(Failure(f"output {name} at {output.path}", "there is nothing at that path"))
    value = found if len(found) > 1 or (output.type == "array" and not isinstance(found[0], list)) else found[0]
    if output.type == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, str) and output.type in ("integer", "number"):
        value = _number(value, output.type)
    if output.type == "string" and isinstance(value, str):
        value = value.removesuffix("\n")  # as shells take what a command prints
    if not isinstance(value, _TYPES[output.type]) or (isinstance(value, bool) and output.type != "boolean"):
        raise StepFailedError(Failure(f"output {name} at {output.path} to be a {output.type}", repr(value)[:200]))
    return value


def _number(text: str, kind: str) -> Any:
    try:
        return int(text) if kind == "integer" else float(text)
    except ValueError:
        return text


_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": Mapping,
}
