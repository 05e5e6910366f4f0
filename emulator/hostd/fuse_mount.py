"""The hosts' files through FUSE: every read computes, every write acts and may block or fail with its errno.

Served from the process of the hosts, which never reads its own mount. ``/dev/nvidiaN`` are plain files here (a FUSE
mount of an ordinary user has no device nodes); whoever has one open holds the GPU.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from mews.emulator.host.entries import File, Folder, Link, Node
from mews.emulator.host.errors import HostRefusalError
from mews.emulator.host.holders import Holder
from mews.emulator.host.tree import HostTree
from mews.emulator.hostd.mounts import unmount
from mews.emulator.hostd.nvml_files import program_name
from mews.emulator.hostd.rack import HostRack

MAX_THREADS = 200
"""Each write that waits holds a thread of libfuse."""

_MOUNT_S = 10.0


def lacking() -> str | None:
    """Return why there can be no FUSE mount here, None if there can."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse is not there, or not for this user"
    if shutil.which("fusermount3") is None and os.geteuid() != 0:
        return "fusermount3 is not installed (Debian: apt install fuse3)"
    try:
        import mfusepy
    except (ImportError, OSError) as error:
        return (
            f"the package mfusepy or libfuse is not there: {error} "
            "(pip install 'falcon-mews[fuse]', apt install libfuse3-3)"
        )
    return None if mfusepy.fuse_version_major == 3 else "libfuse is older than 3"


class FuseMount:
    """All hosts below one mount point, a folder each."""

    def __init__(self, rack: HostRack, point: Path) -> None:
        self._point = point
        self._operations = _Operations(rack)
        self._thread = threading.Thread(target=self._serve, name="fuse", daemon=True)
        self._ended = threading.Event()

    def start(self) -> None:
        """Mount it.

        Raises OSError where that does not work.
        """
        unmount(self._point)
        self._point.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        waited = threading.Event()
        for _ in range(int(_MOUNT_S / 0.01)):
            if os.path.ismount(self._point):
                return
            if self._ended.is_set():
                break
            waited.wait(0.01)
        raise OSError(errno.EIO, "cannot mount a FUSE file system", str(self._point))

    def _serve(self) -> None:
        import mfusepy

        try:
            mfusepy.FUSE(
                self._operations,
                str(self._point),
                foreground=True,
                direct_io=True,
                attr_timeout=0,
                entry_timeout=0,
                negative_timeout=0,
                max_threads=MAX_THREADS,
                fsname="mews-hosts",
            )
        except RuntimeError:
            self._ended.set()

    def stop(self) -> None:
        """Unmount it; who still has files open gets errors."""
        unmount(self._point)
        self._thread.join(2.0)


class _Operations:
    """What libfuse asks; ``mfusepy`` calls these by name."""

    use_ns = True

    def __init__(self, rack: HostRack) -> None:
        self._rack = rack
        self._handles = count(1)
        self._owner = {"st_uid": os.getuid(), "st_gid": os.getgid()}

    @contextmanager
    def _at(self, path: str) -> Iterator[tuple[HostTree | None, str]]:
        _, _, below = path.partition("/")
        name, _, rest = below.partition("/")
        if not name:
            yield None, ""
        elif name not in self._rack.names():
            raise OSError(errno.ENOENT, path)
        else:
            with self._rack.looking(name) as tree:
                try:
                    yield tree, rest
                except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
                    raise OSError(error.errno or _ERRNOS[type(error)], path) from error

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        with self._at(path) as (tree, rest):
            node: Node = Folder(dict) if tree is None else tree.find(rest, follow=False)
            return {**_mode(node), **self._owner, "st_mtime": 0, "st_atime": 0, "st_ctime": 0}

    def readdir(self, path: str, fh: int) -> list[str]:
        with self._at(path) as (tree, rest):
            names = list(self._rack.names()) if tree is None else tree.names(rest)
            return [".", "..", *names]

    def readlink(self, path: str) -> str:
        with self._at(path) as (tree, rest):
            if tree is None:
                raise OSError(errno.EINVAL, path)
            return tree.target(rest)

    def open(self, path: str, flags: int) -> int:
        handle = next(self._handles)
        with self._at(path) as (tree, rest):
            if tree is None:
                raise OSError(errno.EISDIR, path)
            tree.find(rest)
            minor = _minor(rest)
            uuids = [f.device.uuid for f in tree.host.bus.functions() if f.has_node and f.minor == minor]
        if uuids:
            self._hold(path, handle, tuple(uuids))
        return handle

    def _hold(self, path: str, handle: int, uuids: tuple[str, ...]) -> None:
        import mfusepy

        pid = mfusepy.fuse_get_context()[2]
        with self._rack.acting() as now_s:
            holder = Holder(f"fd/{handle}", uuids, pid=pid, name=program_name(pid))
            self._rack.host(path.split("/")[1]).hold(holder, now_s)

    def release(self, path: str, fh: int) -> int:
        if _minor(path.split("/", 2)[-1]) is not None:
            with self._rack.acting() as now_s:
                self._rack.host(path.split("/")[1]).release(f"fd/{fh}", now_s)
        return 0

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        with self._at(path) as (tree, rest):
            return b"" if tree is None else tree.read(rest)[offset : offset + size]

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        name, _, rest = path[1:].partition("/")
        if _minor(rest) is not None or rest.startswith("dev/"):
            return len(data)
        try:
            with self._rack.acting() as now_s:
                pending = self._rack.tree(name).write(rest, data.decode("utf-8", "replace"), now_s)
            if not self._rack.wait(pending):
                raise OSError(errno.EINTR, path)
        except HostRefusalError as refusal:
            raise OSError(refusal.errno, str(refusal)) from refusal
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            raise OSError(_ERRNOS[type(error)], path) from error
        return len(data)

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        return 0

    def unlink(self, path: str) -> int:
        name, _, rest = path[1:].partition("/")
        try:
            with self._rack.acting() as now_s:
                self._rack.tree(name).unlink(rest, now_s)
        except HostRefusalError as refusal:
            raise OSError(errno.ENOENT, str(refusal)) from refusal
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            raise OSError(_ERRNOS[type(error)], path) from error
        return 0


_ERRNOS: dict[type[OSError], int] = {
    FileNotFoundError: errno.ENOENT,
    NotADirectoryError: errno.ENOTDIR,
    PermissionError: errno.EACCES,
}


def _minor(path: str) -> int | None:
    """Return the N of ``dev/nvidiaN``."""
    number = path.removeprefix("dev/nvidia")
    return int(number) if path.startswith("dev/nvidia") and number.isdecimal() else None


def _mode(node: Node) -> dict[str, int]:
    match node:
        case Folder():
            return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2}
        case Link(target):
            return {"st_mode": stat.S_IFLNK | 0o777, "st_nlink": 1, "st_size": len(target)}
        case File():
            size = len(node.read()) if node.size is None else node.size
            return {"st_mode": stat.S_IFREG | node.mode, "st_nlink": 1, "st_size": size}
