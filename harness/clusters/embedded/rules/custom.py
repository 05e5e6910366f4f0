"""Custom kinds: defaulted and validated by their schema; pruned they are when they are decoded."""

from __future__ import annotations

from mews.harness.clusters.embedded import schemas
from mews.harness.clusters.embedded.kinds import Kind
from mews.harness.clusters.embedded.rules.base import Rules
from mews.kube.api.objects import Object


def custom_rules(kind: Kind) -> Rules:
    """The rules that a kind's structural schema amounts to."""
    schema = kind.schema
    if schema is None:
        return Rules()

    def default(obj: Object) -> None:
        schemas.default(obj, schema)

    return Rules(default=default, validate=lambda obj: schemas.faults(obj, schema))
