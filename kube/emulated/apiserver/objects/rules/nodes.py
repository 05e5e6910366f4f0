"""Nodes: what they hold and may have."""

from __future__ import annotations

from mews.kube.api.objects import Object, clone
from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.objects.rules.pod_faults import taint_faults
from mews.kube.emulated.apiserver.store.refusals import FieldError


def _birth(node: Object) -> None:
    status = node["status"]
    if "capacity" in status and "allocatable" not in status:
        status["allocatable"] = clone(status["capacity"])


def _validate(node: Object) -> list[FieldError]:
    return list(taint_faults(node["spec"].get("taints") or (), "metadata.taints"))


RULES = Rules(validate=_validate, birth=_birth, keeps_status=True)
