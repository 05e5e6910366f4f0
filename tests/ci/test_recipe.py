"""The conda recipe says what the wheel's metadata says."""

from __future__ import annotations

import hashlib
import re
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from ci import release
from mews import __version__
from mews.project import DISTRIBUTION, DOCUMENTATION, REPOSITORY

FILE = release.RECIPE
CONDA_NAMES = {"prometheus-client": "prometheus_client"}
"""Where conda-forge spells a name otherwise."""


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return read


def outputs(recipe: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {output["package"]["name"]: output for output in recipe["outputs"]}


def required(extra: str) -> dict[str, SpecifierSet]:
    """What the distribution needs for that extra alone, "" for its base: conda's name -> bounds."""
    found = {}
    for each in map(Requirement, distribution(DISTRIBUTION).requires or ()):
        of_base = each.marker is None
        if of_base if not extra else (not of_base and each.marker.evaluate({"extra": extra})):  # type: ignore[union-attr]
            found[CONDA_NAMES.get(each.name.lower(), each.name.lower())] = each.specifier
    return found


def listed(output: dict[str, Any]) -> dict[str, SpecifierSet]:
    """The same of a recipe's output, without Python and our own package."""
    pairs = (line.partition(" ")[::2] for line in output["requirements"]["run"])
    return {name: SpecifierSet(bounds) for name, bounds in pairs if name not in ("python", DISTRIBUTION)}


@pytest.mark.parametrize(("name", "extra"), [(DISTRIBUTION, ""), (f"{DISTRIBUTION}-cluster", "cluster")])
def test_each_dependency_has_the_same_bounds(recipe: dict[str, Any], name: str, extra: str):
    assert listed(outputs(recipe)[name]) == required(extra)


def test_version_license_python_and_summary_are_the_same(recipe: dict[str, Any]):
    known = distribution(DISTRIBUTION).metadata
    assert recipe["context"]["version"] == __version__
    assert recipe["about"]["license"] == known["License-Expression"]
    assert recipe["about"]["summary"] == known["Summary"]
    assert f">={recipe['context']['python_min']}" == known["Requires-Python"]
    assert "python >=${{ python_min }}" in outputs(recipe)[DISTRIBUTION]["requirements"]["run"]
    assert f"{DISTRIBUTION} ==${{{{ version }}}}" in outputs(recipe)[f"{DISTRIBUTION}-cluster"]["requirements"]["run"]
    addresses = {key: recipe["about"][key] for key in ("homepage", "documentation", "repository")}
    assert addresses == {"homepage": REPOSITORY, "documentation": DOCUMENTATION, "repository": REPOSITORY}


def test_the_commands_are_the_same(recipe: dict[str, Any]):
    scripts = {one.name: one.value for one in distribution(DISTRIBUTION).entry_points if one.group == "console_scripts"}
    lines = outputs(recipe)[DISTRIBUTION]["build"]["python"]["entry_points"]
    assert dict(line.split(" = ") for line in lines) == scripts


def test_what_it_builds_with_is_what_the_package_builds_with(recipe: dict[str, Any]):
    text = (release.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    [backend] = re.findall(r'^requires = \["hatchling(.+)"\]$', text, re.MULTILINE)
    assert f"hatchling {backend}" in outputs(recipe)[DISTRIBUTION]["requirements"]["host"]


def test_a_feedstock_gets_the_released_sdist_with_its_hash(tmp_path: Path):
    sdist = tmp_path / f"falcon_mews-{__version__}.tar.gz"
    sdist.write_bytes(b"sdist")
    made = yaml.safe_load(release.feedstock_recipe(FILE.read_text(encoding="utf-8"), sdist, __version__))
    address = f"{REPOSITORY}/releases/download/v{__version__}/{sdist.name}"
    assert made["source"] == {"url": address, "sha256": hashlib.sha256(b"sdist").hexdigest()}
    assert made["outputs"] == yaml.safe_load(FILE.read_text(encoding="utf-8"))["outputs"]
