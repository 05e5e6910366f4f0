"""A whole run: look, protect, judge, put back."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path
from types import FrameType
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from mews.harness.conformance.bench import BESIDE_MOVES_PART, ClauseContext
from mews.harness.conformance.birth import born_at
from mews.harness.conformance.clause import Clause
from mews.harness.conformance.client import ChassisTarget, Client
from mews.harness.conformance.dialects.registry import clauses_of
from mews.harness.conformance.errors import (
    HttpServerError,
    ListingUnavailableError,
    MalformedError,
    NoAnswerError,
    NotJudgedError,
)
from mews.harness.conformance.expectations import Quirks, Waiver
from mews.harness.conformance.guard import Guard
from mews.harness.conformance.judge import OUT_OF_TIME, SKIPPED, ClauseJudge, ClauseResult
from mews.harness.conformance.open import client_for
from mews.harness.conformance.profiles import ConformProfile
from mews.harness.conformance.recognise import recognise
from mews.harness.conformance.recording import RecordingDifference, compare
from mews.harness.conformance.report.outcome import ConformanceOutcome
from mews.harness.conformance.restore import (
    RestoreFile,
    RestorePlan,
    default_path,
    put_back,
    put_back_neighbours,
    strangers,
)
from mews.harness.conformance.suite import ClauseSuite, run_suite
from mews.harness.conformance.table import ListedTable, Versions
from mews.harness.conformance.trial import round_trip
from mews.harness.errors import BadInputError, RequirementError
from mews.own_files import make_own_folder

PROGRESS_S = 5.0
"""Between two lines about how far a run is."""
MOST_DEVICES = 2
"""That are moved; the second stands in for a lost first."""


BUDGET_S = 120.0
"""Seconds of a run, unless it is given others."""
ENDING_S, ENDING_PART = 3.0, 0.05
"""At the end of the budget nothing is begun for so long, and at most for so much of it: logging out, comparing and
writing reports take their time, too."""


class Order(Struct, frozen=True):
    """What to judge and how. ``devices``: named by the user as idle; ``restore_file`` None: the chassis' own;
    ``profile`` None: all clauses by their own grades; ``budget_s``: nothing but restoring begins afterwards;
    ``guarded``: another process restores where this one dies, which a chassis in this very process does not need."""

    address: ChassisTarget
    dialect: str
    credentials: tuple[str, str] | None = None
    changes: bool = False
    devices: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    profile: ConformProfile | None = None
    quirks: Quirks = field(default_factory=Quirks)
    waivers: tuple[Waiver, ...] = ()
    restore_file: Path | None = None
    budget_s: float = BUDGET_S
    guarded: bool = True
    recorded: dict[str, list[dict[str, Any]]] | None = None


def conform(
    order: Order,
    today: date,
    on_result: Callable[[ClauseResult], None],
    on_wait: Callable[[str], None] = lambda text: None,
) -> ConformanceOutcome:
    """Judge the chassis: what only reads first, then what moves devices. ``on_wait`` is called with one line when an
    answer is long in coming, and now and then with the time left.

    An outcome is returned whatever the chassis does, also where there is none (``unable``). Raises BadInputError and
    KeyboardInterrupt; whatever it raises, the table is as before, or the guard sees to it.
    """
    began_s = time.monotonic()
    suite = clauses_of(order.dialect)
    client = client_for(order.address, order.credentials)
    client.deadline_s = began_s + order.budget_s - min(ENDING_S, ENDING_PART * order.budget_s)
    face = suite.face(client)
    profile = order.profile or ConformProfile("", suite.clauses)
    bench = ClauseContext(client, face, limits=order.quirks.limits, home=suite.home, units=profile.units)
    bench.on_wait = on_wait
    grades = {clause.id: profile.grade(clause) for clause in profile.clauses}
    judge = ClauseJudge(bench, order.quirks, order.waivers, today, order.changes, grades=grades, off=profile.off)
    changing = _Changing(order, bench, judge)
    progress = _Progress(client, len(profile.clauses), on_wait)
    run = ClauseSuite(judge, profile.clauses, on_result, before_changes=changing.begin, on_begin=progress.begins)
    unable, versions = "", Versions()
    try:
        recognise(bench, order.dialect)
        changing.table = _first_look(bench)
        changing.check()
        if order.changes and not changing.withheld:
            bench.reading_part = BESIDE_MOVES_PART
        with changing, tempfile.TemporaryDirectory(prefix="mews-conform-") as folder:
            run_suite(run, suite.file, Path(folder))
            versions = _versions(face.versions)
    except RequirementError as error:
        unable = str(error)
    finally:
        client.deadline_s = None
        with contextlib.suppress(NoAnswerError, HttpServerError, MalformedError):
            face.close()
    differences: list[RecordingDifference] = [] if order.recorded is None else compare(run.results, order.recorded)
    kept = changing.kept
    return ConformanceOutcome(
        url=order.address.url,
        dialect=order.dialect,
        changes=order.changes,
        devices=changing.devices,
        profile=profile.name,
        quirks=order.quirks.name,
        versions=versions,
        results=run.results,
        restored=tuple(kept.left) if changing.protects else None,
        differences=differences,
        remarks=(*kept.remarks, *_remarks(bench)),
        others=tuple(kept.others),
        seconds=time.monotonic() - began_s,
        log=tuple(client.log),
        unable=unable,
        open=tuple(_open(run.results, changing, order.budget_s)),
        restoring_s=kept.restoring_s,
    )


def _remarks(bench: ClauseContext) -> list[str]:
    """Return how the chassis was judged, where that is worth knowing."""
    waited = bench.client.waited
    lines = [line for line in (bench.sampled, bench.slow) if line]
    if waited:
        more = f" (and {len(waited) - 1} more)" if len(waited) > 1 else ""
        lines.append(f"waited as the chassis asked: {waited[0]}{more}")
    return lines


def _open(results: Sequence[ClauseResult], changing: _Changing, budget_s: float) -> Iterator[str]:
    late = [result.clause.id for result in results if result.verdict == SKIPPED and result.reason == OUT_OF_TIME]
    if late:
        yield f"{budget_s:g} s were over before {', '.join(late)}; give more with --budget"
    if changing.withheld and not any(not result.good for result in results):
        yield f"what moves devices: {changing.withheld}"


class _Progress:
    """Says now and then what is being judged and how much time is left."""

    def __init__(self, client: Client, clauses: int, show: Callable[[str], None]) -> None:
        self._client, self._clauses, self._show = client, clauses, show
        self._shown_s = time.monotonic()

    def begins(self, clause: str, number: int) -> None:
        """A clause is about to be judged."""
        if time.monotonic() - self._shown_s >= PROGRESS_S:
            self._shown_s = time.monotonic()
            self._show(f"{clause}: {number} of {self._clauses}, {max(0.0, self._client.left_s()):.0f} s left")


class _Changing:
    """The part of a run that moves devices: begun by the first clause that does, ended with the table as before."""

    def __init__(self, order: Order, bench: ClauseContext, judge: ClauseJudge) -> None:
        self._order, self._bench, self._judge = order, bench, judge
        self._ports: tuple[str, ...] = ()
        self._stack = contextlib.ExitStack()
        self.table: ListedTable | None = None
        self.devices: tuple[str, ...] = ()
        self.kept = _Kept()
        self.protects = False
        """Whether there was anything to put back."""

    @property
    def withheld(self) -> str:
        """Why no device may be moved though that was allowed."""
        return self._judge.withheld[0] if self._judge.withheld else ""

    def check(self) -> None:
        """Choose devices and ports.

        Raises BadInputError for names that are none.
        """
        if not self._order.changes:
            return
        if self.table is None:
            self._judge.withheld.append("the listing cannot be read, so no device could be put back")
            return
        try:
            self.devices, self._ports = choose(self._order, self.table)
        except NotJudgedError as error:
            self._judge.withheld.append(str(error))

    def begin(self) -> None:
        """Protect the table, and move one device there and back.

        Raises RequirementError where the table cannot be protected.
        """
        if not self._order.changes or self.withheld or self.table is None:
            return
        if any(cause == clause.id for clause in self._gates() for cause in self._judge.causes.values()):
            return
        self._stack.enter_context(_protected(self._order, self.table, self.devices, self.kept))
        self.protects = True
        file = self.kept.file
        self._bench.allow(self.devices, self._ports, file)
        round_trip(self._bench, file.learned if file is not None else lambda kind: None)

    def _gates(self) -> list[Clause]:
        """Clauses without which nothing that moves devices can be judged."""
        changing = [clause for clause in clauses_of(self._order.dialect).clauses if clause.changes]
        needed = set.intersection(*({*clause.needs} for clause in changing)) if changing else set()
        return [clause for clause in clauses_of(self._order.dialect).clauses if clause.id in needed]

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        self._bench.client.deadline_s = None
        self._stack.close()


def _first_look(bench: ClauseContext) -> ListedTable | None:
    """Return the table, or None where something answers but it cannot be read.

    Raises RequirementError where nothing does.
    """
    try:
        return bench.read()
    except (MalformedError, NotJudgedError):
        return None
    except ListingUnavailableError as error:
        if bench.answered():
            return None
        raise RequirementError(f"{error}; no chassis answers there") from error


def choose(order: Order, table: ListedTable) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the devices that may be moved: those that were named, else free ones; and the ports that they may be put
    on.

    Raises NotJudgedError where nothing is idle, BadInputError for names that are none.
    """
    for device in order.devices:
        if device not in table.rows:
            raise BadInputError(f"--device {device}: not listed; devices: {', '.join(table.rows)}")
    ports = order.ports or table.likely_ports()
    for port in order.ports:
        if table.ports and clauses_of(order.dialect).lists_ports and port not in table.ports:
            raise BadInputError(f"--port {port}: not listed; ports: {', '.join(table.ports)}")
    free = [device for device, row in table.rows.items() if row.port is None]
    devices = order.devices or tuple(free[:MOST_DEVICES])
    if not devices:
        raise NotJudgedError("no device is free; name idle ones with --device, or free one")
    if not ports:
        raise NotJudgedError("no host port is known; name one with --port")
    return devices, ports


class _Kept(Struct):
    """What protects the table during a run; ``left``: what could not be put back; ``others``: what others moved;
    ``restoring_s``: how long putting back took."""

    file: RestoreFile | None = None
    left: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    restoring_s: float = 0.0


@contextlib.contextmanager
def _protected(order: Order, table: ListedTable, devices: tuple[str, ...], kept: _Kept) -> Iterator[None]:
    """Restore file, guard, signals, and the table put back at the end."""
    path = order.restore_file or default_path(order.address.url, order.dialect)
    address = order.address
    plan = RestorePlan(
        url=address.url,
        dialect=order.dialect,
        ca=_absolute(address.ca),
        cert=_absolute(address.cert),
        key=_absolute(address.key),
        insecure=address.insecure,
        patience_s=address.patience_s,
        limits=asdict(order.quirks.limits),
        pid=os.getpid(),
        born=born_at(os.getpid()),
    )
    file = kept.file = RestoreFile(path.absolute(), plan)
    try:
        make_own_folder(path.parent)
        file.remember(table, devices)
    except OSError as error:
        raise RequirementError(
            f"{path}: the restore file cannot be written, so nothing is changed: {error.strerror}"
        ) from error
    try:
        guard = Guard(file, order.credentials) if order.guarded else None
    except RequirementError:
        file.forget()
        raise
    try:
        with _signals_interrupt():
            yield
    finally:
        began_s = time.monotonic()
        with _signals_ignored():
            kept.left = _undo(order, file, kept)
        kept.restoring_s = time.monotonic() - began_s
        if kept.left:
            kept.left.append(f"mews conform --restore {file.path} tries again")
        if guard is not None:
            guard.dismiss()


def _absolute(file: str | None) -> str | None:
    """Return where a process in another folder finds it."""
    return None if file is None else str(Path(file).absolute())


def _undo(order: Order, file: RestoreFile, kept: _Kept) -> list[str]:
    """Put back with a bench of its own, whose observations count for no clause."""
    client = client_for(order.address, order.credentials)
    judged = clauses_of(order.dialect)
    face = judged.face(client)
    bench = ClauseContext(client, face, limits=order.quirks.limits, home=judged.home)
    bench.allow((), (), file)
    try:
        left = put_back(file, bench)
        table = bench.read()
        kept.remarks += put_back_neighbours(file.plan, table)
        kept.others = strangers(file.plan, table)
    except (ListingUnavailableError, MalformedError, NotJudgedError) as error:
        left = [str(error)]
    finally:
        with contextlib.suppress(NoAnswerError, HttpServerError, MalformedError):
            face.close()
    return left


def _versions(ask: Callable[[], Versions]) -> Versions:
    try:
        return ask()
    except (NoAnswerError, HttpServerError, MalformedError, NotJudgedError):
        return Versions()


@contextlib.contextmanager
def _signals_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP end the run as Ctrl-C does. Only where signals can be set: in the main thread."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled(interrupt):
        yield


@contextlib.contextmanager
def _signals_ignored() -> Iterator[None]:
    with _handled(signal.SIG_IGN):
        yield


@contextlib.contextmanager
def _handled(handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name)]
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
