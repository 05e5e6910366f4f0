"""A pod gets no device that is about to leave, however old what the scheduler sees is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from mews.kube.api.errors import UnavailableError
from mews.kube.api.objects import Object, annotations_of, node_name_of
from mews.kube.api.resources import PODS, Resource
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.systems.koordinator import plugin
from mews.systems.koordinator.config import KoordinatorConfig
from mews.systems.koordinator.devices import NodeDeviceReport
from mews.systems.koordinator.names import ALLOCATED, DEVICES
from mews.systems.koordinator.plugin import koordinator_profile
from tests.systems.koordinator.cluster import DeviceWorld, a_while, gpus, play

ILL = NodeDeviceReport("n", gpus("n", 1, unhealthy=[0]))


class OldDevices(InProcessKube):
    """Watches of Devices that show nothing new."""

    stands = False

    async def watch(self, resource: Resource, **options: Any) -> Any:
        async for event in super().watch(resource, **options):
            if resource == DEVICES and self.stands:
                await asyncio.Event().wait()
            yield event


async def given_by_an_old_view(world: DeviceWorld) -> Object:
    await world.node_with(NodeDeviceReport("n", gpus("n", 1)))
    old = OldDevices(world.store)
    world.scheduler(koordinator_profile(KoordinatorConfig()), kube=old)
    await a_while()
    old.stands = True
    await world.report(ILL)
    await world.ask("a", {"koordinator.sh/gpu": 100})
    await a_while(30)
    return await world.get("a")


def test_a_scheduler_that_has_not_seen_that_a_device_is_ill_does_not_give_it() -> None:
    async def story(world: DeviceWorld) -> None:
        pod = await given_by_an_old_view(world)
        assert not node_name_of(pod)
        assert ALLOCATED not in annotations_of(pod)

    play(story)


def test_without_a_second_look_it_would_have_been_given(monkeypatch: pytest.MonkeyPatch) -> None:
    async def blind(*_: Any) -> bool:
        return True

    monkeypatch.setattr(plugin, "still_offered", blind)

    async def story(world: DeviceWorld) -> None:
        assert node_name_of(await given_by_an_old_view(world)) == "n"

    play(story)


class LateDevices(InProcessKube):
    """The device falls ill as soon as a pod's devices are written onto it, and the watch shows it later."""

    def __init__(self, world: DeviceWorld) -> None:
        super().__init__(world.store)
        self.world = world
        self.notes: list[object] = []

    async def patch(self, resource: Resource, name: str, body: Mapping[str, Any], **options: Any) -> Object:
        patched = await super().patch(resource, name, body, **options)
        if resource == PODS and ALLOCATED in (body.get("metadata") or {}).get("annotations", {}):
            self.notes.append(body["metadata"]["annotations"][ALLOCATED])
            if len(self.notes) == 1:
                await self.world.report(ILL)
        return patched


def test_a_device_that_falls_ill_after_it_was_chosen_is_taken_off_the_pod() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.node_with(NodeDeviceReport("n", gpus("n", 1)))
        late = LateDevices(world)
        world.scheduler(koordinator_profile(KoordinatorConfig()), kube=late)
        await world.ask("a", {"koordinator.sh/gpu": 100})
        await a_while(10)
        assert not node_name_of(await world.get("a"))
        assert [note is None for note in late.notes] == [False, True]
        await world.report(NodeDeviceReport("n", gpus("n", 1)))
        await world.until_bound("a")

    play(story)


class LostAnswer(InProcessKube):
    """The first annotation is written, and its answer is lost."""

    lost = 0

    async def patch(self, resource: Resource, name: str, body: Mapping[str, Any], **options: Any) -> Object:
        patched = await super().patch(resource, name, body, **options)
        if resource == PODS and (body.get("metadata") or {}).get("annotations", {}).get(ALLOCATED) and not self.lost:
            self.lost += 1
            raise UnavailableError("the connection broke")
        return patched


def test_an_annotation_whose_answer_was_lost_comes_off_again() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.node_with(NodeDeviceReport("n", gpus("n", 1)))
        broken = LostAnswer(world.store)
        world.scheduler(koordinator_profile(KoordinatorConfig()), kube=broken)
        await world.ask("a", {"koordinator.sh/gpu": 100})
        await a_while(0.5)
        assert broken.lost == 1
        assert ALLOCATED not in annotations_of(await world.get("a"))
        await world.until_bound("a")

    play(story)
