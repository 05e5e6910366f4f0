"""Devices and gangs in a run's journal. Pure.

The lines of layer ``api`` that everybody may rely on, beside those of every run (``mews.harness.journal``)::

    actor           event              fields
    devices         device-published   node, devices: a Device's list, when it is another than before
                    device-withdrawn   node; the Device is gone
    pod/default/a   gang               uid, gang, min_available: what its labels say, when that is new
"""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.api.objects import Object, labels_of, name_of, namespace_of, uid_of
from mews.kube.system.system import KindLine
from mews.systems.koordinator.errors import InvalidRequest
from mews.systems.koordinator.gangs import GangLabel, gang_of

DEVICE_PUBLISHED, DEVICE_WITHDRAWN = "device-published", "device-withdrawn"
GANG = "gang"


def device_news(old: Object | None, new: Object | None) -> Iterator[KindLine]:
    """Lines for a Device."""
    if new is None:
        if old is not None:
            yield "devices", DEVICE_WITHDRAWN, {"node": name_of(old)}
        return
    devices = (new.get("spec") or {}).get("devices") or []
    if old is None or devices != ((old.get("spec") or {}).get("devices") or []):
        yield "devices", DEVICE_PUBLISHED, {"node": name_of(new), "devices": devices}


def gang_news(old: Object | None, new: Object | None) -> Iterator[KindLine]:
    """Lines for a pod that is one of a gang."""
    label = _gang_of(new)
    if new is None or label is None or (label == _gang_of(old) and uid_of(old or {}) == uid_of(new)):
        return
    fields = {"uid": uid_of(new), "gang": label.name, "min_available": label.min_available}
    yield f"pod/{namespace_of(new)}/{name_of(new)}", "gang", fields


def _gang_of(pod: Object | None) -> GangLabel | None:
    try:
        return gang_of(labels_of(pod)) if pod is not None else None
    except InvalidRequest:
        return None
