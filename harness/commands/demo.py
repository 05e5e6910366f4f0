"""``mews demo``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from mews.harness.commands.logs import keep_quiet
from mews.harness.commands.up import scenario_of
from mews.harness.demo import GPUS, Outcome, Told, run_demo
from mews.harness.engine import in_own_loop
from mews.harness.extras import check_installed
from mews.harness.leftovers import Owned, make_runtime_folder
from mews.harness.ports.cluster import Cluster
from mews.harness.systems import default_title
from mews.kube.api.objects import name_of
from mews.kube.api.resources import NODES

Say = Callable[..., None]


def demo(dialect: str, speed: float) -> int:
    """Play the demo in wall-clock time; 0 if all is as it should be.

    Raises Lacks.
    """
    check_installed("cluster")
    keep_quiet()
    began_s = time.monotonic()
    say = _sayer()
    owned = Owned(make_runtime_folder("mews-demo-"))
    try:
        outcome = in_own_loop(lambda: _play(dialect, speed, owned.folder, say), virtual=False)
    finally:
        owned.release()
    _verdict(outcome, say, time.monotonic() - began_s)
    return 0 if outcome.passed else 1


async def _play(dialect: str, speed: float, folder: Path, say: Say) -> Outcome:
    from mews.harness.clusters import open_cluster
    from mews.harness.options import RunOptions

    scenario = scenario_of(None, None)
    pooled = scenario.stack.pooled
    assert pooled is not None, "the default stack pools what the demo's pod asks for"
    what = f"chassis ({dialect} over HTTP), API server, kubelets and {default_title()}"
    say(f"Starting {what}; emulated time x{speed:g}", "dim")
    options = RunOptions(time="wall", speed=speed, dialect=dialect, folder=folder)
    cluster = await open_cluster(scenario, options, seed=scenario.seed)
    try:
        await _introduce(cluster, pooled.resource, say)
        return await run_demo(cluster, pooled, _teller(say, cluster.journal.elapsed_s))
    finally:
        await cluster.close()


async def _introduce(cluster: Cluster, resource: str, say: Say) -> None:
    table = await cluster.hardware.table()
    say(f"{sum(map(len, table.values()))} GPUs in {len(table)} chassis:", "bold")
    for node in (await cluster.kube.list(NODES)).items:
        name = name_of(node)
        there = [row["gpuid"] for rows in table.values() for row in rows.values() if row["host"] == name]
        allocatable = (node.get("status") or {}).get("allocatable", {}).get(resource, "0")
        say(f"  {name}: {len(there)} attached, {resource} allocatable: {allocatable}")
    say("")


def _teller(say: Say, start_s: float) -> Told:
    def told(t: float, who: str, what: str) -> None:
        say(f"{t - start_s:7.2f} s  {who:24}  {what}", STYLES.get(who.partition("/")[0], ""))

    return told


STYLES = {"chassis": "cyan", "kubelet": "green", "node": "green", "pod": "yellow"}


def _verdict(outcome: Outcome, say: Say, took_s: float) -> None:
    say("")
    if outcome.rows:
        head = f"{'device':12} {'chassis':8} {'table':6} pod-resources"
        say(f"{'GPU UUID, as the process printed it':44} {head}", "bold")
    for row in outcome.rows:
        checks = f"{_tick(row.in_table):6} {_tick(row.in_pod_resources):14} {'moved' if row.moved else ''}"
        say(f"{row.uuid:44} {row.gpuid:12} {row.chassis:8} {checks}".rstrip())
    say("")
    for text in outcome.wrong:
        say(f"wrong: {text}", "red")
    if outcome.passed:
        what = f"exactly one GPU moved ({outcome.moved[0]}), the process on {outcome.node} sees exactly its {GPUS}"
        say(f"PASSED in {took_s:.1f} s: {what}; the invariants held", "bold green")
    else:
        say(f"FAILED in {took_s:.1f} s", "bold red")


def _tick(good: bool) -> str:
    return "yes" if good else "NO"


def _sayer() -> Say:
    """Writes a line; in colour on a terminal."""
    if not sys.stdout.isatty():

        def plain(text: str, style: str = "") -> None:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()

        return plain
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)

    def coloured(text: str, style: str = "") -> None:
        console.print(Text(text, style=style))

    return coloured
