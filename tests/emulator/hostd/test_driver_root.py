"""The device nodes of a driver root."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from mews.emulator.hostd.driver_root import DriverRoot
from mews.emulator.nvml import library


class Tree:
    """Of a host that has one GPU."""

    def names(self, path: str) -> list[str]:
        return ["nvidia0", "nvidiactl"] if path == "dev" else []


pytestmark = pytest.mark.skipif(not library.available(), reason="the NVML library is not compiled here")


def kinds(root: Path) -> dict[str, str]:
    return {each.name: "node" if stat.S_ISCHR(each.stat().st_mode) else "file" for each in (root / "dev").iterdir()}


def made(root: Path) -> dict[str, str]:
    tree: Any = Tree()
    DriverRoot(root, root / "nvml.state", root / "files", "570.86.15").write(tree)
    return kinds(root)


def test_files_that_stood_for_device_nodes_become_some_where_they_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("nvidia0", "nvidiactl", "nvidia-uvm-tools", "nvidia-modeset")
    with monkeypatch.context() as patch:

        def refused(*_: object) -> None:
            raise PermissionError

        patch.setattr(os, "mknod", refused)
        assert made(tmp_path) == dict.fromkeys(names, "file")
    try:
        os.mknod(tmp_path / "one", stat.S_IFCHR, os.makedev(195, 0))
    except PermissionError:
        pytest.skip("no device nodes can be made here")
    assert made(tmp_path) == dict.fromkeys(names, "node")
    before = (tmp_path / "dev" / "nvidia0").stat().st_ctime_ns
    assert made(tmp_path) == dict.fromkeys(names, "node")
    assert (tmp_path / "dev" / "nvidia0").stat().st_ctime_ns == before, "those that are real stay"
