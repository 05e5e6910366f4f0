"""When refused pods are tried again (data/scheduler-1.34/backoff-and-sampling.json)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from mews.kube.api.objects import Object
from mews.kube.api.resources import CONFIGMAPS, PODS, Resource
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.scheduling.config import SchedulerProfile
from mews.kube.scheduling.framework import CycleState, Handle, Status, Wake, error, unschedulable
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins import default_plugins
from mews.kube.scheduling.podinfo import PodInfo
from tests.kube.scheduling.world import World, live


class Picky:
    """Refuses every node until there is a ConfigMap ``key``; keeps the times at which it was asked."""

    name = "Picky"

    def __init__(self, handle: Handle, answer: Status = unschedulable("no key")) -> None:  # noqa: B008
        self._handle = handle
        self._answer = answer
        self._keys = handle.informer(CONFIGMAPS, "default")
        self.asked_s: list[float] = []

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        self.asked_s.append(round(asyncio.get_running_loop().time(), 3))
        return Status() if self._answer.rejected else self._answer

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return Status() if self._keys.get("key", "default") else self._answer

    def wakes_on(self) -> Sequence[Wake]:
        return (Wake(CONFIGMAPS, namespace="default"),)


def with_picky(picky: list[Picky], answer: Status = unschedulable("no key")) -> SchedulerProfile:  # noqa: B008
    def make(handle: Handle) -> Picky:
        picky.append(Picky(handle, answer))
        return picky[-1]

    return SchedulerProfile("default-scheduler", (*default_plugins(), make))


def test_a_pod_short_of_gpus_is_woken_by_enough_gpus_and_not_by_labels_or_too_few() -> None:
    async def story(world: World) -> None:
        await world.add_node("n", gpus=1)
        world.scheduler()
        await world.add("p", gpus=4)
        await asyncio.sleep(20)
        await world.edit_node("n", lambda n: n["metadata"]["labels"].update(new="label"))
        await world.set_gpus("n", 3)
        await asyncio.sleep(20)
        assert len(await world.events("p")) == 1
        await world.set_gpus("n", 4)
        await world.until_bound("p", within_s=0.05)

    live(story)


@pytest.mark.parametrize("ending", ["removed", "finished"])
def test_gpus_freed_by_a_deleted_or_finished_pod_go_to_the_waiting_one_at_once(ending: str) -> None:
    async def story(world: World) -> None:
        await world.add_node("n", gpus=1)
        world.scheduler()
        await world.add("holder", gpus=1)
        await world.until_bound("holder")
        await world.add("p", gpus=1)
        await asyncio.sleep(20)
        await (world.remove("holder") if ending == "removed" else world.finish("holder"))
        await world.until_bound("p", within_s=0.05)

    live(story)


def test_a_new_node_an_uncordoned_and_an_untainted_one_wake_the_pods_they_suit() -> None:
    async def story(world: World) -> None:
        await world.add_node("n", unschedulable=True)
        world.scheduler()
        await world.add("p")
        await asyncio.sleep(20)
        await world.edit_node("n", lambda n: n["spec"].pop("unschedulable"))
        await world.until_bound("p", within_s=0.05)
        await world.add("selective", nodeSelector={"kubernetes.io/hostname": "m"})
        await asyncio.sleep(20)
        await world.add_node("m")
        await world.until_bound("selective", within_s=0.05)

    live(story)


def test_a_plugin_is_woken_by_changes_of_the_resource_it_names() -> None:
    async def story(world: World) -> None:
        await world.add_node("n")
        picky: list[Picky] = []
        world.scheduler(with_picky(picky))
        await world.add("p")
        await asyncio.sleep(20)
        assert await world.node_of("p") == ""
        await world.kube.create(CONFIGMAPS, {"metadata": {"name": "key"}}, namespace="default")
        await world.until_bound("p", within_s=0.05)
        assert len(picky[0].asked_s) == 2

    live(story)


def test_what_no_hint_wakes_is_tried_again_after_five_minutes() -> None:
    async def story(world: World) -> None:
        await world.add_node("n")
        picky: list[Picky] = []
        world.scheduler(with_picky(picky))
        await world.add("p")
        await asyncio.sleep(1000)
        assert picky[0].asked_s == [0, 300, 600, 900]

    live(story)


def test_errors_back_off_one_two_four_eight_ten_ten_seconds_and_are_told_as_scheduler_errors() -> None:
    async def story(world: World) -> None:
        await world.add_node("n")
        picky: list[Picky] = []
        world.scheduler(with_picky(picky, error("the plugin broke")))
        await world.add("p")
        await asyncio.sleep(40)
        assert picky[0].asked_s == [0, 1, 3, 7, 15, 25, 35]
        conditions = (await world.get("p"))["status"]["conditions"]
        assert (conditions[0]["reason"], conditions[0]["message"]) == (
            "SchedulerError",
            'running PreFilter plugin "Picky": the plugin broke',
        )

    live(story)


def test_a_refused_pod_skips_its_back_off_when_nothing_else_is_queued() -> None:
    async def story(world: World) -> None:
        await world.add_node("n", gpus=1)
        world.scheduler()
        await world.add("p", gpus=4)
        await asyncio.sleep(0.1)
        for gpus, back in ((4, True), (1, False)):
            assert (await world.node_of("p") == "") is back
            await world.set_gpus("n", gpus)
            await asyncio.sleep(0.01)

    live(story)


def test_repeats_become_a_second_event_then_a_series_of_two_then_silence() -> None:
    async def story(world: World) -> None:
        await world.add_node("n")
        picky: list[Picky] = []
        world.scheduler(with_picky(picky, error("the plugin broke")))
        await world.add("p")
        await asyncio.sleep(7.5)
        first, second = await world.events("p")
        assert "series" not in first
        assert second["series"] == {"count": 2, "lastObservedTime": "2026-01-01T00:00:03.000000Z"}
        assert first["regarding"]["resourceVersion"] != second["regarding"]["resourceVersion"]
        assert len(picky[0].asked_s) == 4

    live(story)


def test_the_condition_is_written_only_when_it_changes() -> None:
    async def story(world: World) -> None:
        class Counting(InProcessKube):
            patched = 0

            async def patch(self, resource: Resource, *args: Any, **kwargs: Any) -> Object:
                self.patched += resource is PODS
                return await super().patch(resource, *args, **kwargs)

        await world.add_node("n")
        picky: list[Picky] = []
        kube = Counting(world.store)
        world.scheduler(with_picky(picky), kube=kube)
        await world.add("p")
        await asyncio.sleep(1001)
        assert len(picky[0].asked_s) == 4
        assert kube.patched == 1

    live(story)


class Broken:
    """Has a bug at one point for pods named after it."""

    name = "Broken"

    def __init__(self, handle: Handle) -> None:
        pass

    def _may_break(self, point: str, pod: PodInfo) -> None:
        if pod.name == point:
            raise ZeroDivisionError(f"a bug in {point}")

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        self._may_break("filter", pod)
        return Status()

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 101 if pod.name == "score" else 0

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        self._may_break("pre-bind", pod)
        return error("not yet") if pod.name == "unreserve" else Status()

    async def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self._may_break("unreserve", pod)

    async def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self._may_break("post-bind", pod)


@pytest.mark.parametrize("point", ["filter", "score", "pre-bind", "unreserve", "post-bind"])
def test_a_bug_in_a_plugin_is_that_pods_error_and_the_others_go_on(
    point: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(world: World) -> None:
        await world.add_node("n", gpus=1)
        await world.add_node("m", gpus=1)
        world.scheduler(SchedulerProfile("default-scheduler", (*default_plugins(), Broken)))
        await world.add(point, gpus=1)
        await asyncio.sleep(0.1)
        await world.add("lucky", gpus=1)
        await asyncio.sleep(0.1)
        await world.remove(point)
        await world.add("late", gpus=1)
        await asyncio.sleep(0.1)
        assert "" not in await world.nodes_of("lucky", "late")

    with caplog.at_level(logging.ERROR):
        live(story)
    assert ("Traceback" in caplog.text) and (point == "score" or f"a bug in {point}" in caplog.text)
