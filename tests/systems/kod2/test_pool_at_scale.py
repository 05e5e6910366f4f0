"""A small run of the benchmark of elastic jobs on pools: no job is lost, and its figure shows who had what when."""

from xml.etree import ElementTree

import pytest

from benchmarks.kod2_pool import GPUS_PER_HOST, HOSTS_PER_POOL, at, figure, gpus_over_time, run

JOBS, POOLS = 8, 2
GPUS = POOLS * HOSTS_PER_POOL * GPUS_PER_HOST


@pytest.mark.nightly
def test_no_job_is_lost_on_pools_whose_operator_restarts_and_whose_chassis_reboots():
    found = run(jobs=JOBS, pools=POOLS, seed=1)
    assert found.good, found.result.reason
    assert found.result.metrics["finished_jobs"] == JOBS
    assert found.result.metrics["moved_gpus"] >= 1
    assert any(line.layer == "chassis" and line.event == "down" for line in found.lines)
    series = gpus_over_time(found.lines)
    assert len(series) == JOBS
    moments = sorted({t for points in series.values() for t, _ in points})
    held = [sum(at(points, t) for points in series.values()) for t in moments]
    assert 0 < max(held) <= GPUS and held[-1] == 0
    drawn = ElementTree.fromstring(figure(series, GPUS))
    bands = [element for element in drawn if element.tag.endswith("polygon")]
    assert len(bands) == JOBS


def test_a_job_has_the_gpus_of_its_last_change():
    points = [(1.0, 2), (5.0, 4), (9.0, 0)]
    assert [at(points, t) for t in (0.5, 1.0, 4.9, 5.0, 100.0)] == [0, 2, 2, 4, 0]
