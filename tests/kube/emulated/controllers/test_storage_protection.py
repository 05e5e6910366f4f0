"""Claims, volumes and attributes classes that are in use stay; in virtual time."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from mews.harness.clock import run_virtual, virtual_clock
from mews.kube.api.errors import NotFoundError
from mews.kube.api.finalizers import IN_USE
from mews.kube.api.objects import is_deleting
from mews.kube.api.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SERVICE_ACCOUNTS,
    VOLUME_ATTRIBUTES_CLASSES,
    Resource,
)
from mews.kube.client.port import DeleteOptions
from mews.kube.clock import Pace, rest, stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.controllers.manager import ControllerManager
from tests.kube.emulated.controllers.test_controllers import running

_PROTECTED = ("persistentvolumeclaim", "persistentvolume", "volumeattributesclass")


class Cluster:
    def __init__(self) -> None:
        clock = virtual_clock()
        self.kube = InProcessKube(fresh_store(clock.now, stream(1, "store"), attended=True))
        context = Context(self.kube, clock, stream(1, "controllers"), logging.getLogger("controllers"))
        self.controllers = ControllerManager(
            context, Pace(), controllers=[f"{each}-protection-controller" for each in _PROTECTED]
        )

    async def make(self, resource: Resource, name: str, **body: Any) -> None:
        namespace = "default" if resource.namespaced else None
        made = await self.kube.create(resource, {"metadata": {"name": name}, **body}, namespace=namespace)
        assert made["metadata"].get("finalizers") == ([IN_USE[resource]] if resource in IN_USE else None)

    async def make_claim(self, **spec: Any) -> None:
        amount = {"requests": {"storage": "1Gi"}}
        await self.make(
            PERSISTENT_VOLUME_CLAIMS, "c", spec={"accessModes": ["ReadWriteOnce"], "resources": amount, **spec}
        )

    async def make_pod(self, **spec: Any) -> None:
        await self.make(SERVICE_ACCOUNTS, "default")
        await self.make(
            PODS,
            "p",
            spec={
                "containers": [{"name": "main", "image": "x"}],
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
                **spec,
            },
        )

    async def delete(self, resource: Resource, name: str) -> None:
        namespace = "default" if resource.namespaced else None
        await self.kube.delete(resource, name, namespace=namespace, options=DeleteOptions(grace_period_s=0))
        await rest(1)

    async def is_there(self, resource: Resource, name: str) -> bool:
        """Whether it is; if so, it is being deleted."""
        try:
            found = await self.kube.get(resource, name, namespace="default" if resource.namespaced else None)
        except NotFoundError:
            return False
        assert is_deleting(found)
        return True


def play(story: Callable[[Cluster], Awaitable[None]]) -> None:
    async def main() -> None:
        cluster = Cluster()
        async with running(cluster.controllers):
            await story(cluster)

    run_virtual(main)


def test_a_claim_stays_until_the_pod_that_names_it_has_gone() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.make_claim()
        await cluster.make_pod(nodeName="n")
        await cluster.delete(PERSISTENT_VOLUME_CLAIMS, "c")
        assert await cluster.is_there(PERSISTENT_VOLUME_CLAIMS, "c")
        done = {"status": {"phase": "Succeeded"}}
        await cluster.kube.patch(PODS, "p", done, namespace="default", subresource="status")
        await rest(1)
        assert await cluster.is_there(PERSISTENT_VOLUME_CLAIMS, "c")
        await cluster.delete(PODS, "p")
        assert not await cluster.is_there(PERSISTENT_VOLUME_CLAIMS, "c")

    play(story)


def test_a_claim_of_a_pod_without_a_node_goes_at_once() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.make_claim()
        await cluster.make_pod()
        await cluster.delete(PERSISTENT_VOLUME_CLAIMS, "c")
        assert not await cluster.is_there(PERSISTENT_VOLUME_CLAIMS, "c")

    play(story)


def test_a_claim_that_was_made_for_an_ephemeral_volume_stays_with_its_pod_and_a_strangers_does_not() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.make_claim()
        template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
        await cluster.make_pod(nodeName="n", volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}])
        pod = await cluster.kube.get(PODS, "p", namespace="default")
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod["metadata"]["uid"], "controller": True}
        for name, owners in (("p-v", [owner]), ("q-v", [owner])):
            metadata = {"name": name, "ownerReferences": owners}
            await cluster.kube.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": metadata, **template}, namespace="default")
            await cluster.delete(PERSISTENT_VOLUME_CLAIMS, name)
        assert await cluster.is_there(PERSISTENT_VOLUME_CLAIMS, "p-v")
        assert not await cluster.is_there(PERSISTENT_VOLUME_CLAIMS, "q-v")

    play(story)


def test_a_volume_stays_for_as_long_as_it_is_bound() -> None:
    async def story(cluster: Cluster) -> None:
        source = {"hostPath": {"path": "/tmp"}, "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
        await cluster.make(PERSISTENT_VOLUMES, "v", spec=source)
        await cluster.kube.patch(PERSISTENT_VOLUMES, "v", {"status": {"phase": "Bound"}}, subresource="status")
        await cluster.delete(PERSISTENT_VOLUMES, "v")
        assert await cluster.is_there(PERSISTENT_VOLUMES, "v")
        await cluster.kube.patch(PERSISTENT_VOLUMES, "v", {"status": {"phase": "Released"}}, subresource="status")
        await rest(1)
        assert not await cluster.is_there(PERSISTENT_VOLUMES, "v")

    play(story)


def test_an_attributes_class_stays_for_as_long_as_a_claim_names_it() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.make(VOLUME_ATTRIBUTES_CLASSES, "fast", driverName="d.example.com", parameters={"iops": "9"})
        await cluster.make_claim(volumeAttributesClassName="fast")
        await cluster.delete(VOLUME_ATTRIBUTES_CLASSES, "fast")
        assert await cluster.is_there(VOLUME_ATTRIBUTES_CLASSES, "fast")
        await cluster.delete(PERSISTENT_VOLUME_CLAIMS, "c")
        assert not await cluster.is_there(VOLUME_ATTRIBUTES_CLASSES, "fast")

    play(story)


def test_a_claim_that_lost_its_finalizer_gets_it_back() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.make_claim()
        change = {"metadata": {"finalizers": None}}
        await cluster.kube.patch(PERSISTENT_VOLUME_CLAIMS, "c", change, namespace="default")
        await rest(1)
        found = await cluster.kube.get(PERSISTENT_VOLUME_CLAIMS, "c", namespace="default")
        assert found["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]

    play(story)
