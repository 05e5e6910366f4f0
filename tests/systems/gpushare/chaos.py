"""GPU Share under chance: a cluster in virtual time whose parts die, whose watches lag, and whose writes are refused,
lost, or arrive after their writer's death."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mews.emulator.inventory.reading import parse_hardware
from mews.harness.clock import run_virtual
from mews.harness.clusters.embedded.cluster import EmbeddedCluster
from mews.harness.clusters.embedded.in_process import in_process_ports
from mews.harness.options import RunOptions
from mews.harness.run_context import begin_run
from mews.harness.scenario.loader import parse_scenario
from mews.kube.api.errors import NotFoundError, ServerError, UnavailableError
from mews.kube.api.objects import Object, annotations_of, is_terminal, key_of, node_name_of, phase_of, uid_of
from mews.kube.api.resources import CONFIGMAPS, NODES, PODS
from mews.kube.client.port import DeleteOptions, KubeApi, WatchEvent
from mews.kube.clock import rest
from mews.kube.deviceplugin.port import PluginError
from mews.kube.emulated.ports.kubelets import Kubelets
from mews.kube.system.invariant import Breach, ClusterObjects
from mews.kube.system.journal import Line
from mews.systems.gpushare import names
from mews.systems.gpushare.invariants import MemoryAsked
from mews.systems.gpushare.ledger import uses_of
from mews.systems.gpushare.policy import best_fit, free_memory, used_memory
from mews.systems.gpushare.records import assumption, node_gpus, requested

UNITS = 8
Operation = tuple[str, int, int]
"""What is done, and two numbers that say to whom."""
OPERATIONS = (
    "create", "create", "create-two", "create-equal", "finishing", "pinned", "delete", "kill", "start", "kubelet",
    "refuse", "lose", "blind", "lag", "stall", "xid", "heal", "answering", "rest",
)  # fmt: skip
PARTS = (
    "gpushare-extender",
    "gpushare-extender-2",
    "gpushare-device-plugin/a",
    "gpushare-device-plugin/b",
    "default-scheduler",
)
PAUSES_S = (0.0, 0.05, 0.5, 3.0)
LOOKS_S = 0.2
"""How often somebody asks the kubelets which pods hold devices."""
BOUND_S = 480.0
"""After all trouble: what fits runs by then. kube-scheduler looks at what it put aside after five minutes."""
SCENARIO = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: chaos}
hardware: demo
stack: {kubecomp: null, gpushare: {unit: GiB, replicas: 2, pollS: 2}, kubelet: {faults: FAULTS}}
"""


def hardware(*, unequal: bool = False) -> Any:
    """Two hosts with two GPUs of eight units each; ``unequal``: one of them with ten and six."""
    sizes = {"a": (UNITS, UNITS), "b": (UNITS + 2, UNITS - 2) if unequal else (UNITS, UNITS)}
    hosts = [
        {
            "name": host,
            "devices": [
                {
                    "id": f"{host}{n}",
                    "uuid": f"GPU-{host}{n}",
                    "model": "V100-16GB",
                    "memory_mib": sizes[host][n] * 1024,
                }
                for n in range(2)
            ],
        }
        for host in "ab"
    ]
    chassis = [{"name": "A", "ports": {"1": None}, "devices": []}]
    document = {"apiVersion": "mews/v1", "kind": "Hardware", "metadata": {"name": "chaos"}, "hosts": hosts}
    return parse_hardware({**document, "chassis": chassis}, "chaos")


@dataclass(slots=True)
class Trouble:
    """What goes wrong next with the API as the components of GPU Share see it."""

    refusals: int = 0
    losses: int = 0
    blind: int = 0
    lag_s: float = 0.0
    stall_s: float = 0.0


class TroubledKube:
    """A KubeApi whose writes may be refused, or done and not answered, or done late, even after the death of whoever
    made them; whose reads may fail; and whose watches may lag."""

    def __init__(self, kube: KubeApi, trouble: Trouble, rng: random.Random) -> None:
        self._kube = kube
        self._trouble = trouble
        self._rng = rng

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._kube, name)
        if name in ("create", "replace", "patch", "bind"):
            return lambda *given, **options: self._written(lambda: method(*given, **options))
        if name in ("get", "list"):
            return lambda *given, **options: self._read(lambda: method(*given, **options))
        return method

    async def _written(self, write: Callable[[], Any]) -> Any:
        if self._trouble.refusals:
            self._trouble.refusals -= 1
            raise ServerError("refused by chance")

        async def late() -> Any:
            await asyncio.sleep(self._rng.random() * (self._trouble.stall_s or 0.02))
            return await write()

        # Who is killed has sent its request all the same: it is not taken back.
        sent = asyncio.ensure_future(late())
        sent.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        answer = await asyncio.shield(sent)
        if self._trouble.losses:
            self._trouble.losses -= 1
            raise UnavailableError("the answer is lost")
        return answer

    async def _read(self, read: Callable[[], Any]) -> Any:
        if self._trouble.blind:
            self._trouble.blind -= 1
            raise UnavailableError("no answer by chance")
        return await read()

    async def watch(self, *arguments: Any, **options: Any) -> AsyncIterator[WatchEvent]:
        """The same events, later."""
        async for event in self._kube.watch(*arguments, **options):
            if self._trouble.lag_s:
                await asyncio.sleep(self._trouble.lag_s * self._rng.random())
            yield event


def drawn(seed: int) -> list[Operation]:
    """The operations of that number."""
    rng = random.Random(seed)
    return [(rng.choice(OPERATIONS), rng.randrange(12), rng.randrange(12)) for _ in range(rng.randrange(5, 25))]


class Holders:
    """Who holds which device IDs, as the kubelets' journal has it. ``twice``: those given while they were held."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], dict[tuple[str, str], frozenset[str]]] = {}
        self.twice: list[str] = []

    def on_line(self, line: Line) -> None:
        """One more line."""
        uid = str(line.fields.get("uid"))
        if line.event in ("pod-ended", "rejected", "deleted") or line.fields.get("phase") in ("Succeeded", "Failed"):
            for held in self._held.values():
                for holder in [each for each in held if each[0] == uid]:
                    del held[holder]
        elif line.event == "allocated" and line.layer == "kubelet":
            self._given(line, uid)

    def _given(self, line: Line, uid: str) -> None:
        held = self._held.setdefault((line.actor, line.fields["resource"]), {})
        devices = frozenset(line.fields["devices"])
        both = sorted(device for ids in held.values() for device in ids & devices)
        if both:
            self.twice.append(f"{line.actor} gave {both[0]} to {line.fields['pod']}, which another container held")
        held[uid, str(line.fields["container"])] = devices


def play(operations: Sequence[Operation], seed: int = 1, *, faults: Sequence[str] = ()) -> list[str]:
    """Do all of it, let things come to rest, and say what was wrong at any moment. ``faults``: of the kubelets."""
    return run_virtual(lambda: _play(operations, seed, faults))


async def _play(operations: Sequence[Operation], seed: int, faults: Sequence[str]) -> list[str]:
    chaos = ChaosCluster(seed, faults)
    await chaos.open()
    try:
        for operation in operations:
            await chaos.do(*operation)
        await chaos.recover()
        return chaos.wrong + chaos.holders.twice
    finally:
        await chaos.close()


class ChaosCluster:
    """One cluster in trouble. ``wrong``: all that ever was, judged at each line of the journal and each write of a
    pod."""

    def __init__(self, seed: int, faults: Sequence[str] = ()) -> None:
        self.holders = Holders()
        run = begin_run(RunOptions(), seed=seed, dialect="h3api")
        self._rng = run.rng("trouble")
        self._trouble = Trouble()
        built, kubelets = hardware(unequal=seed % 2 == 1), Kubelets()
        ports = in_process_ports(built, run, kubelets)
        plain = ports.kube

        def kube(actor: str) -> KubeApi:
            mine: Any = plain(actor)
            if actor.startswith("gpushare"):
                return TroubledKube(mine, self._trouble, self._rng)  # type: ignore[return-value]
            return mine  # type: ignore[no-any-return]

        self._cluster = EmbeddedCluster(
            parse_scenario(SCENARIO.replace("FAULTS", f"[{', '.join(faults)}]"), Path("chaos.yaml")), built,
            name="embedded", run=run, ports=replace(ports, kube=kube), kubelets=kubelets,
        )  # fmt: skip
        self._invariant = MemoryAsked()
        self._pods: dict[str, Object] = {}
        self._without: set[str] = set()
        self._made = 0
        self._dying = 0
        self._deaths: set[asyncio.Task[None]] = set()
        self._judging: asyncio.Future[Any] | None = None
        self.wrong: list[str] = []

    async def open(self) -> None:
        """Until both nodes announce their memory."""
        await self._cluster.open()
        self._cluster.journal.listen(self._line)
        self._judging = asyncio.gather(self._judge_pods(), self._monitor())
        async with asyncio.timeout(60.0):
            await asyncio.sleep(1.0)
            while await self._unrest():  # noqa: ASYNC110 -- of virtual time
                await asyncio.sleep(1.0)

    async def close(self) -> None:
        """End all of it."""
        if self._judging is not None:
            self._judging.cancel()
            await asyncio.gather(self._judging, return_exceptions=True)
        await self._cluster.close()

    # Judging

    def _line(self, line: Line) -> None:
        self.holders.on_line(line)
        if line.layer == "kubelet" and line.event == "allocated" and self._dying:
            self._dying -= 1
            self._dies(f"gpushare-device-plugin/{line.actor.partition('/')[2]}")
        if line.event == "container-started" and line.fields.get("env", {}).get(names.INDEX) == "-1":
            self._without.add(str(line.fields["uid"]))
        self._note(self._invariant.on_line(line, None))  # type: ignore[arg-type]

    async def _monitor(self) -> None:
        """Ask the kubelets who holds what, as exporters of metrics do; that makes them collect ended pods' devices."""
        while True:
            await rest(LOOKS_S)
            for host in "ab":
                with contextlib.suppress(PluginError, UnavailableError, LookupError):
                    await self._cluster.pod_resources(host)

    async def _judge_pods(self) -> None:
        listed = await self._cluster.kube.list(PODS)
        async for event in self._cluster.kube.watch(PODS, resource_version=listed.resource_version):
            if event.type == "DELETED":
                self._pods.pop(key_of(event.object), None)
            elif event.type in ("ADDED", "MODIFIED"):
                self._pods[key_of(event.object)] = event.object
            objects = ClusterObjects({}, self._pods, 0.0)
            self._note(self._invariant.on_objects(0.0, objects, None))  # type: ignore[arg-type]

    def _note(self, found: Iterable[Breach]) -> None:
        self.wrong += [breach.what for breach in found if breach.what not in self.wrong]

    def _dies(self, plugin: str) -> None:
        """A plugin has answered an Allocate, and dies before it has looked."""
        death = asyncio.create_task(self._death(plugin))
        self._deaths.add(death)
        death.add_done_callback(self._deaths.discard)

    async def _death(self, plugin: str) -> None:
        await self._cluster.kill(plugin)
        await self._cluster.start(plugin)

    # Operations

    async def do(self, what: str, first: int, second: int) -> None:
        """One operation, and a pause by chance."""
        await self._do(what, first, second)
        await asyncio.sleep(self._rng.choice(PAUSES_S))

    # Complex: one branch for each drawn act.
    async def _do(self, what: str, first: int, second: int) -> None:  # noqa: C901
        match what:
            case "create":
                await self._create([1 + first % UNITS])
            case "create-two":
                await self._create([1 + first % 3, 1 + second % 3])
            case "create-equal":
                for _ in range(2 + second % 3):
                    await self._create([1 + first % 4])
            case "finishing":
                await self._create([1 + first % UNITS], lasts_s=1 + second % 5)
            case "pinned":
                amounts = [1 + first % UNITS] if second < 8 else [1 + first % 3, 1 + second % 3]
                await self._create(amounts, node="ab"[second % 2])
            case "delete":
                await self._delete(first)
            case "kill":
                await self._cluster.kill(PARTS[first % len(PARTS)])
            case "start":
                await self._cluster.start(PARTS[first % len(PARTS)])
            case "kubelet":
                await self._cluster.kill(f"kubelet/{'ab'[first % 2]}")
                await asyncio.sleep(second % 3)
                await self._cluster.start(f"kubelet/{'ab'[first % 2]}")
            case "refuse":
                self._trouble.refusals = 1 + first % 3
            case "lose":
                self._trouble.losses = 1 + first % 2
            case "blind":
                self._trouble.blind = 1 + first % 3
            case "lag":
                self._trouble.lag_s = (0.0, 0.5, 5.0)[first % 3]
            case "stall":
                self._trouble.stall_s = (0.0, 0.5, 4.0)[first % 3]
            case "xid":
                host = "ab"[first % 2]
                await self._cluster.hardware.host_fault(
                    host, {"kind": "xid", "device": f"{host}{second % 2}", "xid": 48}
                )
            case "heal":
                await self._heal("ab"[first % 2])
            case "answering":
                self._dying = 1 + first % 3

    async def _create(self, amounts: Sequence[int], *, node: str = "", lasts_s: int = 0) -> None:
        self._made += 1
        image = "mews/train" if lasts_s else "mews/gpu-hold"
        containers = [
            {"name": f"c{n}", "image": image, "resources": {"limits": {names.MEMORY_RESOURCE: str(amount)}}}
            for n, amount in enumerate(amounts)
        ]
        spec: dict[str, Any] = {"containers": containers, "terminationGracePeriodSeconds": 1}
        metadata: dict[str, Any] = {"name": f"p{self._made}", "namespace": "default"}
        if lasts_s:
            spec["restartPolicy"] = "Never"
            metadata["annotations"] = {"mews.dev/duration-s": str(lasts_s)}
        if node:
            spec["nodeName"] = node
        await self._cluster.kube.create(PODS, {"metadata": metadata, "spec": spec}, namespace="default")

    async def _delete(self, which: int) -> None:
        pods = (await self._cluster.kube.list(PODS)).items
        if pods:
            try:
                name = pods[which % len(pods)]["metadata"]["name"]
                await self._cluster.kube.delete(PODS, name, namespace="default", options=DeleteOptions())
            except NotFoundError:
                return

    async def _heal(self, host: str) -> None:
        try:
            name, body = f"{names.UNHEALTHY_PREFIX}{host}", {"data": {"gpus": ""}}
            await self._cluster.kube.patch(CONFIGMAPS, name, body, namespace="kube-system")
        except NotFoundError:
            return

    # The end

    async def recover(self) -> None:
        """All trouble ends; what fits must then run, in a bounded time."""
        over = Trouble()
        for field in Trouble.__dataclass_fields__:
            setattr(self._trouble, field, getattr(over, field))
        for part in (*PARTS, "kubelet/a", "kubelet/b"):
            await self._cluster.start(part)
        await asyncio.sleep(12.0)
        for host in "ab":
            await self._heal(host)
        calm = 0
        for _ in range(int(BOUND_S / 10.0)):
            unrest = await self._unrest()
            calm = 0 if unrest else calm + 1
            if calm == 2:  # a pod may only just have been bound to what another has left
                break
            await asyncio.sleep(10.0)
        self.wrong += [f"crashed: {crash}" for crash in self._cluster.crashes()]
        self.wrong += unrest

    async def _unrest(self) -> list[str]:
        """What should not stay as it is."""
        pods = (await self._cluster.kube.list(PODS)).items
        nodes = (await self._cluster.kube.list(NODES)).items
        found = [
            f"{node['metadata']['name']} announces {_allocatable(node)}"
            for node in nodes
            if _allocatable(node) != str(2 * UNITS)
        ]
        for pod in pods:
            if phase_of(pod) == "Pending" and not node_name_of(pod):
                found += [f"{key_of(pod)} is stuck though it fits {where}" for where in _room(pod, nodes, pods)]
            elif phase_of(pod) == "Pending" and not is_terminal(pod):
                found.append(f"{key_of(pod)} is bound to {node_name_of(pod)} and does not start")
            decision = assumption(pod)
            unassigned = decision is None or not decision.assigned
            if phase_of(pod) == "Running" and unassigned and uid_of(pod) not in self._without:
                found.append(f"{key_of(pod)} runs and was never assigned: {dict(annotations_of(pod))}")
        return found


def _allocatable(node: Object) -> str:
    return str(node["status"].get("allocatable", {}).get(names.MEMORY_RESOURCE))


def _room(pod: Object, nodes: Sequence[Object], pods: Sequence[Object]) -> list[str]:
    """The nodes on which it fits."""
    amount, found = requested(pod, names.MEMORY_RESOURCE), []
    for node in nodes:
        here = [other for other in pods if node_name_of(other) == node["metadata"]["name"]]
        live = [other for other in here if not is_terminal(other)]
        gpus = node_gpus(node, names.MEMORY_RESOURCE, names.COUNT_RESOURCE)
        free = free_memory(gpus, used_memory(gpus, uses_of(live, {})))
        asked = sum(requested(other, names.MEMORY_RESOURCE) for other in live)
        if best_fit(amount, gpus, free) is not None and asked + amount <= sum(gpu.memory for gpu in gpus):
            found.append(str(node["metadata"]["name"]))
    return found
