import pytest

from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.model import Workload
from mews.harness.scenario.trace import read_trace

TESTBED = (
    "workload,setting,job,type,gpus,cpus,submit_offset_s,run_s\n"
    "W1,pool,b1,B,1,40,48,301\nW1,pool,a1,A,1,80,0,302\nW3,pool,a1,A,2,80,0,302\n"
)


def workload(tmp_path, text, **fields):
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    return Workload.model_validate({"trace": str(path), **fields})


def test_rows_are_picked_and_sorted_by_arrival(tmp_path):
    jobs = read_trace(workload(tmp_path, TESTBED, select={"workload": "W1", "setting": "pool"}), "f")
    assert [(j.job, j.gpus, j.cpus, j.arrival_s, j.duration_s) for j in jobs] == [
        ("a1", 1, "80", 0, 302),
        ("b1", 1, "40", 48, 301),
    ]


def test_types_fill_in_what_the_columns_lack(tmp_path):
    types = {"A": {"gpus": 1, "cpus": 80}, "D": {"gpus": 4, "cpus": 40, "duration": "2m"}}
    jobs = read_trace(workload(tmp_path, "job,type,arrival_s\nx,D,5\ny,A,9\n", types=types, duration="5m"), "f")
    assert [(j.gpus, j.cpus, j.duration_s) for j in jobs] == [(4, "40", 120), (1, "80", 300)]


def test_columns_win_over_types(tmp_path):
    types = {"A": {"gpus": 1, "cpus": 80}}
    jobs = read_trace(workload(tmp_path, "job,type,gpus,cpus,arrival_s,duration_s\nx,Z,3,7,5,11\n", types=types), "f")
    assert [(j.gpus, j.cpus, j.duration_s) for j in jobs] == [(3, "7", 11)]


@pytest.mark.parametrize(
    ("text", "fields", "expected"),
    [
        ("job,arrival_s\n", {"types": {"A": {}}}, "no job"),
        ("name,arrival_s,gpus\n", {}, "missing job"),
        ("job,gpus\n", {}, "missing arrival_s (or submit_offset_s)"),
        ("job,arrival_s\nx,1\n", {}, "missing gpus (or workload.types"),
        ("job,gpus,arrival_s\nx,1,soon\n", {}, "jobs.csv:2: arrival_s: 'soon': must be a number"),
        ("job,gpus,arrival_s\nx,1,-4\n", {}, "jobs.csv:2: arrival_s: '-4'"),
        ("job,gpus,arrival_s\nx,1.5,4\n", {}, "gpus: '1.5': must be a whole number"),
        ("job,gpus,arrival_s\nx,1,\n", {}, "arrival_s: empty"),
        ("job,gpus,arrival_s,cpus\nx,1,1,lots\n", {}, "cpus: 'lots'"),
        (TESTBED, {}, "narrow the rows with workload.select (columns: workload, setting"),
        (TESTBED, {"select": {"run": 1}}, "workload.select.run: no such column"),
        (TESTBED, {"select": {"workload": "W9"}}, "no job with {'workload': 'W9'}"),
        ("job,type,arrival_s\nx,Q,1\n", {"types": {"A": {}}}, "type 'Q': must be one of A"),
    ],
)
def test_a_bad_trace_is_refused_with_its_line(tmp_path, text, fields, expected):
    with pytest.raises(ScenarioError) as raised:
        read_trace(workload(tmp_path, text, **fields), "f")
    assert expected in str(raised.value)
    assert "\n" not in str(raised.value)


def test_jobs_may_stand_in_the_scenario():
    given = Workload.model_validate(
        {
            "jobs": [{"job": "b", "type": "B", "arrival": "1m"}, {"job": "a", "arrival": 0, "gpus": 2, "duration": 9}],
            "types": {"B": {"gpus": 1, "cpus": 40}},
        }
    )
    assert [(j.job, j.gpus, j.cpu_cores, j.arrival_s, j.duration_s) for j in read_trace(given, "f")] == [
        ("a", 2, 0.0, 0, 9),
        ("b", 1, 40.0, 60, 300),
    ]


def test_a_job_may_have_a_name_that_no_pod_can_have(tmp_path):
    jobs = read_trace(workload(tmp_path, "job,gpus,arrival_s\nJOB_1 (a),1,0\n_,1,1\n2024.7,1,2\n"), "f")
    assert [job.pod for job in jobs] == ["job-1-a", "job", "2024.7"]
    with pytest.raises(ScenarioError, match="job 'A-1' was there already"):
        read_trace(workload(tmp_path, "job,gpus,arrival_s\na_1,1,0\nA-1,1,1\n"), "f")
