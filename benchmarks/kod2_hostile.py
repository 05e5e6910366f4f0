"""TFJobs made to break the elastic operator, a good one behind each: do all of the good ones end?

``python -m benchmarks.kod2_hostile [--cluster control-plane] [--speed 20]``: without a cluster named, the embedded one
in virtual time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mews.fixtures
from benchmarks.common import progress, report
from mews.harness.clock import run_virtual
from mews.harness.clusters import open_cluster
from mews.harness.options import RunOptions
from mews.harness.scenario.model import Scenario
from mews.kube.api.errors import ApiError, ConflictError
from mews.kube.api.objects import condition_of
from mews.kube.api.resources import NAMESPACES, PODS, RESOURCE_QUOTAS
from mews.kube.client.port import KubeApi
from mews.kube.clock import rest
from mews.systems.kod2.install import TFJOBS

Job = dict[str, Any]
QUOTA, RESTRICTED = "quota", "restricted"
WITHIN_S = 1800.0
_HEAD_START_S = 1.0


def tfjob(name: str, *, workers: int, cpu: str, steps: int = 60, namespace: str = "default") -> Job:
    """Return a job with one server of a core, and so many workers at the least and at the most."""

    def role(count: int, cores: str) -> Job:
        container = {
            "name": "tensorflow",
            "image": "mews/tf-trainer",
            "resources": {"requests": {"cpu": cores, "memory": "1Gi"}},
        }
        template = {
            "metadata": {"annotations": {"mews.dev/train-steps": str(steps)}},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
        }
        return {"replicas": count, "restartPolicy": "OnFailure", "template": template}

    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "elasticPolicy": {"minReplicas": workers, "maxReplicas": workers},
            "tfReplicaSpecs": {"PS": role(1, "1"), "Worker": role(workers, cpu)},
        },
    }


def _workers(job: Job) -> Job:
    found: Job = job["spec"]["tfReplicaSpecs"]["Worker"]
    return found


def _pod(job: Job) -> Job:
    found: Job = _workers(job)["template"]["spec"]
    return found


def _container(job: Job) -> Job:
    found: Job = _pod(job)["containers"][0]
    return found


def _annotated(job: Job, key: str, value: str) -> None:
    _workers(job)["template"]["metadata"]["annotations"][key] = value


Change = Callable[[Job], Any]

HOSTILE: dict[str, Change] = {
    "a word for a quantity": lambda j: _container(j)["resources"]["requests"].update(cpu="three"),
    "a quantity below zero": lambda j: _container(j)["resources"]["requests"].update(cpu="-8"),
    "a quantity without end": lambda j: _container(j)["resources"]["requests"].update(memory="1e999999"),
    "limits below requests": lambda j: _container(j)["resources"].update(limits={"cpu": "1"}),
    "half a device": lambda j: _container(j)["resources"]["requests"].update({"nvidia.com/gpu": "0.5"}),
    "an unknown pull policy": lambda j: _container(j).update(imagePullPolicy="Sometimes"),
    "a mount without its volume": lambda j: _container(j).update(volumeMounts=[{"name": "gone", "mountPath": "/x"}]),
    "a volume twice": lambda j: _pod(j).update(volumes=[{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]),
    "a volume of two kinds": lambda j: _pod(j).update(
        volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]
    ),
    "a container twice": lambda j: _pod(j)["containers"].append(dict(_container(j))),
    "a name with dots": lambda j: j["metadata"].update(name="has.dots"),
    "a name with a digit first": lambda j: j["metadata"].update(name="1st"),
    "a name too long for its services": lambda j: j["metadata"].update(name="n" * 60),
    "an environment entry without a name": lambda j: _container(j).update(env=[{"name": "", "value": "x"}]),
    "an environment entry of two sources": lambda j: _container(j).update(
        env=[{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    ),
    "a port out of range": lambda j: _container(j).update(ports=[{"containerPort": 70000}]),
    "a port's name twice": lambda j: _container(j).update(
        ports=[{"name": "a", "containerPort": 1}, {"name": "a", "containerPort": 2}]
    ),
    "an unknown DNS policy": lambda j: _pod(j).update(dnsPolicy="Mine"),
    "a label that is none": lambda j: _workers(j)["template"]["metadata"].update(labels={"a": "not a value!"}),
    "a huge annotation": lambda j: _annotated(j, "huge", "x" * 300_000),
    "an unknown toleration": lambda j: _pod(j).update(tolerations=[{"key": "a", "operator": "Never"}]),
    "an unknown affinity": lambda j: _pod(j).update(
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Likes", "values": ["b"]}]}]
                }
            }
        }
    ),
    "a user below zero": lambda j: _pod(j).update(securityContext={"runAsUser": -1}),
    "a probe of two kinds": lambda j: _container(j).update(
        livenessProbe={"tcpSocket": {"port": 1}, "exec": {"command": ["true"]}}
    ),
    "no such account": lambda j: _pod(j).update(serviceAccountName="nobody"),
    "no such priority": lambda j: _pod(j).update(priorityClassName="highest"),
    "no such runtime": lambda j: _pod(j).update(runtimeClassName="none"),
    "forbidden by a quota": lambda j: j["metadata"].update(namespace=QUOTA),
    "forbidden by pod security": lambda j: j["metadata"].update(namespace=RESTRICTED),
    "somebody's pod has its name": lambda j: j["metadata"].update(name="squatter"),
    "two thousand million servers": lambda j: j["spec"]["tfReplicaSpecs"]["PS"].update(replicas=2**31 - 1),
    "two thousand million workers": lambda j: j["spec"]["elasticPolicy"].update(maxReplicas=2**31 - 1),
    "an unknown role": lambda j: j["spec"]["tfReplicaSpecs"].update(Boss=j["spec"]["tfReplicaSpecs"]["PS"]),
    "a chief and a master": lambda j: j["spec"]["tfReplicaSpecs"].update(
        Chief=j["spec"]["tfReplicaSpecs"]["PS"], Master=j["spec"]["tfReplicaSpecs"]["PS"]
    ),
    "every worker wants the same port of its node": lambda j: [
        _container(j).update(ports=[{"containerPort": 9, "hostPort": 9}]),
        _workers(j).update(replicas=6),
        j["spec"]["elasticPolicy"].update(minReplicas=6, maxReplicas=6),
        _container(j)["resources"]["requests"].update(cpu="4"),
    ],
}
"""What is wrong, and how a job comes to be so."""


def hostile(number: int, change: Change) -> Job:
    """Return a job that holds three nodes of ten cores as long as it is thought to run, and would end some day if it
    did."""
    job = tfjob(f"hostile-{number}", workers=3, cpu="8", steps=300)
    change(job)
    return job


def good(number: int) -> Job:
    """Return a job that fits beside no hostile one."""
    return tfjob(f"good-{number}", workers=1, cpu="6")


def scenario() -> Scenario:
    """Return the paper's cluster, with the elastic operator."""
    return Scenario.model_validate(
        {
            "apiVersion": "mews/v1",
            "kind": "Scenario",
            "metadata": {"name": "hostile"},
            "hardware": str(Path(mews.fixtures.__file__).parent / "hardware" / "three-nodes.yaml"),
            "stack": {"kubecomp": None, "defaultScheduler": None, "kod2": {}},
        }
    )


async def prepare(kube: KubeApi) -> None:
    """A namespace with a quota, one with a strict standard, and a pod in the way."""
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    for name, labels in ((QUOTA, {}), (RESTRICTED, restricted)):
        await kube.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
    quota = {"metadata": {"name": "little"}, "spec": {"hard": {"requests.cpu": "2"}}}
    made = await kube.create(RESOURCE_QUOTAS, quota, namespace=QUOTA)
    counted = {**made, "status": {"hard": quota["spec"]["hard"], "used": {"requests.cpu": "0"}}}
    with contextlib.suppress(ConflictError):  # where a controller runs it has counted already
        await kube.replace(RESOURCE_QUOTAS, counted, namespace=QUOTA, subresource="status")
    container = {"name": "c", "image": "mews/idle"}
    await kube.create(
        PODS, {"metadata": {"name": "squatter-ps-0"}, "spec": {"containers": [container]}}, namespace="default"
    )


async def run(kube: KubeApi, changes: dict[str, Change], *, within_s: float = WITHIN_S) -> dict[str, str]:
    """Return each hostile job, a good one behind it: what became of each hostile one by then. Raises TimeoutError where
    a good one does not end."""
    await prepare(kube)
    found: dict[str, str] = {}
    for number, (name, change) in enumerate(changes.items()):
        job = hostile(number, change)
        namespace = job["metadata"]["namespace"]
        try:
            await kube.create(TFJOBS, job, namespace=namespace)
        except ApiError as error:
            found[name] = f"refused by the API: {error.message}"
        await asyncio.sleep(_HEAD_START_S)
        await kube.create(TFJOBS, good(number), namespace="default")
        try:
            async with asyncio.timeout(within_s):
                await succeeded(kube, f"good-{number}")
        except TimeoutError:
            shown = (await kube.get(TFJOBS, job["metadata"]["name"], namespace=namespace)).get("status")
            raise TimeoutError(f"{name}: the good job behind it does not end: {shown}") from None
        if name not in found:
            found[name] = _shown(await kube.get(TFJOBS, job["metadata"]["name"], namespace=namespace))
    return found


async def succeeded(kube: KubeApi, name: str) -> None:
    """Wait until that job has."""
    while not _holds(await kube.get(TFJOBS, name, namespace="default"), "Succeeded"):
        await rest(0.5)


def _holds(tfjob: Job, kind: str) -> bool:
    return (condition_of(tfjob, kind) or {}).get("status") == "True"


def _shown(tfjob: Job) -> str:
    for kind in ("Failed", "Stalled"):
        found = condition_of(tfjob, kind)
        if found is not None and found["status"] == "True":
            return f"{kind}: {found['reason']}: {found['message']}"
    return ""


def main() -> None:
    """Prints what became of each; 1 job per line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cluster", default="embedded")
    parser.add_argument("--speed", type=float, default=20.0)
    options = parser.parse_args()
    found: dict[str, str] = {}

    async def work() -> None:
        wall = options.cluster != "embedded"
        chosen = RunOptions(options.cluster, "wall", speed=options.speed) if wall else RunOptions()
        cluster = await open_cluster(scenario(), chosen)
        try:
            found.update(await run(cluster.kube, HOSTILE))
        finally:
            await cluster.close()

    if options.cluster == "embedded":
        run_virtual(work)
    else:
        asyncio.run(work())
    for name, what in found.items():
        progress(f"{name}: {what[:160]}")
    report("kod2_hostile_good_jobs_ended", len(HOSTILE), f"of {len(HOSTILE)}")


if __name__ == "__main__":
    main()
