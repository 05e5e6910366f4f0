"""An elastic TFJob grows while there is room for it (Algorithm 3 of the paper, contract kod2.md section 2)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from mews.kube.api.objects import Object, condition_of, is_terminal, node_name_of, uid_of
from mews.kube.api.pod_requests import pod_amount
from mews.kube.api.quantities import parse, whole
from mews.kube.system.invariant import Breach, ClusterObjects, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kod2.config import OperatorConfig
from mews.systems.kod2.job_books import JobBooks, JobRecord
from mews.systems.kod2.model import Mode, State, is_worker

_SLACK_S = 2.0
_COUNTS: Mapping[str, Any] = {"cpu": parse, "memory": whole}
_WAITS = (State.WAITING.value, State.STARVING.value, "")


class GrowsIntoRoom(Invariant[RunState]):
    """A running job below its maximum gets workers when nobody waits and a node has room for one more, after its
    cooldown. The operator looks at every change and at least once in a tick. The room of ended workers counts as held
    for a moment. The law judges jobs whose tasks all have their pods, and nodes that take any pod."""

    number = 1032
    name = "a job below its maximum grows while nobody waits and there is room"
    of_time = True
    ours_alone = True
    events = frozenset(
        {("api", "phase"), *JobBooks.events} | {("component", event) for event in ("started", "killed", "crashed")}
    )

    def __init__(self, jobs: JobBooks, config: OperatorConfig) -> None:
        self._jobs = jobs
        self._pooled, self._cooldown_s = config.pooled_resource, config.cooldown_s
        self._within_s = 2 * max(config.tick_s, config.settle_s) + _SLACK_S
        self._judges = config.scale_out and config.mode == Mode.CORRECTED
        self._known: set[str] = set()
        self._finishing: set[str] = set()
        self._fits: dict[str, tuple[float, str]] = {}
        """Job -> since when there is room for one more worker, and where."""
        self._calm_s = 0.0
        """Since when nobody waits, and no component began or went."""
        self._asks: dict[str, tuple[Mapping[str, float], bool]] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Take in what becomes of jobs."""
        job = self._jobs.take(line)
        kind, _, key = line.actor.partition("/")
        if line.layer == "component":
            self._calm_s = line.t
        elif kind == "tfjob":
            self._known.add(key)
            if line.event == "deleted" or (job is not None and job.over is not None):
                self._known.discard(key)
            if line.event in ("state", "created", "deleted", "stalled", "bounds"):
                self._calm_s = line.t
            self._fits.pop(key, None)
            if line.event in ("created", "state"):
                self._finishing.discard(key)
        elif kind == "pod" and line.event == "phase" and line.fields["phase"] in ("Succeeded", "Failed"):
            owner = self._jobs.owner(key)
            if owner is not None and line.fields["phase"] == "Succeeded":
                self._finishing.add(owner[0])
        return iter(())

    def on_objects(self, t: float, objects: ClusterObjects, state: RunState) -> Iterator[Breach]:
        """Look for room for the jobs that may grow."""
        if not self._judges or state.bound_s("lag_s"):
            return iter(())
        growing = {
            key: job for key in self._known if (job := self._jobs.of(key)) is not None and self._may_grow(key, job)
        }
        if not growing or not self._is_settled(objects):
            self._fits.clear()
            return iter(())
        free = self._free(objects)
        found: dict[str, tuple[float, str]] = {}
        for key in growing:
            node = self._room_for(key, objects, free)
            if node:
                found[key] = (self._fits[key][0] if key in self._fits else t, node)
        self._fits = found
        return iter(())

    def _may_grow(self, key: str, job: JobRecord) -> bool:
        stalled = job.lines.get("stalled")
        is_held = stalled is not None and bool(stalled.fields["times"])
        grows = job.state == State.RUNNING and 0 < job.workers < job.maximum and job.minimum < job.maximum
        return grows and not is_held and key not in self._finishing and job.over is None

    def _is_settled(self, objects: ClusterObjects) -> bool:
        """Return whether nobody waits, and each task of running jobs has its pod."""
        for key in self._known:
            job = self._jobs.of(key)
            if job is None or job.over is not None:
                continue
            if job.state in _WAITS or any(f"{key}-{task}" not in objects.pods for task in job.placement):
                return False
        return True

    def _free(self, objects: ClusterObjects) -> dict[str, dict[str, float]]:
        free: dict[str, dict[str, float]] = {}
        for name, node in objects.nodes.items():
            if _is_open(node):
                shown = (node.get("status") or {}).get("allocatable") or {}
                free[name] = {each: float(count(shown.get(each, 0))) for each, count in _COUNTS.items()}
                free[name]["pods"] = float(whole(shown.get("pods", 0)))
        for pod in objects.pods.values():
            there = free.get(node_name_of(pod))
            if there is not None and not is_terminal(pod):
                for each, amount in self._ask(pod)[0].items():
                    there[each] -= amount
        return free

    def _ask(self, pod: Object) -> tuple[Mapping[str, float], bool]:
        """Return what a pod asks for, and whether nothing else decides where it may be."""
        uid = uid_of(pod)
        if uid not in self._asks:
            amounts = {each: float(pod_amount(pod, each, count)) for each, count in _COUNTS.items()}
            spec = pod.get("spec") or {}
            is_plain = not any(spec.get(each) for each in ("nodeSelector", "affinity", "topologySpreadConstraints"))
            limits = [(each.get("resources") or {}) for each in spec.get("containers") or ()]
            names = {name for each in limits for part in ("requests", "limits") for name in each.get(part) or ()}
            self._asks[uid] = {**amounts, "pods": 1.0}, is_plain and names <= _COUNTS.keys()
        return self._asks[uid]

    def _room_for(self, key: str, objects: ClusterObjects, free: Mapping[str, Mapping[str, float]]) -> str:
        job = self._jobs.of(key)
        workers = [f"{key}-{task}" for task in (job.placement if job is not None else ()) if is_worker(task)]
        pods = [objects.pods[each] for each in workers if each in objects.pods]
        if not pods or any(is_terminal(pod) for pod in pods):
            return ""
        ask, is_plain = self._ask(pods[0])
        if not is_plain:
            return ""
        fitting: Collection[str] = [n for n, there in free.items() if all(there[each] >= ask[each] for each in ask)]
        return min(fitting, default="")

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge jobs for which there has been room for too long."""
        for key, (since_s, node) in list(self._fits.items()) if self._fits else ():
            job = self._jobs.of(key)
            last = (
                max(
                    (each for each in (job.scaled, job.lines.get("workers")) if each is not None),
                    default=None,
                    key=lambda line: line.number,
                )
                if job is not None
                else None
            )
            due_s = max(since_s, self._calm_s, 0.0 if last is None else last.t + self._cooldown_s + 0.001)
            if job is None or t - due_s <= self._within_s:
                continue
            del self._fits[key]
            if state.clock_from(self.number, due_s) <= due_s:
                first = job.lines.get("workers") or job.lines["state"]
                what = f"{key} has {job.workers} of {job.maximum} workers, and {node} has had room for one more"
                yield Breach((key, str(first.number)), f"{what} for {t - due_s:.0f} s", first, due_s=due_s)


def _is_open(node: Object) -> bool:
    spec = node.get("spec") or {}
    ready = condition_of(node, "Ready") or {}
    return ready.get("status") == "True" and not spec.get("unschedulable") and not spec.get("taints")
