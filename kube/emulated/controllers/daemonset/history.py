"""The revisions of a DaemonSet's template, kept as ControllerRevisions (pkg/controller/daemon/update.go)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mews.kube.api.objects import Object, annotations_of, labels_of, name_of, namespace_of
from mews.kube.api.resources import DAEMON_SETS
from mews.kube.emulated.controllers.owners import controller_reference
from mews.kube.emulated.controllers.revisions import data_of, next_number, surplus
from mews.kube.emulated.controllers.template_hash import template_hash


def made(daemon_set: Object, revisions: Sequence[Object]) -> dict[str, Any]:
    """Return a revision of the DaemonSet's template."""
    code = template_hash(daemon_set["spec"]["template"], (daemon_set.get("status") or {}).get("collisionCount"))
    metadata: dict[str, Any] = {
        "name": f"{name_of(daemon_set)}-{code}",
        "namespace": namespace_of(daemon_set),
        "labels": {**labels_of(daemon_set["spec"]["template"]), "controller-revision-hash": code},
        "annotations": dict(annotations_of(daemon_set)),
        "ownerReferences": [controller_reference(daemon_set, DAEMON_SETS)],
    }
    return {"metadata": metadata, "data": data_of(daemon_set), "revision": next_number(revisions)}


def to_clean_up(daemon_set: Object, revisions: Sequence[Object], live: Sequence[str]) -> list[Object]:
    """Return the oldest revisions beyond the limit that no pod has; ``live``: hashes that pods have."""
    return surplus(
        daemon_set, [found for found in revisions if labels_of(found).get("controller-revision-hash") not in live]
    )
