"""A pytest plugin: notes what each test that passes runs of a room; or runs the named tests alone, in that order.

``MUTATE_REACH`` is the file to write, a line of JSON for each test, and ``MUTATE_ROOM`` the room's folder.
``MUTATE_ONLY`` is a file with the names of the tests to run, the first one first; ``MUTATE_DONE`` gets a line after
each test.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

_ROOM = os.environ.get("MUTATE_ROOM", "")
_PASSED: set[str] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Which tests pass."""
    if report.when == "call" and report.passed:
        _PASSED.add(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep those that are named."""
    if only := os.environ.get("MUTATE_ONLY"):
        places = {name: place for place, name in enumerate(Path(only).read_text(encoding="utf-8").split("\0"))}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in places])
        items[:] = sorted((item for item in items if item.nodeid in places), key=lambda item: places[item.nodeid])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Note what a test runs, from its first fixture to its last."""
    began_s = time.monotonic()
    if "MUTATE_REACH" not in os.environ:
        result = yield
        _append("MUTATE_DONE", item.nodeid)
        return result
    seen: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            seen.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        result = yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    if item.nodeid not in _PASSED:
        return result
    reached = sorted({(code.co_filename, code.co_firstlineno) for code in seen if code.co_filename.startswith(_ROOM)})
    _append("MUTATE_REACH", json.dumps([item.nodeid, time.monotonic() - began_s, reached]))
    return result


def _append(variable: str, line: str) -> None:
    if name := os.environ.get(variable):
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(line.replace("\n", "\\n") + "\n")
