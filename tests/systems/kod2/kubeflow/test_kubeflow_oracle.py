"""What Kubeflow's reconciler makes of jobs and what our operator does: recorded answers and upstream's unit tables in
every run, thousands of drawn jobs where Go is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from mews.systems.kod2 import outcome, reconciler
from mews.systems.kod2 import status as statuses
from mews.systems.kod2.config import OperatorConfig
from mews.systems.kod2.errors import TFJobError
from mews.systems.kod2.outcome import outcome_of
from mews.systems.kod2.podspec import pod_of_task, tf_config
from mews.systems.kod2.tfjob import CleanPodPolicy, clean_up_of, is_managed_elsewhere, read_tfjob
from tests.systems.kod2.kubeflow.drawing import named
from tests.systems.kod2.kubeflow.oracle import TFJOBS
from tests.systems.kod2.kubeflow.playing import ours
from tests.systems.kod2.kubeflow.situations import (
    ALL_WORKERS,
    BACKOFF,
    CLEANED,
    COMPLETED,
    DEADLINES,
    DISTRIBUTED,
    INVALID,
    KEPT,
    LATER,
    MANAGED,
    NOT_EQUAL,
    RESTARTS,
    RETRYABLE,
    STATUSES,
    SUSPENDED,
    TF_CONFIGS,
    Counts,
)
from tests.upstream.building import NotBuiltError
from tests.upstream.oracles.model import Case

Outcome = tuple[str, Any, Any]
"""Name of a situation, what upstream expects, what ours does."""
ENDED = {"Succeeded": "successfully completed.", "Failed": "has failed.", "Suspended": "is suspended."}


def job(roles: Mapping[str, int], *, restart: str = "Never", **spec: Any) -> dict[str, Any]:
    container = {"name": "tensorflow", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    replicas = {
        role: {"replicas": count, "restartPolicy": restart, "template": {"spec": {"containers": [container]}}}
        for role, count in roles.items()
    }
    return {
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob",
        "metadata": {"name": "j", "namespace": "default", "uid": "the-job"},
        "spec": {"tfReplicaSpecs": replicas, "runPolicy": {}, **spec},
        "status": {"conditions": [condition("Created")], "replicaStatuses": {}},
    }  # fmt: skip


def condition(kind: str) -> dict[str, str]:
    return {"type": kind, "status": "True", "reason": f"TFJob{kind}", "message": f"TFJob j {ENDED.get(kind, kind)}"}


def pod(role: str, index: int, phase: str, *, code: int | None = None, restarts: int = 0) -> dict[str, Any]:
    made = named(role, index)
    state = {"running": {}} if phase == "Running" else {"terminated": {"exitCode": code or 0}}
    container = {"name": "tensorflow", "image": "x", "imageID": "", "ready": False, "restartCount": restarts}
    made["spec"] = {"containers": [{"name": "tensorflow", "image": "x"}]}
    made["status"] = {"phase": phase, "containerStatuses": [container | {"state": state}]}
    return made


def played(given: Mapping[str, Any], pods: list[dict[str, Any]], *, started: int = 10) -> Mapping[str, Any]:
    services = [{"metadata": each["metadata"]} for each in pods]
    case: Case = {"job": given, "started": started, "pods": pods, "services": services}
    return ours(case)


def counted(counts: Counts, *, code: int = 1, last_first: bool = False) -> list[dict[str, Any]]:
    """Pods in the order in which upstream's tests number them: those that have succeeded, failed, run."""
    found = []
    for role, (failed, succeeded, running) in counts.items():
        phases = ["Succeeded"] * succeeded + ["Failed"] * failed + ["Running"] * running
        for index, phase in enumerate(reversed(phases) if last_first else phases):
            found.append(pod(role, index, phase, code=code if phase == "Failed" else 0))
    return found


def conditions() -> Iterator[Outcome]:
    """tensorflow/status_test.go."""
    for table, later, spec in (
        (STATUSES, False, {}),
        (LATER, True, {}),
        (ALL_WORKERS, False, {"successPolicy": "AllWorkers"}),
    ):
        for name, (roles, counts, expected) in table.items():
            found = played(job(roles, **spec), counted(counts, last_first=later))
            yield name, True, expected in {kind for kind, *_ in found["conditions"]}
    roles = {"Chief": 1, "Worker": 4, "PS": 2}
    pods = counted({"Chief": (1, 0, 0), "PS": (0, 0, 2), "Worker": (4, 0, 0)}, code=130)
    found = played(job(roles, restart="ExitCode"), pods)
    yield "the chief has failed and restarts", "Restarting", found["verdict"]
    for number, (roles, counts, completed) in enumerate(COMPLETED):
        found = played(job(roles, restart="Never"), counted(counts))
        yield f"worker-0 has completed {number}", completed, found["verdict"] == "Succeeded"


def updates() -> Iterator[Outcome]:
    """pkg/util/status_test.go, TestUpdateJobConditions; common/status_test.go."""
    status: statuses.Status = {}
    for kind, expected in (
        ("Created", ["Created"]),
        ("Running", ["Created", "Running"]),
        ("Restarting", ["Created", "Restarting"]),
        ("Running", ["Created", "Running"]),
        ("Failed", ["Created", "Running", "Failed"]),
    ):
        before = [each["type"] for each in status.get("conditions", ())]
        status = statuses.with_condition(status, kind, f"Job {kind}", f"Job {kind}", now_s=1.0)
        yield f"{kind} after {before}", expected, [each["type"] for each in status["conditions"]]
    yield "Running once it has failed", "False", status["conditions"][1]["status"]
    read = read_tfjob(job({"Worker": 7}))
    phases = ["Failed"] * 2 + ["Succeeded"] * 3 + ["Running"] * 2
    pods = {f"worker-{n}": pod("Worker", n, phase) for n, phase in enumerate(phases)}
    pods["worker-6"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    counts = statuses.with_replicas({}, read, pods, baseline=True)["replicaStatuses"]["Worker"]
    yield "one that is on its way out has failed", {"failed": 3, "succeeded": 3, "active": 1}, counts


def policies() -> Iterator[Outcome]:
    for code, retried in RETRYABLE:
        read = read_tfjob(job({"Worker": 1}, restart="ExitCode"))
        pods = {"worker-0": pod("Worker", 0, "Failed", code=code)}
        found = outcome_of(read, ["worker-0"], pods, restarts=0, baseline=True)
        yield f"exit code {code}", retried, found.restarted == ("worker-0",)
    for policy, of_pod in RESTARTS:
        given = job({"Worker": 1}, restart=policy)
        made = pod_of_task(read_tfjob(given), given, "worker-0", node=None)
        yield f"restart policy {policy}", of_pod, made["spec"]["restartPolicy"]
    for given, suspended in SUSPENDED:
        yield f"run policy {dict(given)}", suspended, read_tfjob(job({"Worker": 1}, runPolicy=given)).suspend
    for limit, restarts, past in BACKOFF:
        pods = [pod("Worker", n, "Running", restarts=count) for n, count in enumerate(restarts)]
        found = played(job({"Worker": len(pods)}, restart="OnFailure", runPolicy={"backoffLimit": limit}), pods)
        yield f"back-off limit {limit}", past, found["verdict"] == "Failed"
    for deadline, started, over in DEADLINES:
        given = job({"Worker": 1}, runPolicy={"activeDeadlineSeconds": deadline})
        found = played(given, [pod("Worker", 0, "Running")], started=started)
        yield f"deadline {deadline}", over, found["verdict"] == "Failed" and deadline == 0
    for manager, elsewhere in MANAGED:
        given = job({"Worker": 1}, runPolicy={} if manager is None else {"managedBy": manager})
        yield f"managed by {manager}", elsewhere, is_managed_elsewhere(given)


def cleaning() -> Iterator[Outcome]:
    for policy, state, stay in CLEANED:
        given = job({"Worker": 2}, runPolicy={"cleanPodPolicy": policy, "suspend": state == "Suspended"})
        given["status"]["conditions"].append(condition(state))
        found = played(given, [pod("Worker", 0, "Running"), pod("Worker", 1, "Succeeded")])
        yield f"clean {policy}, {state}", sorted(stay), sorted(found["pods"].values())
        yield f"services, clean {policy}, {state}", len(stay), len(found["services"])
    for policy, phase, stay in KEPT:
        given = job({"Worker": 4, "PS": 2}, runPolicy={"cleanPodPolicy": policy})
        given["status"]["conditions"].append(condition("Succeeded"))
        found = played(given, [pod(role, n, phase) for role, count in (("Worker", 4), ("PS", 2)) for n in range(count)])
        yield f"clean {policy}, all {phase}", (stay, stay), (len(found["pods"]), len(found["services"]))


def reading() -> Iterator[Outcome]:
    """Defaults, TF_CONFIG and validation."""
    bare = job({"Worker": 1})
    replicas = bare["spec"]["tfReplicaSpecs"]["Worker"]
    del replicas["replicas"], replicas["restartPolicy"]
    read = read_tfjob(bare)
    yield "no replicas", 1, read.workers.count
    yield "no restart policy", "Never", read.workers.restart.value
    yield "no port", {"tfjob-port": 2222}, read.workers.ports
    replicas["template"]["spec"]["containers"][0]["ports"] = [{"name": "customPort", "containerPort": 1234}]
    yield "another port", {"customPort": 1234, "tfjob-port": 2222}, read_tfjob(bare).workers.ports
    default = CleanPodPolicy(OperatorConfig().clean_pod_policy)
    yield "no cleanPodPolicy", CleanPodPolicy.NONE, clean_up_of(bare, default)[0]
    cleaned = job({"Worker": 1}, runPolicy={"cleanPodPolicy": "All"})
    yield "cleanPodPolicy All", CleanPodPolicy.ALL, clean_up_of(cleaned, default)[0]
    spelled = job({"Worker": 1})
    spelled["spec"]["tfReplicaSpecs"] = {"WORKER": spelled["spec"]["tfReplicaSpecs"]["Worker"]}
    yield "a role in capitals", 1, read_tfjob(spelled).workers.count
    for roles, distributed in DISTRIBUTED:
        yield f"distributed {dict(roles)}", distributed, read_tfjob(job(roles)).is_distributed
    for number, (roles, namespace, domain, expected) in enumerate(TF_CONFIGS):
        yield f"TF_CONFIG {number}", expected and _cluster(roles, namespace, domain), _config(roles, namespace, domain)
    for name, (containers, valid) in INVALID.items():
        given = job(dict.fromkeys(containers, 1))
        for role, listed in containers.items():
            given["spec"]["tfReplicaSpecs"][role]["template"]["spec"]["containers"] = listed
        yield name, valid, _is_read(given)


def _cluster(roles: Mapping[str, int], namespace: str, domain: str) -> Any:
    suffix = f".{domain}" if domain else ""
    return {role.lower(): [f"j-{role.lower()}-0.{namespace}.svc{suffix}:2222"] for role in roles}


def _config(roles: Mapping[str, int], namespace: str, domain: str) -> Any:
    given = job(roles)
    given["metadata"]["namespace"] = namespace
    read = replace(read_tfjob(given), domain=domain)
    made = pod_of_task(read, given, "worker-0", node=None)
    env = {each["name"] for each in made["spec"]["containers"][0].get("env") or ()}
    return tf_config(read, "worker-0")["cluster"] if "TF_CONFIG" in env else None


def _is_read(given: Mapping[str, Any]) -> bool:
    try:
        read_tfjob(dict(given))
    except TFJobError:
        return False
    return True


def test_ours_decides_as_upstreams_unit_tables_expect_but_for_those_that_are_listed() -> None:
    outcomes = [each for table in (conditions, updates, policies, cleaning, reading) for each in table()]
    differing = {name: (expected, found) for name, expected, found in outcomes if expected != found}
    assert differing.keys() == NOT_EQUAL.keys(), differing
    assert len({name for name, _, _ in outcomes}) == len(outcomes)
    assert len(outcomes) >= 86


def test_what_is_recorded_of_jobs_is_ours_or_of_the_table() -> None:
    found = TFJOBS.compare_recorded()
    assert found.wrong == {}
    assert found.equal >= found.cases * 4 // 5
    assert {"Succeeded", "Failed", "Running", "Restarting", "Suspended"} <= set(found.verdicts)


@pytest.mark.parametrize("fault", ["restarts", "the first look", "codes", "services"])
def test_a_fault_of_one_line_is_seen_in_the_recorded_answers(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "restarts":
        monkeypatch.setattr(outcome, "_all_in_place", lambda *_: 0)
    elif fault == "the first look":
        monkeypatch.setattr(outcome, "_runs_first", lambda *_: False)
    elif fault == "codes":
        monkeypatch.setattr(outcome, "RETRYABLE", 140)
    else:
        monkeypatch.setattr(reconciler, "service_of_task", lambda *_: {"metadata": {"name": "none"}})
    assert TFJOBS.compare_recorded().wrong


def test_the_page_has_the_rows_of_the_table_and_no_other() -> None:
    assert TFJOBS.published_rows() == list(TFJOBS.rows)


@pytest.mark.nightly
def test_two_thousand_jobs_are_upstreams_or_of_the_table() -> None:
    try:
        found = TFJOBS.compare(range(1_000_000, 1_002_000))
    except NotBuiltError as error:
        pytest.skip(f"training-operator's reconciler cannot be built here: {error}")
    assert found.wrong == {}
    assert found.equal >= found.cases * 4 // 5, found.rows


def test_the_back_off_limit_is_judged_before_success_and_before_the_deadline() -> None:
    policy = {"backoffLimit": 2, "activeDeadlineSeconds": 5}
    pods = [pod("Worker", 0, "Succeeded"), pod("PS", 0, "Running", restarts=2)]
    for given in (policy, {"backoffLimit": 2}):
        found = played(job({"Worker": 1, "PS": 1}, restart="OnFailure", runPolicy=given), pods)
        assert found["conditions"][-1][3] == "Job j has failed because it has reached the specified backoff limit"


@pytest.mark.parametrize(("restart", "verdict"), [("Never", "Failed"), ("OnFailure", "Running")])
def test_a_pod_that_has_failed_for_good_fails_the_job_while_it_is_being_deleted(restart: str, verdict: str) -> None:
    pods = [pod("Worker", 0, "Running"), pod("Worker", 1, "Failed", code=1)]
    pods[1]["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["tests.mews.dev/held"]}
    assert played(job({"Worker": 2}, restart=restart), pods)["verdict"] == verdict


def test_services_of_workers_that_an_edit_took_away_go() -> None:
    pods = [pod("Worker", 0, "Running")]
    services = [{"metadata": named("Worker", n)["metadata"]} for n in range(3)]
    found = ours({"job": job({"Worker": 1}), "started": 10, "pods": pods, "services": services})
    assert found["services"] == ["j-worker-0"]
