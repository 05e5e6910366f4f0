"""What a file may say under ``stack.SYSTEM``: frozen pydantic models that refuse what they do not know."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Annotated, Any

from msgspec import Struct, structs
from pydantic import BaseModel, ConfigDict, Field, create_model


class OptionsModel(BaseModel):
    """Options of a system or of a part of it. Keys are the names of the fields, as in the system's own file."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)

    def given(self) -> dict[str, Any]:
        """Return what was said, without the defaults."""
        return self.model_dump(exclude_unset=True)


TEXT: Any = Annotated[str, Field(strict=True)]
FLAG: Any = Annotated[bool, Field(strict=True)]
COUNT: Any = Annotated[int, Field(strict=True, gt=0)]
SECONDS: Any = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
"""Annotations of fields that take no other type for theirs: neither "yes" for true nor "3" for 3."""

_BY_TYPE: Mapping[type, Any] = MappingProxyType({str: TEXT, bool: FLAG, int: COUNT, float: SECONDS})


def model_of(
    source: type[Any],
    name: str,
    doc: str,
    *,
    omit: Collection[str] = (),
    kinds: Mapping[str, Any] = MappingProxyType({}),
    more: Mapping[str, Any] = MappingProxyType({}),
    words: Mapping[str, str] = MappingProxyType({}),
) -> type[OptionsModel]:
    """Return the model of a struct or dataclass of texts, flags, counts and seconds, so that its fields are written
    once.

    ``omit``: fields that are no options; ``kinds``: annotations of fields that take less than any value of their type;
    ``more``: further fields as pydantic takes them, (annotation, default); ``words``: what each field is.
    """
    fields: dict[str, Any] = {
        field.name: (
            kinds.get(field.name) or _BY_TYPE[type(field.default)],
            Field(default=field.default, description=words[field.name]) if field.name in words else field.default,
        )
        for field in (structs.fields(source) if issubclass(source, Struct) else dataclasses.fields(source))
        if field.name not in omit
    }
    made: type[OptionsModel] = create_model(name, __base__=OptionsModel, __doc__=doc, **fields, **more)
    return made
