"""The action ``fault`` of a step: on a chassis, a host, or between a component and the API."""

# No annotations from __future__: pydantic would have to read each of them from its text again.
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from mews.emulator.chassis.faults.registry import CHASSIS_FAULTS
from mews.emulator.chassis.faults.spec import parse_fault
from mews.harness.scenario.base import REFERENCE, Model


class FaultSchema:
    """In the JSON Schema: the kinds of faults that there are."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        from mews.emulator.host.faults.registry import HOST_FAULTS
        from mews.harness.api_faults.registry import API_FAULTS

        kinds = dict.fromkeys((*CHASSIS_FAULTS.names(), *HOST_FAULTS.names(), *API_FAULTS.names()))
        kind = {"anyOf": [{"enum": list(kinds)}, {"type": "string", "pattern": REFERENCE}]}
        return {**handler(core), "properties": {"kind": kind}, "required": ["kind"]}


class FaultAction(Model):
    """Play a fault on a chassis (``'*'``: on all), a host, or between a component and the API, or clear them:
    ``clear: A``, ``clear: host-1``, ``clear: scheduler``, ``clear: all``."""

    chassis: str = "*"
    host: str | None = None
    component: str | None = None
    add: Annotated[dict[str, Any], FaultSchema()] | None = None
    clear: str | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.add is None) == (self.clear is None):
            raise ValueError("must have either add: {kind: …} or clear: CHASSIS|HOST|COMPONENT|all")
        placed = [name for name in ("chassis", "host", "component") if name in self.model_fields_set]
        if len(placed) > 1:
            raise ValueError(f"must name one of chassis, host and component; {' and '.join(placed)} given")
        if self.clear is not None and self.component is not None:
            raise ValueError(f"component: clear names whose faults end: clear: {self.component}")
        if self.add is not None:
            owner = "component" if self.component is not None else "chassis" if self.host is None else "host"
            _check_fault(self.add, owner)
        return self


_NAMED: Mapping[str, str] = {
    "chassis": "name no host and no component",
    "host": "name the host",
    "component": "name the component",
}


def _check_fault(spec: Mapping[str, Any], owner: str) -> None:
    """Raise ValueError for what is no fault of such an owner: a chassis, a host, a component."""
    kind = spec.get("kind")
    if owner == "chassis" and kind in CHASSIS_FAULTS.ours():
        parse_fault(spec, CHASSIS_FAULTS)
        return
    from mews.emulator.host.faults.registry import HOST_FAULTS
    from mews.harness.api_faults.registry import API_FAULTS, parse_api_fault

    known = {"chassis": CHASSIS_FAULTS, "host": HOST_FAULTS, "component": API_FAULTS}
    for other, registry in known.items():
        if other != owner and kind in registry.ours():
            raise ValueError(f"fault kind {kind!r}: is a fault of a {other}, not of a {owner}: {_NAMED[other]}")
    if owner == "component":
        parse_api_fault(spec)
    else:
        parse_fault(spec, known[owner])
