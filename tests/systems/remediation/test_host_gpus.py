"""What the remediation reads of a host's processes, on a folder that is laid out as the kernel lays out /proc."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from mews.kube.system.files import FolderTree
from mews.systems.remediation.host_gpus import HostGpu, HostGpus

POD = "0b6e4d3e-1111-2222-3333-444455556666"
GPU = HostGpu("0000:20:00.0", "0", True)


class _Closing(FolderTree):
    """A host on which a process closes a file after its descriptors were listed."""

    async def names(self, path: str) -> Sequence[str]:
        found = await super().names(path)
        return ["1", *found] if path.endswith("/fd") else found


def opened(root: Path, pid: str, *targets: str) -> None:
    (root / "proc" / pid / "fd").mkdir(parents=True)
    (root / "proc" / pid / "cgroup").write_text(f"0::/kubepods/besteffort/pod{POD}/c\n")
    for number, target in enumerate(targets, 5):
        os.symlink(target, root / "proc" / pid / "fd" / str(number))


def test_a_file_that_was_just_closed_hides_none_that_a_process_still_has_open(tmp_path: Path) -> None:
    opened(tmp_path, "100", "/dev/null", "/dev/nvidia0")
    users = asyncio.run(HostGpus(_Closing(tmp_path)).users([GPU]))
    assert users == {GPU.bdf: (POD,)}


def test_a_process_that_has_ended_has_nothing_open(tmp_path: Path) -> None:
    opened(tmp_path, "100", "/dev/nvidia0")
    (tmp_path / "proc" / "99").mkdir()
    assert asyncio.run(HostGpus(FolderTree(tmp_path)).users([GPU])) == {GPU.bdf: (POD,)}
