"""Containers that are put into a pod while it runs."""

from __future__ import annotations

from typing import Any

from mews.harness.clock import run_virtual
from mews.kube.api.objects import Object
from mews.kube.api.resources import EVENTS, PODS
from tests.kube.emulated.kubelet.bench import Bench


async def _put(bench: Bench, pod: str, *containers: dict[str, Any]) -> None:
    found = await bench.get(pod)
    body = {**found, "spec": {**found["spec"], "ephemeralContainers": list(containers)}}
    await bench.kube.replace(PODS, body, namespace="default", subresource="ephemeralcontainers")


def _statuses(pod: Object) -> list[dict[str, Any]]:
    return list(pod["status"].get("ephemeralContainerStatuses") or ())


def test_an_ephemeral_container_starts_beside_the_others_and_is_never_started_again() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await bench.pod("p", ["sleep", "3600"])
            await bench.phase("p", "Running")
            debugger = {"name": "debugger", "image": "busybox", "command": ["sleep", "30"]}
            await _put(bench, "p", debugger)
            seen = await bench.until("p", lambda pod: any("running" in each["state"] for each in _statuses(pod)))
            (status,) = _statuses(seen)
            assert (status["name"], status["ready"], "started" in status) == ("debugger", False, False)
            assert seen["status"]["phase"] == "Running"
            assert seen["metadata"]["generation"] == seen["status"]["observedGeneration"] == 2
            await _put(bench, "p", debugger, {**debugger, "name": "other", "command": ["sleep", "3600"]})
            ended = await bench.until("p", lambda pod: any("terminated" in each["state"] for each in _statuses(pod)))
            assert [sorted(each["state"]) for each in _statuses(ended)] == [["terminated"], ["running"]]
            assert [each["restartCount"] for each in _statuses(ended)] == [0, 0]
            assert all(each["ready"] for each in ended["status"]["containerStatuses"])
            events = (await bench.kube.list(EVENTS, namespace="default")).items
            paths = {event["involvedObject"].get("fieldPath") for event in events if event["reason"] == "Started"}
            assert "spec.ephemeralContainers{debugger}" in paths

    run_virtual(main)


def test_a_pod_ends_with_its_main_containers_whatever_its_ephemeral_ones_do() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await bench.pod("p", ["sleep", "60"])
            await bench.phase("p", "Running")
            await _put(bench, "p", {"name": "debugger", "image": "busybox", "command": ["sleep", "3600"]})
            ended = await bench.phase("p", "Succeeded")
            assert "terminated" in _statuses(ended)[0]["state"]

    run_virtual(main)
