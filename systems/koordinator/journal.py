"""Devices in a run's journal. Pure.

The lines of layer ``api`` that everybody may rely on, beside those of every run (``mews.harness.journal``)::

    actor      event              fields
    devices    device-published   node, devices: a Device's list, when it is another than before
               device-withdrawn   node; the Device is gone
"""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.api.objects import Object, name_of
from mews.kube.system.system import KindLine

DEVICE_PUBLISHED, DEVICE_WITHDRAWN = "device-published", "device-withdrawn"


def device_news(old: Object | None, new: Object | None) -> Iterator[KindLine]:
    """Lines for a Device."""
    if new is None:
        if old is not None:
            yield "devices", DEVICE_WITHDRAWN, {"node": name_of(old)}
        return
    devices = (new.get("spec") or {}).get("devices") or []
    if old is None or devices != ((old.get("spec") or {}).get("devices") or []):
        yield "devices", DEVICE_PUBLISHED, {"node": name_of(new), "devices": devices}
