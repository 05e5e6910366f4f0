"""Limits of containers that are processes, by control groups (cgroups(7)), where this machine lets its user make some.

Of version 2 they are made in the nearest group above this process that passes on its controllers, as systemd delegates
one to each user; of version 1 below this process' own. Elsewhere limits are only counted. Requests give no shares.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from mews.kube.api.quantities import milli, whole

CONTROLLERS = ("memory", "cpu")
"""What a container's limits are of."""
_TRIAL_S = 10.0
_PERIOD_US, _LEAST_QUOTA_US = 100_000, 1_000
"""As kubelets have it (pkg/kubelet/cm/helpers_linux.go)."""
_PROCESSES, _PASSED_ON = "cgroup.procs", "cgroup.subtree_control"

Resources = Mapping[str, Mapping[str, Any]]
"""Requests and limits of a container."""


class CgroupPlaces(Struct, frozen=True):
    """Where groups are made: controller -> folder. ``unified``: of version 2, where it is one for all."""

    folders: Mapping[str, Path]
    unified: bool


def places(mounts: str, own: str) -> CgroupPlaces:
    """Return them, by /proc/self/mountinfo and /proc/self/cgroup; folders that cannot be written are left out."""
    paths = {line.split(":", 2)[1]: line.split(":", 2)[2] for line in own.splitlines() if line.count(":") > 1}
    single: dict[str, Path] = {}
    for kind, options, root, point in _mounted(mounts):
        if kind == "cgroup2" and "" in paths:
            shared = _passing_on(_below(point, root, paths[""]), Path(point))
            if shared is not None:
                return CgroupPlaces(dict.fromkeys(CONTROLLERS, shared), True)
        for names, path in paths.items():
            for name in (*set(names.split(",")) & {*CONTROLLERS} & {*options.split(",")},) if kind == "cgroup" else ():
                folder = _below(point, root, path)
                if _is_open(folder):
                    single.setdefault(name, folder)
    return CgroupPlaces(single, False)


def _mounted(mounts: str) -> Iterator[tuple[str, str, str, str]]:
    """Kind, options, root and mount point of each line."""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        words, rest = before.split(), after.split()
        if len(words) > 4 and len(rest) > 2:
            yield rest[0], rest[2], words[3], words[4]


def _below(point: str, root: str, path: str) -> Path:
    """Return the folder of a group; a container may see only a part of all groups."""
    inside = path.removeprefix(root) if root != "/" else path
    return Path(point) / inside.strip("/")


def _passing_on(folder: Path, top: Path) -> Path | None:
    for candidate in (folder, *folder.parents):
        if not candidate.is_relative_to(top):
            return None
        with contextlib.suppress(OSError):
            passed = (candidate / _PASSED_ON).read_text("ascii").split()
            if {*CONTROLLERS} <= {*passed} and _is_open(candidate):
                return candidate
    return None


def _is_open(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and os.access(folder / _PROCESSES, os.W_OK)


@cache
def _found() -> tuple[CgroupPlaces, str]:
    try:
        mounts, own = (Path(f"/proc/self/{name}").read_text("utf-8") for name in ("mountinfo", "cgroup"))
    except OSError as error:
        return CgroupPlaces({}, False), f"no control groups: {error.strerror}"
    found = places(mounts, own)
    missing = [name for name in CONTROLLERS if name not in found.folders]
    if missing:
        return found, f"no control group of {' and '.join(missing)} that this user may write"
    trial = Cgroups(f"mews-trial-{os.getpid()}", found)
    try:
        made = trial.make("trial", {"limits": {"memory": "1Gi", "cpu": "1"}})
        reason = "" if made is None else _joined(made)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
    finally:
        trial.close()
    return (CgroupPlaces({}, False), reason) if reason else (found, "")


def _joined(group: Cgroup) -> str:
    """Return why a process cannot get into it; "" where one has been there."""
    import subprocess

    words = ["/bin/sh", "-ec", 'for file; do echo 0 > "$file"; done', "sh", *group.entries]
    asked = subprocess.run(words, capture_output=True, text=True, timeout=_TRIAL_S, check=False)
    return "" if asked.returncode == 0 else asked.stderr.strip() or f"exit code {asked.returncode}"


def lacking() -> str:
    """Return why limits are only counted; "" where they hold (asked once, blocking)."""
    return _found()[1]


class Cgroup:
    """The group of one container, in each of its folders."""

    def __init__(self, folders: Mapping[str, Path], *, unified: bool) -> None:
        self._folders = folders
        self._unified = unified

    @property
    def entries(self) -> tuple[str, ...]:
        """Files by which a process gets into it."""
        return tuple(dict.fromkeys(str(folder / _PROCESSES) for folder in self._folders.values()))

    def limit(self, resources: Resources) -> None:
        """Let these limits hold from now on; none is none.

        Raises OSError, as where so much memory is in use that it cannot be.
        """
        limits = resources.get("limits") or {}
        memory = whole(limits["memory"]) if "memory" in limits else None
        quota = max(milli(limits["cpu"]) * _PERIOD_US // 1000, _LEAST_QUOTA_US) if "cpu" in limits else None
        if self._unified:
            self._write("cpu", "cpu.max", f"{'max' if quota is None else quota} {_PERIOD_US}")
            self._write("memory", "memory.max", "max" if memory is None else str(memory))
            with contextlib.suppress(FileNotFoundError):  # where there is no swap
                self._write("memory", "memory.swap.max", "0")
            with contextlib.suppress(FileNotFoundError):  # since Linux 4.19
                self._write("memory", "memory.oom.group", "1")
            return
        self._write("cpu", "cpu.cfs_period_us", str(_PERIOD_US))
        try:
            self._write("cpu", "cpu.cfs_quota_us", str(-1 if quota is None else quota))
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._write("cpu", "cpu.cfs_quota_us", "-1")  # more than this machine gives to Mews, which is what holds
        self._limit_memory(-1 if memory is None else memory)

    def _limit_memory(self, memory: int) -> None:
        """With swap it must never be less than without."""
        names = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]
        there = [name for name in names if (self._folders["memory"] / name).exists()]
        try:
            for name in there:
                self._write("memory", name, str(memory))
        except OSError:
            for name in reversed(there):
                self._write("memory", name, str(memory))

    def _write(self, controller: str, name: str, text: str) -> None:
        (self._folders[controller] / name).write_text(text, encoding="ascii")

    def memory(self) -> int:
        """Return how many bytes are in use. Raises OSError."""
        name = "memory.current" if self._unified else "memory.usage_in_bytes"
        return int((self._folders["memory"] / name).read_text("ascii"))

    def is_killed_for_memory(self) -> bool:
        """Return whether the kernel has killed a process of it for want of memory."""
        name = "memory.events" if self._unified else "memory.oom_control"
        try:
            lines = (self._folders["memory"] / name).read_text("ascii").splitlines()
        except OSError:
            return False
        counted = dict(line.split() for line in lines)
        return int(counted.get("oom_kill", "0")) > 0

    def remove(self) -> None:
        """It is of no more use; one that still has processes stays."""
        for folder in dict.fromkeys(self._folders.values()):
            _remove(folder)


class Cgroups:
    """Those of one cluster's containers, in folders of that name below the ``found`` ones; they are made with the
    first."""

    def __init__(self, name: str, found: CgroupPlaces | None = None) -> None:
        self._found = _found()[0] if found is None else found
        self._own = {controller: folder / name for controller, folder in self._found.folders.items()}
        self._is_made = False

    def make(self, name: str, resources: Resources) -> Cgroup | None:
        """Return the group of a container with these limits; None where it has no resources, or there are no groups.

        Raises OSError.
        """
        if not resources or {*self._own} != {*CONTROLLERS}:
            return None
        if not self._is_made:
            for folder in dict.fromkeys(self._own.values()):
                folder.mkdir(exist_ok=True)
                if self._found.unified:
                    (folder / _PASSED_ON).write_text("+memory +cpu", encoding="ascii")
            self._is_made = True
        folders = {controller: folder / name for controller, folder in self._own.items()}
        for folder in dict.fromkeys(folders.values()):
            _remove(folder)
            folder.mkdir()
        group = Cgroup(folders, unified=self._found.unified)
        try:
            group.limit(resources)
        except OSError:
            group.remove()
            raise
        return group

    def close(self) -> None:
        """Remove all that have no processes."""
        for folder in dict.fromkeys(self._own.values()):
            _remove(folder)


def remove_groups(name: str) -> None:
    """Remove the groups of a cluster of that name, whose processes have ended."""
    Cgroups(name).close()


def _remove(folder: Path) -> None:
    """With those below it; what the kernel shows in them are no files of ours."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                _remove(Path(entry.path))
        folder.rmdir()
