"""Binding and eviction of pods (contract apiserver.md section 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mews.harness.clusters.embedded import refusals
from mews.harness.clusters.embedded.deletion import delete
from mews.harness.clusters.embedded.request import ADMIN, Request
from mews.harness.clusters.embedded.selection import Selection
from mews.harness.clusters.embedded.update import store_written
from mews.kube.api.errors import NotFound, ServerError, TooManyRequests
from mews.kube.api.objects import Object, clone, is_deleting, is_terminal, labels_of, node_name_of
from mews.kube.api.resources import PODS
from mews.kube.api.selectors import match_expressions
from mews.kube.client.port import DeleteOptions

if TYPE_CHECKING:
    from mews.harness.clusters.embedded.kinds import Kind
    from mews.harness.clusters.embedded.store import Store

_NOT_SEEN_S = 10
"""When to ask again about a budget that its controller has not seen."""

_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def bind(store: Store, namespace: str, name: str, binding: Mapping[str, Any], request: Request = ADMIN) -> Object:
    """POST pods/binding.

    Raises ``NotFound``; ``Conflict`` when the pod is bound, gated or being deleted.
    """
    kind = store.kinds.of(PODS)
    target = binding.get("target") or {}
    if target.get("kind", "Node") not in ("", "Node") or not target.get("name"):
        raise ServerError(_bad_target(target), reason="")
    pod = store.find(kind, namespace, name)
    if pod is None:
        raise refusals.missing(kind, name)
    _check_bindable(kind, pod, binding)
    if not request.dry_run:
        store_written(store, kind, pod, _bound(pod, target["name"], binding, store.timestamp()))
    return {**_SUCCESS, "code": 201}


def _bad_target(target: Mapping[str, Any]) -> str:
    if not target.get("name"):
        return "target.name: Required value"
    return f'target.kind: Unsupported value: "{target.get("kind")}": supported values: "Node", "<empty>"'


def _check_bindable(kind: Kind, pod: Object, binding: Mapping[str, Any]) -> None:
    name = pod["metadata"]["name"]
    text = ""
    uid = (binding.get("metadata") or {}).get("uid")
    if uid and uid != pod["metadata"]["uid"]:
        text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {pod['metadata']['uid']}"
    elif is_deleting(pod):
        text = f"pod {name} is being deleted, cannot be assigned to a host"
    elif node_name_of(pod):
        text = f'pod {name} is already assigned to node "{node_name_of(pod)}"'
    elif pod["spec"].get("schedulingGates"):
        text = f"pod {name} has non-empty .spec.schedulingGates"
    if text:
        raise refusals.conflict(kind, name, text, about="pods/binding")


def _bound(pod: Object, node: str, binding: Mapping[str, Any], now: str) -> Object:
    new = {**pod, "metadata": dict(pod["metadata"]), "spec": {**pod["spec"], "nodeName": node}}
    annotations = (binding.get("metadata") or {}).get("annotations")
    if annotations:
        new["metadata"]["annotations"] = {**(pod["metadata"].get("annotations") or {}), **annotations}
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    new["status"] = with_condition(pod.get("status") or {}, condition)
    return new


def with_condition(status: Mapping[str, Any], condition: Mapping[str, Any]) -> dict[str, Any]:
    """A status with that condition in place of the one of its type."""
    others = [known for known in status.get("conditions") or () if known["type"] != condition["type"]]
    return {**status, "conditions": [*others, dict(condition)]}


def evict(
    store: Store, namespace: str, name: str, options: DeleteOptions | None = None, request: Request = ADMIN
) -> Object:
    """POST pods/eviction.

    Raises ``TooManyRequests`` when a budget refuses.
    """
    kind = store.kinds.of(PODS)
    pod = store.find(kind, namespace, name)
    if pod is None:
        raise refusals.missing(kind, name)
    if node_name_of(pod) and not is_terminal(pod) and not is_deleting(pod):
        _check_budgets(store, pod)
    if not request.dry_run:
        if node_name_of(pod) and not is_terminal(pod):
            store_written(store, kind, pod, _disrupted(pod, store.timestamp()))
        delete(store, kind, namespace, name, options)
    return {**_SUCCESS, "code": 201}


def _check_budgets(store: Store, pod: Object) -> None:
    budgets = store.kinds.find("policy", "v1", "poddisruptionbudgets")
    if budgets is None:
        raise NotFound("the server could not find the requested resource")
    for budget in list(store.shelf(budgets).select(Selection(pod["metadata"]["namespace"]))):
        selector = (budget.get("spec") or {}).get("selector")
        if selector is None or not match_expressions(selector, labels_of(pod)):
            continue
        status = budget.get("status") or {}
        if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
            raise _over_budget(f"{budget['metadata']['name']} is still being processed by the server.", _NOT_SEEN_S)
        if status.get("disruptionsAllowed", 0) <= 0:
            raise _over_budget(
                f"{budget['metadata']['name']} needs {status.get('desiredHealthy', 0)} healthy pods and has "
                f"{status.get('currentHealthy', 0)} currently"
            )
        new = clone(budget)
        new["status"]["disruptionsAllowed"] -= 1
        store_written(store, budgets, budget, new)


def _over_budget(text: str, retry_after_s: int = 0) -> TooManyRequests:
    cause = {"reason": "DisruptionBudget", "message": f"The disruption budget {text}"}
    again = {"retryAfterSeconds": retry_after_s} if retry_after_s else {}
    refusal = "Cannot evict pod as it would violate the pod's disruption budget."
    return TooManyRequests(refusal, details={"causes": [cause], **again})


def _disrupted(pod: Object, now: str) -> Object:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    return {**pod, "metadata": dict(pod["metadata"]), "status": with_condition(pod.get("status") or {}, condition)}
