"""Distributions of this tree, built once for all tests of a session."""

from tests.package.conftest import distributions, shared

__all__ = ["distributions", "shared"]
