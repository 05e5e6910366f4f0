"""The operator as a process of its own, and what kubectl shows of its jobs."""

import asyncio
import os
import shutil
import sys
import urllib.request

import pytest
import yaml

from mews.harness.clusters import open_cluster
from mews.harness.options import RunOptions
from mews.systems.kod2.config import config_of, load_config
from mews.systems.kod2.errors import Kod2ConfigError
from mews.systems.kod2.install import crd
from mews.systems.kod2.metrics import Kod2Counter
from mews.systems.kod2.model import Mode
from tests.systems.kod2.test_operator import cluster_doc, job

KUBECTL = shutil.which("kubectl", path=os.pathsep.join([os.environ.get("KUBEBUILDER_ASSETS", ""), os.environ["PATH"]]))


def test_a_configuration_is_read_and_refused_in_one_line(tmp_path):
    file = tmp_path / "kod2.yaml"
    file.write_text("mode: literal\nstarve_limit_s: 12\n")
    config = load_config(file)
    assert (config.options.mode, config.options.starve_limit_s) == (Mode.LITERAL, 12.0)
    for wrong, message in (
        ({"mode": "both"}, "mode: 'both': must be one of corrected, literal"),
        ({"starve_limit_s": "soon"}, "must be a number of seconds from 0 on"),
        ({"speed": 1}, "speed: unknown option; allowed: scheduling, mode"),
    ):
        with pytest.raises(Kod2ConfigError, match=message):
            config_of(wrong, "here")


def test_the_definition_has_a_state_column_and_a_status_subresource():
    (version,) = crd()["spec"]["versions"]
    assert sorted(version["subresources"]) == ["scale", "status"]
    assert version["additionalPrinterColumns"][0]["jsonPath"] == ".status.elastic.state"


WORDS = {"type", "format", "description", "required", "properties", "additionalProperties", "items", "enum", "minimum",
         "minProperties", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations",
         "x-kubernetes-int-or-string", "anyOf", "pattern"}  # fmt: skip


def test_the_definition_says_nothing_that_an_api_server_would_not_read():
    def walk(schema):
        assert set(schema) <= WORDS
        below = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
        for one in filter(None, below):
            walk(one)

    for version in crd()["spec"]["versions"]:
        walk(version["schema"]["openAPIV3Schema"])
        for column in version["additionalPrinterColumns"]:
            assert set(column) <= {"name", "type", "jsonPath", "description", "priority"}


def test_metrics_for_prometheus_count_what_the_operator_does():
    from prometheus_client import generate_latest

    from mews.systems.kod2.prometheus import Kod2PrometheusMetrics

    metrics = Kod2PrometheusMetrics()
    metrics.count(Kod2Counter.SCALED_IN, 3)
    metrics.states({"STARVING": 2})
    metrics.finished(5.0, 70.0)
    text = generate_latest(metrics.registry).decode()
    assert "kod2_removed_workers_total 3.0" in text
    assert 'kod2_jobs{state="STARVING"} 2.0' in text
    assert "kod2_job_completion_seconds_sum 70.0" in text


def fetch(url):
    with urllib.request.urlopen(url) as reply:
        return reply.read().decode()


async def run(*argv, **env):
    process = await asyncio.create_subprocess_exec(
        *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env={**os.environ, **env}
    )
    output, _ = await process.communicate()
    return output.decode()


@pytest.mark.wall
@pytest.mark.skipif(KUBECTL is None, reason="needs kubectl on PATH or in KUBEBUILDER_ASSETS")
def test_a_person_sees_with_kubectl_what_becomes_of_jobs(tmp_path):
    async def main():
        scenario = cluster_doc()
        without = scenario.model_copy(update={"stack": scenario.stack.model_copy(update={"kod2": None})})
        cluster = await open_cluster(without, RunOptions(time="wall", folder=tmp_path))
        kubeconfig = str(cluster.ready()["kubeconfig"])
        operator = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "mews.systems.kod2", "operator",
            "--kubeconfig", kubeconfig, "--metrics-port", "29871",
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            await shown(kubeconfig, tmp_path)
        finally:
            operator.terminate()
            assert await asyncio.wait_for(operator.wait(), 60) == 0
            await cluster.close()

    async def shown(kubeconfig, folder):
        async def kubectl(*words):
            return await run(KUBECTL, "--kubeconfig", kubeconfig, *words)

        async def shows(words, read):
            async with asyncio.timeout(60):
                while True:
                    text = await read()
                    if all(word in text for word in words):
                        return text
                    await asyncio.sleep(0.5)

        async def until(words, *command):
            return await shows(words, lambda: kubectl(*command))

        await until(["tfjobs"], "api-resources", "--api-group=kubeflow.org")
        huge = job("huge", workers=40, elastic={"minReplicas": 40}, image="mews/gpu-hold")
        holds = job("holds", workers=2, elastic={"maxReplicas": 3}, image="mews/gpu-hold")
        (folder / "jobs.yaml").write_text(yaml.safe_dump_all([huge, holds]))
        await kubectl("apply", "-f", str(folder / "jobs.yaml"))
        table = await until(["RUNNING", "WAITING", "Running"], "get", "tfjobs")
        assert table.splitlines()[0].split() == ["NAME", "STATE", "WORKERS", "WEIGHT", "RESULT", "AGE"]
        assert "holds   RUNNING   3" in table
        told = await until(["LargerThanCluster"], "describe", "tfjob", "huge")
        assert "fit no placement even with no other TFJob running" in told
        url = "http://127.0.0.1:29871/metrics"
        # What kubectl shows is written before it is counted.
        await shows(['kod2_jobs{state="RUNNING"} 1.0'], lambda: asyncio.to_thread(fetch, url))
        refused = await kubectl(
            "patch", "tfjob", "holds", "--type=merge", "-p", '{"spec":{"elasticPolicy":{"minReplicas":0}}}'
        )
        assert "spec.elasticPolicy.minReplicas in body should be greater than or equal to 1" in refused
        await kubectl("scale", "tfjob", "holds", "--replicas=1")
        await until(["holds   RUNNING   1"], "get", "tfjobs")
        beyond = await kubectl("scale", "tfjob", "holds", "--replicas=4")
        assert "can only be set within elasticPolicy's minReplicas and maxReplicas" in beyond

    asyncio.run(main())
