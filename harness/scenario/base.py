"""What all scenario models share, and the kinds of value they are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, core_schema

from mews.dialects import DIALECTS
from mews.harness.scenario.match import check_count, check_pattern
from mews.kube.api.selectors import label_selector
from mews.registry import NotRegisteredError, ValueRegistry

REFERENCE = r"^[^:\s]+:[^:\s]+$"
"""What a ``module:attribute`` looks like."""


class Model(BaseModel):
    """Frozen; unknown keys are refused; several-word keys are camelCase in the file."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        alias_generator=to_camel,
        strict=False,
        defer_build=True,  # once, as parts of the scenario, and not each by itself as it is imported
    )


def _pattern(value: Any) -> Any:
    check_pattern(value)
    return value


def _object(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError("must be a Kubernetes object (a mapping)")
    if not isinstance(value.get("kind"), str):
        raise ValueError("must have a kind, for example kind: Pod")
    metadata = value.get("metadata")
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str):
        raise ValueError("must have metadata.name (quote a name made of digits)")
    return value


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, Mapping) else value


Pattern = Annotated[Any, AfterValidator(_pattern), WithJsonSchema({"description": "a pattern, see match"})]
"""Anything that ``match`` takes."""


def _count(value: Any) -> Any:
    check_pattern(value)
    if value is not None:
        check_count(value)
    return value


Count = Annotated[Any, AfterValidator(_count), WithJsonSchema({"description": "a whole number, or a pattern"})]
"""A number of things, or a pattern that such numbers match."""


def _selector(value: str) -> str:
    label_selector(value)
    return value


LabelSelector = Annotated[str, AfterValidator(_selector)]
"""Labels as ``kubectl -l`` takes them."""

KubeObject = Annotated[dict[str, Any], BeforeValidator(_object)]
"""A Kubernetes object as in a manifest; apiVersion may be left out for built-in kinds."""

Listed = BeforeValidator(_listed)
"""One thing may stand for a list of one."""


class OrOne:
    """In the JSON Schema: one item may stand for the list."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core)
        return {"anyOf": [schema["items"], schema]}


class OrScalar:
    """In the JSON Schema: a scalar of that type may stand for the mapping."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": self._name}, handler(core)]}


class Registered:
    """A name that a registry has, or a ``module:attribute``; the JSON Schema lists what there is."""

    def __init__(self, registry: ValueRegistry[Any]) -> None:
        self._registry = registry

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return name_schema(self._registry)

    def _checked(self, name: str) -> str:
        try:
            self._registry.find(name)
        except NotRegisteredError as error:
            raise ValueError(error.reason) from error
        return name


def name_schema(registry: ValueRegistry[Any]) -> dict[str, Any]:
    """Return the JSON Schema of a registry's names."""
    return {"anyOf": [{"enum": list(registry.names())}, {"type": "string", "pattern": REFERENCE}]}


DialectName = Annotated[str, Registered(DIALECTS)]
"""A dialect of the registry, or yours by ``module:attribute``."""
