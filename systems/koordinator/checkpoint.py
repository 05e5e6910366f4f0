"""Adoption: what a kubelet's own checkpoint says is held, for pods that our scheduler did not place. Pure.

The file is that of kubelet 1.34 (contract kubelet.md section 6): ``DeviceIDs`` by NUMA node, ``AllocResp`` may be
absent. Its checksum is the kubelet's business: it is replaced as a whole, so a reader never sees half of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from mews.kube.api.objects import Object, annotations_of, is_terminal, uid_of
from mews.systems.koordinator.devices import CheckpointEntry
from mews.systems.koordinator.errors import KoordinatorError
from mews.systems.koordinator.names import ALLOCATED


class CheckpointFormatError(KoordinatorError):
    """A kubelet's checkpoint cannot be read; one line."""


def read_checkpoint(text: str) -> tuple[CheckpointEntry, ...]:
    """Return all entries, each with its devices in order of NUMA nodes; those of one container and resource are one.

    Raises CheckpointFormatError.
    """
    try:
        listed = json.loads(text)["Data"]["PodDeviceEntries"] or ()
        return tuple(_entry(each) for each in listed)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise CheckpointFormatError(
            f"kubelet_internal_checkpoint: {error!r}: must be a checkpoint of kubelet 1.34"
        ) from error


def _entry(each: Mapping[str, Any]) -> CheckpointEntry:
    by_numa = each["DeviceIDs"] or {}
    if isinstance(by_numa, list):  # before kubelet 1.20
        ids = tuple(map(str, by_numa))
    else:
        ids = tuple(str(one) for node in sorted(by_numa, key=int) for one in by_numa[node] or ())
    return CheckpointEntry(
        str(each["PodUID"]),
        str(each["ContainerName"]),
        str(each["ResourceName"]),
        ids,
        str(each.get("AllocResp") or ""),
    )


def adopted(
    entries: Iterable[CheckpointEntry], pods: Iterable[Object], *, scheduler: str, resources: Iterable[str]
) -> tuple[CheckpointEntry, ...]:
    """Return the entries of pods that live and that our scheduler did not place, of resources that are devices of ours.

    ``resources``: names, or with ``*`` at the end what they begin with.
    """
    known = {uid_of(pod): pod for pod in pods}
    wanted = tuple(resources)
    return tuple(
        entry
        for entry in entries
        if (pod := known.get(entry.pod_uid)) is not None
        and not is_terminal(pod)
        and not placed_by(pod, scheduler)
        and any(_names(pattern, entry.resource) for pattern in wanted)
    )


def placed_by(pod: Object, scheduler: str) -> bool:
    """Return whether our scheduler gave the pod its devices: then they stand in its annotation, and what a device
    plugin gave beside is not what its containers use."""
    return pod["spec"].get("schedulerName") == scheduler or ALLOCATED in annotations_of(pod)


def _names(pattern: str, resource: str) -> bool:
    return resource.startswith(pattern[:-1]) if pattern.endswith("*") else resource == pattern
