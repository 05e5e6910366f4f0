"""The remediation in a run's journal. Pure.

The lines of layer ``api`` that everybody may rely on, in addition to the lines of every run
(``mews.harness.journal``)::

    actor               event       fields
    remediation/host-1  broken      gpu, number, cause: an agent says it
                        resetting   gpu, number: before it resets
                        mended      gpu, number
                        given-up    gpu, number, reason
                        begun       incidents, cordon (ours, foreign, by-hand, none)
                        over        cordon
                        evicting    pod, uid, gpu, number: a pod is marked before it is evicted
"""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.api.objects import Object, annotations_of, key_of, name_of, uid_of
from mews.kube.system.system import KindLine
from mews.systems.remediation.names import EVICTED_FOR, GPUS, WORK
from mews.systems.remediation.records import IncidentState, NodeGpus, node_gpus, node_work

BROKEN, RESETTING, MENDED, GIVEN_UP = "broken", "resetting", "mended", "given-up"
BEGUN, OVER, EVICTING = "begun", "over", "evicting"


def node_news(old: Object | None, new: Object | None) -> Iterator[KindLine]:
    """Yield lines for a node on which a GPU broke or was mended, or work began or ended."""
    if new is None:
        return
    before, after = annotations_of(old or {"metadata": {}}), annotations_of(new)
    actor = f"remediation/{name_of(new)}"
    if before.get(GPUS) != after.get(GPUS):
        yield from _gpu_news(actor, node_gpus(old), node_gpus(new))
    if before.get(WORK) == after.get(WORK):
        return
    was, now = node_work(old), node_work(new)
    if now is not None and (was is None or (was.incidents, was.cordon) != (now.incidents, now.cordon)):
        yield actor, BEGUN, {"incidents": list(now.incidents), "cordon": now.cordon.value}
    elif was is not None and now is None:
        yield actor, OVER, {"cordon": was.cordon.value}


def _gpu_news(actor: str, before: NodeGpus, after: NodeGpus) -> Iterator[KindLine]:
    for uuid in sorted(after.mended):
        if before.mended.get(uuid) != after.mended[uuid]:
            yield actor, MENDED, {"gpu": uuid, "number": after.mended[uuid]}
    for uuid, incident in sorted(after.incidents.items()):
        was, named = before.incidents.get(uuid), {"gpu": uuid, "number": incident.number}
        if was is None or was.number != incident.number:
            yield actor, BROKEN, {**named, "cause": incident.cause}
        if was is not None and was.state is incident.state:
            continue
        if incident.state is IncidentState.RESETTING:
            yield actor, RESETTING, named
        elif incident.state is IncidentState.FAILED:
            yield actor, GIVEN_UP, {**named, "reason": incident.reason}


def pod_news(old: Object | None, new: Object | None) -> Iterator[KindLine]:
    """Yield a line for a pod that is about to be evicted."""
    mark = annotations_of(new or {"metadata": {}}).get(EVICTED_FOR)
    if new is None or mark is None or annotations_of(old or {"metadata": {}}).get(EVICTED_FOR) == mark:
        return
    gpu, _, number = mark.rpartition("/")
    fields = {"pod": key_of(new), "uid": uid_of(new), "gpu": gpu, "number": int(number) if number.isdecimal() else 0}
    yield f"remediation/{new['spec'].get('nodeName', '')}", EVICTING, fields
