"""Custom kinds: defaulted and validated by their schema; pruned they are when they are decoded.

Source: k8s.io/apiextensions-apiserver/pkg/registry/customresource (strategy.go, validator.go).
"""

from __future__ import annotations

from mews.kube.api.errors import ApiError
from mews.kube.api.objects import Object, is_deleting
from mews.kube.api.resources import CRDS
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.objects import scales
from mews.kube.emulated.core.store import names
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.metadata_errors import CUSTOM
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.packs.definitions import cleanup
from mews.kube.emulated.types.custom import cel_rules, embedded, trees
from mews.kube.emulated.types.custom.values import UNRELATED, value_errors

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
_STANDARD_FINALIZERS = ("foregroundDeletion", "kubernetes", "orphan")


# Complex: counts the hooks inside it.
def custom_rules(kind: Kind) -> Rules:  # noqa: C901
    """Return the rules that a kind's structural schema amounts to."""
    schema = kind.schema
    definition = f"{kind.plural}.{kind.resource.group}"

    def after_commit(store: Store, _old: Object | None, new: Object | None) -> None:
        if new is None:  # the definition may have waited for it
            cleanup.finish(store, definition, kind)

    if schema is None:
        return Rules(
            before_create=_check_definition_stays, warn=_finalizer_warnings, after_commit=after_commit, metadata=CUSTOM
        )
    ruled = cel_rules.has_rules(schema)
    has_scale = kind.subresource("scale") is not None

    def default(obj: Object) -> None:
        trees.default(obj, schema)

    def rule_errors(found: list[FieldError], obj: Object, old: Object | None) -> list[FieldError]:
        if not ruled:
            return found
        if not obj["metadata"].get("name") or any(error.reason in _BLOCKING for error in found):
            return [*found, _UNCHECKED]
        return [*found, *cel_rules.object_errors(obj, old, schema)]

    def validate(obj: Object) -> list[FieldError]:
        found = value_errors(obj, schema)
        if has_scale:
            found += scales.scale_errors(obj, kind.scale_paths)
        found += [*embedded.embedded_errors(obj, schema), *trees.repeated(obj, schema)]
        return rule_errors(found, obj, None)

    def validate_update(new: Object, old: Object, subresource: str) -> list[FieldError]:
        if subresource == "status":
            part = (schema.get("properties") or {}).get("status")
            found = []
            if part is not None and "status" in new:
                before = old.get("status", UNRELATED)
                found = value_errors(new["status"], part, "status", old=before)
            if has_scale:
                found += scales.scale_errors(new, ("", *kind.scale_paths[1:]))
        else:
            found = value_errors(new, schema, old=old)
            if has_scale:
                found += scales.scale_errors(new, kind.scale_paths)
            found += embedded.embedded_errors(new, schema)
        if not any(trees.repeated(old, schema)):
            found += trees.repeated(new, schema)
        return rule_errors(found, new, old)

    def makes_generation(new: Object, old: Object) -> bool:
        return not kind.status and new.get("status") != old.get("status")

    return Rules(
        before_create=_check_definition_stays,
        default=default,
        validate=validate,
        validate_update=validate_update,
        makes_generation=makes_generation,
        warn=_finalizer_warnings,
        after_commit=after_commit,
        metadata=CUSTOM,
    )


def _finalizer_warnings(new: Object, old: Object | None) -> list[str]:
    known = (old["metadata"].get("finalizers") or ()) if old is not None else ()
    found = []
    for name in sorted({*(new["metadata"].get("finalizers") or ())} - {*known}):
        found += [f'metadata.finalizers: "{name}": {text}' for text in names.qualified_texts(name)]
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            how = "name including a path (/) " if "." in name else "name "
            text = (
                f"prefer a domain-qualified finalizer {how}to avoid accidental conflicts with other finalizer writers"
            )
            found.append(f'metadata.finalizers: "{name}": {text}')
    return found


def _check_definition_stays(store: Store, kind: Kind) -> None:
    definition = store.find(store.kinds.of(CRDS), "", kind.qualified)
    if definition is not None and is_deleting(definition):
        text = "create not allowed while custom resource definition is terminating"
        details = {"group": kind.resource.group, "kind": kind.plural}
        raise ApiError(text, code=405, reason="MethodNotAllowed", details=details)
