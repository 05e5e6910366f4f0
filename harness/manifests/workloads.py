"""Deployments and DaemonSets: where pods run, and when they are made anew."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from mews.harness.manifests.api_sidecar import with_sidecar
from mews.harness.manifests.nodes import NODE_AGENT
from mews.harness.manifests.parts import COMPONENT, CONTROL_PLANE, SERVICE, Object, labels, metadata
from mews.harness.manifests.spec import ReplacementProgram, StackSpec

SET = "mews.dev/set"
"""Label: which of a component's several DaemonSets."""
_EVERYWHERE = [{"operator": "Exists"}]


def deployment(spec: StackSpec, component: str, pod: Object, program: ReplacementProgram | None = None) -> Object:
    """Return one pod, beside the API server where it may be, unless the component declares otherwise."""
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(component, component, spec.namespace)}
    steered = {**with_sidecar(spec, component, pod), "terminationGracePeriodSeconds": 2}
    found = spec.component(component)
    if found is None or found.deployment is None or not found.deployment.off_control_plane:
        # Beside the API server where it lets them: the workers are the hosts' own.
        steered["tolerations"] = [{"key": CONTROL_PLANE, "operator": "Exists"}]
        steered["affinity"] = {"nodeAffinity": _prefer_control_plane()}
    body = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": {COMPONENT: component}},
        "template": {"metadata": _template_metadata(spec, component, program), "spec": steered},
    }
    return {**made, "spec": body}


def _prefer_control_plane() -> Object:
    there = {"key": CONTROL_PLANE, "operator": "Exists"}
    term = {"weight": 100, "preference": {"matchExpressions": [there]}}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [term]}


def daemon_set(
    spec: StackSpec,
    name: str,
    component: str,
    pod: Object,
    *,
    nodes: Sequence[str],
    program: ReplacementProgram | None = None,
) -> Object:
    """Return one pod on each of those nodes; the name tells it from others of the component."""
    set_label = {} if name == component else {SET: name}
    meta = _template_metadata(spec, component, program)
    there = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}
    needed = {"nodeSelectorTerms": [{"matchExpressions": [there]}]}
    steered = {
        **with_sidecar(spec, component, pod),
        "terminationGracePeriodSeconds": 10,
        "tolerations": list(_EVERYWHERE),
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": needed}},
    }
    made = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata(name, component, spec.namespace)}
    body = {
        "selector": {"matchLabels": {COMPONENT: component, **set_label}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}},
        "template": {"metadata": {**meta, "labels": {**meta["labels"], **set_label}}, "spec": steered},
    }
    return {**made, "spec": body}


def _template_metadata(spec: StackSpec, component: str, program: ReplacementProgram | None) -> Object:
    """Return a pod's labels, and a hash of what it reads: it is made anew when that changed."""
    found = spec.component(component)
    service = {SERVICE: found.service} if found is not None and found.service else {}
    read: list[Any] = [spec.token]
    if component in ("chassis", NODE_AGENT) or component == spec.node_component():
        read.append(spec.hardware)
    if component not in ("chassis", NODE_AGENT):
        read += [each.document for each in spec.systems_read(component, program.texts if program is not None else ())]
    if program is not None:
        read.append([list(program.argv), dict(program.env), dict(program.files), program.image, program.identity])
    digest = hashlib.sha256(json.dumps(read, sort_keys=True, default=str).encode()).hexdigest()[:12]
    return {"labels": {**labels(component), **service}, "annotations": {"mews.dev/reads": digest}}
