"""``mews conform``."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mews.harness import terminal
from mews.harness.clock import today
from mews.harness.commands.global_options import is_quiet
from mews.harness.commands.outputs import check_outputs, write_output
from mews.harness.conformance.baseline import load_baseline, since
from mews.harness.conformance.birth import born_at
from mews.harness.conformance.certificates import TlsArguments
from mews.harness.conformance.dialects.registry import clauses_of
from mews.harness.conformance.expectations import Quirks, load_quirks, load_waivers
from mews.harness.conformance.guard import restore as put_back
from mews.harness.conformance.open import PASSWORD, USER, check_url, credentials_of
from mews.harness.conformance.profiles import load_profile
from mews.harness.conformance.recording import load, record
from mews.harness.conformance.report.outcome import ConformanceOutcome
from mews.harness.conformance.report.text import ConformanceTextReport
from mews.harness.conformance.restore import RestoreFile, default_path, read_file
from mews.harness.conformance.run import BUDGET_S, Order
from mews.harness.conformance.run import conform as run
from mews.harness.errors import BadInputError, RequirementError
from mews.own_files import make_own_folder

GUARD_PATIENCE_S = 300.0
CODES: Mapping[str, int] = {"passed": 0, "failed": 1, "incomplete": 4}
"""Exit codes by verdict: a chassis that nothing speaks against is not called wrong for want of time."""
_TIME = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)([smh]?)")


class ConformChanges(Struct, frozen=True):
    """Whether devices may be moved, which ones and where to, and where the way back is noted."""

    allowed: bool = False
    devices: Sequence[str] = ()
    ports: Sequence[str] = ()
    restore_file: Path | None = None


class ConformExpectations(Struct, frozen=True):
    """What is asked of the chassis, and what is known of it beforehand."""

    profile: str = "stack"
    quirks: str | None = None
    waivers: Path | None = None


class ConformTrust(Struct, frozen=True):
    """Who logs in, which certificates are trusted, and which one is shown."""

    credentials: Path | None = None
    tls: TlsArguments = TlsArguments()


class ConformArguments(Struct, frozen=True):
    """The options as given."""

    url: str
    dialect: str
    changes: ConformChanges
    expectations: ConformExpectations
    trust: ConformTrust = ConformTrust()
    patience_s: float = 60.0
    budget_s: float = BUDGET_S


class ConformOutputs(Struct, frozen=True):
    """Where reports go; one may be ``-``, standard output. ``diff`` is a recording to compare with,
    ``baseline`` the JSON report of an earlier run."""

    json: str | None = None
    junit: Path | None = None
    html: Path | None = None
    record: Path | None = None
    diff: Path | None = None
    baseline: Path | None = None
    sarif: str | None = None


def conform(arguments: ConformArguments, outputs: ConformOutputs) -> int:
    """Judge a chassis, write the reports; the exit code.

    Raises BadInputError, RequirementError, KeyboardInterrupt.
    """
    if not 0 < arguments.patience_s < 86_400:
        raise BadInputError(f"--patience {arguments.patience_s:g}: must be above 0 and below a day")
    order = _order(arguments, outputs)
    quiet = check_outputs(
        {"--json": outputs.json, "--junit": outputs.junit, "--html": outputs.html, "--sarif": outputs.sarif}
    )
    earlier = None if outputs.baseline is None else load_baseline(outputs.baseline, arguments.dialect)
    _make_folder(outputs.record)
    _finish_earlier(order)
    report = ConformanceTextReport(sys.stdout, quiet=is_quiet())
    outcome = run(order, today(), (lambda result: None) if quiet else report.ended, _show)
    if earlier is not None:
        outcome = replace(outcome, since=since(earlier, outcome))
    if not quiet and outcome.verdict != "error":
        report.finish(outcome)
    _write_reports(outcome, outputs)
    if outcome.verdict == "error":
        raise RequirementError(outcome.unable)
    return CODES[outcome.verdict]


def _show(text: str) -> None:
    terminal.err(f"{text}\n")
    sys.stderr.flush()


def seconds_of(option: str, text: str) -> float:
    """Return a time of the command line: ``90``, ``60s``, ``2m``.

    Raises BadInputError.
    """
    found = _TIME.fullmatch(text)
    seconds = float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]] if found else 0.0
    if not 0 < seconds < 86_400:
        raise BadInputError(f"{option} {text}: must be a time such as 60s or 2m, above 0 and below a day")
    return seconds


def restore(file: Path, credentials: Path | None) -> int:
    """Put a table back as a restore file says; 0 if all of it is.

    Raises BadInputError.
    """
    found = read_file(file)
    _not_running(found)
    code = put_back(file, credentials_of(credentials))
    if code == 0:
        terminal.out(f"{found.plan.url}: the table is as before\n")
    return code


def _order(arguments: ConformArguments, outputs: ConformOutputs) -> Order:
    url = check_url(arguments.url)
    trust = arguments.trust
    credentials = credentials_of(trust.credentials)
    judged = clauses_of(arguments.dialect)
    if judged.login and credentials is None:
        raise BadInputError(f"--dialect {arguments.dialect}: set {USER} and {PASSWORD}, or give --credentials FILE")
    trust.tls.check(url)
    moved, known = arguments.changes, arguments.expectations
    if (moved.devices or moved.ports) and not moved.allowed:
        raise BadInputError("--device and --port: only with --allow-changes")
    profile = load_profile(known.profile, arguments.dialect, judged.clauses, judged.gates)
    clauses = profile.clauses
    quirks = Quirks() if known.quirks is None else load_quirks(known.quirks, arguments.dialect, clauses)
    return Order(
        address=trust.tls.target(url, arguments.patience_s),
        dialect=arguments.dialect,
        credentials=credentials,
        changes=moved.allowed,
        devices=tuple(dict.fromkeys(moved.devices)),
        ports=tuple(dict.fromkeys(moved.ports)),
        profile=profile,
        quirks=replace(quirks, limits=profile.timing(quirks.limits)),
        waivers=() if known.waivers is None else load_waivers(known.waivers, clauses),
        restore_file=moved.restore_file,
        budget_s=arguments.budget_s,
        recorded=None if outputs.diff is None else load(outputs.diff, arguments.dialect),
    )


def _finish_earlier(order: Order) -> None:
    """Put back what an interrupted run left, or wait until its guard has.

    Raises BadInputError where a run is going on, RequirementError where the table cannot be restored.
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
        if not guard or not born_at(guard):
            break
        threading.Event().wait(0.1)
    if not path.exists():
        return
    terminal.err(f"{path}: an interrupted run left it; restoring the table\n")
    if put_back(path, order.credentials) != 0:
        raise RequirementError(f"{path}: the table of an interrupted run cannot be restored, so nothing is started")


def _not_running(file: RestoreFile) -> None:
    if file.plan.born and born_at(file.plan.pid) == file.plan.born:
        raise BadInputError(f"{file.path}: a run on {file.plan.url} is going on (pid {file.plan.pid})")


def _make_folder(folder: Path | None) -> None:
    if folder is None:
        return
    try:
        make_own_folder(folder)
    except OSError as error:
        raise BadInputError(f"--record {folder}: cannot be made: {error.strerror}") from error


def _write_reports(outcome: ConformanceOutcome, outputs: ConformOutputs) -> None:
    if outputs.json is not None:
        write_output("--json", outputs.json, json.dumps(outcome.as_dict(), indent=2) + "\n")
    if outputs.junit is not None:
        from mews.harness.conformance.report.junit import junit_xml

        write_output("--junit", outputs.junit, junit_xml(outcome))
    if outputs.html is not None:
        from mews.harness.conformance.report.html import html_page

        write_output("--html", outputs.html, html_page(outcome))
    if outputs.sarif is not None:
        from mews.harness.conformance.report.sarif import sarif_text

        write_output("--sarif", outputs.sarif, sarif_text(outcome))
    if outputs.record is not None:
        record(outputs.record, outcome.dialect, outcome.log)
