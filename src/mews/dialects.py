"""The dialects: the wire languages that a composable chassis is spoken to in, each one value, by name.

A dialect has parts that never meet: the emulator has its face, Kubernetes' side its client, the harness its clauses.
Here stands only where they are, so that a part is loaded by the room which uses it and by no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from mews.registry import ValueRegistry, load


class Dialect(Struct, frozen=True):
    """One dialect. Each part is a value, or ``module:attribute`` of one.

    ``face`` is a ``DialectFace`` (mews.emulator.dialects.wire): the chassis as it answers. ``client`` is called with
    ``(transport, account, patience_s)`` and returns a ``ChassisApi`` (mews.kube.chassis.port). ``clauses`` is a
    ``DialectClauses`` (mews.harness.conformance.dialects.registry), None where `mews conform` cannot judge it.
    ``quirks``: quirk profiles of its known firmwares, name -> YAML file. ``wordless``: kinds of chassis faults that it
    has no words for; a scenario that needs one is skipped with that reason. ``summary``: what `mews list` shows.
    """

    name: str
    face: Any
    client: Any
    clauses: Any = None
    quirks: Mapping[str, str] = field(default_factory=dict)
    wordless: frozenset[str] = frozenset()
    summary: str = ""


DEFAULT: Final = "h3api"
"""What is spoken where nothing else is said."""

OF_LAYOUTS: Final = ("layout-busy", "layout-half-done")
"""Kinds of faults of those dialects that apply layouts."""

OURS: Mapping[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "h3api",
            face="mews.emulator.dialects.h3api:FACE",
            client="mews.kube.chassis.h3api:connect",
            clauses="mews.harness.conformance.dialects.h3api:DIALECT_CLAUSES",
            wordless=frozenset({*OF_LAYOUTS, "token-ends"}),
            summary="The management server of a Falcon 4005, over plain HTTP",
        ),
        Dialect(
            "resource-pool",
            face="mews.emulator.dialects.resource_pool:FACE",
            client="mews.kube.chassis.resource_pool:connect",
            clauses="mews.harness.conformance.dialects.resource_pool:DIALECT_CLAUSES",
            wordless=frozenset({*OF_LAYOUTS, "lying-result", "token-ends"}),
            summary="The resource pool API of KubeComp's public code, over plain HTTP",
        ),
        Dialect(
            "redfish",
            face="mews.emulator.dialects.redfish.face:FACE",
            client="mews.kube.chassis.redfish:connect",
            clauses="mews.harness.conformance.dialects.redfish:DIALECT_CLAUSES",
            wordless=frozenset({*OF_LAYOUTS, "listed-twice", "token-ends", "unknown-host"}),
            summary="A DMTF Redfish service, with accounts and TLS",
        ),
        Dialect(
            "fm",
            face="mews.emulator.dialects.fm.face:FACE",
            client="mews.kube.chassis.fm:connect",
            clauses="mews.harness.conformance.dialects.fm:DIALECT_CLAUSES",
            wordless=frozenset(OF_LAYOUTS),
            summary="Fujitsu's fabric manager, with cluster manager and token service, over TLS",
        ),
        Dialect(
            "cdim",
            face="mews.emulator.dialects.cdim.face:FACE",
            client="mews.kube.chassis.cdim:connect",
            clauses="mews.harness.conformance.dialects.cdim:DIALECT_CLAUSES",
            wordless=frozenset({"token-ends"}),
            summary="NEC's composable infrastructure, configuration manager and layout-apply, over plain HTTP",
        ),
    )
}
"""Those that come with Mews: their names stand here and nowhere else."""


def _accept(name: str, value: Any) -> Dialect:
    made = value() if callable(value) else value
    if not isinstance(made, Dialect):
        raise TypeError(f"is a {type(made).__name__}; must be a mews.dialects.Dialect, or a function that returns one")
    return made


DIALECTS: Final = ValueRegistry("dialect", "mews.dialects", OURS, _accept)


def part_of(name: str, part: str) -> Any:
    """Return the face, the client or the clauses of a dialect, loaded; None where it has none.

    Raises NotRegisteredError, CannotLoadError: both are ValueErrors of one line.
    """
    value = getattr(DIALECTS.find(name), part)
    return load(value) if isinstance(value, str) else value
