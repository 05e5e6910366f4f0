"""Profile falcon-4005 against the measurements it was fitted to: mean, p50 and p95 agree.

Measured at 1 s resolution, a duration is the difference of two truncated times; drawn ones are put through the same
truncation before they are compared.
"""

from __future__ import annotations

import csv
import os
import random
import statistics
from pathlib import Path

import pytest

from mews.emulator.chassis.operation import OperationOutcome
from mews.emulator.hardware.chassis_profiles import PROFILES
from mews.emulator.hardware.latency import Latency
from tests.emulator.boxes import box, done

N = 20_000
DATA = Path(os.environ.get("MEWS_DATA_DIR", "/nonexistent")) / "falcon-4005"
FALCON = PROFILES["falcon-4005"]
measured = pytest.mark.skipif(not DATA.is_dir(), reason="MEWS_DATA_DIR has no falcon-4005 measurements")


def attach(chassis: str) -> tuple[Latency, Latency, float]:
    """Return the latency of a ``true`` reply, of a ``false`` one, and the share of the latter."""
    profile = FALCON.profile(chassis)
    lie = next(quirk for quirk in profile.quirks if quirk["kind"] == "lying-result")
    return profile.attach, lie["latency"], lie["probability"]


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open() as file:
        return list(csv.DictReader(file))


def phase(name: str) -> list[float]:
    return [float(row["duration_s"]) for row in rows("durations.csv") if row["phase"] == name]


def calls(chassis: str, reply: str) -> list[float]:
    return [
        float(row["duration_s"])
        for row in rows("operations.csv")
        if row["operation"] == "assign" and row["chassis"] in (chassis or "AB") and row["reply"] == reply
    ]


def drawn(latency: Latency) -> list[float]:
    rng = random.Random(1)
    return [latency.draw(rng) for _ in range(N)]


def truncated(durations: list[float]) -> list[float]:
    rng = random.Random(2)
    return [float(int(rng.random() + duration)) for duration in durations]


def figures(values: list[float]) -> tuple[float, float, float]:
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    return statistics.mean(values), statistics.median(values), cuts[18]


@measured
def test_detach_has_the_measured_mean_p50_and_p95():
    assert figures(drawn(FALCON.other.detach)) == pytest.approx(figures(phase("unassign")), rel=0.05)


@measured
def test_the_slower_of_two_parallel_reads_has_the_measured_mean_p50_and_p95():
    rng = random.Random(1)
    slower = [max(FALCON.other.read.draw(rng), FALCON.other.read.draw(rng)) for _ in range(N)]
    assert figures(slower) == pytest.approx(figures(phase("get_resources")), rel=0.06)


@measured
@pytest.mark.parametrize("reply", ["true", "false"])
@pytest.mark.parametrize("chassis", ["A", "B", ""])
def test_attach_has_the_measured_times_by_chassis_and_reply(chassis: str, reply: str):
    honest, lying, _ = attach(chassis)
    mean, p50, p95 = figures(truncated(drawn(honest if reply == "true" else lying)))
    real_mean, real_p50, real_p95 = figures(calls(chassis, reply))
    assert mean == pytest.approx(real_mean, rel=0.02)
    assert (p50, p95) == pytest.approx((real_p50, real_p95), abs=1.0)


@measured
def test_the_share_of_lies_is_the_measured_one():
    for chassis in ("A", "B", ""):
        lies, truths = len(calls(chassis, "false")), len(calls(chassis, "true"))
        assert attach(chassis)[2] == pytest.approx(lies / (lies + truths))


@measured
def test_attaches_over_both_chassis_have_the_mean_of_the_other_measurement():
    rng = random.Random(1)
    durations = []
    for chassis in ("A", "B"):
        honest, lying, share = attach(chassis)
        durations += [(lying if rng.random() < share else honest).draw(rng) for _ in range(N)]
    assert statistics.mean(durations) == pytest.approx(statistics.mean(phase("assign")), rel=0.03)


def test_a_falcon_lies_drops_and_takes_its_time_at_the_measured_rates():
    made = box(profile="falcon-4005", seed=5)
    replies = []
    now_s = 0.0
    for _ in range(3000):
        made.edits.edit("d0", None, now_s)
        operation = made.begin_attach("d0", "1", now_s)
        replies.append((done(made, operation), operation.due_s - operation.start_s))
        now_s = made.now_s
    answered = [(answer, took) for answer, took in replies if answer.outcome is OperationOutcome.REPLY]
    assert 1 <= len(replies) - len(answered) <= 20
    assert all(answer.truth for answer, _ in answered)
    lies = [took for answer, took in answered if not answer.ok]
    truths = [took for answer, took in answered if answer.ok]
    assert len(lies) / len(answered) == pytest.approx(155 / 171, abs=0.02)
    assert min(lies) > 11 > statistics.mean(truths)


def test_a_dropped_post_leaves_the_device_attached_nowhere():
    made = box(profile="falcon-4005", seed=5)
    now_s = 0.0
    while True:
        made.edits.edit("d0", None, now_s)
        answer = done(made, made.begin_attach("d0", "1", now_s))
        now_s = made.now_s
        if answer.outcome is OperationOutcome.DROPPED:
            break
        assert now_s < 1e6
    assert made.row("d0", now_s).port is None
