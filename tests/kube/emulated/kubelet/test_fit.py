"""What the kubelet itself refuses of the pods that are bound to its node, and when they count as its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.objects import name_of
from mews.kube.api.resources import NODES, PODS
from mews.kube.client.port import Patch
from tests.kube.emulated.kubelet.bench import NODE, Bench, pod


def test_a_pod_behind_one_whose_admission_hangs_is_not_active_yet() -> None:
    async def main() -> None:
        bench = Bench()
        bench.devices.admission_s = 30.0
        async with bench.running() as kubelet:
            await asyncio.sleep(5)
            for name in ("first", "second"):
                await bench.pod(name, ["sleep", "3600"])
            await asyncio.sleep(1)
            assert [name_of(pod) for pod in kubelet.active_pods()] == ["first"]
            assert kubelet.known_pod("default", "second") is not None
            await asyncio.sleep(30)
            assert [name_of(pod) for pod in kubelet.active_pods()] == ["first", "second"]

    run_virtual(main)


@pytest.mark.parametrize(
    ("reason", "message", "parts"),
    [
        (
            "NodePorts",
            "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
            {"containers": [{"name": "main", "image": "busybox", "ports": [{"containerPort": 80, "hostPort": 8080}]}]},
        ),
        (
            "NodeAffinity",
            "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
            {"nodeSelector": {"disk": "fast"}},
        ),
        (
            "TaintToleration",
            "Pod was rejected: Predicate TaintToleration failed: node(s) had untolerated taint(s)",
            {"tolerations": [{"key": "other", "operator": "Exists"}]},
        ),
        (
            "PodOSNotSupported",
            "Pod was rejected: Failed to admit pod as the OS field doesn't match node OS",
            {"os": {"name": "windows"}},
        ),
    ],
)
def test_the_kubelet_refuses_what_does_not_fit_its_node(reason: str, message: str, parts: dict[str, Any]) -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await asyncio.sleep(5)
            ports = [{"name": "main", "image": "busybox", "command": ["sleep", "3600"]}]
            ports[0]["ports"] = [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1"}]
            await bench.kube.create(PODS, pod("holder", containers=ports), namespace="default")
            await bench.kube.bind("default", "holder", NODE)
            await bench.phase("holder", "Running")
            if reason == "TaintToleration":
                taint = {"key": "gone", "effect": "NoExecute"}
                await bench.kube.patch(NODES, NODE, {"spec": {"taints": [taint]}}, kind=Patch.MERGE)
                await asyncio.sleep(15)  # seen with the tick
            body = pod("p", ["sleep", "3600"])
            body["spec"] |= parts
            await bench.kube.create(PODS, body, namespace="default")
            await bench.kube.bind("default", "p", NODE)
            refused = await bench.phase("p", "Failed")
            assert (refused["status"]["reason"], refused["status"]["message"]) == (reason, message)

    run_virtual(main)


def test_a_label_that_the_node_got_a_moment_ago_is_seen() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await asyncio.sleep(5)
            await bench.kube.patch(NODES, NODE, {"metadata": {"labels": {"disk": "fast"}}}, kind=Patch.MERGE)
            body = pod("p", ["sleep", "3600"])
            body["spec"]["nodeSelector"] = {"disk": "fast"}
            await bench.kube.create(PODS, body, namespace="default")
            await bench.kube.bind("default", "p", NODE)
            await bench.phase("p", "Running")

    run_virtual(main)
