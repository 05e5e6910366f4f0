"""A driver of the helper's on unix sockets, called by a kubelet's side of them."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from mews.kube.api.objects import Object, uid_of
from mews.kube.api.resources import NODES, RESOURCE_CLAIMS, RESOURCE_SLICES
from mews.kube.clock import Clock, rest, stream
from mews.kube.component import Context
from mews.kube.deviceplugin.grpc_client import channel_to, unary_call
from mews.kube.deviceplugin.pb import dra_health_v1_pb2 as health_pb
from mews.kube.deviceplugin.pb import dra_v1_pb2 as pb
from mews.kube.dra.cdi import injected
from mews.kube.dra.driver import WELL, Condition, DriverComponent, DriverError, unwell
from mews.kube.dra.grpc_link import CdiFiles, GrpcDraLink
from mews.kube.dra.messages import health_value
from mews.kube.dra.port import (
    HEALTHY,
    UNHEALTHY,
    ClaimReference,
    DeviceHealth,
    DraSocket,
    PreparedClaim,
    PreparedDevice,
)
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.kubelet.dra.grpc_registry import GrpcDraRegistry
from mews.kube.emulated.kubelet.oci.cdi import parse_spec

pytestmark = pytest.mark.wall
NODE, DRIVER = "n1", "fan.example.com"


class Fans:
    """Two devices, whose names a container finds in one variable."""

    name = DRIVER

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fails = ""

    async def devices(self) -> Sequence[Mapping[str, Any]]:
        return [{"name": f"fan-{n}"} for n in range(3)]

    async def prepare(self, claim: Object, results: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        self.calls.append("prepare")
        if self.fails:
            raise DriverError(self.fails)
        own = {each["device"]: {"env": [f"FANS={each['device']}"]} for each in results}
        return {"devices": own, "joined": ["FANS"]}

    async def unprepare(self, claim: ClaimReference) -> None:
        self.calls.append("unprepare")


class Bench:
    """A node's folders, a kubelet that listens, and a driver."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plugins, self.registry, self.cdi = folder / "plugins", folder / "registry", folder / "cdi"
        self.kubelet = GrpcDraRegistry(self.registry, [self.cdi])
        self.changed = asyncio.Event()
        clock = Clock.wall()
        self.kube = InProcessKube(fresh_store(clock.now, stream(1, "store"), attended=True))
        self.fans = Fans()
        self.unlisten: Callable[[], None] = lambda: None
        self.context = Context(self.kube, clock, stream(1, "driver"), logging.getLogger("driver"))

    @asynccontextmanager
    async def driver(self) -> AsyncIterator[DraSocket]:
        """The driver runs, and is registered."""
        link = GrpcDraLink(plugins=self.plugins, registry=self.registry, cdi=self.cdi)
        running = asyncio.create_task(DriverComponent(self.context, self.fans, link=link, node=NODE).run())
        try:
            await self.until(lambda: any(each.connected for each in self.kubelet.sockets().values()))
            ((path, found),) = self.kubelet.sockets().items()
            assert (path, found.driver) == (str(self.registry / f"{DRIVER}-reg.sock"), DRIVER)
            yield found
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not holds():
                self.changed.clear()
                await self.changed.wait()

    async def claim(self, name: str, *devices: tuple[str, str]) -> ClaimReference:
        """Allocated: (request, device)."""
        requests = [
            {"name": each, "exactly": {"deviceClassName": "k"}} for each in dict.fromkeys(r for r, _ in devices)
        ]
        body = {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}
        made = await self.kube.create(RESOURCE_CLAIMS, body, namespace="default")
        results = [{"request": r, "driver": DRIVER, "pool": NODE, "device": device} for r, device in devices]
        status = {"allocation": {"devices": {"results": results}}}
        await self.kube.replace(RESOURCE_CLAIMS, {**made, "status": status}, subresource="status")
        return ClaimReference("default", uid_of(made), name)

    def files(self) -> list[str]:
        return sorted(path.name for path in self.cdi.iterdir())


def play(story: Callable[[Bench], Awaitable[None]]) -> None:
    async def main() -> None:
        bench = Bench(Path(folder))
        await bench.kube.create(NODES, {"metadata": {"name": NODE}})
        bench.unlisten = bench.kubelet.listen(bench.changed.set)
        try:
            await story(bench)
        finally:
            bench.unlisten()
            await asyncio.sleep(0)

    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as folder:  # short, as sockets' names must be
        asyncio.run(main())


def test_a_claim_is_prepared_and_given_up_over_the_sockets() -> None:
    async def story(bench: Bench) -> None:
        claim = await bench.claim("c", ("r", "fan-1"))
        async with bench.driver() as driver:
            device = PreparedDevice(NODE, "fan-1", ("r",), (f"k8s.{DRIVER}/claim={claim.uid}-fan-1",))
            assert await driver.prepare([claim]) == {claim.uid: PreparedClaim((device,))}
            assert bench.files() == [f"k8s.{DRIVER}-claim_{claim.uid}.json"], "nothing that is half written is left"
            assert injected(device.cdi_ids, bench.kubelet.specs()).envs == {"FANS": "fan-1"}
            other = ClaimReference("default", "u", "gone")
            with pytest.raises(Exception, match="retrieve claim default/gone"):
                await driver.prepare([other])
            assert await driver.unprepare([claim]) == {claim.uid: ""}
            assert bench.files() == []
            while not (await bench.kube.list(RESOURCE_SLICES)).items:
                await rest(0.01)
        await bench.until(lambda: not bench.kubelet.sockets())
        assert not list(bench.registry.iterdir()) and not list((bench.plugins / DRIVER).iterdir())
        assert [each["spec"]["driver"] for each in (await bench.kube.list(RESOURCE_SLICES)).items] == [DRIVER]

    play(story)


def test_what_cannot_be_prepared_is_told_of_its_claim_alone() -> None:
    async def story(bench: Bench) -> None:
        claim, taken = await bench.claim("c", ("r", "fan-1")), await bench.claim("d", ("r", "fan-1"))
        async with bench.driver() as driver:
            bench.fans.fails = "too hot"
            assert await driver.prepare([claim]) == {claim.uid: PreparedClaim(error="too hot")}
            bench.fans.fails = ""
            answer = await driver.prepare([claim, taken])
            assert answer[claim.uid].devices and not answer[claim.uid].error
            text = f"requested device fan-1 is already allocated to different claim {claim.uid}"
            assert answer[taken.uid] == PreparedClaim(error=text)

    play(story)


def test_a_driver_that_is_started_again_answers_as_before_and_takes_the_place_of_dead_sockets() -> None:
    async def story(bench: Bench) -> None:
        claim = await bench.claim("c", ("r", "fan-1"))
        async with bench.driver() as driver:
            before = await driver.prepare([claim])
        await bench.until(lambda: not bench.kubelet.sockets())
        bench.cdi.joinpath("others.json").write_text(json.dumps({"kind": f"k8s.{DRIVER}/claim", "devices": []}))
        bench.cdi.joinpath("broken.json").write_text("{")
        for dead in (bench.registry / f"{DRIVER}-reg.sock", bench.plugins / DRIVER / "dra.sock"):
            with socket.socket(socket.AF_UNIX) as left:
                left.bind(str(dead))
        async with bench.driver() as driver:
            assert await driver.prepare([claim]) == before
            assert bench.fans.calls == ["prepare"], "the file says what it was given"
            assert await driver.unprepare([claim]) == {claim.uid: ""}
        assert bench.files() == ["broken.json", "others.json"]

    play(story)


def test_a_joined_variable_has_all_devices_of_a_request_in_each_of_its_devices() -> None:
    """A container runtime takes the last value; ours unites them."""

    async def story(bench: Bench) -> None:
        claim = await bench.claim("c", ("r", "fan-0"), ("r", "fan-1"), ("s", "fan-2"))
        async with bench.driver() as driver:
            devices = (await driver.prepare([claim]))[claim.uid].devices
        (path,) = bench.cdi.iterdir()
        parse_spec(path.read_text(), str(path))
        own = [each["containerEdits"]["env"] for each in json.loads(path.read_text())["devices"]]
        assert own == [["FANS=fan-0,fan-1"], ["FANS=fan-0,fan-1"], ["FANS=fan-2"]]
        ids = [each.cdi_ids[0] for each in devices]
        assert injected(ids[:2], bench.kubelet.specs()).envs == {"FANS": "fan-0,fan-1"}
        assert injected(ids, bench.kubelet.specs()).envs == {"FANS": "fan-0,fan-1,fan-2"}

    play(story)


@pytest.mark.parametrize(("registered", "words"), [(True, "has registered"), (False, "does not register")])
def test_what_the_kubelet_makes_of_it_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, registered: bool, words: str
) -> None:
    caplog.set_level(logging.INFO)

    async def main() -> None:
        link = GrpcDraLink(plugins=tmp_path / "p", registry=tmp_path / "r", cdi=tmp_path / "c")
        endpoint = await link.serve(DRIVER, DriverComponent(Bench(tmp_path).context, Fans(), link=link, node=NODE))
        channel = channel_to(tmp_path / "r" / f"{DRIVER}-reg.sock")
        status = pb.RegistrationStatus(plugin_registered=registered, error="" if registered else "no room")
        method = "/pluginregistration.Registration/NotifyRegistrationStatus"
        await unary_call(channel, method, status, pb.RegistrationStatusResponse, timeout_s=20)
        await channel.close(None)
        await endpoint.close()
        await rest(0)

    asyncio.run(main())
    (said,) = [each for each in caplog.messages if words in each]
    assert DRIVER in said and ("no room" in said) is not registered


def test_devices_are_published_once_the_kubelet_can_call() -> None:
    """A pod that is scheduled before is tried again a minute later."""

    async def story(bench: Bench) -> None:
        bench.unlisten()
        link = GrpcDraLink(plugins=bench.plugins, registry=bench.registry, cdi=bench.cdi)
        running = asyncio.create_task(DriverComponent(bench.context, bench.fans, link=link, node=NODE).run())
        while not bench.registry.joinpath(f"{DRIVER}-reg.sock").exists():
            await rest(0.01)
        await rest(0.2)
        assert (await bench.kube.list(RESOURCE_SLICES)).items == []
        bench.unlisten = bench.kubelet.listen(bench.changed.set)
        async with asyncio.timeout(20):
            while not (await bench.kube.list(RESOURCE_SLICES)).items:
                await rest(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    play(story)


class WarmFans(Fans):
    """They know how they are."""

    async def health(self) -> Mapping[str, Condition]:
        return {"fan-0": unwell("it does not turn"), "fan-1": WELL}


@pytest.mark.parametrize("service", ["v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"])
def test_the_health_of_devices_is_told_to_whoever_watches(service: str) -> None:
    async def story(bench: Bench) -> None:
        bench.fans = WarmFans()
        async with bench.driver() as driver:
            assert driver.reports_health
            channel = channel_to(bench.plugins / DRIVER / "dra.sock")
            watch = channel.unary_stream(
                f"/{service}/NodeWatchResources",
                request_serializer=health_pb.NodeWatchResourcesRequest.SerializeToString,
                response_deserializer=health_pb.NodeWatchResourcesResponse.FromString,
            )
            async with asyncio.timeout(20):
                call = watch(health_pb.NodeWatchResourcesRequest())
                while not (told := await call.read()).devices:  # the first report may come before its first look
                    pass
                assert health_value(told) == (
                    DeviceHealth(NODE, "fan-0", UNHEALTHY, "it does not turn"),
                    DeviceHealth(NODE, "fan-1", HEALTHY),
                )
                now_s = bench.context.clock.now()
                assert all(now_s - 20 <= each.last_updated_time <= now_s for each in told.devices)
                assert await anext(driver.watch_health()) == health_value(told)
        async with asyncio.timeout(20):
            while await call.read() is not grpc.aio.EOF:  # ends with the driver
                pass
        await channel.close(None)

    play(story)


def test_who_does_not_know_the_health_of_its_devices_offers_none() -> None:
    async def story(bench: Bench) -> None:
        async with bench.driver() as driver:
            assert not driver.reports_health

    play(story)


def test_a_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = CdiFiles(tmp_path / "cdi")
    files.write("a.json", {"kind": "v/c"})
    seen: list[Any] = []
    replace = Path.replace

    def watched(self: Path, target: Path) -> Path:
        seen.append((dict(files.files()), self.suffix))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", watched)
    files.write("a.json", {"kind": "v/d"})
    assert seen == [({"a.json": {"kind": "v/c"}}, ".new")]
    assert files.files() == {"a.json": {"kind": "v/d"}}
    files.remove("a.json")
    files.remove("a.json")
    assert files.files() == {}
