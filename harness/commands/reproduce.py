"""``mews reproduce``: public bugs, each with its mistake and without it (docs/fuzz.md, "Public bugs")."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mews.harness import terminal
from mews.harness.commands.global_options import is_quiet
from mews.harness.commands.outputs import STDOUT, check_outputs, write_output
from mews.harness.commands.words import FailingParser, at_least
from mews.harness.errors import BadInputError
from mews.kube.system.command import Command, CommandContext

if TYPE_CHECKING:
    from mews.harness.museum.bug import Bug
    from mews.harness.museum.museum import Reproduction

SUMMARY = "Reproduce public bugs of device plugins, schedulers, operators and kubelets, with the bug and without."
USAGE = "[NAME]… [--list] [--jobs N] [--out DIR] [--json [FILE|-]] | NAME --with-bug|--without-bug COMMAND…"


def run(words: Sequence[str], context: CommandContext) -> int:
    """Reproduce the named bugs, or all; 1 where one is not reproduced, though its programs are there. With a command:
    its exit code.

    Raises BadInputError; ValueError for bad arguments.
    """
    parser = FailingParser("reproduce")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=at_least(1), default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--json", nargs="?", const=STDOUT)
    for name in ("with-bug", "without-bug"):
        parser.add_argument(f"--{name}", nargs=argparse.REMAINDER)
    given = parser.parse_args(words)
    from mews.harness.museum.museum import all_bugs, bug_of, check_places

    bugs = [bug_of(name) for name in given.names] or all_bugs()
    if given.with_bug is not None or given.without_bug is not None:
        return _pass_on(given, bugs)
    shown = check_outputs({"--json": given.json})
    if given.list:
        _list(bugs, given.json)
        return 0
    check_places(bugs)
    if given.out is not None and given.out.exists() and not given.out.is_dir():
        raise BadInputError(f"--out {given.out}: must be a folder")
    return _reproduce(bugs, given, quiet=shown or given.json == STDOUT)


def _pass_on(given: Any, bugs: Sequence[Bug]) -> int:
    from mews.harness.museum.museum import check_places, command_of

    has_bug = given.with_bug is not None
    option, words = ("--with-bug", given.with_bug) if has_bug else ("--without-bug", given.without_bug)
    if len(given.names) != 1:
        raise BadInputError(f"mews reproduce {option}: needs the name of one bug before it")
    if not words:
        raise BadInputError(f"mews reproduce {option}: needs a command of mews after it, such as `run demo`")
    check_places(bugs)
    return subprocess.run(command_of(bugs[0], words[words[0] == "mews" :], has_bug=has_bug)).returncode


def _list(bugs: Sequence[Bug], target: str | None) -> None:
    if target is not None:
        write_output("--json", target, json.dumps([_described(bug) for bug in bugs], indent=1) + "\n")
        return
    width = max(len(bug.name) for bug in bugs)
    for bug in bugs:
        ended = "open" if bug.is_open else f"fixed in {bug.fixed}"
        terminal.out(f"{bug.name.ljust(width)}  {bug.title} ({bug.component}, {ended})\n")


def _reproduce(bugs: Sequence[Bug], given: Any, *, quiet: bool) -> int:
    from mews.harness.museum.museum import reproduce
    from mews.harness.report.progress import ProgressBar

    bar = ProgressBar(len(bugs), threads=True, quiet=is_quiet() or quiet)
    ended: list[Reproduction] = []
    try:
        for found in reproduce(bugs, jobs=given.jobs, artefacts=given.out, begun=lambda bug: bar.begin(bug.name)):
            ended.append(found)
            bar.reached(len(ended))
            if not quiet:
                terminal.out(_text(found))
    finally:
        bar.close()
    failed = sum(bool(each.wrong) for each in ended)
    if given.json is not None:
        write_output("--json", given.json, json.dumps([_document(each) for each in ended], indent=1) + "\n")
    if not quiet and len(ended) > 1:
        skipped = sum(bool(each.skipped) for each in ended)
        more = f", {skipped} skipped" if skipped else ""
        terminal.out(f"{len(ended) - failed - skipped} of {len(ended)} reproduced{more}\n")
    return 1 if failed else 0


def _text(found: Reproduction) -> str:
    bug = found.bug
    if found.skipped:
        return f"SKIPPED {bug.name}: {found.skipped}\n"
    if found.wrong:
        return f"NOT REPRODUCED {bug.name}: {found.wrong}\n"
    return f"REPRODUCED {bug.name}: {bug.title}\n    with the bug: {found.cited}\n    without: {bug.seen.otherwise}\n"


def _described(bug: Bug) -> dict[str, Any]:
    return {
        "name": bug.name,
        "title": bug.title,
        "component": bug.component,
        "links": list(bug.links),
        "affected": bug.affected,
        "fixed": bug.fixed or None,
        "mechanism": " ".join(bug.mechanism.split()),
        "scenario": bug.world,
        "seed": bug.seed,
    }


def _document(found: Reproduction) -> dict[str, Any]:
    sides = {"with": found.with_bug, "without": found.without}
    return {
        **_described(found.bug),
        "reproduced": not found.wrong and not found.skipped,
        "reason": found.skipped or found.wrong,
        **{side: {"verdict": run.verdict, "complaints": list(run.complaints)} for side, run in sides.items()},
    }


COMMAND = Command(
    "reproduce",
    SUMMARY,
    run,
    USAGE,
    options={
        "--list": "list the bugs and run nothing",
        "--jobs N": "run N bugs at a time; default: one per processor",
        "--out DIR": "write the journal and the report of each run to DIR/NAME/with and DIR/NAME/without",
        "--json [FILE|-]": "write the result, or the list, as JSON; default: standard output",
        "--with-bug COMMAND": "run a command of mews with the bug planted, such as fuzz demo",
        "--without-bug COMMAND": "run that command without the bug",
    },
    passes_on=True,
    examples=(
        "mews reproduce",
        "mews reproduce kubernetes-137534 --out bug",
        "mews reproduce kubernetes-62773 --with-bug fuzz scenarios/kubelet --budget 60s",
    ),
)
