"""Many runs as one sweep: its items are numbered, results are appended to one file as runs end, and the files of
several machines are merged by their numbers.

A line of a results file is one run: ``{"sweep", "item", "items", "result"}``. ``sweep`` tells sweeps apart: what runs,
with which options and seeds. Results of a sweep have no wall-clock time, so that the same runs write the same bytes,
wherever and in however many parts they ran.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from mews.harness.errors import BadInputError, RequirementError, unreadable
from mews.harness.report.run import Run
from mews.harness.scenario.result import Result
from mews.own_files import append_own

if TYPE_CHECKING:
    from mews.harness.options import RunOptions
    from mews.harness.scenario.model import Scenario

INDEX = "JOB_COMPLETION_INDEX"
"""The variable by which Kubernetes tells a pod of an Indexed Job its number, from 0 on."""
BY_INDEX = "index"
"""The word for that number in ``--shard``."""
STDOUT = "-"


class Shard(Struct, frozen=True):
    """The ``number``-th of ``of`` parts of a sweep, from 1 on: every ``of``-th item, so that all last about as long."""

    number: int = 1
    of: int = 1

    def has(self, item: int) -> bool:
        """Return whether an item, counted from 0, is in this part."""
        return item % self.of == self.number - 1


def shard_of(text: str, environment: Mapping[str, str] = os.environ) -> Shard:
    """``I/N``, or ``index/N`` in a pod of an Indexed Job.

    Raises BadInputError.
    """
    first, slash, last = text.partition("/")
    if first == BY_INDEX and slash:
        index = environment.get(INDEX, "")
        if not _is_whole(index):
            raise BadInputError(f"--shard {text}: {INDEX}: {index!r}: must be a whole number, as Indexed Jobs set it")
        first = str(int(index) + 1)
    if not _is_whole(first) or not _is_whole(last) or not 1 <= int(first) <= int(last):
        raise BadInputError(f"--shard {text}: must be I/N with I from 1 to N, for example 2/4, or {BY_INDEX}/N")
    return Shard(int(first), int(last))


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdecimal()


class SweepOptions(Struct, frozen=True):
    """``results``: the file that is appended to ("-": standard output); ``resume``: go on with what is in it."""

    results: str | None = None
    resume: bool = False
    shard: Shard = Shard()

    @property
    def wanted(self) -> bool:
        """Whether anything was said of it."""
        return self.results is not None or self.resume or self.shard.of > 1


def sweep_options(results: str | None, resume: bool, shard: str | None, json_file: str | None) -> SweepOptions:
    """Return that of ``--results``, ``--resume`` and ``--shard``. Resuming goes on with the file beside that of
    ``--json`` where none is named.

    Raises BadInputError.
    """
    if resume and results is None:
        if json_file in (None, STDOUT):
            raise BadInputError("--resume: requires --results FILE, which records what has run")
        results = str(Path(str(json_file)).with_suffix(".jsonl"))
    if resume and results == STDOUT:
        raise BadInputError("--results -: cannot be resumed; name a file")
    if results not in (None, STDOUT) and (Path(results).is_dir() or not Path(results).absolute().parent.is_dir()):
        raise BadInputError(f"--results {results}: must be a file in an existing folder")
    return SweepOptions(results, resume, Shard() if shard is None else shard_of(shard))


def sweep_id(parts: Sequence[Any]) -> str:
    """Return the name of a sweep, from all that tells it from others: JSON values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def without_wall(run: Run) -> dict[str, Any]:
    """Return a run's result as a sweep keeps it."""
    document = run.result.as_dict()
    document["seconds"]["wall"] = None
    return document


def result_of(document: Mapping[str, Any]) -> Result:
    """Return the result that was kept."""
    artefacts = document.get("artefacts")
    return Result(
        scenario=document["scenario"],
        path=document["path"],
        cluster=document["cluster"],
        time=document["time"],
        seed=document["seed"],
        verdict=document["verdict"],
        reason=document["reason"],
        virtual_s=document["seconds"]["virtual"],
        metrics=document["metrics"],
        expected=document["expected"],
        violations=tuple(document["violations"]),
        known=tuple(document.get("known", ())),
        journal=document["journal"],
        artefacts=None if artefacts is None else Path(artefacts),
        failure=document.get("failure"),
        ignored=tuple(document.get("ignored", ())),
    )


class ResultsFile:
    """One file that results are appended to, each whole or not at all: a line that was cut off is dropped when the
    sweep is resumed."""

    def __init__(self, options: SweepOptions, sweep: str, items: int) -> None:
        self._options = options
        self._sweep, self._items = sweep, items
        self.known: dict[int, Mapping[str, Any]] = {}
        where = options.results
        if where is None or where == STDOUT:
            return
        path = Path(where)
        if path.exists() and path.stat().st_size:
            if not options.resume:
                raise BadInputError(f"--results {path}: already exists: use --resume to continue it")
            self._take_over(path)

    def _take_over(self, path: Path) -> None:
        entries, whole = read_entries(path)
        for number, entry in enumerate(entries, start=1):
            if entry["sweep"] != self._sweep or entry["items"] != self._items:
                raise BadInputError(
                    f"--results {path}:{number}: belongs to another sweep: scenarios, options or seeds differ"
                )
            self.known[entry["item"]] = entry["result"]
        with path.open("r+b") as file:
            file.truncate(whole)

    def finished(self, item: int) -> bool:
        """Return whether the item has a result; one that broke is run again."""
        found = self.known.get(item)
        return found is not None and found["verdict"] != "error"

    def append(self, item: int, run: Run) -> None:
        """Write a run that has ended.

        Raises RequirementError.
        """
        where = self._options.results
        if where is None:
            return
        text = entry_text(self._sweep, item, self._items, without_wall(run))
        try:
            if where == STDOUT:
                sys.stdout.write(text)
                sys.stdout.flush()
                return
            with append_own(Path(where)) as file:
                file.write(text.encode("utf-8"))
        except OSError as error:
            raise RequirementError(f"--results {where}: cannot be written: {error.strerror}") from error


class KeptRuns:
    """The runs of one shard of a sweep: which are to be run, and all of them in the end."""

    def __init__(self, file: ResultsFile, shard: Shard, items: int) -> None:
        self._file = file
        self._mine = [item for item in range(items) if shard.has(item)]

    @classmethod
    def of(
        cls, chosen: SweepOptions, plan: Sequence[tuple[Scenario, int]], options: RunOptions, overrides: Sequence[str]
    ) -> KeptRuns:
        """Return that of these scenarios with these seeds.

        Raises BadInputError.
        """
        runs = [(scenario.name, *map(_digest, (scenario.path, *scenario.included)), seed) for scenario, seed in plan]
        how = (options.cluster, options.time, options.speed, options.dialect, options.timeout_s)
        return cls(ResultsFile(chosen, sweep_id([runs, how, list(overrides)]), len(plan)), chosen.shard, len(plan))

    def lacks(self, item: int) -> bool:
        """Return whether the item is this shard's, and still to be run."""
        return item in self._mine and not self._file.finished(item)

    def keep(self, item: int, run: Run) -> Run:
        """Write down a run that has ended; as it is reported, without the seconds that it took."""
        if not run.lacks:  # what this machine lacks is made up for by --resume, here or elsewhere
            self._file.append(item, run)
        return replace(run, result=replace(run.result, wall_s=None))

    def all_runs(self, ran: Mapping[int, Run]) -> list[Run]:
        """Return all of the shard, those of before and those that ran now, in the order of the sweep."""
        return [ran[item] if item in ran else as_run(self._file.known[item]) for item in self._mine]


def _digest(path: Path | None) -> str:
    try:
        return "" if path is None else hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def entry_text(sweep: str, item: int, items: int, document: Mapping[str, Any]) -> str:
    """Return one line of a results file."""
    return json.dumps({"sweep": sweep, "item": item, "items": items, "result": document}) + "\n"


def read_entries(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the entries of a results file, and how many bytes they are: what follows is a line that was cut off.

    Raises BadInputError.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInputError(unreadable(path, error)) from None
    entries, whole = [], 0
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        if not line.endswith(b"\n"):
            break
        try:
            entry = json.loads(line)
            kept: dict[str, Any] = {
                "sweep": str(entry["sweep"]),
                "item": int(entry["item"]),
                "items": int(entry["items"]),
                "result": entry["result"],
            }
            result_of(kept["result"])
        except (ValueError, TypeError, KeyError):
            raise BadInputError(
                f"{path}:{number}: not a result of a sweep: must be a line that --results wrote"
            ) from None
        entries.append(kept)
        whole += len(line)
    return entries, whole


def merged(paths: Sequence[Path]) -> tuple[str, int, dict[int, Mapping[str, Any]]]:
    """Return the sweep, its number of items, and all their results by number, from the files of its parts. Of an item
    that ran twice the last result counts, but none that broke before one that did not.

    Raises BadInputError for files of several sweeps, and for items that are in none.
    """
    sweep, items = "", 0
    found: dict[int, Mapping[str, Any]] = {}
    for path in paths:
        for number, entry in enumerate(read_entries(path)[0], start=1):
            if not sweep:
                sweep, items = entry["sweep"], entry["items"]
            if (entry["sweep"], entry["items"]) != (sweep, items):
                raise BadInputError(f"{path}:{number}: belongs to another sweep than the first file")
            before = found.get(entry["item"])
            if before is None or before["verdict"] == "error" or entry["result"]["verdict"] != "error":
                found[entry["item"]] = entry["result"]
    missing = [item for item in range(items) if item not in found]
    if not items or missing:
        shown = ", ".join(str(item + 1) for item in missing[:5]) + (", …" if len(missing) > 5 else "")
        what = f"{len(missing)} of {items} runs are missing ({shown})" if items else "there is no result"
        raise BadInputError(f"{', '.join(map(str, paths))}: {what}: run their shards, or --resume them")
    return sweep, items, {item: found[item] for item in range(items)}


def as_run(document: Mapping[str, Any]) -> Run:
    """Return a kept result as reports take it; its lines are not kept."""
    return Run(replace(result_of(document), wall_s=None))
