"""Unix sockets as files: their length limit, their age, and sockets that survive their server.

gRPC unlinks the path it was bound to when its server stops, whoever owns that path by then. So servers bind beside
and rename: the name stays as long as its owner wants.
"""

from __future__ import annotations

import itertools
import os
import stat
from pathlib import Path

from mews.kube.deviceplugin.errors import SocketPathTooLongError

KUBELET_SOCKET = "kubelet.sock"
"""In a node's folders of device plugins and of pod resources."""
LIMIT_BYTES = 107
MODE = 0o755

_count = itertools.count()


def url(path: Path) -> str:
    """gRPC's name of the socket.

    Raises SocketPathTooLongError.
    """
    length = len(os.fsencode(path.absolute()))
    if length > LIMIT_BYTES:
        raise SocketPathTooLongError(
            f"socket path {str(path.absolute())!r} has {length} bytes, at most {LIMIT_BYTES} are possible: "
            "choose a shorter folder"
        )
    return f"unix:{path.absolute()}"


def beside(path: Path) -> Path:
    """Return a short name in the same folder, to bind before ``publish``."""
    return path.with_name(f".{os.getpid():x}-{next(_count)}")


def publish(bound: Path, path: Path) -> tuple[int, int]:
    """Give the bound socket its name, replacing a leftover; what identifies it from now on."""
    bound.chmod(MODE)
    bound.replace(path)
    identity = identify(path)
    if identity is None:
        raise FileNotFoundError(path)
    return identity


def identify(path: Path) -> tuple[int, int] | None:
    """(mtime in ns, inode) of the socket there, None without one. Inode numbers alone are reused."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return (found.st_mtime_ns, found.st_ino) if stat.S_ISSOCK(found.st_mode) else None


def remove_own(path: Path, identity: tuple[int, int]) -> None:
    """Remove the socket if it is still that one."""
    if identify(path) == identity:
        path.unlink(missing_ok=True)


def remove_all(folder: Path) -> None:
    """Remove all sockets of a folder, and no other file, as the kubelet's start does."""
    for path in sorted(folder.iterdir()):
        if identify(path) is not None:
            path.unlink(missing_ok=True)
