"""Runtime folders and who owns them, so that what a killed run left behind can be told from what still lives.

Every folder that a run makes for its sockets and servers bears an ``owner.json``; every process started for it bears
the folder's name in its environment, and nothing else makes a process the run's: who merely works in the folder, or
has a file of it open, is somebody who looks. ``sweep`` removes what has lost its owner.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from mews.emulator.hostd.mounts import unmount
from mews.harness.errors import RequirementError
from mews.own_files import make_own_folder, write_own

OWNER = "MEWS_OWNER"
"""In the environment of processes that belong to a runtime folder: the folder."""

_FILE = "owner.json"
_MEMORY = Path("/dev/shm")
"""Where POSIX' shared memory is: a tmpfs on Linux."""
ENGINE_FILE = "engine.owned"
"""In a runtime folder whose run has containers of the container engine."""
_CONTAINERS_S = 60.0
_DELETE_S = 120.0

KIND_FILE = "kind.json"
"""In the folder of a kind cluster: ``{"name", "hosts", "image", "brought": images by name, "whole": to the end}``."""
SITE_FILE = "site.json"
"""In the folder of somebody's cluster: ``{"kubeconfig", "context", "namespaces", "prefix"}``."""


def runtime_folder() -> str | None:
    """XDG_RUNTIME_DIR where it is there to be written to, else None: the system's temporary folder."""
    folder = os.environ.get("XDG_RUNTIME_DIR")
    return folder if folder and os.access(folder, os.W_OK | os.X_OK) else None


def make_runtime_folder(prefix: str) -> Path:
    """Return a fresh one of this run, which its owner alone may enter.

    Raises RequirementError where there is none to be had.
    """
    try:
        return Path(tempfile.mkdtemp(prefix=prefix, dir=runtime_folder()))
    except OSError as error:
        raise RequirementError(
            f"no folder for sockets and servers: {error.strerror}; set XDG_RUNTIME_DIR or TMPDIR"
        ) from error


def born(pid: int) -> str:
    """Return when the kernel started that process (proc(5), stat field 22, in ticks since boot); "" when there is none,
    or it is only waiting to be reaped."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]


class RuntimeFolder:
    """A runtime folder of this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        mine = born(os.getpid())
        self._since = _since(folder) or mine
        self._write({"pid": os.getpid(), "born": mine, "since": self._since})

    @classmethod
    def below(cls, state: Path, name: str) -> RuntimeFolder:
        """Return a fresh one that outlives this process, which its owner alone may enter.

        Raises RequirementError where it cannot be made.
        """
        folder = state / name
        try:
            make_own_folder(folder)
            return cls(folder)
        except OSError as error:
            raise RequirementError(
                f"{folder}: cannot be written: {error.strerror}; set XDG_STATE_HOME or HOME"
            ) from error

    @classmethod
    def claim(cls, folder: Path) -> RuntimeFolder | None:
        """Take over what has lost its owner; None where it has one, or somebody else was quicker."""
        with (folder.parent / ".lock").open("w") as lock:
            import fcntl  # only here, so that what needs no runtime folder runs on Windows, too

            fcntl.flock(lock, fcntl.LOCK_EX)
            return None if _owner_lives(folder) else cls(folder)

    def _write(self, owner: Mapping[str, Any]) -> None:
        """Whole or not at all: what cannot be read has no owner."""
        part = self.folder / f".{_FILE}.{os.getpid()}"
        write_own(part, json.dumps(owner))
        part.replace(self.folder / _FILE)

    def abandon(self) -> None:
        """Leave it to whoever comes next, or to ``sweep``."""
        self._write({"pid": 0, "born": "", "since": self._since})

    def env(self) -> dict[str, str]:
        """Return this process' environment, with the folder's mark."""
        return {**os.environ, OWNER: str(self.folder)}

    def release(self) -> None:
        """Remove it."""
        shutil.rmtree(self.folder, ignore_errors=True)


def sweep() -> list[Path]:
    """End the processes and remove the folders whose owner is dead; returns the folders."""
    gone = [folder for folder in _folders() if not _owner_lives(folder)]
    for folder in gone:
        _remove(folder)
    return gone


def end_own() -> None:
    """The same for the folders of this very process, which cannot close what it opened in good order any more."""
    mine = os.getpid()
    for folder in _folders():
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            if json.loads((folder / _FILE).read_text(encoding="utf-8"))["pid"] == mine and _owner_lives(folder):
                _remove(folder)


def make_memory_folder() -> RuntimeFolder | None:
    """Return a folder in memory of this run's own; None where this machine has none to be had."""
    try:
        return RuntimeFolder(Path(tempfile.mkdtemp(prefix="mews-", dir=_MEMORY)))
    except OSError:
        return None


def _remove(folder: Path) -> None:
    for pid in list(_belonging(folder)):
        _kill(pid)
    end_containers(folder)
    remove_groups(folder.name)
    unmount_below(folder)
    shutil.rmtree(folder, ignore_errors=True)


def end_containers(folder: Path) -> None:
    """Remove the engine's containers of a runtime folder; where the engine does not answer, they are left to the next
    run that has containers."""
    if not (folder / ENGINE_FILE).exists():
        return
    from mews.kube.emulated.kubelet.engine.client import remove_containers
    from mews.kube.emulated.kubelet.errors import EngineUnavailableError

    with contextlib.suppress(EngineUnavailableError):
        remove_containers(str(folder).__eq__)


def remove_groups(name: str) -> None:
    """Remove the control groups of containers that were limited."""
    from mews.kube.emulated.kubelet.cgroups import remove_groups as remove

    remove(name)


def is_abandoned(folder: Path) -> bool:
    """Return whether the owner of what bears the name of a runtime folder is dead."""
    return not (folder / _FILE).exists() or not _owner_lives(folder)


def end_creation(folder: Path) -> None:
    """End what creates a kind cluster, once Docker has given the containers that it was asked for: they come though
    nobody waits for them, and before they are there they cannot be deleted."""
    pause = threading.Event()
    for _ in range(int(_CONTAINERS_S / 0.1)):
        left = list(_belonging(folder))
        for pid in left:
            if not _asks_for_container(pid):
                _kill(pid)
        if not left:
            return
        pause.wait(0.1)


def _asks_for_container(pid: int) -> bool:
    try:
        argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return (b"docker", b"run") in pairwise(word.rpartition(b"/")[2] for word in argv[:3])


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def unmount_below(folder: Path) -> None:
    """Take away FUSE mounts whose process is dead."""
    with contextlib.suppress(OSError):
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
        for point in (Path(line.split()[1]) for line in mounts if " fuse" in line):
            if point.is_relative_to(folder):
                unmount(point)


def kind_state() -> Path:
    """Return where each kind cluster has its folder: one that is kept outlives its run, and a session of the user's."""
    return state_folder() / "kind"


def site_state() -> Path:
    """Return where it is written down what was made in somebody's cluster."""
    return state_folder() / "kubeconfig"


def state_folder() -> Path:
    """Return where Mews keeps what outlives a run: ``$XDG_STATE_HOME/mews``, or ``~/.local/state/mews``."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "mews"


def has_kind_cluster(pid: int) -> bool:
    """Return whether that process has a kind cluster, which takes its time to be deleted."""
    for file in kind_state().glob(f"*/{_FILE}"):
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
            if json.loads(file.read_text(encoding="utf-8"))["pid"] == pid:
                return True
    return False


def kept_kind_clusters() -> list[Path]:
    """Folders of kind clusters whose run has ended: kept, or killed."""
    return _without_owner(kind_state())


def kept_sites() -> list[Path]:
    """Folders of what ended runs left in somebody's cluster."""
    return _without_owner(site_state())


def _without_owner(state: Path) -> list[Path]:
    return [file.parent for file in sorted(state.glob(f"*/{_FILE}")) if not _owner_lives(file.parent)]


def sweep_kind() -> tuple[list[Path], list[str]]:
    """Delete the kind clusters whose run has ended: the folders of those that are gone, and what is wrong with the
    others."""
    return _swept(kept_kind_clusters(), delete_kind_cluster)


def sweep_sites(purge: Callable[[Path], None]) -> tuple[list[Path], list[str]]:
    """Remove by ``purge`` what ended runs left in somebody's clusters; as ``sweep_kind``."""
    return _swept(kept_sites(), purge)


def _swept(folders: list[Path], remove: Callable[[Path], None]) -> tuple[list[Path], list[str]]:
    gone, wrong = [], []
    for folder in folders:
        owned = RuntimeFolder.claim(folder)
        if owned is None:
            continue
        try:
            remove(folder)
        except RequirementError as error:
            wrong.append(f"{folder}: {error}")
            owned.abandon()
        else:
            owned.release()
            gone.append(folder)
    return gone, wrong


def delete_kind_cluster(folder: Path) -> None:
    """Delete the kind cluster of a runtime folder, though it is just being created.

    Raises RequirementError where that fails.
    """
    end_creation(folder)
    name = _kind_name(folder)
    argv = ["kind", "delete", "cluster", "--name", name, "--kubeconfig", str(folder / "kubeconfig")]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_DELETE_S, start_new_session=True
        )
    except FileNotFoundError as error:
        raise RequirementError(f"kind cluster {name} could not be deleted: kind is not on PATH") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RequirementError(f"kind cluster {name} could not be deleted: {error}") from error
    if done.returncode != 0:
        output = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise RequirementError(f"kind cluster {name} could not be deleted: {output}")


def _kind_name(folder: Path) -> str:
    """Return it as it is written down; a folder bears its cluster's name, too."""
    try:
        return str(json.loads((folder / KIND_FILE).read_text(encoding="utf-8"))["name"])
    except (OSError, ValueError, LookupError, TypeError):
        return folder.name


def _folders() -> Iterator[Path]:
    bases = {Path(base) for base in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), _MEMORY) if base}
    for base in sorted(bases):
        for file in sorted(base.glob(f"mews-*/{_FILE}")):
            with contextlib.suppress(FileNotFoundError):  # it is just being removed
                found = file.parent.lstat()
                # The folder's owner, not the file's: in a folder of somebody else's, owner.json may be a link to ours.
                if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
                    yield file.parent


def _owner_lives(folder: Path) -> bool:
    try:
        owner = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        return bool(owner["born"]) and born(int(owner["pid"])) == owner["born"]
    except FileNotFoundError:
        return True  # it is being removed by its owner
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _since(folder: Path) -> str:
    """Return when the first owner of the folder was born, as ``born`` says it; "" where that is not known."""
    try:
        owner = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        return str(owner.get("since") or owner["born"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return ""


def _belonging(folder: Path) -> Iterator[int]:
    return bearing(OWNER, str(folder), _since(folder))


def bearing(variable: str, value: str, since: str) -> Iterator[int]:
    """Processes that were started with that variable in their environment, and not before their owner was (``since``,
    as ``born`` says it): no other can be its. This process is left out."""
    mark = f"{variable}={value}".encode()
    for entry in sorted(Path("/proc").iterdir()):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            marked = mark in (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if marked and _is_no_older(born(int(entry.name)), since):
            yield int(entry.name)


def _is_no_older(begun: str, since: str) -> bool:
    return begun.isdigit() and since.isdigit() and int(begun) >= int(since)
