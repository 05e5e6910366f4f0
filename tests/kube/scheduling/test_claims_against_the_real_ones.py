"""Pods with claims before our scheduler and controllers and before Kubernetes' own: the same verdicts and words."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.clusters.control_plane.servers import Servers
from mews.harness.clusters.programs.controllers import kube_controller_manager
from mews.harness.clusters.programs.finding import NEEDED
from mews.harness.clusters.programs.scheduler import kube_scheduler
from mews.harness.kubeconfig_file import write_kubeconfig
from mews.harness.ports.fence import Fence
from mews.kube.api.objects import annotations_of, condition_of, name_of, node_name_of
from mews.kube.api.resources import NAMESPACES, NEW_EVENTS, PODS
from mews.kube.api.volumes import SELECTED_NODE
from mews.kube.client.http import HttpKube
from mews.kube.client.port import KubeApi
from mews.kube.clock import Clock, Pace, stream
from mews.kube.component import Context, Runnable
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.controllers.manager import ControllerManager
from mews.kube.scheduling.config import SchedulerConfig
from mews.kube.scheduling.scheduler import Scheduler
from tests.kube.emulated.apiserver.real_parts import ground, missing
from tests.kube.emulated.controllers.puppet import raise_stage
from tests.kube.emulated.controllers.staging import Stage, smooth
from tests.kube.emulated.controllers.telling import RUN, Story, title
from tests.kube.scheduling.claim_stories import CLAIMS, REFUSED, STORIES, ZONE
from tests.kube.scheduling.world import default_profile

_MISSING = missing(*NEEDED, "kube-controller-manager", "kube-scheduler")
_ATTEMPTS = 3
JSON = "application/json"
_LUCK = re.compile(
    "Operation cannot be fulfilled|could not find v1[.]|waiting for pod|waiting for ephemeral volume controller"
)
"""What is said or not as one change comes before another or after it, or as time passes."""
Told = dict[str, dict[str, Any]]


async def _told(stage: Stage) -> dict[str, Any]:
    """What is left of a story: of each pod its verdict, of each claim its phase, of each what was said."""
    found: dict[str, Any] = {"on the way": [turn for turn in stage.seen if turn[0].startswith(REFUSED)]}
    for pod in await stage.all(PODS):
        condition = condition_of(pod, "PodScheduled") or {}
        verdict = [condition.get(key) for key in ("status", "reason", "message")]
        found[f"Pod/{name_of(pod)}"] = [bool(node_name_of(pod)), *verdict]
    for claim in await stage.all(CLAIMS):
        volume = claim["spec"].get("volumeName", "")
        chosen = bool(annotations_of(claim).get(SELECTED_NODE))
        found[smooth(f"Claim/{name_of(claim)}")] = [claim["status"]["phase"], volume, chosen]
    for event in await stage.all(NEW_EVENTS):
        about = event["regarding"]
        bound = found.get(f"Pod/{about['name']}", [False])[0]
        is_retry = bound and event["reason"] == "FailedScheduling"  # what it was refused for on its way
        if about["kind"] != "ResourceClaim" and not is_retry and not _LUCK.search(event["note"]):
            said = found.setdefault(smooth(f"events of {about['kind']}/{about['name']}"), set())
            said.add(smooth(f"{event['type']} {event['reason']} {_anywhere(event['note'])}"))
    return found


def _anywhere(text: str) -> str:
    """Which of two equal nodes is taken is a matter of luck."""
    return re.sub(r" to (east|west)$", " to a node", text)


async def _tell(kube: KubeApi, clock: Clock, parts: Sequence[Runnable], stories: Sequence[Story]) -> Told:
    for name in ("east", "west"):
        await raise_stage(kube, clock, name=name, labels={ZONE: name})
    running = [asyncio.create_task(each.run()) for each in parts]
    try:
        return dict(await asyncio.gather(*(_one(kube, story) for story in stories)))
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _one(kube: KubeApi, story: Story) -> tuple[str, dict[str, Any]]:
    stage = Stage(kube, title(story))
    await kube.create(NAMESPACES, {"metadata": {"name": stage.namespace}})
    await asyncio.sleep(1.0)
    await story(stage)
    return stage.namespace, await _told(stage)


def ours(stories: Sequence[Story], seed: int = 1) -> Told:
    async def main() -> Told:
        clock = virtual_clock()
        kube = InProcessKube(fresh_store(clock.now, stream(seed, "store"), attended=True))

        def context(name: str) -> Context:
            return Context(kube, clock, stream(seed, name), logging.getLogger(name))

        scheduler = Scheduler(context("scheduler"), SchedulerConfig((default_profile(),)))
        controllers = ControllerManager(context("controllers"), Pace(), controllers=RUN)
        return await _tell(kube, clock, (controllers, scheduler), stories)

    return run_virtual(main)


def theirs(stories: Sequence[Story], folder: Path) -> Told:
    servers = Servers()

    async def main() -> Told:
        await asyncio.to_thread(servers.ready)
        identity, kubeconfig = servers.identity, folder / "kubeconfig"
        cluster = {"server": servers.url, "certificate-authority": str(identity.certificate)}
        write_kubeconfig(kubeconfig, server=cluster, user={"token": identity.token})
        programs = (kube_controller_manager(folder, kubeconfig, run=RUN), kube_scheduler(folder, kubeconfig))
        kube = HttpKube(servers.url, token=identity.token, ssl=identity.client_context())
        try:
            return await _tell(kube, Clock.wall(), [each(Fence()) for each in programs if each is not None], stories)
        finally:
            await kube.close()

    try:
        return asyncio.run(main())
    finally:
        servers.stop()


def mixed(stories: Sequence[Story], folder: Path) -> Told:
    """On our API server, with the real scheduler and controllers."""

    async def main() -> Told:
        async with ground(folder) as on:
            programs = (
                kube_controller_manager(folder, on.kubeconfig, run=RUN, flags=(f"--kube-api-content-type={JSON}",)),
                kube_scheduler(folder, on.kubeconfig, content_type=JSON),
            )
            parts = [each(Fence()) for each in programs if each is not None]
            return await _tell(on.kube, Clock.wall(), parts, stories)

    return asyncio.run(main())


def test_every_story_of_claims_comes_to_its_end() -> None:
    told = ours(STORIES)
    assert set(told) == {title(story) for story in STORIES}
    assert told == ours(STORIES)


@pytest.mark.wall
@pytest.mark.skipif(bool(_MISSING), reason=_MISSING or "-")
@pytest.mark.parametrize("where", [theirs, mixed], ids=["real", "real-on-embedded"])
def test_pods_with_claims_get_the_verdicts_and_words_of_the_real_ones(
    where: Callable[[Sequence[Story], Path], Told], tmp_path: Path
) -> None:
    told, left = ours(STORIES), list(STORIES)
    for attempt in range(_ATTEMPTS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        expected = where(left, folder)
        left = [story for story in left if told[title(story)] != expected[title(story)]]
        if not left:
            return
    differing = [title(story) for story in left]
    assert {name: told[name] for name in differing} == {name: expected[name] for name in differing}
