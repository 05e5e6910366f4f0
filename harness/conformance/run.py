"""A whole run: look, protect, judge, put back."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from types import FrameType
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.client import ChassisTarget
from mews.harness.conformance.dialects.registry import clauses_of
from mews.harness.conformance.errors import HttpServerError, ListingUnavailable, Malformed, NoAnswer, NotJudged
from mews.harness.conformance.expectations import Quirks, Waiver
from mews.harness.conformance.guard import Guard
from mews.harness.conformance.judge import ClauseJudge, ClauseResult
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
from mews.harness.errors import BadInput, Lacks
from mews.harness.leftovers import born
from mews.own_files import make_own_folder

MOST_DEVICES = 2
"""That are moved; the second stands in for a lost first."""


class Order(Struct, frozen=True):
    """What to judge and how. ``devices``: named by the user as idle; ``restore_file`` None: the chassis' own;
    ``profile`` None: all clauses by their own grades."""

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
    recorded: dict[str, list[dict[str, Any]]] | None = None


def conform(
    order: Order,
    today: date,
    on_result: Callable[[ClauseResult], None],
    on_wait: Callable[[str], None] = lambda text: None,
) -> ConformanceOutcome:
    """Judge the chassis. ``on_wait`` is called with one line when an answer is long in coming.

    Raises BadInput, Lacks (also where something answers that is no such chassis), KeyboardInterrupt; whatever it
    raises, the table is as before, or the guard sees to it.
    """
    began_s = time.monotonic()
    suite = clauses_of(order.dialect)
    client = client_for(order.address, order.credentials)
    face = suite.face(client)
    try:
        bench = ClauseContext(client, face, limits=order.quirks.limits, home=suite.home)
        bench.on_wait = on_wait
        recognise(bench, order.dialect)
        table = _first_look(bench)
        devices, ports = choose(order, table) if order.changes else ((), ())
        with _protected(order, table, devices) as keeper:
            bench.allow(devices, ports, keeper.file)
            profile = order.profile or ConformProfile("", suite.clauses)
            grades = {clause.id: profile.grade(clause) for clause in profile.clauses}
            judge = ClauseJudge(bench, order.quirks, order.waivers, today, order.changes, grades)
            run = ClauseSuite(judge, profile.clauses, on_result)
            with tempfile.TemporaryDirectory(prefix="mews-conform-") as folder:
                run_suite(run, suite.file, Path(folder))
            versions = _versions(face.versions)
        left = keeper.left
    finally:
        with contextlib.suppress(NoAnswer, HttpServerError, Malformed):
            face.close()
    differences: list[RecordingDifference] = [] if order.recorded is None else compare(run.results, order.recorded)
    return ConformanceOutcome(
        url=order.address.url,
        dialect=order.dialect,
        changes=order.changes,
        devices=devices,
        profile=profile.name,
        quirks=order.quirks.name,
        versions=versions,
        results=run.results,
        restored=tuple(left) if order.changes else None,
        differences=differences,
        remarks=tuple(keeper.remarks),
        others=tuple(keeper.others),
        seconds=time.monotonic() - began_s,
        log=tuple(client.log),
    )


def _first_look(bench: ClauseContext) -> ListedTable | None:
    """The table, or None where something answers but it cannot be read.

    Raises Lacks where nothing does.
    """
    try:
        return bench.read()
    except (Malformed, NotJudged):
        return None
    except ListingUnavailable as error:
        if bench.answered():
            return None
        raise Lacks(f"{error}; no chassis answers there") from error


def choose(order: Order, table: ListedTable | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The devices that may be moved: those that were named, else free ones; and the ports that they may be put on.

    Raises Lacks where the table could not be put back or nothing is idle, BadInput for names that are none.
    """
    if table is None:
        raise Lacks("--allow-changes: the listing cannot be read, so the table could not be restored")
    for device in order.devices:
        if device not in table.rows:
            raise BadInput(f"--device {device}: not listed; there are {', '.join(table.rows)}")
    ports = order.ports or table.likely_ports()
    for port in order.ports:
        if table.ports and clauses_of(order.dialect).lists_ports and port not in table.ports:
            raise BadInput(f"--port {port}: not listed; there are {', '.join(table.ports)}")
    free = [device for device, row in table.rows.items() if row.port is None]
    devices = order.devices or tuple(free[:MOST_DEVICES])
    if not devices:
        raise Lacks("--allow-changes: no device is free; name idle ones with --device, or free one")
    if not ports:
        raise Lacks("--allow-changes: no host port is known; name one with --port")
    return devices, ports


class _Kept(Struct):
    """What protects the table during a run; ``left``: what could not be put back; ``others``: what others moved."""

    file: RestoreFile | None = None
    left: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


@contextlib.contextmanager
def _protected(order: Order, table: ListedTable | None, devices: tuple[str, ...]) -> Iterator[_Kept]:
    """Nothing for a read-only run; else restore file, guard, signals, and the table put back at the end."""
    kept = _Kept()
    if not order.changes or table is None:
        yield kept
        return
    path = order.restore_file or default_path(order.address.url, order.dialect)
    address = order.address
    plan = RestorePlan(
        url=address.url,
        dialect=order.dialect,
        ca=None if address.ca is None else str(Path(address.ca).absolute()),
        insecure=address.insecure,
        patience_s=address.patience_s,
        limits=asdict(order.quirks.limits),
        pid=os.getpid(),
        born=born(os.getpid()),
    )
    file = kept.file = RestoreFile(path.absolute(), plan)
    try:
        make_own_folder(path.parent)
        file.remember(table, devices)
    except OSError as error:
        raise Lacks(f"{path}: the restore file cannot be written, so nothing is changed: {error.strerror}") from error
    try:
        guard = Guard(file, order.credentials)
    except Lacks:
        file.forget()
        raise
    try:
        with _signals_interrupt():
            yield kept
    finally:
        with _signals_ignored():
            kept.left = _undo(order, file, kept)
        if kept.left:
            kept.left.append(f"mews conform --restore {file.path} tries again")
        guard.dismiss()


def _undo(order: Order, file: RestoreFile, kept: _Kept) -> list[str]:
    """Put back with a bench of its own, whose observations count for no clause."""
    client = client_for(order.address, order.credentials)
    judged = clauses_of(order.dialect)
    face = judged.face(client)
    bench = ClauseContext(client, face, limits=order.quirks.limits, home=judged.home)
    try:
        left = put_back(file, bench)
        table = bench.read()
        kept.remarks += put_back_neighbours(file.plan, table)
        kept.others = strangers(file.plan, table)
    except (ListingUnavailable, Malformed) as error:
        left = [str(error)]
    finally:
        with contextlib.suppress(NoAnswer, HttpServerError, Malformed):
            face.close()
    return left


def _versions(ask: Callable[[], Versions]) -> Versions:
    try:
        return ask()
    except (NoAnswer, HttpServerError, Malformed):
        return Versions()


@contextlib.contextmanager
def _signals_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP end the run as Ctrl-C does. Only where signals can be set: in the main thread."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled((signal.SIGTERM, signal.SIGHUP, signal.SIGINT), interrupt):
        yield


@contextlib.contextmanager
def _signals_ignored() -> Iterator[None]:
    with _handled((signal.SIGTERM, signal.SIGHUP, signal.SIGINT), signal.SIG_IGN):
        yield


@contextlib.contextmanager
def _handled(numbers: tuple[signal.Signals, ...], handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
