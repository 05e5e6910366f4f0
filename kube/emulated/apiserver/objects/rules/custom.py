"""Custom kinds: defaulted and validated by their schema; pruned they are when they are decoded."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.apiserver.objects import scales
from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.store.kinds import Kind
from mews.kube.emulated.apiserver.store.refusals import FieldError
from mews.kube.emulated.apiserver.types import cel_rules, schemas

_BLOCKING = (
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
)
_UNCHECKED = FieldError(
    "<nil>",
    "FieldValueInvalid",
    "null: some validation rules were not checked because the object was invalid; correct the existing errors to "
    "complete validation",
)


def custom_rules(kind: Kind) -> Rules:
    """The rules that a kind's structural schema amounts to."""
    schema = kind.schema
    if schema is None:
        return Rules()
    ruled = cel_rules.has_rules(schema)

    def default(obj: Object) -> None:
        schemas.default(obj, schema)

    def validate(obj: Object) -> list[FieldError]:
        found = schemas.faults(obj, schema)
        if kind.subresource("scale") is not None:
            found += scales.replica_faults(obj, kind.scale_paths[0])
        if not ruled:
            return found
        if not obj["metadata"].get("name") or any(fault.reason in _BLOCKING for fault in found):
            return [*found, _UNCHECKED]
        return [*found, *cel_rules.faults(obj, schema)]

    def compare(new: Object, old: Object) -> list[FieldError]:
        return cel_rules.change_faults(new, old, schema) if ruled else []

    return Rules(default=default, validate=validate, compare=compare)
