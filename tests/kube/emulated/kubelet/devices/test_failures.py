"""Rejected pods and containers that cannot start (contract kubelet.md section 4), in virtual time."""

from __future__ import annotations

import asyncio
import re

import pytest

from mews.harness.clock import run_virtual
from mews.kube.deviceplugin.port import Allocation, PluginDevice, PluginError, PluginOptions
from mews.kube.emulated.kubelet.devices import AdmissionRejectedError, FileCheckpoint, PreStartError
from tests.kube.emulated.kubelet.devices.stand import FakePlugin, R, Stand, a_pod, container, eight, settle, until


async def rejection(stand: Stand, pod: dict) -> AdmissionRejectedError:
    with pytest.raises(AdmissionRejectedError) as rejected:
        await stand.run(pod)
    return rejected.value


@pytest.mark.parametrize(("count", "available"), [(2, 1), (9, 1)])
def test_asking_for_more_than_is_free_is_rejected_with_both_numbers(count, available):
    async def main() -> None:
        stand = await Stand().start()
        await stand.plug(FakePlugin(eight()[:4]))
        await stand.run(a_pod("holder", container("main", 3)))
        rejected = await rejection(stand, a_pod("p", container("main", count)))
        assert rejected.reason == "UnexpectedAdmissionError"
        assert rejected.message == (
            "Pod was rejected: Allocate failed due to requested number of devices unavailable for "
            f"example.com/res. Requested: {count}, Available: {available}, which is unexpected"
        )
        assert rejected.event_message == rejected.message.removeprefix("Pod was rejected: ")

    run_virtual(main)


def test_unhealthy_devices_are_not_given():
    async def main() -> None:
        stand = await Stand().start()
        plugin = FakePlugin(["d0", PluginDevice("d1", "Unhealthy")])
        await stand.plug(plugin)
        rejected = await rejection(stand, a_pod("p", container("main", 2)))
        assert "Requested: 2, Available: 1" in rejected.message
        plugin.show([PluginDevice("d0", "Unhealthy"), PluginDevice("d1", "Unhealthy")])
        await settle()
        rejected = await rejection(stand, a_pod("p", container("main", 1)))
        assert "no healthy devices present; cannot allocate unhealthy devices example.com/res," in rejected.message

    run_virtual(main)


def test_a_resource_the_node_never_had_is_admitted_without_a_device():
    async def main() -> None:
        stand = await Stand().start()
        await stand.run(a_pod("p", container("main", 1, "example.com/never")))
        assert stand.manager.container_allocation("uid-p", "main") == Allocation()

    run_virtual(main)


def test_a_resource_in_the_node_at_zero_but_forgotten_is_out_of_it():
    async def main() -> None:
        stand = await Stand().start()
        stand.node = {"example.com/one": "0"}
        rejected = await rejection(stand, a_pod("p", container("main", 1, "example.com/one")))
        assert rejected.reason == "OutOfexample.com/one"
        assert rejected.message == (
            "Pod was rejected: Node didn't have enough resource: example.com/one, requested: 1, used: 0, capacity: 0"
        )

    run_virtual(main)


def test_after_a_lost_checkpoint_devices_count_as_free_but_requests_do_not():
    async def main() -> None:
        stand = await Stand().start()
        await stand.plug(FakePlugin(eight()[:4]))
        keeper = await stand.run(a_pod("keeper", container("main", 1)))
        stand.node = {R: "4"}
        await stand.stop()
        stand.checkpoint.spoil("checkpoint is corrupted")
        await stand.start()
        await stand.manager.admit(keeper, running={"main"})
        assert stand.manager.node_resources() == {}
        await stand.plug(FakePlugin(eight()[:4]))
        assert stand.held("keeper") == {"main": []}
        pod = a_pod("all", container("main", 4))
        rejected = await rejection(stand, pod)
        assert rejected.reason == f"OutOf{R}"
        assert rejected.event_message == (f"Node didn't have enough resource: {R}, requested: 4, used: 1, capacity: 4")
        await stand.run(a_pod("one", container("main", 3)))
        assert len(stand.held("one")["main"]) == 3

    run_virtual(main)


def test_pods_that_wait_for_their_admission_do_not_count_as_users():
    async def main() -> None:
        stand = await Stand().start()
        await stand.plug(FakePlugin(eight()[:4]))
        stand.node = {R: "4"}
        first, second = (a_pod(name, container("main", 4)) for name in ("first", "second"))
        stand.pods = {"first": first, "second": second}
        await stand.manager.admit(first)
        rejected = await rejection(stand, second)
        assert "Requested: 4, Available: 0" in rejected.message

    run_virtual(main)


def test_of_two_containers_the_firsts_devices_stay_until_the_next_admission_with_devices():
    async def main() -> None:
        stand = await Stand().start()
        await stand.plug(FakePlugin(["d0"]))
        bad = FakePlugin(["b0"])
        bad.errors["A"] = PluginError("Unknown", "boom")
        await stand.plug(bad, "example.com/bad")
        pod = a_pod("p", container("a", 1), container("b", 1, "example.com/bad"))
        rejected = await rejection(stand, pod)
        assert "rpc error: code = Unknown desc = boom" in rejected.message
        assert [h.pod_uid for h in stand.checkpoint.load().holdings] == ["uid-p"]
        await stand.run(a_pod("plain", container("main", 0)))
        assert [h.pod_uid for h in stand.checkpoint.load().holdings] == ["uid-p"]
        await stand.run(a_pod("next", container("main", 1)))
        assert [h.pod_uid for h in stand.checkpoint.load().holdings] == ["uid-next"]

    run_virtual(main)


def test_a_failed_allocate_gives_its_devices_back_at_once():
    async def main() -> None:
        stand = await Stand().start()
        plugin = FakePlugin(["d0"])
        plugin.errors["A"] = PluginError("Unknown", "boom")
        await stand.plug(plugin)
        await rejection(stand, a_pod("p", container("main", 1)))
        plugin.errors.clear()
        await stand.run(a_pod("q", container("main", 1)))
        assert stand.held("q") == {"main": ["d0"]}

    run_virtual(main)


def test_a_hanging_pre_start_is_cancelled_after_thirty_seconds():
    async def main() -> None:
        stand = await Stand().start()
        plugin = FakePlugin(["d0"])
        await stand.plug(plugin)
        await stand.run(a_pod("p", container("main", 1)))
        plugin.hang_s = 60.0
        with pytest.raises(PreStartError) as failed:
            await stand.manager.pre_start("uid-p", "main")
        assert asyncio.get_running_loop().time() == 30.0
        assert str(failed.value) == (
            "device plugin PreStartContainer rpc failed with err: "
            "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
        )

    run_virtual(main)


def test_a_stopped_plugins_pre_start_shows_a_go_struct():
    async def main() -> None:
        stand = await Stand().start()
        endpoint = await stand.plug(FakePlugin(["d0"]))
        await stand.run(a_pod("p", container("main", 1)))
        await endpoint.close()
        await settle()
        with pytest.raises(PreStartError) as failed:
            await stand.manager.pre_start("uid-p", "main")
        assert re.fullmatch(
            r"device plugin PreStartContainer rpc failed with err: endpoint "
            r"&\{\{\{\} \{0 0\}\} example\.com/res 0x[0-9a-f]+ \{\d+ \d+ 0x542ac20\} <nil>\} has been stopped",
            str(failed.value),
        )

    run_virtual(main)


def test_a_container_starts_on_unhealthy_and_on_vanished_devices():
    async def main() -> None:
        stand = await Stand().start()
        plugin = FakePlugin(["d0", "d1"])
        await stand.plug(plugin)
        await stand.run(a_pod("p", container("main", 2)))
        plugin.show([PluginDevice("d0", "Unhealthy")])
        await settle()
        await stand.manager.pre_start("uid-p", "main")
        assert plugin.summary()[-1] == "S(d0 d1)"
        assert stand.held("p") == {"main": ["d0", "d1"]}
        assert await stand.resources.allocatable() == ()

    run_virtual(main)


def test_after_a_lost_checkpoint_a_restarting_container_gets_new_devices_or_the_kubelets_complaint():
    async def main(options: PluginOptions) -> None:
        stand = await Stand().start()
        await stand.plug(FakePlugin(["d0"], options))
        await stand.run(a_pod("p", container("main", 1)))
        await stand.stop()
        stand.checkpoint.spoil()
        await stand.start()
        await stand.plug(FakePlugin(["d0"], options))
        await stand.manager.pre_start("uid-p", "main")
        assert stand.held("p") == {"main": ["d0"]}

    run_virtual(lambda: main(PluginOptions()))
    with pytest.raises(PreStartError) as failed:
        run_virtual(lambda: main(PluginOptions(pre_start_required=True)))
    assert str(failed.value) == (
        "no devices found allocated in local cache for pod uid-p, container main, resource example.com/res"
    )


def test_a_bug_in_a_plugin_is_its_own_unknown_error(caplog):
    async def main() -> None:
        stand = await Stand().start()
        plugin = FakePlugin(["d0"])
        plugin.errors["A"] = ZeroDivisionError("division by zero")
        await stand.plug(plugin)
        rejected = await rejection(stand, a_pod("p", container("main", 1)))
        assert "code = Unknown desc = Unexpected <class 'ZeroDivisionError'>: division by zero" in rejected.message
        await until(lambda: stand.manager.node_resources() == {R: (1, 1)})

    run_virtual(main)
    assert "Traceback" in caplog.text


def test_a_checkpoint_that_cannot_be_written_rejects_pods_but_not_lists(tmp_path):
    async def main() -> None:
        stand = await Stand(FileCheckpoint(tmp_path / "gone")).start()
        await stand.plug(FakePlugin(["d0"]))
        assert stand.manager.node_resources() == {R: (1, 1)}
        rejected = await rejection(stand, a_pod("p", container("main", 1)))
        assert rejected.event_message.startswith(
            'Allocate failed due to failed to write checkpoint file "kubelet_internal_checkpoint": '
        )

    run_virtual(main)
