"""Pods: defaults, priority, resources, what may change, and grace (contract apiserver.md sections 3 and 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mews.kube.api.objects import Object, annotations_of, clone, is_terminal, node_name_of
from mews.kube.emulated.core.checks.base import METADATA, METADATA_UPDATE, Rules
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.store.users import User
from mews.kube.emulated.core.tables.cells import Printer
from mews.kube.emulated.kinds.pods import pod_table
from mews.kube.emulated.kinds.pods.annotation_errors import profile_errors
from mews.kube.emulated.kinds.pods.change_errors import pod_errors, subresource_errors
from mews.kube.emulated.kinds.pods.pod_resources import default_pod_resources, qos_class
from mews.kube.emulated.kinds.pods.preparation import armor_warnings, prepare
from mews.kube.emulated.kinds.pods.status_errors import pod_status_errors
from mews.kube.emulated.kinds.pods.warnings import hostname_warnings, pod_warnings

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.kinds import Kind
    from mews.kube.emulated.core.store.store import Store

_CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
GATED = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


# Defaults


def default_spec(spec: dict[str, Any]) -> None:
    """Fill in a pod spec, of a pod or of a template."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in _containers(spec):
        _default_container(container, host_network=bool(spec.get("hostNetwork")))
    for volume in spec.get("volumes") or ():
        _default_volume(volume)


def _containers(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name in _CONTAINER_LISTS:
        yield from spec.get(name) or ()


def _default_container(container: dict[str, Any], *, host_network: bool) -> None:
    if "imagePullPolicy" not in container:
        is_latest = "image" in container and _is_latest(container["image"])
        container["imagePullPolicy"] = "Always" if is_latest else "IfNotPresent"
    if host_network:
        for port in container.get("ports") or ():
            port.setdefault("hostPort", port.get("containerPort"))


def _is_latest(image: str) -> bool:
    name = image.rpartition("/")[2]
    return "@" not in name and name.partition(":")[2] in ("", "latest")


def _default_volume(volume: dict[str, Any]) -> None:
    if set(volume) == {"name"}:
        volume["emptyDir"] = {}


def _default(pod: Object) -> None:
    spec = pod["spec"]
    spec.setdefault("enableServiceLinks", True)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    default_spec(spec)
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container["resources"]
        if "limits" in resources:
            resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    default_pod_resources(spec)
    if "status" in pod:
        if "qosClass" not in pod["status"]:
            pod["status"]["qosClass"] = qos_class(spec)
        _agree_on_address(pod["status"])


def _agree_on_address(status: dict[str, Any]) -> None:
    """Of ``podIP`` and ``podIPs`` the first counts, for older kubelets; whichever is missing is filled in."""
    address, several = status.get("podIP", ""), status.get("podIPs") or []
    if address and (not several or several[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif several and not address:
        status["podIP"] = several[0].get("ip", "")


def _prepare_create(pod: Object, _: User) -> None:
    spec = pod["spec"]
    pod["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
    prepare(pod)


# Admission


def _admit(store: Store, _kind: Kind, pod: Object) -> None:
    if pod["spec"].get("schedulingGates"):
        pod["status"]["conditions"] = [{**GATED, "lastTransitionTime": store.timestamp()}]


# Validation


def _created_errors(pod: Object) -> list[FieldError]:
    spec, found = pod["spec"], pod_errors(pod)
    if spec.get("ephemeralContainers"):
        found.append(refusals.forbidden_field("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        text = "cannot be set until all schedulingGates have been cleared"
        found.append(refusals.forbidden_field("spec.nodeName", text))
    return [*found, *profile_errors(annotations_of(pod), spec, "spec")]


# Deletion


def _check_graceful_delete(pod: Object, asked_s: int | None) -> int:
    if not node_name_of(pod) or is_terminal(pod):
        return 0
    grace_s = pod["spec"].get("terminationGracePeriodSeconds", 30) if asked_s is None else asked_s
    return 1 if grace_s < 0 else int(grace_s)


def _warn(new: Object, old: Object | None) -> list[str]:
    return [] if old is not None else [*hostname_warnings(new, "the Pod's hostname"), *pod_warnings(new)]


def _with_ephemeral_containers(old: Object, new: Object) -> Object:
    """Return the pod as it was, with those containers (dropNonEphemeralContainerUpdates of the pod strategy)."""
    spec = {name: value for name, value in old["spec"].items() if name != "ephemeralContainers"}
    given = (new.get("spec") or {}).get("ephemeralContainers")
    return {**clone(old), "spec": {**clone(spec), **({"ephemeralContainers": given} if given else {})}}


def _with_resources(old: Object, new: Object) -> Object:
    """Return the pod as it was, its containers with the resources that they shall have; as it is given where containers
    are others, for validation to refuse (dropNonResizeUpdates)."""
    changed: Object = clone(old)
    for name in ("containers", "initContainers"):
        given, known = ((pod.get("spec") or {}).get(name) or () for pod in (new, changed))
        if [each.get("name") for each in given] != [each["name"] for each in known]:
            return new
        for container, wanted in zip(known, given, strict=True):
            container["resources"] = wanted.get("resources") or {}
            container.pop("resizePolicy", None)
            if wanted.get("resizePolicy"):
                container["resizePolicy"] = wanted["resizePolicy"]
    return changed


RULES = Rules(
    parts={"ephemeralcontainers": _with_ephemeral_containers, "resize": _with_resources},
    posts={"binding": "kinds.pods.posts:bind", "eviction": "kinds.pods.posts:evict"},
    printer=Printer(pod_table.cells, pod_table.conditions),
    warn=_warn,
    default=_default,
    warn_early=armor_warnings,
    prepare_create=_prepare_create,
    admit=_admit,
    validate=_created_errors,
    validate_update=subresource_errors,
    validate_status_update=pod_status_errors,
    check_graceful_delete=_check_graceful_delete,
    metadata=MetadataChecks(on_update=(METADATA_UPDATE, METADATA)),
)
