"""Pods and what made them, as objects that a scenario applies: without anything that was not looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from mews.harness.recording.causes import RecordedStep, RecordedView
from mews.harness.recording.histories import PodHistory, is_extended, stamp
from mews.harness.recording.observations import Object, ObjectSighting
from mews.harness.recording.reduction import WORKLOADS, system_kinds
from mews.kube.api.objects import clone

_SERVERS_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name")
_CORE = ("cpu", "memory", "ephemeral-storage", "pods")


class StackNames(Struct, frozen=True):
    """What the stack of the replay pools and by which scheduler; ``recorded``: the resource that was recorded."""

    resource: str
    scheduler: str
    schedulers: frozenset[str]
    recorded: str


class EndedImage(Struct, frozen=True):
    """An image that plays containers which ended by themselves."""

    name: str
    duration_s: float
    exit_code: int


def ended_image(pod: PodHistory) -> EndedImage | None:
    """Return the image of a pod that ended; None for one that ran until the end, or never."""
    if pod.phase not in ("Succeeded", "Failed") or pod.ended is None:
        return None
    duration_s = round(max(0.0, pod.ended - (pod.started if pod.started is not None else pod.created)), 1)
    return EndedImage(f"recorded/ran-{duration_s:g}s-exit-{pod.exit_code}", duration_s, pod.exit_code)


def replayed_pod(pod: PodHistory, names: StackNames, *, pinned: bool) -> tuple[dict[str, Any], list[str]]:
    """Return the pod to apply, and what its comment says."""
    spec, notes = _spec(pod.obj.get("spec") or {}, names)
    image = ended_image(pod)
    if image is not None:
        for container in spec["containers"]:
            container["image"] = image.name
        notes.append(f"its containers ended after {image.duration_s:g} s: an image of that duration plays them")
    if pinned and pod.node:
        spec["nodeSelector"] = {**spec.get("nodeSelector", {}), "kubernetes.io/hostname": pod.node}
        notes.append(f"it ran on {pod.node}: remove this nodeSelector to let the scheduler decide")
    if pod.asks_for(names.recorded) and pod.node:
        notes.append("which of its host's devices it held is not known")
    if pod.left_out:
        notes.append(f"left out: {', '.join(pod.left_out)}")
    labels = pod.obj["metadata"].get("labels") or {}
    metadata = {"name": pod.name, "namespace": pod.namespace, **({"labels": dict(labels)} if labels else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, notes


def _spec(given: Mapping[str, Any], names: StackNames) -> tuple[dict[str, Any], list[str]]:
    spec, notes = clone(given), list[str]()
    spec.pop("nodeName", None)
    scheduler = str(spec.get("schedulerName", "default-scheduler"))
    if scheduler not in names.schedulers:
        spec["schedulerName"] = names.scheduler
        notes.append(f"its scheduler was {scheduler}, which this stack does not run")
    dropped: set[str] = set()
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        container.setdefault("image", "recorded/unknown")
        resources, gone = _resources(container.pop("resources", {}), names)
        dropped |= gone
        if resources:
            container["resources"] = resources
    if dropped:
        notes.append(f"left out, because the emulated nodes do not offer it: {', '.join(sorted(dropped))}")
    if not spec.get("containers"):
        spec["containers"] = [{"name": "main", "image": "recorded/unknown"}]
        notes.append("its spec was not recorded")
    return spec, notes


def _resources(given: Mapping[str, Any], names: StackNames) -> tuple[dict[str, Any], set[str]]:
    found: dict[str, Any] = {}
    dropped: set[str] = set()
    for part in ("limits", "requests"):
        amounts = {}
        for name, quantity in (given.get(part) or {}).items():
            if name == names.recorded:
                amounts[names.resource] = str(quantity)
            elif name in _CORE:
                amounts[name] = str(quantity)
            elif is_extended(name):
                dropped.add(name)
        if amounts:
            found[part] = amounts
    return found, dropped


def known_owners(sightings: Iterable[ObjectSighting]) -> dict[tuple[str, str, str], Object]:
    """Return what may have made pods and can be applied itself, by namespace, kind and name."""
    return {
        (seen.key[1], seen.key[0], seen.key[2]): seen.obj
        for seen in sightings
        if not seen.gone and (seen.key[0] in WORKLOADS or seen.key[0] in system_kinds())
    }


def owners_of(
    known: Mapping[tuple[str, str, str], Object], pods: Iterable[PodHistory]
) -> dict[tuple[str, str, str], Object]:
    """Return what made the recorded pods: of a chain of owners the topmost."""
    tops = (top_owner(pod, known) for pod in pods)
    return {top: known[top] for top in tops if top is not None}


def top_owner(pod: PodHistory, known: Mapping[tuple[str, str, str], Object]) -> tuple[str, str, str] | None:
    """Return the topmost owner of a pod that was recorded."""
    owner, top = pod.owner, None
    while owner is not None:
        key = (pod.namespace, *owner)
        if key not in known or key == top:
            break
        top = key
        references = known[key]["metadata"].get("ownerReferences") or ()
        owner = next(((str(each["kind"]), str(each["name"])) for each in references if each.get("controller")), None)
    return top


def owner_steps(
    view: RecordedView, owners: Mapping[tuple[str, str, str], Object], names: StackNames
) -> Iterator[RecordedStep]:
    """Yield each owner, applied when it was created."""
    for (namespace, kind, name), obj in owners.items():
        spec, notes = clone(obj.get("spec") or {}), list[str]()
        template = spec.get("template")
        if isinstance(template, dict):
            template["spec"], notes = _spec(template.get("spec") or {}, names)
            labels = (template.get("metadata") or {}).get("labels") or {}
            template["metadata"] = {"labels": {key: each for key, each in labels.items() if key not in _SERVERS_LABELS}}
        if kind == "Job":
            spec.pop("selector", None)
        notes.append("its pods are made by its controller, so their names differ")
        metadata = {"name": name, "namespace": namespace or "default"}
        made = {"apiVersion": obj.get("apiVersion") or "v1", "kind": kind, "metadata": metadata, "spec": spec}
        created = stamp(obj["metadata"].get("creationTimestamp"))
        yield RecordedStep(max(view.began, created or view.began), {"apply": made}, tuple(notes))
