"""Metrics of the TFJobs of a run, from its journal. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mews.harness.journal import Line


def tfjob_metrics(lines: Iterable[Line], speed: float = 1.0) -> dict[str, Any]:
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
