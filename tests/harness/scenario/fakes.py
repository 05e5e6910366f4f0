"""A small cluster of dictionaries: enough of the Cluster protocol to run scenarios on, with pods that do as told."""

import asyncio
import copy
import itertools
import random
from contextlib import suppress

from mews.emulator.inventory_file import load_hardware
from mews.harness.catalogue.files import shipped
from mews.harness.chassis_feed import ChassisFeed
from mews.harness.clock import EPOCH_S, VirtualLoop
from mews.harness.journal import Journal
from mews.harness.ports.chassis import LocalFleet
from mews.harness.ports.hardware_control import LocalHardwareControl
from mews.kube.api.errors import AlreadyExistsError, NotFoundError, TooManyRequestsError
from mews.kube.api.objects import timestamp
from mews.kube.api.resources import NODES, PODS
from mews.kube.client.port import EventType, ExecResult, ObjectList, WatchEvent
from mews.kube.clock import Clock, Pace


class FakeKube:
    """Objects by resource and key; watches are queues."""

    def __init__(self):
        self.objects = {}
        self.watches = []
        self.logs = {}
        self.version = itertools.count(1)
        self.rng = random.Random(0)

    def _key(self, resource, namespace, name):
        return (resource, namespace if resource.namespaced else None, name)

    def _notify(self, kind, resource, obj):
        for wanted, queue in self.watches:
            if wanted == resource:
                queue.put_nowait(WatchEvent(kind, obj))

    def _store(self, kind, resource, obj):
        obj = copy.deepcopy(obj)
        obj["metadata"]["resourceVersion"] = str(next(self.version))
        obj["metadata"].setdefault("creationTimestamp", timestamp(EPOCH_S + asyncio.get_running_loop().time()))
        obj["metadata"].setdefault("uid", f"{self.rng.getrandbits(64):016x}")
        self.objects[self._key(resource, obj["metadata"].get("namespace"), obj["metadata"]["name"])] = obj
        self._notify(kind, resource, obj)
        return obj

    async def get(self, resource, name, *, namespace=None, subresource=None):
        try:
            return self.objects[self._key(resource, namespace, name)]
        except KeyError:
            raise NotFoundError(f'{resource.plural} "{name}" not found') from None

    async def list(self, resource, *, namespace=None, label_selector="", **_):
        items = [o for (r, ns, _), o in self.objects.items() if r == resource and namespace in (None, ns)]
        if label_selector:
            name, _, value = label_selector.partition("=")
            items = [o for o in items if (o["metadata"].get("labels") or {}).get(name) == value]
        return ObjectList(sorted(items, key=lambda o: o["metadata"]["name"]), str(next(self.version)))

    async def watch(self, resource, **_):
        queue = asyncio.Queue()
        self.watches.append((resource, queue))
        while True:
            yield await queue.get()

    async def create(self, resource, obj, *, namespace=None, field_manager=""):
        if self._key(resource, namespace, obj["metadata"]["name"]) in self.objects:
            raise AlreadyExistsError(f'{resource.plural} "{obj["metadata"]["name"]}" already exists')
        return self._store(EventType.ADDED, resource, obj)

    async def patch(self, resource, name, body, *, namespace=None, **_):
        return self._store(
            EventType.MODIFIED, resource, _merged(await self.get(resource, name, namespace=namespace), body)
        )

    async def delete(self, resource, name, *, namespace=None, options=None):
        obj = await self.get(resource, name, namespace=namespace)
        del self.objects[self._key(resource, namespace, name)]
        metadata = {**obj["metadata"], "resourceVersion": str(next(self.version))}
        self._notify(EventType.DELETED, resource, {**obj, "metadata": metadata})
        return obj

    async def evict(self, namespace, pod, *, options=None):
        if "budget" in ((await self.get(PODS, pod, namespace=namespace))["metadata"].get("labels") or {}):
            raise TooManyRequestsError("Cannot evict pod as it would violate the pod's disruption budget.")
        await self.delete(PODS, pod, namespace=namespace, options=options)

    async def log(self, namespace, pod, *, container=None, **_):
        yield self.logs.get((pod, container), self.logs.get((pod, None), "")).encode()

    async def exec(self, namespace, pod, command, *, container=None):
        return ExecResult(0, " ".join(command).encode())

    async def discovery(self):
        return [NODES, PODS]


def _merged(base, patch):
    if not isinstance(patch, dict):
        return patch
    base = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            base.pop(key, None)
        else:
            base[key] = _merged(base.get(key), value)
    return base


class FakeCluster:
    """Pods run at once on host-1 unless ``obey`` says otherwise; a pod's ``mews.dev/duration-s`` ends it."""

    name = "embedded"
    dialect = "h3api"
    systems = ()

    def __init__(self, time="virtual"):
        loop = asyncio.get_running_loop()
        start = loop.time()
        self.time = time
        self.kube = FakeKube()
        self.pace = self.kubelet_pace = Pace()
        self.parts_are_ours = True
        self.clock = Clock(EPOCH_S)
        self.journal = Journal(lambda: loop.time() - start)
        self.records = Journal(lambda: loop.time() - start)
        hardware = load_hardware(shipped("hardware", "demo"))
        feed = ChassisFeed(self.journal, hardware.chassis[0])
        feed.begin()
        self.fleet = LocalFleet(
            hardware,
            pace=self.pace,
            seed=1,
            listener=lambda event: feed.on_event(event.number, event.event, event.fields),
        )
        self.hardware = LocalHardwareControl(self.fleet)
        self.api_faults = None
        self.resources = {}
        self.cuts = []
        self.lives = {"scheduler": [], "kubelet/host-1": []}
        self.missing = {}
        self._tasks = []

    async def artefacts(self):
        return {}

    async def open(self, obey=None):
        for host in ("host-1", "host-2", "host-3"):
            status = {
                "capacity": {"cpu": "192"},
                "allocatable": {"falcon.com/gpu": "4"},
                "conditions": [{"type": "Ready", "status": "True"}],
            }
            await self.kube.create(NODES, {"metadata": {"name": host}, "status": status})
        self._tasks.append(asyncio.create_task(self._obey(obey or self.run_pod)))
        await asyncio.sleep(0)
        return self

    async def _obey(self, obey):
        async for event in self.kube.watch(PODS):
            if event.type is EventType.ADDED:
                self._tasks.append(asyncio.create_task(obey(event.object)))

    def move(self, device, port):
        """Detach, and attach where a port is given, at once."""
        box, now_s = self.fleet.fleet.box("A"), self.pace.now()
        box.finish(box.begin_detach(device, now_s), now_s)
        if port is not None:
            box.finish(box.begin_attach(device, port, now_s), now_s)

    async def set_pod(self, pod, *, node=None, **status):
        name = pod["metadata"]["name"]
        body = {"status": status, **({"spec": {"nodeName": node}} if node else {})}
        with suppress(NotFoundError):
            await self.kube.patch(PODS, name, body, namespace="default")
            self.journal.write("api", f"pod/default/{name}", "phase", phase=status.get("phase"))

    async def run_pod(self, pod):
        started = timestamp(self.clock.now())
        await self.set_pod(pod, node="host-1", phase="Running", startTime=started)
        lasts = (pod["metadata"].get("annotations") or {}).get("mews.dev/duration-s")
        if lasts:
            await asyncio.sleep(float(lasts))
            await self.set_pod(pod, phase="Succeeded")

    def metrics(self):
        return {"phase_seconds": {"reallocation": 1.5}}

    def lacks(self, requirement):
        return self.missing.get(requirement)

    def node_of(self, host):
        return host

    def components(self):
        return tuple(self.lives)

    def cut(self, component):
        self.cuts.append((component, len(self.journal)))

    async def kill(self, component):
        self.lives[component].append("killed")

    async def start(self, component):
        self.lives[component].append("started")

    async def pod_resources(self, host):
        return self.resources.get(host, ())

    def stalled(self, since_line):
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        return len(self.journal) <= since_line and loop.idle_until() is not None

    async def close(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.fleet.close()
