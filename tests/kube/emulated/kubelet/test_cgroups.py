"""Where control groups can be made, and what is written to them; that the kernel keeps limits: tests/harness."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mews.kube.emulated.kubelet.cgroups import CgroupPlaces, Cgroups, lacking, places

LIMITS = {"limits": {"memory": "64Mi", "cpu": "250m"}}


def group(folder: Path, *, passes_on: str | None = None) -> Path:
    """A folder as the kernel shows one."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.procs").touch()
    if passes_on is not None:
        (folder / "cgroup.subtree_control").write_text(passes_on)
    return folder


def unified(tmp_path: Path, root: str = "/") -> str:
    return f"30 23 0:26 {root} {tmp_path} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"


def test_of_version_2_the_nearest_group_that_passes_on_its_controllers_is_taken(tmp_path: Path) -> None:
    group(tmp_path, passes_on="cpu memory pids")
    app = group(tmp_path / "user.slice/user@1000.service/app.slice", passes_on="cpu memory pids")
    group(app / "terminal.scope", passes_on="")
    found = places(unified(tmp_path), "0::/user.slice/user@1000.service/app.slice/terminal.scope\n")
    assert found == CgroupPlaces({"memory": app, "cpu": app}, True)


def test_a_group_that_lacks_a_controller_is_passed_over_and_none_above_the_mount_is_taken(tmp_path: Path) -> None:
    top = group(tmp_path / "top", passes_on="memory")
    group(tmp_path, passes_on="cpu memory")
    group(top / "own", passes_on="")
    assert places(unified(top), "0::/own\n") == CgroupPlaces({}, False)


def test_a_container_sees_a_part_of_all_groups(tmp_path: Path) -> None:
    group(tmp_path, passes_on="cpu memory")
    group(tmp_path / "own", passes_on="")
    found = places(unified(tmp_path, "/docker/1"), "0::/docker/1/own\n")
    assert found.folders == {"memory": tmp_path, "cpu": tmp_path}


def test_of_version_1_each_controller_has_a_folder(tmp_path: Path) -> None:
    memory, cpu = group(tmp_path / "memory/own"), group(tmp_path / "cpu,cpuacct")
    mounts = f"1 0 0:1 / {tmp_path}/memory rw - cgroup cgroup rw,memory\n"
    mounts += f"2 0 0:2 / {tmp_path}/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    assert places(mounts, "4:memory:/own\n1:cpu,cpuacct:/\n0::/\n") == CgroupPlaces(
        {"memory": memory, "cpu": cpu}, False
    )
    assert places(mounts, "4:memory:/gone\n1:cpu,cpuacct:/\n").folders == {"cpu": cpu}


def test_limits_are_written_as_a_kubelet_writes_them(tmp_path: Path) -> None:
    made = Cgroups("mews-x", CgroupPlaces({"memory": tmp_path, "cpu": tmp_path}, True)).make("one", LIMITS)
    assert made is not None
    folder = tmp_path / "mews-x/one"
    assert made.entries == (str(folder / "cgroup.procs"),)
    assert (folder.parent / "cgroup.subtree_control").read_text() == "+memory +cpu"
    said = {name: (folder / name).read_text() for name in ("cpu.max", "memory.max", "memory.swap.max")}
    assert said == {"cpu.max": "25000 100000", "memory.max": "67108864", "memory.swap.max": "0"}
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 0\n")
    assert not made.is_killed_for_memory()
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
    assert made.is_killed_for_memory()
    made.limit({"requests": {"cpu": "1"}})
    assert [(folder / name).read_text() for name in ("cpu.max", "memory.max")] == ["max 100000", "max"]


@pytest.mark.parametrize(("amount", "quota"), [("100m", 10_000), ("1", 100_000), ("1m", 1_000), ("2500m", 250_000)])
def test_a_quota_is_never_too_small_for_the_kernel(tmp_path: Path, amount: str, quota: int) -> None:
    two = {"memory": tmp_path / "memory", "cpu": tmp_path / "cpu"}
    for folder in two.values():
        folder.mkdir()
    Cgroups("mews-x", CgroupPlaces(two, False)).make("one", {"limits": {"cpu": amount}})
    assert (tmp_path / "cpu/mews-x/one/cpu.cfs_quota_us").read_text() == str(quota)


def test_a_container_without_resources_has_none(tmp_path: Path) -> None:
    groups = Cgroups("mews-x", CgroupPlaces({"memory": tmp_path, "cpu": tmp_path}, True))
    assert groups.make("one", {}) is None
    assert Cgroups("mews-x", CgroupPlaces({}, False)).make("one", LIMITS) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(bool(lacking()), reason=lacking())
def test_a_pod_may_be_given_more_than_mews_has() -> None:
    """Version 1 refuses a quota above that of the folder around it; a kubelet's node has no such folder."""
    groups = Cgroups(f"mews-test-{os.getpid()}")
    try:
        first = groups.make("first", {"requests": {"cpu": "1"}})
        assert first is not None
        found = [Path(entry).parents[1] / "cpu.cfs_quota_us" for entry in first.entries]
        around = next((file for file in found if file.exists()), None)
        if around is None:
            pytest.skip("version 2 refuses none")
        around.write_text("50000")
        assert groups.make("more", {"limits": {"cpu": "2"}}) is not None
        assert (around.parent / "more/cpu.cfs_quota_us").read_text().strip() == "-1"
    finally:
        groups.close()
    assert not around.parent.exists()
