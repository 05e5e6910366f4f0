"""Kubeflow's reconciler of TFJobs as an oracle, built from its Go module: whatever it makes of a job, its pods and
services before it comes to rest, our operator makes as the baseline, or the difference is of a row of docs/kod2.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.systems.kod2.kubeflow.drawing import drawn
from tests.systems.kod2.kubeflow.playing import ours, read
from tests.upstream.oracles.answers import UpstreamAnswers
from tests.upstream.oracles.model import Answer, Case, Oracle

MODULE, VERSION = "github.com/kubeflow/training-operator", "v1.9.3"
HERE = Path(__file__).parent
_OBJECTS = frozenset({"pods", "services", "replicas"})


class _Seen:
    """What the rows look at: a case, and in what the two answers differ."""

    def __init__(self, case: Case, theirs: Answer, mine: Answer) -> None:
        self.theirs, self.mine = theirs, mine
        self.differs = {key for key in (*theirs, *mine) if theirs.get(key) != mine.get(key)}
        self.suspended = bool(case["job"]["spec"]["runPolicy"].get("suspend"))
        self.restarting = any(each["type"] == "Restarting" for each in case["job"]["status"]["conditions"])
        replicas: Mapping[str, Any] = case["job"]["spec"]["tfReplicaSpecs"]
        tasks = {f"j-{role.lower()}-{n}" for role, each in replicas.items() for n in range(each["replicas"])}
        pods, services = _names(case["pods"]), _names(case["services"])
        self.beyond = bool((pods | services) - tasks)
        self.lacks = bool(tasks - pods or tasks - services)
        self.phases = {pod["status"]["phase"] for pod in case["pods"]}
        self.dynamic = bool(case["job"]["spec"].get("enableDynamicWorker"))
        self.limited = case["job"]["spec"]["runPolicy"].get("backoffLimit") is not None
        self.fails = any(_has_failed_for_good(pod, replicas) for pod in case["pods"])
        self.leaving = any(
            "deletionTimestamp" in pod["metadata"] and _is_retried(pod, replicas) for pod in case["pods"]
        )
        self.retried = {_role_of(pod) for pod in case["pods"] if _is_retried(pod, replicas)}

    def only(self, keys: frozenset[str]) -> bool:
        return self.differs <= keys


def _names(objects: Sequence[Mapping[str, Any]]) -> set[str]:
    return {each["metadata"]["name"] for each in objects}


def _role_of(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["labels"]["training.kubeflow.org/replica-type"])


def _is_retried(pod: Mapping[str, Any], replicas: Mapping[str, Any]) -> bool:
    if pod["status"]["phase"] != "Failed":
        return False
    (policy,) = (each.get("restartPolicy") for role, each in replicas.items() if role.lower() == _role_of(pod))
    code = pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"]
    return policy in ("Always", "OnFailure") or (policy == "ExitCode" and code >= 128)


def _has_failed_for_good(pod: Mapping[str, Any], replicas: Mapping[str, Any]) -> bool:
    """Also one that runs and is deleted."""
    if pod["status"]["phase"] == "Running":
        return "deletionTimestamp" in pod["metadata"]
    return pod["status"]["phase"] == "Failed" and not _is_retried(pod, replicas)


def _is_restarting_and_fails(seen: _Seen) -> bool:
    return (seen.restarting or bool(seen.retried)) and seen.fails and not seen.suspended


def _succeeds_and_fails(seen: _Seen) -> bool:
    return "Succeeded" in (seen.theirs["verdict"], seen.mine["verdict"]) and (seen.fails or bool(seen.retried))


ROWS: Mapping[str, Callable[[_Seen], bool]] = {
    "tasks beyond the replicas": lambda seen: seen.beyond,
    "recreated pods": lambda seen: seen.limited and bool(seen.retried) and seen.mine["verdict"] == "Failed",
    "several roles restart": lambda seen: len(seen.retried) > 1 and seen.only(frozenset({"conditions"})),
    "a terminating failed pod": lambda seen: seen.leaving and not seen.suspended,
    "a job that restarts and fails": _is_restarting_and_fails,
    "a job that succeeds and fails": _succeeds_and_fails,
    "a dynamic worker's exit code": lambda seen: seen.dynamic and seen.only(frozenset({"ended"})),
    "a service without a pod": lambda seen: seen.suspended and seen.lacks and seen.only(frozenset({"services"})),
    "tasks that are missing at the end": lambda seen: (
        seen.lacks and seen.mine["ended"] and seen.only(_OBJECTS | {"conditions"})
    ),
}
"""Row of docs/kod2.md -> whether a difference may be of it."""


def row_of(case: Case, theirs: Answer, mine: Answer) -> str:
    """The row of a difference; "" for none."""
    seen = _Seen(case, theirs, mine)
    return next((row for row, holds in ROWS.items() if holds(seen)), "")


TFJOBS = Oracle(
    name="kod2",
    drawn=drawn,
    theirs=UpstreamAnswers(MODULE, VERSION, "pkg/controller.v1/tensorflow", HERE / "tfjob_answers_test.go").to,
    read=read,
    ours=ours,
    row_of=row_of,
    rows=tuple(ROWS),
    page="kod2.md",
    heading="### Compared with Kubeflow's reconciler",
    cases=2000,
    golden=HERE / "golden.jsonl",
    recorded=100,
)
