"""Plugins about pods: Priority, DefaultTolerationSeconds, RuntimeClass (k8s.io/kubernetes plugin/pkg/admission)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.api.resources import PRIORITY_CLASSES, Resource
from mews.kube.emulated.core.admission.plugin import AdmissionPlugin, handles, refused
from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.selection import EVERYTHING
from mews.kube.emulated.core.store.store import Store

RUNTIME_CLASSES = Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False)

_TOLERATION_S = 300
_NOT_RETRIED = ("not-ready", "unreachable")
_WRITES = (AdmissionOperation.CREATE, AdmissionOperation.UPDATE)


def _tolerate(_store: Store, attributes: AdmissionAttributes) -> None:
    assert attributes.obj is not None
    spec = attributes.obj["spec"]
    tolerations = spec.get("tolerations") or []
    for trouble in _NOT_RETRIED:
        key = f"node.kubernetes.io/{trouble}"
        if not any((t.get("key") or key) == key and t.get("effect", "NoExecute") == "NoExecute" for t in tolerations):
            added = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_S}
            tolerations = [*tolerations, added]
    spec["tolerations"] = tolerations


DEFAULT_TOLERATION_SECONDS = AdmissionPlugin("DefaultTolerationSeconds", handles("pods", *_WRITES), mutate=_tolerate)


def _handles_priority(kind: Kind, operation: AdmissionOperation, subresource: str) -> bool:
    resource = kind.resource
    return (
        operation in _WRITES
        and not subresource
        and (resource.group, resource.plural) in (("", "pods"), ("scheduling.k8s.io", "priorityclasses"))
    )


def _prioritise(store: Store, attributes: AdmissionAttributes) -> None:
    pod, old = attributes.obj, attributes.old
    assert pod is not None
    if attributes.kind.plural != "pods":
        return
    spec = pod["spec"]
    if old is not None:
        for name in ("priority", "preemptionPolicy"):
            if name not in spec and name in old["spec"]:
                spec[name] = old["spec"][name]
        return
    found = _priority_class(store, attributes, spec.get("priorityClassName", ""))
    priority, policy = (found["value"], found["preemptionPolicy"]) if found else (0, "PreemptLowerPriority")
    if found:
        spec["priorityClassName"] = found["metadata"]["name"]
    given = spec.get("priority")
    computed = "priority admission controller computed"
    if given is not None and given != priority:
        text = f"the integer value of priority ({given}) must not be provided in pod spec; {computed} {priority}"
        raise refused(attributes, f"{text} from the given PriorityClass name")
    if spec.get("preemptionPolicy", policy) != policy:
        text = f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
        raise refused(attributes, f"{text}{computed} {policy} from the given PriorityClass name")
    spec["priority"] = priority
    spec["preemptionPolicy"] = policy


def _priority_class(store: Store, attributes: AdmissionAttributes, name: str) -> Object | None:
    classes = store.kinds.of(PRIORITY_CLASSES)
    if not name:
        defaults = [found for found in store.shelf(classes).select(EVERYTHING) if found.get("globalDefault")]
        return max(defaults, key=lambda found: found["value"], default=None)
    found = store.find(classes, "", name)
    if found is None:
        raise refused(attributes, f"no PriorityClass with name {name} was found")
    return found


def _one_default(store: Store, attributes: AdmissionAttributes) -> None:
    if attributes.kind.plural == "pods" or not (attributes.obj or {}).get("globalDefault"):
        return
    for other in store.shelf(attributes.kind).select(EVERYTHING):
        name = other["metadata"]["name"]
        if other.get("globalDefault") and (
            attributes.operation is AdmissionOperation.CREATE or name != attributes.name
        ):
            text = f"PriorityClass {name} is already marked as default. Only one default can exist"
            raise refused(attributes, text)


PRIORITY = AdmissionPlugin("Priority", _handles_priority, mutate=_prioritise, validate=_one_default)

_MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"


def _runtime_class(store: Store, attributes: AdmissionAttributes) -> Object | None:
    assert attributes.obj is not None
    name = attributes.obj["spec"].get("runtimeClassName")
    if name is None:
        return None
    found = store.find(store.kinds.of(RUNTIME_CLASSES), "", name)
    if found is None:
        raise refused(attributes, f'pod rejected: RuntimeClass "{name}" not found')
    return found


def _apply_runtime_class(store: Store, attributes: AdmissionAttributes) -> None:
    found = _runtime_class(store, attributes)
    if found is None or attributes.obj is None:
        return
    spec = attributes.obj["spec"]
    overhead = (found.get("overhead") or {}).get("podFixed")
    if overhead:
        if spec.get("overhead") and spec["overhead"] != overhead:
            raise refused(attributes, _MISMATCH)
        spec["overhead"] = dict(overhead)
    _schedule(spec, found.get("scheduling") or {}, attributes)


def _schedule(spec: dict[str, Any], scheduling: Mapping[str, Any], attributes: AdmissionAttributes) -> None:
    selector = scheduling.get("nodeSelector") or {}
    given = spec.get("nodeSelector") or {}
    for key, value in selector.items():
        if given.get(key, value) != value:
            text = f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
            raise refused(attributes, f"{text}pod.spec.nodeSelector[{key}] = {given[key]}")
    if selector:
        spec["nodeSelector"] = {**given, **selector}
    tolerations = spec.get("tolerations") or []
    fresh = [each for each in scheduling.get("tolerations") or () if each not in tolerations]
    if fresh:
        spec["tolerations"] = [*tolerations, *fresh]


def _check_overhead(store: Store, attributes: AdmissionAttributes) -> None:
    assert attributes.obj is not None
    given = attributes.obj["spec"].get("overhead")
    found = _runtime_class(store, attributes)
    if found is not None and found.get("overhead"):
        if (given or {}) != (found["overhead"].get("podFixed") or {}):
            raise refused(attributes, _MISMATCH)
    elif given is not None:
        raise refused(attributes, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")


RUNTIME_CLASS = AdmissionPlugin(
    "RuntimeClass", handles("pods", AdmissionOperation.CREATE), mutate=_apply_runtime_class, validate=_check_overhead
)
