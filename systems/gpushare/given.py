"""What containers were given: by the answers to Allocate that are written down, and by what the kubelet says. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from mews.kube.api.objects import Object, is_terminal, key_of, uid_of
from mews.kube.api.pod_requests import is_sidecar
from mews.systems.gpushare.records import RecordedAnswer, container_requests, slices_digest
from mews.systems.gpushare.slices import gpu_of_slice


class HeldSlices(Struct, frozen=True):
    """What a container holds: ``gpu`` is the UUID of the GPU that all of its slices are of, "" where they are of
    several."""

    digest: str
    gpu: str
    count: int

    @classmethod
    def of(cls, ids: Collection[str]) -> HeldSlices:
        """Return these slices."""
        uuids = {gpu_of_slice(each) for each in ids}
        return cls(slices_digest(ids), uuids.pop() if len(uuids) == 1 else "", len(ids))


Held = Mapping[str, Mapping[str, HeldSlices]]
"""Pod (namespace/name) -> container that holds slices -> which."""
Answers = Mapping[str, RecordedAnswer]
"""Digest of the slices -> what their container was told."""


def digests_held(held: Held) -> frozenset[str]:
    """Return all of them."""
    return frozenset(slices.digest for by in held.values() for slices in by.values())


def lasting(answers: Answers, held: Held | None, pods: Sequence[Object], resource: str) -> dict[str, RecordedAnswer]:
    """Return the answers that came to something. A kubelet asks for one container after the other, so that whenever it
    asks it shows whom it gave what we answered before; not so the init containers, which no list of its has. None
    ``held``: it does not say, and any may have come to something."""
    if held is None:
        return dict(answers)
    shown = digests_held(held)
    hidden = {(uid_of(pod), name) for pod in pods if not is_terminal(pod) for name in _hidden(pod, resource)}
    return {
        digest: answer
        for digest, answer in answers.items()
        if digest in shown or (answer.pod, answer.container) in hidden
    }


def served(answers: Answers, held: Held | None, pods: Sequence[Object]) -> dict[str, frozenset[str]]:
    """Uid -> containers that have theirs, by the answers and by the kubelet's word, which counts more."""
    by_kubelet = held or {}
    shown = digests_held(by_kubelet)
    found: dict[str, set[str]] = {}
    for digest, answer in answers.items():
        if digest not in shown:
            found.setdefault(answer.pod, set()).add(answer.container)
    for pod in pods:
        found.setdefault(uid_of(pod), set()).update(by_kubelet.get(key_of(pod), {}))
    return {uid: frozenset(containers) for uid, containers in found.items() if containers}


def admitting(held: Held | None, pods: Sequence[Object], resource: str) -> frozenset[str]:
    """Pods that the kubelet knows and that hold less than they ask for."""
    waiting = set()
    for pod in pods:
        by = (held or {}).get(key_of(pod))
        if by is not None and any(name not in by for name, _ in lasting_requests(pod, resource)):
            waiting.add(uid_of(pod))
    return frozenset(waiting)


def lasting_requests(pod: Object, resource: str) -> list[tuple[str, int]]:
    """Return the requests that pod-resources can show: those of main containers and sidecars."""
    hidden = _hidden(pod, resource)
    return [each for each in container_requests(pod, resource) if each[0] not in hidden]


def _hidden(pod: Object, resource: str) -> frozenset[str]:
    inits = {str(each["name"]) for each in pod["spec"].get("initContainers") or () if not is_sidecar(each)}
    return frozenset(name for name, _ in container_requests(pod, resource) if name in inits)
