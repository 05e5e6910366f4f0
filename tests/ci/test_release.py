"""The rehearsal of a release: tag, notes, metadata and the list of files; all of it by night."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from ci import release
from mews import __version__
from mews.project import urls
from tests.package.conftest import UNREACHABLE

CHANGELOG = "# Changelog\n\n## Unreleased\n\n- new\n\n## 1.2.0\n\n- two\n\n### Fixed\n- three\n\n## 1.1.0\n"


def test_the_notes_are_the_versions_section_alone():
    assert release.notes(CHANGELOG, "1.2.0") == "- two\n\n### Fixed\n- three\n"
    for version, problem in (("1.1.0", "the section of 1.1.0 is empty"), ("1.2", "has no section ## 1.2")):
        with pytest.raises(release.ReleaseError, match=problem):
            release.notes(CHANGELOG, version)


def test_the_version_of_the_package_has_notes(capsys: pytest.CaptureFixture[str]):
    assert release.main(["--notes"]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 10


def test_a_tag_must_be_the_versions(capsys: pytest.CaptureFixture[str]):
    assert release.main(["--tag", f"v{__version__}"]) == 0
    assert release.main(["--tag", "v9.9.9"]) == 1
    assert capsys.readouterr().err == (
        f"tag v9.9.9: src/mews/__init__.py has version {__version__}, whose tag is v{__version__}\n"
    )


def wheel(folder: Path, page: str, **fields: str) -> Path:
    """A wheel with nothing but metadata."""
    known = {
        "Name": "falcon-mews",
        "Version": __version__,
        "License-Expression": "Apache-2.0",
        "Description-Content-Type": "text/markdown",
        **fields,
    }
    lines = [f"{key}: {value}" for key, value in known.items()]
    lines += [f"Project-URL: {label}, {address}" for label, address in urls().items()]
    file = folder / f"falcon_mews-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"falcon_mews-{__version__}.dist-info/METADATA", "\n".join([*lines, "", page]))
    return file


def test_metadata_that_an_index_shows_well_has_no_complaint(tmp_path: Path):
    file = wheel(tmp_path, "# Mews\n[docs](https://a.example)")
    assert list(release.complaints(file, release.metadata_of(file), __version__)) == []
    assert release.check(tmp_path, __version__, ("pure",)) == [f"falcon_mews-{__version__}.tar.gz: was not built"]


@pytest.mark.parametrize(
    ("page", "fields", "problem"),
    [
        ("[docs](docs/a.md)", {}, "description: docs/a.md: must be an absolute link"),
        ("![a](docs/a.png)", {}, "description: docs/a.png: must be an absolute link"),
        ("", {}, "has no description"),
        ("a", {"Version": "9"}, f"Version: '9': must be {__version__}"),
        ("a", {"Name": "mews"}, "Name: 'mews': must be falcon-mews"),
        (
            "a",
            {"Description-Content-Type": "text/x-rst"},
            "Description-Content-Type: 'text/x-rst': must be text/markdown",
        ),
    ],
)
def test_what_an_index_would_show_wrongly_is_named(tmp_path: Path, page: str, fields: dict[str, str], problem: str):
    file = wheel(tmp_path, page, **fields)
    found = list(release.complaints(file, release.metadata_of(file), __version__))
    assert found == [f"{file.name}: {problem}"]


def test_files_are_listed_with_size_and_hash(tmp_path: Path):
    file = wheel(tmp_path, "a")
    (tmp_path / "other.txt").write_text("a")
    [line] = release.upload_list(tmp_path)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert line == f"would upload {file.name}  {file.stat().st_size:,} bytes  sha256:{digest}"


@pytest.mark.wall
@pytest.mark.nightly
def test_all_files_of_a_release_are_built_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(release, "FOLDER", tmp_path / "release")
    code = release.main([])
    shown = capsys.readouterr()
    if code != 0 and any(word in shown.err for word in UNREACHABLE):
        pytest.skip("the package index cannot be reached")
    assert code == 0, shown.err
    listed = [line.split()[2] for line in shown.out.splitlines() if line.startswith("would upload ")]
    assert len(listed) == 4
    assert {name.rpartition("_")[2] for name in listed if "manylinux" in name} == {"64.whl", "aarch64.whl"}
