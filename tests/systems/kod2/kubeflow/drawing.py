"""TFJobs of chance with their pods and services, as documents that upstream's reconciler and our operator both read."""

from __future__ import annotations

import random
from typing import Any

from tests.upstream.oracles.model import Case

STARTED_S = 1000
"""How long ago jobs of a case were started: far from each deadline that they may have."""
ROLES = ("Chief", "Master", "PS", "Worker", "Evaluator")
POLICIES = ("Always", "OnFailure", "Never", "ExitCode")
CODES = (0, 1, 2, 127, 128, 130, 137, 143)


def drawn(seed: int) -> Case:
    """``job``, ``pods`` and ``services``; the job was ``started`` so many seconds ago."""
    return _Draw(random.Random(seed)).case()


class _Draw:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def case(self) -> Case:
        counts, spec = self._spec()
        conditions = self._conditions()
        tasks = [(role, index) for role, count in counts.items() for index in range(count)]
        if self.chance(0.03) and counts.get("Worker"):
            tasks.append(("Worker", counts["Worker"]))  # of before an edit
        there = [task for task in tasks if self.chance(0.95)]
        pods = [self._pod(*task) for task in there]
        return {
            "job": {
                "apiVersion": "kubeflow.org/v1", "kind": "TFJob",
                "metadata": {"name": "j", "namespace": "default", "uid": "the-job"},
                "spec": spec, "status": {"conditions": conditions, "replicaStatuses": {}},
            },
            "started": STARTED_S,
            "pods": pods,
            "services": [named(*task) for task in tasks if self.chance(0.98)],
        }  # fmt: skip

    # Complex: one branch for each drawn field.
    def _spec(self) -> tuple[dict[str, int], dict[str, Any]]:  # noqa: C901
        rng = self.rng
        counts: dict[str, int] = {}
        if self.chance(0.35):
            counts[rng.choice(("Chief", "Master"))] = 1
        if self.chance(0.5):
            counts["PS"] = rng.choice((1, 1, 2))
        if self.chance(0.9) or not counts:
            counts["Worker"] = rng.choice((1, 2, 2, 3))
        if self.chance(0.1):
            counts["Evaluator"] = rng.choice((1, 2))
        spec: dict[str, Any] = {"tfReplicaSpecs": {role: self._replicas(count) for role, count in counts.items()}}
        if self.chance(0.2):
            spec["successPolicy"] = rng.choice(("", "AllWorkers"))
        if self.chance(0.08):
            spec["enableDynamicWorker"] = True
        policy: dict[str, Any] = {}
        if self.chance(0.5):
            policy["cleanPodPolicy"] = rng.choice(("All", "Running", "None"))
        if self.chance(0.25):
            policy["backoffLimit"] = rng.choice((0, 1, 2, 3, 6))
        if self.chance(0.15):
            policy["activeDeadlineSeconds"] = rng.choice((500, 2000))
        if self.chance(0.1):
            policy["suspend"] = True
        return counts, {**spec, "runPolicy": policy}

    def _replicas(self, count: int) -> dict[str, Any]:
        container = {"name": "tensorflow", "image": "x", "resources": {"requests": {"cpu": "1"}}}
        made: dict[str, Any] = {"replicas": count, "template": {"spec": {"containers": [container]}}}
        if self.chance(0.9):
            made["restartPolicy"] = self.rng.choice(POLICIES)
        return made

    def _conditions(self) -> list[dict[str, str]]:
        created = _condition("Created", "True", "Created", "TFJob j is created.")
        running = _condition("Running", "True", "Running", "TFJob default/j is running.")
        restarting = _condition(
            "Restarting", "True", "Restarting", "job j is restarting because Worker replica(s) failed."
        )
        ended = self.rng.choice(
            (
                _condition("Succeeded", "True", "Succeeded", "TFJob default/j successfully completed."),
                _condition(
                    "Failed", "True", "Failed", "TFJob default/j has failed because 1 Worker replica(s) failed."
                ),
            )
        )
        return self.rng.choice(
            (
                *([created], [created], [created, running], [created, running], [created, running]),
                *([created], [created, restarting]),
                [created, {**running, "status": "False"}, ended],
            )
        )

    def _pod(self, role: str, index: int) -> dict[str, Any]:
        rng = self.rng
        phase = rng.choice(("Pending", "Running", "Running", "Running", "Succeeded", "Succeeded", "Failed"))
        container: dict[str, Any] = {
            "name": "tensorflow",
            "image": "x",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
        }
        if phase == "Running":
            container |= {"state": {"running": {}}, "restartCount": rng.choice((0, 0, 0, 0, 1, 2, 5))}
        elif phase == "Succeeded":
            container["state"] = {"terminated": {"exitCode": 0}}
        elif phase == "Failed":
            container["state"] = {"terminated": {"exitCode": rng.choice(CODES)}}
        pod = named(role, index)
        pod["spec"] = {"containers": [{"name": "tensorflow", "image": "x"}]}
        pod["status"] = {"phase": phase} | ({"containerStatuses": [container]} if phase != "Pending" else {})
        if self.chance(0.04):
            pod["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["tests.mews.dev/held"]}
        return pod


def _condition(kind: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": f"TFJob{reason}", "message": message}


def named(role: str, index: int) -> dict[str, Any]:
    """The metadata of a task's pod or service."""
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "j", "uid": "the-job", "controller": True}
    labels = {
        "training.kubeflow.org/job-name": "j",
        "training.kubeflow.org/operator-name": "tfjob-controller",
        "training.kubeflow.org/replica-type": role.lower(),
        "training.kubeflow.org/replica-index": str(index),
    }
    metadata = {
        "name": f"j-{role.lower()}-{index}",
        "namespace": "default",
        "labels": labels,
        "ownerReferences": [owner],
    }
    return {"metadata": metadata}
