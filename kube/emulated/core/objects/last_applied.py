"""What ``kubectl apply`` noted on the client's side, as server-side apply by kubectl carries it on.

Source: k8s.io/apimachinery, managedfields/internal: lastappliedmanager.go and lastappliedupdater.go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.core.objects.fieldsets import Paths, applied_fields, difference
from mews.kube.emulated.core.objects.typed import SchemaShape, typed_errors

KUBECTL = "kubectl"
"""The one field manager for which it is done; another name opts out."""
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_LARGEST = 256 * 1024


def applied_before(live: Object, shape: SchemaShape) -> Paths:
    """Return the fields that the client-side note names and that still have its values: those kubectl may take over
    from whoever wrote them. None without a note that is one of this kind and version."""
    text = (live["metadata"].get("annotations") or {}).get(ANNOTATION)
    if not text:
        return frozenset()
    try:
        config = json.loads(text)
    except ValueError:
        return frozenset()
    if not isinstance(config, dict) or config.get("apiVersion") != live["apiVersion"]:
        return frozenset()
    if any(typed_errors(config, shape)):
        return frozenset()
    changes = difference(config, live, shape)
    return frozenset(applied_fields(config, shape)) - changes.modified - changes.added - changes.removed


def note_applied(new: Object, config: Mapping[str, Any]) -> None:
    """Bring the note, where there is one, to what has been applied now."""
    annotations = new["metadata"].get("annotations") or {}
    if ANNOTATION not in annotations:
        return
    metadata = {name: value for name, value in config["metadata"].items() if name != "managedFields"}
    text = json.dumps({**config, "metadata": metadata}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    noted = f"{text}\n" if len(text) < _LARGEST else ""
    new["metadata"]["annotations"] = {**annotations, ANNOTATION: noted}
