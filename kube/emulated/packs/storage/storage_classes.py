"""StorageClasses (pkg/apis/storage/validation)."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.base import CHANGE, METADATA, METADATA_UPDATE, OBJECT, Rules
from mews.kube.emulated.core.checks.common import Part, items
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, meta_age
from mews.kube.emulated.packs.storage.parameters import parameter_errors, provisioner_errors


def _class_errors(storage_class: Object) -> list[FieldError]:
    found = provisioner_errors(storage_class.get("provisioner", ""), "provisioner")
    found += parameter_errors(storage_class.get("parameters") or {}, "parameters")
    if storage_class.get("reclaimPolicy"):
        found += common.option("reclaimPolicy", storage_class["reclaimPolicy"], ("Delete", "Retain"))
    mode = storage_class.get("volumeBindingMode")
    found += common.option("volumeBindingMode", mode, ("Immediate", "WaitForFirstConsumer"))
    terms: list[dict[str, frozenset[str]]] = []
    for index, term in enumerate(items(storage_class, "allowedTopologies")):
        path = f"allowedTopologies[{index}]"
        found += _term_errors(term, path)
        expressions = items(term, "matchLabelExpressions")
        values = {entry.get("key", ""): frozenset(items(entry, "values")) for entry in expressions}
        # Upstream begins with as many empty terms as there are to come, and so takes each empty one for a repetition.
        before = terms.count(values) + (0 if values else len(items(storage_class, "allowedTopologies")))
        found += [refusals.duplicate(f"{path}.matchLabelExpressions", "")] * before
        terms.append(values)
    return found


def _term_errors(term: Part, path: str) -> Iterator[FieldError]:
    """Yield a topology by labels (core validation, ValidateTopologySelectorTerm)."""
    seen: set[str] = set()
    for index, expression in enumerate(items(term, "matchLabelExpressions")):
        here, key = f"{path}.matchLabelExpressions[{index}]", expression.get("key", "")
        given = items(expression, "values")
        if not given:
            yield refusals.required(f"{here}.values")
        for number, value in enumerate(given):
            if value in given[:number]:
                yield refusals.duplicate(f"{here}.values[{number}]", value)
        yield from names.qualified_errors(f"{here}.key", key)
        if key in seen:
            yield refusals.duplicate(f"{here}.key", key)
        seen.add(key)


def _compare_class(new: Object, old: Object) -> list[FieldError]:
    found = []
    for name in ("parameters", "provisioner", "reclaimPolicy"):
        if (new.get(name) or None) != (old.get(name) or None):
            found.append(refusals.forbidden_field(name, f"updates to {name} are forbidden."))
    mode = "volumeBindingMode"
    return found + common.fixed(mode, new.get(mode), old.get(mode))


_DEFAULT_CLASSES = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def _storage_class(obj: Object, now_s: float) -> Row:
    annotations = obj["metadata"].get("annotations") or {}
    default = " (default)" if any(annotations.get(name) == "true" for name in _DEFAULT_CLASSES) else ""
    policy, mode = obj.get("reclaimPolicy", "Delete"), obj.get("volumeBindingMode", "Immediate")
    name = obj["metadata"]["name"] + default
    expands = bool(obj.get("allowVolumeExpansion"))
    return [name, obj.get("provisioner", ""), policy, mode, expands, meta_age(obj, now_s)]


RULES = Rules(
    printer=Printer(_storage_class),
    validate=_class_errors,
    compare=_compare_class,
    metadata=MetadataChecks(on_update=(METADATA, OBJECT, METADATA_UPDATE, CHANGE)),
)
