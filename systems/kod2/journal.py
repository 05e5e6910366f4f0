"""TFJobs in a run's journal: which of their changes are lines, and what a run's lines say of its jobs. Pure.

The lines of layer ``api`` that everybody may rely on, in addition to the lines of every run
(``mews.harness.journal``)::

    actor           event      fields
    tfjob/default/a created, deleted
                    bounds     min, max, backoff_limit (None for none), clean_pods (None: the operator's default): what
                               its spec says, when that is new
                    weight     weight: as it is shown, 0 to 1
                    stalled    times: how often in a row it was held back, 0 once it is not any more
                    state      state (WAITING, RUNNING, STARVING, COMPLETED), workers
                    workers    old, new: scaled in or out
                    placement  placement {task: node}
                    condition  type, status, reason
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mews.kube.api.objects import Object, name_of, namespace_of
from mews.kube.system.journal import Line, condition_changes
from mews.kube.system.system import KindLine
from mews.systems.kod2.errors import TFJobError
from mews.systems.kod2.tfjob import CleanPodPolicy, clean_up_of, read_tfjob


# Complex: one branch for each field that makes a line.
def tfjob_news(old: Object | None, new: Object | None) -> Iterator[KindLine]:  # noqa: C901
    """Yield lines for a TFJob."""
    tfjob = new if new is not None else old
    if tfjob is None:
        return
    actor = f"tfjob/{namespace_of(tfjob)}/{name_of(tfjob)}"
    if new is None:
        yield actor, "deleted", {}
        return
    if old is None:
        yield actor, "created", {}
    if old is None or old.get("spec") != new.get("spec"):
        yield from ((actor, "bounds", fields) for fields in _bounds(new))
    before, after = _elastic(old), _elastic(new)
    if before.get("weight") != after.get("weight") and "weight" in after:
        yield actor, "weight", {"weight": after["weight"]}
    if (times := _times_stalled(after)) != _times_stalled(before):
        yield actor, "stalled", {"times": times}
    if after.get("state") and before.get("state") != after["state"]:
        yield actor, "state", {"state": after["state"], "workers": after.get("workers", 0)}
    elif before.get("workers") != after.get("workers"):
        yield actor, "workers", {"old": before.get("workers", 0), "new": after.get("workers", 0)}
    if before.get("placement") != after.get("placement") and after.get("placement"):
        yield actor, "placement", {"placement": dict(sorted(after["placement"].items()))}
    for event, fields in condition_changes(old or {}, new):
        yield actor, event, fields


def _bounds(tfjob: Object) -> Iterator[dict[str, Any]]:
    """Yield what its spec says; nothing of one that cannot be read."""
    try:
        job = read_tfjob(tfjob)
    except TFJobError:
        return
    yield {"min": job.minimum, "max": job.maximum, "backoff_limit": job.backoff_limit, "clean_pods": _clean(tfjob)}


def _clean(tfjob: Object) -> str | None:
    found = {clean_up_of(tfjob, default)[0] for default in CleanPodPolicy}
    return found.pop().value if len(found) == 1 else None


def _times_stalled(elastic: Mapping[str, Any]) -> int:
    return int((elastic.get("stalled") or {}).get("times") or 0)


def _elastic(tfjob: Object | None) -> Mapping[str, Any]:
    return ((tfjob or {}).get("status") or {}).get("elastic") or {}


# Complex: one pass: journals are long.
def tfjob_metrics(lines: Iterable[Line], speed: float = 1.0) -> dict[str, Any]:  # noqa: C901
    """Mean wait and completion time (entry to the waiting queue until RUNNING, until COMPLETED; contract kod2.md
    section 2), the makespan from the first entry to the last end, in emulated seconds (``speed`` of them in one of the
    journal's), and counts; {} where there was no TFJob."""
    entered: dict[str, float] = {}
    started: dict[str, float] = {}
    ended: dict[str, float] = {}
    failed: set[str] = set()
    added = removed = 0
    # One pass with a branch per kind of line: journals have a hundred thousand lines, and five passes would show.
    for line in lines:
        if line.layer != "api" or not line.actor.startswith("tfjob/"):
            continue
        state = line.fields.get("state")
        if line.event == "state" and state == "WAITING":
            entered.setdefault(line.actor, line.t)
        elif line.event == "state" and state == "RUNNING":
            started.setdefault(line.actor, line.t)
        elif line.event == "state" and state == "COMPLETED":
            ended[line.actor] = line.t
            entered.setdefault(line.actor, line.t)
        elif line.event == "workers":
            change = line.fields["new"] - line.fields["old"]
            added, removed = added + max(0, change), removed + max(0, -change)
        elif line.event == "condition" and line.fields["type"] == "Failed" and line.fields["status"] == "True":
            failed.add(line.actor)
    if not entered:
        return {}
    metrics: dict[str, Any] = {
        "finished_jobs": len(ended),
        "failed_jobs": len(failed),
        "added_workers": added,
        "removed_workers": removed,
    }
    waits = [started[job] - entered[job] for job in started if job in entered]
    jcts = [ended[job] - entered[job] for job in ended if job not in failed]
    if waits:
        metrics["mean_wait_s"] = round(speed * sum(waits) / len(waits), 3)
    if jcts:
        metrics["mean_jct_s"] = round(speed * sum(jcts) / len(jcts), 3)
    if ended:
        metrics["makespan_s"] = round(speed * (max(ended.values()) - min(entered.values())), 3)
    return metrics
