import csv
import os
import random
from pathlib import Path
from statistics import fmean, linear_regression, pstdev

import pytest

from mews.systems.kubecomp.testbed import BASE_S, PER_IDLE_GPU_S, RESIDUAL_S, overhead_s

GPUS_OF_NODE = {
    "4-4": {"host-1": 4, "host-2": 4},
    "0-8": {"host-1": 0, "host-2": 8},
    "2-6": {"host-1": 6, "host-2": 2},
}


def measured() -> list[tuple[int, float]]:
    """(idle GPUs as the job started, seconds beyond its run) of every job whose node's GPUs are known."""
    folder = os.environ.get("MEWS_DATA_DIR")
    if folder is None:
        pytest.skip("MEWS_DATA_DIR is not set: the measured testbed runs are not here")
    runs: dict[tuple[str, str], list[dict[str, str]]] = {}
    text = (Path(folder) / "kubecomp" / "testbed_jobs.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        if row["setting"] in GPUS_OF_NODE:
            runs.setdefault((row["workload"], row["setting"]), []).append(row)
    points = []
    for (_, setting), rows in runs.items():
        spans = [
            (float(r["submit_offset_s"]) + float(r["wait_s"]), float(r["submit_offset_s"]) + float(r["jct_s"]), r)
            for r in rows
        ]
        for start, _, row in spans:
            held = sum(
                int(other["gpus"])
                for begin, end, other in spans
                if other is not row and other["node"] == row["node"] and begin <= start < end
            )
            beyond = float(row["jct_s"]) - float(row["wait_s"]) - float(row["run_s"])
            points.append((GPUS_OF_NODE[setting][row["node"]] - held, beyond))
    return points


def test_the_overhead_of_a_pod_is_the_fit_over_all_measured_rows() -> None:
    points = measured()
    assert len(points) == 100
    fit = linear_regression([idle for idle, _ in points], [beyond for _, beyond in points])
    assert fit.slope == pytest.approx(PER_IDLE_GPU_S, abs=0.01)
    assert fit.intercept == pytest.approx(BASE_S, abs=0.01)
    residuals = [beyond - fit.intercept - fit.slope * idle for idle, beyond in points]
    assert pstdev(residuals) == pytest.approx(RESIDUAL_S, abs=0.02)


def test_more_idle_gpus_take_longer_and_nothing_takes_negative_time() -> None:
    rng = random.Random(1)
    means = [fmean(overhead_s(idle, rng) for _ in range(200)) for idle in (0, 1, 4, 8)]
    assert means == sorted(means)
    assert means[3] - means[0] == pytest.approx(8 * PER_IDLE_GPU_S, abs=0.5)
    assert min(overhead_s(0, random.Random(seed)) for seed in range(2000)) >= 0.0
