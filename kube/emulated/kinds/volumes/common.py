"""What volumes and claims to them share."""

from __future__ import annotations

from collections.abc import Sequence

from mews.kube.api.objects import Object
from mews.kube.emulated.core.tables.cells import spec_of, status_of

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
"""It named a storage class before its field did."""

MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def short_modes(names: Sequence[str] | None) -> str:
    """Return access modes in their short forms."""
    return ",".join(short for name, short in MODES.items() if name in (names or ()))


def phase_of(obj: Object) -> str:
    """Return the phase that is shown, Terminating while it is being deleted."""
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else status_of(obj).get("phase", "")


def class_of_storage(obj: Object) -> str:
    """Return the name of the storage class."""
    annotations = obj["metadata"].get("annotations") or {}
    return str(annotations.get(CLASS_ANNOTATION) or spec_of(obj).get("storageClassName", ""))
