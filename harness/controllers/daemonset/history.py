"""The revisions of a DaemonSet's template, kept as ControllerRevisions (pkg/controller/daemon/update.go)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mews.harness.controllers.owners import controller_reference
from mews.harness.controllers.template_hash import template_hash
from mews.kube.api.objects import Object, annotations_of, clone, labels_of, name_of, namespace_of
from mews.kube.api.resources import DAEMON_SETS


def data_of(daemon_set: Object) -> dict[str, Any]:
    """What a revision holds: the patch that brings its template back."""
    return {"spec": {"template": {"$patch": "replace", **clone(daemon_set["spec"]["template"])}}}


def revision_of(revision: Object) -> int:
    """Its number."""
    return int(revision.get("revision", 0))


def current(daemon_set: Object, revisions: Sequence[Object]) -> Object | None:
    """The revision with the DaemonSet's template."""
    wanted = data_of(daemon_set)
    return next((found for found in revisions if found.get("data") == wanted), None)


def made(daemon_set: Object, revisions: Sequence[Object]) -> dict[str, Any]:
    """A revision of the DaemonSet's template."""
    code = template_hash(daemon_set["spec"]["template"], (daemon_set.get("status") or {}).get("collisionCount"))
    metadata: dict[str, Any] = {
        "name": f"{name_of(daemon_set)}-{code}",
        "namespace": namespace_of(daemon_set),
        "labels": {**labels_of(daemon_set["spec"]["template"]), "controller-revision-hash": code},
        "annotations": dict(annotations_of(daemon_set)),
        "ownerReferences": [controller_reference(daemon_set, DAEMON_SETS)],
    }
    number = max((revision_of(known) for known in revisions), default=0) + 1
    return {"metadata": metadata, "data": data_of(daemon_set), "revision": number}


def to_clean_up(daemon_set: Object, revisions: Sequence[Object], live: Sequence[str]) -> list[Object]:
    """The oldest revisions beyond the limit that no pod has; ``live``: hashes that pods have."""
    limit = int(daemon_set["spec"].get("revisionHistoryLimit", 10))
    idle = [found for found in revisions if labels_of(found).get("controller-revision-hash") not in live]
    return sorted(idle, key=revision_of)[: max(len(idle) - limit, 0)]
