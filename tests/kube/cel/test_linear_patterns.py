"""Patterns of strangers take linear time, in the base installation too."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from mews.harness.conformance.interop.compare import holds
from mews.kube.cel.regexes import PatternError, compiled

BOMB, TEXT = "^(a+)+$", "a" * 5000 + "b"
"""A back-tracking engine tries 2^5000 ways."""


def test_a_bomb_of_a_custom_kind_is_answered() -> None:
    assert not compiled(BOMB)(TEXT)


def test_a_bomb_of_an_interoperability_profile_is_answered() -> None:
    assert not holds(None, TEXT, "Pattern", [BOMB])  # type: ignore[arg-type]
    assert holds(None, "aaa", "Pattern", [BOMB])  # type: ignore[arg-type]


@pytest.mark.parametrize("pattern", ["(?=a)a", r"(a)\1"])
def test_what_takes_more_than_linear_time_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="error parsing regexp"):
        compiled(pattern)


def test_the_engine_comes_with_the_base_installation() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8"))["project"]
    assert any(each.startswith("google-re2") for each in project["dependencies"])
