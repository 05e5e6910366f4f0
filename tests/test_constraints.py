"""Dependencies have upper bounds, and the versions that were tested together are written down."""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = ("cluster", "containers", "fuse", "train", "plots")
"""What users install; tools of our own may move on."""
RUNTIME = [
    Requirement(text)
    for text in (
        *PROJECT["dependencies"],
        *(text for extra in EXTRAS for text in PROJECT["optional-dependencies"][extra]),
    )
]
LOCKED = {
    canonicalize_name(name): Version(version)
    for name, _, version in (
        line.partition("==")
        for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
        if not line.startswith("#")
    )
}
NOT_IN_TESTS = {"mfusepy", "matplotlib"}
"""Installed by targets of their own."""


@pytest.mark.parametrize("requirement", RUNTIME, ids=str)
def test_a_dependency_has_bounds_and_the_locked_version_is_within_them(requirement: Requirement) -> None:
    assert {each.operator for each in requirement.specifier} == {">=", "<"}
    name = canonicalize_name(requirement.name)
    if name not in NOT_IN_TESTS:
        assert LOCKED[name] in requirement.specifier


def test_what_the_tests_need_is_locked_too() -> None:
    own = [Requirement(text) for text in PROJECT["optional-dependencies"]["test"]]
    missing = {each.name for each in own if canonicalize_name(each.name) not in LOCKED} - {"falcon-mews"}
    assert missing == set()


def test_each_locked_version_takes_the_oldest_python_that_the_project_takes() -> None:
    """Debian 12 has 3.11.2; a version that wants 3.11.5 ended `make test` there before the first test."""
    oldest = Version(PROJECT["requires-python"].removeprefix(">="))
    demands = {
        name: demand
        for name in LOCKED
        if (demand := metadata.metadata(name).get("Requires-Python", "")) and oldest not in SpecifierSet(demand)
    }
    assert demands == {}
