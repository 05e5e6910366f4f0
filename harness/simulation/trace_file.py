"""Reads traces row by row: a million of them in flat memory, in order of arrival whatever the file's order is."""

from __future__ import annotations

import csv
import heapq
import io
import pickle
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from msgspec import Struct

from mews.harness.errors import BadInputError, unreadable
from mews.harness.simulation.columns import PAI_JOBS, CellError, Defaults, TraceFormat, instances_of
from mews.kube.system.simulation import SimulatedJob

_CHUNK = 50_000
"""Rows that are sorted at once; what does not fit is sorted on disk."""
_BATCH = 500


class TraceSpan(Struct, frozen=True):
    """When jobs must arrive, as the trace's arrivals count; ``in_words`` ends the line for a trace that has none."""

    from_s: float
    until_s: float
    in_words: str


class TraceScan(Struct, frozen=True):
    """What a first look found: chosen rows, those that were no job to be run, whether the rest come in order of
    arrival, and when the first does."""

    rows: int
    left_out: int
    sorted: bool
    first_s: float


class TraceFile:
    """One trace. ``select``: column -> value that rows must have; ``within``: when they must arrive, from the first
    moment to before the second; ``left_out`` counts rows that were no job to be run,
    as they are read, and ``given`` those that were, of however many instances. Every error is a BadInputError with the
    line's number."""

    def __init__(
        self,
        path: Path,
        form: TraceFormat,
        defaults: Defaults,
        select: Mapping[str, str] | None = None,
        within: TraceSpan | None = None,
    ) -> None:
        self.path = path
        self.form = form
        self.left_out = 0
        self.given = 0
        self._select = dict(select or {})
        self._within = within
        self._columns, self._skip = self._header()
        places = {name: index for index, name in enumerate(self._columns)}
        self._check(places, bool(defaults.types))
        self._chosen = [(places[name], value) for name, value in self._select.items()]
        self._arrival = next(name for name in form.arrival if name in places)
        self._arrives = places[self._arrival]
        self._read = form.reader(places, defaults)
        self._found: TraceScan | None = None

    def scan(self, *, on_progress: Callable[[int], None] = lambda percent: None) -> TraceScan:
        """Read the whole file once, and check when each row of it arrives. ``on_progress`` gets percents."""
        if self._found is None:
            self._found = self._scan(on_progress)
        return self._found

    def jobs(self, *, whole: bool = False) -> Iterator[SimulatedJob]:
        """Yield all jobs in order of arrival, from 0 on, equal ones in that of the file. ``whole``: those of several
        instances stay one."""
        first_s, self.left_out, self.given = self.scan().first_s, 0, 0
        stream = self._in_order() if self._found is not None and self._found.sorted else self._sorted()
        for job in stream:
            job.arrival_s -= first_s
            self.given += 1
            if whole or job.instances == 1:
                yield job
            else:
                yield from instances_of(job)

    # ------------------------------------------------------------------------------------------------------ the header

    def _header(self) -> tuple[tuple[str, ...], int]:
        """Return the columns, and how many rows to skip."""
        first = self._first_row(self.path)
        names = tuple(cell.strip() for cell in first)
        if any(name in self.form.columns or name in PAI_JOBS for name in names):
            return names, 1
        beside = self.path.with_suffix(".header")
        if self.form.published is not None and beside.is_file():
            return tuple(cell.strip() for cell in self._first_row(beside)), 0
        if self.form.published is not None and len(first) == len(self.form.published):
            return self.form.published, 0
        return names, 1

    @staticmethod
    def _first_row(path: Path) -> list[str]:
        try:
            with path.open(newline="", encoding="utf-8-sig") as file:
                return next(csv.reader(file), [])
        except (OSError, UnicodeDecodeError) as error:
            raise BadInputError(unreadable(path, error)) from None
        except csv.Error as error:
            raise BadInputError(f"{path}:1: no CSV: {error}") from None

    # Complex: the first wrong column is the one that is shown.
    def _check(self, places: Mapping[str, int], typed: bool) -> None:  # noqa: C901
        where, known = f"{self.path}:1", ", ".join(self.form.columns)
        if len(places) < len(self._columns):
            twice = next(name for name in self._columns if self._columns.count(name) > 1)
            raise BadInputError(f"{where}: column {twice!r}: is listed twice")
        if self.form.name == "pai2020" and set(places) == set(PAI_JOBS):
            what = "these are the columns of pai_job_table, which does not have what jobs request"
            raise BadInputError(f"{where}: {what}: give pai_task_table")
        for name in self._columns:
            if name not in self.form.columns and name not in self._select:
                raise BadInputError(
                    f"{where}: column {name!r}: unknown to --format {self.form.name}, which has {known}"
                )
        for group in self.form.wanted:
            there = [name for name in group if name in places]
            if not there:
                wanted = f"column {' or '.join(map(repr, group))}"
                raise BadInputError(f"{where}: {wanted}: missing; --format {self.form.name} has {known}")
            if len(there) > 1 and "type" not in group:
                raise BadInputError(f"{where}: columns {', '.join(map(repr, there))}: only one of them")
        if "gpus" in self.form.columns and "gpus" not in places and not typed:
            raise BadInputError(f"{where}: column 'gpus': missing; only a scenario says what a 'type' requests")
        for name in self._select:
            if name not in places:
                raise BadInputError(f"{where}: --select {name}: no such column; columns: {', '.join(places)}")

    # -------------------------------------------------------------------------------------------------------- the rows

    def _rows(self, on_progress: Callable[[int], None] | None = None) -> Iterator[tuple[int, list[str]]]:
        """Line and cells of each chosen row."""
        width, chosen = len(self._columns), self._chosen
        try:
            with self.path.open("rb") as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
                reader = csv.reader(file)
                size = max(self.path.stat().st_size, 1)
                for _ in range(self._skip):
                    next(reader, None)
                for cells in reader:
                    if len(cells) != width:
                        if not cells:
                            continue
                        there = f"{len(cells)} cells for {width} columns"
                        raise BadInputError(f"{self.path}:{reader.line_num}: {there}")
                    if on_progress is not None and not reader.line_num % _CHUNK:
                        on_progress(raw.tell() * 100 // size)
                    if not chosen or all(cells[place] == value for place, value in chosen):
                        yield reader.line_num, cells
        except (OSError, UnicodeDecodeError) as error:
            raise BadInputError(unreadable(self.path, error)) from None
        except csv.Error as error:
            raise BadInputError(f"{self.path}:{reader.line_num}: no CSV: {error}") from None

    def _in_order(self) -> Iterator[SimulatedJob]:
        read = self._read
        for line, cells in self._rows():
            try:
                job = read(cells)
            except CellError as error:
                raise BadInputError(f"{self.path}:{line}: {error}") from None
            if job is None:
                self.left_out += 1
            elif self._is_within(job.arrival_s):
                yield job

    def _is_within(self, moment_s: float) -> bool:
        return self._within is None or self._within.from_s <= moment_s < self._within.until_s

    def _scan(self, on_progress: Callable[[int], None]) -> TraceScan:
        rows, left_out, last_s, first_s, ordered = 0, 0, -1.0, float("inf"), True
        arrives, name = self._arrives, self._arrival
        for line, cells in self._rows(on_progress):
            text = cells[arrives]
            if not text and self.form.published is not None:
                rows, left_out = rows + 1, left_out + 1
                continue
            try:
                arrival_s = self.form.moment(name, text)
            except CellError as error:
                raise BadInputError(f"{self.path}:{line}: {error}") from None
            if not self._is_within(arrival_s):
                continue
            rows += 1
            if arrival_s < last_s:
                ordered = False
            last_s = arrival_s
            first_s = min(first_s, arrival_s)
        if not rows:
            chosen = f" with {', '.join(f'{k}={v}' for k, v in self._select.items())}" if self._select else ""
            when = f" {self._within.in_words}" if self._within is not None else ""
            raise BadInputError(f"{self.path}: no job{chosen}{when}")
        # Our own traces count from the start of the workload, which need not be the first arrival.
        return TraceScan(rows, left_out, ordered, first_s if self.form.from_first and rows > left_out else 0)

    def _sorted(self) -> Iterator[SimulatedJob]:
        """Sorted in pieces, which wait on disk and are merged."""
        with ExitStack() as files:
            pieces = [files.enter_context(piece) for piece in self._pieces()]
            yield from heapq.merge(*(_unpacked(piece) for piece in pieces), key=_arrival)

    def _pieces(self) -> Iterator[IO[bytes]]:
        chunk: list[SimulatedJob] = []
        for job in self._in_order():
            chunk.append(job)
            if len(chunk) >= _CHUNK:
                yield _packed(chunk)
                chunk = []
        yield _packed(chunk)


def _arrival(job: SimulatedJob) -> float:
    return job.arrival_s


def _packed(jobs: list[SimulatedJob], make: Callable[[], IO[bytes]] = tempfile.TemporaryFile) -> IO[bytes]:
    jobs.sort(key=_arrival)
    file = make()
    for start in range(0, len(jobs), _BATCH):
        pickle.dump(jobs[start : start + _BATCH], file, pickle.HIGHEST_PROTOCOL)
    file.seek(0)
    return file


def _unpacked(file: IO[bytes]) -> Iterator[SimulatedJob]:
    while True:
        try:
            batch: Sequence[SimulatedJob] = pickle.load(file)
        except EOFError:
            return
        yield from batch
