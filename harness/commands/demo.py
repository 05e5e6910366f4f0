"""``mews demo``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from mews.harness import terminal
from mews.harness.commands.logs import keep_quiet
from mews.harness.commands.up import scenario_of
from mews.harness.demo import GPUS, DemoOutcome, Narrate, run_demo
from mews.harness.engine import in_own_loop
from mews.harness.extras import install, missing_of
from mews.harness.leftovers import RuntimeFolder, make_runtime_folder
from mews.harness.ports.cluster import Cluster
from mews.harness.systems import default_title
from mews.kube.api.objects import name_of
from mews.kube.api.resources import NODES

Print = Callable[..., None]


def demo(dialect: str, speed: float) -> int:
    """Play the demo, in virtual time where the extra for wall-clock time is not installed; 0 if all is as it should be.

    Raises RequirementError.
    """
    virtual = bool(missing_of("cluster"))
    keep_quiet()
    began_s = time.monotonic()
    print_line = _printer()
    owned = RuntimeFolder(make_runtime_folder("mews-demo-"))
    try:
        outcome = in_own_loop(lambda: _play(dialect, speed, owned.folder, print_line, virtual), virtual=virtual)
    finally:
        owned.release()
    _verdict(outcome, print_line, time.monotonic() - began_s)
    if virtual:
        print_line(f"In virtual time. {install('cluster')} shows it over HTTP and gRPC, with processes.", "dim")
    return 0 if outcome.passed else 1


async def _play(dialect: str, speed: float, folder: Path, print_line: Print, virtual: bool) -> DemoOutcome:
    from mews.harness.clusters import open_cluster
    from mews.harness.options import RunOptions

    scenario = scenario_of(None, None)
    pooled = scenario.stack.pooled
    assert pooled is not None, "the default stack pools what the demo's pod asks for"
    over, pace = ("", "virtual time") if virtual else (" over HTTP", f"emulated time x{speed:g}")
    print_line(f"Starting chassis ({dialect}{over}), API server, kubelets and {default_title()}; {pace}", "dim")
    kind = RunOptions() if virtual else RunOptions(time="wall", speed=speed)
    options = replace(kind, dialect=dialect, folder=folder)
    cluster = await open_cluster(scenario, options, seed=scenario.seed)
    try:
        await _introduce(cluster, pooled.resource, print_line)
        return await run_demo(cluster, pooled, _narrator(print_line, cluster.journal.elapsed_s))
    finally:
        await cluster.close()


async def _introduce(cluster: Cluster, resource: str, print_line: Print) -> None:
    table = await cluster.hardware.table()
    print_line(f"{sum(map(len, table.values()))} GPUs in {len(table)} chassis:", "bold")
    for node in (await cluster.kube.list(NODES)).items:
        name = name_of(node)
        there = [row["gpuid"] for rows in table.values() for row in rows.values() if row["host"] == name]
        allocatable = (node.get("status") or {}).get("allocatable", {}).get(resource, "0")
        print_line(f"  {name}: {len(there)} attached, {resource} allocatable: {allocatable}")
    print_line("")


def _narrator(print_line: Print, start_s: float) -> Narrate:
    def show(t: float, who: str, what: str) -> None:
        print_line(f"{t - start_s:7.2f} s  {who:24}  {what}", STYLES.get(who.partition("/")[0], ""))

    return show


STYLES = {"chassis": "cyan", "host": "magenta", "kubelet": "green", "node": "green", "pod": "yellow"}


def _verdict(outcome: DemoOutcome, print_line: Print, took_s: float) -> None:
    print_line("")
    if outcome.rows:
        head = f"{'device':12} {'chassis':8} {'table':6} pod-resources"
        print_line(f"{'GPU UUID, as the process printed it':44} {head}", "bold")
    for row in outcome.rows:
        checks = f"{_tick(row.in_table):6} {_tick(row.in_pod_resources):14} {'moved' if row.moved else ''}"
        print_line(f"{row.uuid:44} {row.gpuid:12} {row.chassis:8} {checks}".rstrip())
    print_line("")
    for text in outcome.wrong:
        print_line(f"wrong: {text}", "red")
    if outcome.passed:
        what = f"exactly one GPU moved ({outcome.moved[0]}), the process on {outcome.node} sees exactly its {GPUS}"
        print_line(f"PASSED in {took_s:.1f} s: {what}; the invariants held", "bold green")
    else:
        print_line(f"FAILED in {took_s:.1f} s", "bold red")


def _tick(good: bool) -> str:
    return "yes" if good else "NO"


def _printer() -> Print:
    """Writes a line; in colour on a terminal."""
    if not sys.stdout.isatty():

        def plain(text: str, style: str = "") -> None:
            terminal.out(text + "\n")
            sys.stdout.flush()

        return plain
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)

    def coloured(text: str, style: str = "") -> None:
        console.print(Text(terminal.escaped(text), style=style))

    return coloured
