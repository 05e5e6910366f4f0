"""Kubeflow's training-operator, unmodified, in the place of our operator; and what each of the two makes of a job."""

import asyncio

import pytest
import yaml

from mews.harness.clusters.programs.finding import find
from mews.kube.client.http import HttpKube
from tests.upstream import building, tfjobs
from tests.upstream.building import NotBuiltError
from tests.upstream.tfjobs import CASES
from tests.upstream.up import cluster

pytestmark = pytest.mark.upstream

MORE = {"TFJobCreated", "TFJobRunning"}
"""Events of ours that training-operator has not."""


def had(make):
    """What can be built here; else the test is skipped with the reason."""
    try:
        return make()
    except NotBuiltError as error:
        pytest.skip(str(error))


def scenario(folder, **stack):
    """A file for ``mews up``."""
    doc = {
        "apiVersion": "mews/v1",
        "kind": "Scenario",
        "metadata": {"name": "training-operator"},
        "hardware": "three-nodes",
        "stack": {"kubecomp": None, "defaultScheduler": {}, **stack},
        "images": tfjobs.images(folder),
        "steps": [{"sleep": "1s"}],
    }
    file = folder / "scenario.yaml"
    file.write_text(yaml.safe_dump(doc), encoding="utf-8")
    return ["--scenario", str(file)]


def theirs(folder, on):
    program, module = had(building.TRAINING_OPERATOR.built) / "manager", had(building.TRAINING_OPERATOR.source)
    start = folder / "start"
    argv = [
        str(program), "--kubeconfig", "{kubeconfig}", "--enable-scheme=tfjob", "--metrics-bind-address=0",
        "--health-probe-bind-address=0", "--webhook-server-port=19443",
    ]  # fmt: skip
    waiting = f'while [ ! -e "{start}" ]; do sleep 0.1; done; exec "$@"'
    operator = {"process": ["sh", "-c", waiting, "sh", *argv]}
    options = scenario(folder, kod2={}, replace={"kod2": {"operator": operator}})

    async def main(kubeconfig):
        kube = HttpKube.from_kubeconfig(kubeconfig, None)
        try:
            await tfjobs.install(kube, module / "manifests")
            await asyncio.to_thread(start.touch)
            await tfjobs.mount(kube)
            return await tfjobs.stories(kube)
        finally:
            await kube.close()

    with tfjobs.certificates(), cluster([*options, *on]) as ready:
        return asyncio.run(main(ready["kubeconfig"]))


def ours(folder, on):
    given = {"scheduling": "tf-operator", "clean_pod_policy": "None", "default_cpu": "", "default_memory": ""}

    async def main(kubeconfig):
        kube = HttpKube.from_kubeconfig(kubeconfig, None)
        try:
            return await tfjobs.stories(kube)
        finally:
            await kube.close()

    with cluster([*scenario(folder, kod2=given), *on]) as ready:
        return asyncio.run(main(ready["kubeconfig"]))


@pytest.fixture(scope="module", params=["embedded", "control-plane"])
def both(request, tmp_path_factory):
    """What training-operator made of the jobs, and what ours did."""
    if request.param == "control-plane" and find("kube-apiserver") is None:
        pytest.skip("kube-apiserver is neither in KUBEBUILDER_ASSETS nor on PATH")
    on = ["--cluster", request.param]
    return theirs(tmp_path_factory.mktemp("theirs"), on), ours(tmp_path_factory.mktemp("ours"), on)


@pytest.mark.parametrize("name", CASES)
def test_a_job_has_the_same_conditions_pods_services_and_events_with_both_operators(both, name):
    wanted, found = both[0][name], both[1][name]
    assert found.conditions == wanted.conditions
    assert found.replicas == wanted.replicas
    assert found.pods == wanted.pods
    assert found.services == wanted.services
    assert found.events - wanted.events == {event for event in found.events if event[1] in MORE}
    assert wanted.events - found.events == set()


def test_the_comparison_sees_jobs_succeed_fail_wait_and_go(both):
    last = {name: sight.conditions[-1][0] if sight.conditions else "" for name, sight in both[0].items()}
    assert {"Succeeded", "Failed", "Suspended", "Running", "Created", ""} <= set(last.values())
    assert both[0]["ttl"].pods == {} and both[0]["others"].pods == {}
