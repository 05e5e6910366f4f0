"""What the library exports, and what it needs."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import mews.emulator.nvml
from mews.emulator.nvml.library import library_path

NAMES = (Path(mews.emulator.nvml.__file__).parent / "symbols.txt").read_text().split()


def objdump():
    tool = shutil.which("objdump")
    if tool is None:
        pytest.skip("objdump is not installed")
    return subprocess.run([tool, "-T", library_path()], capture_output=True, text=True, check=True).stdout


def test_every_name_of_the_list_is_there(host):
    library = ctypes.CDLL(str(host.folder / "libnvidia-ml.so.1"))
    assert [name for name in NAMES if not hasattr(library, name)] == []


def test_the_list_is_sorted_and_without_doubles():
    assert sorted(set(NAMES)) == NAMES


def test_nothing_else_is_visible(host):
    defined = re.findall(r"^[0-9a-f]+ .* \.text\s+[0-9a-f]+ .*?(\w+)$", objdump(), re.MULTILINE)
    assert sorted(set(defined) - {"_init", "_fini"}) == NAMES


def test_old_systems_can_load_it(host):
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9.]+)", objdump())}
    assert versions
    assert max(versions) <= (2, 17)


def test_calls_that_are_only_names_are_not_supported_and_write_nothing(host, monkeypatch):
    host.show()
    monkeypatch.setenv("MEWS_NVML_STATE", str(host.state))  # the loader knows one library of this file
    library = ctypes.CDLL(str(host.folder / "libnvidia-ml.so.1"))
    source = (Path(mews.emulator.nvml.__file__).parent / "c" / "lib" / "unsupported.c").read_text()
    names = re.findall(r"^UNSUPPORTED\((\w+)\)$", source, re.MULTILINE)
    buffer = ctypes.create_string_buffer(b"\xa5" * 4096, 4096)
    at = ctypes.addressof(buffer)
    places = [ctypes.c_void_p(at + 256 * slot) for slot in range(6)]
    assert {getattr(library, name)(*places) for name in names} == {1}
    assert library.nvmlInit_v2() == 0
    assert {getattr(library, name)(*places) for name in names} == {3}
    assert library.nvmlShutdown() == 0
    assert buffer.raw == b"\xa5" * 4096
