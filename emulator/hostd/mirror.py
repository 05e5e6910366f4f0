"""The hosts' files as ordinary ones, where FUSE cannot be had: written when the state changes, and watched.

A text written into a file that acts is noticed within ``LOOK_S``, acts, and is taken out again. What must block or
fail cannot: the writer has long gone on.
"""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from mews.emulator.clock import unix_s
from mews.emulator.host.entries import File, Folder, Link
from mews.emulator.host.errors import HostRefusalError
from mews.emulator.host.tree import HostTree
from mews.emulator.hostd.rack import HostRack

LOOK_S = 0.05
"""Real seconds between two looks at the files that act."""
GRAIN_S = 0.1
"""No file system's times are coarser than this (ext4 and tmpfs: a tick of the kernel, 10 ms at most)."""


class Mirror:
    """A folder with the files of all hosts, a folder each."""

    def __init__(self, rack: HostRack, root: Path) -> None:
        self._rack = rack
        self._root = root
        self._written: dict[str, dict[str, bytes | str | None]] = {name: {} for name in rack.names()}
        self._acting: dict[str, dict[str, bytes]] = {name: {} for name in rack.names()}
        self._seen: dict[Path, tuple[int, int, int]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="mirror", daemon=True)
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)

    def start(self) -> None:
        """Watch the files that act."""
        self._thread.start()

    def stop(self) -> None:
        """End the watch; the files stay as they are."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def write(self, name: str, tree: HostTree) -> None:
        """Make the host's folder show its state; what did not change is not touched."""
        root, old = self._root / name, self._written[name]
        root.mkdir(exist_ok=True)
        new: dict[str, bytes | str | None] = {}
        acting: dict[str, bytes] = {}
        for path, node in tree.walk():
            new[path] = None if isinstance(node, Folder) else node.target if isinstance(node, Link) else node.read()
            if isinstance(node, File) and (node.write is not None or node.unlink is not None):
                acting[path] = node.read()
            if path not in old or old[path] != new[path]:
                _put(root / path, node, new[path])
        for path in sorted(old.keys() - new.keys(), reverse=True):
            _drop(root / path)
        self._written[name], self._acting[name] = new, acting

    def _watch(self) -> None:
        while not self._stop.wait(LOOK_S):
            for name in self._rack.names():
                for path, idle in list(self._acting[name].items()):
                    self._look(name, path, idle)

    def _look(self, name: str, path: str, idle: bytes) -> None:
        file = self._root / name / path
        try:
            if not self._touched(file):
                return
            written = file.read_bytes()
        except FileNotFoundError:
            if path.startswith("dev/"):
                self._unlink(name, path)
            return
        except OSError:
            return
        if written == idle or not written.strip() or path.startswith("dev/"):
            return
        try:
            with self._rack.acting() as now_s:
                self._written[name].pop(path, None)
                self._rack.tree(name).write(path, written.decode("utf-8", "replace"), now_s)
        except (HostRefusalError, OSError):
            pass
        with self._rack.acting():
            node = self._rack.tree(name)
            # What stands there now may be the next text of somebody who saw this one act.
            if self._acting[name].get(path) is not None and _content(file) == written:
                self._written[name].pop(path, None)
                self.write(name, node)

    def _touched(self, file: Path) -> bool:
        """Return whether a file may hold something else than when it was last looked at; a write within the clock's
        grain of the look before would show the same time, so what is as young as that counts as touched."""
        found = file.stat()
        mark = (found.st_ino, found.st_mtime_ns, found.st_size)
        if self._seen.get(file) == mark:
            return False
        if unix_s() - found.st_mtime > GRAIN_S:
            self._seen[file] = mark
        return True

    def _unlink(self, name: str, path: str) -> None:
        try:
            with self._rack.acting() as now_s:
                self._written[name].pop(path, None)
                self._rack.tree(name).unlink(path, now_s)
        except (HostRefusalError, OSError):
            return


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


def _put(path: Path, node: File | Folder | Link, content: bytes | str | None) -> None:
    if isinstance(node, Folder):
        path.mkdir(exist_ok=True)
        return
    fresh = path.with_name(f".{path.name}.new")
    if isinstance(node, Link):
        fresh.symlink_to(str(content))
    else:
        fresh.write_bytes(content if isinstance(content, bytes) else b"")
        fresh.chmod(node.mode | (0o600 if node.write is not None else 0o400))
    fresh.replace(path)


def _drop(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
