"""Koordinator's runtime hooks on the wire: our server and client, an agent that knows the published fields alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from msgspec.structs import replace

grpc = pytest.importorskip("grpc")

from mews.kube.deviceplugin.grpc_client import channel_to  # noqa: E402
from mews.kube.deviceplugin.pb import runtimehook_v1alpha1_pb2 as pb  # noqa: E402
from mews.kube.deviceplugin.port import DeviceNode, Mount  # noqa: E402
from mews.kube.runtimehook.grpc_hooks import (  # noqa: E402
    SERVICE,
    GrpcHooks,
    request_message,
    request_value,
    response_value,
    serve_hooks,
)
from mews.kube.runtimehook.port import HookedContainer, HookError, HookRequest  # noqa: E402

ASKED = HookedContainer(
    env={"A": "1", "NVIDIA_VISIBLE_DEVICES": "all"},
    args=("train", "--gpus"),
    mounts=(Mount("/c", "/h", True),),
    devices=(DeviceNode("/dev/nvidia0", "/dev/nvidia0"),),
    annotations={"cdi.k8s.io/x": "y"},
    cdi_devices=("nvidia.com/gpu=0",),
)
REQUEST = HookRequest("default", "a", "uid-1", "main", 3, {"note": "n"}, {"label": "l"}, ASKED)


class Agent:
    def __init__(self) -> None:
        self.calls: list[tuple[str, HookRequest]] = []

    async def pre_create(self, request: HookRequest) -> HookedContainer:
        self.calls.append(("create", request))
        return HookedContainer(env={"NVIDIA_VISIBLE_DEVICES": "2"})

    async def pre_update(self, request: HookRequest) -> HookedContainer:
        self.calls.append(("update", request))
        if request.container == "bad":
            raise HookError("annotation: must be JSON")
        return replace(request.asked, args=())


def test_a_request_comes_out_as_it_went_in() -> None:
    message = pb.ContainerResourceHookRequest.FromString(request_message(REQUEST).SerializeToString())
    assert request_value(message) == REQUEST


def test_numbers_of_fields_are_the_published_ones() -> None:
    fields = {field.name: field.number for field in pb.ContainerResourceHookRequest.DESCRIPTOR.fields}
    assert {name: number for name, number in fields.items() if number < 100} == {
        "pod_meta": 1,
        "container_meta": 2,
        "container_annotations": 3,
        "container_resources": 4,
        "pod_resources": 5,
        "pod_annotations": 6,
        "pod_labels": 7,
        "pod_cgroup_parent": 8,
        "container_envs": 9,
    }
    assert {f.name: f.number for f in pb.ContainerResourceHookResponse.DESCRIPTOR.fields if f.number < 100} == {
        "container_annotations": 1,
        "container_resources": 2,
        "pod_cgroup_parent": 3,
        "container_envs": 4,
    }


def test_an_agent_that_knows_the_published_fields_alone_changes_these_alone() -> None:
    answer = pb.ContainerResourceHookResponse(container_envs={"B": "2"})
    assert response_value(answer, ASKED) == replace(ASKED, env={"B": "2"})
    assert response_value(pb.ContainerResourceHookResponse(), ASKED) == ASKED


def serving(body) -> None:
    async def main() -> None:
        with TemporaryDirectory(prefix="hk") as folder:
            path = Path(folder) / "koordlet.sock"
            agent = Agent()
            server = await serve_hooks(path, agent)
            try:
                await body(path, agent, server)
            finally:
                await server.close()

    asyncio.run(asyncio.wait_for(main(), 20))


@pytest.mark.wall
def test_both_calls_go_over_a_socket_and_errors_come_back() -> None:
    async def body(path: Path, agent: Agent, server: object) -> None:
        client = GrpcHooks(path)
        assert await client.pre_create(REQUEST) == HookedContainer(
            {"NVIDIA_VISIBLE_DEVICES": "2"}, annotations=ASKED.annotations
        )
        assert await client.pre_update(REQUEST) == replace(ASKED, args=())
        assert [name for name, _ in agent.calls] == ["create", "update"]
        assert agent.calls[0][1] == REQUEST
        with pytest.raises(HookError, match="annotation: must be JSON"):
            await client.pre_update(replace(REQUEST, container="bad"))
        await client.close()

    serving(body)


@pytest.mark.wall
def test_hooks_that_concern_no_devices_are_answered_with_nothing() -> None:
    async def body(path: Path, agent: Agent, server: object) -> None:
        channel = channel_to(path)
        for name, request, response in (
            ("PreRunPodSandboxHook", pb.PodSandboxHookRequest(), pb.PodSandboxHookResponse),
            ("PostStopContainerHook", pb.ContainerResourceHookRequest(), pb.ContainerResourceHookResponse),
        ):
            call = channel.unary_unary(
                f"/{SERVICE}/{name}",
                request_serializer=type(request).SerializeToString,
                response_deserializer=response.FromString,
            )
            assert await call(request) == response()
        await channel.close()

    serving(body)


@pytest.mark.wall
def test_nobody_there_is_a_hook_error_and_whoever_comes_back_is_found() -> None:
    async def body(path: Path, agent: Agent, server) -> None:
        client = GrpcHooks(path)
        await server.close()
        with pytest.raises(HookError, match="Unavailable"):
            await client.pre_create(REQUEST)
        again = await serve_hooks(path, agent)
        for _ in range(100):
            try:
                answer = await client.pre_create(REQUEST)
                break
            except HookError:
                await asyncio.sleep(0.05)
        assert answer.env == {"NVIDIA_VISIBLE_DEVICES": "2"}
        await client.close()
        await again.close()

    serving(body)
