"""Asks the probes of one pod's containers, round after round (upstream pkg/kubelet/prober)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, containers_of, init_containers_of, is_deleting, uid_of
from mews.kube.clock import rest
from mews.kube.emulated.kubelet.containerd import ContainerInstance
from mews.kube.emulated.kubelet.errors import NoSuchContainerError
from mews.kube.emulated.kubelet.handlers import HandlerResult, Question, action_of
from mews.kube.emulated.kubelet.probe import INITIAL, LIVENESS, READINESS, STARTUP, Health, Probe, ProbeTally, probes_of
from mews.kube.emulated.kubelet.tools import Tools
from mews.kube.events import pod_reference

_EPSILON = 1e-6
"""A tick that has just come is not to come again."""

Spawn = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
"""Runs a coroutine for as long as this kubelet lives."""


class _Verdict(Struct):
    container_id: str
    value: bool | None


class Prober:
    """The probes of one pod. ``changed`` is called whenever a verdict is another one than before."""

    def __init__(self, tools: Tools, pod: Object, *, spawn: Spawn, changed: Callable[[], None]) -> None:
        inits = {container["name"] for container in init_containers_of(pod)}
        both = (*init_containers_of(pod), *containers_of(pod))
        self._tools = tools
        self._pod = pod
        self._spawn = spawn
        self._changed = changed
        self._inits = inits
        self._probes = tuple(probe for container in both for probe in probes_of(container))
        self._kinds = {(probe.name, probe.kind) for probe in self._probes}
        self._verdicts: dict[tuple[str, str], _Verdict] = {}
        self._seen: dict[str, ContainerInstance] = {}
        self._ip = ""
        self._pokes = {probe.name: asyncio.Event() for probe in self._probes if probe.kind == READINESS}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin; the rounds count from now."""
        self._tasks = [self._spawn(self._work(probe)) for probe in self._probes]

    def close(self) -> None:
        """The pod is at its end."""
        for task in self._tasks:
            task.cancel()

    def update(self, pod: Object) -> None:
        """Take in a changed pod of the API."""
        self._pod = pod

    def see(self, instances: Mapping[str, Sequence[ContainerInstance]], ip: str) -> None:
        """What the kubelet has just published of the containers; those that are started and not ready are asked at
        once."""
        if not self._probes:
            return
        self._seen, self._ip = {name: starts[-1] for name, starts in instances.items() if starts}, ip
        for name, poke in self._pokes.items():
            instance = self._seen.get(name)
            if instance is not None and instance.running:
                health = self.health(instance)
                if health.started and not health.ready:
                    poke.set()

    def healths(self, instances: Mapping[str, Sequence[ContainerInstance]]) -> dict[str, Health]:
        """Return the same for all that run; {} for a pod without probes."""
        if not self._probes:
            return {}
        return {name: self.health(starts[-1]) for name, starts in instances.items() if starts and starts[-1].running}

    def health(self, instance: ContainerInstance) -> Health:
        """Return what the probes say of a running container."""
        name = instance.container
        startup, live = self._verdict(instance, STARTUP), self._verdict(instance, LIVENESS)
        started = (name, STARTUP) not in self._kinds or startup is True
        ready = started and ((name, READINESS) not in self._kinds or self._verdict(instance, READINESS) is True)
        failed = LIVENESS if live is False else STARTUP if startup is False else ""
        return Health(started, ready, failed)

    def _verdict(self, instance: ContainerInstance, kind: str) -> bool | None:
        verdict = self._verdicts.get((instance.container, kind))
        return verdict.value if verdict is not None and verdict.container_id == instance.id else None

    # One probe.

    async def _work(self, probe: Probe) -> None:
        loop, tools = asyncio.get_running_loop(), self._tools
        period_s = tools.pace.loop_s(probe.period_s)
        if tools.up_s() < period_s:
            await asyncio.sleep(tools.rng.random() * period_s)
        begun, tally = loop.time(), ProbeTally(probe)
        while True:
            goes_on, settled = await self._ask(probe, tally)
            if not goes_on:
                return
            ticks = int((loop.time() - begun) / period_s + _EPSILON) + 1
            await self._until(begun + ticks * period_s, probe, settled=settled)

    async def _until(self, at: float, probe: Probe, *, settled: bool) -> None:
        """Wait for the next round, or for a poke. A round after which nothing more is to be expected is a rest."""
        loop = asyncio.get_running_loop()
        delay_s = max(0.0, at - loop.time())
        poke = self._pokes.get(probe.name) if probe.kind == READINESS else None
        if poke is None:
            await (rest if settled else asyncio.sleep)(delay_s)
            return
        waits = [loop.create_task((rest if settled else asyncio.sleep)(delay_s)), loop.create_task(poke.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        poke.clear()

    async def _ask(self, probe: Probe, tally: ProbeTally) -> tuple[bool, bool]:
        """Return one round: whether there are more, and whether nothing is expected of the next one."""
        instance, key = self._seen.get(probe.name), (probe.name, probe.kind)
        if instance is None:
            return True, True
        known = self._verdicts.get(key)
        if known is None or known.container_id != instance.id:
            self._verdicts[key] = _Verdict(instance.id, INITIAL[probe.kind])
            tally.held = False
        if tally.held:
            return True, True
        if not instance.running:
            self._verdicts[key].value = False
            return self._pod["spec"].get("restartPolicy", "Always") != "Never" or probe.name in self._inits, True
        if is_deleting(self._pod) and probe.kind != READINESS:
            self._verdicts[key].value = True
            return False, True
        age_s = (self._tools.context.clock.now() - instance.started_at) * self._tools.pace.speed
        if int(age_s) < probe.initial_delay_s:
            return True, False
        if self.health(instance).started is (probe.kind == STARTUP):
            return True, True
        await self._judge(probe, tally, instance)
        return True, not tally.open

    async def _judge(self, probe: Probe, tally: ProbeTally, instance: ContainerInstance) -> None:
        answer = await self._answer(probe)
        if answer is None:
            return
        if not answer.well:
            self._event(probe, f"{probe.label} probe failed: {answer.text}")
        verdict, known = tally.take(answer.well), self._verdicts[probe.name, probe.kind]
        if verdict is not None and verdict is not known.value and known.container_id == instance.id:
            known.value = verdict
            self._changed()

    async def _answer(self, probe: Probe) -> HandlerResult | None:
        """Return None where it cannot be asked: the result is thrown away."""
        action = action_of(probe.handler, probe.container, self._ip)
        if action is None:
            text = "missing probe handler: the emulated kubelet knows exec, grpc, httpGet and tcpSocket"
            self._event(probe, f"{probe.label} probe errored and resulted in unknown state: {text}")
            return None
        question = Question(probe.kind, action, probe.timeout_s)
        try:
            return await self._tools.containerd.ask(uid_of(self._pod), probe.name, question)
        except NoSuchContainerError:
            return None

    def _event(self, probe: Probe, text: str) -> None:
        involved = pod_reference(self._pod, container=probe.name)
        self._tools.events.event(involved, "Warning", "Unhealthy", text)
