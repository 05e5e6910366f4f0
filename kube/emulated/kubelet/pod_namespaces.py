"""What containers of one pod share beside its network: IPC objects, and process IDs where the pod says so.

Process IDs of a container begin with its own program, as with any runtime. Containers of a pod with
``shareProcessNamespace`` see each other's, below a process ``pause``; ``hostPID`` and ``hostIPC`` are this machine's.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, all_containers_of, uid_of
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.forked_process import ForkedProcess
from mews.kube.emulated.kubelet.mount_namespace import NamespaceStart, lacking
from mews.kube.emulated.kubelet.runtime import Launch

_OWNER = 0xB701
"""The request NS_GET_USERNS of ioctl_ns(2)."""
_OF_HOST = {"ipc": "hostIPC", "pid": "hostPID"}


class SharedNamespaces(Struct, frozen=True):
    """Words and descriptors for the root of one container."""

    words: tuple[str, ...] = ()
    joined: tuple[int, ...] = ()


class PodNamespaces:
    """Those of the pods of a cluster's processes, while their sandboxes are up."""

    def __init__(self) -> None:
        self._held: dict[str, dict[str, int]] = {}
        self._pauses: dict[str, ForkedProcess] = {}
        self._first: dict[tuple[str, str], int] = {}
        """Of containers by their pod's uid and their name: the first process."""
        self._of_targets: dict[str, list[int]] = {}

    async def share(self, launch: Launch) -> SharedNamespaces:
        """Return what a container has and joins.

        Raises StartError.
        """
        pod, uid = launch.pod, uid_of(launch.pod)
        target = _target(pod, launch.container)
        own = {kind for kind, field in _OF_HOST.items() if not pod["spec"].get(field) and not await _lacks(kind)}
        if target and "pid" in own:
            held = self._of_target(uid, target)
        else:
            if pod["spec"].get("shareProcessNamespace") and "pid" in own and uid not in self._held:
                await self._pause(uid)
            held = {kind: held for kind, held in self._held.get(uid, {}).items() if kind == "user" or kind in own}
        words = [f"{kind}:{held[kind]}" for kind in ("user", "ipc", "pid") if kind in held]
        new: list[str] = [kind for kind in ("ipc", "pid") if kind in own and kind not in held]
        if "ipc" in new and len(list(all_containers_of(pod))) > 1:
            new.append("kept")
        return SharedNamespaces((*words, *new), tuple(held.values()))

    def _of_target(self, uid: str, target: str) -> dict[str, int]:
        """Return the namespaces of the container that another one is to look into (``kubectl debug --target``)."""
        if (uid, target) not in self._first:
            raise StartError("CreateContainerConfigError", f"unable to find target container {target}")
        held = dict[str, int]()
        try:
            for kind in ("ipc", "pid"):
                held[kind] = os.open(f"/proc/{self._first[uid, target]}/ns/{kind}", os.O_RDONLY)
            held["user"] = fcntl.ioctl(held["pid"], _OWNER)
        except OSError as error:
            _close(held.values())
            raise StartError("CreateContainerError", f"target container {target} is not running") from error
        self._of_targets.setdefault(uid, []).extend(held.values())
        return held

    async def _pause(self, uid: str) -> None:
        start, nothing = NamespaceStart(None), asyncio.subprocess.DEVNULL
        try:
            process = await asyncio.create_subprocess_exec(
                *start.prefix, stdin=nothing, stdout=nothing, stderr=nothing, env={}, cwd="/",
                start_new_session=True, pass_fds=start.passed,
            )  # fmt: skip
        except OSError as error:
            start.abandon()
            raise StartError("CreatePodSandboxError", f"pause: {error.strerror}") from error
        fault = await start.fault()
        await process.wait()
        if start.child is not None:
            self._pauses[uid] = ForkedProcess(start.child)
        self._held[uid] = start.kept
        if fault or start.child is None:
            self.forget(uid)
            raise StartError("CreatePodSandboxError", f"pause: {fault}")

    def started(self, launch: Launch, pid: int, kept: Mapping[str, int]) -> None:
        """A container runs; ``kept`` of its namespaces are held for those that follow."""
        uid = uid_of(launch.pod)
        self._first[uid, launch.container] = pid
        if kept and uid not in self._held:
            self._held[uid] = {kind: kept[kind] for kind in ("user", "ipc")}
            kept = {kind: number for kind, number in kept.items() if kind not in self._held[uid]}
        _close(kept.values())

    def forget(self, uid: str) -> None:
        """The pod's sandbox is down: its processes end, also those that left their container's group."""
        _close(self._held.pop(uid, {}).values())
        _close(self._of_targets.pop(uid, ()))
        self._first = {key: pid for key, pid in self._first.items() if key[0] != uid}
        pause = self._pauses.pop(uid, None)
        if pause is not None and pause.returncode is None:
            os.kill(pause.pid, signal.SIGKILL)

    async def close(self) -> None:
        """All pods are gone."""
        pauses = list(self._pauses.values())
        for uid in {*self._held, *self._of_targets, *self._pauses}:
            self.forget(uid)
        await asyncio.gather(*(pause.wait() for pause in pauses))


async def _lacks(kind: str) -> bool:
    return bool(await asyncio.to_thread(lacking, kind))


def _target(pod: Object, name: str) -> str:
    ephemeral: list[dict[str, Any]] = pod["spec"].get("ephemeralContainers") or []
    return next((str(each.get("targetContainerName") or "") for each in ephemeral if each["name"] == name), "")


def _close(descriptors: Any) -> None:
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)
