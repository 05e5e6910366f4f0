"""Nodes and slices in a run's journal. Pure.

The lines of layer ``api`` that everybody may rely on, in addition to the lines of claims
(``mews.kube.dra.claim_lines``)::

    actor            event           fields
    node/n           gpu-asked       gpu (its UUID), request
                     gpu-let-go      gpu, request
    slice/s          gpus-offered    pool, node ("" for none), gpus {device: UUID}; {} once the slice is gone
"""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.api.objects import Object, name_of
from mews.kube.dra.gpus import DRIVER
from mews.kube.system.system import KindLine
from mews.systems.pooldra.records import PoolNodeReport, report_of, requests_of

ASKED, LET_GO, OFFERED = "gpu-asked", "gpu-let-go", "gpus-offered"


def node_news(old: Object | None, new: Object | None) -> Iterator[KindLine]:
    """Yield lines for a node that is asked for devices, and for one whose host has let go of them."""
    if new is None:
        return
    actor = f"node/{name_of(new)}"
    asked, before = (requests_of(new), requests_of(old))
    for gpu, request in sorted(() if asked is None else asked.leave.items()):
        if before is None or before.leave.get(gpu) != request:
            yield actor, ASKED, {"gpu": gpu, "request": request}
    was = (report_of(old) or PoolNodeReport()).off
    for gpu, request in sorted((report_of(new) or PoolNodeReport()).off.items()):
        if was.get(gpu) != request:
            yield actor, LET_GO, {"gpu": gpu, "request": request}


def slice_news(old: Object | None, new: Object | None) -> Iterator[KindLine]:
    """Yield lines for a slice of ours that offers other devices than before."""
    found = new or old
    if found is None or found["spec"]["driver"] != DRIVER:
        return
    before, after = _gpus(old), _gpus(new)
    if before != after:
        fields = {"pool": found["spec"]["pool"]["name"], "node": found["spec"].get("nodeName", ""), "gpus": after}
        yield f"slice/{name_of(found)}", OFFERED, fields


def _gpus(found: Object | None) -> dict[str, str]:
    devices = [] if found is None else found["spec"].get("devices") or []
    named = {str(each["name"]): (each.get("attributes") or {}).get("uuid") or {} for each in devices}
    return {name: str(uuid["string"]) for name, uuid in sorted(named.items()) if "string" in uuid}
