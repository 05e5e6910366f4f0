"""``mews fuzz``: worlds of chance until a law is broken (docs/fuzz.md)."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mews.harness import terminal
from mews.harness.commands.global_options import is_quiet
from mews.harness.commands.logs import keep_quiet
from mews.harness.commands.outputs import STDOUT, check_outputs, write_output
from mews.harness.commands.words import FailingParser, at_least
from mews.harness.errors import BadInputError, RequirementError
from mews.kube.system.command import Command, CommandContext

if TYPE_CHECKING:
    from mews.harness.fuzz.files import FuzzFinding
    from mews.harness.fuzz.search import FuzzOptions, FuzzProgress, FuzzTarget, Search
    from mews.harness.report.run import Run

SUMMARY = "Search scenarios for faults, crashes and deletions that break a law, and shrink what is found."
USAGE = (
    "PATH… [--budget 60s|N] [--jobs N] [--seed N] [--systematic crashes|pairs] [--waits] [--oracle MODULE:CALLABLE]… "
    "[--without KIND]… [--set KEY=VALUE]… [--out DIR] [--resume] [--json FILE|-] [--junit FILE]"
)
OUT = Path("mews-fuzz")
FINDING = "finding.json"
_SYSTEMATIC = {"crashes": 1, "pairs": 2}


def run(words: Sequence[str], context: CommandContext) -> int:
    """Search all scenarios; 1 where something was found.

    Raises BadInputError, RequirementError, KeyboardInterrupt; ValueError for bad arguments.
    """
    parser = FailingParser("fuzz")
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--seed", type=at_least(0), default=1)
    parser.add_argument("--jobs", type=at_least(1), default=os.cpu_count() or 1)
    parser.add_argument("--systematic", choices=tuple(_SYSTEMATIC))
    for name in ("oracle", "without", "set"):
        parser.add_argument(f"--{name}", action="append", default=[])
    parser.add_argument("--out", type=Path, default=OUT)
    for name in ("waits", "resume"):
        parser.add_argument(f"--{name}", action="store_true")
    for name in ("json", "junit"):
        parser.add_argument(f"--{name}")
    given = parser.parse_args(words)
    if not given.paths:
        raise BadInputError("PATH: missing; give scenario files or folders, or names that `mews list scenarios` lists")
    shown = check_outputs({"--json": given.json, "--junit": given.junit})
    _check_folder(given.out, given.resume)
    keep_quiet()

    from mews.harness.fuzz.search import FuzzOptions, Search, budget_of, kinds_of

    asked = FuzzOptions(
        budget_of(given.budget),
        given.seed,
        given.jobs,
        given.waits,
        tuple(given.oracle),
        kinds_of(given.without),
        tuple(given.set),
        _SYSTEMATIC.get(given.systematic, 0),
    )
    targets = _targets(given.paths, asked)
    with _progress(asked) as observe:
        search = Search(targets, asked, given.out, observe)
        if given.resume:
            search.resume()
        try:
            search.run()
        except KeyboardInterrupt:
            terminal.err(f"interrupted after {search.worlds} worlds; --resume --out {given.out} goes on\n")
            raise
        found = list(search.findings())
    _report(search, found, quiet=shown or STDOUT in (given.json, given.junit))
    if given.json is not None:
        write_output("--json", given.json, json.dumps(_document(search, found), indent=1) + "\n")
    if given.junit is not None:
        from mews.harness.report.junit import junit_xml

        found_in = {finding.scenario for finding, _, _ in found}
        passed = [each.clean for each in targets if each.menu.scenario.name not in found_in]
        write_output("--junit", given.junit, junit_xml([*passed, *(run for _, run, _ in found)]))
    return 1 if found else 0


def _check_folder(folder: Path, resume: bool) -> None:
    from mews.harness.fuzz.search import STATE

    if folder.exists() and not folder.is_dir():
        raise BadInputError(f"--out {folder}: must be a folder")
    if (folder / STATE).exists() and not resume:
        raise BadInputError(f"--out {folder}: has a search already: continue it with --resume, or name another folder")


def _targets(paths: Sequence[Path], asked: FuzzOptions) -> list[FuzzTarget]:
    """Return the scenarios that can be searched; those that are skipped are named.

    Raises BadInputError, RequirementError where none is left.
    """
    from mews.harness.commands.run import load
    from mews.harness.fuzz.search import target_of

    targets, skipped, wrong = [], [], []
    for scenario in load(paths, asked.overrides):
        try:
            targets.append(target_of(scenario, asked))
        except RequirementError as error:
            skipped.append(str(error))
        except BadInputError as error:
            wrong.append(str(error))
    if wrong:
        raise BadInputError("\n".join(wrong))
    if not targets:
        raise RequirementError("\n".join(skipped))
    for line in skipped:
        terminal.err(f"{line}\n")
    return targets


class _progress:
    """A bar over the budget; ``with`` gives what shows how far a search is."""

    def __init__(self, asked: FuzzOptions) -> None:
        from mews.harness.report.progress import ProgressBar

        self._budget = asked.budget
        total = asked.budget.worlds or int(asked.budget.seconds or 0) or 1
        self._bar = ProgressBar(total, threads=False, quiet=is_quiet())

    def __enter__(self) -> Any:
        return self._show

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def _show(self, progress: FuzzProgress) -> None:
        rate = progress.worlds / progress.seconds if progress.seconds else 0.0
        self._bar.begin(f"{progress.worlds} worlds, {rate:.0f}/s, {progress.features} covered, {progress.found} found")
        self._bar.reached(progress.worlds if self._budget.worlds else int(progress.seconds))
        self._bar.refresh()


def _report(search: Search, found: Sequence[tuple[FuzzFinding, Run, Path]], *, quiet: bool) -> None:
    if quiet:
        return
    for finding, _, folder in found:
        line = "" if finding.problem.line is None else f"; first wrong line: {finding.problem.line}"
        befell = "".join(f"\n    {json.dumps(entry)}" for entry in finding.plan.entries)
        again = shlex.join(["mews", "run", str(folder / "scenario.yaml")])
        terminal.out(
            f"FOUND in {finding.scenario} (world {finding.worlds}): {finding.problem.what}{line}{befell}\n"
            f"    replay: {again}; report: {folder / 'report.html'}\n"
        )
        for doubt in _doubts(folder):
            terminal.out(f"    {doubt}\n")
    if is_quiet():
        return
    missed = sum(not target.worlds for target in search.targets)
    if missed:
        terminal.err(f"WARNING: the budget did not reach {missed} of {len(search.targets)} scenarios\n")
    for target in search.targets:
        if target.skipped:
            name, count = target.menu.scenario.name, len(target.skipped)
            terminal.err(f"WARNING: {name}: {count} worlds were skipped: {target.skipped[0]}\n")
    for target in search.targets:
        name, covered = target.menu.scenario.name, len(target.features)
        terminal.out(f"{name}: {target.worlds} worlds, {covered} situations covered, {len(target.found)} found\n")


def _doubts(folder: Path) -> Iterator[str]:
    """Yield what a finding is not."""
    written = json.loads((folder / FINDING).read_text(encoding="utf-8"))
    if not written["replays"]:
        yield "WARNING: the scenario does not show it when it is replayed"
    if not written["minimal"]:
        yield "not minimal: the search ended before everything was left out that can be"


def _document(search: Search, found: Sequence[tuple[FuzzFinding, Run, Path]]) -> dict[str, Any]:
    return {
        "worlds": search.worlds,
        "scenarios": [
            {
                "scenario": each.menu.scenario.name,
                "worlds": each.worlds,
                "skipped": len(each.skipped),
                "covered": len(each.features),
            }
            for each in search.targets
        ],
        "findings": [
            {"folder": str(folder), **json.loads((folder / FINDING).read_text(encoding="utf-8"))}
            for _, _, folder in found
        ],
    }


COMMAND = Command(
    "fuzz",
    SUMMARY,
    run,
    USAGE,
    options={
        "--budget 60s|N": "search for this time, or play this many worlds; default: 60s",
        "--jobs N": "play worlds in this many processes; default: one per processor",
        "--seed N": "draw worlds by this seed; default: 1",
        "--systematic crashes|pairs": "restart every component at every journal line, or any two of them",
        "--waits": "judge by the scenario's waits, too, in worlds whose faults all end",
        "--oracle MODULE:CALLABLE": "judge by this invariant, too; may be repeated",
        "--without KIND": "leave out kill, fault, api-fault, edit, delete, force-delete, replace, copy or one kind",
        "--set KEY=VALUE": "change one value of the scenarios, as for mews run; may be repeated",
        "--out DIR": f"write findings here; default: {OUT}",
        "--resume": "continue the search in --out",
        "--json FILE|-": "write findings as JSON",
        "--junit FILE": "write findings as JUnit XML",
    },
    examples=(
        "mews fuzz demo --budget 60s",
        "mews fuzz scenarios/kubelet --budget 2000 --seed 7 --out found",
        "mews fuzz mine.yaml --set stack.replace.kubecomp.scheduler=mine:make --waits",
    ),
)
