"""Generated messages, sockets as files, and errors in both directions."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from mews.kube.deviceplugin.port import (
    Allocation,
    ClaimDevice,
    ContainerDevices,
    DeviceNode,
    DynamicResource,
    Mount,
    PluginError,
    PluginOptions,
    PodDevices,
)
from mews.kube.emulated.kubelet.devices.wire import decode, encode

RICH = Allocation(
    envs={"A": "1", "EMPTY": "", "Ü": "ä" * 200},
    mounts=(Mount("/in", "/out", True), Mount("/rw", "/there")),
    devices=(DeviceNode("/dev/a", "/dev/b", "rwm"), DeviceNode("/dev/c", "/dev/d", "")),
    annotations={"example.com/slot": "3"},
    cdi_devices=("example.com/board=b7", "example.com/board=b8"),
)


@pytest.fixture
def short() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="mews-"))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "name", ["deviceplugin_v1beta1", "podresources_v1", "runtimehook_v1alpha1", "dra_v1", "dra_health_v1"]
)
def test_the_committed_modules_are_what_the_proto_files_say(name):
    pytest.importorskip("grpc_tools", reason="needs grpcio-tools to compile the .proto")
    import importlib

    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    from mews.kube.deviceplugin.pb.generate import compiled

    module = importlib.import_module(f"mews.kube.deviceplugin.pb.{name}_pb2")
    assert FileDescriptorProto.FromString(module.COMPILED) == FileDescriptorProto.FromString(compiled(name))


@pytest.mark.parametrize("allocation", [RICH, Allocation()])
def test_the_hand_written_encoding_is_protobufs(allocation):
    from mews.kube.deviceplugin import messages

    [message] = messages.allocate_message([allocation]).container_responses
    assert decode(message.SerializeToString()) == allocation
    assert type(message).FromString(encode(allocation)) == message


def test_podresources_come_back_from_the_wire_with_their_claims():
    from mews.kube.deviceplugin import messages

    devices = (ClaimDevice("d", "p", "gpu-0", ("v/c=0", "v/c=1"), "share"), ClaimDevice("d", "p", "gpu-1"))
    claims = (("b", (DynamicResource("c", "ns", devices), DynamicResource("e", "ns"))),)
    pod = PodDevices("p", "ns", (("a", ()), ("b", (ContainerDevices("r", ("x",), (1,)),))), claims)
    assert messages.pod_value(messages.pod_message(pod)) == pod
    shared = messages.pod_message(pod).containers[1].dynamic_resources[0].claim_resources
    assert [each.HasField("share_id") for each in shared] == [True, False]


@pytest.mark.parametrize("data", [b"\x0a\x05ab", b"\x0a", b"\x0b", b"\x80"])
def test_bytes_that_are_no_message_are_refused(data):
    with pytest.raises(ValueError, match="ContainerAllocateResponse"):
        decode(data)


def test_a_socket_path_beyond_107_bytes_is_refused_with_its_length(tmp_path):
    from mews.kube.deviceplugin.errors import SocketPathTooLongError
    from mews.kube.deviceplugin.sockets import url
    from mews.kube.emulated.kubelet.grpc_server import GrpcKubeletFolder

    base = Path("/" + "d" * 90)
    assert url(base / ("s" * 15)) == f"unix:{base}/{'s' * 15}"
    with pytest.raises(SocketPathTooLongError, match="has 108 bytes, at most 107"):
        url(base / ("s" * 16))
    with pytest.raises(SocketPathTooLongError, match="choose a shorter folder"):
        GrpcKubeletFolder(base / "much-too-long", tmp_path)


@pytest.mark.wall
def test_closing_an_old_endpoint_leaves_its_successors_socket(short):
    from mews.kube.deviceplugin.grpc_link import GrpcLink
    from tests.kube.emulated.kubelet.devices.stand import FakePlugin

    async def main() -> None:
        link = GrpcLink(short)
        old = await link.serve("a.sock", FakePlugin(["d0"]))
        new = await link.serve("a.sock", FakePlugin(["d1"]))
        await old.close()
        assert sorted(p.name for p in short.iterdir()) == ["a.sock"]
        assert oct((short / "a.sock").stat().st_mode) == "0o140755"
        await new.close()
        assert list(short.iterdir()) == []

    asyncio.run(main())


@pytest.mark.wall
def test_a_call_whose_channel_is_closed_ends_as_an_eof_and_does_not_cancel_its_task(short):
    from mews.kube.deviceplugin.grpc_client import GrpcPlugin, channel_to
    from mews.kube.deviceplugin.grpc_link import GrpcLink
    from tests.kube.emulated.kubelet.devices.stand import FakePlugin, until

    async def main() -> None:
        plugin = FakePlugin(["d0"])
        plugin.hang_s = 60.0
        endpoint = await GrpcLink(short).serve("a.sock", plugin)
        dialed = GrpcPlugin(channel_to(short / "a.sock"))
        call = asyncio.create_task(dialed.allocate([["d0"]]))
        await until(lambda: bool(plugin.calls))
        await dialed.close()
        with pytest.raises(PluginError) as failed:
            await call
        assert str(failed.value) == "rpc error: code = Unavailable desc = error reading from server: EOF"
        await endpoint.close()

    asyncio.run(main())


@pytest.mark.wall
def test_a_plugin_is_told_the_deadline_of_pre_start_and_of_no_other_call(short, monkeypatch):
    import grpc

    from mews.kube.deviceplugin import grpc_client
    from mews.kube.deviceplugin.grpc_server import serve_on
    from mews.kube.deviceplugin.pb import deviceplugin_v1beta1_pb2 as pb

    left: list[float | None] = []

    async def hang(request, context):
        left.append(context.time_remaining())
        await asyncio.sleep(60.0)

    async def answer(request, context):
        left.append(context.time_remaining())
        return pb.AllocateResponse()

    async def main() -> None:
        methods = {
            "PreStartContainer": grpc.unary_unary_rpc_method_handler(hang, pb.PreStartContainerRequest.FromString),
            "Allocate": grpc.unary_unary_rpc_method_handler(
                answer, pb.AllocateRequest.FromString, pb.AllocateResponse.SerializeToString
            ),
        }
        server = await serve_on(short / "a.sock", ("v1beta1.DevicePlugin", methods))
        dialed = grpc_client.GrpcPlugin(grpc_client.channel_to(short / "a.sock"))
        assert await dialed.allocate([["d0"]]) == ()
        with pytest.raises(PluginError) as failed:
            await dialed.pre_start(["d0"])
        assert str(failed.value) == "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
        await dialed.close()
        await server.close()

    monkeypatch.setattr(grpc_client, "PRE_START_DEADLINE_S", 0.2)
    asyncio.run(main())
    assert left[0] is None or left[0] > 1e9
    assert left[1] is not None and left[1] < 1.0


@pytest.mark.wall
def test_registering_without_a_kubelet_is_unavailable(short):
    from mews.kube.deviceplugin.grpc_link import GrpcLink

    async def main() -> None:
        with pytest.raises(PluginError) as failed:
            await GrpcLink(short).register("a.sock", "example.com/res", PluginOptions())
        assert failed.value.code == "Unavailable"

    asyncio.run(main())


@pytest.mark.wall
def test_a_kubelet_start_removes_sockets_and_nothing_else_and_its_stop_removes_none(short):
    import socket

    from mews.kube.emulated.kubelet.grpc_server import GrpcKubeletFolder
    from tests.kube.emulated.kubelet.devices.stand import Stand

    async def main() -> None:
        plugins, pods = short / "p", short / "r"
        plugins.mkdir()
        with socket.socket(socket.AF_UNIX) as leftover:
            leftover.bind(str(plugins / "leftover.sock"))
        (plugins / "kubelet_internal_checkpoint").write_text("kept")
        stand = Stand(folder=GrpcKubeletFolder(plugins, pods), new_link=lambda: pytest.fail("not used"))
        await stand.start()
        names = ["kubelet.sock", "kubelet_internal_checkpoint"]
        assert sorted(p.name for p in plugins.iterdir()) == names
        assert oct((plugins / "kubelet.sock").stat().st_mode) == "0o140755"
        assert oct(pods.stat().st_mode & 0o777) == "0o750"
        first = (plugins / "kubelet.sock").stat().st_mtime_ns
        await stand.stop()
        assert sorted(p.name for p in plugins.iterdir()) == names
        await stand.start()
        assert (plugins / "kubelet.sock").stat().st_mtime_ns != first
        assert sorted(p.name for p in plugins.iterdir()) == names
        await stand.stop()

    asyncio.run(main())


@pytest.mark.wall
@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("", 'requested API version "" is not supported by kubelet. Supported version is ["v1beta1"]'),
        ("v1alpha", 'requested API version "v1alpha" is not supported by kubelet. Supported version is ["v1beta1"]'),
    ],
)
def test_another_version_is_refused_on_the_wire(short, version, words):
    from mews.kube.deviceplugin.grpc_client import channel_to, unary_call
    from mews.kube.deviceplugin.pb import deviceplugin_v1beta1_pb2 as pb
    from mews.kube.emulated.kubelet.grpc_server import GrpcKubeletFolder
    from tests.kube.emulated.kubelet.devices.stand import Stand

    async def main() -> None:
        folder = GrpcKubeletFolder(short / "p", short / "r")
        stand = Stand(folder=folder, new_link=lambda: pytest.fail("not used"))
        await stand.start()
        channel = channel_to(short / "p" / "kubelet.sock")
        request = pb.RegisterRequest(version=version, endpoint="a.sock", resource_name="example.com/res")
        with pytest.raises(PluginError) as failed:
            await unary_call(channel, "/v1beta1.Registration/Register", request, pb.Empty)
        assert (failed.value.code, failed.value.desc) == ("Unknown", words)
        await channel.close(None)
        await stand.stop()

    asyncio.run(main())


def test_virtual_parts_import_no_grpc_and_no_protobuf():
    import subprocess
    import sys

    code = (
        "import sys, mews.harness.ports.deviceplugin, mews.kube.emulated.kubelet.devices\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('grpc', 'google', 'aiohttp')])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert found.stdout.strip() == "[]"
