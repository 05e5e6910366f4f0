"""The clauses as a pytest suite: an item per clause, collected from the module of a dialect's clauses.

It needs no file of tests beside the package, no configuration, and none of the plugins that a machine may have.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mews.harness.conformance.clause import Clause
from mews.harness.conformance.judge import SKIPPED, ClauseJudge, ClauseResult

QUIET = (
    *("terminal", "junitxml", "pastebin", "setuponly", "setupplan", "cacheprovider", "stepwise"),
    *("logging", "faulthandler", "unraisableexception", "threadexception", "warnings"),
    *("python", "doctest", "unittest"),
)
"""Parts of pytest that would write, install hooks or look for other tests."""


class ClauseSuite:
    """The plugin: hands the clauses to pytest and collects the results."""

    def __init__(
        self,
        judge: ClauseJudge,
        clauses: Sequence[Clause],
        on_result: Callable[[ClauseResult], None],
        *,
        before_changes: Callable[[], None] = lambda: None,
        on_begin: Callable[[str, int], None] = lambda clause, number: None,
    ) -> None:
        self.judge = judge
        self.clauses = in_order(clauses)
        self._before_changes: Callable[[], None] | None = before_changes
        self._on_begin = on_begin
        self.results: list[ClauseResult] = []
        self.error: BaseException | None = None
        self._on_result = on_result

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector:
        """Return a collector of clauses, for the one file that is named."""
        return ClauseFile.from_parent(parent, path=file_path, suite=self)

    def begin(self, clause: Clause) -> None:
        """Before a clause is judged: the first that moves devices lets the run protect the table."""
        if self._before_changes is not None and (clause.changes or clause.last):
            prepare, self._before_changes = self._before_changes, None
            prepare()
        self._on_begin(clause.id, len(self.results) + 1)

    def add(self, result: ClauseResult) -> None:
        """One more."""
        self.results.append(result)
        self._on_result(result)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """An error of ours, not of the chassis, ends the run and is told as it is."""
        if call.excinfo is not None and not isinstance(
            call.excinfo.value, ClauseDefinitionError | pytest.skip.Exception
        ):
            self.error = self.error or call.excinfo.value
            item.session.shouldstop = "internal error"
        yield


def in_order(clauses: Iterable[Clause]) -> list[Clause]:
    """What only reads comes first, then what moves devices, then what was noticed on the way."""
    return sorted(clauses, key=lambda clause: (clause.last, clause.changes and not clause.last))


class ClauseDefinitionError(AssertionError):
    """The clause does not hold."""


class ClauseFile(pytest.File):
    """All clauses of a dialect."""

    def __init__(self, *, suite: ClauseSuite, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.suite = suite

    def collect(self) -> Iterable[pytest.Item]:
        """Yield an item each."""
        for clause in self.suite.clauses:
            yield ClauseItem.from_parent(self, name=clause.id, clause=clause, suite=self.suite)


class ClauseItem(pytest.Item):
    """One clause."""

    def __init__(self, *, clause: Clause, suite: ClauseSuite, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.clause = clause
        self.suite = suite

    def runtest(self) -> None:
        """Judge it."""
        self.suite.begin(self.clause)
        result = self.suite.judge.judge(self.clause)
        self.suite.add(result)
        if result.verdict == SKIPPED:
            pytest.skip(result.reason)
        if not result.good:
            raise ClauseDefinitionError(result.reason)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return where it comes from."""
        return self.path, None, self.clause.id


def run_suite(suite: ClauseSuite, file: str, folder: Path) -> None:
    """Run it in this process; ``folder`` is an empty one, for pytest to call its root.

    Raises KeyboardInterrupt, and what went wrong in a clause's own code.
    """
    silent = [part for name in QUIET for part in ("-p", f"no:{name}")]
    config = folder / "pytest.ini"
    config.write_text("[pytest]\n", encoding="utf-8")
    options = ["-c", str(config), "--rootdir", str(folder), "--noconftest", "--capture=no", *silent]
    with _environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTEST_ADDOPTS=None, PYTEST_PLUGINS=None):
        code = pytest.main([*options, file], plugins=[suite])
    if suite.error is not None:
        raise suite.error
    if code == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"pytest exited with {code!r} after {len(suite.results)} of {len(suite.clauses)} clauses")


@contextlib.contextmanager
def _environment(**values: str | None) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    _set(values)
    try:
        yield
    finally:
        _set({**before})


def _set(values: dict[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
