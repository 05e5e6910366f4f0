"""Jobs per second of `mews simulate`: FCFS beside what the Alibaba PAI simulator's README states, each policy, and the
full components on the same jobs; a million jobs, and what memory they take beyond a tenth of them."""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import progress, report

PUBLISHED = {"slowest": 20000 / 110.53, "fastest": 20000 / 51.96}
"""20,000 jobs on 6,500 GPUs of one node: FIFO took 110.53 s, SJF 51.96 s
(cluster-trace-gpu-v2020/simulator/README.md)."""
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
_MEASURE = """\
import json, resource, sys, time
from mews.harness import cli
began = time.process_time()
code = cli.exit_code(["simulate", *sys.argv[1:], "--json", "out.json"])
assert code == 0
print(json.dumps({"cpu_s": time.process_time() - began, "kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
"""


def trace(
    path: Path,
    jobs: int,
    gap_s: float,
    sizes: tuple[int, ...] = (25, 50, 100, 100, 200, 800),
    *,
    cpu: str = "600.0",
    memory: str = "29.3",
) -> Path:
    """So many tasks in the published columns."""
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


def simulated(folder: Path, *words: str) -> tuple[float, float, float]:
    """Jobs per CPU second, of the whole command; peak memory in MiB; mean wait."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, *words], cwd=folder, capture_output=True, text=True, check=True, env=os.environ
    )
    spent = json.loads(done.stdout.splitlines()[-1])
    metrics = json.loads((folder / "out.json").read_text())[0]["metrics"]
    return metrics["jobs"] / spent["cpu_s"], spent["kib"] / 1024, metrics["mean_wait_s"]


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        rows = [f'{{id: "{n:06X}", uuid: GPU-{n:08x}, kind: GPU, port: "0"}}' for n in range(6500)]
        (folder / "node.yaml").write_text(_NODE % (", ".join(rows[:3250]), ", ".join(rows[3250:])))
        progress("20,000 jobs on 6,500 GPUs of one node, as published")
        published = trace(folder / "published.csv", 20_000, 0.06, cpu="10.0", memory="")
        options = ("--format", "pai2020", "--hardware", "node.yaml", "--policy", "fcfs")
        per_s, _, _ = simulated(folder, str(published), *options)
        for name, baseline in PUBLISHED.items():
            report("simulate-fcfs", per_s, "jobs/s", baseline=baseline, baseline_name=f"Alibaba PAI simulator, {name}")
        pools = ("--format", "pai2020", "--pools", "4")
        small = trace(folder / "small.csv", 4_000, 110.0)
        for policy in ("fcfs", "backfill", "default", "kubecomp", "gpushare", "koordinator", "kod2"):
            progress(f"4,000 jobs on four pools of 24 GPUs by {policy}")
            per_s, _, _ = simulated(folder, str(small), *pools, "--policy", policy)
            report(f"simulate-{policy}", per_s, "jobs/s")
        _components(folder)
        progress("a tenth of a million jobs, and a million")
        tenth = trace(folder / "tenth.csv", 100_000, 30.0)
        million = trace(folder / "million.csv", 1_000_000, 30.0)
        _, before, _ = simulated(folder, str(tenth), *pools, "--policy", "fcfs", "--pools", "16")
        per_s, after, _ = simulated(folder, str(million), *pools, "--policy", "fcfs", "--pools", "16")
        report("simulate-million", per_s, "jobs/s")
        report("simulate-million-memory", after, "MiB", baseline=before, baseline_name="100,000 jobs")


def _components(folder: Path) -> None:
    """One testbed run of 20 jobs in both; CPU seconds of the whole command."""
    progress("the testbed's workload 3 by KubeComp: trace and components")
    scenario = "scenarios/testbed/w3-pool.yaml"
    per_s, _, wait_s = simulated(folder, scenario)
    words = ["run", scenario, "--set", "stack.kubecomp.mode=corrected", "--json", "full.json"]
    began = os.times()
    wall = time.perf_counter()
    subprocess.run([sys.executable, "-m", "mews.harness.cli", *words], cwd=folder, capture_output=True, check=False)
    ended = os.times()
    cpu_s = ended.children_user + ended.children_system - began.children_user - began.children_system
    full = json.loads((folder / "full.json").read_text())[0]["metrics"]
    progress(f"the components took {time.perf_counter() - wall:.1f} s")
    report("simulate-testbed", per_s, "jobs/s", baseline=20 / cpu_s, baseline_name="the full components, same jobs")
    report("simulate-testbed-wait", wait_s, "s", baseline=full["mean_wait_s"], baseline_name="the full components")


if __name__ == "__main__":
    main()
