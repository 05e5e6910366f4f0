"""A node whose kubelet dies at a chosen moment of its life, and is started anew: for the tests of kills."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from mews.harness.ports.fence import Fence
from mews.kube.api.objects import Object, is_deleting, name_of, uid_of
from mews.kube.api.resources import EVENTS, PODS
from mews.kube.client.port import DeleteOptions
from tests.kube.emulated.kubelet.bench import Bench

AWAKE_S = 400.0
"""By then everything that happens in these situations has happened; the longest takes a back-off of 160 s."""
LATE_S = 20.0
"""Within this a kubelet that is back has ended a pod whose grace is over."""
WRITES = ("create", "patch", "replace", "delete")

Story = Callable[["FragileNode"], Awaitable[None]]
"""What users do in a situation."""


@dataclass
class Fate:
    """What became of a pod: its phase and reason, or that it is ``gone``; and how its containers ended."""

    phase: str = ""
    reason: str = ""
    gone: bool = False
    codes: tuple[tuple[str, int | None], ...] = ()


@dataclass
class FragileNode:
    """One node. ``dies_at``: the moment of its kubelet's life, counted over writes and containers' news, at which it is
    killed, before anything else happens; None: never. It is started again ``away_s`` later."""

    dies_at: int | None = None
    away_s: float = 0.0
    bench: Bench = field(default_factory=Bench)
    moments: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    terminating: dict[str, float] = field(default_factory=dict)
    graces: dict[str, float] = field(default_factory=dict)

    # What users do.

    async def pod(self, name: str, command: list[str] | None = None, **parts: Any) -> None:
        await self.bench.pod(name, command, **parts)

    async def phase(self, name: str, phase: str) -> None:
        """Wait until the pod has it, or is gone, or it never comes."""

        async def reached() -> bool:
            found = [pod for pod in await self._pods() if name_of(pod) == name]
            return not found or found[0]["status"]["phase"] in (phase, "Succeeded", "Failed")

        await self._until(reached)

    async def delete(self, name: str, grace_s: int | None = None) -> None:
        await self.bench.kube.delete(PODS, name, namespace="default", options=DeleteOptions(grace_period_s=grace_s))

    async def gone(self, name: str) -> None:
        async def is_gone() -> bool:
            return all(name_of(pod) != name for pod in await self._pods())

        await self._until(is_gone)

    # The kubelet's life.

    async def live(self, story: Story) -> dict[str, Fate]:
        """Do that beside the kubelet, and say what became of all pods."""
        kubelet = asyncio.create_task(self._kubelets())
        watching = asyncio.create_task(self._watch())
        try:
            await story(self)
            await asyncio.sleep(AWAKE_S)
            return await self._fates()
        finally:
            for task in (kubelet, watching):
                task.cancel()
            await asyncio.gather(kubelet, watching, return_exceptions=True)
            await self.bench.containerd.close()

    async def _kubelets(self) -> None:
        while True:
            fence = Fence()
            kube, bench = self.bench.kube, self.bench
            bench.kube = _Counted(fence.around(kube), self._passed)  # type: ignore[assignment]
            kubelet, bench.kube = bench.kubelet(), kube
            life = asyncio.create_task(kubelet.run())
            self._kill = lambda fence=fence, life=life: (fence.cut(), life.cancel())
            unlisten = bench.containerd.listen(lambda uid: self._passed(f"container of {uid}"))
            await asyncio.gather(life, return_exceptions=True)
            unlisten()
            if self.dies_at is None or len(self.moments) <= self.dies_at:
                self.wrong.append("the kubelet died by itself")
                return
            await asyncio.sleep(self.away_s)

    def _passed(self, what: str) -> None:
        self.moments.append(what)
        if len(self.moments) - 1 == self.dies_at:
            self._kill()

    # Looking.

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            pods = await self._pods()
            for pod in pods:
                if is_deleting(pod):
                    self.terminating.setdefault(uid_of(pod), loop.time())
                    self.graces[uid_of(pod)] = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
            there = {uid_of(pod) for pod in pods}
            for uid in [uid for uid in self.terminating if uid not in there]:
                self._late(uid, loop.time() - self.terminating.pop(uid))
            self._twice()
            await asyncio.sleep(0.5)

    def _late(self, uid: str, took_s: float) -> None:
        if took_s > 2 * max(self.graces[uid], 2.0) + self.away_s + LATE_S:
            self.wrong.append(f"a pod was Terminating for {took_s:.0f} s")

    def _twice(self) -> None:
        """No container runs twice at a time."""
        for sandbox in self.bench.containerd.sandboxes():
            for name, starts in sandbox.instances.items():
                if sum(start.running for start in starts) > 1:
                    self.wrong.append(f"{name} of {name_of(sandbox.pod)} runs twice")

    async def _fates(self) -> dict[str, Fate]:
        pods = await self._pods()
        found = {name_of(pod): self._fate(pod) for pod in pods}
        alive = {uid_of(pod) for pod in pods if pod["status"]["phase"] not in ("Succeeded", "Failed")}
        for sandbox in self.bench.containerd.sandboxes():
            runs = [name for name, starts in sandbox.instances.items() if starts and starts[-1].running]
            if runs and uid_of(sandbox.pod) not in alive:
                self.wrong.append(f"{runs[0]} of {name_of(sandbox.pod)} runs on")
        self.wrong += [f"{name_of(pod)} is Terminating for ever" for pod in pods if is_deleting(pod)]
        return found

    def _fate(self, pod: Object) -> Fate:
        status = pod["status"]
        sandbox = self.bench.containerd.sandbox(uid_of(pod))
        ends = {} if sandbox is None else {name: starts[-1].exit_code for name, starts in sandbox.instances.items()}
        return Fate(status["phase"], status.get("reason", ""), codes=tuple(sorted(ends.items())))

    async def _pods(self) -> list[Object]:
        return list((await self.bench.kube.list(PODS, namespace="default")).items)

    async def _until(self, holds: Callable[[], Awaitable[bool]], limit_s: float = 150.0) -> None:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + limit_s
        while not await holds() and loop.time() < end_s:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


class _Counted:
    """A KubeApi whose writes of pods are moments: counted once they are done, before anybody acts on the answer."""

    def __init__(self, kube: Any, passed: Callable[[str], None]) -> None:
        self._kube = kube
        self._passed = passed

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._kube, name)
        if name not in WRITES:
            return method

        async def write(resource: Any, *given: Any, **options: Any) -> Any:
            answer = await method(resource, *given, **options)
            if resource in (PODS, EVENTS):
                self._passed(f"{name} {resource.plural}")
            return answer

        return write
