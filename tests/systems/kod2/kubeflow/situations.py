"""Situations of training-operator's own unit tables (v1.9.3) as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Counts = Mapping[str, tuple[int, int, int]]
"""Role -> how many of its pods have failed, succeeded, and run."""

STATUSES: Mapping[str, tuple[Mapping[str, int], Counts, str]] = {
    "the chief has succeeded": ({"Chief": 1, "Worker": 1}, {"Chief": (0, 1, 0), "Worker": (0, 1, 0)}, "Succeeded"),
    "the chief runs": ({"Chief": 1, "Worker": 1}, {"Chief": (0, 0, 1)}, "Running"),
    "the chief has failed": ({"Chief": 1, "Worker": 1}, {"Chief": (1, 0, 0)}, "Failed"),
    "a worker has failed": ({"Worker": 1}, {"Worker": (1, 0, 0)}, "Failed"),
    "a worker has succeeded": ({"Worker": 1}, {"Worker": (0, 1, 0)}, "Succeeded"),
    "a worker runs": ({"Worker": 1}, {"Worker": (0, 0, 1)}, "Running"),
    "two workers run, two have failed": (
        {"Worker": 4, "PS": 2}, {"PS": (0, 0, 2), "Worker": (2, 0, 2)}, "Failed",
    ),
    "worker-0 has succeeded, three run": (
        {"Worker": 4, "PS": 2}, {"PS": (0, 0, 2), "Worker": (0, 1, 3)}, "Succeeded",
    ),
    "the chief runs, workers have failed": (
        {"Chief": 1, "Worker": 4, "PS": 2}, {"Chief": (0, 0, 1), "PS": (0, 0, 2), "Worker": (4, 0, 0)}, "Running",
    ),
    "the chief runs, workers have succeeded": (
        {"Chief": 1, "Worker": 4, "PS": 2}, {"Chief": (0, 0, 1), "PS": (0, 0, 2), "Worker": (0, 4, 0)}, "Running",
    ),
    "the chief runs, a server has failed": (
        {"Chief": 1, "Worker": 4, "PS": 2}, {"Chief": (0, 0, 1), "PS": (1, 0, 1), "Worker": (0, 4, 0)}, "Failed",
    ),
    "the chief has failed, workers have succeeded": (
        {"Chief": 1, "Worker": 4, "PS": 2}, {"Chief": (1, 0, 0), "PS": (0, 0, 2), "Worker": (0, 4, 0)}, "Failed",
    ),
    "the chief has succeeded, workers have failed": (
        {"Chief": 1, "Worker": 4, "PS": 2}, {"Chief": (0, 1, 0), "PS": (0, 0, 2), "Worker": (4, 0, 0)}, "Succeeded",
    ),
}  # fmt: skip
"""pkg/controller.v1/tensorflow/status_test.go: replicas, pods, and a condition that is then there. Worker-0 is among
those that have succeeded, but for ``LATER``."""
LATER: Mapping[str, tuple[Mapping[str, int], Counts, str]] = {
    "two workers have succeeded, two have failed": (
        {"Worker": 4, "PS": 2}, {"PS": (0, 0, 2), "Worker": (2, 2, 0)}, "Failed",
    ),
    "two workers have succeeded, two run": (
        {"Worker": 4, "PS": 2}, {"PS": (0, 0, 2), "Worker": (0, 2, 2)}, "Running",
    ),
}  # fmt: skip
ALL_WORKERS: Mapping[str, tuple[Mapping[str, int], Counts, str]] = {
    "all workers: worker-0 has succeeded, three run": ({"Worker": 4}, {"Worker": (0, 1, 3)}, "Running"),
    "all workers: four have succeeded": ({"Worker": 4}, {"Worker": (0, 4, 0)}, "Succeeded"),
    "all workers: one has failed": ({"Worker": 4}, {"Worker": (1, 1, 2)}, "Failed"),
}
"""With ``successPolicy: AllWorkers``."""

COMPLETED: tuple[tuple[Mapping[str, int], Counts, bool], ...] = (
    ({"Worker": 1, "PS": 1}, {"Worker": (0, 0, 1)}, False),
    ({"Worker": 1}, {"Worker": (0, 1, 0)}, True),
    ({"Worker": 2}, {"Worker": (1, 1, 0)}, True),
    ({"Worker": 2}, {"Worker": (1, 0, 1)}, False),
)
"""pod_test.go, whether worker-0 has completed, and with it the job; the two situations without workers say nothing of a
worker."""

RETRYABLE: tuple[tuple[int, bool], ...] = ((1, False), (2, False), (3, False), (130, True), (138, True))
"""pkg/util/train/train_util_test.go."""
RESTARTS: tuple[tuple[str, str], ...] = (
    ("ExitCode", "Never"), ("Never", "Never"), ("Always", "Always"), ("OnFailure", "OnFailure"),
)  # fmt: skip
"""pkg/controller.v1/common/pod_test.go: the pod's own restart policy."""
SUSPENDED: tuple[tuple[Mapping[str, Any], bool], ...] = (
    ({}, False), ({"suspend": None}, False), ({"suspend": False}, False), ({"suspend": True}, True),
)  # fmt: skip
BACKOFF: tuple[tuple[int, tuple[int, ...], bool], ...] = ((0, (0,), False), (3, (0, 3), True))
"""common/job_test.go: the limit, restarts of pods that run, whether it is reached."""
DEADLINES: tuple[tuple[int, int, bool], ...] = ((0, 0, True), (2, 0, False))
"""Deadline, seconds since the start, whether it is over."""
MANAGED: tuple[tuple[str | None, bool], ...] = (
    (None, False), ("kubeflow.org/training-operator", False), ("kueue.x-k8s.io/multikueue", True),
    ("other-job-controller", True),
)  # fmt: skip
"""Whether somebody else sees to it."""

CLEANED: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Running", "Succeeded", ("Succeeded",)),
    ("All", "Succeeded", ()),
    ("None", "Failed", ("Running", "Succeeded")),
    ("Running", "Suspended", ()),
    ("None", "Suspended", ()),
)
"""common/job_test.go: policy, state of the job, and which of a running and a succeeded pod stay with their services."""
KEPT: tuple[tuple[str, str, int], ...] = (
    ("All", "Running", 0), ("Running", "Running", 0), ("Running", "Succeeded", 6), ("None", "Succeeded", 6),
)  # fmt: skip
"""tensorflow/job_test.go: the policy, what all of four workers and two servers are, how many pods and services stay."""

DISTRIBUTED: tuple[tuple[Mapping[str, int], bool], ...] = (
    ({"Worker": 1}, False), ({"Worker": 1, "PS": 1}, True), ({"PS": 1}, False), ({"Chief": 1, "Worker": 1}, True),
)  # fmt: skip
TF_CONFIGS: tuple[tuple[Mapping[str, int], str, str, Any], ...] = (
    ({"Worker": 1}, "ns0", "", None),
    ({"Worker": 1}, "ns1", "tf.training.com", None),
    ({"Worker": 1, "PS": 1}, "ns2", "tf.training.org", ("ps", "worker")),
    ({"Worker": 1, "PS": 1, "Evaluator": 1}, "ns3", "tf.training.io", ("evaluator", "ps", "worker")),
    ({"Worker": 1, "PS": 1, "Evaluator": 1}, "ns3", "", ("evaluator", "ps", "worker")),
)
"""tensorflow/pod_test.go: replicas, namespace, domain; roles in TF_CONFIG, None where there is none."""

INVALID: Mapping[str, tuple[Mapping[str, Any], bool]] = {
    "a good job": ({"Worker": [{"name": "tensorflow", "image": "x"}]}, True),
    "no containers": ({"Worker": []}, False),
    "no image": ({"Worker": [{"name": "tensorflow", "image": ""}]}, False),
    "no container of that name": ({"Worker": [{"name": "", "image": "x"}]}, False),
    "a chief and a master": (
        {"Chief": [{"name": "tensorflow", "image": "x"}], "Master": [{"name": "tensorflow", "image": "x"}]},
        False,
    ),
}
"""pkg/webhooks/tensorflow/tfjob_webhook_test.go: containers by role, and whether the job is valid."""

NOT_EQUAL: Mapping[str, str] = {
    "no cleanPodPolicy": "Running, as v1.0 had it: servers of ended jobs would hold room for ever (docs/kod2.md)",
}
"""Situations in which ours decides otherwise, and why."""
