"""The scheduler as a whole: order, several schedulers, failed bindings, restart, determinism."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from mews.kube.api.errors import ConflictError, ServerError, UnavailableError
from mews.kube.api.objects import node_name_of
from mews.kube.api.resources import PODS, Resource
from mews.kube.client.port import WatchEvent
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.scheduling.config import SchedulerConfig, SchedulerProfile, TieBreak, load_plugin
from mews.kube.scheduling.errors import PluginDefinitionError, ProfileError
from mews.kube.scheduling.plugins import Strategy, default_plugins
from tests.kube.scheduling.world import GPU, World, default_profile, live


def test_pods_are_bound_by_priority_then_in_the_order_in_which_they_came() -> None:
    async def story(world: World) -> None:
        await world.priority("ten", 10)
        await world.priority("thousand", 1000)
        await world.add_node("n")
        for number, name in enumerate(("", "ten", "thousand", "", "thousand", "ten")):
            await world.add(f"o{number}", **({"priorityClassName": name} if name else {}))
        world.scheduler()
        await asyncio.sleep(1)
        events = [e for number in range(6) for e in await world.events(f"o{number}")]
        events.sort(key=lambda e: int(e["metadata"]["resourceVersion"]))
        assert [e["regarding"]["name"] for e in events] == ["o2", "o4", "o1", "o5", "o0", "o3"]

    live(story)


def test_profiles_share_a_queue_and_score_in_their_own_ways() -> None:
    async def story(world: World) -> None:
        for name in ("g0", "g1", "g2"):
            await world.add_node(name, gpus=4)
        packing = default_plugins(strategy=Strategy.MOST_ALLOCATED, resources={GPU: 1})
        spreading = default_plugins(resources={GPU: 1})
        world.scheduler(SchedulerProfile("packer", packing), SchedulerProfile("spreader", spreading))
        for number in range(3):
            await world.add(f"pack{number}", gpus=1, schedulerName="packer")
            await asyncio.sleep(0.01)
        assert len(set(await world.nodes_of("pack0", "pack1", "pack2"))) == 1
        for number in range(2):
            await world.add(f"spread{number}", gpus=1, schedulerName="spreader")
            await asyncio.sleep(0.01)
        assert len({*await world.nodes_of("spread0", "spread1", "pack0")}) == 3
        (event,) = await world.events("pack0")
        assert (event["reportingController"], event["reportingInstance"]) == ("packer", "packer-mews")

    live(story)


def test_schedulers_side_by_side_take_their_own_pods_and_count_all() -> None:
    async def story(world: World) -> None:
        await world.add_node("n", gpus=2)
        world.scheduler()
        world.scheduler(default_profile("second"))
        await world.add("a", gpus=1)
        await world.add("b", gpus=1, schedulerName="second")
        await asyncio.sleep(0.1)
        assert await world.nodes_of("a", "b") == ["n", "n"]
        await world.add("c", gpus=1)
        await world.add("d", gpus=1, schedulerName="second")
        await asyncio.sleep(0.1)
        assert await world.nodes_of("c", "d") == ["", ""]
        assert len(await world.events("c")) == 1

    live(story)


def test_ties_by_name_take_the_first_and_random_ties_come_from_the_seed() -> None:
    async def placed(world: World, ties: TieBreak) -> list[str]:
        for name in ("b", "c", "a"):
            await world.add_node(name, cpu="1000", memory="1000Gi")
        world.scheduler(default_profile(ties=ties))
        for number in range(12):
            await world.add(f"p{number}")
        await asyncio.sleep(0.1)
        return await world.nodes_of(*(f"p{number}" for number in range(12)))

    assert set(live(lambda w: placed(w, TieBreak.BY_NAME))) == {"a"}
    first = live(lambda w: placed(w, TieBreak.RANDOM))
    assert len(set(first)) == 3
    assert first == live(lambda w: placed(w, TieBreak.RANDOM))
    assert first != live(lambda w: placed(w, TieBreak.RANDOM), seed=2)


class Flaky(InProcessKube):
    """Bindings fail as ``plan`` says: an exception before the binding, or after it."""

    def __init__(self, world: World, plan: list[tuple[str, Exception]]) -> None:
        super().__init__(world.store)
        self.plan = plan

    async def bind(
        self,
        namespace: str,
        pod: str,
        node: str,
        *,
        uid: str | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        when, failure = self.plan.pop(0) if self.plan else ("", Exception())
        if when == "before":
            raise failure
        await super().bind(namespace, pod, node, uid=uid, annotations=annotations)
        if when == "after":
            raise failure


def test_a_binding_that_fails_gives_the_room_back_and_is_tried_again() -> None:
    async def story(world: World) -> None:
        await world.add_node("n", gpus=1)
        world.scheduler(kube=Flaky(world, [("before", ServerError("etcd is down"))]))
        await world.add("p", gpus=1)
        await asyncio.sleep(0.5)
        assert await world.message("p") == 'running Bind plugin "DefaultBinder": etcd is down'
        assert await world.until_bound("p", within_s=2) == pytest.approx(1.0, abs=0.02)

    live(story)


def test_a_binding_whose_answer_is_lost_counts_as_what_the_api_says() -> None:
    async def story(world: World) -> None:
        await world.add_node("n", gpus=2)
        plan: list[tuple[str, Exception]] = [
            ("after", UnavailableError("reset")),
            ("before", UnavailableError("reset")),
        ]
        world.scheduler(kube=Flaky(world, plan))
        await world.add("done", gpus=1)
        await world.add("lost", gpus=1)
        await asyncio.sleep(3)
        assert await world.nodes_of("done", "lost") == ["n", "n"]
        assert await world.notes("done") == ["Successfully assigned default/done to n"]
        assert len(await world.notes("lost")) == 2

    live(story)


def test_a_pod_that_another_scheduler_bound_first_is_left_alone() -> None:
    async def story(world: World) -> None:
        await world.add_node("n", gpus=4)
        await world.add_node("m", gpus=4)
        world.scheduler(default_profile(ties=TieBreak.BY_NAME), kube=Flaky(world, []))
        world.scheduler(default_profile(ties=TieBreak.BY_NAME))
        for number in range(4):
            await world.add(f"p{number}", gpus=1)
        await asyncio.sleep(30)
        assert "" not in await world.nodes_of(*(f"p{number}" for number in range(4)))
        for number in range(4):
            bound = [note for note in await world.notes(f"p{number}") if note.startswith("Successfully")]
            assert bound == [f"Successfully assigned default/p{number} to {await world.node_of(f'p{number}')}"]

    live(story)


class Overtaking(InProcessKube):
    """Someone else binds ``p`` to node m first, and the news of it is slow."""

    async def bind(
        self,
        namespace: str,
        pod: str,
        node: str,
        *,
        uid: str | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        if pod == "p":
            await super().bind(namespace, pod, "m", uid=uid)
        await super().bind(namespace, pod, node, uid=uid, annotations=annotations)

    async def watch(self, resource: Resource, **options: Any) -> AsyncIterator[WatchEvent]:
        async for event in super().watch(resource, **options):
            if event.object["metadata"]["name"] == "p" and node_name_of(event.object):
                await asyncio.sleep(5)
            yield event


def test_the_room_of_a_pod_bound_by_someone_else_is_taken_before_the_watch_says_so() -> None:
    async def story(world: World) -> None:
        await world.add_node("a", gpus=1)
        await world.add_node("m", gpus=1)
        world.scheduler(default_profile(ties=TieBreak.BY_NAME), kube=Overtaking(world.store))
        await asyncio.sleep(0.1)
        await world.add("q", gpus=1)
        await world.add("p", gpus=1)
        await world.add("r", gpus=1)
        await asyncio.sleep(30)
        assert await world.nodes_of("q", "p", "r") == ["a", "m", ""]

    live(story)


class Ending(InProcessKube):
    """Someone else binds ``p`` to node m first, and it has ended before our own binding is refused."""

    async def bind(
        self,
        namespace: str,
        pod: str,
        node: str,
        *,
        uid: str | None = None,
        annotations: Mapping[str, str] | None = None,
        resource_version: str | None = None,
    ) -> None:
        if pod == "p":
            await super().bind(namespace, pod, "m", uid=uid)
            await self.patch(PODS, pod, {"status": {"phase": "Failed"}}, namespace=namespace, subresource="status")
            await asyncio.sleep(5)
        await super().bind(namespace, pod, node, uid=uid, annotations=annotations)


def test_a_pod_bound_by_someone_else_that_has_ended_takes_no_room() -> None:
    async def story(world: World) -> None:
        await world.add_node("a", gpus=1)
        await world.add_node("m", gpus=1)
        world.scheduler(default_profile(ties=TieBreak.BY_NAME), kube=Ending(world.store))
        await asyncio.sleep(0.1)
        await world.add("p", gpus=1)
        await asyncio.sleep(30)
        await world.add("q", gpus=1)
        await world.add("r", gpus=1)
        await asyncio.sleep(30)
        assert sorted(await world.nodes_of("q", "r")) == ["a", "m"]

    live(story)


def test_a_conflict_on_a_pod_still_pending_is_an_error_that_is_retried() -> None:
    async def story(world: World) -> None:
        await world.add_node("n", gpus=1)
        world.scheduler(kube=Flaky(world, [("before", ConflictError("try again"))]))
        await world.add("p", gpus=1)
        assert await world.until_bound("p", within_s=2) == pytest.approx(1.0, abs=0.02)

    live(story)


def test_a_scheduler_killed_at_any_moment_leaves_a_state_from_which_the_next_goes_on() -> None:
    async def story(world: World) -> None:
        for name in ("a", "b"):
            await world.add_node(name, gpus=10)
        for round_ in range(5):
            world.scheduler()
            for number in range(4):
                await world.add(f"p{round_}-{number}", gpus=1)
            for _ in range(round_ * 3):
                await asyncio.sleep(0)
            await world.kill()
        world.scheduler()
        await asyncio.sleep(1)
        pods = (await world.kube.list(PODS)).items
        placed = [node_name_of(pod) for pod in pods]
        assert len(placed) == 20
        assert sorted(placed) == ["a"] * 10 + ["b"] * 10
        for pod in pods:
            assert len([n for n in await world.notes(pod["metadata"]["name"]) if n.startswith("Success")]) <= 1

    live(story)


def test_a_restarted_scheduler_takes_the_oldest_pods_first() -> None:
    async def story(world: World) -> None:
        for name in ("zebra", "lion", "ant"):
            await world.add(name, gpus=1)
            await asyncio.sleep(2)
        await world.add_node("n", gpus=2)
        world.scheduler()
        await asyncio.sleep(0.1)
        assert await world.nodes_of("zebra", "lion", "ant") == ["n", "n", ""]

    live(story)


def test_pods_on_nodes_unknown_to_the_api_are_counted_once_the_node_comes() -> None:
    async def story(world: World) -> None:
        await world.add("early", gpus=1, nodeName="n")
        world.scheduler()
        await asyncio.sleep(0.1)
        await world.add_node("n", gpus=1)
        await world.add("late", gpus=1)
        await asyncio.sleep(0.1)
        assert await world.node_of("late") == ""
        await world.remove("early")
        await world.until_bound("late", within_s=0.1)

    live(story)


JOURNAL = """
import asyncio, json
from mews.kube.api.resources import NEW_EVENTS, PODS
from tests.kube.scheduling.world import live
async def story(world):
    await world.priority("high", 9)
    for n in range(12):
        await world.add_node(f"n{n}", gpus=n % 5, labels={"zone": f"z{n % 3}"})
    world.scheduler()
    for n in range(40):
        more = {"priorityClassName": "high"} if n % 7 == 6 else {}
        await world.add(f"p{n}", gpus=n % 3 + 1, **more)
        await asyncio.sleep(0.3 if n % 4 else 0)
    await asyncio.sleep(700)
    print(json.dumps([(await world.kube.list(r)).items for r in (PODS, NEW_EVENTS)]))
live(story)
"""


def test_two_runs_of_one_seed_write_the_same_bytes_whatever_the_hash_seed() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", JOURNAL],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert len(outputs[0]) > 10_000
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        ("no-colon", "plugin 'no-colon': write it as module:callable"),
        ("no.such.module:Plugin", "plugin 'no.such.module:Plugin': module 'no.such.module' cannot be imported"),
        ("mews.kube.clock:Nothing", "plugin 'mews.kube.clock:Nothing': 'mews.kube.clock' has no 'Nothing'"),
        ("mews.kube.scheduling.scores:MAX_SCORE", "is a int; must be callable with the scheduler's handle"),
    ],
)
def test_a_plugin_that_cannot_be_had_is_refused_in_one_line(reference: str, complaint: str) -> None:
    with pytest.raises(PluginDefinitionError) as refused:
        load_plugin(reference)
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_plugin_is_had_by_module_and_callable_with_its_arguments() -> None:
    async def story(world: World) -> None:
        fit = load_plugin("mews.kube.scheduling.plugins:NodeResourcesFit", {"ignored_resource_groups": ["nvidia.com"]})
        binder = load_plugin("mews.kube.scheduling.plugins:DefaultBinder")
        sort = load_plugin("mews.kube.scheduling.plugins:PrioritySort")
        await world.add_node("n", gpus=1)
        world.scheduler(SchedulerProfile("default-scheduler", (sort, fit, binder)))
        await world.add("p", gpus=7)
        await world.until_bound("p", within_s=0.1)

    live(story)


def test_profiles_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(ProfileError, match="may appear once only"):
        SchedulerConfig((default_profile(), default_profile()))
    with pytest.raises(ProfileError, match="at least one"):
        SchedulerConfig(())

    async def story(world: World, profile: SchedulerProfile, complaint: str) -> None:
        with pytest.raises(ProfileError, match=complaint):
            world.scheduler(profile)

    wrong: list[tuple[SchedulerProfile, str]] = [
        (default_profile(score_weights={"Nope": 1}), "no such Score plugin"),
        (SchedulerProfile("x", default_plugins()[:-1]), "no plugin binds"),
        (SchedulerProfile("x", default_plugins()[2:]), "one QueueSort plugin"),
        (SchedulerProfile("x", (*default_plugins(), *default_plugins())), "may appear once only"),
    ]
    for profile, complaint in wrong:
        live(lambda world, p=profile, c=complaint: story(world, p, c))  # type: ignore[misc]


def test_a_pod_whose_gates_come_off_takes_its_place_by_priority() -> None:
    async def story(world: World) -> None:
        await world.priority("high", 9)
        await world.add_node("n", gpus=1)
        world.scheduler()
        await world.add("holder", gpus=1)
        await world.until_bound("holder")
        await world.add("waiting", gpus=1)
        gates = [{"name": "example.test/wait"}]
        await world.add("gated", gpus=1, priorityClassName="high", schedulingGates=gates, preemptionPolicy=None)
        await asyncio.sleep(5)
        await world.edit_node("n", lambda n: n["spec"].update(unschedulable=True))
        await world.remove("holder")
        await world.kube.patch(PODS, "gated", {"spec": {"schedulingGates": None}}, namespace="default")
        await world.edit_node("n", lambda n: n["spec"].pop("unschedulable"))
        await asyncio.sleep(0.1)
        assert await world.nodes_of("gated", "waiting") == ["n", ""]

    live(story)
