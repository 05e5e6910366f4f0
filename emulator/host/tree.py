"""A host's files as a tree of values: sysfs, /proc/driver/nvidia, /dev and the kernel log (contract host.md section 2).

Nothing is stored: every node is computed from the host's state when it is looked at, and writing one acts on it. Where
a path led, and what was in the folders on the way, is remembered until that state changes: programs ask for the same
few files every second. Paths are
relative to the host's root folder: ``sys/bus/pci/devices/0000:44:00.0/vendor``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from mews.emulator.host.capabilities import capability_nodes
from mews.emulator.host.entries import File, Folder, Link, Node
from mews.emulator.host.host import Host
from mews.emulator.host.nvml_calls import NvmlCalls
from mews.emulator.host.operator import HostOperator
from mews.emulator.host.pending import PendingAction
from mews.emulator.host.proc import proc_folder
from mews.emulator.host.rdma import rdma_nodes
from mews.emulator.host.sysfs import Sysfs

_DEPTH = 40
_REMEMBERED = 4096
"""Paths at most whose end is remembered; a walk over a large host's files asks for more, each once."""


class HostTree:
    """The files of one host."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.operator = HostOperator(host)
        self.nvml_calls = NvmlCalls(host, self.operator)
        self._version = -1
        self._found: dict[tuple[str, bool], Node] = {}
        self._children: dict[Folder, Mapping[str, Node]] = {}
        self._leads_to: dict[Folder, Mapping[str, Node]] = {}
        sysfs = Sysfs(host, self.operator)
        self.root = Folder(
            lambda: {
                "sys": sysfs.folder(),
                "proc": proc_folder(host),
                "dev": Folder(self._nodes),
                "var": _fixed({"log": _fixed({"kern.log": File(lambda: host.events.log.text().encode())})}),
            }
        )

    def _nodes(self) -> Mapping[str, Node]:
        """/dev: empty files that can be opened; the numbers of the real ones (195:N) stand in /proc."""
        host, empty = self.host, b""
        gpus = [f for f in host.bus.functions() if f.has_node]
        nodes: dict[str, Node] = {}
        for function in gpus:
            minor = function.minor or 0

            def unlink(now_s: float, minor: int = minor) -> None:
                self.operator.unlink_node(minor, now_s)

            nodes[f"nvidia{minor}"] = File(lambda: empty, 0o666, unlink=unlink)
        if any(f.is_gpu and f.stage >= f.stage.DRIVER for f in host.bus.functions()) or gpus:
            nodes["nvidiactl"] = File(lambda: empty, 0o666)
            nodes["nvidia-uvm"] = File(lambda: empty, 0o666)
        return {**nodes, **rdma_nodes(host), **capability_nodes(host)}

    def find(self, path: str, *, follow: bool = True) -> Node:
        """Return the node at a path; with ``follow`` through links, also the last one.

        Raises FileNotFoundError, NotADirectoryError, as opening it would.
        """
        if self._version != self.host.versions.all or len(self._found) > _REMEMBERED:
            self._version = self.host.versions.all
            self._found.clear()
            self._children.clear()
            self._leads_to.clear()
        node = self._found.get((path, follow))
        if node is None:
            node = self._found[path, follow] = self._walk_to(_parts(path), follow, 0)[0]
        return node

    def _walk_to(self, parts: list[str], follow: bool, depth: int) -> tuple[Node, list[str]]:
        if depth > _DEPTH:
            raise FileNotFoundError("/".join(parts))
        node: Node = self.root
        for number, part in enumerate(parts):
            if not isinstance(node, Folder):
                raise NotADirectoryError("/".join(parts))
            found = self._child(node, part)
            if found is None:
                raise FileNotFoundError("/".join(parts))
            if isinstance(found, Link) and (follow or number < len(parts) - 1):
                there = _parts(posixpath.join(*parts[:number], found.target) if number else found.target)
                return self._walk_to([*there, *parts[number + 1 :]], follow, depth + 1)
            node = found
        return node, parts

    def _child(self, folder: Folder, name: str) -> Node | None:
        """Return the one of that name in a folder, which is looked into once until the host's state changes."""
        if folder.leads_to is not None:
            ways = self._leads_to.get(folder)
            if ways is None:
                ways = self._leads_to[folder] = folder.leads_to()
            if (found := ways.get(name)) is not None:
                return found
        children = self._children.get(folder)
        if children is None:
            children = self._children[folder] = folder.children()
        return children.get(name)

    def read(self, path: str) -> bytes:
        """Return a file's content.

        Raises FileNotFoundError, NotADirectoryError, IsADirectoryError.
        """
        node = self.find(path)
        if not isinstance(node, File):
            raise IsADirectoryError(path)
        return node.read()

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted.

        Raises FileNotFoundError, NotADirectoryError.
        """
        node = self.find(path)
        if not isinstance(node, Folder):
            raise NotADirectoryError(path)
        return sorted(node.children())

    def target(self, path: str) -> str:
        """Return what a symbolic link points to.

        Raises FileNotFoundError, ValueError where it is no link.
        """
        node = self.find(path, follow=False)
        if not isinstance(node, Link):
            raise ValueError(f"{path}: is not a link")
        return node.target

    def write(self, path: str, text: str, now_s: float) -> PendingAction:
        """Write into a file.

        Raises FileNotFoundError, PermissionError where nothing can be written, HostRefusalError.
        """
        node = self.find(path)
        if not isinstance(node, File) or node.write is None:
            raise PermissionError(path)
        return node.write(text, now_s)

    def unlink(self, path: str, now_s: float) -> None:
        """Remove a device node.

        Raises FileNotFoundError, PermissionError, NoSuchDeviceError.
        """
        node = self.find(path, follow=False)
        if not isinstance(node, File) or node.unlink is None:
            raise PermissionError(path)
        node.unlink(now_s)

    def walk(self) -> Iterator[tuple[str, Node]]:
        """Yield every node with its path, folders before what is in them; links are not followed."""
        waiting: list[tuple[str, Node]] = [("", self.root)]
        while waiting:
            path, node = waiting.pop()
            if path:
                yield path, node
            if isinstance(node, Folder):
                children = node.children()
                waiting += [
                    (f"{path}/{name}" if path else name, children[name]) for name in sorted(children, reverse=True)
                ]

    def as_dict(self) -> dict[str, bytes | str]:
        """Path -> content of files (bytes) and target of links (text): the whole tree at one moment."""
        found: dict[str, bytes | str] = {}
        for path, node in self.walk():
            if isinstance(node, File):
                found[path] = node.read()
            elif isinstance(node, Link):
                found[path] = node.target
        return found


def _fixed(children: Mapping[str, Node]) -> Folder:
    return Folder(lambda: children)


def _parts(path: str) -> list[str]:
    return [part for part in posixpath.normpath("/" + path).split("/") if part]
