"""Files of a volume change all at once, as upstream's pkg/volume/util/atomic_writer_test.go has it."""

from __future__ import annotations

import os
from pathlib import Path

from mews.kube.emulated.kubelet.volumes.atomic_writer import VolumeFile, write_contents


def files(**texts: str) -> dict[str, VolumeFile]:
    return {name.replace("__", "/"): VolumeFile(text.encode(), 0o640) for name, text in texts.items()}


def seen(folder: Path) -> dict[str, str]:
    """What a reader finds that follows links, hidden names left out."""
    shown = (path for top in folder.iterdir() if not top.name.startswith("..") for path in (top, *top.rglob("*")))
    return {str(path.relative_to(folder)): path.read_text() for path in shown if path.is_file()}


def test_files_are_seen_through_one_link(tmp_path: Path) -> None:
    assert write_contents(tmp_path / "v", files(a="1", deep__b="2"))
    assert seen(tmp_path / "v") == {"a": "1", "deep/b": "2"}
    assert os.readlink(tmp_path / "v" / "a") == "..data/a"
    assert os.readlink(tmp_path / "v" / "deep") == "..data/deep"
    assert (tmp_path / "v" / "a").stat().st_mode & 0o777 == 0o640


def test_an_update_replaces_that_link_and_leaves_nothing_old(tmp_path: Path) -> None:
    write_contents(tmp_path, files(a="1", gone="2"))
    before = os.readlink(tmp_path / "..data")
    assert write_contents(tmp_path, files(a="3", new="4"))
    assert seen(tmp_path) == {"a": "3", "new": "4"}
    assert os.readlink(tmp_path / "..data") != before
    assert not (tmp_path / before).exists()
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("..")) == ["a", "new"]
    assert not (tmp_path / "..data_tmp").is_symlink()


def test_nothing_is_touched_where_nothing_changed(tmp_path: Path) -> None:
    write_contents(tmp_path, files(a="1"))
    before = os.readlink(tmp_path / "..data")
    assert not write_contents(tmp_path, files(a="1"))
    assert os.readlink(tmp_path / "..data") == before


def test_another_mode_alone_is_a_change(tmp_path: Path) -> None:
    write_contents(tmp_path, files(a="1"))
    assert write_contents(tmp_path, {"a": VolumeFile(b"1", 0o400)})
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o400


def test_who_holds_the_old_folder_open_reads_old_files_to_the_end(tmp_path: Path) -> None:
    write_contents(tmp_path, files(a="1"))
    with (tmp_path / "a").open() as file:
        write_contents(tmp_path, files(a="2"))
        assert file.read() == "1"


def test_a_volume_may_be_empty(tmp_path: Path) -> None:
    assert write_contents(tmp_path / "v", {})
    assert seen(tmp_path / "v") == {}
