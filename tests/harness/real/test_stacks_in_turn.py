"""What is applied for one scenario after the other, on a real API server."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from mews.harness.clusters.real.access import Gate
from mews.harness.clusters.real.opening import stack_spec
from mews.harness.clusters.real.replacements import replacement_deployment
from mews.harness.clusters.real.rollout import Rollout
from mews.harness.clusters.real.target import DeploymentTarget
from mews.harness.manifests.stack import manifests
from mews.harness.scenario.hardware import hardware_document, hardware_of
from mews.harness.scenario.loader import load_scenario, parse_scenario
from mews.kube.api.resources import CONFIGMAPS, DAEMON_SETS, DEPLOYMENTS
from tests.harness.real_api import real_api

pytestmark = pytest.mark.wall

DOCS = Path(__file__).parents[3] / "docs" / "bring-your-own"
PLAIN = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: x}\nhardware: demo\n"
IMAGE = (
    f"{PLAIN}stack: {{replace: {{scheduler: {{image: 'mine:1', args: [a]}}, device-manager: {{image: 'mine:1'}}}}}}\n"
)
HOSTS = {f"host-{number}": f"host-{number}" for number in (1, 2, 3)}


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    """A kubeconfig of a real API server."""
    with real_api(tmp_path_factory.mktemp("api")) as path:
        yield path


def objects_of(scenario, place):
    document, _ = hardware_document(scenario)
    replaced = replacement_deployment(scenario, HOSTS)
    hardware = hardware_of(scenario)
    spec = stack_spec(scenario, hardware, document, place, dialect="h3api", token="t", replacements=replaced)
    return manifests(spec)


async def there(kube, namespace):
    """What runs in the namespace and what it reads, without what differs from one creation to the next."""
    found = {}
    for resource in (DEPLOYMENTS, DAEMON_SETS, CONFIGMAPS):
        for obj in (await kube.list(resource, namespace=namespace)).items:
            if obj["metadata"]["name"] != "kube-root-ca.crt":
                content = {key: obj[key] for key in ("data", "binaryData", "spec") if key in obj}
                text = json.dumps(content, indent=1, sort_keys=True).replace(namespace, "NAMESPACE")
                text = re.sub(r"-----BEGIN .*?-----END CERTIFICATE-----", "CERTIFICATE", text)
                found[resource.kind, obj["metadata"]["name"]] = re.sub(r'("mews.dev/reads": )".*"', r"\1", text)
    return found


@pytest.mark.parametrize("name", ["plugin", "processes", "image-and-manifest", "extender", "image"])
def test_from_ours_to_the_users_and_back_nothing_of_either_is_left(name, api):
    brought = parse_scenario(IMAGE, Path("x"), {}) if name == "image" else load_scenario(DOCS / f"{name}.yaml")
    plain = parse_scenario(PLAIN, Path("x"), {})

    async def main():
        fresh = DeploymentTarget(api, None, f"fresh-{name}", "ours:1", HOSTS, prefix=f"fresh-{name}-")
        used = DeploymentTarget(api, None, f"used-{name}", "ours:1", HOSTS, prefix=f"used-{name}-")
        gate = Gate(used)
        kube = gate.kube("test")
        try:
            for scenario in (brought, plain, brought):
                await Rollout(kube, used.namespace, lambda _: None).apply(objects_of(scenario, used))
            await Rollout(kube, fresh.namespace, lambda _: None).apply(objects_of(brought, fresh))
            again, first = await there(kube, used.namespace), await there(kube, fresh.namespace)
            await Rollout(kube, used.namespace, lambda _: None).apply(objects_of(plain, used))
            back = await there(kube, used.namespace)
        finally:
            await gate.close()
        return again, first, back

    again, first, back = asyncio.run(main())
    assert again == first
    assert {kind for kind, _ in back} == {"Deployment", "DaemonSet", "ConfigMap"}
    assert {name for kind, name in back if kind != "ConfigMap"} == {
        "chassis", "scheduler", "reconfig-manager", "device-manager",
    }  # fmt: skip
    configuration = {"mews-hardware", "mews-chassis-ca", "kubecomp-config"}
    assert {name for kind, name in back if kind == "ConfigMap"} == configuration
