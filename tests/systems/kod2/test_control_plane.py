"""Running TFJobs that are edited, scaled by kubectl, suspended and resumed: on the embedded API and on the real one."""

import asyncio
import json

import pytest

from mews.harness.clusters import open_cluster
from mews.harness.clusters.programs.finding import find
from mews.harness.options import RunOptions
from mews.kube.api.objects import condition_of
from mews.kube.api.resources import PODS, SERVICES
from mews.kube.client.port import Patch
from mews.systems.kod2.install import TFJOBS
from tests.systems.kod2.test_operator import cluster_doc, job

pytestmark = [pytest.mark.wall, pytest.mark.skipif(find("kubectl") is None, reason="needs kubectl")]
WITHIN_S = 120.0


class Kubectl:
    """The program, on one cluster, and what it is asked for here."""

    def __init__(self, cluster):
        self._argv = (str(find("kubectl")), "--kubeconfig", str(cluster.ready()["kubeconfig"]))
        self._kube = cluster.kube

    async def __call__(self, *words):
        """The exit code, and what it prints on both streams."""
        pipe, out = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
        process = await asyncio.create_subprocess_exec(*self._argv, *words, stdout=pipe, stderr=out)
        output, _ = await process.communicate()
        return process.returncode, output.decode()

    async def scale(self, count):
        return await self("scale", "tfjob", "j", f"--replicas={count}")

    async def change(self, **spec):
        await self._kube.patch(TFJOBS, "j", {"spec": spec}, kind=Patch.MERGE, namespace="default")

    async def until(self, holds):
        """Wait for what must become true of the job and its pods."""
        async with asyncio.timeout(WITHIN_S):
            while True:
                found = await self._kube.get(TFJOBS, "j", namespace="default")
                pods = (await self._kube.list(PODS, namespace="default")).items
                if found.get("status") and holds(found, {pod["metadata"]["name"]: pod for pod in pods}):
                    return
                await asyncio.sleep(0.3)

    async def workers(self, count):
        """Wait until so many run, and the status says so."""

        def holds(found, pods):
            running = [name for name, pod in pods.items() if pod["status"]["phase"] == "Running"]
            mine = [name for name in running if name.startswith("j-worker-")]
            return len(mine) == count == (found["status"].get("elastic") or {}).get("workers")

        await self.until(holds)


def elastic(found, **fields):
    shown = found["status"].get("elastic") or {}
    return all(shown.get(name) == value for name, value in fields.items())


def is_suspended(found):
    return (condition_of(found, "Suspended") or {}).get("status") == "True"


async def edit_and_scale(cluster):
    kubectl = Kubectl(cluster)
    given = job(workers=2, elastic={"minReplicas": 2, "maxReplicas": 4}, image="mews/gpu-hold")
    await cluster.kube.create(TFJOBS, given, namespace="default")
    await kubectl.workers(4)
    # kubectl scale: Worker replicas, within the bounds alone.
    assert (await kubectl.scale(3))[0] == 0
    await kubectl.workers(3)
    for wrong in (1, 5):
        code, text = await kubectl.scale(wrong)
        assert code != 0 and "can only be set within elasticPolicy's minReplicas and maxReplicas" in text
    # Bounds and replicas of the spec.
    await kubectl.change(elasticPolicy={"maxReplicas": 6}, tfReplicaSpecs={"Worker": {"replicas": 6}})
    await kubectl.workers(6)
    await kubectl.until(lambda found, pods: elastic(found, min=2, max=6))
    listed = {
        name: len(json.loads(env["value"])["cluster"]["worker"])
        for name, pod in {p["metadata"]["name"]: p for p in (await cluster.kube.list(PODS)).items}.items()
        if name.startswith("j-")
        for env in pod["spec"]["containers"][0]["env"]
        if env["name"] == "TF_CONFIG"
    }
    assert (listed["j-worker-0"], listed["j-worker-5"]) == (4, 6)  # those that ran keep theirs
    await kubectl.change(elasticPolicy={"maxReplicas": 3}, tfReplicaSpecs={"Worker": {"replicas": 3}})
    await kubectl.workers(3)
    await kubectl.change(elasticPolicy={"minReplicas": 3})
    await kubectl.until(lambda found, pods: elastic(found, min=3, max=3))
    code, text = await kubectl(
        "patch", "tfjob", "j", "--type=merge", "-p", '{"spec":{"elasticPolicy":{"maxReplicas":0}}}'
    )
    assert code != 0 and "maxReplicas" in text
    # Suspended and resumed.
    await kubectl.change(runPolicy={"suspend": True})
    await kubectl.until(
        lambda found, pods: (condition_of(found, "Suspended") or {}).get("status") == "True" and not pods
    )
    services = (await cluster.kube.list(SERVICES, namespace="default")).items
    assert not [service for service in services if service["metadata"]["name"].startswith("j-")]
    await kubectl.change(runPolicy={"suspend": False})
    await kubectl.workers(3)
    assert not is_suspended(await cluster.kube.get(TFJOBS, "j", namespace="default"))
    assert cluster.crashes() == []


@pytest.mark.parametrize("name", ["embedded", "control-plane"])
def test_a_running_job_follows_edits_kubectl_scale_and_suspension(name, tmp_path):
    if name == "control-plane" and find("kube-apiserver") is None:
        pytest.skip("kube-apiserver is neither in KUBEBUILDER_ASSETS nor on PATH")

    async def main():
        cluster = await open_cluster(cluster_doc(), RunOptions(name, "wall", folder=tmp_path, speed=10))
        try:
            await edit_and_scale(cluster)
        finally:
            await cluster.close()

    asyncio.run(main())
