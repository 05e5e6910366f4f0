"""The unmodified kube-controller-manager on the embedded API, in place of our controllers."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mews.harness.clusters.programs.finding import find
from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import condition_of, name_of
from mews.kube.api.resources import (
    CONFIGMAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    ENDPOINT_SLICES,
    JOBS,
    NAMESPACES,
    PODS,
    REPLICA_SETS,
    RESOURCE_QUOTAS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from mews.kube.client.port import DeleteOptions
from tests.kube.emulated.apiserver.real_parts import ClusterAdmin, ground, missing, troubles, until
from tests.kube.emulated.controllers.puppet import ENDS, Puppeteer, raise_stage

pytestmark = [
    pytest.mark.wall,
    pytest.mark.skipif(bool(missing("kube-controller-manager")), reason=missing("kube-controller-manager") or "-"),
]

EXCUSED = (
    # Somebody else was faster, or the object went meanwhile: it happens, and is tried again, on any API server.
    "the object has been modified",
    "not found",
    "because it is being terminated",
)
PLACE = "work"


def template(app: str, **annotations: str) -> dict[str, Any]:
    container = {"name": "c", "image": "x:1"}
    return {"metadata": {"labels": {"app": app}, "annotations": annotations}, "spec": {"containers": [container]}}


def workload(app: str, **spec: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": app}}
    return {"metadata": {"name": app}, "spec": {"selector": selector, "template": template(app), **spec}}


def job() -> dict[str, Any]:
    body = template("once", **{ENDS: "Succeeded"})
    body["spec"]["restartPolicy"] = "Never"
    return {"metadata": {"name": "once"}, "spec": {"completions": 2, "parallelism": 2, "template": body}}


async def furnish(on: ClusterAdmin) -> None:
    kube = on.kube
    await raise_stage(kube, on.clock)
    await kube.create(NAMESPACES, {"metadata": {"name": PLACE}})
    await kube.create(DEPLOYMENTS, workload("web", replicas=3), namespace=PLACE)
    await kube.create(DAEMON_SETS, workload("everywhere"), namespace=PLACE)
    await kube.create(JOBS, job(), namespace=PLACE)
    service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
    await kube.create(SERVICES, service, namespace=PLACE)
    budget = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
    await kube.create(DISRUPTION_BUDGETS, {"metadata": {"name": "web"}, "spec": budget}, namespace=PLACE)
    quota = {"metadata": {"name": "all"}, "spec": {"hard": {"pods": "20"}}}
    await kube.create(RESOURCE_QUOTAS, quota, namespace=PLACE)
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "nobody", "uid": "6f5b7c6e-0000-4000-8000-000000000000"}
    dangling = {"metadata": {"name": "dangling", "ownerReferences": [reference]}}
    await kube.create(CONFIGMAPS, dangling, namespace=PLACE)


# Complex: one block for each controller.
async def works(on: ClusterAdmin) -> None:  # noqa: C901
    kube = on.kube

    async def status(resource: Any, name: str) -> Any:
        return (await kube.get(resource, name, namespace=PLACE)).get("status") or {}

    async def rolled_out() -> bool:
        return (await status(DEPLOYMENTS, "web")).get("availableReplicas") == 3

    async def everywhere() -> bool:
        return (await status(DAEMON_SETS, "everywhere")).get("numberReady") == 1

    async def ended() -> bool:
        return condition_of(await kube.get(JOBS, "once", namespace=PLACE), "Complete") is not None

    async def reachable() -> bool:
        slices = (await kube.list(ENDPOINT_SLICES, namespace=PLACE)).items
        return sum(len(found.get("endpoints") or ()) for found in slices) == 3

    async def budgeted() -> bool:
        return (await status(DISRUPTION_BUDGETS, "web")).get("disruptionsAllowed") == 1

    async def counted() -> bool:
        return "pods" in (await status(RESOURCE_QUOTAS, "all")).get("used", {})

    async def collected() -> bool:
        return "dangling" not in [name_of(found) for found in (await kube.list(CONFIGMAPS, namespace=PLACE)).items]

    async def account() -> bool:
        return [name_of(found) for found in (await kube.list(SERVICE_ACCOUNTS, namespace=PLACE)).items] == ["default"]

    for check in (rolled_out, everywhere, ended, reachable, budgeted, counted, collected, account):
        await until(check, check.__name__)


async def rolls_back(on: ClusterAdmin) -> None:
    kube = on.kube
    change = {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 1}}}}
    await kube.patch(DEPLOYMENTS, "web", change, namespace=PLACE)

    async def sizes() -> list[int]:
        return sorted(rs["status"].get("availableReplicas", 0) for rs in (await kube.list(REPLICA_SETS)).items)

    async def shifted() -> bool:
        return await sizes() == [0, 3]

    await until(shifted, "the new ReplicaSet has taken over")
    kubectl = find("kubectl")
    if kubectl is not None:
        argv = [kubectl, f"--kubeconfig={on.kubeconfig}", "-n", PLACE, "rollout", "undo", "deployment/web"]
        done = await asyncio.to_thread(subprocess.run, argv, capture_output=True, text=True, timeout=60)
        assert done.stdout == "deployment.apps/web rolled back\n", done.stderr

        async def back() -> bool:
            newest = max((await kube.list(REPLICA_SETS)).items, key=_revision)
            return _revision(newest) == 3 and newest["status"].get("availableReplicas") == 3

        await until(back, "the old ReplicaSet has taken over again")


def _revision(replica_set: Any) -> int:
    return int(replica_set["metadata"]["annotations"]["deployment.kubernetes.io/revision"])


async def ends(on: ClusterAdmin) -> None:
    """First what a Deployment owns goes with it, then a namespace with all that is in it."""
    kube = on.kube
    await kube.delete(DEPLOYMENTS, "web", namespace=PLACE, options=DeleteOptions(propagation="Foreground"))

    async def cleared() -> bool:
        left = (await kube.list(PODS, namespace=PLACE, label_selector="app=web")).items
        return not left and not (await kube.list(REPLICA_SETS, namespace=PLACE)).items

    await until(cleared, "what the Deployment owned is gone")
    await kube.delete(NAMESPACES, PLACE)

    async def gone() -> bool:
        try:
            await kube.get(NAMESPACES, PLACE)
        except NotFoundError:
            return True
        return False

    await until(gone, "the namespace is gone")


def test_kube_controller_manager_works_here_and_finds_nothing_wrong(tmp_path: Path) -> None:
    async def main() -> None:
        async with ground(tmp_path) as on:
            program = on.plane.program("controller-manager", {"program": "kube-controller-manager"})
            puppeteer = asyncio.create_task(Puppeteer(on.kube, on.clock).run())
            async with on.running(program):
                await furnish(on)
                await works(on)
                await rolls_back(on)
                await ends(on)
            puppeteer.cancel()
            await asyncio.gather(puppeteer, return_exceptions=True)
        assert troubles(tmp_path / "controller-manager.log", excused=EXCUSED) == []

    asyncio.run(main())
