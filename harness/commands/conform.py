"""``mews conform``."""

from __future__ import annotations

import json
import ssl
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mews.harness.clock import today
from mews.harness.commands.outputs import check_outputs, write_output
from mews.harness.conformance.client import Address
from mews.harness.conformance.dialects.registry import clauses_of
from mews.harness.conformance.expectations import Quirks, load_quirks, load_waivers
from mews.harness.conformance.guard import restore as put_back
from mews.harness.conformance.open import PASSWORD, USER, check_url, credentials_of
from mews.harness.conformance.recording import load, record
from mews.harness.conformance.report.outcome import Outcome
from mews.harness.conformance.report.text import TextReport
from mews.harness.conformance.restore import RestoreFile, default_path, read_file
from mews.harness.conformance.run import Order
from mews.harness.conformance.run import conform as run
from mews.harness.errors import BadInput, Lacks
from mews.harness.leftovers import born

GUARD_PATIENCE_S = 300.0


@dataclass(frozen=True, slots=True)
class Wish:
    """The options as given."""

    url: str
    dialect: str
    changes: bool = False
    devices: Sequence[str] = ()
    ports: Sequence[str] = ()
    quirks: str | None = None
    waivers: Path | None = None
    credentials: Path | None = None
    ca: Path | None = None
    insecure: bool = False
    patience_s: float = 60.0
    restore_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where reports go; one may be ``-``, standard output. ``diff`` is a recording to compare with."""

    json: str | None = None
    junit: Path | None = None
    html: Path | None = None
    record: Path | None = None
    diff: Path | None = None


def conform(wish: Wish, outputs: Outputs) -> int:
    """Judge a chassis, write the reports; the exit code.

    Raises BadInput, Lacks, KeyboardInterrupt.
    """
    order = _order(wish, outputs)
    quiet = check_outputs({"--json": outputs.json, "--junit": outputs.junit, "--html": outputs.html})
    _make_folder(outputs.record)
    _finish_earlier(order)
    report = TextReport(sys.stdout)
    outcome = run(order, today(), (lambda result: None) if quiet else report.ended)
    if not quiet:
        report.finish(outcome)
    _write_reports(outcome, outputs)
    return 0 if outcome.verdict == "passed" else 1


def restore(file: Path, credentials: Path | None) -> int:
    """Put a table back as a restore file says; 0 if all of it is.

    Raises BadInput.
    """
    found = read_file(file)
    _not_running(found)
    code = put_back(file, credentials_of(credentials))
    if code == 0:
        sys.stdout.write(f"{found.plan.url}: the table is as before\n")
    return code


def _order(wish: Wish, outputs: Outputs) -> Order:
    url = check_url(wish.url)
    credentials = credentials_of(wish.credentials)
    judged = clauses_of(wish.dialect)
    if judged.login and credentials is None:
        raise BadInput(f"--dialect {wish.dialect}: set {USER} and {PASSWORD}, or give --credentials FILE")
    clauses = judged.clauses
    _check_ca(wish)
    if (wish.devices or wish.ports) and not wish.changes:
        raise BadInput("--device and --port: only with --allow-changes")
    return Order(
        address=Address(url, None if wish.ca is None else str(wish.ca), wish.insecure, wish.patience_s),
        dialect=wish.dialect,
        credentials=credentials,
        changes=wish.changes,
        devices=tuple(dict.fromkeys(wish.devices)),
        ports=tuple(dict.fromkeys(wish.ports)),
        quirks=Quirks() if wish.quirks is None else load_quirks(wish.quirks, wish.dialect, clauses),
        waivers=() if wish.waivers is None else load_waivers(wish.waivers, clauses),
        restore_file=wish.restore_file,
        recorded=None if outputs.diff is None else load(outputs.diff, wish.dialect),
    )


def _finish_earlier(order: Order) -> None:
    """Put back what an interrupted run left, or wait until its guard has.

    Raises BadInput where a run is going on, Lacks where the table cannot be restored.
    """
    path = order.restore_file or default_path(order.address.url, order.dialect)
    if not path.exists():
        return
    earlier = read_file(path)
    _not_running(earlier)
    for _ in range(int(GUARD_PATIENCE_S / 0.1)):
        if not path.exists():
            return
        guard = read_file(path).plan.guard
        if not guard or not born(guard):
            break
        threading.Event().wait(0.1)
    if not path.exists():
        return
    sys.stderr.write(f"{path}: an interrupted run left it; restoring the table\n")
    if put_back(path, order.credentials) != 0:
        raise Lacks(f"{path}: the table of an interrupted run cannot be restored, so nothing is started")


def _not_running(file: RestoreFile) -> None:
    if file.plan.born and born(file.plan.pid) == file.plan.born:
        raise BadInput(f"{file.path}: a run on {file.plan.url} is going on (pid {file.plan.pid})")


def _check_ca(wish: Wish) -> None:
    if wish.ca is None:
        return
    if wish.insecure:
        raise BadInput(f"--ca {wish.ca} --insecure: only one of the two")
    try:
        ssl.create_default_context(cafile=str(wish.ca))
    except OSError as error:
        raise BadInput(f"--ca {wish.ca}: must be a PEM file of certificates: {error.strerror or error}") from error


def _make_folder(folder: Path | None) -> None:
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"--record {folder}: cannot be made: {error.strerror}") from error


def _write_reports(outcome: Outcome, outputs: Outputs) -> None:
    if outputs.json is not None:
        write_output("--json", outputs.json, json.dumps(outcome.as_dict(), indent=2) + "\n")
    if outputs.junit is not None:
        from mews.harness.conformance.report.junit import junit_xml

        write_output("--junit", outputs.junit, junit_xml(outcome))
    if outputs.html is not None:
        from mews.harness.conformance.report.html import html_page

        write_output("--html", outputs.html, html_page(outcome))
    if outputs.record is not None:
        record(outputs.record, outcome.dialect, outcome.results)
