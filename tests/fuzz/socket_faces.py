"""What listens beside HTTP: device plugins, kubelets, runtime hooks and the runtime's proxy (gRPC on unix sockets),
NVML of the hosts (lines on a unix socket), parameter servers (bytes on loopback)."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from glob import glob
from pathlib import Path
from typing import Any

import grpc

from mews.harness.clusters import open_cluster
from mews.harness.options import RunOptions
from mews.harness.ports.cluster import ReachableCluster
from mews.harness.scenario.loader import parse_scenario, shipped
from mews.kube.deviceplugin.grpc_server import SocketServer, serve_handlers
from mews.kube.deviceplugin.pb import cri_v1_pb2 as cri
from mews.kube.deviceplugin.pb import deviceplugin_v1beta1_pb2 as plugins
from mews.kube.deviceplugin.pb import podresources_v1_pb2 as resources
from mews.kube.deviceplugin.pb import runtimehook_v1alpha1_pb2 as hooks
from mews.kube.runtimehook.grpc_hooks import SERVICE as HOOKS
from mews.kube.runtimehook.port import HookPolicy
from mews.kube.runtimehook.proxy import CREATE, UPDATE, RuntimeProxy
from mews.kube.runtimehook.runtime import SERVICE as RUNTIME
from mews.listening.ports import free_port
from mews.systems.kod2.trainer.server import Server
from mews.systems.kod2.trainer.settings import TrainerSettings
from tests.fuzz.calls import Call
from tests.fuzz.faces import on_a_loop
from tests.fuzz.socket_judge import ByteFace, RpcFace, SocketFace, connected

SCENARIO = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: sockets}
hardware: demo
stack: {gpushare: {unit: GiB, nodes: [host-2]}, koordinator: {nodes: [host-3]}}
"""
REGISTER = "/v1beta1.Registration/Register"
_PLUGIN, _LISTER = "/v1beta1.DevicePlugin/", "/v1.PodResourcesLister/"
STARTED_S = 30.0


def registration(endpoint: str) -> list[Call]:
    """Calls of a device plugin to a kubelet."""
    sound = plugins.RegisterRequest(version="v1beta1", endpoint=endpoint, resource_name="example.com/x")
    wrong = plugins.RegisterRequest(version="v1beta1", endpoint=endpoint, resource_name="cpu")
    away = plugins.RegisterRequest(version="v1beta1", endpoint="away.sock", resource_name="example.com/y")
    return [Call(REGISTER, message.SerializeToString()) for message in (sound, wrong, away)]


def device_plugin() -> list[Call]:
    """Calls of a kubelet to a device plugin."""
    allocate = plugins.AllocateRequest(
        container_requests=[plugins.ContainerAllocateRequest(devices_ids=["a", "b"]) for _ in range(2)]
    )
    preferred = plugins.PreferredAllocationRequest(
        container_requests=[
            plugins.ContainerPreferredAllocationRequest(
                available_deviceIDs=["a", "b"], must_include_deviceIDs=["a"], allocation_size=2
            )
        ]
    )
    started = plugins.PreStartContainerRequest(devices_ids=["a"])
    return [
        Call(f"{_PLUGIN}GetDevicePluginOptions", b""),
        Call(f"{_PLUGIN}ListAndWatch", b""),
        Call(f"{_PLUGIN}Allocate", allocate.SerializeToString()),
        Call(f"{_PLUGIN}GetPreferredAllocation", preferred.SerializeToString()),
        Call(f"{_PLUGIN}PreStartContainer", started.SerializeToString()),
    ]


def pod_resources() -> list[Call]:
    """Calls of a monitoring agent to a kubelet."""
    get = resources.GetPodResourcesRequest(pod_name="p", pod_namespace="default")
    return [
        Call(f"{_LISTER}List", b""),
        Call(f"{_LISTER}GetAllocatableResources", b""),
        Call(f"{_LISTER}Get", get.SerializeToString()),
    ]


def runtime_hooks() -> list[Call]:
    """Calls of a runtime's proxy to a node's agent."""
    asked = hooks.ContainerResourceHookRequest(
        pod_meta=hooks.PodSandboxMetadata(name="p", uid="u", namespace="default"),
        container_meta=hooks.ContainerMetadata(name="c", attempt=1),
        pod_annotations={"scheduling.koordinator.sh/device-allocated": '{"gpu": [{"minor": 0}]}'},
        container_envs={"A": "b"},
    ).SerializeToString()
    pod = hooks.PodSandboxHookRequest().SerializeToString()
    return [
        Call(f"/{HOOKS}/PreRunPodSandboxHook", pod),
        *(Call(f"/{HOOKS}/{name}", asked) for name in ("PreCreateContainerHook", "PreUpdateContainerResourcesHook")),
    ]


def container_runtime() -> list[Call]:
    """Calls of a kubelet to its container runtime."""
    made = cri.CreateContainerRequest(
        pod_sandbox_id="s",
        config=cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name="main", attempt=2), envs=[cri.KeyValue(key="A", value="1")]
        ),
        sandbox_config=cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="a", uid="u", namespace="default")),
    ).SerializeToString()
    return [
        Call(f"/{RUNTIME}/Version", b""),
        Call(CREATE, made),
        Call(UPDATE, b"\x0a\x01c"),
        Call(f"/{RUNTIME}/x", made),
    ]


NVML_LINES = (
    b"mews-nvml 1 release\n",
    b"mews-nvml 1 hold 1 0000:00:00.0\n",
    b"mews-nvml 1 drain 0000:00:00.0 1\n",
    b"mews-nvml 1 persistence 0000:00:00.0 1\n",
    b"mews-nvml 1 remove 0000:00:00.0 1 1\n",
    b"mews-nvml 1 hold " + b"9" * 400 + b" 0000:00:00.0\n",
    b"mews-nvml 1 hold \xc2\xb2 0000:00:00.0\n",
    b"a" * 70_000 + b"\n",
)
TRAINER_LINES = (
    b'{"evaluator": 1, "bytes": 0}\n{"bytes": 0}\n',
    b'{"worker": "worker-0", "step": 1, "bytes": 4}\n\0\0\0\0{"bytes": 4}\n\0\0\0\0',
    b'{"worker": "worker-0", "step": "x", "bytes": 0}\n',
    b'{"worker": [], "step": 1' + b"0" * 400 + b', "bytes": 0}\n',
    b'{"bytes": 99999999999}\n',
    b'{"bytes": -4}\n',
    b"[" * 3_000 + b"\n",
    b"a" * 70_000 + b"\n",
)


async def _open() -> ReachableCluster:
    scenario = parse_scenario(SCENARIO, shipped("hardware", "demo").parent / "sockets.yaml")
    cluster = await open_cluster(scenario, RunOptions("embedded", "wall"), seed=1)
    nodes = cluster.ready()["nodes"]
    await until(lambda: bool(_plugins_of(nodes["host-2"]) and _plugins_of(nodes["host-3"], "koordlet.sock")))
    return cluster


async def until(there: Callable[[], bool]) -> None:
    """Wait for it. Raises TimeoutError."""
    async with asyncio.timeout(STARTED_S):
        while not await asyncio.to_thread(there):  # noqa: ASYNC110 - files and ports tell nobody when they are there
            await asyncio.sleep(0.05)


def _plugins_of(node: dict[str, Any], name: str = "") -> list[Path]:
    if name:
        return [path for path in [Path(node["pod_resources"]).parent / name] if path.exists()]
    found = sorted(Path(node["device_plugins"]).glob("*.sock"))
    return [path for path in found if path.name != "kubelet.sock"]


@contextmanager
def sockets() -> Iterator[list[SocketFace]]:
    """The sockets of a cluster's nodes and hosts."""
    with on_a_loop(_open, lambda cluster: cluster.close()) as cluster:
        ready = cluster.ready()
        node, agent = ready["nodes"]["host-2"], ready["nodes"]["host-3"]
        [plugin, *_] = _plugins_of(node)
        [hook] = _plugins_of(agent, "koordlet.sock")
        [nvml, *_] = sorted(glob(f"{ready['logs']}/h/host-*/nvml.state.sock"))
        slow = frozenset({REGISTER})
        yield [
            RpcFace("kubelet's registration", plugin.parent / "kubelet.sock", registration(plugin.name), slow),
            RpcFace("device plugin", plugin, device_plugin(), streams=frozenset({f"{_PLUGIN}ListAndWatch"})),
            RpcFace("pod resources", Path(node["pod_resources"]) / "kubelet.sock", pod_resources()),
            RpcFace("runtime hooks", hook, runtime_hooks()),
            ByteFace("NVML of a host", Path(nvml), list(NVML_LINES), b"0"),
        ]


class _Echo(grpc.GenericRpcHandler):  # type: ignore[misc]
    """A container runtime that answers what it was sent."""

    def service(self, details: Any) -> Any:
        """Any method."""

        async def answer(messages: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            async for message in messages:
                yield message

        return grpc.stream_stream_rpc_method_handler(answer)


class _Runtime:
    """A proxy before a container runtime, without an agent; and a parameter server."""

    def __init__(self, folder: Path, echo: SocketServer, running: list[asyncio.Task[None]], port: int) -> None:
        self.folder, self.port = folder, port
        self._echo, self._running = echo, running

    async def close(self) -> None:
        """End all."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._echo.close()


async def _runtime(folder: Path) -> _Runtime:
    echo = await serve_handlers(folder / "r.sock", (_Echo(),))
    log, port = logging.getLogger("fuzz.proxy"), free_port()
    proxy = RuntimeProxy(folder / "p.sock", folder / "r.sock", folder / "away.sock", HookPolicy.IGNORE, log)
    server = Server(TrainerSettings("ps", 0, (f"127.0.0.1:{port}",), ("127.0.0.1:1",)))
    running = [asyncio.ensure_future(proxy.run()), asyncio.ensure_future(server.serve("127.0.0.1", port))]
    await until(lambda: (folder / "p.sock").exists() and _listens(port))
    return _Runtime(folder, echo, running, port)


def _listens(port: int) -> bool:
    with suppress(OSError):
        connected(("127.0.0.1", port)).close()
        return True
    return False


@contextmanager
def runtimes() -> Iterator[list[SocketFace]]:
    """Koordinator's runtime proxy, and a parameter server of the played trainer."""
    with (
        tempfile.TemporaryDirectory(prefix="fz", dir="/tmp") as name,
        on_a_loop(lambda: _runtime(Path(name)), _Runtime.close) as served,
    ):
        yield [
            RpcFace("runtime proxy", served.folder / "p.sock", container_runtime()),
            ByteFace("parameter server", ("127.0.0.1", served.port), list(TRAINER_LINES), b'{"'),
        ]
