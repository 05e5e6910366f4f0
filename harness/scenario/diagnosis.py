"""What else is worth knowing when something did not come out: related journal lines, and a hint."""

from __future__ import annotations

from collections.abc import Sequence

from mews.harness.journal import Journal, Line
from mews.harness.ports.cluster import DEFAULT_SCHEDULER, Cluster
from mews.harness.scenario.step_context import Finding
from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object, condition_of, node_name_of, phase_of
from mews.kube.api.resources import PODS

_SHOWN = 8
_TOPICS = {
    "annotations": "annotations",
    "nodeName": "bound",
    "node ": "bound",
    "node: ": "bound",
    "phase": "phase",
    "ready": "condition",
    "conditions": "condition",
    "allocatable": "allocatable",
    "taints": "taints",
    "unschedulable": "unschedulable",
    "restart": "container-started",
    "GPU": "allocated",
    "state": "state",
    "workers": "workers",
}
"""Words of a check -> the journal's events that speak of it."""
_CAUSES = {"allocatable": "devices"}
"""Events that follow from what another says at once: a node's numbers from its kubelet's list of devices."""
_NEWS = ("fault", "invariant", "component")


def related_to(journal: Journal, about: tuple[str, ...], since: int) -> tuple[str, ...]:
    """Return the last lines about these things, and the last faults, kills and violations."""
    lines = journal.lines(since)
    close = [line for line in lines if _is_about(line, about)][-_SHOWN:]
    loud = [line for line in lines if line.layer in _NEWS and line not in close][-_SHOWN // 2 :]
    other = [] if close or loud else [line for line in lines if line.layer != "step"][-_SHOWN:]
    return tuple(_shown(line) for line in sorted([*close, *loud, *other], key=lambda line: line.number))


def made_by(journal: Journal, finding: Finding, since: int) -> Line | None:
    """Return the line that made what was found in place of what was awaited: the one that must not be there, else the
    last one about these things that speaks of what differs (of what the text names first), else the last one about
    them."""
    lines = journal.lines(since)
    if finding.line is not None:
        return next((line for line in lines if line.number == finding.line), None)
    close = [line for line in lines if _is_about(line, finding.about)]
    for text in (finding.seen, finding.awaited):
        for _, event in sorted((text.index(word), event) for word, event in _TOPICS.items() if word in text):
            speaking = [line for line in close if line.event in (event, _CAUSES.get(event)) or _warns(line, event)]
            if speaking:
                return speaking[-1]
            placed = _placed(lines, finding.about) if event == "bound" else None
            if placed is not None:
                return placed
    return close[-1] if close else None


def _placed(lines: Sequence[Line], about: tuple[str, ...]) -> Line | None:
    """Return that of a pod that was made for its node: the last placement before it of the job of which it is, by its
    name."""
    made = next((line for line in reversed(lines) if line.event == "created" and line.actor in about), None)
    if made is None:
        return None
    for line in reversed(lines):
        key = line.actor.partition("/")[2]
        if line.event == "placement" and line.number < made.number and made.actor.startswith(f"pod/{key}-"):
            return line
    return None


def _warns(line: Line, event: str) -> bool:
    """Return whether it says why a condition does not hold, such as a probe that failed."""
    return event == "condition" and line.event == "event" and line.fields["type"] == "Warning"


async def hint_for(cluster: Cluster, about: tuple[str, ...], *, deadlock: bool) -> str:
    """Return what to look at next."""
    for thing in about:
        kind, _, name = thing.partition("/")
        namespace, _, pod = name.partition("/")
        if kind == "pod" and pod:
            hint = await _pod_hint(cluster, namespace, pod)
            if hint:
                return hint
    if deadlock:
        return "only periodic loops are left, and a whole round of them changed nothing: no timeout would help"
    return ""


async def _pod_hint(cluster: Cluster, namespace: str, name: str) -> str:
    try:
        pod = await cluster.kube.get(PODS, name, namespace=namespace)
    except (ApiError, UnavailableError) as error:
        return str(error)
    status = pod.get("status") or {}
    scheduled = condition_of(pod, "PodScheduled")
    if phase_of(pod) == "Failed":
        return f"pod {name} failed: {status.get('reason', '')} {status.get('message', '')}".strip()
    if not node_name_of(pod):
        why = (scheduled or {}).get("message") or _unanswered(cluster, pod)
        return f"pod {name} is not scheduled: {why}"
    waiting = [s["state"]["waiting"] for s in status.get("containerStatuses") or () if "waiting" in s.get("state", {})]
    if waiting:
        return (
            f"a container of pod {name} waits: {waiting[0].get('reason', '')} {waiting[0].get('message', '')}".strip()
        )
    return ""


def _is_about(line: Line, about: tuple[str, ...]) -> bool:
    names = {line.actor, str(line.fields.get("object", "")), f"pod/{line.fields.get('pod', '')}"}
    if line.event in _CAUSES.values():
        names.add(f"node/{line.actor.partition('/')[2]}")
    return any(thing in names for thing in about)


def _shown(line: Line) -> str:
    text = line.as_json()
    return text if len(text) <= 240 else text[:239] + "…"


def _unanswered(cluster: Cluster, pod: Object) -> str:
    """Return which name the pod asks for, and which there are."""
    asked = (pod.get("spec") or {}).get("schedulerName") or DEFAULT_SCHEDULER
    names = [DEFAULT_SCHEDULER] if DEFAULT_SCHEDULER in cluster.components() else []
    for each in cluster.systems:
        names += [c.scheduler(each.configuration) for _, c in each.components() if c.scheduler is not None]
    if asked in names:
        return f"{asked} has written nothing about it: does it run, and watch pods of that schedulerName?"
    return f"no scheduler has the schedulerName {asked}; schedulers: {', '.join(names) or 'none'}"
