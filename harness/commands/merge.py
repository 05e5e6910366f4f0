"""``mews merge``: the results of a sweep's parts as those of one run."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from mews.harness.commands.outputs import STDOUT, check_outputs, write_output
from mews.harness.commands.words import FailingParser
from mews.kube.system.command import Command, CommandContext

SUMMARY = "Join the files that `mews run --results` wrote for the shards of a sweep; exit with 1 if a run failed."
USAGE = "FILE… [--json FILE|-] [--results FILE|-] [--junit FILE|-]"


def run(arguments: Sequence[str], context: CommandContext) -> int:
    """Return the command.

    Raises BadInputError, RequirementError; ValueError for bad arguments.
    """
    parser = FailingParser("merge")
    parser.add_argument("files", nargs="+", type=Path)
    for name in ("json", "results", "junit"):
        parser.add_argument(f"--{name}")
    given = parser.parse_args(arguments)
    shown = check_outputs({"--json": given.json, "--results": given.results, "--junit": given.junit})

    from mews.harness.report.run import exit_code_of
    from mews.harness.sweeps import as_run, entry_text, merged

    sweep, items, results = merged(given.files)
    runs = [as_run(document) for document in results.values()]
    if given.json is not None:
        write_output("--json", given.json, json.dumps(list(results.values()), indent=2) + "\n")
    if given.results is not None:
        lines = [entry_text(sweep, item, items, document) for item, document in results.items()]
        write_output("--results", given.results, "".join(lines))
    if given.junit is not None:
        from mews.harness.report.junit import junit_xml

        write_output("--junit", given.junit, junit_xml(runs))
    if given.json != STDOUT:
        from mews.harness.report.text import TextReport

        report = TextReport(sys.stderr if shown else sys.stdout)
        for each in runs:
            report.ended(each)
        report.finish(runs)
    return exit_code_of(runs)


COMMAND = Command(
    "merge",
    SUMMARY,
    run,
    USAGE,
    options={
        "--json FILE|-": "write the results, as `mews run --json` does",
        "--results FILE|-": "write the result lines of all parts into one file",
        "--junit FILE|-": "write the results as JUnit XML",
    },
    examples=("mews merge 1.jsonl 2.jsonl --json all.json",),
)
