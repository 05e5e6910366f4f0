"""Every placement that was measured on kube-scheduler 1.34.2 ends here in the same words (data/scheduler-1.34)."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from mews.kube.api.objects import condition_of
from tests.kube.scheduling.world import World, live, on_host, taint

NOT_HELPFUL = (
    "no new claims to deallocate, preemption: 0/7 nodes are available: 7 Preemption is not helpful for scheduling."
)
CLOSED = "1 node(s) were unschedulable, 2 node(s) had untolerated taint(s)"


def affinity(kind: str, term: dict[str, Any]) -> dict[str, Any]:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": term}}


NODE_AFFINITY = affinity(
    "nodeAffinity",
    {"nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu.model", "operator": "In", "values": ["H100"]}]}]},  # type: ignore[dict-item]
)
BY_NAME = affinity(
    "nodeAffinity",
    {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["nowhere"]}]}]},  # type: ignore[dict-item]
)
APP_TERM = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "lonely"}}}
AGAINST = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APP_TERM]}}
TOWARD = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            APP_TERM | {"labelSelector": {"matchLabels": {"app": "nobody"}}}
        ]
    }
}
SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": "rack",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"a": "b"}},
    }
]
PORT = {"ports": [{"containerPort": 80, "hostPort": 8080}]}

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "too many gpus": ({"gpus": 9}, f"0/7 nodes are available: {CLOSED}, 4 Insufficient nvidia.com/gpu. {NOT_HELPFUL}"),
    "node selector mismatch": (
        {"nodeSelector": {"gpu.model": "H100"}},
        f"0/7 nodes are available: {CLOSED}, 4 node(s) didn't match Pod's node affinity/selector. {NOT_HELPFUL}",
    ),
    "node affinity mismatch": (
        {"affinity": NODE_AFFINITY},
        f"0/7 nodes are available: {CLOSED}, 4 node(s) didn't match Pod's node affinity/selector. {NOT_HELPFUL}",
    ),
    "affinity to a name that is missing": (
        {"affinity": BY_NAME},
        f"0/7 nodes are available: 7 node(s) didn't satisfy plugin(s) [NodeAffinity]. {NOT_HELPFUL}",
    ),
    "resource no node has": (
        {"requests": {"example.test/fpga": "1"}, "container": {"resources": {"limits": {"example.test/fpga": "1"}}}},
        f"0/7 nodes are available: {CLOSED}, 4 Insufficient example.test/fpga. {NOT_HELPFUL}",
    ),
    "several resources": (
        {"gpus": 9, "requests": {"cpu": "500", "memory": "9Ti"}},
        f"0/7 nodes are available: {CLOSED}, 4 Insufficient cpu, 4 Insufficient memory, "
        f"4 Insufficient nvidia.com/gpu. {NOT_HELPFUL}",
    ),
    "pod anti-affinity": (
        {"affinity": AGAINST, "nodeSelector": on_host("g0"), "labels": {"app": "lonely"}},
        "0/7 nodes are available: 1 node(s) didn't match pod anti-affinity rules, "
        f"{CLOSED}, 3 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, preemption: "
        "0/7 nodes are available: 1 No preemption victims found for incoming pod, "
        "6 Preemption is not helpful for scheduling.",
    ),
    "pod affinity": (
        {"affinity": TOWARD, "gpus": 1},
        "0/7 nodes are available: 1 Insufficient nvidia.com/gpu, "
        f"{CLOSED}, 3 node(s) didn't match pod affinity rules. {NOT_HELPFUL}",
    ),
    "spread without the label": (
        {"topologySpreadConstraints": SPREAD, "gpus": 1},
        "0/7 nodes are available: 1 Insufficient nvidia.com/gpu, "
        f"{CLOSED}, 3 node(s) didn't match pod topology spread constraints (missing required label). {NOT_HELPFUL}",
    ),
    "host port port2": (
        {"container": PORT, "nodeSelector": on_host("g1")},
        "0/7 nodes are available: 1 node(s) didn't have free ports for the requested pod ports, "
        f"{CLOSED}, 3 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, preemption: "
        "0/7 nodes are available: 1 No preemption victims found for incoming pod, "
        "6 Preemption is not helpful for scheduling.",
    ),
    "only the cordoned node": (
        {"nodeSelector": on_host("cordoned")},
        f"0/7 nodes are available: {CLOSED}, 4 node(s) didn't match Pod's node affinity/selector. {NOT_HELPFUL}",
    ),
}


async def furnish(world: World) -> None:
    """Seven nodes: three with GPUs, one without, one cordoned, two tainted; a lonely pod on g0, a port taken on g1."""
    for name in ("g0", "g1", "g2"):
        await world.add_node(name, gpus=4)
    await world.add_node("plain")
    await world.add_node("cordoned", gpus=4, unschedulable=True)
    await world.add_node("tainted", gpus=4, taints=[taint("dedicated", value="x")])
    await world.add_node("draining", gpus=4, taints=[taint("maintenance", "NoExecute")])
    await world.add("anti1", affinity=AGAINST, nodeSelector=on_host("g0"), labels={"app": "lonely"})
    await world.add("port1", container=PORT, nodeSelector=on_host("g1"))


@pytest.mark.parametrize("case", CASES)
def test_a_pod_that_fits_nowhere_is_told_why_as_kube_scheduler_does(case: str) -> None:
    async def story(world: World) -> None:
        options, expected = CASES[case]
        await furnish(world)
        world.scheduler()
        await world.until_bound("port1")
        if case == "resource no node has":
            options = {
                "requests": {"example.test/fpga": "1"},
                "container": {
                    "resources": options["container"]["resources"] | {"requests": {"example.test/fpga": "1"}}
                },
            }
        await world.add("p", **options)
        await asyncio.sleep(0.5)
        assert expected == await world.message("p")
        (event,) = await world.events("p")
        assert (event["type"], event["reason"], event["action"], event["note"]) == (
            "Warning",
            "FailedScheduling",
            "Scheduling",
            expected,
        )

    live(story)


@pytest.mark.parametrize("case", CASES)
def test_the_words_expected_here_are_the_measured_ones(case: str) -> None:
    folder = os.environ.get("MEWS_DATA_DIR")
    if not folder:
        pytest.skip("MEWS_DATA_DIR is not set: the measured answers are not at hand")
    measured = json.loads((Path(folder) / "scheduler-1.34" / "outcomes.json").read_text())
    assert CASES[case][1] == measured[case]["status"]["conditions"][0]["message"]


def test_without_nodes_the_pod_is_told_that_there_are_none() -> None:
    async def story(world: World) -> None:
        world.scheduler()
        await world.add("p")
        await asyncio.sleep(0.1)
        assert await world.message("p") == "no nodes available to schedule pods"
        await world.add_node("n")
        await world.until_bound("p", within_s=2)

    live(story)


def test_a_full_node_has_too_many_pods() -> None:
    async def story(world: World) -> None:
        await world.add_node("small", pods=1)
        world.scheduler()
        await world.add("first")
        await world.add("second")
        await asyncio.sleep(0.1)
        assert await world.message("second") == (
            "0/1 nodes are available: 1 Too many pods. no new claims to deallocate, preemption: "
            "0/1 nodes are available: 1 No preemption victims found for incoming pod."
        )

    live(story)


def test_the_condition_and_the_events_have_exactly_the_measured_fields() -> None:
    async def story(world: World) -> None:
        await world.add_node("n", gpus=1)
        world.scheduler()
        created = await world.add("toobig", gpus=9)
        await world.add("fits", gpus=1)
        await asyncio.sleep(0.1)
        condition = condition_of(await world.get("toobig"), "PodScheduled")
        assert condition == {
            "type": "PodScheduled",
            "observedGeneration": 1,
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "reason": "Unschedulable",
            "message": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. no new claims to deallocate, "
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
        }
        (failed,) = await world.events("toobig")
        assert failed["regarding"] == {
            "kind": "Pod",
            "namespace": "default",
            "name": "toobig",
            "uid": created["metadata"]["uid"],
            "apiVersion": "v1",
            "resourceVersion": created["metadata"]["resourceVersion"],
        }
        stem, _, stamp = failed["metadata"]["name"].partition(".")
        assert stem == "toobig"
        assert len(stamp) == 16
        assert int(stamp, 16) // 10**9 == 1_767_225_600
        (scheduled,) = await world.events("fits")
        told = {
            k: scheduled[k] for k in ("type", "reason", "action", "note", "reportingController", "reportingInstance")
        }
        assert told == {
            "type": "Normal",
            "reason": "Scheduled",
            "action": "Binding",
            "note": "Successfully assigned default/fits to n",
            "reportingController": "default-scheduler",
            "reportingInstance": "default-scheduler-mews",
        }

    live(story)


def test_gated_pods_are_passed_over_in_silence_until_the_gate_is_lifted() -> None:
    async def story(world: World) -> None:
        await world.add_node("n")
        world.scheduler()
        await world.add("gated", schedulingGates=[{"name": "example.test/wait"}])
        await asyncio.sleep(400)
        assert await world.events("gated") == []
        assert await world.message("gated") == "Scheduling is blocked due to non-empty scheduling gates"
        free = json.loads(json.dumps(await world.get("gated")))
        del free["spec"]["schedulingGates"]
        from mews.kube.api.resources import PODS

        await world.kube.replace(PODS, free)
        await world.until_bound("gated", within_s=0.1)

    live(story)


def test_tolerated_taints_and_other_schedulers_pods() -> None:
    async def story(world: World) -> None:
        await world.add_node("tainted", taints=[taint("dedicated", value="x")])
        world.scheduler()
        await world.add("tolerates", tolerations=[{"key": "dedicated", "operator": "Equal", "value": "x"}])
        await world.add("other", schedulerName="someone-else")
        await asyncio.sleep(1)
        assert await world.nodes_of("tolerates", "other") == ["tainted", ""]
        assert await world.events("other") == []

    live(story)
