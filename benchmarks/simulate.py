"""Jobs per CPU second of ``mews simulate``, from the open trace to the numbers: FCFS beside what the Alibaba PAI
simulator's README states, each policy, and both engines on the testbed runs; a million jobs, and the memory they take.

Start-up (Python, imports, the hardware file) is a row of its own. ``--quick`` leaves the million out.
"""

from __future__ import annotations

import csv
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from benchmarks.common import ROOT, progress, report
from mews.emulator.inventory_file import load_hardware
from mews.harness.catalogue.files import file_of
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario
from mews.harness.simulation.clusters import repeated
from mews.harness.simulation.columns import PAI2020
from mews.harness.simulation.policies import find_policy
from mews.harness.simulation.run import SimulationPlan, simulate
from mews.harness.simulation.scenarios import trace_of_scenario

PUBLISHED = {"slowest": 20000 / 110.53, "fastest": 20000 / 51.96}
"""20,000 jobs on 6,500 GPUs of one node: FIFO took 110.53 s, SJF 51.96 s
(cluster-trace-gpu-v2020/simulator/README.md)."""
TESTBED = ("w1-4-4", "w1-0-8", "w1-pool", "w3-4-4", "w3-2-6", "w3-0-8", "w3-pool")
POLICIES = ("fcfs", "backfill", "default", "kubecomp", "gpushare", "koordinator", "kod2")
MILLION = 1_000_000
_EVERY = 100_000
_PAGE_MIB = resource.getpagesize() / 2**20
_NODE = """\
apiVersion: mews/v1
kind: Hardware
metadata: {name: one-node}
profile: instant
hosts: [{name: node, cpus: 4096, memory_mib: 1048576}]
chassis:
- {name: A, index: 0, slots: 3250, ports: {"0": node}, devices: [%s]}
- {name: B, index: 1, slots: 3250, ports: {"0": node}, devices: [%s]}
"""


@dataclass(frozen=True, slots=True)
class TracePlay:
    """CPU seconds of the play and of what came before it in its process; memory at each 100,000 jobs, MiB."""

    metrics: dict[str, Any]
    play_s: float
    start_s: float
    memory: list[tuple[int, float]] = field(default_factory=list)

    @property
    def per_s(self) -> float:
        """Jobs a CPU second."""
        return float(self.metrics["jobs"] / self.play_s)


def trace(
    path: Path,
    jobs: int,
    gap_s: float,
    sizes: tuple[int, ...] = (25, 50, 100, 100, 200, 800),
    *,
    cpu: str = "600.0",
    memory: str = "29.3",
) -> Path:
    """Return so many tasks in the published columns."""
    rng, at_s = random.Random(1), 0.0
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        for number in range(jobs):
            at_s += rng.expovariate(1 / gap_s)
            ends_s, gpus = at_s + rng.uniform(60, 3600), rng.choice(sizes)
            writer.writerow(
                (f"j{number}", "tf", "1.0", "Terminated", f"{at_s:.2f}", f"{ends_s:.2f}", cpu, memory, gpus, "T4")
            )
    return path


def play(path: Path, hardware: Path, pools: int, policy: str, rounds: int = 1) -> TracePlay:
    """Return the fastest of some plays of the trace."""
    machines = repeated(load_hardware(file_of("hardware", hardware)), pools)
    plan = SimulationPlan(path, PAI2020, machines)
    found, start_s = find_policy(policy), time.process_time()
    plays = []
    for _ in range(rounds):
        memory: list[tuple[int, float]] = []
        began_s = time.process_time()
        outcome = simulate(plan, found, plan.open(), on_progress=partial(_note, memory))
        plays.append(TracePlay(dict(outcome.metrics), time.process_time() - began_s, start_s, memory))
    return min(plays, key=lambda each: each.play_s)


def _note(memory: list[tuple[int, float]], jobs: int) -> None:
    if jobs >= (len(memory) + 1) * _EVERY:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        memory.append((jobs, pages * _PAGE_MIB))


def alone(*arguments: Any) -> TracePlay:
    """``play`` in a process of its own, so that no other's memory and imports are in it."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(play, *arguments).result()


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        _published(folder)
        _policies(folder)
        _components()
        if "--quick" not in sys.argv:
            _million(folder)


def _published(folder: Path) -> None:
    rows = [f'{{id: "{n:06X}", uuid: GPU-{n:08x}, kind: GPU, port: "0"}}' for n in range(6500)]
    (folder / "node.yaml").write_text(_NODE % (", ".join(rows[:3250]), ", ".join(rows[3250:])))
    progress("20,000 jobs on 6,500 GPUs of one node, as published")
    path = trace(folder / "published.csv", 20_000, 0.06, cpu="10.0", memory="")
    found = alone(path, folder / "node.yaml", 1, "fcfs", 3)
    for name, baseline in PUBLISHED.items():
        of = f"Alibaba PAI simulator, {name}"
        report("simulate-published", found.per_s, "jobs/s", baseline=baseline, baseline_name=of)
    report("simulate-published-start", found.start_s, "s of CPU")


def _policies(folder: Path) -> None:
    path = trace(folder / "small.csv", 4_000, 110.0)
    for policy in POLICIES:
        progress(f"4,000 jobs on four pools of 24 GPUs by {policy}")
        report(f"simulate-{policy}", alone(path, Path("pool-24"), 4, policy, 3).per_s, "jobs/s")


def _components() -> None:
    """Each testbed run in both, as it was measured and the pools corrected as well: a run of the components, and the
    nearest of eight seeds of a trace, since tosses between equal nodes fall by other chance."""
    for name in TESTBED:
        for mode in ("public", "corrected") if "pool" in name else ("public",):
            progress(f"testbed {name}, {mode}: trace and components")
            path = ROOT / "scenarios" / "testbed" / f"{name}.yaml"
            began_s = time.process_time()
            full = Engine(RunOptions()).run(load_scenario(path, [f"stack.kubecomp.mode={mode}"]), 0).result.metrics
            full_s = time.process_time() - began_s
            ours, ours_s = _simulated_runs(path, mode)
            bench = f"simulate-{name}-{mode}"
            beside = "the full components, same jobs"
            report(bench, 20 / ours_s, "jobs/s", baseline=20 / full_s, baseline_name=beside)
            nearest = min(ours, key=partial(_apart, full))
            for metric, unit in (("mean_wait_s", "s"), ("mean_jct_s", "s"), ("moved_gpus", "GPUs")):
                report(f"{bench}-{metric}", nearest[metric], unit, baseline=full[metric], baseline_name=beside)


def _apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    return abs(float(one["mean_wait_s"]) - float(other["mean_wait_s"]))


def _simulated_runs(path: Path, mode: str) -> tuple[list[dict[str, Any]], float]:
    """Return the metrics of eight seeds, and CPU seconds of one."""
    played = trace_of_scenario(path)
    plan, policy, found = played.plan, find_policy(played.policy), list[dict[str, Any]]()
    began_s = time.process_time()
    options = {"mode": mode} if "mode" in policy.options else {}
    for seed in range(8):
        one = replace(plan, seed=seed, options=options)
        found.append(dict(simulate(one, policy, one.open()).metrics))
    return found, (time.process_time() - began_s) / 8


def _million(folder: Path) -> None:
    progress("a million jobs on sixteen pools by fcfs: memory each 100,000 jobs, MiB")
    path = trace(folder / "million.csv", MILLION, 30.0)
    found = alone(path, Path("pool-24"), 16, "fcfs")
    progress("  " + ", ".join(f"{memory:.1f}" for _, memory in found.memory))
    report("simulate-million", found.per_s, "jobs/s")
    first, last = found.memory[0][1], found.memory[-1][1]
    report("simulate-million-memory", last, "MiB", baseline=first, baseline_name="at 100,000 jobs")
    progress("the command with all it writes: a row for each job, numbers, plots")
    words = ("simulate", str(path), "--format", "pai2020", "--pools", "16", "--out", "out", "--json", "out.json")
    began = os.times()
    subprocess.run([sys.executable, "-m", "mews.harness.cli", *words], cwd=folder, capture_output=True, check=True)
    ended = os.times()
    cpu_s = ended.children_user + ended.children_system - began.children_user - began.children_system
    jobs = json.loads((folder / "out.json").read_text())[0]["metrics"]["jobs"]
    with (folder / "out" / "jobs-fcfs.csv").open(encoding="utf-8") as file:
        rows = sum(1 for _ in file) - 1
    if rows != jobs:
        raise RuntimeError(f"jobs-fcfs.csv has {rows} rows for {jobs} jobs")
    drawn = len(list((folder / "out").glob("*.svg")))
    report("simulate-million-command", jobs / cpu_s, "jobs/s")
    progress(f"  {rows} rows, {drawn} plots")


if __name__ == "__main__":
    main()
