"""Devices and gangs in a run's journal. Pure.

The lines of layer ``api`` that everybody may rely on, in addition to the lines of every run
(``mews.harness.journal``)::

    actor           event              fields
    devices         device-published   node, devices: a Device's list, when it is another than before; parted: true
                                       where it names partitions of its GPUs
                    device-withdrawn   node; the Device is gone
    pod/default/a   gang               uid, gang, min_available: what its labels say, when that is new; of a
                                       gang of Koordinator's own also anywhere: true, for its pods may be on any
                                       nodes, and min_available is None where its PodGroup says it
    podgroup/default/g  pod-group      min_member: what a PodGroup says, when that is new
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mews.kube.api.objects import Object, annotations_of, labels_of, name_of, namespace_of, uid_of
from mews.kube.system.system import KindLine
from mews.systems.koordinator.errors import InvalidRequestError
from mews.systems.koordinator.gang_terms import gang_id, needs_pod_group, terms_of_group, terms_of_pod
from mews.systems.koordinator.gangs import gang_of
from mews.systems.koordinator.names import PARTITIONS

DEVICE_PUBLISHED, DEVICE_WITHDRAWN = "device-published", "device-withdrawn"
PARTED = "parted"
GANG, POD_GROUP_NEWS = "gang", "pod-group"


def device_news(old: Object | None, new: Object | None) -> Iterator[KindLine]:
    """Yield lines for a Device."""
    if new is None:
        if old is not None:
            yield "devices", DEVICE_WITHDRAWN, {"node": name_of(old)}
        return
    devices = (new.get("spec") or {}).get("devices") or []
    before = None if old is None else (old.get("spec") or {}).get("devices") or []
    is_parted, was_parted = (PARTITIONS in annotations_of(each or {}) for each in (new, old))
    if devices != before or is_parted != was_parted:
        parted = {PARTED: True} if is_parted else {}
        yield "devices", DEVICE_PUBLISHED, {"node": name_of(new), "devices": devices, **parted}


def gang_news(old: Object | None, new: Object | None) -> Iterator[KindLine]:
    """Yield lines for a pod that is one of a gang."""
    terms = _gang_of(new)
    if new is None or terms is None or (terms == _gang_of(old) and uid_of(old or {}) == uid_of(new)):
        return
    yield f"pod/{namespace_of(new)}/{name_of(new)}", GANG, {"uid": uid_of(new), **terms}


def pod_group_news(old: Object | None, new: Object | None) -> Iterator[KindLine]:
    """Yield lines for a PodGroup."""
    if new is None or (old is not None and _least(old) == _least(new)):
        return
    yield f"podgroup/{namespace_of(new)}/{name_of(new)}", POD_GROUP_NEWS, {"min_member": _least(new)}


def _least(group: Object) -> int:
    return terms_of_group(group).least


def _gang_of(pod: Object | None) -> dict[str, Any] | None:
    if pod is None:
        return None
    try:
        label = gang_of(labels_of(pod))
    except InvalidRequestError:
        return None
    if label is not None:
        return {"gang": label.name, "min_available": label.min_available}
    if not gang_id(pod):
        return None
    terms = None if needs_pod_group(pod) else terms_of_pod(pod)
    least = None if terms is None else terms.least
    return {"gang": gang_id(pod).partition("/")[2], "min_available": least, "anywhere": True}
