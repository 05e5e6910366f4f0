"""Traces are read as they are published, row by row, and refused where they are not what they say."""

import random

import pytest

from mews.harness.errors import BadInputError
from mews.harness.simulation import trace_file
from mews.harness.simulation.columns import MEWS, PAI2020, Defaults, TraceJobType
from mews.harness.simulation.helios import HELIOS, HELIOS_COLUMNS
from mews.harness.simulation.trace_file import TraceFile, TraceSpan
from tests.harness.simulation.traces import PAI_HEADER, pai_rows, write_pai


def opened(path, form=PAI2020, **options):
    return TraceFile(path, form, options.pop("defaults", Defaults()), **options)


def written(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    return path


def test_a_published_task_table_is_read_with_its_units(tmp_path):
    row = "4f05,tensorflow,1.0,Terminated,1739162.0,1739200.0,600.0,29.296875,50.0,MISC\n"
    (job,) = opened(written(tmp_path, row)).jobs()
    assert (job.name, job.arrival_s, job.duration_s) == ("4f05/tensorflow", 0.0, 38.0)
    assert (job.cpu_milli, job.memory_mib, job.share, job.devices) == (6000, 30000, 50, 1)


def test_the_header_may_be_a_row_or_a_file_beside_and_in_any_order(tmp_path):
    rows = list(pai_rows(5))
    write_pai(tmp_path / "a.csv", rows)
    write_pai(tmp_path / "b.csv", rows, header=True)
    write_pai(tmp_path / "c.csv", [row[::-1] for row in rows])
    (tmp_path / "c.header").write_text(",".join(PAI_HEADER[::-1]) + "\n")
    read = [[(job.name, job.arrival_s, job.share) for job in opened(tmp_path / f"{name}.csv").jobs()] for name in "abc"]
    assert read[0] == read[1] == read[2]
    assert len(read[0]) == 5


def test_instances_become_jobs_of_their_own_unless_asked_whole(tmp_path):
    path = written(tmp_path, "j,worker,3.0,Terminated,10,20,100,1,100,T4\n")
    assert [job.name for job in opened(path).jobs()] == ["j/worker/0", "j/worker/1", "j/worker/2"]
    assert [job.instances for job in opened(path).jobs(whole=True)] == [3]
    read = opened(path)
    assert (len(list(read.jobs())), read.given) == (3, 1)


def test_tasks_that_never_ran_or_ended_are_left_out_and_counted(tmp_path):
    rows = list(pai_rows(4))
    rows[1][4] = rows[2][5] = ""
    trace = opened(write_pai(tmp_path / "t.csv", rows))
    assert [job.name for job in trace.jobs()] == ["job0000000/tensorflow", "job0000003/tensorflow"]
    assert trace.left_out == 2


def test_rows_in_any_order_are_played_by_arrival_sorted_on_disk_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_file, "_CHUNK", 40)
    rows = list(pai_rows(500))
    shuffled = random.Random(3).sample(rows, len(rows))
    ordered = [(j.name, j.arrival_s) for j in opened(write_pai(tmp_path / "a.csv", rows)).jobs()]
    assert [(j.name, j.arrival_s) for j in opened(write_pai(tmp_path / "b.csv", shuffled)).jobs()] == ordered


def test_our_own_columns_with_types_fractions_and_recorded_results(tmp_path):
    text = "job,type,gpus,cpus,submit_offset_s,run_s,wait_s\na,A,,,5,,1\nb,,0.25,500m,7,60,2\n"
    defaults = Defaults({"A": TraceJobType(2, 80_000)}, duration_s=300.1, per_device_s=1.05)
    first, second = opened(written(tmp_path, text), MEWS, defaults=defaults).jobs()
    assert (first.arrival_s, first.duration_s, first.devices, first.cpu_milli) == (5.0, pytest.approx(302.2), 2, 80_000)
    assert (second.share, second.devices, second.cpu_milli, second.duration_s) == (25, 1, 500, 60.0)


def test_selected_rows_alone_are_read(tmp_path):
    path = write_pai(tmp_path / "t.csv", list(pai_rows(200)))
    wanted = [row[0] for row in pai_rows(200) if row[9] == "V100"]
    assert [job.name.split("/")[0] for job in opened(path, select={"gpu_type": "V100"}).jobs()] == wanted
    with pytest.raises(BadInputError, match=r"t.csv: no job with gpu_type=H100"):
        opened(path, select={"gpu_type": "H100"}).scan()


HELIOS_ROW = "7,u1,vc1,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:30,2020-06-09 18:45:36,246,3"


def helios(*rows, columns=HELIOS_COLUMNS):
    return "\n".join((",".join(columns), *rows)) + "\n"


def test_a_job_log_of_helios_is_read_with_its_dates_and_counts_from_the_first_job(tmp_path):
    later = HELIOS_ROW.replace("7,u1", "8,u1").replace("18:41:27", "18:42:00").replace("4,16,1,", "12,30,3,")
    first, *parts = opened(written(tmp_path, helios(HELIOS_ROW, later)), HELIOS).jobs()
    assert (first.name, first.arrival_s, first.duration_s) == ("7", 0.0, 246.0)
    assert (first.devices, first.share, first.cpu_milli) == (4, 400, 16_000)
    assert [(part.name, part.arrival_s, part.devices, part.cpu_milli) for part in parts] == [
        (f"8/{number}", 33.0, 4, 10_000) for number in range(3)
    ]


def test_a_job_on_more_nodes_than_it_has_gpus_has_one_on_each_and_one_without_gpus_has_none(tmp_path):
    rows = [HELIOS_ROW.replace(",4,16,1,", f",{gpus},16,{nodes},") for gpus, nodes in ((3, 2), (1, 2), (0, 2))]
    read = opened(written(tmp_path, helios(*rows)), HELIOS)
    assert [job.devices for job in read.jobs(whole=True)] == [2, 1, 0]


def test_jobs_that_had_not_ended_are_counted_and_a_span_takes_what_arrives_in_it(tmp_path):
    june = HELIOS_ROW.replace("2020-06-09 18:41:27", "2020-06-01 00:00:00")
    running = june.replace("2020-06-09 18:45:36,246", ",")
    rows = (june.replace("06-01 00:00:00", "05-31 23:59:59"), june, running, june.replace("2020-06-01", "2020-09-01"))
    span = TraceSpan(1_590_969_600.0, 1_598_918_400.0, "of June to August 2020")
    read = opened(written(tmp_path, helios(*rows)), HELIOS, within=span)
    assert (len(list(read.jobs())), read.left_out, read.scan().rows) == (1, 1, 2)
    with pytest.raises(BadInputError, match=r"t\.csv: no job of June to August 2020"):
        opened(written(tmp_path, helios(rows[0])), HELIOS, within=span).scan()


def test_the_first_look_at_a_large_file_tells_how_far_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_file, "_CHUNK", 1000)
    seen = []
    opened(written(tmp_path, helios(*[HELIOS_ROW] * 5000)), HELIOS).scan(on_progress=seen.append)
    assert len(seen) == 5
    assert seen == sorted(seen)
    assert 0 < seen[0] < seen[-1] <= 100


GOOD = "j,t,1.0,Terminated,10,20,100,1,100,T4"


@pytest.mark.parametrize(
    ("form", "text", "complaint"),
    [
        (PAI2020, f"{GOOD}\n{GOOD.replace('10,20', '10,x')}\n", "t.csv:2: end_time: 'x': must be a number"),
        (PAI2020, GOOD.replace("100,T4", "-5,T4") + "\n", "t.csv:1: plan_gpu: '-5': must be a number of at least 0"),
        (PAI2020, GOOD.replace("10,20", "30,20") + "\n", "t.csv:1: end_time: '20': must not be before start_time, 30"),
        (PAI2020, GOOD.replace("1.0", "1.5") + "\n", "t.csv:1: inst_num: '1.5': must be a whole number of at least 1"),
        (PAI2020, f"{GOOD}\n{GOOD},more\n", "t.csv:2: 11 cells for 10 columns"),
        (PAI2020, "job_name,inst_id,user,status,start_time,end_time\n", "these are the columns of pai_job_table"),
        (PAI2020, f"{','.join(PAI_HEADER)},vc\n{GOOD},a\n", "t.csv:1: column 'vc': unknown to --format pai2020"),
        (PAI2020, "job_name,inst_num,start_time,plan_cpu,plan_gpu\n", "t.csv:1: column 'end_time': missing"),
        (MEWS, "job,gpus,arrival_s,priority\na,1,0,1\n", "t.csv:1: column 'priority': unknown to --format mews"),
        (MEWS, "job,gpus,arrival_s\na,1,-4\n", "t.csv:2: arrival_s: '-4': must be a number of at least 0"),
        (MEWS, "job,gpus,arrival_s\na,1.005,4\n", "t.csv:2: gpus: '1.005': must be a number of GPUs, in hundredths"),
        (MEWS, "job,gpus,cpus,arrival_s\na,1,many,4\n", "t.csv:2: cpus: 'many': must be a number of CPUs"),
        (MEWS, "job,gpus,arrival_s,arrival_s\n", "t.csv:1: column 'arrival_s': is listed twice"),
        (MEWS, "job,gpus,arrival_s,submit_offset_s\n", "t.csv:1: columns 'arrival_s', 'submit_offset_s': only one"),
        (MEWS, "job,type,arrival_s\na,A,0\n", "t.csv:1: column 'gpus': missing"),
        (MEWS, "", "t.csv:1: column 'job': missing"),
        (HELIOS, "", "t.csv:1: column 'job_id': missing; --format helios has job_id, user, vc, gpu_num"),
        (HELIOS, helios(columns=HELIOS_COLUMNS[:3]), "t.csv:1: column 'gpu_num': missing; --format helios has"),
        (HELIOS, helios(HELIOS_ROW.replace(",4,16", ",x,16")), "t.csv:2: gpu_num: 'x': must be a whole number from 0"),
        (HELIOS, helios(HELIOS_ROW.replace(",4,16", ",1.5,16")), "t.csv:2: gpu_num: '1.5': must be a whole number"),
        (HELIOS, helios(HELIOS_ROW.replace("16,1,", "16,0,")), "node_num: '0': must be a whole number of at least 1"),
        (
            HELIOS,
            helios(HELIOS_ROW.replace(",246,", ",-1,")),
            "t.csv:2: duration: '-1': must be a number of at least 0",
        ),
        (HELIOS, helios(HELIOS_ROW.replace("06-09 18:41:27", "13-09 18:41:27")), "submit_time: '2020-13-09 18:41:27'"),
        (HELIOS, helios(HELIOS_ROW.replace("2020-06-09 18:41:30", "soon")), "start_time: 'soon': must be a date and"),
        (HELIOS, helios(HELIOS_ROW.replace("2020-06-09 18:45", "2020-W24-2 18:45")), "end_time: '2020-W24-2 18:45:36'"),
    ],
)
def test_what_is_wrong_is_told_in_one_line_with_its_place(tmp_path, form, text, complaint):
    with pytest.raises(BadInputError) as refused:
        list(opened(written(tmp_path, text), form).jobs())
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)
