"""What all scenario models share, and the kinds of value they are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, GetJsonSchemaHandler, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

from mews.harness.scenario.match import check_pattern


class Model(BaseModel):
    """Frozen; unknown keys are refused; several-word keys are camelCase in the file."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, alias_generator=to_camel, strict=False
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
