"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# By day the same inputs each time, so that what a change broke is told from what nobody had tried; by night new ones.
settings.register_profile("daily", derandomize=True)
if not os.environ.get("MEWS_NIGHTLY"):
    settings.load_profile("daily")

# A shell starts what runs in the background with Ctrl-C ignored, and what tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Twenty thousand tests are collected at once, and looking through them for garbage was a fifth of the suite's time.
gc.set_threshold(50_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def _only_what_users_need() -> Iterator[None]:
    """The pytest that a test starts leaves out the plugins of our own tests: to import them takes 3 s of CPU each time.
    A fixture, since this must not reach the workers of pytest-xdist."""
    before = os.environ.get("PYTEST_ADDOPTS")
    ours = ("faker", "hypothesispytest", "rerunfailures", "schemathesis")
    os.environ["PYTEST_ADDOPTS"] = " ".join([before or "", *(f"-p no:{name}" for name in ours)]).strip()
    yield
    if before is None:
        del os.environ["PYTEST_ADDOPTS"]
    else:
        os.environ["PYTEST_ADDOPTS"] = before


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests in wall-clock time get a second try, and a third: what a loaded machine delays is not the product's fault.
    The summary names each one that needed it (R), and one that always does has found something; without
    pytest-rerunfailures there is none. Those marked nightly run where MEWS_NIGHTLY is set, those marked kind when asked
    for."""
    on_kind = "kind" in (config.option.markexpr or "")
    for item in items:
        if item.get_closest_marker("wall") is not None or item.get_closest_marker("kind") is not None:
            item.add_marker(pytest.mark.flaky(reruns=2, rerun_except=["^RequirementError: "]))
        if item.get_closest_marker("nightly") is not None and not os.environ.get("MEWS_NIGHTLY"):
            item.add_marker(pytest.mark.skip(reason="one of many of its kind: runs nightly (MEWS_NIGHTLY=1)"))
        if item.get_closest_marker("kind") is not None and not on_kind:
            item.add_marker(pytest.mark.skip(reason="runs with make test-kind"))


def pytest_collection_finish() -> None:
    """What is collected stays to the end."""
    gc.collect()
    gc.freeze()
