"""What a release does with devices that pods claim reaches every scheduler, and ``explain``."""

from __future__ import annotations

from typing import Any

import pytest

from mews.kube.api.resource_claims import allocation_of
from mews.kube.api.resources import RESOURCE_CLAIMS
from tests.harness.live.sessions import explained, in_session

_VERSION = "resource.k8s.io/v1"
_TAINT = {"key": "example.com/repair", "effect": "NoSchedule"}
_RULE = {
    "apiVersion": _VERSION,
    "kind": "DeviceTaintRule",
    "metadata": {"name": "repair"},
    "spec": {"deviceSelector": {"driver": "fabric.example.com"}, "taint": _TAINT},
}


class Idle:
    """A scheduler plugin that says nothing."""

    name = "Idle"

    def __init__(self, handle: Any) -> None:
        """Made as the scheduler starts."""


def steps(scheduler: str, *, taint: bool = False) -> list[dict[str, Any]]:
    """One device for all nodes, and a pod of that scheduler with a claim."""
    device = {"name": "first", **({"taints": [_TAINT]} if taint else {})}
    pool = {"name": "fabric", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "fabric.example.com", "pool": pool, "allNodes": True, "devices": [device]}
    container = {"name": "main", "image": "mews/gpu-hold", "resources": {"claims": [{"name": "d"}]}}
    requests = [{"name": "d", "exactly": {"deviceClassName": "fabric"}}]
    pod = {
        "schedulerName": scheduler,
        "resourceClaims": [{"name": "d", "resourceClaimName": "one"}],
        "containers": [container],
    }
    made = [
        {"apiVersion": _VERSION, "kind": "ResourceSlice", "metadata": {"name": "fabric"}, "spec": spec},
        {"apiVersion": _VERSION, "kind": "DeviceClass", "metadata": {"name": "fabric"}, "spec": {}},
        {
            "apiVersion": _VERSION,
            "kind": "ResourceClaim",
            "metadata": {"name": "one"},
            "spec": {"devices": {"requests": requests}},
        },
        {"kind": "Pod", "metadata": {"name": "a"}, "spec": pod},
    ]
    return [{"apply": each} for each in made]


def stack(text: str) -> str:
    return f"hardware: demo\nstack: {{kubernetes: '1.37', {text}}}\n"


_PLUGIN = "{plugin: 'tests.harness.live.test_device_features:Idle'}"
_SCHEDULERS = [
    ("default-scheduler", "kubecomp: null"),
    ("kubecomp-scheduler", "kubecomp: {}"),
    ("kubecomp-scheduler", f"kubecomp: {{}}, replace: {{kubecomp: {{scheduler: {_PLUGIN}}}}}"),
    ("koord-scheduler", "kubecomp: null, koordinator: {}"),
    ("koord-scheduler", f"kubecomp: null, koordinator: {{}}, replace: {{koordinator: {{koord-scheduler: {_PLUGIN}}}}}"),
]


@pytest.mark.parametrize(("scheduler", "text"), _SCHEDULERS)
@pytest.mark.parametrize("taint", [False, True])
def test_every_scheduler_knows_the_taints_of_its_release(scheduler: str, text: str, taint: bool) -> None:
    async def play(session: Any) -> bool:
        import asyncio

        for step in steps(scheduler, taint=taint):
            await session.perform(step)
        await asyncio.sleep(10)
        return allocation_of(await session.cluster.kube.get(RESOURCE_CLAIMS, "one", namespace="default")) is None

    assert in_session(play, stack(text)) is taint


@pytest.mark.parametrize("rule", [False, True])
def test_the_taint_that_a_claim_does_not_tolerate_is_explained(rule: bool) -> None:
    given = [*([{"apply": _RULE}] if rule else []), *steps("default-scheduler", taint=not rule)]
    explanation = explained(given, "a", text=stack("kubecomp: null"))
    words = "request d wants 1: of 1 devices 0 are free and match (1 tainted example.com/repair)."
    assert f"Claim one is not allocated: {words}" in explanation.sentences
