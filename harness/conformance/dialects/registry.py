"""The dialects that can be judged, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mews.harness.conformance.clause import Clause
from mews.harness.conformance.client import Client
from mews.harness.conformance.dialects import h3api, redfish, resource_pool
from mews.harness.conformance.table import Face


@dataclass(frozen=True, slots=True)
class Suite:
    """What to judge a dialect with; ``file`` is the module of its clauses."""

    face: Callable[[Client], Face]
    clauses: tuple[Clause, ...]
    file: str


SUITES: Mapping[str, Suite] = {
    "h3api": Suite(h3api.Face, h3api.CLAUSES, h3api.__file__),
    "resource-pool": Suite(resource_pool.Face, resource_pool.CLAUSES, resource_pool.__file__),
    "redfish": Suite(redfish.Face, redfish.CLAUSES, redfish.__file__),
}
