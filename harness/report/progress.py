"""Progress of long work on the terminal: nothing for two seconds, then a line that moves. A pipe sees none of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mews.harness.scenario.result import StepProgress as StepProgress

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE_S = 2.0


class ProgressBar:
    """``begin(name)`` per run, ``step`` as the runner's observer. Without ``threads`` it moves when ``refresh`` is
    called, so that the process may still be forked."""

    def __init__(self, total: int, *, threads: bool = True, quiet: bool = False) -> None:
        self._total = total
        self._threads = threads
        self._done = 0
        self._name = ""
        self._began_s = time.monotonic()
        self._bar: tuple[Progress, TaskID] | None = None
        self._shown = sys.stderr.isatty() and not quiet

    def begin(self, name: str) -> None:
        """A run begins."""
        self._name = name
        self._show(name)

    def step(self, progress: StepProgress) -> None:
        """A step begins or ends."""
        self._show(f"{self._name}: step {progress.step}/{progress.steps} {progress.do} {progress.name}".rstrip())

    def print(self, text: str) -> None:
        """What is being waited for before the steps begin."""
        self._show(f"{self._name}: {text}")

    def end(self) -> None:
        """A run ended."""
        self._done += 1
        self._show(self._name)

    def reached(self, done: int, total: int | None = None) -> None:
        """So many ended, of another total where one is given."""
        self._done = done
        if total is not None and total != self._total:
            self._total = total
            if self._bar is not None:
                self._bar[0].update(self._bar[1], total=total)
        self._show(self._name)

    def refresh(self) -> None:
        """Time has passed."""
        self._show(self._name)
        if self._bar is not None:
            self._bar[0].refresh()

    def close(self) -> None:
        """Wipe it out."""
        if self._bar is not None:
            self._bar[0].stop()

    def _show(self, text: str) -> None:
        if not self._shown or (self._bar is None and time.monotonic() - self._began_s < PATIENCE_S):
            return
        if self._bar is None:
            self._bar = self._start()
        bar, task = self._bar
        bar.update(task, completed=self._done, description=text)

    def _start(self) -> tuple[Progress, TaskID]:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
        bar = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=self._threads)
        bar.start()
        return bar, bar.add_task("", total=self._total)


class WorkRate:
    """How fast work goes, and how long what is left takes if it goes on like that."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._of = ""
        self._began_s = now_s()

    def text(self, of: str, done: int, left: int) -> str:
        """To be put behind a name; "" before anything is ``done``. Each ``of`` begins anew."""
        now_s = self._now_s()
        if of != self._of:
            self._of, self._began_s = of, now_s
        span_s = now_s - self._began_s
        if not done or span_s <= 0:
            return ""
        left_s = round(left * span_s / done)
        shown = f"{left_s} s" if left_s < 120 else f"{left_s // 60} min"
        return f", {done / span_s:.3g}/s, {shown} left"


@contextmanager
def progress_bar(total: int, *, threads: bool = True, quiet: bool = False) -> Iterator[ProgressBar]:
    """Provide a bar that is gone when the work is done; with ``quiet`` it never shows."""
    bar = ProgressBar(total, threads=threads, quiet=quiet)
    try:
        yield bar
    finally:
        bar.close()
