"""Plugins and kubelet meet in the same way in process (virtual time) and over gRPC (wall clock)."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from mews.harness.clock import run_virtual
from mews.kube.deviceplugin.port import (
    Allocation,
    ContainerDevices,
    DeviceNode,
    Mount,
    PluginDevice,
    PluginError,
    PluginOptions,
    PodDevices,
)
from mews.kube.emulated.kubelet.devices import AdmissionRejectedError, PreStartError
from tests.kube.emulated.kubelet.devices.stand import BOTH, FakePlugin, R, Stand, a_pod, container, eight, until

Case = Callable[[Stand, Any], Awaitable[None]]
Runner = Callable[[Case], None]


def _in_process(case: Case) -> None:
    async def main() -> None:
        stand = await Stand().start()
        await case(stand, stand.folder.pod_resources())
        await stand.stop()

    run_virtual(main)


def _over_grpc(case: Case) -> None:
    from mews.kube.deviceplugin.grpc_client import GrpcPodResources
    from mews.kube.deviceplugin.grpc_link import GrpcLink
    from mews.kube.emulated.kubelet.grpc_server import GrpcKubeletFolder

    @contextlib.asynccontextmanager
    async def node() -> AsyncIterator[tuple[Stand, Any]]:
        top = Path(tempfile.mkdtemp(prefix="mews-"))
        folder = GrpcKubeletFolder(top / "plugins", top / "pods", dial_deadline_s=3.0)
        stand = Stand(folder=folder, new_link=lambda: GrpcLink(top / "plugins", poll_s=0.02))
        await stand.start()
        resources = GrpcPodResources(top / "pods" / "kubelet.sock")
        try:
            yield stand, resources
        finally:
            await resources.close()
            await stand.stop()
            for endpoint in stand.endpoints:
                await endpoint.close()
            shutil.rmtree(top)

    async def main() -> None:
        async with node() as (stand, resources):
            await case(stand, resources)

    asyncio.run(main())


@pytest.fixture(
    params=[pytest.param(_in_process, id="in-process"), pytest.param(_over_grpc, id="grpc", marks=pytest.mark.wall)]
)
def run(request: pytest.FixtureRequest) -> Runner:
    return request.param


def test_a_registered_plugin_shows_on_the_node_and_changes_with_its_lists(run):
    async def case(stand, _):
        plugin = FakePlugin(eight()[:4])
        await stand.plug(plugin)
        assert stand.manager.node_resources() == {R: (4, 4)}
        for shown, numbers in (
            (["d0", PluginDevice("d1", "Broken"), PluginDevice("d2", ""), "d3"], (4, 2)),
            (["d0"], (1, 1)),
            ([], (0, 0)),
            (["x" * 80, "d1"], (2, 2)),
        ):
            plugin.show(shown)
            await until(lambda numbers=numbers: stand.manager.node_resources() == {R: numbers})

    run(case)


@pytest.mark.parametrize(
    "name",
    [
        "gpu",
        "",
        "a.b/c/d",
        "Example.com/g",
        "kubernetes.io/g",
        "x.kubernetes.io/g",
        "requests.a.b/g",
        "a.b/" + "g" * 64,
    ],
)
def test_a_bad_resource_name_is_refused_at_once(run, name):
    async def case(stand, _):
        link = stand.new_link()
        with pytest.raises(PluginError) as failed:
            await link.register("any.sock", name, BOTH)
        assert str(failed.value) == f'rpc error: code = Unknown desc = the ResourceName "{name}" is invalid'

    run(case)


@pytest.mark.parametrize("name", ["example.com/GPU", "example.com/" + "g" * 63])
def test_capitals_and_63_characters_after_the_slash_are_accepted(run, name):
    async def case(stand, _):
        await stand.plug(FakePlugin(["d0"]), resource=name, endpoint="plugin.sock")
        assert stand.manager.node_resources() == {name: (1, 1)}

    run(case)


def test_a_missing_socket_is_an_error_after_the_dial_deadline(run):
    async def case(stand, _):
        with pytest.raises(PluginError) as failed:
            await stand.new_link().register("nothing.sock", R, BOTH)
        assert failed.value.code == "Unknown"
        assert failed.value.desc == "failed to dial device plugin: context deadline exceeded"

    run(case)


def test_failing_options_fail_the_registration_with_the_plugins_words(run):
    async def case(stand, _):
        plugin = FakePlugin(["d0"])
        plugin.errors["options"] = PluginError("Unknown", "no options")
        with pytest.raises(PluginError) as failed:
            await stand.plug(plugin)
        assert failed.value.desc == ("failed to get device plugin options: rpc error: code = Unknown desc = no options")
        assert stand.manager.node_resources() == {}

    run(case)


def test_a_failing_list_leaves_the_registration_good_and_the_node_at_zero(run):
    async def case(stand, _):
        plugin = FakePlugin(["d0"])
        plugin.errors["list"] = PluginError("Unknown", "no list")
        await stand.plug(plugin)
        await until(lambda: stand.manager.node_resources() == {R: (0, 0)})

    run(case)


def test_a_closed_plugin_leaves_its_devices_unhealthy_until_it_is_back(run):
    async def case(stand, _):
        endpoint = await stand.plug(FakePlugin(eight()[:4]))
        await endpoint.close()
        await until(lambda: stand.manager.node_resources() == {R: (4, 0)})
        with pytest.raises(AdmissionRejectedError) as rejected:
            await stand.run(a_pod("p", container("main", 1)))
        assert rejected.value.message == (
            "Pod was rejected: Allocate failed due to no healthy devices present; "
            f"cannot allocate unhealthy devices {R}, which is unexpected"
        )
        await stand.plug(FakePlugin(eight()[:4]))
        await until(lambda: stand.manager.node_resources() == {R: (4, 4)})

    run(case)


def test_closing_and_registering_again_at_once_works(run):
    async def case(stand, _):
        for _ in range(3):
            plugin = FakePlugin(eight()[:4])
            endpoint = await stand.plug(plugin)
            await endpoint.close()
        plugin = FakePlugin(eight()[:4])
        await stand.plug(plugin)
        await until(lambda: stand.manager.node_resources() == {R: (4, 4)} and plugin.streams == 1)

    run(case)


def test_a_connection_is_to_one_plugin_and_not_to_its_successor(run):
    async def case(stand, _):
        link = stand.new_link()
        first, second = FakePlugin(["d0"]), FakePlugin(["d1"])
        old = await link.serve("a.sock", first)
        dialed = await stand.folder.dial("a.sock")
        assert dialed.is_connected()
        assert await dialed.options() == BOTH
        await old.close()
        new = await link.serve("a.sock", second)
        with pytest.raises(PluginError) as failed:
            await dialed.options()
        assert failed.value.code == "Unavailable"
        assert not dialed.is_connected()
        assert second.calls == []
        await dialed.close()
        await new.close()

    run(case)


def test_the_old_stream_of_a_second_registration_is_obeyed_and_its_end_closes_the_new_endpoint(run):
    async def case(stand, _):
        first, second = FakePlugin(["d0"]), FakePlugin(["d0", "d1"])
        old = await stand.plug(first, endpoint="first.sock")
        await stand.plug(second, endpoint="second.sock")
        assert stand.manager.node_resources() == {R: (2, 2)}
        first.show(["d0", "d1", "d2"])
        await until(lambda: stand.manager.node_resources() == {R: (3, 3)})
        await stand.run(a_pod("p", container("main", 1)))
        assert [call[0] for call in first.calls] == ["options"]
        assert [call[0] for call in second.calls] == ["options", "P", "A"]
        await old.close()
        await until(lambda: stand.manager.node_resources() == {R: (3, 0)} and second.streams == 0)

    run(case)


def test_what_allocate_answers_reaches_the_container_unchanged(run):
    given = Allocation(
        envs={"A": "1", "B": ""},
        mounts=(Mount("/in", "/out", True), Mount("/rw", "/there")),
        devices=(DeviceNode("/dev/board0", "/dev/null", "rwm"),),
        annotations={"example.com/slot": "3"},
        cdi_devices=("example.com/board=b7",),
    )

    async def case(stand, _):
        plugin = FakePlugin(eight())
        plugin.answer = (given, Allocation(envs={"SECOND": "ignored"}))
        await stand.plug(plugin)
        await stand.run(a_pod("p", container("main", 2), container("bare", 0)))
        assert stand.manager.container_allocation("uid-p", "main") == given
        assert stand.manager.container_allocation("uid-p", "bare") == Allocation()
        await stand.manager.pre_start("uid-p", "main")
        assert plugin.summary() == ["P(8, [], 2)", "A(d0 d1)", "S(d0 d1)"]

    run(case)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        ("A", PluginError("Unknown", "boom"), "rpc error: code = Unknown desc = boom"),
        (
            "A",
            PluginError("ResourceExhausted", "no board left"),
            "rpc error: code = ResourceExhausted desc = no board left",
        ),
        ("A", PluginError("Unavailable", "resting"), "rpc error: code = Unavailable desc = resting"),
        (
            "P",
            PluginError("Unknown", "no preference today"),
            "device plugin GetPreferredAllocation rpc failed with err: "
            "rpc error: code = Unknown desc = no preference today",
        ),
    ],
)
def test_a_failing_call_rejects_the_pod_with_the_plugins_words(run, call, error, words):
    async def case(stand, _):
        plugin = FakePlugin(eight())
        plugin.errors[call] = error
        await stand.plug(plugin)
        with pytest.raises(AdmissionRejectedError) as rejected:
            await stand.run(a_pod("p", container("main", 1)))
        assert rejected.value.reason == "UnexpectedAdmissionError"
        assert rejected.value.event_message == f"Allocate failed due to {words}, which is unexpected"
        assert rejected.value.message == f"Pod was rejected: {rejected.value.event_message}"

    run(case)


def test_an_answer_without_containers_rejects_the_pod(run):
    async def case(stand, _):
        plugin = FakePlugin(eight())
        plugin.answer = ()
        await stand.plug(plugin)
        with pytest.raises(AdmissionRejectedError) as rejected:
            await stand.run(a_pod("p", container("main", 1)))
        assert rejected.value.event_message == (
            "Allocate failed due to no containers return in allocation response , which is unexpected"
        )

    run(case)


def test_a_plugin_that_dies_inside_allocate_is_told_as_an_eof(run):
    async def case(stand, _):
        plugin = FakePlugin(eight())
        plugin.hang_s = 60.0
        endpoint = await stand.plug(plugin)
        admission = asyncio.create_task(stand.run(a_pod("p", container("main", 1))))
        await until(lambda: any(call[0] == "A" for call in plugin.calls))
        await endpoint.close()
        with pytest.raises(AdmissionRejectedError) as rejected:
            await admission
        assert rejected.value.event_message == (
            "Allocate failed due to rpc error: code = Unavailable desc = error reading from server: EOF, "
            "which is unexpected"
        )

    run(case)


def test_a_failing_pre_start_tells_the_plugins_words(run):
    async def case(stand, _):
        plugin = FakePlugin(eight())
        plugin.errors["S"] = PluginError("Unknown", "not ready to start")
        await stand.plug(plugin)
        await stand.run(a_pod("p", container("main", 1)))
        with pytest.raises(PreStartError) as failed:
            await stand.manager.pre_start("uid-p", "main")
        assert str(failed.value) == (
            "device plugin PreStartContainer rpc failed with err: rpc error: code = Unknown desc = not ready to start"
        )

    run(case)


def test_a_kubelet_restart_ends_streams_and_is_noticed_and_all_comes_back(run):
    async def case(stand, _):
        plugin = FakePlugin(eight()[:4])
        link = stand.new_link()
        endpoint = await stand.plug(plugin, link=link)
        await stand.run(a_pod("keeper", container("main", 1)))
        await stand.stop()
        await until(lambda: plugin.streams == 0)
        with pytest.raises(PluginError) as failed:
            await link.register("example.com-res.sock", R, BOTH)
        assert failed.value.code == "Unavailable"
        await stand.start()
        await link.kubelet_restarted()
        assert stand.manager.node_resources() == {R: (0, 0)}
        assert stand.held("keeper") == {"main": ["d0"]}
        with pytest.raises(PluginError, match="failed to dial device plugin: context deadline exceeded"):
            await link.register("example.com-res.sock", R, BOTH)
        await endpoint.close()
        await stand.plug(plugin, link=link)
        assert stand.manager.node_resources() == {R: (4, 4)}
        waiting = asyncio.create_task(link.kubelet_restarted())
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await stand.restart()
        await waiting

    run(case)


def test_a_kubelet_start_before_serving_is_no_restart(run):
    async def case(stand, _):
        link = stand.new_link()
        await stand.restart()
        await stand.plug(FakePlugin(["d0"]), link=link)
        waiting = asyncio.create_task(link.kubelet_restarted())
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await stand.restart()
        await waiting

    run(case)


def test_pod_resources_show_pods_and_healthy_devices(run):
    async def case(stand, resources):
        plugin = FakePlugin([PluginDevice("d0", numa_nodes=(0,)), PluginDevice("d1", numa_nodes=(0, 1)), "d2"])
        plugin.prefer = ("d1",)
        await stand.plug(plugin)
        await stand.run(a_pod("holder", container("main", 1), container("other", 0)))
        plugin.prefer = None
        await stand.run(a_pod("inited", container("main", 1), inits=[container("init", 1)]))
        ended = await stand.run(a_pod("ended", container("main", 0)))
        ended["status"] = {"phase": "Succeeded"}
        plugin.show([*plugin.devices[:2], PluginDevice("d2", "Unhealthy")])
        await until(lambda: stand.manager.node_resources() == {R: (3, 2)})
        holder = PodDevices("holder", "default", (("main", (ContainerDevices(R, ("d1",), (0, 1)),)), ("other", ())))
        inited = PodDevices("inited", "default", (("main", (ContainerDevices(R, ("d0",), (0,)),)),))
        assert await resources.list() == (holder, inited)
        assert await resources.get("holder", "default") == holder
        assert await resources.get("ended", "default") == PodDevices("ended", "default", (("main", ()),))
        assert await resources.allocatable() == (
            ContainerDevices(R, ("d0",), (0,)),
            ContainerDevices(R, ("d1",), (0, 1)),
        )
        with pytest.raises(PluginError) as failed:
            await resources.get("nothing", "default")
        assert (failed.value.code, failed.value.desc) == ("Unknown", "pod nothing in namespace default not found")

    run(case)


def test_a_plugin_without_options_is_asked_for_nothing_but_allocate(run):
    async def case(stand, _):
        plugin = FakePlugin(eight(), PluginOptions())
        await stand.plug(plugin)
        await stand.run(a_pod("p", container("main", 2)))
        await stand.manager.pre_start("uid-p", "main")
        assert [call[0] for call in plugin.calls] == ["options", "A"]

    run(case)
