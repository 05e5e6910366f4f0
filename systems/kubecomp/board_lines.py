"""What KubeComp's components write for one another, as lines of a run's journal. Pure.

The lines of layer ``api`` that everybody may rely on, in addition to the lines of every run
(``mews.harness.journal``). In them, *gpuid* is the device's GPUID and *request* is the name of one request
for the device::

    actor                 event          fields
    withdrawal/0-000500   asked          node, gpuid, request: Reconfig-Mgr wants the device withdrawn there
                          asked-back     node, gpuid, request: it wants it no more
                          consented      node, gpuid, request: that node's DevMgr agrees; again whenever it renews that
                          consent-ended  node, gpuid, request: it agrees no more
                          refused        node, gpuid, request, reason ("" or what the host said)
    move/0-000500         move-begun     gpuid, request, pod, uid, origin, origin_node, target, target_node, pool:
                                         written down before its first change
                          move-ended     gpuid, request: read back, or given up
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.api.objects import Object, name_of
from mews.kube.system.system import KindLine
from mews.systems.kubecomp.records import (
    JOURNAL,
    Intent,
    NodeReport,
    intents,
    node_of_report,
    node_of_requests,
    report_without_heartbeat,
    withdraw_requests,
)


def board_news(old: Object | None, new: Object | None) -> Iterator[KindLine]:
    """Return lines for a ConfigMap; those that are none of KubeComp's have none."""
    found = new if new is not None else old
    if found is None:
        return iter(())
    if (node := node_of_requests(found)) is not None:
        return _requests(node, old, new)
    if (node := node_of_report(found)) is not None:
        return _answers(node, old, new)
    return _moves(intents(old), intents(new)) if name_of(found) == JOURNAL else iter(())


def _requests(node: str, old: Object | None, new: Object | None) -> Iterator[KindLine]:
    before, after = withdraw_requests(old), withdraw_requests(new)
    for gpuid in sorted({*before, *after}):
        was, now = before.get(gpuid), after.get(gpuid)
        if was is not None and (now is None or now.request != was.request):
            yield _line("asked-back", node, gpuid, was.request)
        if now is not None and (was is None or now.request != was.request):
            yield _line("asked", node, gpuid, now.request)


def _answers(node: str, old: Object | None, new: Object | None) -> Iterator[KindLine]:
    before, after = _report(old), _report(new)
    if before is after:
        return  # Nothing but the heartbeat is new.
    for gpuid in sorted({*before.consents, *after.consents}):
        was, now = before.consents.get(gpuid), after.consents.get(gpuid)
        if was is not None and (now is None or now.request != was.request):
            yield _line("consent-ended", node, gpuid, was.request)
        if now is not None and now != was:
            yield _line("consented", node, gpuid, now.request)
    for gpuid in sorted(after.refused):
        if before.refused.get(gpuid) != after.refused[gpuid]:
            yield _line("refused", node, gpuid, after.refused[gpuid], reason=after.reasons.get(gpuid, ""))


def _moves(before: Mapping[str, Intent], after: Mapping[str, Intent]) -> Iterator[KindLine]:
    for gpuid in sorted({*before, *after}):
        was, now = before.get(gpuid), after.get(gpuid)
        if was is not None and now != was:
            yield f"move/{gpuid}", "move-ended", {"gpuid": gpuid, "request": was.request}
        if now is not None and now != was:
            yield f"move/{gpuid}", "move-begun", _described(now)


def _described(intent: Intent) -> dict[str, Any]:
    names = ("gpuid", "request", "pod", "uid", "origin", "origin_node", "target", "target_node", "pool")
    return {name: getattr(intent, name) for name in names}


def _line(event: str, node: str, gpuid: str, request: str, **more: str) -> KindLine:
    return f"withdrawal/{gpuid}", event, {"node": node, "gpuid": gpuid, "request": request, **more}


_NOTHING = NodeReport()


def _report(obj: Object | None) -> NodeReport:
    return report_without_heartbeat(obj) or _NOTHING
