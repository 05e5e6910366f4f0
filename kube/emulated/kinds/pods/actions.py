"""Binding and eviction of pods (contract apiserver.md section 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mews.kube.api.errors import BadRequestError, NotFoundError, ServerError, TooManyRequestsError
from mews.kube.api.objects import (
    Object,
    clone,
    condition_of,
    is_deleting,
    is_terminal,
    labels_of,
    node_name_of,
    phase_of,
)
from mews.kube.api.resources import PODS
from mews.kube.api.selectors import match_expressions
from mews.kube.client.port import DeleteOptions
from mews.kube.emulated.core.objects.deletion import check_preconditions, delete, options_body
from mews.kube.emulated.core.objects.update import store_written
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation
from mews.kube.emulated.core.store.request import ADMIN, WriteRequest
from mews.kube.emulated.core.store.selection import Selection
from mews.kube.releases.release_data import minor

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.kinds import Kind
    from mews.kube.emulated.core.store.store import Store

_NODE_NAMES_SINCE = 37
"""The release whose bindings must name a node that can be (ValidatePodBinding of pkg/apis/core/validation)."""
_NOT_SEEN_S = 10
"""When to ask again about a budget that its controller has not seen."""

_TOO_MANY_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def bind(
    store: Store,
    namespace: str,
    name: str,
    binding: Mapping[str, Any],
    request: WriteRequest = ADMIN,
    *,
    posted_to: Kind | None = None,
) -> Object:
    """Bind a pod to a node, as POST pods/binding does; ``posted_to``: the kind that it was created as instead, which is
    what admission sees (POST bindings).

    Raises ``NotFoundError``; ``ConflictError`` when the pod is bound, gated or being deleted.
    """
    kind = store.kinds.of(PODS)
    seen, subresource = (kind, "binding") if posted_to is None else (posted_to, "")
    _admit(store, seen, subresource, ("", "v1", "Binding"), namespace, name, binding, request)
    target = binding.get("target") or {}
    if target.get("kind", "Node") not in ("", "Node") or not target.get("name"):
        raise ServerError(_bad_target(target), reason="")
    if minor(store.kinds.release) >= _NODE_NAMES_SINCE:
        wrong = names.subdomain_errors("target.name", target["name"])
        if wrong:
            raise ServerError(str(wrong[0]), reason="")
    if not name:
        raise BadRequestError("Name parameter required.")
    if texts := names.segment_texts(name):
        raise BadRequestError(f"Name parameter invalid: {refusals.shown(name)}: {';'.join(texts)}")
    pod = store.find(kind, namespace, name)
    if pod is None:
        raise refusals.missing(kind, name)
    _check_bindable(kind, pod, binding)
    if not request.dry_run:
        store_written(store, kind, pod, _bound(pod, target["name"], binding, store.timestamp()))
    return {**_SUCCESS, "code": 201}


def _admit(
    store: Store,
    kind: Kind,
    subresource: str,
    body_kind: tuple[str, str, str],
    namespace: str,
    name: str,
    body: Mapping[str, Any],
    request: WriteRequest,
) -> None:
    """Show an action on a pod to admission; what a plugin changes of it is not taken over."""
    attributes = AdmissionAttributes(
        kind, AdmissionOperation.CREATE, dict(body), None, request, namespace, name, subresource, body_kind=body_kind
    )
    store.admission.mutate(store, attributes)
    store.admission.validate(store, attributes)


def _bad_target(target: Mapping[str, Any]) -> str:
    if not target.get("name"):
        return "target.name: Required value"
    return f'target.kind: Unsupported value: "{target.get("kind")}": supported values: "Node", "<empty>"'


def _check_bindable(kind: Kind, pod: Object, binding: Mapping[str, Any]) -> None:
    name = pod["metadata"]["name"]
    text = ""
    given = binding.get("metadata") or {}
    uid, version = given.get("uid"), given.get("resourceVersion")
    if uid and uid != pod["metadata"]["uid"]:
        text = f"UID in precondition: {uid}, UID in object meta: {pod['metadata']['uid']}"
    elif version and version != pod["metadata"]["resourceVersion"]:
        known = pod["metadata"]["resourceVersion"]
        text = f"ResourceVersion in precondition: {version}, ResourceVersion in object meta: {known}"
    if text:
        key = f"/registry/pods/{pod['metadata']['namespace']}/{name}"
        text = f"Precondition failed: {text}"
        text = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {text}"
        raise refusals.conflict(kind, name, text)
    if is_deleting(pod):
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
    """Return a status with that condition in place of the one of its type."""
    others = [known for known in status.get("conditions") or () if known["type"] != condition["type"]]
    return {**status, "conditions": [*others, dict(condition)]}


def evict(
    store: Store, namespace: str, name: str, options: DeleteOptions | None = None, request: WriteRequest = ADMIN
) -> Object:
    """Evict a pod, as POST pods/eviction does: not where a disruption budget forbids it.

    Raises ``TooManyRequestsError`` when a budget refuses.
    """
    kind = store.kinds.of(PODS)
    pod = store.find(kind, namespace, name)
    if pod is None:
        raise refusals.missing(kind, name)
    metadata = {"name": name, "namespace": namespace}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    if options is not None:
        body["deleteOptions"] = options_body(options, request)
    _admit(store, kind, "eviction", ("policy", "v1", "Eviction"), namespace, name, body, request)
    if phase_of(pod) not in ("Pending", "Succeeded", "Failed") and not is_deleting(pod):
        _check_budgets(store, pod, request)
    if options is not None:
        check_preconditions(kind, pod, options)
    if not request.dry_run:
        if node_name_of(pod) and not is_terminal(pod):
            store_written(store, kind, pod, _disrupted(pod, store.timestamp()))
        delete(store, kind, namespace, name, options)
    return {**_SUCCESS, "code": 201}


def _check_budgets(store: Store, pod: Object, request: WriteRequest) -> None:
    """Ask the pod's budget, and note there that it goes: until it has gone it counts as unhealthy."""
    kind = store.kinds.find("policy", "v1", "poddisruptionbudgets")
    if kind is None:
        raise NotFoundError("the server could not find the requested resource")
    found = store.shelf(kind).select(Selection(pod["metadata"]["namespace"]))
    budgets = [budget for budget in found if _covers(budget, pod)]
    if len(budgets) > 1:
        raise ServerError(_TOO_MANY_BUDGETS, reason="")
    for budget in budgets:
        status = budget.get("status") or {}
        if _may_go_unhealthy(budget, status, pod):
            continue
        name, allowed = budget["metadata"]["name"], int(status.get("disruptionsAllowed", 0))
        if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
            raise _over_budget(f"{name} is still being processed by the server.", _NOT_SEEN_S)
        if allowed <= 0:
            healthy, known = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
            raise _over_budget(f"{name} needs {healthy} healthy pods and has {known} currently")
        if not request.dry_run:
            store_written(store, kind, budget, _with_disruption(budget, pod, allowed - 1, store.timestamp()))


def _may_go_unhealthy(budget: Object, status: Mapping[str, Any], pod: Object) -> bool:
    """Return a pod that is not ready counts for no budget: by its policy it may go always, or while enough others are
    healthy (registry/core/pod/storage/eviction.go)."""
    if (condition_of(pod, "Ready") or {}).get("status") == "True":
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    return int(status.get("currentHealthy", 0)) >= int(status.get("desiredHealthy", 0)) > 0


def _covers(budget: Object, pod: Object) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    return selector is not None and match_expressions(selector, labels_of(pod))


def _with_disruption(budget: Object, pod: Object, allowed: int, now: str) -> Object:
    new: Object = clone(budget)
    status = new["status"]
    status["disruptionsAllowed"] = allowed
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod["metadata"]["name"]: now}
    for condition in (status.get("conditions") or ()) if allowed == 0 else ():
        if condition["type"] == "DisruptionAllowed":
            condition |= {"status": "False", "reason": "InsufficientPods", "lastTransitionTime": now}
    return new


def _over_budget(text: str, retry_after_s: int = 0) -> TooManyRequestsError:
    cause = {"reason": "DisruptionBudget", "message": f"The disruption budget {text}"}
    again = {"retryAfterSeconds": retry_after_s} if retry_after_s else {}
    refusal = "Cannot evict pod as it would violate the pod's disruption budget."
    return TooManyRequestsError(refusal, details={"causes": [cause], **again})


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
