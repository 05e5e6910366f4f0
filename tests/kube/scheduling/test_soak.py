"""Random days in the life of a cluster: whatever happens, no node is over-full and what fits is bound."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest

from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import is_terminal, node_name_of
from mews.kube.api.resources import NODES, PODS
from tests.kube.scheduling.world import GPU, World, default_profile, live


async def crowding(world: World) -> dict[str, int]:
    """Free GPUs per node; asserts that none is negative and no node has more pods than it may."""
    free = {
        n["metadata"]["name"]: int(n["status"]["allocatable"].get(GPU, 0)) for n in (await world.kube.list(NODES)).items
    }
    for pod in (await world.kube.list(PODS)).items:
        if node_name_of(pod) and not is_terminal(pod):
            free[node_name_of(pod)] -= gpus_of(pod)
    assert min(free.values()) >= 0, free
    return free


def gpus_of(pod: dict[str, object]) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["requests"].get(GPU, 0))  # type: ignore[index]


@pytest.mark.parametrize("seed", range(6))
def test_no_node_is_over_full_and_in_the_end_nothing_waits_that_fits(seed: int) -> None:
    async def story(world: World) -> None:
        rng = random.Random(seed)
        await world.priority("high", 100)
        for number in range(4):
            await world.add_node(f"n{number}", gpus=4)
        world.scheduler(default_profile())
        alive: list[str] = []
        for step in range(120):
            await act(world, rng, alive, step)
            await asyncio.sleep(rng.choice((0, 0, 0.01, 0.5, 3)))
            await crowding(world)
        await bury(world)
        await asyncio.sleep(700)
        await bury(world)
        await asyncio.sleep(700)
        free = await crowding(world)
        for pod in (await world.kube.list(PODS)).items:
            assert node_name_of(pod) or gpus_of(pod) > max(free.values()), (pod["metadata"]["name"], free)

    live(story, seed)


async def act(world: World, rng: random.Random, alive: list[str], step: int) -> None:
    match rng.choice(("create", "create", "create", "remove", "finish", "restart", "bury", "cordon")):
        case "create":
            name = f"p{step}"
            more = {"priorityClassName": "high"} if rng.random() < 0.2 else {}
            await world.add(name, gpus=rng.randint(1, 3), **more)
            alive.append(name)
        case "remove" | "finish" as verb if alive:
            name = alive.pop(rng.randrange(len(alive)))
            with suppress(NotFoundError):  # preempted and buried
                await (world.remove(name) if verb == "remove" else world.finish(name))
        case "restart":
            await world.kill()
            world.scheduler(default_profile())
        case "bury":
            await bury(world)
        case "cordon":
            node = f"n{rng.randrange(4)}"
            await world.edit_node(node, lambda n: n["spec"].update(unschedulable=True))
            await asyncio.sleep(0.2)
            await world.edit_node(node, lambda n: n["spec"].pop("unschedulable"))


async def bury(world: World) -> None:
    """What a kubelet would do: victims of preemption end."""
    for pod in (await world.kube.list(PODS)).items:
        if pod["metadata"].get("deletionTimestamp"):
            await world.remove(pod["metadata"]["name"])
