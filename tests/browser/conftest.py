"""One browser for all tests of our own pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.driver import Browser, browser


@pytest.fixture(scope="package")
def chrome() -> Iterator[Browser]:
    """A browser that is started once."""
    with browser() as started:
        yield started
