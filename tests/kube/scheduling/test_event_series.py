"""Repeated warnings of the scheduler: one event with a series (client-go's tools/events)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from mews.kube.api.objects import Object, name_of
from mews.kube.api.resources import NEW_EVENTS
from mews.kube.scheduling.events import FINISHED_S, ProfileEventRecorder, SchedulingEventWriter
from mews.kube.scheduling.podinfo import PodInfo, pod_info
from tests.kube.scheduling.world import World, live

Warn = Callable[[PodInfo, str, str], None]
Story = Callable[[World, Warn], Coroutine[Any, Any, None]]


def play(story: Story) -> None:
    async def with_writer(world: World) -> None:
        writer = SchedulingEventWriter(world.kube, world.clock, "host")
        recorder = ProfileEventRecorder(writer, "default-scheduler")
        task = asyncio.create_task(writer.run())
        try:
            await story(
                world,
                lambda pod, note, action: recorder.record(
                    pod, kind="Warning", reason="FailedScheduling", action=action, note=note
                ),
            )
        finally:
            task.cancel()
            await asyncio.wait([task])

    live(with_writer)


async def _settled(world: World) -> list[Object]:
    await asyncio.sleep(0.1)
    return await world.events("p")


def test_another_note_about_the_same_version_of_a_pod_joins_the_series_and_the_first_note_stays() -> None:
    async def story(world: World, warn: Warn) -> None:
        pod = pod_info(await world.add("p"))
        warn(pod, "no node", "Scheduling")
        warn(pod, "no node but another reason", "Scheduling")
        (event,) = await _settled(world)
        assert event["note"] == "no node"
        assert event["series"]["count"] == 2

    play(story)


def test_another_action_or_another_version_of_the_pod_is_an_event_of_its_own() -> None:
    async def story(world: World, warn: Warn) -> None:
        pod = pod_info(await world.add("p"))
        warn(pod, "no node", "Scheduling")
        warn(pod, "no node", "Binding")
        await world.finish("p", "Running")
        warn(pod_info(await world.get("p")), "no node", "Scheduling")
        assert ["series" in event for event in await _settled(world)] == [False, False, False]

    play(story)


def test_a_series_whose_event_is_gone_is_made_anew_with_its_count() -> None:
    async def story(world: World, warn: Warn) -> None:
        pod = pod_info(await world.add("p"))
        for _ in range(3):
            warn(pod, "no node", "Scheduling")
        (event,) = await _settled(world)
        assert event["series"]["count"] == 2
        await world.kube.delete(NEW_EVENTS, name_of(event), namespace="default")
        await asyncio.sleep(2 * FINISHED_S)
        (again,) = await _settled(world)
        assert (again["note"], again["series"]["count"]) == ("no node", 3)

    play(story)
