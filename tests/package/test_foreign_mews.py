"""Another project's distribution owns the import name ``mews``: one line says so, however the two were installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.package.conftest import ROOT

FOREIGN = {
    "mews/__init__.py": "RAISES = 1 / 1\n",
    "mews/theirs.py": "",
    "mews-1.1.3.dist-info/METADATA": "Metadata-Version: 2.1\nName: mews\nVersion: 1.1.3\n",
    "mews-1.1.3.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
OURS = {
    "falcon_mews-0.dist-info/METADATA": "Metadata-Version: 2.1\nName: falcon-mews\nVersion: 0\n",
    "falcon_mews-0.dist-info/WHEEL": FOREIGN["mews-1.1.3.dist-info/WHEEL"],
}
AGAIN = "pip install --force-reinstall --no-deps falcon-mews"
BOTH = f"mews also owns the import name mews: pip uninstall mews, then {AGAIN}\n"


def wheel(folder: Path, files: dict[str, str]) -> Path:
    """A wheel of those files, with its record."""
    [info] = {name.partition("/")[0] for name in files if ".dist-info/" in name}
    made = folder / f"{info.removesuffix('.dist-info')}-py3-none-any.whl"
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(name, content)
    return made


def our_files() -> dict[str, str]:
    """As much of our wheel as the start needs, with a ``main`` that prints."""
    return {
        **OURS,
        "mews/__init__.py": (ROOT / "src/mews/__init__.py").read_text(),
        "mews/harness/__init__.py": "",
        "mews/harness/__main__.py": "def main():\n    print('started')\n",
        "falcon_mews/__init__.py": (ROOT / "src/falcon_mews/__init__.py").read_text(),
    }


class Site:
    """A folder into which pip installs wheels, in the order of the calls."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "site"
        self._made = folder

    def install(self, files: dict[str, str]) -> None:
        with zipfile.ZipFile(wheel(self._made, files)) as archive:
            archive.extractall(self.folder)  # as pip does: files that are there are replaced

    def start(self, *more: Path) -> subprocess.CompletedProcess[str]:
        """What the console script runs."""
        paths = [str(self.folder), *map(str, more)]
        code = f"import sys; sys.path[:0] = {paths!r}; from falcon_mews import main; main()"
        return subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_alone_ours_starts(site: Site):
    site.install(our_files())
    done = site.start()
    assert (done.returncode, done.stdout, done.stderr) == (0, "started\n", "")


@pytest.mark.parametrize("order", ["theirs last", "ours last"])
def test_both_installed_is_one_line_in_either_order(site: Site, order: str):
    for files in (our_files(), FOREIGN) if order == "theirs last" else (FOREIGN, our_files()):
        site.install(files)
    done = site.start()
    assert (done.returncode, done.stdout, done.stderr) == (3, "", BOTH)


def test_an_editable_install_of_ours_beside_theirs_is_the_same_line(site: Site, tmp_path: Path):
    """Theirs comes first on the path; our sources come by a .pth file."""
    checkout = Site(tmp_path / "checkout")
    checkout._made.mkdir()
    checkout.install({name: text for name, text in our_files().items() if ".dist-info/" not in name} | OURS)
    site.install(FOREIGN)
    assert site.start(checkout.folder).stderr == BOTH


def test_a_distribution_of_another_name_is_named(site: Site):
    site.install(our_files())
    renamed = {
        name.replace("mews-1.1.3", "birds-2").replace("mews/theirs", "mews/other"): text
        for name, text in FOREIGN.items()
    }
    renamed["birds-2.dist-info/METADATA"] = "Metadata-Version: 2.1\nName: birds\nVersion: 2\n"
    site.install(renamed)
    assert site.start().stderr.startswith("birds also owns the import name mews: pip uninstall birds, then pip install")


def test_what_their_removal_leaves_is_named(site: Site):
    """pip removes the files that their record lists: our mews/__init__.py is one of them."""
    site.install(our_files())
    site.install(FOREIGN)
    (site.folder / "mews" / "__init__.py").unlink()
    shutil.rmtree(site.folder / "mews-1.1.3.dist-info")
    done = site.start()
    gone = f"mews/__init__.py is missing or not of falcon-mews: remove what put it there, then {AGAIN}\n"
    assert (done.returncode, done.stderr) == (3, gone)


def test_both_commands_look_first():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'mews = "falcon_mews:main"' in text
    assert 'falcon-mews = "falcon_mews:main"' in text
