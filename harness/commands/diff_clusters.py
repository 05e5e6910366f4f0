"""``mews diff-clusters``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from mews.harness import terminal
from mews.harness.backends import BACKENDS, backend_of
from mews.harness.clusters.session import ClusterSession
from mews.harness.commands.global_options import is_quiet
from mews.harness.commands.logs import keep_quiet
from mews.harness.commands.outputs import check_outputs, write_output
from mews.harness.commands.run import load
from mews.harness.differential.cluster_history import ClusterHistory, stories_of
from mews.harness.differential.compare import HistoryDifference, compare
from mews.harness.engine import Engine
from mews.harness.errors import BadInputError
from mews.harness.options import RunOptions, check_available, check_choice
from mews.harness.report.progress import progress_bar

if TYPE_CHECKING:
    from mews.harness.scenario.model import Scenario


def diff_clusters(
    paths: Sequence[Path],
    clusters: Sequence[str],
    options: RunOptions,
    *,
    json_file: str | None,
    allow_outside: bool = False,
) -> int:
    """Run each scenario on each cluster and compare each with the first one; 0 when verdicts agree and every
    difference is explained, else 1.

    Raises BadInputError, RequirementError.
    """
    for cluster in clusters:
        check_choice("--clusters", cluster, tuple(BACKENDS))
    if len(clusters) < 2:
        raise BadInputError(f"--clusters {','.join(clusters)}: must be at least two different ones")
    keep_quiet()
    scenarios = load(paths, allow_outside=allow_outside)
    shown = not check_outputs({"--json": json_file})
    for cluster in clusters:
        check_available(cluster)
    found: list[HistoryDifference] = []
    accounts: list[ClusterHistory] = []
    with (
        progress_bar(len(scenarios) * len(clusters), quiet=is_quiet()) as bar,
        ClusterSession(keep=options.keep, notify=bar.print) as session,
    ):
        for scenario in scenarios:
            histories = []
            for cluster in clusters:
                bar.begin(f"{scenario.name} on {cluster}")
                histories.append(_account(scenario, options_on(cluster, options, scenario), session))
                bar.end()
            accounts += histories
            differences = [each for other in histories[1:] for each in compare(histories[0], other)]
            found += differences
            if shown and not (is_quiet() and all(each.why for each in differences)):
                terminal.out("".join(f"{line}\n" for line in _report(histories, differences)))
                sys.stdout.flush()
    if shown and not (is_quiet() and all(each.why for each in found)):
        terminal.out("".join(f"{line}\n" for line in _summary(accounts, found)))
    _write(json_file, accounts, found)
    return 1 if any(each.why is None for each in found) else 0


def options_on(cluster: str, options: RunOptions, scenario: Scenario) -> RunOptions:
    """Return the options with that cluster, in its default time; embedded in wall-clock time where the scenario demands
    it."""
    times, wanted = backend_of(cluster).times, scenario.requires.time
    return replace(options, cluster=cluster, time=wanted if wanted in times else times[0])


def _account(scenario: Scenario, options: RunOptions, session: ClusterSession) -> ClusterHistory:
    run = Engine(options, session=session).run(scenario)
    result = run.result
    return ClusterHistory(
        scenario.name,
        options.cluster,
        result.verdict,
        result.reason,
        round(result.wall_s or 0.0, 2),
        stories_of(run.lines),
        result.ignored,
    )


def _report(histories: Sequence[ClusterHistory], differences: Sequence[HistoryDifference]) -> Iterator[str]:
    verdicts = ", ".join(f"{account.cluster} {account.verdict} ({account.wall_s:.1f} s)" for account in histories)
    open_ = sum(each.why is None for each in differences)
    counts = f"{len(differences)} differences, {open_} unexplained" if differences else "no difference"
    yield f"{histories[0].scenario}: {verdicts}; {counts}"
    for account in histories:
        for key in account.ignored:
            yield f"  not honoured by {account.cluster}: {key['key']} ({key['why']})"
    for each in differences:
        if each.why is None:
            yield f"  {each.text}"


def _summary(accounts: Sequence[ClusterHistory], found: Sequence[HistoryDifference]) -> Iterator[str]:
    scenarios = len({account.scenario for account in accounts})
    open_ = [each for each in found if each.why is None]
    yield f"{scenarios} scenarios, {len(found)} differences, {len(open_)} unexplained"
    explained = sorted((each.why or "", each.thing, each.item) for each in found if each.why is not None)
    for why, rows in groupby(explained, key=lambda row: row[0]):
        yield f"  {len(list(rows)):4} x {why}"


def _write(file: str | None, accounts: Sequence[ClusterHistory], found: Sequence[HistoryDifference]) -> None:
    if file is None:
        return
    names = ("scenario", "cluster", "verdict", "reason", "wall_s", "ignored")
    runs = [{name: getattr(account, name) for name in names} for account in accounts]
    text = json.dumps({"runs": runs, "differences": [asdict(each) for each in found]}, indent=2) + "\n"
    write_output("--json", file, text)
