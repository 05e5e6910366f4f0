"""A DRA driver on unix sockets, as programs of others serve it."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from mews.kube.deviceplugin.grpc_errors import abort
from mews.kube.deviceplugin.grpc_server import SocketServer, serve_on, unary
from mews.kube.deviceplugin.pb import dra_health_v1_pb2 as health_pb
from mews.kube.deviceplugin.pb import dra_v1_pb2 as pb
from mews.kube.deviceplugin.port import PluginError
from mews.kube.dra.messages import HEALTH_SERVICES, SERVICES
from mews.kube.dra.port import ClaimReference, DeviceHealth, PreparedClaim, PreparedDevice
from mews.kube.emulated.kubelet.dra.grpc_registry import GrpcDraRegistry

pytestmark = pytest.mark.wall
CLAIM = ClaimReference("default", "u", "c")


class Driver:
    """What a driver of others serves: its registration, and the calls."""

    def __init__(
        self,
        folder: Path,
        *,
        kind: str = "DRAPlugin",
        versions: tuple[str, ...] = ("v1.DRAPlugin",),
        named: str = "",
    ) -> None:
        self.folder = folder
        self.named = named
        self.registration = "d-reg.sock"
        self.kind = kind
        self.versions = versions
        self.serves_health = tuple(each for each in versions if each in HEALTH_SERVICES)
        self.told: list[tuple[bool, str]] = []
        self.servers: list[SocketServer] = []

    async def serve(self) -> None:
        endpoint = self.folder / "dra.sock"
        told = self.named or str(endpoint)
        calls = {
            "NodePrepareResources": unary(self._prepare, pb.NodePrepareResourcesRequest),
            "NodeUnprepareResources": unary(self._unprepare, pb.NodeUnprepareResourcesRequest),
        }
        named = [(SERVICES[each], calls) for each in self.versions if each in SERVICES]
        watch = grpc.unary_stream_rpc_method_handler(
            self._watch, health_pb.NodeWatchResourcesRequest.FromString, lambda message: message.SerializeToString()
        )
        named += [(each, {"NodeWatchResources": watch}) for each in self.serves_health]
        self.servers.append(await serve_on(endpoint, *named))

        async def info(_: Any) -> Any:
            return pb.PluginInfo(type=self.kind, name="d.example.com", endpoint=told, supported_versions=self.versions)

        async def status(request: Any) -> Any:
            self.told.append((request.plugin_registered, request.error))
            return pb.RegistrationStatusResponse()

        registration = {
            "GetInfo": unary(info, pb.InfoRequest),
            "NotifyRegistrationStatus": unary(status, pb.RegistrationStatus),
        }
        path = self.folder / "registry" / self.registration
        self.servers.append(await serve_on(path, ("pluginregistration.Registration", registration)))

    async def close(self) -> None:
        while self.servers:
            await self.servers.pop().close()

    async def _prepare(self, request: Any) -> Any:
        device = pb.Device(request_names=["r"], pool_name="p", device_name="gpu-0", cdi_device_ids=["v/c=0"])
        answer = pb.NodePrepareResourcesResponse()
        for claim in request.claims:
            answer.claims[claim.uid].devices.append(device)
        return answer

    async def _watch(self, _: Any, context: Any) -> AsyncIterator[Any]:
        for health, timeout_s in ((1, 0), (2, 60), (0, -5), (7, 0)):
            device = health_pb.DeviceIdentifier(pool_name="p", device_name="gpu-0")
            one = health_pb.DeviceHealth(
                device=device, health=health, message="m", health_check_timeout_seconds=timeout_s
            )
            yield health_pb.NodeWatchResourcesResponse(devices=[one])
        await abort(context, PluginError("Internal", "boom"))

    async def _unprepare(self, request: Any) -> Any:
        answer = pb.NodeUnprepareResourcesResponse()
        for claim in request.claims:
            answer.claims[claim.uid].error = f"{claim.namespace}/{claim.name} is stuck"
        return answer


@asynccontextmanager
async def listening(folder: Path) -> Any:
    """A registry that a kubelet listens to."""
    (folder / "registry").mkdir(exist_ok=True)
    registry = GrpcDraRegistry(folder / "registry", [folder / "cdi"])
    changed = asyncio.Event()
    unlisten = registry.listen(changed.set)
    try:
        yield registry, changed
    finally:
        unlisten()
        await asyncio.sleep(0)


async def until(changed: asyncio.Event, holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            changed.clear()
            await changed.wait()


def play(folder: Path, story: Callable[[GrpcDraRegistry, asyncio.Event], Awaitable[None]]) -> None:
    async def main() -> None:
        async with listening(folder) as (registry, changed):
            await story(registry, changed)

    asyncio.run(main())


@pytest.mark.parametrize("versions", [("v1.DRAPlugin",), ("v1beta1.DRAPlugin", "v1.DRAPlugin"), ("v1beta1.DRAPlugin",)])
def test_a_driver_registers_is_called_and_goes(tmp_path: Path, versions: tuple[str, ...]) -> None:
    async def story(registry: GrpcDraRegistry, changed: asyncio.Event) -> None:
        driver = Driver(tmp_path, versions=versions)
        await driver.serve()
        await until(changed, lambda: any(each.connected for each in registry.sockets().values()))
        ((path, socket),) = registry.sockets().items()
        assert path.endswith("d-reg.sock")
        assert socket.driver == "d.example.com"
        expected = PreparedClaim((PreparedDevice("p", "gpu-0", ("r",), ("v/c=0",)),))
        assert await socket.prepare([CLAIM]) == {"u": expected}
        assert await socket.unprepare([CLAIM]) == {"u": "default/c is stuck"}
        assert driver.told == [(True, "")]
        await driver.close()
        await until(changed, lambda: not registry.sockets())

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        ({"kind": "CSIPlugin"}, "RegisterPlugin error -- no handler registered for plugin type: CSIPlugin at socket"),
        ({"versions": ()}, "empty list of supported gRPC services (aka supported versions)"),
        ({"versions": ("v9.DRAPlugin",)}, "none of services supported by the plugin ([v9.DRAPlugin]) are supported by"),
    ],
)
def test_a_plugin_that_is_not_taken_is_told_why(tmp_path: Path, driver: dict[str, Any], words: str) -> None:
    async def story(registry: GrpcDraRegistry, changed: asyncio.Event) -> None:
        served = Driver(tmp_path, **driver)
        await served.serve()
        async with asyncio.timeout(20):
            while not served.told:  # noqa: ASYNC110 - it is told, we are not
                await asyncio.sleep(0.05)
        assert served.told[0][0] is False
        assert words in served.told[0][1]
        assert registry.sockets() == {}
        await served.close()

    play(tmp_path, story)


def test_a_driver_in_a_pod_names_its_socket_below_the_kubelets_root(tmp_path: Path) -> None:
    async def story(registry: GrpcDraRegistry, changed: asyncio.Event) -> None:
        driver = Driver(tmp_path, named="/var/lib/kubelet/dra.sock")
        await driver.serve()
        await until(changed, lambda: any(each.connected for each in registry.sockets().values()))
        (socket,) = registry.sockets().values()
        assert await socket.unprepare([CLAIM]) == {"u": "default/c is stuck"}
        await driver.close()

    play(tmp_path, story)


def test_a_socket_whose_path_is_too_long_is_reached_by_its_folder() -> None:
    async def story(registry: GrpcDraRegistry, changed: asyncio.Event) -> None:
        driver = Driver(registry.registry.parent)
        await driver.serve()
        long = registry.registry / f"d.example.com-{'1' * 36}-reg.sock"
        (registry.registry / driver.registration).rename(long)
        assert len(str(long)) > 107
        await until(changed, lambda: str(long) in registry.sockets())
        assert driver.told[-1] == (True, "")
        await driver.close()

    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as short:
        folder = Path(short) / ("x" * (79 - len(short)))
        folder.mkdir()
        play(folder, story)


def test_specifications_are_read_from_files_and_broken_ones_are_passed_over(tmp_path: Path) -> None:
    async def story(registry: GrpcDraRegistry, changed: asyncio.Event) -> None:
        folder = tmp_path / "cdi"
        whole = {"cdiVersion": "0.6.0", "kind": "v/c", "devices": [{"name": "0"}]}
        (folder / "b.yaml").write_text("cdiVersion: 0.6.0\nkind: v/c\ndevices: [{name: '1'}]\n")
        (folder / "a.json").write_text(json.dumps(whole))
        (folder / "c.json").write_text("{")
        (folder / "e.json").write_text(json.dumps({**whole, "containerEdits": {"mounts": [{"hostPath": "/h"}]}}))
        (folder / "d.txt").write_text("kind: v/d\n")
        assert [spec["devices"][0]["name"] for spec in registry.specs()] == ["0", "1"]

    play(tmp_path, story)


HEALTHS = [("Healthy", 0.0), ("Unhealthy", 60.0), ("Unknown", 0.0), ("Unknown", 0.0)]


@pytest.mark.parametrize(
    ("versions", "reports"),
    [
        (("v1.DRAPlugin",), False),
        (("v1.DRAPlugin", "v1alpha1.DRAResourceHealth"), True),
        (("v1.DRAResourceHealth", "v1.DRAPlugin"), True),
        (("v1.DRAPlugin", "v1alpha1.DRAResourceHealth", "v1.DRAResourceHealth"), True),
    ],
)
def test_health_is_read_from_a_driver_that_offers_it(tmp_path: Path, versions: tuple[str, ...], reports: bool) -> None:
    async def story(registry: GrpcDraRegistry, changed: asyncio.Event) -> None:
        driver = Driver(tmp_path, versions=versions)
        await driver.serve()
        await until(changed, lambda: any(each.connected for each in registry.sockets().values()))
        (socket,) = registry.sockets().values()
        assert socket.reports_health is reports
        if reports:
            expected = [(DeviceHealth("p", "gpu-0", health, "m", timeout_s),) for health, timeout_s in HEALTHS]
            seen = []
            with pytest.raises(PluginError, match="rpc error: code = Internal desc = boom"):
                async for devices in socket.watch_health():
                    seen.append(devices)
            assert seen == expected
        await driver.close()

    play(tmp_path, story)


def test_the_newest_health_service_is_asked_and_one_that_is_not_there_is_unimplemented(tmp_path: Path) -> None:
    async def story(registry: GrpcDraRegistry, changed: asyncio.Event) -> None:
        driver = Driver(tmp_path, versions=("v1.DRAPlugin", "v1alpha1.DRAResourceHealth", "v1.DRAResourceHealth"))
        driver.serves_health = ("v1alpha1.DRAResourceHealth",)
        await driver.serve()
        await until(changed, lambda: any(each.connected for each in registry.sockets().values()))
        (socket,) = registry.sockets().values()
        with pytest.raises(PluginError) as failed:
            await anext(socket.watch_health())
        assert failed.value.code == "Unimplemented"
        await driver.close()

    play(tmp_path, story)
