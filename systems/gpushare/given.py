"""What containers were given: by our own answers to Allocate, and by what the kubelet says. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mews.kube.api.objects import Object, key_of, uid_of
from mews.kube.api.pod_requests import is_sidecar
from mews.systems.gpushare.policy import SharedGpu
from mews.systems.gpushare.records import container_requests

Held = Mapping[str, Mapping[str, frozenset[str]]]
"""Pod (namespace/name) -> container -> slices that it holds."""


@dataclass(frozen=True, slots=True)
class GivenSlices:
    """One answer to Allocate: the slices, the pod and container we took it to be for ("" for none), and the GPU in its
    env, None where it says that there is none."""

    ids: frozenset[str]
    uid: str
    container: str
    gpu: SharedGpu | None


def served(answers: Iterable[GivenSlices], held: Held, pods: Sequence[Object]) -> dict[str, frozenset[str]]:
    """Uid -> containers that have theirs, by our own answers and by the kubelet's word, which counts more."""
    holders = {
        slice_set: (pod, container) for pod, by in held.items() for container, slice_set in by.items() if slice_set
    }
    found: dict[str, set[str]] = {}
    for given in answers:
        if given.ids not in holders:
            found.setdefault(given.uid, set()).add(given.container)
    for pod in pods:
        names_held = {c for key, c in holders.values() if key == key_of(pod)}
        found.setdefault(uid_of(pod), set()).update(names_held)
    return {uid: frozenset(containers) for uid, containers in found.items() if containers}


def admitting(held: Held, pods: Sequence[Object], resource: str) -> frozenset[str]:
    """Pods that the kubelet knows and that hold less than they ask for."""
    waiting = set()
    for pod in pods:
        by = held.get(key_of(pod))
        if by is not None and any(not by.get(name) for name, _ in lasting_requests(pod, resource)):
            waiting.add(uid_of(pod))
    return frozenset(waiting)


def lasting_requests(pod: Object, resource: str) -> list[tuple[str, int]]:
    """The requests that pod-resources can show: those of main containers and sidecars."""
    inits = pod["spec"].get("initContainers") or ()
    hidden = {str(each["name"]) for each in inits if not is_sidecar(each)}
    return [each for each in container_requests(pod, resource) if each[0] not in hidden]
