"""Names that a scenario may use beside the harness's own: those of metrics, bounds and profiles that systems bring.

Systems are loaded only for a name that is none of the harness's own, and for the JSON Schema, which lists them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from mews.harness.systems import names_of
from mews.kube.system.system import System
from mews.names import must_be


class NameOf:
    """Annotates a text that must be one of ``own``, or one of those that a system brings."""

    def __init__(self, own: Iterable[str], theirs: Callable[[System], Iterable[str]]) -> None:
        self._own = tuple(own)
        self._theirs = theirs

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, core_schema.str_schema())

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "enum": list(self._all())}

    def _checked(self, name: str) -> str:
        if name not in self._own and name not in (everyone := self._all()):
            raise ValueError(must_be(name, everyone))
        return name

    def _all(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._own, *names_of(self._theirs))))
