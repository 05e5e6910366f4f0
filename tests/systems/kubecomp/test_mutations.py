"""Tests of the tests: with one rule of Reconfig-Mgr broken on purpose, somebody notices."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.resources import PODS
from mews.kube.chassis.port import ReplyOutcome
from mews.kube.client.port import DeleteOptions
from mews.kube.system.host_steps import HostSteps
from mews.systems.kubecomp import rules
from mews.systems.kubecomp.handover import Handover
from mews.systems.kubecomp.mover import Mover
from tests.systems.kubecomp.world import world

Check = Callable[[], Awaitable[None]]


async def exactly_one_moves() -> None:
    async with world(4, 4, 4) as w:
        await w.create("a", 5)
        await w.runs("a")
        assert len(w.moves()) == 1


async def a_lie_is_seen_through() -> None:
    async with world(4, 4) as w:
        await w.hardware.fault("A", {"kind": "lying-result", "operation": "attach", "says": False})
        await w.create("a", 5)
        await w.runs("a", timeout_s=300)
        assert [event for event, _ in w.happened].count("attach-begun") == 1


async def no_held_device_moves() -> None:
    async with world(4, 4) as w:
        users = [f"user-{n}" for n in range(4)]
        for name in users:
            await w.create(name, 1, nodeSelector={"kubernetes.io/hostname": "host-2"})
        await w.runs(*users)
        # Free is the device that is looked at last.
        last = (await w.holders("host-2"))["0-000700"]
        await w.kube.delete(PODS, last, namespace="default", options=DeleteOptions(grace_period_s=1))
        await asyncio.sleep(30)
        held = set(await w.holders("host-2"))
        await w.create("a", 5, nodeSelector={"kubernetes.io/hostname": "host-1"})
        await w.until(lambda: w.has("attached"), "a move")
        assert held == {"0-000400", "0-000500", "0-000600"}
        assert held.isdisjoint(w.moves())


async def without_fresh_consent_nothing_is_detached() -> None:
    async with world(4, 4, 4, profile={"attach": 13, "detach": 7, "read": 1}) as w:
        await w.kill("device-manager/host-3")
        await asyncio.sleep(60)
        await w.create("a", 6, nodeSelector={"kubernetes.io/hostname": "host-1"})
        await w.until(lambda: w.has("detach-begun"), "a detach")
        await w.kill("device-manager/host-2")
        await asyncio.sleep(120)
        assert [event for event, _ in w.happened].count("detached") == 1


HELD = {"nodeSelector": {"kubernetes.io/hostname": "host-1"}}


async def a_holder_is_found_before_anything_is_touched() -> None:
    async with world(4, 1, hosted=True) as w:
        await w.operate("host-2", do="hold", key="monitor", pid=4711)
        await w.create("a", 5, **HELD)
        await w.until(lambda: w.said("removal-refused"), "a refusal", 60)
        assert w.said("removal-refused")[0]["reason"] == "in use by monitor (pid 4711)"
        assert "draining" not in w.on_host("host-2")


async def what_is_removed_was_drained() -> None:
    async with world(4, 4, hosted=True) as w:
        await w.create("a", 5, **HELD)
        await w.runs("a")
        events = w.on_host("host-2")
        assert "draining" in events[: events.index("function-removed")]


async def a_crash_leaves_nothing_drained() -> None:
    async with world(4, 4, hosted=True, host_profile={"drain": 1, "remove": 5}) as w:
        await w.create("a", 5, **HELD)
        await w.until(lambda: "draining" in w.on_host("host-2"), "a drain")
        await w.kill("device-manager/host-2")
        await w.kube.delete(PODS, "a", namespace="default", options=DeleteOptions(grace_period_s=1))
        await asyncio.sleep(30)
        w.start("device-manager/host-2")
        await asyncio.sleep(60)
        rows = [w.device_on("host-2", f"0-000{n}00") for n in (4, 5, 6, 7)]
        assert [row["draining"] for row in rows] == [False] * 4
        assert await w.allocatable("host-2") == 4


async def nothing(*args: Any, **kwargs: Any) -> None:
    return None


def more_than_lacking(view: Any, pod: Any, attached: int) -> int:
    return int(pod.req) if view.still_waiting(pod) and attached < 8 else 0


async def as_replied(self: Any, intent: Any, reply: Any, *, before: Any, wanted: Any) -> Any:
    return wanted if reply.outcome is ReplyOutcome.DONE else before


def never(*args: Any, **kwargs: Any) -> bool:
    return False


BROKEN = [
    pytest.param(exactly_one_moves, rules, "remaining_demand", more_than_lacking, id="the single-move rule"),
    pytest.param(a_lie_is_seen_through, Mover, "settled_port", as_replied, id="the read-back"),
    pytest.param(no_held_device_moves, rules, "in_use", never, id="the in-use test"),
    pytest.param(without_fresh_consent_nothing_is_detached, rules, "in_use", never, id="the freshness of consent"),
    pytest.param(
        a_holder_is_found_before_anything_is_touched, HostSteps, "check_closed", nothing, id="the holder test"
    ),
    pytest.param(what_is_removed_was_drained, HostSteps, "_drain", nothing, id="the drain"),
    pytest.param(a_crash_leaves_nothing_drained, Handover, "_give_back", nothing, id="the give-back after a crash"),
]


@pytest.mark.parametrize(("check", "owner", "name", "broken"), BROKEN)
def test_a_check_passes_with_the_rule_and_fails_without_it(
    monkeypatch: pytest.MonkeyPatch, check: Any, owner: Any, name: str, broken: Any
) -> None:
    run_virtual(check)
    monkeypatch.setattr(owner, name, broken)
    with pytest.raises(AssertionError):
        run_virtual(check)
