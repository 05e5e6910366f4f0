"""A small cluster in virtual time: emulated chassis and kubelets, and KubeComp's real components, each killable."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial, wraps
from typing import Any

from msgspec.structs import replace

from mews.emulator.chassis.events import ChassisEvent
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.host.events import HostEvent
from mews.emulator.inventory.reading import parse_hardware
from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.ports.chassis import LocalFleet
from mews.harness.ports.deviceplugin import LocalKubeletFolder
from mews.harness.ports.fence import Fence, Fenced
from mews.harness.ports.hardware_control import LocalHardwareControl
from mews.harness.ports.hosts import LocalDriver, LocalHosts
from mews.kube.api.errors import UnavailableError
from mews.kube.api.objects import Object, condition_of, phase_of
from mews.kube.api.resources import CONFIGMAPS, EVENTS, NODES, PODS
from mews.kube.chassis.dialects import client_of
from mews.kube.clock import Pace, stream
from mews.kube.component import Context, Runnable
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.kubelet.containerd import Containerd
from mews.kube.emulated.kubelet.devices import MemoryCheckpoint
from mews.kube.emulated.kubelet.images import load_images
from mews.kube.emulated.kubelet.machine import Machine
from mews.kube.emulated.kubelet.node import NodeSpec
from mews.kube.emulated.kubelet.simulated import SimulatedRuntime
from mews.kube.scheduling.config import SchedulerConfig
from mews.kube.scheduling.scheduler import Scheduler
from mews.kube.system.host_steps import HostSteps
from mews.kube.system.sysfs import SysfsConfirm
from mews.systems.kubecomp.config import ChassisConfig, KubeCompConfig, NodeConfig, Timing
from mews.systems.kubecomp.device_manager import ChassisDeviceManager
from mews.systems.kubecomp.metrics import KubeCompMemoryMetrics
from mews.systems.kubecomp.plugin import kubecomp_profile
from mews.systems.kubecomp.reconfig_manager import ReconfigManager
from mews.systems.kubecomp.records import pool_state

GPU = "falcon.com/gpu"
IMAGES = load_images()


def hardware(
    *counts: int,
    free: int = 0,
    chassis: int = 1,
    profile: Any = "instant",
    kind: str = "GPU",
    pools: Sequence[str] = ("pool-0",),
    host_profile: Any = "instant",
    uncabled: Collection[tuple[str, str]] = (),
) -> Hardware:
    """Host ``host-<i>`` on port i of every chassis of its pool, with so many devices of the pool's chassis in turn.

    With several pools hosts and chassis are dealt out to them in turn. ``free`` devices are on no port. ``uncabled``:
    pairs of chassis and host with no cable between them.
    """
    hosts = [f"host-{i + 1}" for i in range(len(counts))]
    boxes: list[dict[str, Any]] = []
    for index in range(chassis * len(pools)):
        pool = pools[index % len(pools)]
        name = "ABCDEFGH"[index]
        near = [i for i, host in enumerate(hosts) if pools[i % len(pools)] == pool and (name, host) not in uncabled]
        mine = {str(i + 1): hosts[i] for i in near}
        boxes.append({"name": name, "index": index, "pool": pool, "ports": mine, "devices": []})
    for i, count in enumerate([*counts, free]):
        own = [box for box in boxes if i == len(counts) or str(i + 1) in box["ports"]]
        for n in range(count):
            box = own[n % len(own)]
            slot = len(box["devices"])
            port = str(i + 1) if i < len(counts) else None
            uuid = f"GPU-{box['name']}{slot:02}"
            box["devices"].append({"id": f"{slot:04}00", "uuid": uuid, "kind": kind, "port": port})
    for box in boxes:
        box["slots"] = max(len(box["devices"]), 1)
    document = {
        "apiVersion": "mews/v1",
        "kind": "Hardware",
        "metadata": {"name": "test"},
        "profile": profile,
        "hosts": [{"name": host, "cpus": 192, "profile": host_profile} for host in hosts],
        "chassis": boxes,
    }
    return parse_hardware(document, "test")


def config_of(found: Hardware, **changes: Any) -> KubeCompConfig:
    """The configuration that fits a hardware file."""
    pool_of = {host: box.pool for box in found.chassis for host in box.ports.values() if host}
    nodes = tuple(
        NodeConfig(
            host.name,
            {box.name: port for box in found.chassis for port, name in box.ports.items() if name == host.name},
            pool_of[host.name],
        )
        for host in found.hosts
    )
    chassis = tuple(ChassisConfig(box.name, box.index, box.pool) for box in found.chassis)
    return replace(KubeCompConfig(chassis=chassis, nodes=nodes), **changes)


def virtual(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test in virtual time."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        run_virtual(lambda: test(*args, **kwargs))

    return run


class World:
    """Everything, made by ``world()``.

    ``happened`` are the chassis' (event, GPUID), ``records`` what the components logged.
    """

    def __init__(
        self,
        found: Hardware,
        config: KubeCompConfig,
        *,
        seed: int = 1,
        dialect: str = "h3api",
        hosted: bool = False,
        **scheduler: Any,
    ) -> None:
        self.hardware_spec = found
        self.config = config
        self.seed = seed
        self.dialect = dialect
        self.scheduler = scheduler
        self.clock = virtual_clock()
        self.store = fresh_store(self.clock.now, stream(seed, "store"))
        self.kube = InProcessKube(self.store)
        self.pace = Pace()
        self.happened: list[tuple[str, str]] = []
        self.records: list[tuple[float, str, str, Mapping[str, Any]]] = []
        self.metrics = KubeCompMemoryMetrics()
        self.host_events: list[tuple[float, str, str, Mapping[str, Any]]] = []
        self.hosts: LocalHosts | None = None
        self.cut_at: dict[tuple[str, str], str] = {}
        """(Host, event) -> the component that gets nothing out from that very event on."""
        if hosted:
            self.hosts = LocalHosts(found, pace=self.pace, seed=seed, listener=self._on_host_event)
            self.hosts.begin()
        self.fleet = LocalFleet(found, pace=self.pace, seed=seed, listener=self._on_event)
        self.hardware = LocalHardwareControl(self.fleet)
        self.machines = {host.name: self._machine(host.name) for host in found.hosts}
        self.incarnations: Counter[str] = Counter()
        self.running: dict[str, tuple[asyncio.Task[None], Fence]] = {}
        self.failures: list[BaseException] = []
        self.confirm: Any = None
        self.api_is_down = asyncio.Event()

    def _on_host_event(self, event: HostEvent) -> None:
        self.host_events.append((event.t, event.host, event.event, event.fields))
        if (event.host, event.event) in self.cut_at:
            self.running[self.cut_at.pop((event.host, event.event))][1].cut()

    def _on_event(self, event: ChassisEvent) -> None:
        if self.hosts is not None:
            self.hosts.on_event(event)
        fields = event.fields
        index = next(box.index for box in self.hardware_spec.chassis if box.name == event.chassis)
        gpuid = f"{index}-{fields.get('device', '')}"
        if event.event == "operation-begun" and fields["kind"] != "read":
            self.happened.append((f"{fields['kind']}-begun", gpuid))
        elif event.event == "table-changed":
            self.happened.append(("detached" if fields["new_port"] is None else "attached", gpuid))

    def _machine(self, host: str) -> Machine:
        rng = stream(self.seed, f"containerd/{host}")
        return Machine(
            spec=NodeSpec(host, cpus=192),
            containerd=Containerd(self.clock, rng, simulated=SimulatedRuntime(self.pace)),
            folder=LocalKubeletFolder(),
            checkpoint=MemoryCheckpoint(),
            images=IMAGES,
            pace=self.pace,
        )

    # Components

    def components(self) -> list[str]:
        hosts = sorted(self.machines)
        return [
            *(f"kubelet/{host}" for host in hosts),
            *(f"device-manager/{host}" for host in hosts),
            "reconfig-manager",
            "scheduler",
        ]

    def start(self, name: str) -> None:
        """Start a component that does not run, as a new incarnation."""
        assert name not in self.running, name
        self.incarnations[name] += 1
        fence = Fence()
        log = logging.getLogger(f"test.{name}.{self.incarnations[name]}")
        log.handlers = [_Collector(self, name)]
        log.setLevel(logging.INFO)
        log.propagate = False
        rng = stream(self.seed, f"{name}/{self.incarnations[name]}")
        context = Context(fence.around(_Flaky(self)), self.clock, rng, log)
        component = self._make(name, context, fence)
        task = asyncio.get_running_loop().create_task(component.run(), name=name)
        task.add_done_callback(self._ended)
        self.running[name] = (task, fence)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None and not isinstance(task.exception(), Fenced):
            error = task.exception()
            if not (isinstance(error, BaseExceptionGroup) and error.subgroup(Fenced)):
                self.failures.append(error)

    def _make(self, name: str, context: Context, fence: Fence) -> Runnable:
        kind, _, host = name.partition("/")
        if kind == "scheduler":
            profile = kubecomp_profile(self.config, metrics=self.metrics, **self.scheduler)
            return Scheduler(context, SchedulerConfig(profiles=(profile,)))
        if kind == "reconfig-manager":
            return ReconfigManager(context, self.config, self._chassis(fence), self.metrics)
        if kind == "kubelet":
            return self.machines[host].kubelet(context)
        folder: LocalKubeletFolder = self.machines[host].folder
        confirm, steps = self.confirm, None
        if self.hosts is not None:
            files = fence.around(self.hosts.tree(host))
            driver = fence.around(LocalDriver(self.hosts, host))
            confirm, steps = SysfsConfirm(files), HostSteps(files, driver, self.config.timing)
        return ChassisDeviceManager(
            context,
            self.config,
            host,
            chassis=self._chassis(fence),
            link=fence.around(folder.link()),
            pod_resources=fence.around(folder.pod_resources()),
            confirm=confirm,
            steps=steps,
        )

    def _chassis(self, fence: Fence) -> dict[str, Any]:
        return {
            box.name: fence.around(client_of(self.dialect, self.fleet.transport(box.name, self.dialect)))
            for box in self.hardware_spec.chassis
        }

    async def kill(self, name: str) -> None:
        """Kill -9."""
        task, fence = self.running.pop(name)
        fence.cut()
        if name.startswith("device-manager/"):
            self.machines[name.partition("/")[2]].folder.drop(self.config.plugin_socket)
        task.cancel()
        await asyncio.wait([task])

    async def restart(self, name: str) -> None:
        await self.kill(name)
        self.start(name)

    async def close(self) -> None:
        for name in reversed(list(self.running)):
            await self.kill(name)
        if self.hosts is not None:
            self.hosts.close()
        self.fleet.close()

    async def operate(self, host: str, **action: Any) -> None:
        """Let an operator, or a program, act on a host."""
        assert self.hosts is not None
        await self.hosts.operate(host, action)
        self.hosts.stirred()

    # Questions

    def on_host(self, host: str) -> list[str]:
        """The names of that host's events since the start, in order."""
        return [event for _, name, event, _ in self.host_events if name == host]

    def device_on(self, host: str, gpuid: str) -> dict[str, Any]:
        """A device as its host sees it now."""
        assert self.hosts is not None
        found: dict[str, Any] = self.hosts.hosts.host(host).view()["devices"][gpuid]
        return found

    async def pod(self, name: str) -> Object:
        return await self.kube.get(PODS, name, namespace="default")

    async def phase(self, name: str) -> str:
        return phase_of(await self.pod(name))

    async def node_of(self, name: str) -> str:
        return (await self.pod(name))["spec"].get("nodeName", "")

    async def annotations(self, name: str) -> Mapping[str, str]:
        return (await self.pod(name))["metadata"].get("annotations") or {}

    async def allocatable(self, host: str) -> int:
        node = await self.kube.get(NODES, host)
        return int((node["status"].get("allocatable") or {}).get(self.config.resource, 0))

    async def config_map(self, name: str) -> Object:
        return await self.kube.get(CONFIGMAPS, name, namespace=self.config.namespace)

    async def holders(self, host: str) -> dict[str, str]:
        """GPUID -> pod, as the kubelet says."""
        pods = await self.machines[host].folder.pod_resources().list()
        return {
            gpuid: pod.name
            for pod in pods
            for _, devices in pod.containers
            for entry in devices
            for gpuid in entry.device_ids
        }

    async def ports(self) -> dict[str, str | None]:
        """GPUID -> port, by the table itself."""
        table = await self.hardware.table()
        return {row["gpuid"]: row["port"] for rows in table.values() for row in rows.values()}

    async def counts(self) -> dict[str | None, int]:
        """Host (None: on no port) -> devices there, by the table itself."""
        table = await self.hardware.table()
        return dict(Counter(row["host"] for rows in table.values() for row in rows.values()))

    def moves(self) -> list[str]:
        """GPUIDs in the order in which they were attached."""
        return [gpuid for event, gpuid in self.happened if event == "attached"]

    def has(self, event: str) -> bool:
        """Whether that happened on a chassis: detach-begun, detached, attach-begun, attached."""
        return any(name == event for name, _ in self.happened)

    def said(self, event: str) -> list[Mapping[str, Any]]:
        """The fields of all records of that name, in order."""
        return [fields for _, _, name, fields in self.records if name == event]

    async def told(self, reason: str) -> list[str]:
        found = await self.kube.list(EVENTS)
        return [event["message"] for event in found.items if event["reason"] == reason]

    # Doings

    async def create(self, name: str, *gpus: int, scheduler: str = "", **changes: Any) -> Object:
        """A pod with one container a number of GPUs, running ``seconds`` (default: for ever)."""
        duration = str(changes.pop("seconds", "infinity"))
        metadata = {"name": name, "namespace": "default", "annotations": {"mews.dev/duration-s": duration}}
        metadata["annotations"] |= changes.pop("annotations", {})
        containers = [
            {
                "name": f"main-{i}",
                "image": "busybox",
                "command": ["sleep", duration],
                "resources": {"limits": {self.config.resource: str(n)}} if n else {},
            }
            for i, n in enumerate(gpus)
        ]
        spec = {
            "schedulerName": scheduler or self.config.scheduler_name,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": containers,
            **changes,
        }
        return await self.kube.create(PODS, {"metadata": metadata, "spec": spec}, namespace="default")

    async def post(self, name: str, data: Mapping[str, str]) -> None:
        """Create a ConfigMap among KubeComp's."""
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": dict(data)}
        await self.kube.create(CONFIGMAPS, body, namespace=self.config.namespace)

    async def until(self, holds: Callable[[], Any], what: str, timeout_s: float = 600.0) -> None:
        """Wait until the (async) condition holds, looking ten times a second."""
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    found = holds()
                    if await found if asyncio.iscoroutine(found) else found:
                        return
                    await asyncio.sleep(0.1)
        except TimeoutError:
            tail = "\n".join(f"{t:8.2f} {who} {event} {dict(fields)}" for t, who, event, fields in self.records[-60:])
            raise AssertionError(f"{what}: did not come within {timeout_s:g} s\n{tail}") from None

    async def runs(self, *names: str, timeout_s: float = 600.0) -> None:
        for name in names:
            await self.until(lambda name=name: self._is(name, "Running"), f"{name} Running", timeout_s)

    async def _is(self, name: str, phase: str) -> bool:
        return await self.phase(name) == phase

    async def said_soon(self, event: str, timeout_s: float = 600.0, **fields: Any) -> None:
        """Wait until a component has logged such a record."""

        def there() -> bool:
            return any(all(found.get(key) == value for key, value in fields.items()) for found in self.said(event))

        await self.until(there, f"record {event} {fields}", timeout_s)

    async def ready(self) -> None:
        """Wait until every node is Ready and shows its devices and every pool is published."""
        for host in self.machines:
            await self.until(lambda host=host: self._node_ready(host), f"{host} ready", 120)
            await self.kube.patch(NODES, host, {"spec": {"taints": None}})
        for pool in {box.pool for box in self.hardware_spec.chassis}:
            await self.until(lambda pool=pool: self._published(pool), f"{pool} published", 120)

    async def _node_ready(self, host: str) -> bool:
        nodes = (await self.kube.list(NODES)).items
        node = next((node for node in nodes if node["metadata"]["name"] == host), None)
        if node is None or (condition_of(node, "Ready") or {}).get("status") != "True":
            return False
        return await self.allocatable(host) == (await self.counts()).get(host, 0)

    async def _published(self, pool: str) -> bool:
        maps = await self.kube.list(CONFIGMAPS, namespace=self.config.namespace)
        return any(found["metadata"]["name"] == f"pool-{pool}" and pool_state(found) for found in maps.items)


class _Flaky:
    """The API as components see it: while it is down calls fail, and watches end, as over a broken connection."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._world.kube, name)
        return partial(self._stream if name == "watch" else self._call, method)

    async def _call(self, method: Any, *args: Any, **kwargs: Any) -> Any:
        if self._world.api_is_down.is_set():
            raise UnavailableError("connection refused")
        return await method(*args, **kwargs)

    async def _stream(self, method: Any, *args: Any, **kwargs: Any) -> Any:
        down = asyncio.ensure_future(self._world.api_is_down.wait())
        events = aiter(method(*args, **kwargs))
        try:
            while True:
                event = asyncio.ensure_future(anext(events, None))
                await asyncio.wait((event, down), return_when=asyncio.FIRST_COMPLETED)
                if down.done():
                    event.cancel()
                    raise UnavailableError("connection reset")
                if (found := event.result()) is None:
                    return
                yield found
        finally:
            down.cancel()


class _Collector(logging.Handler):
    def __init__(self, world: World, name: str) -> None:
        super().__init__()
        self._world = world
        self._name = name

    def emit(self, record: logging.LogRecord) -> None:
        event = getattr(record, "event", None) or record.getMessage()
        now_s = asyncio.get_running_loop().time()
        self._world.records.append((now_s, self._name, event, getattr(record, "fields", {})))


@asynccontextmanager
async def world(
    *counts: int,
    without: Sequence[str] = (),
    timing: Timing | None = None,
    config: Mapping[str, Any] | None = None,
    seed: int = 1,
    dialect: str = "h3api",
    scheduler: Mapping[str, Any] | None = None,
    confirm: Any = None,
    hosted: bool = False,
    **spec: Any,
) -> AsyncIterator[World]:
    """A cluster whose hosts have so many devices; ready unless ``without`` leaves components out. ``hosted``: the hosts
    are emulated too, and their device managers see and change their files."""
    found = hardware(*counts, **spec)
    changes: dict[str, Any] = {**(config or {})}
    if timing is not None:
        changes["timing"] = timing
    made = World(found, config_of(found, **changes), seed=seed, dialect=dialect, hosted=hosted, **(scheduler or {}))
    made.confirm = confirm
    try:
        for name in made.components():
            if name not in without:
                made.start(name)
        if not without:
            await made.ready()
        yield made
        assert made.failures == []
    finally:
        await made.close()
