"""Elastic jobs of GPU workers on pools that move their GPUs: is any lost, and who has how many GPUs when?

``python -m benchmarks.kod2_pool [--jobs 100] [--seed 1] [--figure FILE.svg]``, in virtual time: 20 hosts and 80 GPUs in
four pools, orderly moves, the operator killed and started again, and one chassis' management rebooted, under load.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import yaml

from benchmarks.common import progress, report
from mews.harness.engine import Engine
from mews.harness.journal import Line
from mews.harness.options import RunOptions
from mews.harness.report.run import Run
from mews.harness.scenario.loader import load_scenario

HOSTS_PER_POOL, GPUS_PER_HOST = 5, 4
_GPU = "falcon.com/gpu"
Points = list[tuple[float, int]]
"""(seconds, GPUs from then on)."""


def hardware(pools: int) -> dict[str, Any]:
    """Pools of one chassis each, with as many GPUs per host at first."""
    hosts = [f"host-{number}" for number in range(1, pools * HOSTS_PER_POOL + 1)]
    chassis = []
    for pool in range(pools):
        own = hosts[pool * HOSTS_PER_POOL : (pool + 1) * HOSTS_PER_POOL]
        ports = {str(port): host for port, host in enumerate(own, 1)}
        count = HOSTS_PER_POOL * GPUS_PER_HOST
        devices = [
            {
                "id": f"{number + 1:04X}00",
                "uuid": f"GPU-{pool:08x}-0000-4000-8000-{number:012x}",
                "kind": "GPU",
                "model": "V100",
                "port": str(number // GPUS_PER_HOST + 1),
            }
            for number in range(count)
        ]
        place = {"name": f"C{pool}", "index": pool, "pool": f"pool-{pool}", "slots": count}
        chassis.append({**place, "ports": ports, "devices": devices})
    return {
        "apiVersion": "mews/v1",
        "kind": "Hardware",
        "metadata": {"name": f"{pools}-pools"},
        "profile": "falcon-4005",
        "hosts": [{"name": host, "cpus": 64, "memory_mib": 262144} for host in hosts],
        "chassis": chassis,
    }


def tfjob(name: str, draw: random.Random) -> dict[str, Any]:
    """Return a job of one server and one to four workers that may become twice as many, most with a GPU each."""
    workers = draw.randint(1, 4)
    gpus, steps = draw.choice((1, 1, 1, 2)), draw.randint(200, 900)

    def role(count: int, resources: Mapping[str, Any]) -> dict[str, Any]:
        container = {"name": "tensorflow", "image": "mews/tf-trainer", "resources": dict(resources)}
        template = {
            "metadata": {"annotations": {"mews.dev/train-steps": str(steps)}},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
        }
        return {"replicas": count, "restartPolicy": "OnFailure", "template": template}

    server = {"requests": {"cpu": str(draw.randint(1, 2)), "memory": "2Gi"}}
    worker = {"requests": {"cpu": str(draw.randint(2, 4)), "memory": "4Gi"}, "limits": {_GPU: str(gpus)}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name},
        "spec": {
            "elasticPolicy": {"minReplicas": draw.randint(1, workers), "maxReplicas": 2 * workers},
            "tfReplicaSpecs": {"PS": role(1, server), "Worker": role(workers, worker)},
        },
    }


def scenario_document(folder: Path, *, jobs: int, pools: int, seed: int) -> dict[str, Any]:
    """Return the scenario: jobs arrive every 5 to 15 s, the operator dies after four tenths of them, a chassis reboots
    after six tenths."""
    draw = random.Random(seed)
    file = folder / "hardware.yaml"
    file.write_text(yaml.safe_dump(hardware(pools), sort_keys=False), encoding="utf-8")
    steps: list[dict[str, Any]] = [{"wait": {"settled": {}}, "timeout": "5m"}]
    for number in range(1, jobs + 1):
        steps += [{"apply": tfjob(f"job-{number:03}", draw)}, {"sleep": f"{draw.randint(5, 15)}s"}]
        if number == jobs * 4 // 10:
            steps += [{"kill": "operator"}, {"sleep": "20s"}, {"start": "operator"}]
        if number == jobs * 6 // 10:
            steps.append({"fault": {"chassis": "C0", "add": {"kind": "management-reboot", "down_s": 60}}})
    done = {"status": {"elastic": {"state": "COMPLETED"}}}
    count = {"kind": "TFJob", "apiVersion": "kubeflow.org/v1", "matching": done, "is": jobs}
    steps += [{"name": "every job ends", "wait": {"count": count}, "timeout": "12h"}, {"sleep": "5s"}]
    return {
        "apiVersion": "mews/v1",
        "kind": "Scenario",
        "metadata": {"name": f"elastic-pools-{jobs}"},
        "hardware": "hardware.yaml",
        "stack": {"kubecomp": {"removal": "orderly"}, "defaultScheduler": None, "kod2": {}},
        "bounds": {"scheduled_s": 600},
        "steps": steps,
        "metrics": {"finished_jobs": jobs, "failed_jobs": 0, "moved_gpus": {"min": 1}},
    }


def run(*, jobs: int, pools: int, seed: int) -> Run:
    """Return that scenario in virtual time."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "scenario.yaml"
        document = scenario_document(folder, jobs=jobs, pools=pools, seed=seed)
        file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        return Engine(RunOptions()).run(load_scenario(file), seed)


def gpus_over_time(lines: Iterable[Line]) -> dict[str, Points]:
    """Return how many GPUs the containers of each job's pods hold, from the kubelets' allocations until the pods are
    gone."""
    held: dict[str, int] = {}
    points: dict[str, Points] = {}
    for line in lines:
        if line.layer == "kubelet" and line.event == "allocated" and line.fields.get("resource") == _GPU:
            held[line.fields["pod"]] = len(line.fields["devices"])
            _note(points, held, line.t, line.fields["pod"])
        elif line.layer == "api" and line.event in ("deleted", "phase") and line.actor.startswith("pod/"):
            pod = line.actor.removeprefix("pod/")
            ended = line.event == "deleted" or line.fields.get("phase") in ("Succeeded", "Failed")
            if ended and held.pop(pod, 0):
                _note(points, held, line.t, pod)
    return points


def _note(points: dict[str, Points], held: Mapping[str, int], t: float, pod: str) -> None:
    job = pod.partition("-worker-")[0]
    points.setdefault(job, []).append((t, sum(n for name, n in held.items() if name.startswith(f"{job}-worker-"))))


def at(points: Points, t: float) -> int:
    """Return how many there are at a time."""
    return next((count for since, count in reversed(points) if since <= t), 0)


_WIDTH, _HEIGHT, _LEFT, _BELOW, _COLUMNS = 1000, 360, 50, 40, 400


def figure(series: Mapping[str, Points], total: int) -> str:
    """GPUs per job over time, one band a job, as SVG."""
    end = max((points[-1][0] for points in series.values()), default=1.0)
    begin = min((points[0][0] for points in series.values()), default=0.0)
    times = [begin + (end - begin) * column / _COLUMNS for column in range(_COLUMNS + 1)]
    x = [_LEFT + (_WIDTH - _LEFT) * column / _COLUMNS for column in range(_COLUMNS + 1)]

    def y(count: int) -> float:
        return _HEIGHT * (1 - count / total)

    bands, below = [], [0] * len(times)
    for number, job in enumerate(sorted(series)):
        above = [base + at(series[job], t) for base, t in zip(below, times, strict=True)]
        upper = [f"{at_x:.1f},{y(count):.1f}" for at_x, count in zip(x, above, strict=True)]
        lower = [f"{at_x:.1f},{y(count):.1f}" for at_x, count in zip(x, below, strict=True)]
        color = f"hsl({number * 137 % 360} 60% {45 + number % 3 * 10}%)"
        title = escape(f"{job}: {max(count for _, count in series[job])} GPUs at the most")
        bands.append(
            f'<polygon fill="{color}" points="{" ".join(upper + lower[::-1])}"><title>{title}</title></polygon>'
        )
        below = above
    ticks = [
        f'<text x="{_LEFT - 6}" y="{y(count) + 4:.0f}" text-anchor="end">{count}</text>'
        f'<path d="M{_LEFT} {y(count):.1f}H{_WIDTH}" stroke="#0003"/>'
        for count in range(0, total + 1, max(1, total // 4))
    ]
    minutes = (end - begin) / 60
    ticks += [
        f'<text x="{_LEFT + (_WIDTH - _LEFT) * part / 5:.0f}" y="{_HEIGHT + 18}" '
        f'text-anchor="{"end" if part == 5 else "middle"}">{minutes * part / 5:.0f} min</text>'
        for part in range(6)
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -20 {_WIDTH} {_HEIGHT + 20 + _BELOW}"'
    caption = f'<text x="{_LEFT}" y="-6">GPUs held by each of {len(series)} jobs, of {total}</text>'
    style = ' font-family="sans-serif" font-size="12">'
    return "\n".join([head + style, caption, *bands, *ticks, "</svg>\n"])


def main(arguments: Sequence[str] = ()) -> None:
    """Runs it, and writes the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--pools", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--figure", type=Path, help="write GPUs per job over time there, as SVG")
    options = parser.parse_args(arguments)
    begun_s = time.process_time()
    found = run(jobs=options.jobs, pools=options.pools, seed=options.seed)
    took_s = time.process_time() - begun_s
    if not found.good:
        progress(f"{found.result.verdict}: {found.result.reason}")
    total = options.pools * HOSTS_PER_POOL * GPUS_PER_HOST
    series = gpus_over_time(found.lines)
    if options.figure is not None:
        options.figure.write_text(figure(series, total), encoding="utf-8")
    metrics = found.result.metrics
    report("kod2_pool_finished_jobs", metrics.get("finished_jobs", 0), f"of {options.jobs}")
    report("kod2_pool_moved_gpus", metrics.get("moved_gpus", 0), "moves")
    report("kod2_pool_mean_jct", metrics.get("mean_jct_s", 0.0), "emulated s")
    report("kod2_pool_cpu", took_s, "s")
    if not found.good:
        raise SystemExit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
