"""Dependencies have upper bounds, and the versions that were tested together are written down."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
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
