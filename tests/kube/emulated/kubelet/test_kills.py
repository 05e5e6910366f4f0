"""The kubelet is killed at every moment of every situation, and comes back: pods end as they would have."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.errors import NotFoundError
from mews.kube.api.resources import PODS
from mews.kube.client.port import Patch
from mews.kube.emulated.kubelet.devices import AdmissionRejectedError
from tests.kube.emulated.kubelet.bench import NODE
from tests.kube.emulated.kubelet.kills import Fate, FragileNode, Story

FOREVER = ["sleep", "99999"]
STUBBORN = {"mews.dev/ignores-term": "true"}
AWAY_S = (pytest.param(0.0, marks=pytest.mark.nightly), 1.0, pytest.param(45.0, marks=pytest.mark.nightly))


def ends(command: list[str], **parts: Any) -> Story:
    """A pod that is left alone."""

    async def story(node: FragileNode) -> None:
        await node.pod("a", command, **parts)

    return story


def deleted(*graces_s: int | None, phase: str = "Running", every_s: float = 3.0, **parts: Any) -> Story:
    """A pod that is deleted once it has the phase, and again for each further grace."""
    command = parts.pop("command", FOREVER)

    async def story(node: FragileNode) -> None:
        await node.pod("a", command, **parts)
        await node.phase("a", phase)
        for grace_s in graces_s:
            with contextlib.suppress(NotFoundError):
                await node.delete("a", grace_s)
            await asyncio.sleep(every_s)

    return story


def recreated(grace_s: int | None, /, **parts: Any) -> Story:
    """A pod whose name another one has as soon as it is gone."""

    async def story(node: FragileNode) -> None:
        await node.pod("a", FOREVER, **parts)
        await node.phase("a", "Running")
        await node.delete("a", grace_s)
        await node.gone("a")
        await node.pod("a", ["sleep", "5"], policy="Never")

    return story


def patched(status: dict[str, Any], then: tuple[int | None, ...] = (), /, **parts: Any) -> Story:
    """A pod whose status somebody else writes while it runs."""

    async def story(node: FragileNode) -> None:
        await node.pod("a", FOREVER, **parts)
        await node.phase("a", "Running")
        body = {"status": status}
        await node.bench.kube.patch(PODS, "a", body, kind=Patch.MERGE, namespace="default", subresource="status")
        await asyncio.sleep(2.0)
        for grace_s in then:
            with contextlib.suppress(NotFoundError):
                await node.delete("a", grace_s)

    return story


def refused(*, delete: bool) -> Story:
    """A pod whose devices are not there, deleted while its refusal is written."""

    async def story(node: FragileNode) -> None:
        node.bench.devices.refuse["a"] = AdmissionRejectedError("UnexpectedAdmissionError", "no")
        node.bench.devices.admission_s = 1.0
        await node.pod("a", FOREVER)
        await asyncio.sleep(1.0)
        with contextlib.suppress(NotFoundError):
            if delete:
                await node.delete("a", 30)

    return story


def mirror() -> Story:
    async def story(node: FragileNode) -> None:
        await node.pod("a", FOREVER, bind=False, nodeName=NODE, annotations={"kubernetes.io/config.mirror": "abc"})

    return story


async def many(node: FragileNode) -> None:
    """Several at a time, one after the other deleted."""
    for number in range(4):
        await node.pod(f"p{number}", FOREVER, grace_s=1 + 10 * (number % 2), policy="Always")
    for number in range(4):
        await node.phase(f"p{number}", "Running")
        await node.delete(f"p{number}")
    await node.pod("done", ["true"])


def side(name: str, command: list[str], **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "busybox", "command": command, **more}


SIDECAR = side("proxy", FOREVER, restartPolicy="Always")
FLAKY = ["sh", "-c", "sleep 2; exit 3"]
SITUATIONS: dict[str, Story] = {
    "it ends well": ends(["sleep", "3"]),
    "it ends at once": ends(["true"]),
    "it fails": ends(FLAKY),
    "it fails and is to be started again": ends(FLAKY, policy="OnFailure"),
    "it ends well on failure alone": ends(["sleep", "3"], policy="OnFailure"),
    "it ends and is always started again": ends(["sleep", "7"], policy="Always"),
    "two containers, one fails": ends([], containers=[side("x", ["sleep", "4"]), side("y", FLAKY)]),
    "two containers, one after the other": ends([], containers=[side("x", ["sleep", "2"]), side("y", ["sleep", "6"])]),
    "an init container": ends(["sleep", "3"], inits=[side("prepare", ["sleep", "2"])]),
    "two init containers": ends(["sleep", "3"], inits=[side("one", ["sleep", "2"]), side("two", ["true"])]),
    "an init container fails": ends(["sleep", "3"], inits=[side("prepare", FLAKY)]),
    "an init container is tried again": ends(["sleep", "3"], policy="OnFailure", inits=[side("prepare", FLAKY)]),
    "a sidecar": ends(["sleep", "4"], inits=[SIDECAR]),
    "a sidecar that ends": ends(["sleep", "9"], inits=[side("proxy", ["sleep", "2"], restartPolicy="Always")]),
    "a deadline": ends(FOREVER, activeDeadlineSeconds=6),
    "a deadline, and TERM is ignored": ends(FOREVER, activeDeadlineSeconds=6, annotations=STUBBORN, grace_s=5),
    "deleted": deleted(None, grace_s=5),
    "deleted, and TERM is ignored": deleted(None, grace_s=5, annotations=STUBBORN),
    "deleted before it runs": deleted(None, phase="Pending", grace_s=5),
    "deleted with a grace of a second": deleted(1, annotations=STUBBORN),
    "deleted with a sidecar": deleted(None, grace_s=8, inits=[SIDECAR]),
    "deleted with a sidecar, and TERM is ignored": deleted(None, grace_s=8, inits=[SIDECAR], annotations=STUBBORN),
    "deleted in an init container": deleted(None, phase="Pending", grace_s=3, inits=[side("prepare", FOREVER)]),
    "deleted in its back-off": deleted(None, policy="Always", command=["false"], phase="Running", grace_s=2),
    "deleted as it ends": deleted(None, command=["sleep", "2"], grace_s=5),
    "deleted once it has ended": deleted(None, command=["true"], phase="Succeeded"),
    "deleted once it has failed": deleted(None, command=["false"], phase="Failed"),
    "deleted, its hook takes its time": deleted(
        None,
        grace_s=10,
        containers=[side("x", FOREVER, lifecycle={"preStop": {"sleep": {"seconds": 4}}})],
    ),
    "deleted twice, with a shorter grace": deleted(60, 4, annotations=STUBBORN),
    "deleted twice, then by force": deleted(60, 0, annotations=STUBBORN),
    "deleted by force": deleted(0, annotations=STUBBORN),
    "deleted by force before it runs": deleted(0, phase="Pending"),
    "deleted, and the name is used again": recreated(None, grace_s=3),
    "deleted by force, and the name is used again": recreated(0, annotations=STUBBORN),
    "somebody else says that it has failed": patched({"phase": "Failed", "reason": "Lost"}, grace_s=3),
    "somebody else says that it has succeeded": patched({"phase": "Succeeded"}, grace_s=3),
    "somebody else says that it has failed, and it is deleted": patched({"phase": "Failed"}, (None,), grace_s=3),
    "somebody else says that it has failed as it is deleted": patched({"phase": "Failed"}, (30,), annotations=STUBBORN),
    "refused": refused(delete=False),
    "refused and deleted": refused(delete=True),
    "a mirror pod of no file": mirror(),
    "many": many,
}


LEFT = {
    "it fails": "Failed",
    "it fails and is to be started again": "Running",
    "it ends and is always started again": "Running",
    "two containers, one fails": "Failed",
    "an init container fails": "Failed",
    "an init container is tried again": "Pending",
    "a deadline": "Failed",
    "a deadline, and TERM is ignored": "Failed",
    "somebody else says that it has failed": "Failed",
    "refused": "Failed",
    **dict.fromkeys([name for name in SITUATIONS if "deleted" in name and "again" not in name], ""),
    "a mirror pod of no file": "",
    "many": "",
}
"""The phase in which pod ``a`` is left, "" where it is gone; of all others Succeeded."""


def fates(story: Story, dies_at: int | None = None, away_s: float = 0.0) -> tuple[dict[str, Fate], FragileNode]:
    async def main() -> tuple[dict[str, Fate], FragileNode]:
        node = FragileNode(dies_at, away_s)
        return await node.live(story), node

    return run_virtual(main)


def alike(got: Fate | None, expected: Fate) -> bool:
    """A pod that runs is compared at no moment of its back-off, and one whose kubelet was away at its deadline may not
    have begun."""
    if got is None or (got.phase, got.reason) != (expected.phase, expected.reason):
        return False
    return got.codes == expected.codes or expected.phase in ("Pending", "Running") or bool(expected.reason)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_where_nobody_is_killed_a_pod_is_left_so(situation: str) -> None:
    left, node = fates(SITUATIONS[situation])
    phase = LEFT.get(situation, "Succeeded")
    assert (left["a"].phase if "a" in left else "", node.wrong) == (phase, [])


@pytest.mark.parametrize("away_s", AWAY_S)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_pod_ends_as_it_would_have(situation: str, away_s: float) -> None:
    expected, calm = fates(SITUATIONS[situation])
    assert calm.wrong == []
    found = {}
    for moment, what in enumerate(calm.moments):
        got, node = fates(SITUATIONS[situation], moment, away_s)
        wrong = [f"{name}: {got.get(name)}" for name, fate in expected.items() if not alike(got.get(name), fate)]
        wrong += [f"{name} is there still" for name in got.keys() - expected.keys()]
        if node.wrong + wrong:
            found[moment, what] = node.wrong + wrong
    assert found == {}, f"where nobody is killed: {expected}"
