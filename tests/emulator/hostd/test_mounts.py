"""A mount is taken away without any program on PATH."""

import ctypes
import os

import pytest

from mews.emulator.hostd.mounts import unmount


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts without a program")
def test_root_needs_no_program_to_unmount(tmp_path, monkeypatch):
    point = os.fsencode(tmp_path)
    if ctypes.CDLL(None).mount(b"mews-test", point, b"tmpfs", 0, None) != 0:
        pytest.skip("the kernel lets this user mount nothing")
    assert os.path.ismount(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    unmount(tmp_path)
    assert not os.path.ismount(tmp_path)
    unmount(tmp_path)  # nothing is mounted: nothing to do
