"""Devices of ended pods are collected while a plugin has not answered an Allocate: what that reserved stays reserved,
but where the kubelet has upstream's fault (``devices-in-flight``)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from mews.harness.clock import run_virtual
from mews.kube.deviceplugin.port import Allocation, PluginError
from mews.kube.emulated.kubelet.devices import AdmissionRejectedError
from mews.kube.emulated.kubelet.faults import DEVICES_IN_FLIGHT
from tests.kube.emulated.kubelet.devices.stand import FakePlugin, R, Stand, a_pod, container, settle

OTHER = "example.com/other"


class SlowPlugin(FakePlugin):
    """Answers an Allocate after five seconds; refuses it then where it ``refuses``."""

    refuses = False

    async def allocate(self, requests: Sequence[Sequence[str]]) -> tuple[Allocation, ...]:
        answer = await super().allocate(requests)
        if self.refuses:
            raise PluginError("Unknown", "boom")
        return answer


@dataclass(frozen=True)
class Situation:
    """A pod with ``ended`` devices of ``devices`` ends while ``asked`` of the others are being given to a second one,
    in ``parts`` containers; List is called ``lists`` times. Then a third pod asks for ``then``; ``left`` are there."""

    name: str
    devices: int
    ended: int
    asked: int
    then: int
    left: int
    parts: int = 1
    lists: int = 1
    resource: str = R
    """Of the pod that ends."""
    end: str = "Succeeded"
    refuses: bool = False


SITUATIONS = [
    Situation("one of two, another resource is freed", 2, 1, 1, 1, 1, resource=OTHER),
    Situation("one of four, another resource is freed", 4, 1, 1, 3, 3, resource=OTHER),
    Situation("half of them, much of another resource is freed", 4, 4, 2, 2, 2, resource=OTHER),
    Situation("all that are free", 3, 1, 2, 1, 1),
    Situation("one of three, and two are wanted", 3, 1, 1, 2, 2),
    Situation("two of six, and three are wanted", 6, 2, 2, 3, 4),
    Situation("the last one", 2, 1, 1, 1, 1),
    Situation("the pod failed", 3, 1, 1, 2, 2, end="Failed"),
    Situation("the pod is gone", 3, 1, 1, 2, 2, end=""),
    Situation("List is called again and again", 3, 1, 1, 2, 2, lists=5),
    Situation("two containers, one after the other", 4, 1, 2, 2, 2, parts=2),
    Situation("three containers", 5, 1, 3, 2, 2, parts=3),
    Situation("three containers, another resource is freed", 6, 2, 3, 3, 3, parts=3, resource=OTHER),
    Situation("nobody looks", 3, 1, 1, 2, 2, lists=0),
    Situation("more is wanted than is left", 3, 1, 2, 2, 1),
    Situation("more is wanted than is left, another resource is freed", 3, 1, 2, 2, 1, resource=OTHER),
    Situation("the plugin refuses in the end", 3, 1, 1, 3, 3, refuses=True),
    Situation("the plugin refuses in the end, another resource is freed", 3, 1, 2, 3, 3, resource=OTHER, refuses=True),
]


async def play(situation: Situation, *faults: str) -> dict[str, list[str]]:
    """Pod -> its devices, of those that got what they wanted."""
    stand = await Stand(faults=faults).start()
    stand.node = {R: str(situation.devices), OTHER: "4"}
    plugin = SlowPlugin([f"d{number}" for number in range(situation.devices)])
    await stand.plug(plugin)
    await stand.plug(FakePlugin([f"o{number}" for number in range(4)]), OTHER)
    await stand.run(a_pod("ended", container("main", situation.ended, situation.resource)))
    plugin.hang_s, plugin.refuses = 5.0, situation.refuses
    each = situation.asked // situation.parts
    first = a_pod("first", *(container(f"c{number}", each) for number in range(situation.parts)))
    stand.pods["first"] = first
    giving = asyncio.create_task(stand.manager.admit(first))
    await settle()
    if situation.end:
        stand.pods["ended"]["status"]["phase"] = situation.end
    else:
        del stand.pods["ended"]
    for _ in range(situation.lists):
        await stand.resources.list()
    done = await asyncio.gather(giving, return_exceptions=True)
    plugin.hang_s, plugin.refuses = 0.0, False
    if isinstance(done[0], AdmissionRejectedError):
        assert "desc = boom" in done[0].message
        del stand.pods["first"]
    second = a_pod("second", container("main", situation.then))
    stand.pods["second"] = second
    try:
        await stand.manager.admit(second)
    except AdmissionRejectedError as refused:
        if not faults:
            assert f"Requested: {situation.then}, Available: {situation.left}" in refused.message
        del stand.pods["second"]
    return {name: [i for ids in stand.held(name).values() for i in ids] for name in stand.pods if name != "ended"}


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: each.name)
def test_no_device_of_an_unanswered_allocate_is_given_again(situation):
    held = run_virtual(lambda: play(situation))
    assert ("first" in held) == (not situation.refuses)
    assert ("second" in held) == (situation.then <= situation.left)
    given = [device for devices in held.values() for device in devices]
    assert len(given) == len(set(given)), held


RACED = [each for each in SITUATIONS if each.lists and not each.refuses and each.then <= each.left]


@pytest.mark.parametrize("situation", RACED, ids=lambda each: each.name)
def test_with_upstream_s_fault_it_is(situation):
    """The collection forgets what was reserved, and the answer does not reserve it anew. The plugin prefers the lowest:
    what the ended pod had, then what the first was given. Containers of one pod meet it, too."""
    held = run_virtual(lambda: play(situation, DEVICES_IN_FLIGHT))
    assert set(held) == {"first", "second"}
    freed = situation.ended if situation.resource == R else 0
    given = [device for devices in held.values() for device in devices]
    assert (len(given) > len(set(given))) == (situation.then > freed), held


def test_with_upstream_s_fault_nothing_is_wrong_where_nobody_looks():
    situation = next(each for each in SITUATIONS if not each.lists)
    held = run_virtual(lambda: play(replace(situation, then=1), DEVICES_IN_FLIGHT))
    assert not set(held["first"]) & set(held["second"])
