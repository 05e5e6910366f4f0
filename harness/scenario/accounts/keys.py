"""The keys of scenario files: those that a scenario gives, and all that the model knows.

A key is written by its dotted place (``steps.2.fault``), and by the pattern of all places like it (``steps.*.fault``).
"""

# No annotations from __future__: the models below are read through their annotations.
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, get_args, get_origin

from msgspec import Struct
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from mews.harness.scenario.actions import Step
from mews.harness.scenario.expectations import Check
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.stack import Stack
from mews.systems import registry

ANY = "*"
REGISTERED = "registered"
"""In patterns: a step or check that another package brings."""
_UNWRITTEN = ("path",)
"""Fields of the model that no file has."""


class ScenarioKey(Struct, frozen=True):
    """One key that a scenario gives. ``pattern`` is its place with ``*`` for numbers and for names of the user's."""

    place: tuple[str, ...]
    pattern: tuple[str, ...]
    value: Any

    def below(self, name: str, pattern: str, value: Any) -> "ScenarioKey":
        """Return a key below it."""
        return ScenarioKey((*self.place, name), (*self.pattern, pattern), value)


def given_keys(model: BaseModel) -> Iterator[ScenarioKey]:
    """Return every key of a scenario, or of a step, whose value is not its default: what says nothing new asks nothing
    of a way to run."""
    return _of_model(ScenarioKey((), (), model), model)


def _of_model(at: ScenarioKey, model: BaseModel) -> Iterator[ScenarioKey]:
    for name, field in type(model).model_fields.items():
        value, default = getattr(model, name), field.get_default(call_default_factory=True)
        if name in _UNWRITTEN or value == default:
            continue
        if isinstance(model, Stack) and name == "systems":
            yield from _of_systems(at, value)
            continue
        key = _written(name, field)
        below = at.below(key, key, value)
        # Models are unlike as soon as different keys were written, even at their defaults.
        yield from _inside(below) if isinstance(default, BaseModel) and value is not None else _of_value(below)
    yield from _registered(at, model)


def _of_value(key: ScenarioKey) -> Iterator[ScenarioKey]:
    inner = list(_inside(key))
    # A mapping in which everything is as by default is given all the same: {settled: {}}.
    yield from inner or [key]


def _inside(key: ScenarioKey) -> Iterator[ScenarioKey]:
    value = key.value
    if isinstance(value, BaseModel):
        yield from _of_model(key, value)
    elif isinstance(value, Mapping):
        for name, each in value.items():
            if isinstance(each, BaseModel):
                yield from _of_value(key.below(str(name), ANY, each))
    elif isinstance(value, tuple):
        for number, each in enumerate(value):
            if isinstance(each, BaseModel):
                yield from _of_value(key.below(str(number), ANY, each))


def _of_systems(at: ScenarioKey, systems: Mapping[str, Any]) -> Iterator[ScenarioKey]:
    """Yield the options of each system; one of the default stack that is left out is a key, too."""
    for name, options in systems.items():
        inner = list(_of_model(at.below(name, name, options), options))
        yield from inner if inner or name in registry.DEFAULT else [at.below(name, name, options)]
    for name in registry.DEFAULT:
        if name not in systems:
            yield at.below(name, name, None)


def _registered(at: ScenarioKey, model: BaseModel) -> Iterator[ScenarioKey]:
    """Steps and checks that other packages bring."""
    given = [model.given] if isinstance(model, Step) and model.given is not None else ()
    for each in model.given if isinstance(model, Check) else given:
        yield at.below(each.name, REGISTERED, each.options)


def _written(name: str, field: FieldInfo) -> str:
    return field.alias or name


def known_keys(model: type[BaseModel] = Scenario) -> list[tuple[str, ...]]:
    """Return the pattern of every key that the model knows, systems' options included."""
    return list(dict.fromkeys(_known(model, ())))


def _known(model: type[BaseModel], at: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        if name in _UNWRITTEN or (model is Stack and name == "systems"):
            continue
        yield from _known_field(field.annotation, (*at, _written(name, field)))
    if model is Stack:
        for name, system in registry.usable().items():
            yield (*at, name)
            yield from _known(system.options, (*at, name))


def _known_field(annotation: Any, at: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    inner = [key for model, place in _models(annotation, at) for key in _known(model, place)]
    if not inner or (type(None) in get_args(annotation) and len(at) > 1):
        yield at  # a value, or what may be null instead of its keys
    yield from inner


def _models(annotation: Any, at: tuple[str, ...]) -> Iterator[tuple[type[BaseModel], tuple[str, ...]]]:
    """Yield the models that a field's values may be, each where its keys stand."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, at
        return
    arguments = get_args(annotation)
    origin = get_origin(annotation)
    if origin is Annotated:
        arguments = arguments[:1]
    inner = at if origin not in (tuple, list, dict) else (*at, ANY)
    for each in arguments:
        yield from _models(each, inner)
