"""``mews simulate TRACE``: a trace played by policies, without components (docs/simulate.md)."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from msgspec.structs import replace

from mews.harness import terminal
from mews.harness.commands.outputs import STDOUT, check_outputs, write_output
from mews.harness.commands.words import FailingParser, at_least
from mews.harness.errors import BadInputError, RequirementError
from mews.harness.extras import check_installed
from mews.kube.system.command import Command, CommandContext
from mews.own_files import make_own_folder, write_own

if TYPE_CHECKING:
    import argparse

    from mews.harness.scenario.accounts.account import UnplayedKey
    from mews.harness.simulation.run import SimulationPlan, TraceOutcome
    from mews.harness.simulation.statistics import JobRow
    from mews.harness.simulation.trace_file import TraceFile
    from mews.kube.system.simulation import TracePolicy

SUMMARY = "Simulate a trace with policies only: a job log of Helios or PAI 2020, our own CSV, or a scenario's workload."
USAGE = (
    "TRACE [--format mews|pai2020|helios] [--policy NAME[,NAME]] [--order fcfs|backfill|any] [--retry immediate|kube] "
    "[--hardware FILE] [--pools N] [--select COLUMN=VALUE] [--set NAME=VALUE] [--costs none|kubelet|PROFILE] "
    "[--window N] [--seed N] [--json FILE|-] [--out DIR] | --list"
)
_HARDWARE = Path("pool-24")
_MOST_HOSTS = 20_000


# Complex: the order of the checks decides which error is shown.
def run(arguments: Sequence[str], context: CommandContext) -> int:  # noqa: C901
    """Return the command.

    Raises BadInputError, RequirementError; ValueError for bad arguments.
    """
    given = _parsed(arguments)
    if given.list and given.trace is not None:
        raise BadInputError(f"--list {given.trace}: only one of the two: --list names policies and plays nothing")
    if given.list:
        return _list(context)
    if given.trace is None:
        raise ValueError("TRACE: missing; give a trace, or --list")
    shown = check_outputs({"--json": given.json})
    if given.out is not None and given.out.exists() and not given.out.is_dir():
        raise BadInputError(f"--out {given.out}: must be a folder")

    from mews.harness.scenario.accounts.account import in_words
    from mews.harness.simulation.policies import find_policy

    plan, chosen, ignored = _plan(given)
    names = [name.strip() for name in (chosen or "fcfs").split(",")]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInputError(f"--policy {given.policy}: {twice} is listed twice")
    policies = [find_policy(name) for name in names]
    plans = {policy.name: _fitted(plan, policy, _pairs("--set", given.set), policies) for policy in policies}
    _check_order(given.order, plans, policies)
    if ignored:
        terminal.err(f"{given.trace}: not played: {in_words(ignored)}\n")
    trace = plan.open()
    outcomes = [_played(plans[policy.name], policy, trace, given.out) for policy in policies]
    if given.json is not None:
        write_output("--json", given.json, json.dumps(_documents(plan, outcomes, ignored), indent=2) + "\n")
    if given.out is not None:
        _draw(given.out, outcomes)
    if given.json != STDOUT:
        context.write(_text(plan, outcomes))
    elif shown:
        terminal.err(_text(plan, outcomes))
    return 0


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = FailingParser("simulate")
    parser.add_argument("trace", nargs="?", type=Path)
    parser.add_argument("--format", choices=("mews", "pai2020", "helios"))
    for name in ("policy", "json"):
        parser.add_argument(f"--{name}")
    for name in ("hardware", "out"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--order", choices=("fcfs", "backfill", "any"))
    parser.add_argument("--retry", choices=("immediate", "kube"))
    parser.add_argument("--costs")
    for name in ("select", "set"):
        parser.add_argument(f"--{name}", action="append", default=[], metavar="NAME=VALUE")
    for name, least in (("pools", 1), ("window", 1), ("seed", 0)):
        parser.add_argument(f"--{name}", type=at_least(least))
    parser.add_argument("--list", action="store_true")
    return parser.parse_args(arguments)


def _list(context: CommandContext) -> int:
    from mews.harness.simulation.policies import known_policies

    for name, policy in known_policies().items():
        context.write(f"{name:12} {policy.summary}\n")
        for option, meaning in policy.options.items():
            context.write(f"{'':12}   --set {option}=…  {meaning}\n")
        if policy.left_out:
            context.write(f"{'':12}   left out: {policy.left_out}\n")
    return 0


# ------------------------------------------------------------------------------------------------------------ the plan


def _plan(given: argparse.Namespace) -> tuple[SimulationPlan, str | None, Sequence[UnplayedKey]]:
    """Return the plan, ``--policy`` or the policy that the scenario names, and what of the scenario is left out."""
    from mews.harness.catalogue.files import existing_file
    from mews.harness.simulation.formats import FORMATS
    from mews.harness.simulation.run import SimulationPlan

    trace = existing_file("scenario", given.trace, "")
    chosen: str | None = given.policy
    ignored: Sequence[UnplayedKey] = ()
    if trace.suffix in (".yaml", ".yml"):
        from mews.harness.simulation.scenarios import trace_of_scenario

        if given.format is not None:
            raise BadInputError(f"--format {given.format}: {trace} is a scenario, which defines its trace itself")
        found = trace_of_scenario(trace, given.policy)
        plan, chosen, ignored = found.plan, found.policy, found.ignored
        if given.hardware is not None:
            plan = replace(plan, hardware=_hardware(given.hardware, 1))
    else:
        plan = SimulationPlan(trace, FORMATS[given.format or "mews"], _hardware(given.hardware or _HARDWARE, 1))
    changes: dict[str, Any] = {
        name: value
        for name in ("order", "retry", "costs", "window", "seed")
        if (value := getattr(given, name)) is not None
    }
    if given.select:
        changes["select"] = {**plan.select, **_pairs("--select", given.select)}
    if given.pools is not None:
        from mews.harness.simulation.clusters import repeated

        machines = given.pools * len(plan.hardware.hosts)
        if machines > _MOST_HOSTS:
            raise BadInputError(f"--pools {given.pools}: makes {machines} hosts; at most {_MOST_HOSTS} are allowed")
        changes["hardware"] = repeated(plan.hardware, given.pools)
    return replace(plan, **changes), chosen, ignored


def _check_order(order: str | None, plans: Mapping[str, SimulationPlan], policies: Sequence[TracePolicy]) -> None:
    """Raise BadInputError for an order that an option of a policy contradicts."""
    for policy in policies:
        demanded = policy.order(plans[policy.name].options)
        if order is not None and demanded not in (None, order):
            raise BadInputError(f"--order {order}: the options of --policy {policy.name} demand {demanded}")


def _hardware(path: Path, times: int) -> Any:
    from mews.emulator.chassis.errors import HardwareError
    from mews.emulator.inventory_file import load_hardware
    from mews.harness.catalogue.files import existing_file

    found = existing_file("hardware", path, "--hardware")
    try:
        return load_hardware(found)
    except HardwareError as error:
        raise BadInputError(str(error)) from error


def _pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise BadInputError(f"{option} {text}: must be NAME=VALUE")
        pairs[name] = value
    return pairs


def _fitted(
    plan: SimulationPlan, policy: TracePolicy, options: Mapping[str, str], others: Sequence[TracePolicy]
) -> SimulationPlan:
    """Return it with the options that are this policy's."""
    for name in options:
        if not any(name in each.options for each in others):
            known = ", ".join(dict.fromkeys(option for each in others for option in each.options)) or "(none)"
            raise BadInputError(
                f"--set {name}: no option of {', '.join(each.name for each in others)}; options: {known}"
            )
    both = {**plan.options, **options}
    return replace(plan, options={name: value for name, value in both.items() if name in policy.options})


# --------------------------------------------------------------------------------------------------------- the playing


def _played(plan: SimulationPlan, policy: TracePolicy, trace: TraceFile, folder: Path | None) -> TraceOutcome:
    from mews.harness.report.progress import progress_bar
    from mews.harness.simulation.run import simulate

    with progress_bar(100) as bar:
        bar.begin(f"{plan.trace.name}: reading, percent")
        rows = trace.scan(on_progress=bar.reached).rows
    with progress_bar(rows) as bar, _rows_file(folder, policy.name) as on_job:
        bar.begin(f"{plan.trace.name} by {policy.name}")
        # The bar counts rows, of which each may be several jobs.
        return simulate(plan, policy, trace, on_job=on_job, on_progress=lambda jobs: bar.reached(trace.given))


@contextmanager
def _rows_file(folder: Path | None, policy: str) -> Iterator[Callable[[JobRow], None] | None]:
    """Writes every job as it is settled; None without a folder."""
    if folder is None:
        yield None
        return
    path = folder / f"jobs-{policy}.csv"
    try:
        make_own_folder(folder)
        write_own(path, "")
        file: IO[str] = path.open("a", newline="", encoding="utf-8")
    except OSError as error:
        raise RequirementError(f"--out {path}: cannot be written: {error.strerror}") from error
    with file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("job", "node", "gpus", "arrival_s", "started_s", "ended_s", "wait_s"))

        def write(row: JobRow) -> None:
            times = (row.arrival_s, row.started_s, row.ended_s, row.started_s - row.arrival_s)
            writer.writerow((row.job, row.node, f"{row.devices:g}", *(f"{time:.3f}" for time in times)))

        yield write


# --------------------------------------------------------------------------------------------------------- the results


def _draw(folder: Path, outcomes: Sequence[TraceOutcome]) -> None:
    from mews.harness.simulation.files import figures, summary_csv

    try:
        write_own(folder / "summary.csv", summary_csv(outcomes))
        try:
            check_installed("plots")
        except RequirementError as error:
            terminal.err(f"--out {folder}: without figures: {error}\n")
            return
        from mews.harness.experiments.drawing import draw

        draw(figures(outcomes), folder)
    except OSError as error:
        raise RequirementError(f"--out {folder}: cannot be written: {error.strerror}") from error


def _documents(
    plan: SimulationPlan, outcomes: Sequence[TraceOutcome], ignored: Sequence[UnplayedKey]
) -> list[dict[str, Any]]:
    """Return them as ``mews run --json`` has them, with what only a simulation knows beside."""
    return [
        {
            "scenario": plan.trace.stem,
            "path": str(plan.trace),
            "cluster": "simulated",
            "time": "virtual",
            "seed": plan.seed,
            "verdict": "passed",
            "reason": "",
            "seconds": {"virtual": outcome.metrics.get("makespan_s"), "wall": round(outcome.seconds, 3)},
            "metrics": dict(outcome.metrics),
            "expected": {},
            "violations": [],
            "journal": None,
            "artefacts": None,
            "policy": outcome.policy,
            "order": outcome.order,
            "retry": plan.retry,
            "costs": plan.costs,
            "ignored": [each.as_dict() for each in ignored],
        }
        for outcome in outcomes
    ]


_SHOWN = ("jobs", "unplaceable", "left_out", "mean_wait_s", "p95_wait_s", "mean_jct_s", "makespan_s", "mean_gpus_used",
          "moved_gpus", "reconfigurations", "jobs_per_s")  # fmt: skip


def _text(plan: SimulationPlan, outcomes: Sequence[TraceOutcome]) -> str:
    """Return a table: a row for each figure, a column for each policy."""
    width = max(12, *(len(outcome.policy) + 2 for outcome in outcomes))
    lines = [f"{plan.trace.name:18}" + "".join(f"{outcome.policy:>{width}}" for outcome in outcomes)]
    for name in _SHOWN:
        values = [outcome.metrics.get(name) for outcome in outcomes]
        cells = ["-" if value is None else f"{value:,.10g}" for value in values]
        lines.append(f"{name:18}" + "".join(f"{cell:>{width}}" for cell in cells))
    return "\n".join(lines) + "\n"


COMMAND = Command(
    "simulate",
    SUMMARY,
    run,
    USAGE,
    options={
        "--format mews|pai2020|helios": "read the trace in this format; default: mews",
        "--policy NAME[,NAME]": "place jobs with these policies, one simulation each; see --list",
        "--order fcfs|backfill|any": "order jobs first come, first served (default), with EASY backfilling, or freely",
        "--retry immediate|kube": "retry jobs that did not fit immediately, or as the queue of kube-scheduler does",
        "--hardware FILE": "use this hardware; default: pool-24, or the scenario's",
        "--pools N": "use this many copies of the hardware's chassis and hosts",
        "--select COLUMN=VALUE": "read only rows with this value; may be repeated",
        "--set NAME=VALUE": "set an option of the policy; may be repeated",
        "--costs none|kubelet|PROFILE": "add start-up costs of pods: none (default), the kubelet's, or a testbed's",
        "--window N": "consider this many waiting jobs at a time; default: 1000",
        "--seed N": "draw all random values from this seed",
        "--json FILE|-": "write all figures as JSON",
        "--out DIR": "write a CSV of jobs, and plots, into this folder",
        "--list": "list policies and their options, and exit",
    },
    examples=(
        "mews simulate scenarios/testbed/w3-pool.yaml",
        "mews simulate trace.csv --policy default,kubecomp --pools 2 --out results",
    ),
)
