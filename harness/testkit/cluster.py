"""A cluster with its chassis that unmodified clients can use, put back to its start before each test."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mews.harness.engine import in_own_loop
from mews.harness.testkit.chassis import Chassis
from mews.harness.testkit.process import Child, start, started
from mews.kube.api.objects import Object, is_deleting, name_of, namespace_of
from mews.kube.api.resources import NODES, PODS
from mews.kube.client.port import DeleteOptions, KubeApi

_PATIENCE_S = 60.0


class ServedCluster:
    """``api`` and ``kubeconfig`` for any client; ``chassis`` for the hardware; ``ready`` is all of ready.json."""

    def __init__(self, ready: Mapping[str, Any]) -> None:
        self.ready = dict(ready)
        self.api: str = ready["api"]
        self.kubeconfig = Path(ready["kubeconfig"])
        self.nodes: dict[str, dict[str, Any]] = dict(ready["nodes"])
        self.chassis = Chassis(ready)
        self._start = in_own_loop(lambda: self._with_kube(_allocatable), virtual=False)

    def reset(self) -> None:
        """No pods, and the chassis and the nodes as they were at the start.

        Raises TimeoutError saying what did not come back.
        """
        in_own_loop(lambda: self._with_kube(self._reset), virtual=False)

    async def _with_kube(self, work: Any) -> Any:
        from mews.kube.client.http import HttpKube

        kube = HttpKube.from_kubeconfig(str(self.kubeconfig), None)
        try:
            return await work(kube)
        finally:
            await kube.close()

    async def _reset(self, kube: KubeApi) -> None:
        for namespace in sorted({namespace_of(pod) for pod in (await kube.list(PODS)).items}):
            await kube.delete_collection(PODS, namespace=namespace, options=DeleteOptions(grace_period_s=0))
        await asyncio.to_thread(self.chassis.reset)
        deadline = asyncio.get_running_loop().time() + _PATIENCE_S
        while True:
            pods = [pod for pod in (await kube.list(PODS)).items if not is_deleting(pod)]
            now = await _allocatable(kube)
            if not pods and now == self._start:
                return
            if asyncio.get_running_loop().time() > deadline:
                raise TimeoutError(f"after a reset: {len(pods)} pods, allocatable {now}; at the start {self._start}")
            await asyncio.sleep(0.1)


async def _allocatable(kube: KubeApi) -> dict[str, Any]:
    def of(node: Object) -> Any:
        return (node.get("status") or {}).get("allocatable")

    return {name_of(node): of(node) for node in (await kube.list(NODES)).items}


@dataclass(frozen=True, slots=True)
class Software:
    """What a cluster runs: the stack of a scenario (a file, or a shipped name), or the systems of these names, as
    ``mews up`` takes them; None: as the scenario has it, or the default ones. ``allow_outside``: the scenario may name
    files outside its folder. ``images`` is a file of the user's own ones, ``unknown_images`` what others do."""

    scenario: str | None = None
    stack: str | None = None
    allow_outside: bool = False
    images: str | None = None
    unknown_images: str | None = None

    def options(self) -> list[str]:
        """The command line's words for it."""
        scenario = [] if self.scenario is None else ["--scenario", self.scenario]
        outside = ["--allow-outside"] if self.allow_outside else []
        named = {"--stack": self.stack, "--images": self.images, "--unknown-images": self.unknown_images}
        further = [word for name, value in named.items() if value is not None for word in (name, value)]
        return [*scenario, *further, *outside]


def bring_up(
    cluster: str, hardware: Path | None, folder: Path, speed: float = 10.0, software: Software | None = None
) -> tuple[Child, ServedCluster]:
    """Start ``mews up`` and wait until it is ready.

    Raises RuntimeError with what it said when it does not come up.
    """
    name = f"pytest-{os.getpid()}-{folder.name}"[:63]
    arguments = ["--cluster", cluster, "--dir", str(folder), "--speed", f"{speed:g}", "--name", name]
    arguments += ["--wait", "devices"]
    command = [sys.executable, "-m", "mews.harness.cli", "up", *arguments, *(software or Software()).options()]
    if hardware is not None:
        command += ["--hardware", str(hardware)]
    child = start(command)
    ready = started(child, folder / "ready.json")
    return child, ServedCluster(ready)
