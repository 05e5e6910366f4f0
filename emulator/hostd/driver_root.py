"""A host's folder as a driver root: libraries, programs, CDI folders, and device nodes that follow the host's state.

Character devices where this process may make some (``mknod``), else empty files. Nothing on this machine answers behind
them: they are there to be found.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from mews.emulator.host.capabilities import NODES as CAPABILITIES
from mews.emulator.host.proc import CAPABILITIES_MAJOR, MAJOR, UVM_MAJOR
from mews.emulator.host.rdma import device_numbers
from mews.emulator.host.tree import HostTree
from mews.emulator.nvml.library import install_driver_root

RDMA = "infiniband"
"""The folder of ``/dev`` with the nodes of RDMA devices."""

FOLDERS = (RDMA, CAPABILITIES)
"""Those of ``/dev`` that have nodes of their own."""

CONTROL_MINORS = {"nvidiactl": 255, "nvidia-modeset": 254}


class DriverRoot:
    """The driver root of one host; ``files`` is the folder with its ``sys`` and ``proc``.

    Raises CompilerMissingError, CompileError, OSError.
    """

    def __init__(self, root: Path, state: Path, files: Path, driver: str) -> None:
        self.root = root
        install_driver_root(root, state, driver)
        (root / "dev").mkdir(exist_ok=True)
        for path in (root / "dev").rglob("*"):
            if path.is_file():  # of a process that could make no device nodes
                path.unlink()
        for name in ("sys", "proc"):
            (root / name).unlink(missing_ok=True)
            (root / name).symlink_to(files / name)

    def write(self, tree: HostTree) -> None:
        """Make the device nodes those of the host."""
        folder, names = self.root / "dev", tree.names("dev")
        inside = [f"{one}/{name}" for one in FOLDERS if one in names for name in tree.names(f"dev/{one}")]
        wanted = {*names, *inside} - {*FOLDERS}
        if "nvidiactl" in wanted:
            wanted |= {"nvidia-uvm-tools", "nvidia-modeset"}
        for one in FOLDERS:
            (folder / one).mkdir(exist_ok=True)
        there = {f"{one}/{name}" for one in FOLDERS for name in os.listdir(folder / one)}
        there |= {*os.listdir(folder)} - {*FOLDERS}
        for name in there - wanted:
            (folder / name).unlink(missing_ok=True)
        for name in sorted(wanted - there):
            _make(folder / name, _number(name))
        for one in FOLDERS:
            if one not in names:
                (folder / one).rmdir()


def _number(name: str) -> int:
    if name.startswith(RDMA):
        return os.makedev(*device_numbers(name.removeprefix(f"{RDMA}/")))
    if name.startswith(f"{CAPABILITIES}/"):
        return os.makedev(CAPABILITIES_MAJOR, int(name.removeprefix(f"{CAPABILITIES}/nvidia-cap")))
    if name.startswith("nvidia-uvm"):
        return os.makedev(UVM_MAJOR, int(name == "nvidia-uvm-tools"))
    minor = CONTROL_MINORS.get(name)
    return os.makedev(MAJOR, int(name.removeprefix("nvidia")) if minor is None else minor)


def _make(path: Path, number: int) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, number)
    except PermissionError:
        path.touch()
    with contextlib.suppress(PermissionError):
        path.chmod(0o666)
