"""Environments that come from ConfigMaps and Secrets, in virtual time."""

from __future__ import annotations

import base64
from typing import Any

from mews.harness.clock import run_virtual
from mews.kube.api.objects import Object
from mews.kube.api.resources import CONFIGMAPS, SECRETS
from tests.kube.emulated.kubelet.bench import Bench


def container(**parts: Any) -> dict[str, Any]:
    return {"name": "main", "image": "busybox", "command": ["env"], **parts}


def waiting(pod: Object) -> dict[str, Any]:
    statuses = pod["status"].get("containerStatuses") or [{"state": {}}]
    return dict(statuses[0]["state"].get("waiting") or {})


async def filled(bench: Bench) -> None:
    config = {"metadata": {"name": "settings"}, "data": {"A": "1", "B": "two"}}
    secret = {"metadata": {"name": "keys"}, "data": {"B": base64.b64encode(b"hidden").decode()}}
    await bench.kube.create(CONFIGMAPS, config, namespace="default")
    await bench.kube.create(SECRETS, secret, namespace="default")


def test_config_maps_and_secrets_reach_the_environment_and_env_wins() -> None:
    async def main() -> None:
        bench = Bench()
        await filled(bench)
        async with bench.running():
            parts = container(
                envFrom=[
                    {"configMapRef": {"name": "settings"}},
                    {"prefix": "K_", "secretRef": {"name": "keys"}},
                    {"configMapRef": {"name": "nowhere", "optional": True}},
                ],
                env=[
                    {"name": "A", "value": "own $(B)"},
                    {"name": "C", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "B"}}},
                    {"name": "D", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "x", "optional": True}}},
                ],
            )
            made = await bench.pod("a", containers=[parts])
            await bench.phase("a", "Succeeded")
            chunks = [chunk async for chunk in bench.containerd.log(made["metadata"]["uid"], "main")]
            assert b"".join(chunks).decode().split("\n") == [
                *("A=own two", "B=two", "C=hidden", "HOSTNAME=a", "K_B=hidden", ""),
            ]
        await bench.containerd.close()

    run_virtual(main)


def test_a_container_waits_for_what_its_environment_refers_to_and_starts_once_it_is_there() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            await bench.pod("map", containers=[container(envFrom=[{"configMapRef": {"name": "settings"}}])])
            reference = {"secretKeyRef": {"name": "keys", "key": "none"}}
            await bench.pod("key", containers=[container(env=[{"name": "X", "valueFrom": reference}])])
            lacks = await bench.until("map", lambda pod: bool(waiting(pod).get("message")))
            assert waiting(lacks) == {
                "reason": "CreateContainerConfigError",
                "message": 'configmap "settings" not found',
            }
            none = await bench.until("key", lambda pod: bool(waiting(pod).get("message")))
            assert waiting(none)["message"] == 'secret "keys" not found'
            assert ("Warning", "Failed", 'Error: configmap "settings" not found') in [
                event[:3] for event in await bench.events("map")
            ]
            await filled(bench)
            await bench.phase("map", "Succeeded")
            lost = await bench.until("key", lambda pod: "couldn't" in waiting(pod).get("message", ""))
            assert waiting(lost)["message"] == "couldn't find key none in Secret default/keys"
        await bench.containerd.close()

    run_virtual(main)
