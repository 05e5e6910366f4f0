"""One pod on pools of 100 to 1,000 hosts in virtual time: seconds of CPU, resident memory, and how cost grows.

A chassis of 32 slots for every four hosts, as the real boxes have four host ports; eight GPUs a host, a pool each. The
pod asks for one GPU more than any host has, so that one moves. Then the same where every host is cabled to every
chassis of one pool (``all_cabled``): there each host's device manager reads each chassis, so that cost grows with the
product of both.

``python -m benchmarks.pool_scale [HOSTS [CHASSIS]]`` measures one size, with CHASSIS with all hosts cabled to each.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import linear_regression
from typing import Any

from benchmarks.common import ROOT, progress, report
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario

SIZES = (100, 200, 400, 1000)
ALL_CABLED = ((50, 12), (100, 25))
"""Hosts, chassis."""
GPUS_PER_HOST, HOSTS_PER_CHASSIS = 8, 4
TARGET_S, TARGET_MB = 20.0, 500.0
GPU_KIB_BEFORE_MIG = 49.3
"""Memory of one more GPU when GPUs could not be divided yet."""

SCENARIO = f"""\
apiVersion: mews/v1
kind: Scenario
metadata: {{name: pool-scale}}
hardware: hardware.json
bounds: {{scheduled_s: 120}}
steps:
  - wait: {{settled: {{}}}}
    timeout: 2m
  - apply:
      kind: Pod
      metadata: {{name: trainer}}
      spec:
        schedulerName: kubecomp-scheduler
        restartPolicy: Never
        terminationGracePeriodSeconds: 1
        containers:
          - {{name: main, image: mews/gpu-hold, resources: {{limits: {{falcon.com/gpu: "{GPUS_PER_HOST + 1}"}}}}}}
  - wait: {{gpus: {{pod: trainer, count: {GPUS_PER_HOST + 1}}}}}
    timeout: 5m
  - assert: {{moves: 1}}
"""


def pool(hosts: int, chassis: int = 0) -> dict[str, Any]:
    """Return a hardware file: a chassis and a pool for every four hosts, or so many chassis of one pool for all
    hosts."""
    names = [f"host-{number}" for number in range(1, hosts + 1)]
    share = 1 if chassis else HOSTS_PER_CHASSIS
    boxes: list[dict[str, Any]] = []
    for number in range(chassis or hosts // share):
        cabled = names if chassis else names[number * share : (number + 1) * share]
        first = number * hosts * GPUS_PER_HOST // chassis if chassis else 0
        after = (number + 1) * hosts * GPUS_PER_HOST // chassis if chassis else share * GPUS_PER_HOST
        devices = [
            {
                "id": f"{slot:06X}",
                "uuid": f"GPU-{number:08x}-0000-4000-8000-{slot:012x}",
                "port": str(slot % len(cabled) + 1),
            }
            for slot in range(first, after)
        ]
        boxes.append(
            {
                "name": f"C{number}",
                "index": number,
                "pool": "pool-0" if chassis else f"pool-{number}",
                "slots": len(devices),
                "ports": {str(port): host for port, host in enumerate(cabled, 1)},
                "devices": devices,
            }
        )
    return {
        "apiVersion": "mews/v1",
        "kind": "Hardware",
        "metadata": {"name": f"scale-{hosts}"},
        "profile": "falcon-4005",
        "hosts": [{"name": name, "cpus": 64, "memory_mib": 262144} for name in names],
        "chassis": boxes,
    }


def measure(hosts: int, chassis: int = 0) -> dict[str, float]:
    """Return seconds of CPU, of loading and running, and the most memory that this process ever had."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "hardware.json").write_text(json.dumps(pool(hosts, chassis)), "utf-8")
        (Path(folder) / "scenario.yaml").write_text(SCENARIO, "utf-8")
        begun_s = time.process_time()
        run = Engine(RunOptions()).run(load_scenario(Path(folder) / "scenario.yaml"), 1)
        taken_s = time.process_time() - begun_s
    if run.result.verdict != "passed":
        raise RuntimeError(f"{hosts} hosts: {run.result.reason}")
    return {"cpu_s": taken_s, "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def apart(*sizes: int) -> dict[str, float]:
    """Return the same in a process of its own, so that the memory is that run's."""
    argv = [sys.executable, "-m", "benchmarks.pool_scale", *map(str, sizes)]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, cwd=ROOT)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Every size, the slope, and the pools where all are cabled to all."""
    cpu_s, memory_mb = [], []
    for hosts in SIZES:
        progress(f"one pod on {hosts} hosts, {hosts * GPUS_PER_HOST} GPUs, {hosts // HOSTS_PER_CHASSIS} chassis")
        found = apart(hosts)
        cpu_s.append(found["cpu_s"])
        memory_mb.append(found["mb"])
        target = (TARGET_S, TARGET_MB) if hosts == SIZES[-1] else (None, None)
        report(f"pool_scale_{hosts}", cpu_s[-1], "s of CPU", baseline=target[0], baseline_name="target")
        report(f"pool_scale_{hosts}_memory", found["mb"], "MB", baseline=target[1], baseline_name="target")
    slope = linear_regression(SIZES, cpu_s).slope
    report("pool_scale_slope", 1000 * slope, "s of CPU per 1,000 hosts")
    gpu_kib = 1024 * linear_regression(SIZES, memory_mb).slope / GPUS_PER_HOST
    report("pool_scale_gpu", gpu_kib, "KiB a GPU", baseline=GPU_KIB_BEFORE_MIG, baseline_name="before MIG")
    each = [seconds / hosts for seconds, hosts in zip(cpu_s, SIZES, strict=True)]
    report("pool_scale_linear", each[-1], "s of CPU a host", baseline=each[0], baseline_name="a host of 100")
    for hosts, chassis in ALL_CABLED:
        progress(f"one pod on {hosts} hosts, all cabled to each of {chassis} chassis")
        report(f"pool_scale_all_cabled_{hosts}", apart(hosts, chassis)["cpu_s"], "s of CPU")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(*map(int, sys.argv[1:]))))
    else:
        main()
