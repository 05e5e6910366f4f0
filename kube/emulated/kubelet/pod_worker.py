"""One pod's life: look, decide (``podstate``), act, and look again when something changed (pod_workers.go)."""

from __future__ import annotations

import asyncio

from mews.kube.api.objects import (
    Object,
    annotations_of,
    init_containers_of,
    is_deleting,
    is_terminal,
    key_of,
    seconds,
    uid_of,
)
from mews.kube.api.resource_claims import uses_claims
from mews.kube.clock import rest
from mews.kube.emulated.kubelet.backoff import BackOff
from mews.kube.emulated.kubelet.container_resources import resources_now
from mews.kube.emulated.kubelet.dynamic_resources import prepared, unprepared
from mews.kube.emulated.kubelet.hooks import kill_container
from mews.kube.emulated.kubelet.podstate import ContainerWaiting, PodPlan, PodState, container_of, decide, is_sidecar
from mews.kube.emulated.kubelet.podstatus import gates_of, status_of
from mews.kube.emulated.kubelet.prober import Prober, Spawn
from mews.kube.emulated.kubelet.resizing import Fits, PodResize
from mews.kube.emulated.kubelet.starter import DEFAULT_GRACE_S, Starter
from mews.kube.emulated.kubelet.tools import Tools
from mews.kube.emulated.kubelet.volume_mounts import mounted
from mews.kube.emulated.kubelet.volumes.mounted_volumes import EVICTED, MountedVolumes
from mews.kube.events import pod_reference
from mews.kube.system.profile import Delay

DEADLINE = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
_ASKED = ("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations")
_DEADLINE = "activeDeadlineSeconds"
_LEAST_GRACE_S = 1.0


class PodWorker:
    """Runs (``run``) until the pod is gone from the API and from the node.

    ``ended``: all is stopped and the terminal phase published; the pod holds nothing any more.
    """

    def __init__(self, tools: Tools, pod: Object, spawn: Spawn, fits: Fits) -> None:
        self.pod = pod
        self.uid = uid_of(pod)
        self.ended = False
        self._tools = tools
        self._gone = False
        self._killed = ("", "")
        self._waiting: dict[str, ContainerWaiting] = {}
        self._delay = Delay()
        self._shown_at_s: float | None = None
        self._stops: tuple[asyncio.Task[None], ...] = ()
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()
        self._relist: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._retry: asyncio.Task[None] | None = None
        self._resync: asyncio.Task[None] | None = None
        self._resize = PodResize(tools, fits)
        self._volumes = MountedVolumes(tools, pod)
        self._prober = Prober(tools, pod, spawn=spawn, changed=self._wake.set)
        self._starter = Starter(
            tools, self._waiting, BackOff(tools.timings.backoff_first_s, tools.timings.backoff_last_s)
        )

    def update(self, pod: Object) -> None:
        """The API's pod changed; only what is asked of the kubelet wakes it, and its readiness gates: no other
        statuses."""
        old, self.pod = self.pod, pod
        self._prober.update(pod)
        self._volumes.update(pod)
        if annotations_of(old) != annotations_of(pod):
            self._tools.containerd.annotate(self.uid, annotations_of(pod))
        ends = is_deleting(pod) or (is_terminal(pod) and not self.ended)
        if ends:
            self._stopping.set()
        if _grace_s(pod) < _grace_s(old):
            self._hurry()
        if old["spec"].get(_DEADLINE) != pod["spec"].get(_DEADLINE):
            self._set_deadline()
        changed = old["spec"] != pod["spec"] or gates_of(old) != gates_of(pod)
        if changed or ends != is_deleting(pod) or any(_asked(old, key) != _asked(pod, key) for key in _ASKED):
            self._wake.set()

    def removed(self) -> None:
        """The pod is gone from the API."""
        grace_s, self._gone = self._grace_s(), True
        self._stopping.set()
        self._wake.set()
        if self._grace_s() < grace_s:
            self._hurry()

    def changed(self) -> None:
        """A container started or ended: seen at the next relist."""
        if self._relist is None:
            self._relist = asyncio.get_running_loop().call_at(self._tools.next_relist(), self._seen)

    def _seen(self) -> None:
        self._relist = None
        loop = asyncio.get_running_loop()
        if self._delay.shown_s and self._shown_at_s is None and self.running():
            self._shown_at_s = loop.time() + self._tools.pace.loop_s(self._delay.shown_s)
        if self._shown_at_s is not None and loop.time() < self._shown_at_s:
            self._relist = loop.call_at(self._shown_at_s, self._seen)
            return
        self._wake.set()

    async def run(self) -> None:
        """Bring the pod up, keep it as its spec demands and take it down, until it is gone."""
        try:
            await self._tools.sleep(self._tools.timings.see_pod)
            self._set_deadline()
            self._prober.start()
            self._volumes.watch(self._evict)
            while not self._gone:
                self._wake.clear()
                if not self.ended:
                    await self._sync()
                    self._sync_again()
                elif is_deleting(self.pod):
                    await self._remove()
                if not self._gone:
                    await self._wake.wait()
            await self._clean()
        finally:
            self._prober.close()
            self._volumes.close()
            for timer in (self._relist, self._deadline, self._retry, self._resync):
                if timer is not None:
                    timer.cancel()

    def state(self) -> PodState:
        """Return all that is known of the pod now."""
        sandbox = self._tools.containerd.sandbox(self.uid)
        if sandbox is None:
            return PodState(self.pod, waiting=dict(self._waiting), ended=self.ended, killed=self._killed)
        return PodState(
            self.pod,
            ip=sandbox.ip,
            up=sandbox.ready,
            instances=dict(sandbox.instances),
            health=self._prober.healths(sandbox.instances),
            waiting=dict(self._waiting),
            ended=self.ended,
            killed=self._killed,
            resize=self._resize.verdict,
        )

    def given(self) -> Object:
        """Return the pod with the resources that its containers run with, where those that it wants cannot be given
        now."""
        if self._resize.verdict is None:
            return self.pod
        spec, state = dict(self.pod["spec"]), self.state()
        for part in ("initContainers", "containers"):
            if spec.get(part):
                spec[part] = [
                    {**container, "resources": resources_now(container, state.latest(container["name"]))}
                    for container in spec[part]
                ]
        return {**self.pod, "spec": spec}

    def room(self) -> None:
        """There may be room on the node now."""
        if self._resize.deferred:
            self._wake.set()

    def running(self) -> list[str]:
        """Return the names of the containers that run."""
        sandbox = self._tools.containerd.sandbox(self.uid)
        if sandbox is None:
            return []
        return [name for name, starts in sandbox.instances.items() if starts and starts[-1].running]

    async def _sync(self) -> None:
        before = self.state()
        plan = decide(before)
        if plan.end:
            await self._end()
            return
        self._publish()
        if plan.sandbox:
            if not await mounted(self._tools, self.pod, self._pause):
                return
            if not await prepared(self._tools, self.pod):
                self._sync_later()
                return
            if not await self._make_sandbox():
                return
            before = self.state()
            plan = decide(before)
        await self._kill(plan, before)
        if await self._resize.settle(before, grace_s=self._grace_s()):
            self._publish()
        failed = self._resize.failed
        for name in plan.start:
            if self._stopping.is_set():
                return
            latest = before.latest(name)
            exited = (before.previous(name) or latest) if latest is not None and latest.running else None
            failed |= not await self._starter.start(self.state(), name, exited=exited)
        if failed:
            self._sync_later()

    async def _kill(self, plan: PodPlan, state: PodState) -> None:
        """Kill what has failed its probe, with the probe's own grace where it has one."""
        kills = []
        for name, message in plan.kill:
            probe = container_of(self.pod, name).get(f"{state.well(name).failed}Probe") or {}
            own = probe.get("terminationGracePeriodSeconds")
            grace_s = self._grace_s() if own is None else float(own)
            kills.append(kill_container(self._tools, self.pod, name, ip=state.ip, grace_s=grace_s, message=message))
        await asyncio.gather(*kills)

    async def _make_sandbox(self) -> bool:
        tools = self._tools
        if tools.containerd.sandbox(self.uid) is not None:
            text = "Pod sandbox changed, it will be killed and re-created."
            tools.events.event(pod_reference(self.pod), "Normal", "SandboxChanged", text)
        self._delay = tools.overhead(self.pod)
        delay_s = tools.span_s(tools.timings.sandbox) + tools.pace.loop_s(self._delay.start_s)
        if self._stopping.is_set() or await self._interrupted(delay_s):
            return False
        tools.containerd.create(self.pod)
        return True

    async def _pause(self, span_s: float) -> bool:
        """Return whether the pod is to end before so many emulated seconds have passed."""
        return self._stopping.is_set() or await self._interrupted(self._tools.pace.loop_s(span_s))

    async def _interrupted(self, delay_s: float) -> bool:
        try:
            async with asyncio.timeout(delay_s):
                await self._stopping.wait()
        except TimeoutError:
            return False
        return True

    def _sync_later(self) -> None:
        if self._retry is None or self._retry.done():
            delay_s = self._tools.span_s(self._tools.timings.retry)
            self._retry = asyncio.get_running_loop().create_task(self._wake_after(delay_s))

    def _sync_again(self) -> None:
        """A pod is synced about once a minute. Only one whose devices' health is shown has news that wake nobody: a
        report that has become too old."""
        shown = self._tools.dra.shows_health and uses_claims(self.pod) and not self.ended
        if shown and (self._resync is None or self._resync.done()):
            delay_s = self._tools.span_s(self._tools.timings.resync)
            self._resync = asyncio.get_running_loop().create_task(self._wake_after(delay_s))

    def health_changed(self) -> None:
        """The health of one of its devices is another now."""
        self._wake.set()

    async def _wake_after(self, delay_s: float) -> None:
        await rest(delay_s)
        self._wake.set()

    def _publish(self) -> None:
        tools = self._tools
        before = tools.status.known(self.pod)
        now = tools.context.clock.now()
        state = self.state()
        status = status_of(state, now=now, host_ip=tools.host_ip, before=before)
        tools.status.publish(self.pod, tools.dra.with_health(self.pod, status))
        self._prober.see(state.instances, state.ip)

    async def _end(self) -> None:
        tools, asked = self._tools, is_deleting(self.pod) or bool(self._killed[0])
        if asked:
            await tools.sleep(tools.timings.see_deletion)
        self._publish()
        await self._stop_all()
        span = tools.timings.killed if asked else tools.timings.finished
        await asyncio.sleep(tools.span_s(span) + tools.pace.loop_s(self._delay.stop_s))
        tools.containerd.down(self.uid)
        await unprepared(tools, self.pod)
        self.ended = True
        self._prober.close()
        self._volumes.close()
        tools.note("pod-ended", pod=key_of(self.pod), uid=self.uid)
        self._publish()
        await tools.status.flushed(self.uid)
        if is_deleting(self.pod):
            await self._remove()

    async def _remove(self) -> None:
        await self._tools.status.flushed(self.uid)
        await self._tools.sleep(self._tools.timings.remove)
        await self._tools.status.delete(self.pod)

    def _grace_s(self) -> float:
        """Return what its containers get to end: a pod that is gone without having been deleted here gets the least."""
        hurried = self._killed[0] == EVICTED or (self._gone and not is_deleting(self.pod))
        return _LEAST_GRACE_S if hurried else _grace_s(self.pod)

    def _hurry(self) -> None:
        """The grace has become shorter: whoever waits for containers begins anew with what is left of it."""
        for stop in self._stops:
            stop.cancel()

    async def _stop_all(self) -> None:
        """Until all have ended."""
        while True:
            done = await asyncio.gather(*self._stop(self._grace_s()), return_exceptions=True)
            self._stops = ()
            for error in done:
                if error is not None and not isinstance(error, asyncio.CancelledError):
                    raise error
            if not any(done):
                return

    def _stop(self, grace_s: float) -> tuple[asyncio.Task[None], ...]:
        """All are told at once; sidecars then wait their turn: after those that they serve, the last one first."""
        sidecars = [container["name"] for container in init_containers_of(self.pod) if is_sidecar(container)]
        running, ip = self.running(), self.state().ip
        turns = [name for name in running if name not in sidecars]
        turns += [name for name in reversed(sidecars) if name in running]
        ends: list[asyncio.Task[None]] = []
        for name in turns:
            after = tuple(ends) if name in sidecars else ()
            kill = kill_container(self._tools, self.pod, name, ip=ip, grace_s=grace_s, after=after)
            ends.append(asyncio.create_task(kill))
        self._stops = tuple(ends)
        return self._stops

    async def _clean(self) -> None:
        """The pod left the API: kill what still runs, as the kubelet does after a forced deletion."""
        await self._stop_all()
        self._tools.containerd.down(self.uid)
        await unprepared(self._tools, self.pod)
        self._tools.containerd.remove(self.uid)
        self._tools.status.forget(self.uid)
        if not self.ended:
            self.ended = True
            self._tools.note("pod-ended", pod=key_of(self.pod), uid=self.uid)

    def _set_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        limit_s = self.pod["spec"].get(_DEADLINE)
        if limit_s is None:
            return
        tools = self._tools
        started = tools.status.known(self.pod).get("startTime")
        passed_s = tools.context.clock.now() - seconds(started) if started else 0.0
        delay_s = max(0.0, tools.pace.loop_s(float(limit_s)) - passed_s)
        self._deadline = asyncio.get_running_loop().call_later(delay_s, self._expire)

    def _expire(self) -> None:
        self._end_for("Normal", *DEADLINE)

    def _evict(self, message: str) -> None:
        self._end_for("Warning", EVICTED, message)

    def _end_for(self, kind: str, reason: str, message: str) -> None:
        """The kubelet's own decision to end the pod."""
        if not self.ended and not self._killed[0]:
            self._killed = (reason, message)
            self._tools.events.event(pod_reference(self.pod), kind, reason, message)
            self._stopping.set()
            self._wake.set()


def _grace_s(pod: Object) -> float:
    """Never below a second (calculateEffectiveGracePeriod of pkg/kubelet/pod_workers.go)."""
    spec_s = pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_S)
    return max(_LEAST_GRACE_S, float(pod["metadata"].get("deletionGracePeriodSeconds", spec_s)))


def _asked(pod: Object, key: str) -> object:
    return pod["metadata"].get(key)
