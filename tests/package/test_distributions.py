"""What the sdist and the wheels have in them."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from mews.harness.package import sources
from tests.package.conftest import ROOT, Distributions

pytestmark = pytest.mark.wall  # builds and installs: seconds that a quick loop is spared

BINARIES = {f"mews/emulator/nvml/bin/{name}" for name in ("libnvidia-ml.so.1", "nvidia-smi", "libcuda.so.1")}


def test_the_sdist_has_all_that_a_wheel_is_built_from_and_what_one_tests_it_with(distributions: Distributions):
    with tarfile.open(distributions.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT)
    if tracked.returncode != 0:
        pytest.skip("this is no git checkout")
    left_out = {name for name in set(tracked.stdout.splitlines()) - names if (ROOT / name).exists()}
    assert {name for name in left_out if not name.startswith(".ci/")} == set()


def test_neither_has_a_symbolic_link(distributions: Distributions):
    with tarfile.open(distributions.sdist) as archive:
        assert [member.name for member in archive.getmembers() if not (member.isfile() or member.isdir())] == []
    entries = zipfile.ZipFile(distributions.wheel).infolist()
    assert [entry.filename for entry in entries if (entry.external_attr >> 28) == 0xA] == []


def test_the_wheels_only_top_level_names_are_mews_and_what_guards_it_and_the_whole_package_is_in_it(
    distributions: Distributions,
):
    names = set(zipfile.ZipFile(distributions.wheel).namelist())
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"mews", "falcon_mews"}
    inside = {name for name in names if name.startswith("mews/")}
    assert inside - BINARIES == {f"mews/{name}" for name, _ in sources()}


def test_the_wheel_carries_the_compiled_library_and_a_tag_that_an_index_accepts(distributions: Distributions):
    assert re.fullmatch(r"falcon_mews-[\d.]+-py3-none-manylinux_2_17_(x86_64|aarch64)\.whl", distributions.wheel.name)
    entries = {info.filename: info.external_attr >> 16 for info in zipfile.ZipFile(distributions.wheel).infolist()}
    assert entries.keys() >= BINARIES
    assert entries["mews/emulator/nvml/bin/nvidia-smi"] & 0o111


def test_the_compiled_library_needs_no_later_glibc_than_the_tag_says(distributions: Distributions, tmp_path: Path):
    archive = zipfile.ZipFile(distributions.wheel)
    for name in sorted(BINARIES):
        versions = {tuple(map(int, found.split(b"."))) for found in re.findall(rb"GLIBC_([\d.]+)", archive.read(name))}
        # libcuda's stub calls nothing: some linkers give it no version to need
        assert versions or name.endswith("/libcuda.so.1"), name
        assert max(versions, default=(0,)) <= (2, 17), name


def test_auditwheel_agrees_with_the_tag(distributions: Distributions):
    if find_spec("auditwheel") is None:
        pytest.skip("auditwheel is not installed")
    command = [sys.executable, "-m", "auditwheel", "show", str(distributions.wheel)]
    done = subprocess.run(command, capture_output=True, text=True)
    tag = distributions.wheel.stem.rpartition("-")[2]
    assert f'following platform tag: "{tag}"' in " ".join(done.stdout.split()), done.stdout + done.stderr


def build(folder: Path, kind: str) -> subprocess.CompletedProcess[str]:
    """A wheel of the repository in this interpreter's environment, nothing fetched."""
    pytest.importorskip("hatchling", reason="the build backend is not installed")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={"MEWS_WHEEL": kind})


def test_a_pure_wheel_has_the_sources_alone_and_goes_everywhere(tmp_path: Path):
    done = build(tmp_path, "pure")
    assert done.returncode == 0, done.stderr
    [wheel] = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert not names & BINARIES
    assert "mews/emulator/nvml/c/nvml.h" in names


def test_a_wheel_for_a_machine_that_is_none_is_refused(tmp_path: Path):
    done = build(tmp_path, "vax")
    assert done.returncode != 0
    assert done.stderr.splitlines()[-1] == "MEWS_WHEEL=vax: must be one of x86_64, aarch64, pure, or unset"
    assert list(tmp_path.glob("*.whl")) == []
