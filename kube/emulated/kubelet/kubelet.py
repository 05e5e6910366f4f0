"""The emulated kubelet: its node, its pods, over KubeApi only (contract kubelet.md)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import Any

from mews.kube.api.objects import (
    Object,
    annotations_of,
    is_deleting,
    is_terminal,
    key_of,
    name_of,
    namespace_of,
    uid_of,
)
from mews.kube.api.pod_requests import request_of
from mews.kube.api.resources import PODS
from mews.kube.client.informer import Informer
from mews.kube.clock import Pace
from mews.kube.component import Context
from mews.kube.emulated.kubelet.container_hooks import ContainerHooks
from mews.kube.emulated.kubelet.containerd import Containerd
from mews.kube.emulated.kubelet.devices import AdmissionRejectedError, extended_resources
from mews.kube.emulated.kubelet.dra.manager import DraManager
from mews.kube.emulated.kubelet.dra.no_drivers import NoDrivers
from mews.kube.emulated.kubelet.dra.port import Claims
from mews.kube.emulated.kubelet.dra.state_store import MemoryDraState
from mews.kube.emulated.kubelet.fit import check_machine, resize_refused
from mews.kube.emulated.kubelet.images import ImageBook
from mews.kube.emulated.kubelet.kubelet_journal import KubeletJournal, silent
from mews.kube.emulated.kubelet.node import NodeSpec
from mews.kube.emulated.kubelet.node_agent import NodeAgent
from mews.kube.emulated.kubelet.pod_worker import PodWorker
from mews.kube.emulated.kubelet.podstate import ResizeVerdict
from mews.kube.emulated.kubelet.podstatus import rejected_status
from mews.kube.emulated.kubelet.status import StatusManager
from mews.kube.emulated.kubelet.timings import MEASURED, Timings
from mews.kube.emulated.kubelet.tools import Devices, Tools
from mews.kube.events import EventRecorder, pod_reference
from mews.kube.system.profile import Delay, NodeState, Overhead

OpenSockets = Callable[[], Awaitable[None]]
"""Makes the kubelet's sockets anew and starts to answer on them."""


_MIRROR = "kubernetes.io/config.mirror"
_PATIENCE_S = 1.0
"""Plugins come back after the first status, which shows none of their devices (contract section 2); an API server that
does not answer does not keep them out for longer than this."""


async def no_sockets() -> None:
    """A kubelet that no plugin can reach."""


class Kubelet:
    """One start of a node's kubelet. A dead one leaves ``containerd`` running; the next one adopts it.

    ``dra``: None where no driver of dynamic resource allocation can reach it. ``overhead`` is asked once per pod for
    what its testbed takes longer; ``note`` writes lines of layer kubelet; ``hooks`` is asked about each container
    before it is created; ``booting_for_s`` of its boot are over.
    """

    def __init__(
        self,
        context: Context,
        spec: NodeSpec,
        devices: Devices,
        containerd: Containerd,
        pace: Pace,
        *,
        images: ImageBook,
        dra: Claims | None = None,
        overhead: Overhead | None = None,
        note: KubeletJournal = silent,
        timings: Timings = MEASURED,
        open_sockets: OpenSockets = no_sockets,
        hooks: ContainerHooks | None = None,
        booting_for_s: float = 0.0,
    ) -> None:
        self.spec = spec
        self._context = context
        self._containerd = containerd
        self._devices = devices
        self._dra = dra or DraManager(
            context, pace, NoDrivers(), MemoryDraState(), node=spec.name, active_pods=self.active_pods, note=note
        )
        self._model = overhead
        self._open_sockets = open_sockets
        self._booting_for_s = booting_for_s
        self._status = StatusManager(context)
        self._events = EventRecorder(context, "kubelet", spec.name)
        self._tools = Tools(
            context=context, node=spec.name, host_ip=spec.address, pace=pace, timings=timings, images=images,
            devices=devices, dra=self._dra, containerd=containerd, status=self._status, events=self._events, note=note,
            overhead=self._overhead, relist_phase_s=context.rng.random() * timings.relist_s,
            began=context.clock.now(), allocatable=self.allocatable, hooks=hooks,
        )  # fmt: skip
        self._agent = NodeAgent(self._tools, spec)
        self._pods = Informer(context.kube, PODS, field_selector=f"spec.nodeName={spec.name}", lean=True)
        self._workers: dict[str, PodWorker] = {}
        self._rejected: set[str] = set()
        self._taken_up: set[str] = set()
        self._changes: deque[tuple[Object | None, Object | None]] = deque()
        self._changed = asyncio.Event()
        self._tasks: asyncio.TaskGroup | None = None
        self._looks = False

    async def run(self) -> None:
        """Boot, register, and look after the node and its pods until cancelled."""
        unlisten = self._containerd.listen(self._container_changed)
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                tasks.create_task(self._events.run())
                tasks.create_task(self._status.run())
                await asyncio.sleep(max(0.0, self._tools.span_s(self._tools.timings.boot) - self._booting_for_s))
                registered = tasks.create_task(self._agent.register())
                await asyncio.wait((registered,), timeout=self._tools.pace.loop_s(_PATIENCE_S))
                await self._open_sockets()
                tasks.create_task(self._dra.run())
                await registered
                tasks.create_task(self._agent.run())
                self._pods.on_change(self._pod_changed)
                tasks.create_task(self._pods.run())
                await self._pods.synced()
                self._settle_in()
                await self._sync_loop()
        finally:
            unlisten()

    # What others ask of a kubelet.

    def active_pods(self) -> tuple[Object, ...]:
        """Pods that may hold devices: taken up by the loop (one whose admission hangs is, those behind it are not), not
        rejected, not at their end. {} until the first list."""
        return tuple(self._active())

    def known_pod(self, namespace: str, name: str) -> Object | None:
        """Return any pod of this node, ended and rejected ones too."""
        return self._pods.get(name, namespace)

    def allocatable(self) -> Mapping[str, Any]:
        """``status.allocatable`` of the Node as last seen."""
        return self._agent.allocatable()

    def health_changed(self, uids: Collection[str]) -> None:
        """The health of devices of these pods is another now."""
        for uid in uids:
            if uid in self._workers:
                self._workers[uid].health_changed()

    def _active(self) -> Iterator[Object]:
        if not self._looks:
            return
        for pod in self._pods.items():
            if is_terminal(pod) or is_mirror(pod):
                continue
            uid = uid_of(pod)
            if uid not in self._taken_up or uid in self._rejected:
                continue
            worker = self._workers.get(uid)
            if not (worker and worker.ended):
                yield pod

    # Changes: one at a time, in order, so that an Allocate that hangs holds up all that come later.

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        self._changes.append((old, new))
        self._changed.set()

    def _settle_in(self) -> None:
        """The first list is there: oldest pods first; what runs without a pod in the API is an orphan."""
        self._looks = True
        first = sorted(self._changes, key=lambda change: _age(change[1]))
        self._changes = deque(first)
        known = {uid_of(pod) for pod in self._pods.items()}
        self._taken_up |= known  # their devices are theirs before the first of them is admitted again
        for sandbox in self._containerd.sandboxes():
            if uid_of(sandbox.pod) not in known:
                worker = self._live(sandbox.pod)
                worker.ended = not sandbox.ready
                worker.removed()

    async def _sync_loop(self) -> None:
        while True:
            while self._changes:
                old, new = self._changes.popleft()
                if old is None and new is not None:
                    await self._added(new)
                elif new is not None:
                    self._updated(new)
                elif old is not None:
                    self._removed(uid_of(old))
            self._changed.clear()
            await self._changed.wait()

    async def _added(self, pod: Object) -> None:
        self._taken_up.add(uid_of(pod))
        current = self._pods.get(name_of(pod), namespace_of(pod))
        if current is None or uid_of(current) != uid_of(pod):
            return
        if is_mirror(current):
            self._drop_mirror(current)
            return
        if not is_deleting(current) and not is_terminal(current):
            sandbox = self._containerd.sandbox(uid_of(pod))
            starts = sandbox.instances if sandbox else {}
            running = [name for name in starts if starts[name] and starts[name][-1].running]
            if set(extended_resources(current)) - self._devices.node_resources().keys():
                # What no plugin has announced somebody patches onto the node: a kubelet hears of that by its watch.
                await self._agent.look_again()
            try:
                await self._devices.admit(current, running=running)
                if sandbox is None:
                    await self._check_machine(current)
            except AdmissionRejectedError as rejection:
                self._reject(current, rejection)
                return
        self._live(current)

    async def _check_machine(self, pod: Object) -> None:
        """By the Node as seen last; before that refuses a pod, the Node is read anew.

        Raises AdmissionRejectedError.
        """
        try:
            check_machine(pod, self._admitted(), self._agent.node())
        except AdmissionRejectedError:
            await self._agent.look_again()
            check_machine(pod, self._admitted(), self._agent.node())

    def _admitted(self) -> Iterator[Object]:
        return (worker.given() for worker in self._workers.values() if not worker.ended)

    def _refuses(self, pod: Object) -> ResizeVerdict | None:
        return resize_refused(pod, self._admitted(), self._agent.node())

    def _reject(self, pod: Object, rejection: AdmissionRejectedError) -> None:
        self._rejected.add(uid_of(pod))
        self._events.event(pod_reference(pod), "Warning", rejection.reason, rejection.event_message)
        now, before = self._context.clock.now(), self._status.known(pod)
        status = rejected_status(pod, rejection.reason, rejection.message, now=now, before=before)
        self._status.publish(pod, status)
        fields = {"reason": rejection.reason, "message": rejection.message}
        self._tools.note("rejected", pod=key_of(pod), uid=uid_of(pod), **fields)

    def _updated(self, pod: Object) -> None:
        worker = self._workers.get(uid_of(pod))
        if worker is not None:
            worker.update(pod)
            self._status.reconcile(pod)
        elif is_deleting(pod) and uid_of(pod) in self._rejected:
            self._live(pod)

    def _drop_mirror(self, pod: Object) -> None:
        """No file of this node stands behind a mirror pod: housekeeping takes it off the API (deleteOrphanedMirrorPods
        of pkg/kubelet/kubelet_pods.go)."""
        assert self._tasks is not None
        self._tasks.create_task(self._status.delete(pod))

    def _removed(self, uid: str) -> None:
        self._taken_up.discard(uid)
        worker = self._workers.get(uid)
        if worker is not None:
            worker.removed()
            return
        self._rejected.discard(uid)
        self._status.forget(uid)
        self._containerd.remove(uid)

    def _live(self, pod: Object) -> PodWorker:
        assert self._tasks is not None
        worker = PodWorker(self._tools, pod, self._tasks.create_task, self._refuses)
        worker.ended = self._is_finished(pod)
        self._workers[worker.uid] = worker
        self._tasks.create_task(self._work(worker))
        return worker

    def _is_finished(self, pod: Object) -> bool:
        """Return whether a pod ended before this kubelet saw it, or never began: all that is left is to take it off the
        API once it is deleted (UpdatePod of pkg/kubelet/pod_workers.go)."""
        if uid_of(pod) in self._rejected:
            return True
        sandbox = self._containerd.sandbox(uid_of(pod))
        return is_terminal(pod) and (sandbox is None or not sandbox.ready)

    async def _work(self, worker: PodWorker) -> None:
        await worker.run()
        del self._workers[worker.uid]
        self._rejected.discard(worker.uid)
        for other in self._workers.values():
            other.room()

    def _container_changed(self, uid: str) -> None:
        worker = self._workers.get(uid)
        if worker is not None:
            worker.changed()

    # What a testbed's overhead may depend on.

    def _overhead(self, pod: Object) -> Delay:
        if self._model is None:
            return Delay()
        resources = self._devices.node_resources()
        running = [other for other in self._workers.values() if other.uid != uid_of(pod) and other.running()]
        held = sum(request_of(other.pod, resource) for other in running for resource in resources)
        devices = sum(healthy for _, healthy in resources.values())
        return self._model(pod, NodeState(pods=len(self._workers), devices=devices, held=held))


def is_mirror(pod: Object) -> bool:
    """Return whether the pod stands for a file on its node (a static pod): nobody runs it for what the API says."""
    return _MIRROR in annotations_of(pod)


def _age(pod: Object | None) -> tuple[str, str]:
    if pod is None:
        return ("", "")
    return (str(pod["metadata"].get("creationTimestamp", "")), key_of(pod))
