"""The proxy between a kubelet and its container runtime: what passes through untouched, what an agent changes, what
becomes of a container whose agent is away. The runtime here answers with what it was sent."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from msgspec.structs import replace

grpc = pytest.importorskip("grpc")

from mews.kube.deviceplugin.grpc_client import channel_to  # noqa: E402
from mews.kube.deviceplugin.grpc_server import serve_handlers  # noqa: E402
from mews.kube.deviceplugin.pb import cri_v1_pb2 as cri  # noqa: E402
from mews.kube.deviceplugin.port import DeviceNode, Mount  # noqa: E402
from mews.kube.runtimehook.__main__ import main  # noqa: E402
from mews.kube.runtimehook.grpc_hooks import serve_hooks  # noqa: E402
from mews.kube.runtimehook.port import HookedContainer, HookError, HookPolicy, HookRequest  # noqa: E402
from mews.kube.runtimehook.proxy import CREATE, UPDATE, RuntimeProxy  # noqa: E402
from mews.kube.runtimehook.runtime import ContainerRuntime, environment_in  # noqa: E402

SECONDS = 60.0
UNKNOWN = b"\xd2\x3e\x05later"
"""Field 1002 of a message: what a newer kubelet says and our part of the interface does not name."""
MOUNT = bytes.fromhex("0a022f63") + bytes.fromhex("12022f68") + b"\x28\x02"
"""A Mount from /h to /c with the propagation 2 (field 5), which our part of the interface does not name."""


def request(namespace: str = "default") -> bytes:
    """A CreateContainerRequest as a kubelet sends it."""
    made = cri.CreateContainerRequest(
        pod_sandbox_id="s",
        config=cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name="main", attempt=2),
            args=["train"],
            envs=[cri.KeyValue(key="A", value="1"), cri.KeyValue(key="NVIDIA_VISIBLE_DEVICES", value="GPU-plugin")],
            mounts=[cri.ContainerMount.FromString(MOUNT)],
            annotations={"kept": "yes"},
        ),
        sandbox_config=cri.PodSandboxConfig(
            metadata=cri.PodSandboxMetadata(name="a", uid="u", namespace=namespace),
            labels={"l": "1"},
            annotations={"n": "2"},
        ),
    )
    return bytes(made.SerializeToString()) + UNKNOWN


@dataclass
class Runtime(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Every call and its message; ``answers`` by method, else the message itself."""

    answers: dict[str, bytes] = field(default_factory=dict)
    calls: list[tuple[str, bytes]] = field(default_factory=list)

    def service(self, details: Any) -> Any:
        name = details.method

        async def answer(messages: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            async for message in messages:
                self.calls.append((name, message))
                if name.endswith("/StopContainer"):
                    await context.abort(grpc.StatusCode.NOT_FOUND, "no such container: x")
                for _ in range(3 if name.endswith("/GetContainerEvents") else 1):
                    yield self.answers.get(name.rpartition("/")[2], message)

        return grpc.stream_stream_rpc_method_handler(answer)


class Agent:
    """Gives GPUs 0 and 1, a mount and a device."""

    def __init__(self) -> None:
        self.asked: list[HookRequest] = []

    async def pre_create(self, request: HookRequest) -> HookedContainer:
        self.asked.append(request)
        if request.pod_annotations.get("n") != "2":
            raise HookError("annotation n: must be 2")
        asked = request.asked
        return replace(
            asked,
            env={**asked.env, "NVIDIA_VISIBLE_DEVICES": "0,1"},
            mounts=(*asked.mounts, Mount("/dev/infiniband/uverbs0", "/files/uverbs0")),
            devices=(DeviceNode("/dev/fpga0", "/dev/fpga0"),),
        )

    async def pre_update(self, request: HookRequest) -> HookedContainer:
        self.asked.append(request)
        return replace(request.asked, annotations={"seen": "yes"})


Call = Callable[[str, bytes], Awaitable[list[bytes]]]


def proxied(
    test: Callable[[Call, Runtime, Agent], Awaitable[None]],
    *,
    policy: HookPolicy = HookPolicy.IGNORE,
    agent: bool = True,
    without: tuple[str, ...] = (),
    runtime: Runtime | None = None,
) -> None:
    """Run a test with a proxy before a runtime, and an agent beside it."""

    async def begin() -> None:
        with TemporaryDirectory(prefix="px", dir="/tmp") as name:
            async with AsyncExitStack() as stack:
                await _begin(Path(name), stack)

    async def _begin(folder: Path, stack: AsyncExitStack) -> None:
        asked, real = Agent(), runtime or Runtime()
        server = await serve_handlers(folder / "real", (real,))
        stack.push_async_callback(server.close)
        if agent:
            stack.push_async_callback((await serve_hooks(folder / "hooks", asked)).close)
        proxy = RuntimeProxy(
            folder / "cri", folder / "real", folder / "hooks", policy, logging.getLogger("proxy"), without=without
        )
        running = asyncio.create_task(proxy.run())
        channel = channel_to(folder / "cri")
        stack.push_async_callback(channel.close)

        async def call(method: str, message: bytes) -> list[bytes]:
            while not (folder / "cri").exists():
                assert not running.done(), running.result()
                await asyncio.sleep(0.01)
            return [answer async for answer in channel.unary_stream(method)(message)]

        try:
            await test(call, real, asked)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(asyncio.wait_for(begin(), SECONDS))


@pytest.mark.parametrize(
    "method", ["/runtime.v1.RuntimeService/RunPodSandbox", "/runtime.v1.ImageService/PullImage", "/some.v9.Service/New"]
)
def test_every_other_call_passes_as_the_bytes_that_it_is(method: str) -> None:
    async def test(call: Call, real: Runtime, agent: Agent) -> None:
        assert await call(method, b"\x00 no protobuf \xff") == [b"\x00 no protobuf \xff"]
        assert (real.calls, agent.asked) == ([(method, b"\x00 no protobuf \xff")], [])

    proxied(test)


def test_a_stream_of_answers_passes_and_so_does_an_error_with_its_code() -> None:
    async def test(call: Call, real: Runtime, agent: Agent) -> None:
        assert await call("/runtime.v1.RuntimeService/GetContainerEvents", b"x") == [b"x"] * 3
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call("/runtime.v1.RuntimeService/StopContainer", b"x")
        assert (refused.value.code(), refused.value.details()) == (grpc.StatusCode.NOT_FOUND, "no such container: x")

    proxied(test)


@pytest.mark.parametrize("method", [CREATE, CREATE.replace("v1.", "v1alpha2.")])
def test_a_container_is_created_as_the_agent_says_and_what_is_not_known_of_it_stays(method: str) -> None:
    async def test(call: Call, real: Runtime, agent: Agent) -> None:
        (answer,) = await call(method, request())
        made = cri.CreateContainerRequest.FromString(answer)
        assert [(each.key, each.value) for each in made.config.envs] == [("A", "1"), ("NVIDIA_VISIBLE_DEVICES", "0,1")]
        assert made.config.mounts[0].SerializeToString() == MOUNT
        assert made.config.mounts[1].host_path == "/files/uverbs0"
        assert [device.container_path for device in made.config.devices] == ["/dev/fpga0"]
        assert (list(made.config.args), dict(made.config.annotations)) == (["train"], {"kept": "yes"})
        assert UNKNOWN in answer
        (asked,) = agent.asked
        assert (asked.namespace, asked.pod, asked.pod_uid, asked.container, asked.attempt) == (
            ("default", "a", "u", "main", 2)
        )
        assert (asked.pod_annotations, asked.pod_labels) == ({"n": "2"}, {"l": "1"})

    proxied(test)


def test_without_an_agent_a_container_is_created_as_it_was_asked_for() -> None:
    async def test(call: Call, real: Runtime, agent: Agent) -> None:
        assert await call(CREATE, request()) == [request()]

    proxied(test, agent=False)


def test_by_the_policy_fail_it_is_not_created_and_the_kubelet_is_told_why() -> None:
    async def test(call: Call, real: Runtime, agent: Agent) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call(CREATE, request())
        assert "PreCreateContainerHook" in (refused.value.details() or "")
        assert real.calls == []

    proxied(test, agent=False, policy=HookPolicy.FAIL)


def test_about_pods_of_its_own_namespace_nobody_is_asked() -> None:
    async def test(call: Call, real: Runtime, agent: Agent) -> None:
        assert await call(CREATE, request("kubecomp")) == [request("kubecomp")]

    proxied(test, agent=False, policy=HookPolicy.FAIL, without=("kubecomp",))


def _lives() -> Runtime:
    spec = {"runtimeSpec": {"process": {"env": ["A=1", "B=x=y", "odd"]}}}
    container = cri.Container(
        id="c1", pod_sandbox_id="s", metadata=cri.ContainerMetadata(name="main"), labels={"io.kubernetes.pod.uid": "u"}
    )
    sandbox = cri.PodSandboxStatus(metadata=cri.PodSandboxMetadata(name="a", uid="u", namespace="default"))
    answers = {
        "ListContainers": cri.ListContainersResponse(containers=[container]),
        "ContainerStatus": cri.ContainerStatusResponse(info={"info": json.dumps(spec)}),
        "PodSandboxStatus": cri.PodSandboxStatusResponse(status=sandbox),
    }
    return Runtime({name: bytes(message.SerializeToString()) for name, message in answers.items()})


def test_the_agent_hears_of_an_update_with_what_the_container_runs_with() -> None:
    async def test(call: Call, real: Runtime, agent: Agent) -> None:
        asked = cri.UpdateContainerResourcesRequest(container_id="c1", annotations={"x": "y"})
        (answer,) = await call(UPDATE, bytes(asked.SerializeToString()) + UNKNOWN)
        assert dict(cri.UpdateContainerResourcesRequest.FromString(answer).annotations) == {"seen": "yes"}
        assert UNKNOWN in answer
        (heard,) = agent.asked
        assert (heard.pod, heard.container, heard.asked.env) == ("a", "main", {"A": "1", "B": "x=y"})

    proxied(test, runtime=_lives())


def test_the_containers_that_run_are_known_with_their_environments() -> None:
    async def begin() -> None:
        with TemporaryDirectory(prefix="px", dir="/tmp") as name:
            server = await serve_handlers(Path(name) / "real", (_lives(),))
            runtime = ContainerRuntime(Path(name) / "real")
            try:
                (found,) = await runtime.running()
                assert (found.pod_uid, found.container, found.env) == ("u", "main", {"A": "1", "B": "x=y"})
            finally:
                await runtime.close()
                await server.close()

    asyncio.run(asyncio.wait_for(begin(), SECONDS))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"runtimeSpec": {"process": {}}}'])
def test_a_runtime_that_tells_no_environment_is_believed(text: str) -> None:
    assert environment_in({"info": text}) is None


def test_a_socket_that_cannot_be_served_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--listen", f"/tmp/{'x' * 120}"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("--listen /tmp/x") and error.count("\n") == 1
