"""Shared GPUs in a run's journal: what is promised of them, and what is not to be. Pure.

The lines of layer ``api`` that everybody may rely on, in addition to the lines of every run
(``mews.harness.journal``)::

    actor            event       fields
    gpushare/host-1  gpus        gpus {uuid: memory}, unusable [uuid]: what the device plugin shows on its node
                     unhealthy   indices [index]: of the ConfigMap of broken GPUs
                     withheld    gpus [uuid]: of which the ledger lets nothing be promised any more
                     promises    made {uid: {pod, gpu, memory}}: what one write of the ledger added or changed,
                                 struck [uid]: what it took off
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mews.kube.api.objects import Object, annotations_of, name_of
from mews.kube.system.system import KindLine
from mews.systems.gpushare.names import LEDGER_PREFIX, NODE_GPUS, UNHEALTHY_PREFIX
from mews.systems.gpushare.records import LedgerEntry, ledger_entries, node_gpus, unhealthy_indices, withheld_gpus

GPUS, UNHEALTHY, WITHHELD, PROMISES = "gpus", "unhealthy", "withheld", "promises"


def node_news(old: Object | None, new: Object | None) -> Iterator[KindLine]:
    """Yield lines for a node whose plugin shows other GPUs than before."""
    if new is None or annotations_of(old or {}).get(NODE_GPUS) == annotations_of(new).get(NODE_GPUS):
        return
    gpus = node_gpus(new, "", "")
    unusable = [gpu.uuid for gpu in gpus if not gpu.usable]
    fields = {"gpus": {gpu.uuid: gpu.memory for gpu in gpus}, "unusable": unusable}
    yield f"gpushare/{name_of(new)}", "gpus", fields


def config_map_news(old: Object | None, new: Object | None) -> Iterator[KindLine]:
    """Yield lines for a node's ledger, and for its list of broken GPUs."""
    there = new if new is not None else old
    name = name_of(there) if there is not None else ""
    if name.startswith(LEDGER_PREFIX):
        yield from _ledger_news(f"gpushare/{name.removeprefix(LEDGER_PREFIX)}", old, new)
    elif name.startswith(UNHEALTHY_PREFIX):
        indices = unhealthy_indices(new)
        if indices != unhealthy_indices(old):
            yield f"gpushare/{name.removeprefix(UNHEALTHY_PREFIX)}", "unhealthy", {"indices": sorted(indices)}


def _ledger_news(actor: str, old: Object | None, new: Object | None) -> Iterator[KindLine]:
    withheld = withheld_gpus(new)
    if withheld != withheld_gpus(old):
        yield actor, "withheld", {"gpus": sorted(withheld)}
    before, after = ledger_entries(old), ledger_entries(new)
    made = {uid: _shown(after[uid]) for uid in sorted(after) if _differs(before.get(uid), after[uid])}
    struck = sorted(before.keys() - after.keys())
    if made or struck:
        yield actor, "promises", {"made": made, "struck": struck}


def _shown(entry: LedgerEntry) -> dict[str, Any]:
    return {"pod": f"{entry.namespace}/{entry.name}", "gpu": entry.uuid, "memory": entry.memory}


def _differs(before: LedgerEntry | None, after: LedgerEntry) -> bool:
    return before is None or (before.uuid, before.memory) != (after.uuid, after.memory)
