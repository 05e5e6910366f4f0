"""Building and running what others wrote takes minutes: `make test-upstream` does."""

from __future__ import annotations

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip it elsewhere."""
    if os.environ.get("MEWS_UPSTREAM") == "1":
        return
    for item in items:
        if item.get_closest_marker("upstream") is not None:
            item.add_marker(pytest.mark.skip("make test-upstream runs it (MEWS_UPSTREAM=1)"))
