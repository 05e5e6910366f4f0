"""Nodes: born not ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mews.kube.api.objects import Object, clone
from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.objects.rules.pod_faults import taint_faults
from mews.kube.emulated.apiserver.store.refusals import FieldError

if TYPE_CHECKING:
    from mews.kube.emulated.apiserver.store.kinds import Kind
    from mews.kube.emulated.apiserver.store.store import Store

NOT_READY = "node.kubernetes.io/not-ready"


def _birth(node: Object) -> None:
    status = node["status"]
    if "capacity" in status and "allocatable" not in status:
        status["allocatable"] = clone(status["capacity"])


def _admit(_store: Store, _kind: Kind, node: Object) -> None:
    taints = node["spec"].setdefault("taints", [])
    if not any(taint.get("key") == NOT_READY and taint.get("effect") == "NoSchedule" for taint in taints):
        taints.append({"key": NOT_READY, "effect": "NoSchedule"})


def _validate(node: Object) -> list[FieldError]:
    return list(taint_faults(node["spec"].get("taints") or (), "metadata.taints"))


RULES = Rules(validate=_validate, birth=_birth, admit=_admit, keeps_status=True)
