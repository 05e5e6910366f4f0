"""Traces that tests make: in the columns that Alibaba published for PAI 2020, and in our own."""

import csv
import random

PAI_HEADER = [
    "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu",
    "gpu_type",
]  # fmt: skip


def pai_rows(count, seed=1, *, gap_s=60.0, gpus=((100, 12), (200, 4), (400, 3), (800, 1)), cpus=(600, 1200, 4000)):
    """So many tasks in order of arrival: exponential gaps, durations of five to thirty minutes."""
    rng = random.Random(seed)
    at_s = 1_739_162.0
    sizes, weights = zip(*gpus, strict=True)
    for number in range(count):
        at_s += rng.expovariate(1 / gap_s)
        lasts = rng.uniform(300, 1800)
        size = rng.choices(sizes, weights)[0]
        yield [
            f"job{number:07d}", "tensorflow", "1.0", "Terminated", f"{at_s:.1f}", f"{at_s + lasts:.1f}",
            f"{rng.choice(cpus):.1f}", "29.296875", f"{size:.1f}", rng.choice(("MISC", "T4", "V100")),
        ]  # fmt: skip


def write_pai(path, rows, *, header=False):
    """As published: without a header row."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if header:
            writer.writerow(PAI_HEADER)
        writer.writerows(rows)
    return path
