"""Pods: defaults, priority, resources, what may change, and grace (contract apiserver.md sections 3 and 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mews.kube.api.objects import Object, clone, is_terminal, node_name_of
from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.objects.rules.pod_faults import spec_faults
from mews.kube.emulated.apiserver.objects.rules.pod_status_faults import pod_status_faults
from mews.kube.emulated.apiserver.objects.rules.pod_warnings import hostname_warnings, pod_warnings
from mews.kube.emulated.apiserver.store import refusals
from mews.kube.emulated.apiserver.store.metadata_faults import USUAL, created_faults
from mews.kube.emulated.apiserver.store.refusals import FieldError

if TYPE_CHECKING:
    from mews.kube.emulated.apiserver.store.kinds import Kind
    from mews.kube.emulated.apiserver.store.store import Store

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
    _drop_disabled(spec)


def _drop_disabled(spec: dict[str, Any]) -> None:
    """Drop what stands behind feature gates that are off by default in 1.34, as upstream does before it looks."""
    for volume in spec.get("volumes") or ():
        volume.pop("image", None)
    spec.pop("hostnameOverride", None)
    for name in _CONTAINER_LISTS:
        for container in spec.get(name) or ():
            if name != "initContainers" or container.get("restartPolicy") != "Always":
                container.pop("restartPolicy", None)
            container.pop("restartPolicyRules", None)
            if "lifecycle" in container:
                container["lifecycle"].pop("stopSignal", None)
            for variable in container.get("env") or ():
                if "valueFrom" in variable:
                    variable["valueFrom"].pop("fileKeyRef", None)


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
    for container in _containers(spec):
        resources = container["resources"]
        if "limits" in resources:
            resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    if "status" in pod:
        pod["status"].setdefault("qosClass", qos_class(spec))


def _birth(pod: Object) -> None:
    spec = pod["spec"]
    pod["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}


def qos_class(spec: Mapping[str, Any]) -> str:
    """Guaranteed, Burstable or BestEffort, by the containers' cpu and memory."""
    guaranteed, any_amount = True, False
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        limits = (container.get("resources") or {}).get("limits") or {}
        requests = (container.get("resources") or {}).get("requests") or {}
        for name in ("cpu", "memory"):
            limit, request = limits.get(name, "0"), requests.get(name, "0")
            any_amount = any_amount or limit != "0" or request != "0"
            guaranteed = guaranteed and limit != "0" and limit == request
    if not any_amount:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


# Admission


def _admit(store: Store, _kind: Kind, pod: Object) -> None:
    if pod["spec"].get("ephemeralContainers"):
        fault = refusals.forbidden_field("spec.ephemeralContainers", "cannot be set on create")
        faults = [*created_faults(USUAL, pod), *_validate(pod), fault]
        raise refusals.invalid(_kind, pod["metadata"].get("name", ""), faults)
    if pod["spec"].get("schedulingGates"):
        pod["status"]["conditions"] = [{**GATED, "lastTransitionTime": store.timestamp()}]


# Validation


def _validate(pod: Object) -> list[FieldError]:
    return [*spec_faults(pod["spec"], "spec"), *_image_faults(pod["spec"])]


def _image_faults(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    """What is asked of pods but not of templates, whose images others may fill in."""
    for place in _CONTAINER_LISTS:
        for index, container in enumerate(spec.get(place) or ()):
            image = container.get("image", "")
            if image != image.strip():
                text = "must not have leading or trailing whitespace"
                yield refusals.bad(f"spec.{place}[{index}].image", image, text)


# Changes

_FORBIDDEN = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def _compare(new: Object, old: Object) -> list[FieldError]:
    if new["spec"] == old["spec"]:
        return []
    fixed, found = clone(new["spec"]), []
    before = old["spec"]
    for place in ("containers", "initContainers"):
        if len(fixed.get(place) or ()) != len(before.get(place) or ()):
            return [refusals.forbidden_field(f"spec.{place}", "pod updates may not add or remove containers")]
        for container, known in zip(fixed.get(place) or (), before.get(place) or (), strict=True):
            container["image"] = known.get("image")
    _keep(fixed, before, "activeDeadlineSeconds")
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and fixed["terminationGracePeriodSeconds"] == 1:
        _keep(fixed, before, "terminationGracePeriodSeconds")
    if not all(_is_kept(known, fixed.get("tolerations") or []) for known in before.get("tolerations") or []):
        text = "existing toleration can not be modified except its tolerationSeconds"
        return [refusals.forbidden_field("spec.tolerations", text)]
    _keep(fixed, before, "tolerations")
    found += _gate_faults(fixed, before)
    if before.get("schedulingGates"):
        for narrowed in ("nodeSelector", "affinity"):
            _keep(fixed, before, narrowed)
    _keep(fixed, before, "schedulingGates")
    if fixed != before:
        found.append(refusals.forbidden_field("spec", _FORBIDDEN))
    return found


def _is_kept(known: Mapping[str, Any], given: list[Mapping[str, Any]]) -> bool:
    fields = ("key", "operator", "value", "effect")
    return any(all(known.get(name, "") == toleration.get(name, "") for name in fields) for toleration in given)


def _keep(spec: dict[str, Any], before: Mapping[str, Any], name: str) -> None:
    spec.pop(name, None)
    if name in before:
        spec[name] = before[name]


def _gate_faults(spec: Mapping[str, Any], before: Mapping[str, Any]) -> list[FieldError]:
    known = [gate["name"] for gate in before.get("schedulingGates") or ()]
    return [
        refusals.forbidden_field(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate['name']}'",
        )
        for index, gate in enumerate(spec.get("schedulingGates") or ())
        if gate["name"] not in known
    ]


# Deletion


def _grace(pod: Object, asked_s: int | None) -> int:
    if not node_name_of(pod) or is_terminal(pod):
        return 0
    grace_s = pod["spec"].get("terminationGracePeriodSeconds", 30) if asked_s is None else asked_s
    return 1 if grace_s < 0 else int(grace_s)


def _warn(new: Object, old: Object | None) -> list[str]:
    return [] if old is not None else [*hostname_warnings(new, "the Pod's hostname"), *pod_warnings(new)]


RULES = Rules(
    warn=_warn,
    default=_default,
    birth=_birth,
    admit=_admit,
    validate=_validate,
    validate_status=pod_status_faults,
    compare=_compare,
    grace=_grace,
)
