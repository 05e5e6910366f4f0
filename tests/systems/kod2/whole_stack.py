"""A cell's jobs of the experiment submitted to the whole stack, in virtual time: when did each end?"""

from __future__ import annotations

import asyncio

from mews.harness.clock import run_virtual
from mews.harness.clusters import open_cluster
from mews.kube.api.objects import name_of, seconds
from mews.systems.kod2.experiment.cells import Assumptions, jobs_of
from mews.systems.kod2.experiment.default_scheduler import Scoring
from mews.systems.kod2.experiment.simulation import JobLife
from mews.systems.kod2.install import TFJOBS
from tests.systems.kod2.test_operator import cluster_doc


def elastic_lives(model, batch, seed):
    """The elastic operator's: key -> life."""
    return _lives(jobs_of(model, batch, seed, Assumptions()), cluster_doc(), seed=1)


def baseline_lives(
    model: str, batch: int, seed: int, scoring: Scoring, given: Assumptions | None = None
) -> dict[str, JobLife]:
    """The baseline's, under the default scheduler with that scoring."""
    given = given or Assumptions()
    scenario = cluster_doc({"scoring": scoring.value}, scheduling="tf-operator")
    jobs = jobs_of(model, batch, seed, given)
    return _lives(jobs, scenario, seed=seed, deadline_s=given.deadline_s)


def _lives(jobs, scenario, *, seed, deadline_s=None):
    async def main():
        running = await open_cluster(scenario, seed=seed)
        try:
            return await _submitted(running, jobs, deadline_s)
        finally:
            await running.close()

    return run_virtual(main)


async def _submitted(running, jobs, deadline_s):
    """Submit the jobs as they arrive, and wait until all have ended."""
    loop = asyncio.get_running_loop()
    start_s = loop.time()
    for entry in jobs:
        await asyncio.sleep(max(0.0, start_s + entry.job.arrived_s - loop.time()))
        await running.kube.create(TFJOBS, tfjob_of(entry, deadline_s=deadline_s), namespace="default")
    while True:
        await asyncio.sleep(30)
        found = (await running.kube.list(TFJOBS)).items
        if all(job["status"]["elastic"]["state"] == "COMPLETED" for job in found):
            return {f"default/{name_of(job)}": _life(job) for job in found}


def _life(job):
    elastic = job["status"]["elastic"]
    since_s = seconds(elastic["waitingSince"])
    dead = any((c["type"], c["status"]) == ("Failed", "True") for c in job["status"]["conditions"])
    return JobLife(0.0, ended_s=seconds(elastic["finishedAt"]) - since_s, dead=dead)


def tfjob_of(entry, *, deadline_s=None):
    """The job as a TFJob; one with a deadline has no bounds: nobody scales it."""
    job, shape = entry.job, entry.shape
    names = {"steps": shape.steps, "step-s": shape.step_s, "near-s": shape.near_s, "far-s": shape.far_s}
    notes = {f"mews.dev/train-{k}": repr(v) for k, v in {**names, "server-rate": shape.server_rate}.items()}

    def role(count, ask):
        asks = {"cpu": f"{ask.amounts[0]}m", "memory": str(ask.amounts[1])}
        container = {"name": "tensorflow", "image": "mews/tf-trainer", "resources": {"requests": asks}}
        spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
        return {"replicas": count, "template": {"metadata": {"annotations": notes}, "spec": spec}}

    elastic = {"elasticPolicy": {"minReplicas": job.minimum, "maxReplicas": job.maximum}}
    limited = {"runPolicy": {"activeDeadlineSeconds": int(deadline_s or 0)}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": job.key.partition("/")[2], "namespace": "default"},
        "spec": {
            **(elastic if deadline_s is None else limited),
            "tfReplicaSpecs": {"PS": role(1, job.fixed[0][1]), "Worker": role(job.wanted, job.worker)},
        },
    }
