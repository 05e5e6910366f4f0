"""Manifests of the user's in a component's place: what becomes of their objects in the stack's own namespace."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mews.harness.errors import RequirementError
from mews.harness.manifests.parts import HOST_ROOT, Object
from mews.harness.manifests.replacements import ACCESS, ACCESS_FOLDER, places
from mews.harness.manifests.spec import InstalledSystem, StackSpec
from mews.harness.scenario.replacement import filled


def manifest_objects(spec: StackSpec) -> dict[str, list[Object]]:
    """Component -> the objects of its manifest: a system's namespace by its real name, texts filled in; pods there have
    what their texts name, and the component's account where they say no other.

    Raises RequirementError for pods elsewhere that name files.
    """
    return {
        component: [
            _object(spec, component, document)
            for document in documents
            if document["kind"] != "Namespace" or document["metadata"]["name"] not in spec.named
        ]
        for component, documents in spec.documents.items()
    }


def _object(spec: StackSpec, component: str, document: Mapping[str, Any]) -> Object:
    made: Object = _moved(document, spec.named, spec.namespace)
    namespace = made["metadata"].get("namespace", "default")
    mounted = _mounted(spec, component)
    for pod_spec in _pod_specs(made):
        wanted = {name: files for name, files in mounted.items() if _names(pod_spec, name)}
        if namespace == spec.namespace:
            if "serviceAccount" not in pod_spec:
                pod_spec.setdefault("serviceAccountName", component)
            _furnish(pod_spec, wanted)
        elif wanted:
            which = f"{made['kind']} {made['metadata']['name']}: {{{next(iter(wanted))}}}"
            raise RequirementError(
                f"{spec.where(component)}.manifest: {which} is a file that pods of the namespace {spec.named[0]} "
                f"can be given here, not of {namespace}"
            )
    done: Object = filled(made, places(spec, component))
    return done


def _moved(value: Any, named: Sequence[str], real: str) -> Any:
    if isinstance(value, list):
        return [_moved(item, named, real) for item in value]
    if not isinstance(value, dict):
        return value
    moved = {key: _moved(item, named, real) for key, item in value.items()}
    if moved.get("namespace") in named:
        moved["namespace"] = real
    return moved


def _pod_specs(obj: Any) -> list[Object]:
    spec = obj.get("spec") if isinstance(obj, dict) else None
    if not isinstance(spec, dict):
        return []
    if isinstance(spec.get("containers"), list):
        return [spec]
    return [found for key in ("template", "jobTemplate") for found in _pod_specs(spec.get(key))]


def _names(value: Any, name: str) -> bool:
    return "{" + name + "}" in json.dumps(value)


def _furnish(pod_spec: Object, wanted: Mapping[str, tuple[str, Object]]) -> None:
    for name, (path, source) in wanted.items():
        volume = f"mews-{name.replace(':', '-')}"
        pod_spec["volumes"] = [*(pod_spec.get("volumes") or ()), {"name": volume, **source}]
        for container in [*pod_spec["containers"], *(pod_spec.get("initContainers") or ())]:
            if isinstance(container, dict) and _names(container, name):
                mounts = container.get("volumeMounts") or ()
                container["volumeMounts"] = [*mounts, {"name": volume, "mountPath": path}]


def _mounted(spec: StackSpec, component: str) -> Mapping[str, tuple[str, Object]]:
    """Return what a text names -> where it is, and of what."""
    return {
        "config": _config(spec.system_of(component)),
        **{f"config:{each.system.name}": _config(each) for each in spec.systems},
        "kubeconfig": (ACCESS_FOLDER, {"configMap": {"name": ACCESS}}),
        "root": (HOST_ROOT, {"emptyDir": {}}),
    }


def _config(installed: InstalledSystem) -> tuple[str, Object]:
    declared = installed.deployment
    return declared.config_folder, {"configMap": {"name": declared.config_map}}
