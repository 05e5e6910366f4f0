"""What CoHDI's programs look for is there before they start, and goes with the scenario."""

import asyncio

import pytest

from mews.harness.clusters.real.first_objects import make_first_objects
from mews.harness.clusters.real.rewriting import Fitting
from mews.harness.clusters.real.rollout import Rollout
from mews.harness.clusters.real.systems import image_book
from mews.harness.errors import RequirementError
from mews.kube.api.errors import ForbiddenError
from mews.kube.api.resources import CRDS, DAEMON_SETS, SECRETS, Resource
from tests.harness.manifests.test_foreign import NODES, read, spec_of

CLUSTER_POLICIES = Resource("nvidia.com", "v1", "clusterpolicies", "ClusterPolicy", namespaced=False)
DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False)


class Api:
    """Takes what is applied, and serves a kind of somebody's once its definition is there."""

    def __init__(self, refuses=""):
        self.applied = []
        self.objects = {}
        self.refuses = refuses

    async def patch(self, resource, name, body, **_):
        if resource.kind == self.refuses:
            raise ForbiddenError("may not")
        self.applied.append((resource.kind, name))
        self.objects[resource.kind, name] = body

    async def get(self, resource, name, **_):
        assert resource == CRDS and ("CustomResourceDefinition", name) in self.objects
        return {"metadata": {"name": name}, "status": {"conditions": [{"type": "Established", "status": "True"}]}}

    async def discovery(self):
        own = [CLUSTER_POLICIES] if any(kind == "CustomResourceDefinition" for kind, _ in self.applied) else []
        return [SECRETS, DAEMON_SETS, DEVICE_CLASSES, *own]


def brought(folder, api):
    scenario, made = read(folder), []
    fit = Fitting(image_book(scenario), "mews:1", NODES, 1.0)
    rollout = Rollout(api, "pool", lambda _: None)
    asyncio.run(make_first_objects(api, rollout, fit, spec_of(scenario), lambda *each: made.append(each)))
    return made


def test_kinds_come_first_and_images_are_those_of_the_cluster(tmp_path):
    api = Api()
    brought(tmp_path, api)
    kinds = [kind for kind, _ in api.applied]
    assert kinds[0] == "CustomResourceDefinition" and kinds[-1] == "DeviceClass"
    pod = api.objects["DaemonSet", "nvidia-driver-daemonset"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == "mews:1"
    assert pod["containers"][0]["command"][-1] == "mews.systems.cohdi.driver_container"


def test_all_of_them_go_with_the_scenario_but_for_namespaces_which_take_nothing_new_while_they_end(tmp_path):
    api = Api()
    made = {(resource.kind, name) for resource, name, _ in brought(tmp_path, api)}
    kept = {"CustomResourceDefinition", "Namespace"}
    assert made == {each for each in api.applied if each[0] not in kept}
    assert ("Secret", "credentials") in made


def test_what_the_cluster_refuses_is_told_in_one_line(tmp_path):
    with pytest.raises(RequirementError, match=r"^Secret composable-dra-secret cannot be applied: [^\n]*may not$"):
        brought(tmp_path, Api("Secret"))
