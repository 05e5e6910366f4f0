"""CSIStorageCapacities (pkg/apis/storage/validation)."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.affinity_errors import selector_errors
from mews.kube.emulated.core.checks.base import CHANGE, METADATA, METADATA_UPDATE, OBJECT, Rules
from mews.kube.emulated.core.store import names
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError


def _capacity_errors(capacity: Object) -> list[FieldError]:
    found = [*selector_errors(capacity.get("nodeTopology") or {}, "nodeTopology")]
    found += names.subdomain_errors("storageClassName", capacity.get("storageClassName", ""))
    return found + common.amount_not_negative("capacity", capacity.get("capacity"))


def _compare_capacity(new: Object, old: Object) -> list[FieldError]:
    return [
        error
        for name in ("nodeTopology", "storageClassName")
        for error in common.fixed(name, new.get(name), old.get(name))
    ]


RULES = Rules(
    validate=_capacity_errors,
    compare=_compare_capacity,
    metadata=MetadataChecks(on_update=(METADATA, OBJECT, METADATA_UPDATE, CHANGE)),
)
