"""The unmodified kube-scheduler on the embedded API: 500 pods, 50 nodes, GPUs as an extended resource, an extender."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from mews.harness.clusters.programs.scheduler import kube_scheduler
from mews.kube.api.errors import AlreadyExistsError
from mews.kube.api.objects import Object, condition_of, labels_of, name_of, node_name_of
from mews.kube.api.pod_requests import request_of
from mews.kube.api.resources import NEW_EVENTS, NODES, PODS, SERVICE_ACCOUNTS
from tests.kube.emulated.apiserver.real_parts import ClusterAdmin, ground, missing, troubles, until

pytestmark = [
    pytest.mark.wall,
    pytest.mark.skipif(bool(missing("kube-scheduler")), reason=missing("kube-scheduler") or "-"),
]

GPU = "example.com/gpu"
NODES_COUNT, GPUS_A_NODE, PODS_A_NODE = 50, 4, 12
SIZES = (0, 0, 1, 1, 2, 4)
"""GPUs of pods, in turn: 500 pods ask for more than the 200 there are."""
PODS_COUNT = 500
BANNED = {"node-00", "node-01"}
"""Nodes that the extender refuses to pods with GPUs."""
_NOTE = re.compile(
    r"0/50 nodes are available: \d+ [^,]+?(, \d+ [^,]+?)*\. "
    r"no new claims to deallocate, preemption: 0/50 nodes are available: \d+ [^,]+?(, \d+ [^,]+?)*\."
)


@asynccontextmanager
async def extender(asked: Counter[str]) -> AsyncIterator[str]:
    """Serves the filter verb (k8s.io/kube-scheduler/extender/v1): all nodes but the banned ones."""

    async def filter_(request: web.Request) -> web.Response:
        arguments: dict[str, Any] = await request.json()
        asked[arguments["Pod"]["metadata"]["name"]] += 1
        names = arguments.get("NodeNames") or [node["metadata"]["name"] for node in arguments["Nodes"]["items"]]
        kept = [name for name in names if name not in BANNED]
        failed = {name: "reserved" for name in names if name in BANNED}
        return web.json_response({"NodeNames": kept, "FailedNodes": failed, "Error": ""})

    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/filter", filter_)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def node(number: int) -> Object:
    amounts = {"cpu": "32", "memory": "64Gi", "pods": str(PODS_A_NODE), GPU: str(GPUS_A_NODE)}
    name = f"node-{number:02}"
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def pod(number: int) -> Object:
    gpus = SIZES[number % len(SIZES)]
    resources: dict[str, Any] = {"requests": {"cpu": "100m"}}
    if gpus:
        resources["limits"] = {GPU: str(gpus)}
    metadata = {"name": f"pod-{number:03}", "labels": {"gpus": str(gpus)}}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "x", "resources": resources}]}}


async def fill(on: ClusterAdmin) -> None:
    for number in range(NODES_COUNT):
        made = await on.kube.create(NODES, node(number))
        await on.kube.patch(NODES, name_of(made), {"spec": {"taints": None}})
    # Eight at a time: one connection each, and the scheduler works meanwhile.
    with suppress(AlreadyExistsError):  # its controller may be slower than the first pod
        await on.kube.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace="default")
    for start in range(0, PODS_COUNT, 8):
        numbers = range(start, min(start + 8, PODS_COUNT))
        await asyncio.gather(*(on.kube.create(PODS, pod(n), namespace="default") for n in numbers))


def judged(seen: Object) -> bool:
    return bool(node_name_of(seen)) or (condition_of(seen, "PodScheduled") or {}).get("reason") == "Unschedulable"


def check_capacity(pods: list[Object]) -> None:
    gpus: Counter[str] = Counter()
    count: Counter[str] = Counter(node_name_of(each) for each in pods if node_name_of(each))
    for each in pods:
        if node_name_of(each):
            gpus[node_name_of(each)] += request_of(each, GPU)
            assert request_of(each, GPU) == 0 or node_name_of(each) not in BANNED, name_of(each)
    assert max(count.values()) <= PODS_A_NODE
    assert max(gpus.values()) <= GPUS_A_NODE
    # What is left over was left over for want of room alone.
    free = [GPUS_A_NODE - gpus[f"node-{n:02}"] for n in range(NODES_COUNT) if f"node-{n:02}" not in BANNED]
    waiting = [request_of(each, GPU) for each in pods if not node_name_of(each)]
    assert waiting, "everything was placed: the test asks for too little"
    assert min(waiting) > max(free), (min(waiting), max(free))


def check_events(events: list[Object], pods: list[Object]) -> None:
    by_pod: dict[str, list[Object]] = {}
    for event in events:
        by_pod.setdefault(event["regarding"]["name"], []).append(event)
    for each in pods:
        mine = by_pod[name_of(each)]
        bound = [event for event in mine if event["reason"] == "Scheduled"]
        failed = [event for event in mine if event["reason"] == "FailedScheduling"]
        assert len(bound) == bool(node_name_of(each)), (name_of(each), mine)
        for event in bound:
            assert event["note"] == f"Successfully assigned default/{name_of(each)} to {node_name_of(each)}"
            assert (event["type"], event["action"]) == ("Normal", "Binding")
        assert failed or node_name_of(each)
        for event in failed:
            assert (event["type"], event["action"]) == ("Warning", "Scheduling")
            assert _NOTE.fullmatch(event["note"]), event["note"]
            assert event["reportingController"] == "default-scheduler"
            assert event["regarding"]["uid"] == each["metadata"]["uid"]
            assert re.fullmatch(r".*T\d\d:\d\d:\d\d\.\d{6}Z", event["eventTime"])
        if not node_name_of(each):
            assert condition_of(each, "PodScheduled")["message"] in [event["note"] for event in failed]  # type: ignore[index]


def test_kube_scheduler_loses_no_pod_and_overfills_no_node(tmp_path: Path) -> None:
    async def main() -> None:
        asked: Counter[str] = Counter()
        async with ground(tmp_path) as on, extender(asked) as url:
            settings = {"urlPrefix": url, "filterVerb": "filter", "nodeCacheCapable": True, "weight": 1}
            managed = {"managedResources": [{"name": GPU}]}
            program = kube_scheduler(
                tmp_path, on.kubeconfig, extenders=[{**settings, **managed}], content_type="application/json"
            )
            async with on.running(program):
                await fill(on)

                async def all_judged() -> bool:
                    return all(judged(each) for each in (await on.kube.list(PODS, namespace="default")).items)

                async def listed() -> tuple[list[Object], list[Object]]:
                    pods = (await on.kube.list(PODS, namespace="default")).items
                    return pods, (await on.kube.list(NEW_EVENTS, namespace="default")).items

                await until(all_judged, "every pod is bound or known not to fit")
                pods, events = await listed()
                assert len(pods) == PODS_COUNT

                async def settled() -> bool:
                    """One that found no room before its node was seen is tried again; events come after the binding."""
                    nonlocal pods, events
                    pods, events = await listed()
                    with suppress(AssertionError, KeyError):
                        check_capacity(pods)
                        check_events(events, pods)
                        return True
                    return False

                with suppress(AssertionError):  # what is wrong then is said below
                    await until(settled, "every pod is where it stays, and its events are there")
        check_capacity(pods)
        check_events(events, pods)
        assert set(asked) == {name_of(each) for each in pods if labels_of(each)["gpus"] != "0"}
        assert troubles(tmp_path / "default-scheduler.log") == []

    asyncio.run(main())
