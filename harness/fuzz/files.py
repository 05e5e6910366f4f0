"""A finding as a folder: the smallest scenario that shows it, its journal, its report, and what it is in numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from mews.harness.engine import Engine
from mews.harness.fuzz.choices import DrawnDisruption, WorldPlan, of_kinds
from mews.harness.fuzz.world import Player, Problem, problems_of
from mews.harness.options import RunOptions
from mews.harness.report.html import write_report
from mews.harness.report.run import Run
from mews.harness.scenario.loader import load_scenario
from mews.harness.scenario.overrides import apply_overrides, overrides_of
from mews.harness.scenario.yamlfile import read_yaml
from mews.own_files import make_own_folder, write_own
from mews.yaml_text import written_yaml

SCENARIO, FINDING, JOURNAL = "scenario.yaml", "finding.json", "journal.jsonl"
_MODULE = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
_SLUG = re.compile(r"[^a-z0-9]+")


class FuzzFinding(Struct, frozen=True):
    """A problem with the smallest world that shows it. ``worlds``: which world of the search had it; ``shrunk``: how
    many more were played to make it small; ``is_minimal``: nothing can be left out of it."""

    scenario: str
    problem: Problem
    plan: WorldPlan
    worlds: int
    shrunk: int
    is_minimal: bool = True
    also: tuple[Problem, ...] = ()
    """What else is wrong with that world."""

    @property
    def slug(self) -> str:
        """What its folder is called."""
        return _SLUG.sub("-", f"{self.scenario} {self.problem.key}".lower()).strip("-")

    def as_dict(self, *, virtual_s: float, replays: bool) -> dict[str, Any]:
        """``finding.json``. ``seconds`` are virtual ones, so that the same search writes the same bytes."""
        return {
            "scenario": self.scenario,
            "seed": self.plan.seed,
            "invariant": self.problem.invariant,
            "what": self.problem.what,
            "also": [each.what for each in self.also],
            "line": self.problem.line,
            "expected_after": self.problem.after,
            "faults": [choice.kind for choice in self.plan.choices],
            "steps": self.plan.entries,
            "worlds": self.worlds,
            "shrunk": self.shrunk,
            "minimal": self.is_minimal,
            "seconds": virtual_s,
            "replays": replays,
        }


def write_finding(finding: FuzzFinding, player: Player, overrides: Sequence[str], folder: Path) -> Run:
    """Write the folder, and play its scenario as ``mews run`` will: its journal and report are of that run.

    Raises OSError.
    """
    make_own_folder(folder)
    base = player.scenario
    assert base.path is not None and base.folder is not None
    for name in sorted(_beside(base.folder, base.path.read_text(encoding="utf-8"))):
        make_own_folder((folder / name).parent)
        write_own(folder / name, (base.folder / name).read_bytes())
    file = folder / SCENARIO
    write_own(file, scenario_text(finding, player, overrides))
    run = Engine(RunOptions()).attempt(load_scenario(file), finding.plan.seed)
    write_own(folder / JOURNAL, "".join(line.as_json() + "\n" for line in run.lines))
    write_report(run, folder)
    replays = any(each.key == finding.problem.key for each in problems_of(run))
    written = finding.as_dict(virtual_s=float(run.result.virtual_s or 0.0), replays=replays)
    write_own(folder / FINDING, json.dumps(written, indent=1) + "\n")
    return run


def scenario_text(finding: FuzzFinding, player: Player, overrides: Sequence[str]) -> str:
    """Return the scenario as it was read, and below it what befalls it; written out anew where that cannot stand
    below."""
    base, plan = player.scenario, finding.plan
    assert base.path is not None
    text = base.path.read_text(encoding="utf-8")
    document = read_yaml(text, str(base.path)).value
    before = [*(document.get("disruptions") or ()), *plan.entries]
    oracles = [*base.invariants, *(name for name in player.oracles if name not in base.invariants)]
    added: dict[str, Any] = {
        **({"seed": plan.seed} if plan.seed != document.get("seed", 1) else {}),
        "judgedBy": player.judged_by(plan),
        "tail": max(base.tail, plan.tail_s),
        **({"order": plan.order} if plan.order else {}),
        **({"quiet": quiet_s} if (quiet_s := player.quiet_s(plan)) else {}),
        **({"disruptions": before} if before else {}),
        **({"invariants": oracles} if player.oracles else {}),
    }
    befell = f"# Found by mews fuzz: {of_kinds(plan.choices)} in {base.name}.\n"
    head = f"# {finding.problem.what.splitlines()[0][:200]}\n{befell}"
    wanted = {**apply_overrides(document, overrides_of(overrides)), **added}
    if not overrides and not any(key in document for key in added):
        below = f"{head}{text.rstrip()}\n{_block(added)}"
        if read_yaml(below, SCENARIO).value == wanted:
            return below
    kept = {key: value for key, value in wanted.items() if key not in added}
    return head + written_yaml(kept, width=110) + _block(added)


def _block(added: Mapping[str, Any]) -> str:
    lines = []
    for key, value in added.items():
        if key == "disruptions":
            lines += ["disruptions:", *(f"  - {_flow(entry)}" for entry in value)]
        else:
            lines.append(f"{key}: {_flow(value)}")
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    """Return it on one line; whole seconds as people write them."""
    if isinstance(value, Mapping):
        value = {key: _rounded(each) for key, each in value.items()}
    text = written_yaml(_rounded(value), flow=True, width=10**6)
    return text.removesuffix("...\n").strip()


def _rounded(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _beside(folder: Path, text: str) -> set[Path]:
    """Return the files of the scenario's folder that it names, through the files that it includes; all Python files
    there where it names a module."""
    found: set[Path] = set()
    left = [text]
    while left:
        for name in _texts(yaml.safe_load_all(left.pop())):
            if _MODULE.match(name) and (folder / f"{name.partition(':')[0].partition('.')[0]}.py").is_file():
                found |= {path.relative_to(folder) for path in folder.glob("*.py")}
            path = folder / name
            if len(name) > 200 or not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
                continue
            relative = path.resolve().relative_to(folder.resolve())
            if relative not in found:
                found.add(relative)
                if path.suffix in (".yaml", ".yml"):
                    left.append(path.read_text(encoding="utf-8"))
    return found


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif not isinstance(value, int | float | type(None)):
        for each in value if hasattr(value, "__iter__") else ():
            yield from _texts(each)


def plan_of(document: Mapping[str, Any]) -> WorldPlan:
    """Return a plan that was written down (``as_document``)."""
    choices = tuple(
        DrawnDisruption(each["kind"], tuple(each["entries"]), each["passing"]) for each in document["choices"]
    )
    return WorldPlan(document["seed"], choices, document["tail_s"], document["order"])


def as_document(plan: WorldPlan) -> dict[str, Any]:
    """Return a plan, to be written down."""
    choices = [{"kind": each.kind, "entries": list(each.entries), "passing": each.passing} for each in plan.choices]
    return {"seed": plan.seed, "tail_s": plan.tail_s, "order": plan.order, "choices": choices}
