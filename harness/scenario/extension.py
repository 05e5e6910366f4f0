"""Steps and checks that other packages bring, beside those of the model: by an entry point, or ``module:attribute``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from pydantic import Field, TypeAdapter, create_model

from mews.harness.scenario.base import REFERENCE, Model
from mews.registry import ValueRegistry, is_reference

if TYPE_CHECKING:
    from mews.harness.scenario.step_context import Finding, StepContext


class StepKind(Struct, frozen=True):
    """A step: ``options`` is the type of what stands after its name in the file (a pydantic model, for example).

    ``run(stage, options, timeout_s)`` does it on the stage's cluster, within that many loop seconds, and raises
    StepFailedError (mews.harness.scenario.errors) where it does not come off.
    """

    options: Any
    run: Callable[[StepContext, Any, float], Awaitable[None]]


class CheckKind(Struct, frozen=True):
    """A check, for ``wait``, ``assert`` and ``hold``: ``look(stage, options)`` says whether it holds at this moment."""

    options: Any
    look: Callable[[StepContext, Any], Awaitable[Finding]]


class GivenExtension(Struct, frozen=True):
    """A registered step or check as a file gives it."""

    name: str
    kind: Any
    options: Any


def _step(name: str, value: Any) -> StepKind | CheckKind:
    if not isinstance(value, StepKind | CheckKind):
        raise TypeError(f"is a {type(value).__name__}; must be a mews.harness.scenario.extension StepKind or CheckKind")
    return value


STEPS: Final[ValueRegistry[StepKind | CheckKind]] = ValueRegistry("step", "mews.steps", {}, _step)
"""Steps and checks of others: they share one group of entry points."""


def split(
    value: Mapping[str, Any], fields: Mapping[str, Any], sort: type
) -> tuple[dict[str, Any], tuple[GivenExtension, ...]]:
    """Return what of a step or check the model has fields for, and what is registered.

    Raises ValueError (of pydantic, with its place) for options that are wrong, or a check where a step belongs.
    """
    known = {name for field, info in fields.items() for name in (field, info.alias)}
    named = [key for key in value if key not in known and isinstance(key, str) and _registered(key)]
    given = tuple(_given(name, value[name], sort) for name in named)
    return {key: each for key, each in value.items() if key not in named}, given


def _registered(key: str) -> bool:
    return is_reference(key) or key in STEPS.others()


def _given(name: str, value: Any, sort: type) -> GivenExtension:
    kind = STEPS.find(name)
    if not isinstance(kind, sort):
        text = "a check: it belongs below wait, assert or hold" if sort is StepKind else "a step, not a check"
        raise ValueError(f"{name} is {text}")
    # A model of one field, so that pydantic's complaint names the step beside what is wrong within it.
    reader: Any = create_model("Registered", __base__=Model, options=(kind.options, Field(alias=name)))
    return GivenExtension(name, kind, reader.model_validate({name: value}).options)


def add_to_schema(published: dict[str, Any]) -> None:
    """Let the JSON Schema of scenarios know what is registered."""
    definitions = published["$defs"]
    for model, sort in (("Step", StepKind), ("Check", CheckKind)):
        found = {name: kind for name in STEPS.names() if isinstance(kind := STEPS.find(name), sort)}
        for name, kind in found.items():
            schema = TypeAdapter(kind.options).json_schema(ref_template=f"#/$defs/{name}.{{model}}")
            inner = schema.pop("$defs", {})
            definitions |= {f"{name}.{key}": each for key, each in inner.items()}
            definitions[model]["properties"][name] = schema
        definitions[model]["patternProperties"] = {REFERENCE: {"description": "module:attribute of yours"}}
        if "oneOf" in definitions[model]:
            yours = {"not": {"propertyNames": {"not": {"pattern": REFERENCE}}}}
            definitions[model]["oneOf"] += [*({"required": [name]} for name in found), yours]
