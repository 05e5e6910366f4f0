"""A live session in virtual time: steps by hand, then a question."""

import asyncio

from mews.harness.catalogue.files import shipped
from mews.harness.clock import run_virtual
from mews.harness.clusters import open_cluster
from mews.harness.live.session import LiveSession
from mews.harness.live.step_answer import StepAnswer
from mews.harness.scenario.loader import parse_scenario

HEAD = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: live}\n"


def scenario_of(text="hardware: demo\n"):
    return parse_scenario(HEAD + text, shipped("hardware", "demo").parent / "live.yaml")


def in_session(play, text="hardware: demo\n"):
    """What ``await play(session)`` comes to."""

    async def main():
        scenario = scenario_of(text)
        cluster = await open_cluster(scenario, seed=1)
        cluster.kube._store.keeps_owners = True  # as a served API has them
        session = LiveSession("live", scenario, cluster)
        try:
            await session.start()
            session.announced()
            return await play(session)
        finally:
            await session.close()
            await cluster.close()

    return run_virtual(main)


def explained(steps, pod, *, after_s=20.0, text="hardware: demo\n"):
    """The explanation of a pod that long after the steps; each must pass."""

    async def play(session):
        for step in steps:
            assert await session.perform(step) == StepAnswer()
        await asyncio.sleep(after_s)
        return await session.explain("default", pod)

    return in_session(play, text)


def a_pod(name, gpus=0, scheduler="kubecomp-scheduler", **spec):
    limits = {"falcon.com/gpu": str(gpus)} if gpus else {}
    container = {"name": "main", "image": "mews/gpu-hold", "resources": {"limits": limits}}
    spec = {"schedulerName": scheduler, "terminationGracePeriodSeconds": 1, "containers": [container], **spec}
    return {"kind": "Pod", "metadata": {"name": name}, "spec": spec}


def a_deployment(name):
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "mews/gpu-hold"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
