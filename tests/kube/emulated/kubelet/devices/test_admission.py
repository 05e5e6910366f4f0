"""Which calls pods cause (contract kubelet.md section 3)."""

from __future__ import annotations

import asyncio

import pytest

from mews.harness.clock import run_virtual
from mews.kube.deviceplugin.port import PluginOptions
from tests.kube.emulated.kubelet.devices.stand import FakePlugin, R, Stand, a_pod, container, eight, settle, sidecar

TABLE = [
    ("one container of two", [container("main", 2)], [], ["P(8, [], 2)", "A(d0 d1)", "S(d0 d1)"]),
    (
        "two containers of one",
        [container("a", 1), container("b", 1)],
        [],
        ["P(8, [], 1)", "A(d0)", "P(7, [], 1)", "A(d1)", "S(d0)", "S(d1)"],
    ),
    (
        "init one, main two",
        [container("main", 2)],
        [container("init", 1)],
        ["P(8, [], 1)", "A(d0)", "P(8, ['d0'], 2)", "A(d0 d1)", "S(d0)", "S(d0 d1)"],
    ),
    (
        "inits one and two, mains one and one",
        [container("a", 1), container("b", 1)],
        [container("first", 1), container("second", 2)],
        ["P(8, [], 1)", "A(d0)", "P(8, ['d0'], 2)", "A(d0 d1)", "A(one)", "A(other)", "S", "S", "S", "S"],
    ),
    (
        "sidecar one, main one",
        [container("main", 1)],
        [sidecar("side", 1)],
        ["P(8, [], 1)", "A(d0)", "P(7, [], 1)", "A(d1)", "S(d0)", "S(d1)"],
    ),
    (
        "init one, sidecar one, main one",
        [container("main", 1)],
        [container("init", 1), sidecar("side", 1)],
        ["P(8, [], 1)", "A(d0)", "A(d0)", "P(7, [], 1)", "A(d1)", "S(d0)", "S(d0)", "S(d1)"],
    ),
    ("no device", [container("main", 0)], [], []),
    (
        "eight of eight",
        [container("main", 8)],
        [],
        ["P(8, [], 8)", f"A({' '.join(eight())})", f"S({' '.join(eight())})"],
    ),
]


@pytest.mark.parametrize(("mains", "inits", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_a_pod_causes_the_calls_of_the_contract(mains, inits, expected):
    async def main() -> list[str]:
        stand = await Stand().start()
        plugin = FakePlugin(eight())
        await stand.plug(plugin)
        pod = await stand.run(a_pod("p", *mains, inits=inits))
        for each in (*inits, *mains):
            await stand.manager.pre_start("uid-p", each["name"])
        assert pod["metadata"]["uid"] == "uid-p"
        return plugin.summary()

    calls = run_virtual(main)
    if "A(one)" in expected:  # the mains share the second init's devices, in Go's random order
        assert calls[:4] == expected[:4]
        assert sorted(calls[4:6]) == ["A(d0)", "A(d1)"]
        assert [call[0] for call in calls] == [call[0] for call in expected]
    else:
        assert calls == expected


def test_a_need_covered_by_init_devices_is_not_asked_for_a_preference():
    async def main() -> None:
        stand = await Stand().start()
        plugin = FakePlugin(eight())
        await stand.plug(plugin)
        await stand.run(a_pod("p", container("main", 1), inits=[container("init", 3)]))
        calls = plugin.summary()
        assert calls[:2] == ["P(8, [], 3)", "A(d0 d1 d2)"]
        assert len(calls) == 3
        assert calls[2] in ("A(d0)", "A(d1)", "A(d2)")

    run_virtual(main)


def test_ids_come_in_random_order_but_the_same_for_the_same_seed():
    async def main(seed: int) -> list[tuple[str, ...]]:
        stand = await Stand(seed=seed).start()
        plugin = FakePlugin(eight())
        await stand.plug(plugin)
        for number in range(6):
            await stand.run(a_pod(f"p{number}", container("main", 1)))
            del stand.pods[f"p{number}"]
        return [call[1] for call in plugin.calls if call[0] == "P"]

    one = run_virtual(lambda: main(1))
    assert one == run_virtual(lambda: main(1))
    assert len(set(one)) > 1
    assert {frozenset(available) for available in one} == {frozenset(eight())}


def test_without_options_devices_are_neighbours_in_go_map_order():
    async def main() -> set[frozenset[str]]:
        stand = await Stand().start()
        plugin = FakePlugin(eight(), PluginOptions())
        await stand.plug(plugin)
        seen = set()
        for number in range(12):
            await stand.run(a_pod(f"p{number}", container("main", 2)))
            del stand.pods[f"p{number}"]
        for call, *what in plugin.calls:
            assert call in ("A", "options")
            if call == "A":
                seen.add(frozenset(what[0]))
        return seen

    seen = run_virtual(main)
    assert len(seen) > 2
    assert all(
        (min(int(i[1:]) for i in pair) + 1 in {int(i[1:]) for i in pair}) or pair == {"d0", "d7"} for pair in seen
    )


@pytest.mark.parametrize(
    ("preferred", "must_hold"), [(("d7", "ghost"), {"d7"}), (("d2", "d3", "d4", "d5"), set()), ((), set())]
)
def test_a_preference_is_obeyed_as_far_as_it_is_possible(preferred, must_hold):
    async def main() -> set[str]:
        stand = await Stand().start()
        plugin = FakePlugin(eight())
        plugin.prefer = preferred
        await stand.plug(plugin)
        await stand.run(a_pod("p", container("main", 2)))
        return set(stand.held("p")["main"])

    held = run_virtual(main)
    assert len(held) == 2
    assert must_hold <= held <= set(eight())
    if len(preferred) == 4:
        assert held <= set(preferred)


def test_admission_is_serial_also_for_pods_without_devices():
    async def main() -> list[tuple[str, float]]:
        stand = await Stand().start()
        plugin = FakePlugin(eight())
        await stand.plug(plugin)
        plugin.hang_s = 15.0
        done: list[tuple[str, float]] = []

        async def admit(name: str, count: int) -> None:
            await stand.run(a_pod(name, container("main", count)))
            done.append((name, asyncio.get_running_loop().time()))

        async with asyncio.TaskGroup() as group:
            for name, count in (("a", 1), ("b", 1), ("plain", 0)):
                group.create_task(admit(name, count))
        return done

    assert run_virtual(main) == [("a", 15.0), ("b", 30.0), ("plain", 30.0)]


def test_devices_of_an_ended_pod_are_found_out_at_the_next_admission_with_devices():
    async def main() -> None:
        stand = await Stand().start()
        plugin = FakePlugin(["d0", "d1"])
        await stand.plug(plugin)
        ended = await stand.run(a_pod("ended", container("main", 2)))
        ended["status"] = {"phase": "Succeeded"}
        await stand.run(a_pod("plain", container("main", 0)))
        assert stand.held("ended") == {"main": ["d0", "d1"]}
        await stand.run(a_pod("next", container("main", 1)))
        assert stand.held("ended") == {"main": []}
        assert stand.held("next") == {"main": ["d0"]}
        await settle()

    run_virtual(main)


def test_a_container_that_has_the_resource_by_a_claim_gets_none_of_the_plugins_devices():
    async def main() -> list[str]:
        stand = await Stand().start()
        plugin = FakePlugin(eight())
        await stand.plug(plugin)
        pod = a_pod("p", container("by-claim", 2), container("other", 1))
        mapping = {"containerName": "by-claim", "resourceName": R, "requestName": "r"}
        pod["status"] = {"extendedResourceClaimStatus": {"requestMappings": [mapping], "resourceClaimName": "c"}}
        await stand.run(pod)
        (entry,) = await stand.resources.list()
        assert [(name, len(devices)) for name, devices in entry.containers] == [("by-claim", 0), ("other", 1)]
        return [call for call in plugin.summary() if call.startswith("A")]

    assert run_virtual(main) == ["A(d0)"]
