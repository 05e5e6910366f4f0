"""Public TFJobs as they are: training-operator's own examples (from its module, where Go is there), and three in the
form of tf-operator v1.0's. Their images are the trainer or end after a while."""

import asyncio
from pathlib import Path

import pytest
import yaml

import mews.fixtures
from mews.harness.clock import run_virtual
from mews.harness.clusters import open_cluster
from mews.harness.clusters.programs.finding import find
from mews.harness.options import RunOptions
from mews.harness.scenario.model import Scenario
from mews.kube.api.objects import condition_of
from mews.kube.api.resources import NAMESPACES, NODES, Resource
from mews.systems.kod2.install import TFJOBS
from tests.upstream.building import TRAINING_OPERATOR, NotBuiltError

VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
V1_0 = sorted((Path(__file__).parent / "examples").glob("*.yaml"))
V1_9 = [
    "simple.yaml",
    "dist-mnist/tf_job_mnist.yaml",
    "mnist_with_summaries/tf_job_mnist.yaml",
    "distribution_strategy/multi_worker_tfjob.yaml",
]
TRAINER = {
    "process": [
        "env", "PYTHONPATH={packages}", "OPENBLAS_NUM_THREADS=1", "TRAIN_STEPS=300", "TRAIN_PAUSE_S=0.002",
        "{python}", "-m", "mews.systems.kod2.trainer",
    ],
    "simulate": {"duration_s": float("inf"), "program": "kod2/training"},
}  # fmt: skip
ENDS = {"simulate": {"duration_s": 5, "log": "trained\n"}}
IMAGES = {
    "registry.example.com/*": TRAINER,
    "ghcr.io/kubeflow/training-v1/tf-dist-mnist-test": TRAINER,
    "ghcr.io/kubeflow/training-v1/tf-multi-worker-strategy": TRAINER,
    "ghcr.io/kubeflow/training-v1/tf-mnist-with-summaries": ENDS,  # its command is a file that only the image has
}
GPUS = {"status": {"capacity": {"nvidia.com/gpu": "2"}, "allocatable": {"nvidia.com/gpu": "2"}}}


def scenario():
    hardware = Path(mews.fixtures.__file__).parent / "hardware" / "three-nodes.yaml"
    doc = {"apiVersion": "mews/v1", "kind": "Scenario", "metadata": {"name": "examples"}, "hardware": str(hardware)}
    return Scenario.model_validate(
        doc | {"stack": {"kubecomp": None, "defaultScheduler": None, "kod2": {}}, "images": IMAGES}
    )


def public_jobs():
    """All of them; those of the module only where it can be had."""
    try:
        folder = TRAINING_OPERATOR.source() / "examples" / "tensorflow"
    except NotBuiltError:
        files = V1_0
    else:
        files = [*V1_0, *(folder / name for name in V1_9)]
    return [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]


async def prepared(kube):
    """What the examples count on: a namespace, their volumes, nodes with GPUs."""
    await kube.create(NAMESPACES, {"metadata": {"name": "kubeflow"}})
    for name, namespace in (("tfevent-volume", "kubeflow"), ("strategy-volume", "default")):
        size, modes = {"storage": "1Gi"}, ["ReadWriteMany"]
        claim = {"name": name, "namespace": namespace}
        volume = {"capacity": size, "accessModes": modes, "hostPath": {"path": "/tmp/data"}, "storageClassName": "own"}
        await kube.create(VOLUMES, {"metadata": {"name": name}, "spec": {**volume, "claimRef": claim}})
        spec = {"accessModes": modes, "resources": {"requests": size}, "storageClassName": "own", "volumeName": name}
        await kube.create(CLAIMS, {"metadata": {"name": name}, "spec": spec}, namespace=namespace)
    for node in (await kube.list(NODES)).items:
        await kube.patch(NODES, node["metadata"]["name"], GPUS, subresource="status")


async def succeed(kube, jobs, within_s):
    for job in jobs:
        await kube.create(TFJOBS, job, namespace=job["metadata"].get("namespace", "default"))
    waiting = {(job["metadata"].get("namespace", "default"), job["metadata"]["name"]) for job in jobs}
    try:
        async with asyncio.timeout(within_s):
            while waiting:
                for namespace, name in sorted(waiting):
                    job = await kube.get(TFJOBS, name, namespace=namespace)
                    assert condition_of(job, "Failed") is None, job["status"]
                    if condition_of(job, "Succeeded") is not None:
                        waiting.discard((namespace, name))
                await asyncio.sleep(1)
    except TimeoutError:
        raise AssertionError([await kube.get(TFJOBS, name, namespace=ns) for ns, name in waiting]) from None


async def play(options, within_s):
    cluster = await open_cluster(scenario(), options, seed=1)
    try:
        await prepared(cluster.kube)
        await succeed(cluster.kube, public_jobs(), within_s)
        assert cluster.crashes() == []
    finally:
        await cluster.close()


def test_public_jobs_succeed_in_virtual_time():
    run_virtual(lambda: play(None, 7200.0))


def test_all_four_examples_of_the_module_are_among_them_where_go_is_there():
    try:
        TRAINING_OPERATOR.source()
    except NotBuiltError as error:
        pytest.skip(str(error))
    assert len(public_jobs()) == 7


@pytest.mark.wall
@pytest.mark.parametrize("cluster", ["embedded", "control-plane"])
def test_public_jobs_succeed_with_real_processes(cluster, tmp_path):
    if cluster == "control-plane" and find("kube-apiserver") is None:
        pytest.skip("kube-apiserver is neither in KUBEBUILDER_ASSETS nor on PATH")
    asyncio.run(play(RunOptions(cluster=cluster, time="wall", folder=tmp_path), 240.0))
