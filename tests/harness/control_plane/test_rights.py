"""What the manifests grant to each component is enough for it: a real API server judges every one of its requests."""

import asyncio
import contextlib

import pytest

from mews.harness.catalogue.files import shipped
from mews.harness.clusters.control_plane.kubernetes import KubernetesControlPlane
from mews.harness.engine import Engine
from mews.harness.manifests.kinds import KINDS
from mews.harness.manifests.rights import rights
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario
from mews.harness.systems import all_systems
from mews.kube.api.errors import ForbiddenError
from mews.kube.api.resources import NAMESPACES, Resource
from mews.kube.client.http import HttpKube
from mews.kube.client.port import Patch

ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
NAMESPACE, PREFIX = "kubecomp", "kubecomp-"

DEPLOYED = {
    each.name: each.deployment for system in all_systems() for each in system.components if each.deployment is not None
}
"""Those that a real cluster can run: what each may do there."""

pytestmark = pytest.mark.wall


class RecordingKube(HttpKube):
    """Writes down what was refused."""

    refused: list[str]

    async def _call(self, method, path, **more):
        with self.written_down(f"{method} {path}"):
            return await super()._call(method, path, **more)

    async def watch(self, resource, **more):
        with self.written_down(f"watch {resource.plural}"):
            async for event in super().watch(resource, **more):
                yield event

    @contextlib.contextmanager
    def written_down(self, what):
        try:
            yield
        except ForbiddenError as error:
            self.refused.append(f"{what}: {error}")
            raise


async def allowed(admin, spec):
    return (await admin.create(ACCESS_REVIEWS, {"metadata": {}, "spec": spec}))["status"]["allowed"]


async def in_effect(admin, account, role):
    """Wait until the authorizer, which watches roles and bindings, knows the last rule of a role."""
    rule = role["rules"][-1]
    asked = {"verb": rule["verbs"][-1], "group": rule["apiGroups"][-1], "namespace": role["metadata"].get("namespace")}
    asked["resource"], _, asked["subresource"] = rule["resources"][-1].partition("/")
    if rule.get("resourceNames"):
        asked["name"] = rule["resourceNames"][-1]
    spec = {"user": f"system:serviceaccount:{NAMESPACE}:{account}", "resourceAttributes": asked}
    async with asyncio.timeout(30):
        while not await allowed(admin, spec):  # noqa: ASYNC110 - the server tells nobody when it knows
            await asyncio.sleep(0.02)


@pytest.fixture
def refused(monkeypatch):
    """What the API server refused to components, which are their service accounts now."""
    told, administrators, opened = [], KubernetesControlPlane.kube, KubernetesControlPlane.open

    def kube(plane, actor):
        account = actor.partition("/")[0]
        if account not in DEPLOYED:
            return administrators(plane, actor)
        identity = plane._servers.identity
        whom = {"Impersonate-User": f"system:serviceaccount:{NAMESPACE}:{account}"}
        made = RecordingKube(plane.url, token=identity.token, ssl=identity.client_context(), headers=whom)
        made.refused = told
        plane._kubes.append(made)
        return made

    async def open_(plane, kubelets, hosts):
        await opened(plane, kubelets, hosts)
        admin = plane.kube("admin")
        await admin.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        made = [(name, obj) for name, each in DEPLOYED.items() for obj in rights(name, each, NAMESPACE, PREFIX)]
        for _, obj in made:
            resource, metadata = KINDS[obj["kind"]], obj["metadata"]
            where = metadata.get("namespace")
            await admin.patch(resource, metadata["name"], obj, kind=Patch.APPLY, namespace=where, force=True)
        for name, obj in made:
            if obj["kind"].endswith("Role"):
                await in_effect(admin, name, obj)

    monkeypatch.setattr(KubernetesControlPlane, "kube", kube)
    monkeypatch.setattr(KubernetesControlPlane, "open", open_)
    return told


@pytest.mark.parametrize("name", ["demo", "20-reconfig-manager-crash", "24-scheduler-restart", "elastic/11-bad-jobs"])
def test_a_component_may_do_all_that_it_does(name, shared, refused):
    scenario = load_scenario(shipped("scenario", name))
    result = Engine(RunOptions("control-plane", "wall", speed=10.0), session=shared).run(scenario).result
    assert refused == []
    assert (result.verdict, result.report) == ("passed", "")
