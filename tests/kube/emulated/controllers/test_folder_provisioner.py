"""Claims get folders: the provisioner with our scheduler and controllers, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.clusters.embedded.volume_folders import VolumeFolders
from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import Object, annotations_of, name_of, node_name_of, uid_of
from mews.kube.api.resources import (
    EVENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
)
from mews.kube.api.volumes import PROVISIONED_BY, PROVISIONERS, SELECTED_NODE
from mews.kube.client.port import Patch
from mews.kube.clock import Pace, stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.controllers.folder_provisioner import (
    CLASS,
    PROVISIONER,
    FolderProvisioner,
    make_default_class,
    refusal,
)
from mews.kube.emulated.controllers.manager import ControllerManager
from mews.kube.scheduling.config import SchedulerConfig
from mews.kube.scheduling.scheduler import Scheduler
from tests.kube.emulated.controllers.puppet import Puppeteer, raise_stage
from tests.kube.emulated.controllers.telling import RUN
from tests.kube.scheduling.world import default_profile

CLAIM: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
ROOT = PurePosixPath("/session/volumes")


class Folders:
    """Notes what is made and removed."""

    root = ROOT

    def __init__(self) -> None:
        self.there: set[PurePosixPath] = set()

    async def make(self, path: PurePosixPath) -> None:
        self.there.add(path)

    async def remove(self, path: PurePosixPath) -> None:
        self.there.discard(path)


class Ground:
    """Two nodes, ``east`` and ``west``, and the default class."""

    def __init__(self) -> None:
        self.clock, self.folders = virtual_clock(), Folders()
        self.kube = InProcessKube(fresh_store(self.clock.now, stream(1, "store"), attended=True))

    def context(self, name: str) -> Context:
        return Context(self.kube, self.clock, stream(1, name), logging.getLogger(name))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        for name in ("east", "west"):
            await raise_stage(self.kube, self.clock, name=name)
        await make_default_class(self.kube)
        await make_default_class(self.kube)
        parts = (
            ControllerManager(self.context("controllers"), Pace(), controllers=RUN),
            Scheduler(self.context("scheduler"), SchedulerConfig((default_profile(),))),
            FolderProvisioner(self.context("provisioner"), self.folders),
            Puppeteer(self.kube, self.clock, binds=False),
        )
        tasks = [asyncio.create_task(part.run()) for part in parts]
        await asyncio.sleep(1.0)
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def claim(self, name: str, **spec: Any) -> Object:
        body = {"metadata": {"name": name}, "spec": {**CLAIM, **spec}}
        return await self.kube.create(PERSISTENT_VOLUME_CLAIMS, body, namespace="default")

    async def pod(self, name: str, claim: str, node: str) -> None:
        spec = {
            "containers": [{"name": "m", "image": "x"}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}],
            "nodeSelector": {"kubernetes.io/hostname": node},
        }
        await self.kube.create(PODS, {"metadata": {"name": name}, "spec": spec}, namespace="default")

    async def volumes(self) -> list[Object]:
        return (await self.kube.list(PERSISTENT_VOLUMES)).items

    async def said(self, claim: str) -> list[tuple[str, str]]:
        events = (await self.kube.list(EVENTS, namespace="default")).items
        own = [e for e in events if e["involvedObject"]["name"] == claim and e["source"]["component"] == PROVISIONER]
        return [(event["reason"], event["message"]) for event in own]


def told(story: Callable[[Ground], Awaitable[None]]) -> None:
    async def main() -> None:
        ground = Ground()
        async with ground.running():
            await story(ground)

    run_virtual(main)


def test_a_claim_of_the_default_class_gets_a_folder_on_the_node_of_its_first_pod() -> None:
    async def story(ground: Ground) -> None:
        claim = await ground.claim("c")
        await asyncio.sleep(20.0)
        assert await ground.volumes() == []
        await ground.pod("p", "c", "west")
        await asyncio.sleep(5.0)
        (volume,) = await ground.volumes()
        path = ROOT / "west" / f"pvc-{uid_of(claim)}_default_c"
        assert ground.folders.there == {path}
        assert volume["spec"]["hostPath"] == {"path": str(path), "type": "DirectoryOrCreate"}
        pod = await ground.kube.get(PODS, "p", namespace="default")
        assert node_name_of(pod) == "west"
        bound = await ground.kube.get(PERSISTENT_VOLUME_CLAIMS, "c", namespace="default")
        assert (bound["status"]["phase"], bound["spec"]["volumeName"]) == ("Bound", name_of(volume))
        assert bound["spec"]["storageClassName"] == CLASS
        assert await ground.said("c") == [
            ("Provisioning", 'External provisioner is provisioning volume for claim "default/c"'),
            ("ProvisioningSucceeded", f"Successfully provisioned volume {name_of(volume)}"),
        ]
        # It stays there: a second pod cannot have it from another node.
        await ground.pod("q", "c", "east")
        await asyncio.sleep(5.0)
        assert node_name_of(await ground.kube.get(PODS, "q", namespace="default")) == ""

    told(story)


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
def test_a_folder_goes_with_its_claim_where_it_is_to_be_deleted(policy: str) -> None:
    async def story(ground: Ground) -> None:
        body = {"metadata": {"name": "own"}, "provisioner": PROVISIONER, "reclaimPolicy": policy}
        await ground.kube.create(STORAGE_CLASSES, body)
        await ground.claim("c", storageClassName="own")
        await asyncio.sleep(5.0)
        assert len(ground.folders.there) == 1
        await ground.kube.delete(PERSISTENT_VOLUME_CLAIMS, "c", namespace="default")
        await asyncio.sleep(5.0)
        phases = [volume["status"]["phase"] for volume in await ground.volumes()]
        assert (phases, len(ground.folders.there)) == (([], 0) if policy == "Delete" else (["Released"], 1))

    told(story)


def test_a_claim_that_a_pod_uses_keeps_its_folder_until_the_pod_is_gone() -> None:
    async def story(ground: Ground) -> None:
        await ground.claim("c")
        await ground.pod("p", "c", "east")
        await asyncio.sleep(5.0)
        await ground.kube.delete(PERSISTENT_VOLUME_CLAIMS, "c", namespace="default")
        await asyncio.sleep(5.0)
        assert len(ground.folders.there) == 1
        await ground.kube.delete(PODS, "p", namespace="default")
        await asyncio.sleep(40.0)
        assert ground.folders.there == set()
        with pytest.raises(NotFoundError):
            await ground.kube.get(PERSISTENT_VOLUME_CLAIMS, "c", namespace="default")

    told(story)


def test_a_stateful_set_gets_a_folder_for_each_pod() -> None:
    async def story(ground: Ground) -> None:
        template = {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "m", "image": "x", "volumeMounts": [{"name": "d", "mountPath": "/d"}]}]},
        }
        spec = {
            "serviceName": "a",
            "replicas": 3,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "a"}},
            "template": template,
            "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": CLAIM}],
        }
        await ground.kube.create(STATEFUL_SETS, {"metadata": {"name": "a"}, "spec": spec}, namespace="default")
        await asyncio.sleep(20.0)
        pods = (await ground.kube.list(PODS, namespace="default")).items
        assert sorted(name_of(pod) for pod in pods if node_name_of(pod)) == ["a-0", "a-1", "a-2"]
        assert sorted(path.name.partition("_")[2] for path in ground.folders.there) == [
            "default_d-a-0",
            "default_d-a-1",
            "default_d-a-2",
        ]

    told(story)


def test_a_node_that_is_gone_is_not_the_choice_any_more() -> None:
    async def story(ground: Ground) -> None:
        await ground.claim("c")
        await ground.kube.patch(
            PERSISTENT_VOLUME_CLAIMS,
            "c",
            {"metadata": {"annotations": {SELECTED_NODE: "south"}}},
            kind=Patch.MERGE,
            namespace="default",
        )
        await asyncio.sleep(5.0)
        claim = await ground.kube.get(PERSISTENT_VOLUME_CLAIMS, "c", namespace="default")
        assert SELECTED_NODE not in annotations_of(claim)
        assert (
            "ProvisioningFailed",
            'failed to provision volume with StorageClass "standard": node "south" not found',
        ) in (await ground.said("c"))

    told(story)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, ""),
        ({"accessModes": ["ReadWriteOncePod"]}, ""),
        ({"accessModes": ["ReadWriteMany"]}, "access mode ReadWriteMany is not supported: a folder is on one node"),
        ({"accessModes": ["ReadOnlyMany"]}, "access mode ReadOnlyMany is not supported: a folder is on one node"),
        ({"volumeMode": "Block"}, "block volumes are not supported: a folder is a file system"),
        ({"selector": {}}, "claim.Spec.Selector is not supported"),
    ],
)
def test_what_a_folder_cannot_be_is_refused(spec: dict[str, Any], words: str) -> None:
    assert refusal({"metadata": {}, "spec": {**CLAIM, **spec}}) == words


def test_a_claim_that_a_folder_cannot_serve_is_told_so_and_gets_none() -> None:
    async def story(ground: Ground) -> None:
        await ground.claim("c", accessModes=["ReadWriteMany"])
        await ground.pod("p", "c", "east")
        await asyncio.sleep(20.0)
        assert (await ground.volumes(), ground.folders.there) == ([], set())
        assert [reason for reason, _ in await ground.said("c")] == ["Provisioning", "ProvisioningFailed"]

    told(story)


def test_folders_are_made_for_all_to_write_in_and_removed_below_their_root_alone(tmp_path: Path) -> None:
    folders, outside = VolumeFolders(tmp_path / "volumes"), tmp_path / "outside"
    own = tmp_path / "volumes" / "host-1" / "pvc-1"
    for _ in range(2):
        asyncio.run(folders.make(PurePosixPath(own)))
    assert own.stat().st_mode & 0o777 == 0o777
    (own / "data").write_text("x")
    for _ in range(2):
        asyncio.run(folders.remove(PurePosixPath(own)))
    assert not own.exists()
    outside.mkdir()
    for path in (outside, tmp_path / "volumes" / ".." / "outside", tmp_path / "volumes"):
        with pytest.raises(ValueError, match="must be a folder below"):
            asyncio.run(folders.remove(PurePosixPath(path)))
    assert outside.exists()


def test_a_volume_that_only_says_that_it_is_a_folder_of_ours_is_left_alone() -> None:
    async def story(ground: Ground) -> None:
        for name, path in (("a", "/etc"), ("b", str(ROOT))):
            spec = {**CLAIM, "capacity": {"storage": "1Gi"}, "hostPath": {"path": path}, "storageClassName": "x"}
            del spec["resources"]
            metadata = {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}}
            await ground.kube.create(
                PERSISTENT_VOLUMES,
                {"metadata": metadata, "spec": {**spec, "persistentVolumeReclaimPolicy": "Delete"}},
            )
            await ground.kube.patch(
                PERSISTENT_VOLUMES, name, {"status": {"phase": "Released"}}, kind=Patch.MERGE, subresource="status"
            )
            ground.folders.there.add(PurePosixPath(path))
        await asyncio.sleep(5.0)
        assert len(ground.folders.there) == 2

    told(story)


def test_a_folder_that_cannot_be_made_is_reported_on_the_claim() -> None:
    async def story(ground: Ground) -> None:
        async def full(path: PurePosixPath) -> None:
            raise OSError(28, "No space left on device")

        ground.folders.make = full  # type: ignore[method-assign]
        await ground.claim("c")
        await ground.pod("p", "c", "east")
        await asyncio.sleep(5.0)
        text = 'failed to provision volume with StorageClass "standard": No space left on device'
        assert ("ProvisioningFailed", text) in await ground.said("c")

    told(story)


def test_nothing_is_made_before_a_node_is_chosen_whatever_a_claim_says() -> None:
    async def story(ground: Ground) -> None:
        claim = await ground.claim("c")
        asked = {**claim, "metadata": {**claim["metadata"], "annotations": {PROVISIONERS[-1]: PROVISIONER}}}
        await ground.kube.replace(PERSISTENT_VOLUME_CLAIMS, asked, namespace="default")
        await asyncio.sleep(20.0)
        assert (await ground.volumes(), await ground.said("c")) == ([], [])

    told(story)


def test_other_provisioners_claims_are_left_alone() -> None:
    async def story(ground: Ground) -> None:
        body = {"metadata": {"name": "x"}, "provisioner": "example.com/x"}
        await ground.kube.create(STORAGE_CLASSES, body)
        await ground.claim("c", storageClassName="x")
        await asyncio.sleep(5.0)
        assert (await ground.volumes(), await ground.said("c")) == ([], [])

    told(story)
