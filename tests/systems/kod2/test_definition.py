"""The TFJob definition, and the schema of its pod template."""

import asyncio
import json
import runpy
from pathlib import Path

import pytest
import yaml

from mews.kube.api.errors import InvalidError
from mews.kube.api.resources import CRDS
from mews.systems.kod2.install import TFJOBS, crd, crd_text
from tests.systems.kod2.test_operator import job, on_cluster

ROOT = Path(__file__).parents[3]


def test_the_schema_of_the_template_is_made_from_the_table_of_types():
    made = runpy.run_path(str(ROOT / "ci" / "pod_template_schema.py"))
    assert (ROOT / "systems" / "kod2" / "pod_template.json").read_text() == made["text"]()


def test_what_is_printed_is_what_is_installed():
    assert yaml.safe_load(crd_text()) == crd()
    (version,) = crd()["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    template = spec["tfReplicaSpecs"]["additionalProperties"]["properties"]["template"]
    assert "preserve-unknown-fields" not in json.dumps(template)
    assert len(crd_text()) < 100_000


def test_the_template_is_held_to_its_schema_and_what_pods_have_not_is_dropped():
    async def test(bench):
        for change, place in (
            ({"resources": {"requests": {"cpu": "three"}}}, r"resources.requests.cpu"),
            ({"env": [{"name": "A", "value": 1}]}, r"env\[0\].value"),
            ({"ports": [{"name": "a"}]}, r"ports\[0\].containerPort"),
            ({"image": ["x"]}, r"containers\[0\].image"),
        ):
            wrong = job()
            wrong["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0] |= change
            with pytest.raises(InvalidError, match=place):
                await bench.create(wrong)
        odd = job()
        odd["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["nonsense"] = True
        kept = (await bench.create(odd))["spec"]["tfReplicaSpecs"]["Worker"]["template"]
        assert "nonsense" not in kept["spec"]
        assert kept["metadata"] == {"annotations": {"mews.dev/train-steps": "100"}}

    on_cluster(test)


def test_jobs_of_an_older_definition_are_refused_by_the_operator_itself():
    async def test(bench):
        found = await bench.kube.get(CRDS, "tfjobs.kubeflow.org")
        (version,) = found["spec"]["versions"]
        loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        properties = {"spec": loose, "status": loose}
        schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
        version = {**version, "subresources": {"status": {}}, "schema": schema}
        await bench.kube.replace(CRDS, {**found, "spec": {**found["spec"], "versions": [version]}})
        await asyncio.sleep(5)
        worded = job("worded")
        container = worded["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
        container["resources"] = {"requests": {"cpu": "three"}}
        nothing = {**job("nothing"), "spec": {"tfReplicaSpecs": {"Worker": ["no", "mapping"]}}}
        for wrong in (worded, nothing, {**job("empty"), "spec": {}}, {**job("odd"), "spec": {"runPolicy": 3}}):
            await bench.kube.create(TFJOBS, wrong, namespace="default")
        await bench.create(job("good", elastic={}))
        failed = await bench.until("Failed", "worded")
        assert "Worker.template.spec.containers[0].resources.requests.cpu: 'three'" in failed["message"]
        for name in ("nothing", "empty", "odd"):
            assert (await bench.until("Failed", name))["reason"] == "TFJobFailedValidation"
        await bench.until("Succeeded", "good")

    on_cluster(test)
