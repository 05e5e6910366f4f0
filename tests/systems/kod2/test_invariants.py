"""Invariant 9: jobs that hold room and cannot go on."""

import pytest

from mews.harness.invariants.bounds import Bounds
from mews.harness.invariants.invariant import ObservedState
from mews.kube.system.invariant import ClusterObjects
from mews.systems.kod2.invariants import JobProgress
from mews.systems.kod2.podspec import JOB_NAME, REPLICA_TYPE


def task(job, role, number, *, node="host-1"):
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": job, "uid": job, "controller": True}
    name = f"{job}-{role}-{number}"
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "labels": {JOB_NAME: job, REPLICA_TYPE: role},
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": node, "containers": [{"name": "tensorflow"}]},
        "status": {"phase": "Running" if node else "Pending"},
    }


def found(pods, *, until=100, bound_s=60.0):
    """What is told while these pods stay as they are."""
    law, state = JobProgress(), ObservedState(Bounds(systems={"progress_s": bound_s}))
    objects = {pod["metadata"]["name"]: pod for pod in pods}
    return [
        breach.what
        for t in range(0, until, 10)
        for breach in law.on_objects(float(t), ClusterObjects({}, objects, float(t)), state)
    ]


HALF = [task("a", "ps", 0), task("a", "worker", 0, node=""), task("b", "worker", 0), task("b", "ps", 0, node="")]


def test_two_jobs_that_hold_half_of_what_they_need_are_told_once_the_bound_has_passed():
    assert found(HALF, until=70) == []
    assert found(HALF, until=80) == [
        "for 70 s (bound 60 s) jobs hold resources and none can progress: "
        "a (1 pods run, 1 have no node), b (1 pods run, 1 have no node)"
    ]


def test_no_bound_no_judgement():
    assert found(HALF, bound_s=None) == []


@pytest.mark.parametrize(
    "pods",
    [
        [*HALF, task("c", "ps", 0), task("c", "worker", 0)],
        [task("a", "ps", 0, node=""), task("a", "worker", 0, node="")],
        [task("a", "ps", 0), task("a", "worker", 0)],
    ],
    ids=["another job trains", "nobody holds anything", "it trains"],
)
def test_while_somebody_trains_or_nobody_holds_anything_all_is_well(pods):
    assert found(pods) == []
