"""An experiment that was killed goes on where it was, and comes to the same bytes as in one go."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from mews.harness.cli import exit_code
from mews.harness.errors import BadInputError
from mews.harness.experiments.kept import KeptResults, task_id
from mews.harness.experiments.runner import run_experiment
from mews.harness.report.progress import WorkRate
from mews.kube.system.experiment import Experiment, ExperimentPart, first_seeds

SLOW = """
import select, sys
import mews.harness.systems as systems
from mews.harness.cli import exit_code
from mews.kube.system.experiment import Experiment, ExperimentPart

def run(task):
    select.select([], [], [], 0.1)
    return (task, task / 3)

part = ExperimentPart("parts", "", 30, lambda seeds: list(seeds), run, lambda seeds, results: [{"all": results}])
systems.all_experiments = lambda: {"slow": Experiment("slow", "", (part,))}
sys.exit(exit_code(["experiment", "slow", *sys.argv[1:]]))
"""


def command(*arguments):
    return [sys.executable, "-c", SLOW, *map(str, arguments)]


def kept_lines(folder):
    try:
        return (folder / "results.jsonl").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize("jobs", [1, 3])
def test_killed_anywhere_it_goes_on_and_writes_what_one_go_writes(jobs, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    subprocess.run(command("--out", whole, "--jobs", jobs), check=True)
    for wanted in (2, 5, 9):
        process = subprocess.Popen(command("--out", cut, "--jobs", jobs, "--resume"))
        deadline_s = time.monotonic() + 60
        while kept_lines(cut) < wanted and time.monotonic() < deadline_s and process.poll() is None:
            os.sched_yield()
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert wanted <= kept_lines(cut) < 31
    subprocess.run(command("--out", cut, "--jobs", jobs, "--resume"), check=True)
    for name in ("result.json", "tables.json", "report.md", "index.html", "parts.csv"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes()
    assert kept_lines(cut) == 31  # nothing ran twice


CALLS = []


def noted(task):
    CALLS.append(task)
    return [task, {"half": task / 2}]


def toy(run=noted):
    part = ExperimentPart("parts", "", 4, lambda seeds: list(seeds), run, lambda seeds, results: [{"all": results}])
    return Experiment("toy", "", (part,))


def rows(path, seeds, run=noted):
    about = {"experiment": "toy", "mews": "1", "options": ""}
    return run_experiment(toy(run), {"parts": seeds}, processes=1, kept=KeptResults(path, about))["parts"]


def failing(task):
    raise RuntimeError(f"{task} ran")


def test_more_seeds_run_only_what_is_new(tmp_path):
    path = tmp_path / "results.jsonl"
    first = rows(path, first_seeds(2))
    assert rows(path, first_seeds(2), failing) == first == [{"all": [[1, {"half": 0.5}], [2, {"half": 1.0}]]}]
    with pytest.raises(RuntimeError, match="3 ran"):
        rows(path, first_seeds(3), failing)
    assert rows(path, first_seeds(3)) == rows(tmp_path / "one-go.jsonl", first_seeds(3))


def test_results_are_the_same_values_whether_they_were_in_a_file_or_not():
    (row,) = run_experiment(toy(lambda task: (task, {1: task})), {"parts": range(5, 6)}, processes=1)["parts"]
    assert row == {"all": [[5, {"1": 5}]]}


def test_a_line_that_was_cut_off_is_run_again_at_every_byte(tmp_path):
    path = tmp_path / "results.jsonl"
    whole = rows(path, first_seeds(2))
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        assert rows(path, first_seeds(2)) == whole
        assert sorted(path.read_bytes().splitlines()) == sorted(data.splitlines())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("junk\n", ":1: not a result of an experiment"),
        ("{}\n", ":1: not a result of an experiment"),
        ("[]\n", ":1: not a result of an experiment"),
        ('{"sweep": "1", "item": 0, "items": 2, "result": {}}\n', ":1: not a result of an experiment"),
        ('{"experiment": "kod2", "mews": "VERSION", "options": ""}\n', "experiment 'kod2', not 'toy'"),
        ('{"experiment": "toy", "mews": "0.0.1", "options": ""}\n', "mews '0.0.1', not "),
        ('{"experiment": "toy", "mews": "VERSION", "options": "--set a=1"}\n', "options '--set a=1', not ''"),
        ('{"experiment": "toy", "mews": "VERSION", "options": ""}\n[1]\n', ":2: not a result of an experiment"),
        ('{"experiment": "toy", "mews": "VERSION", "options": ""}\n{"part": 1\n{}\n', ":2: not a result"),
    ],
)
def test_a_file_of_something_else_is_refused_in_one_line_and_kept(text, why, tmp_path, monkeypatch, capsys):
    from mews import __version__

    monkeypatch.setattr("mews.harness.systems.all_experiments", lambda: {"toy": toy()})
    path = tmp_path / "results.jsonl"
    path.write_text(text.replace("VERSION", __version__))
    assert exit_code(["experiment", "toy", "--out", str(tmp_path), "--resume"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("--resume: ")
    assert why in line
    assert path.read_text() == text.replace("VERSION", __version__)
    assert exit_code(["experiment", "toy", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "results.before.jsonl").read_text() == text.replace("VERSION", __version__)
    assert json.loads((tmp_path / "tables.json").read_text())["parts"][0]["all"][3] == [4, {"half": 2.0}]


def test_without_a_folder_nothing_can_be_resumed(monkeypatch, capsys):
    monkeypatch.setattr("mews.harness.systems.all_experiments", lambda: {"toy": toy()})
    assert exit_code(["experiment", "toy", "--resume"]) == 2
    assert capsys.readouterr().err.startswith("--resume: requires --out DIR")


def test_a_task_is_known_by_what_it_is():
    assert task_id((noted, 1)) == task_id([noted, 1]) != task_id((failing, 1))
    with pytest.raises(TypeError, match="object in a task"):
        task_id(object())


def test_a_file_that_cannot_be_read_is_bad_input(tmp_path):
    (tmp_path / "results.jsonl").mkdir()
    with pytest.raises(BadInputError):
        KeptResults(tmp_path / "results.jsonl", {"experiment": "toy"})


def test_the_pace_is_that_of_what_ran_now():
    now_s = [0.0]
    rate = WorkRate(lambda: now_s[0])
    assert rate.text("cells", 0, 100) == ""
    now_s[0] = 10.0
    assert rate.text("cells", 4, 20) == ", 0.4/s, 50 s left"
    assert rate.text("cells", 5, 500) == ", 0.5/s, 16 min left"
    assert rate.text("other", 0, 7) == ""
    now_s[0] = 12.0
    assert rate.text("other", 1, 6) == ", 0.5/s, 12 s left"
