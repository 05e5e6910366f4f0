"""The node's numbers, the grace, restarts and the checkpoint's times (contract kubelet.md sections 2, 6, 8)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from mews.harness.clock import run_virtual
from mews.harness.ports.fence import Fence
from mews.kube.deviceplugin.port import PluginDevice, PluginError
from mews.kube.emulated.kubelet.devices import AdmissionRejectedError
from mews.kube.emulated.kubelet.devices.checkpoint import Checkpoint, to_text
from tests.kube.emulated.kubelet.devices.stand import BOTH, FakePlugin, R, Stand, a_pod, container, eight, settle, until


def registered(stand: Stand) -> dict[str, tuple[str, ...]]:
    return dict(stand.checkpoint.load().registered)


@pytest.mark.parametrize("speed", [1.0, 10.0])
def test_a_dead_plugins_resource_stays_for_five_emulated_minutes_and_its_keys_for_good(speed):
    async def main() -> None:
        stand = await Stand(speed=speed).start()
        endpoint = await stand.plug(FakePlugin(eight()[:4]))
        await endpoint.close()
        await settle()
        await asyncio.sleep(299.9 / speed)
        assert stand.manager.node_resources() == {R: (4, 0)}
        assert registered(stand) == {R: tuple(eight()[:4])}
        await asyncio.sleep(0.2 / speed)
        assert stand.manager.node_resources() == {R: (0, 0)}
        assert registered(stand) == {}
        assert stand.manager.node_resources() == {R: (0, 0)}
        await stand.plug(FakePlugin(eight()[:4]))
        assert stand.manager.node_resources() == {R: (4, 4)}

    run_virtual(main)


def test_a_plugin_back_within_the_grace_is_as_before():
    async def main() -> None:
        stand = await Stand().start()
        endpoint = await stand.plug(FakePlugin(eight()[:4]))
        await stand.run(a_pod("p", container("main", 1)))
        await endpoint.close()
        await asyncio.sleep(200)
        await stand.plug(FakePlugin(eight()[:4]))
        await asyncio.sleep(200)
        assert stand.manager.node_resources() == {R: (4, 4)}
        assert stand.held("p") == {"main": ["d0"]}

    run_virtual(main)


def test_a_forgotten_resource_whose_pods_hold_devices_is_unregistered():
    async def main() -> None:
        stand = await Stand().start()
        endpoint = await stand.plug(FakePlugin(eight()[:4]))
        await stand.run(a_pod("p", container("main", 1)))
        await endpoint.close()
        await asyncio.sleep(301)
        stand.manager.node_resources()
        with pytest.raises(AdmissionRejectedError, match=f"cannot allocate unregistered device {R}, which"):
            await stand.run(a_pod("q", container("main", 1)))

    run_virtual(main)


def test_a_restarted_kubelet_keeps_devices_but_has_none_healthy_until_the_plugin_is_back():
    async def main() -> None:
        stand = await Stand().start()
        await stand.plug(FakePlugin(eight()[:4]))
        keeper = await stand.run(a_pod("keeper", container("main", 1)))
        await stand.restart()
        assert stand.manager.node_resources() == {R: (0, 0)}
        assert stand.held("keeper") == {"main": ["d0"]}
        assert stand.manager.container_allocation("uid-keeper", "main").envs == {"DEVICES": "d0"}
        await stand.manager.admit(keeper, running={"main"})
        await stand.manager.pre_start("uid-keeper", "main")
        with pytest.raises(AdmissionRejectedError, match="no healthy devices present"):
            await stand.run(a_pod("early", container("main", 1)))
        with pytest.raises(AdmissionRejectedError, match="no healthy devices present"):
            await stand.manager.admit(keeper)
        plugin = FakePlugin(eight()[:4])
        await stand.plug(plugin)
        await stand.run(a_pod("rest", container("main", 3)))
        assert stand.held("rest") == {"main": ["d1", "d2", "d3"]}
        await stand.manager.pre_start("uid-keeper", "main")
        assert plugin.summary()[-1] == "S(d0)"

    run_virtual(main)


def test_a_plugin_that_never_comes_back_after_a_restart_is_forgotten_too():
    async def main() -> None:
        stand = await Stand().start()
        await stand.plug(FakePlugin(["d0"]))
        await stand.restart()
        await asyncio.sleep(300.1)
        assert stand.manager.node_resources() == {R: (0, 0)}
        assert registered(stand) == {}

    run_virtual(main)


def test_after_a_node_reboot_pods_keep_healthy_devices_and_lose_unhealthy_ones():
    async def main() -> None:
        stand = await Stand().start()
        await stand.plug(FakePlugin(["d0", "d1"]))
        pods = [await stand.run(a_pod(name, container("main", 1))) for name in ("boot-0", "boot-1")]
        await stand.restart()
        await stand.plug(FakePlugin([PluginDevice("d0", "Unhealthy"), "d1"]))
        await stand.manager.admit(pods[1])
        assert stand.held("boot-1") == {"main": ["d1"]}
        with pytest.raises(AdmissionRejectedError) as rejected:
            await stand.manager.admit(pods[0])
        assert rejected.value.event_message == (
            "Allocate failed due to previously allocated devices are no longer healthy; "
            f"cannot allocate unhealthy devices {R}, which is unexpected"
        )

    run_virtual(main)


def test_the_checkpoint_is_written_after_lists_and_admissions_and_not_when_a_pod_ends():
    async def main() -> None:
        stand = await Stand().start()
        saves: list[Checkpoint] = []
        save = stand.checkpoint.save
        stand.checkpoint.save = lambda checkpoint: (saves.append(checkpoint), save(checkpoint))[1]
        plugin = FakePlugin(["d0", "d1"])
        endpoint = await stand.plug(plugin)
        assert len(saves) == 1
        plugin.show(["d0", "d1", "d2"])
        await settle()
        assert len(saves) == 2
        pod = await stand.run(a_pod("p", container("main", 1), inits=[container("init", 1)]))
        assert len(saves) == 4
        assert [h.container for h in saves[-1].holdings] == ["init", "main"]
        await stand.run(a_pod("plain", container("main", 0)))
        pod["status"] = {"phase": "Succeeded"}
        await stand.resources.list()
        await endpoint.close()
        await settle()
        assert len(saves) == 4
        await asyncio.sleep(301)
        stand.manager.node_resources()
        assert len(saves) == 5
        assert saves[-1] == Checkpoint()

    run_virtual(main)


def test_a_list_of_podresources_frees_what_ended_pods_held_and_a_get_does_not():
    async def main() -> None:
        stand = await Stand().start()
        await stand.plug(FakePlugin(["d0"]))
        pod = await stand.run(a_pod("p", container("main", 1)))
        await stand.run(a_pod("plain", container("main", 0)))
        pod["status"] = {"phase": "Succeeded"}
        assert (await stand.resources.get("p", "default")).containers[0][1]
        await stand.resources.list()
        assert (await stand.resources.get("p", "default")).containers == (("main", ()),)

    run_virtual(main)


def test_a_list_right_after_a_kubelet_start_frees_nothing():
    async def main() -> None:
        stand = await Stand().start()
        await stand.plug(FakePlugin(["d0", "d1"]))
        keeper = await stand.run(a_pod("keeper", container("main", 1)))
        await stand.restart()
        stand.pods.clear()
        assert await stand.resources.list() == ()
        stand.pods["keeper"] = keeper
        assert stand.held("keeper") == {"main": ["d0"]}
        await stand.resources.list()
        stand.pods.clear()
        await stand.resources.list()
        stand.pods["keeper"] = keeper
        assert stand.held("keeper") == {"main": []}

    run_virtual(main)


def test_a_list_during_an_admission_leaves_the_pod_its_first_containers_devices():
    async def main() -> None:
        stand = await Stand().start()
        plugin = FakePlugin(["d0", "d1"])
        await stand.plug(plugin)
        plugin.hang_s = 5.0
        pod = a_pod("p", container("a", 1), container("b", 1))
        admission = asyncio.create_task(stand.run(pod))
        await asyncio.sleep(7.0)
        await stand.resources.list()
        await admission
        assert stand.held("p") == {"a": ["d0"], "b": ["d1"]}

    run_virtual(main)


def test_a_killed_plugin_ends_its_streams_and_a_new_incarnation_takes_over():
    async def main() -> None:
        stand = await Stand().start()
        plugin, link, fence = FakePlugin(["d0"]), stand.folder.link(), Fence()
        await stand.plug(plugin, link=fence.around(link))
        fence.cut()
        link.kill()
        await until(lambda: stand.manager.node_resources() == {R: (1, 0)} and plugin.streams == 0)
        with pytest.raises(PluginError, match="failed to dial"):
            await stand.folder.link().register("example.com-res.sock", R, BOTH)
        assert asyncio.get_running_loop().time() == 10.0
        await stand.plug(FakePlugin(["d0"]))
        stand.folder.drop("example.com-res.sock")
        await until(lambda: stand.manager.node_resources() == {R: (1, 0)})

    run_virtual(main)


def test_a_socket_that_appears_while_the_kubelet_dials_is_found():
    async def main() -> None:
        stand = await Stand().start()
        link = stand.folder.link()
        registration = asyncio.create_task(link.register("late.sock", R, BOTH))
        await asyncio.sleep(5)
        await link.serve("late.sock", FakePlugin(["d0"]))
        await registration
        await until(lambda: stand.manager.node_resources() == {R: (1, 1)})
        assert asyncio.get_running_loop().time() == 5.0

    run_virtual(main)


SCRIPT = """
import json
from mews.harness.clock import run_virtual
from mews.kube.emulated.kubelet.devices.checkpoint import to_text
from tests.kube.emulated.kubelet.devices.stand import *

async def main():
    stand = await Stand(seed=7).start()
    plugins = [FakePlugin(eight()), FakePlugin(eight(), PluginOptions())]
    await stand.plug(plugins[0])
    await stand.plug(plugins[1], "example.com/other")
    for n in range(3):
        both = container("both", 1)
        both["resources"]["limits"] = {R: "1", "example.com/other": "2"}
        await stand.run(a_pod(f"p{n}", both, inits=[container("i", 1), sidecar("s", 1)]))
    print(json.dumps([p.calls for p in plugins]), to_text(stand.checkpoint.load()))

run_virtual(main)
"""


def test_the_same_seed_gives_the_same_calls_whatever_the_hash_seed():
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert "dev" not in to_text(Checkpoint())
    assert '"both"' in outputs[0]


def test_pod_resources_are_the_same_tuple_until_a_pod_or_what_it_holds_changes():
    async def main() -> None:
        stand = await Stand().start()
        await stand.plug(FakePlugin(eight()[:4]))
        await stand.run(a_pod("p", container("main", 1)))
        first = await stand.resources.list()
        assert await stand.resources.list() is first
        await stand.run(a_pod("q", container("main", 2)))
        both = await stand.resources.list()
        assert [(pod.name, len(pod.containers[0][1])) for pod in both] == [("p", 1), ("q", 2)]
        del stand.pods["p"]
        assert [pod.name for pod in await stand.resources.list()] == ["q"]

    run_virtual(main)
