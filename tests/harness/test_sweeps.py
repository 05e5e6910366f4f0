"""Sweeps in parts: shards, one append-only file, resuming, merging."""

import json

import pytest

from mews.harness import cli
from mews.harness.errors import BadInputError
from mews.harness.sweeps import Shard, shard_of

SCENARIO = """\
apiVersion: mews/v1
kind: Scenario
metadata: {name: NAME}
hardware: demo
timeout: 1h
steps:
  - apply: {kind: ConfigMap, apiVersion: v1, metadata: {name: x}, data: {a: b}}
  - wait: {object: {kind: ConfigMap, apiVersion: v1, metadata: {name: WANTED}}}
    timeout: 1s
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A scenario that passes, and one that fails."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s").mkdir()
    for name, wanted in {"a": "x", "b": "y"}.items():
        (tmp_path / "s" / f"{name}.yaml").write_text(SCENARIO.replace("NAME", name).replace("WANTED", wanted))
    return tmp_path


def run(*words):
    return cli.exit_code(["run", "s", "--seeds", "1-2", *words])


def refused(capsys, *words):
    assert cli.exit_code(list(words)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_two_shards_merged_are_one_run_byte_for_byte(folder):
    assert run("--results", "one.jsonl", "--json", "one.json") == 1
    assert run("--results", "1.jsonl", "--shard", "1/2", "--jobs", "2") == 1
    assert run("--results", "2.jsonl", "--shard", "2/2") == 1
    assert cli.exit_code(["merge", "2.jsonl", "1.jsonl", "--json", "all.json", "--results", "all.jsonl"]) == 1
    assert (folder / "all.json").read_bytes() == (folder / "one.json").read_bytes()
    assert (folder / "all.jsonl").read_bytes() == (folder / "one.jsonl").read_bytes()
    found = [
        (each["scenario"], each["seed"], each["verdict"]) for each in json.loads((folder / "all.json").read_text())
    ]
    assert found == [("a", seed, "passed") for seed in (1, 2)] + [("b", seed, "failed") for seed in (1, 2)]


def test_every_run_is_in_exactly_one_shard():
    for of in (1, 2, 5):
        shards = [Shard(number, of) for number in range(1, of + 1)]
        assert all(sum(shard.has(item) for shard in shards) == 1 for item in range(17))


def test_an_interrupted_sweep_is_resumed_where_it_was_cut_off(folder, capsys):
    run("--results", "one.jsonl", "--json", "one.json")
    whole = (folder / "one.jsonl").read_bytes()
    for cut in (len(whole) - 20, 0):
        (folder / "part.jsonl").write_bytes(whole[:cut])
        capsys.readouterr()
        assert run("--results", "part.jsonl", "--resume", "--json", "part.json") == 1
        assert (folder / "part.jsonl").read_bytes() == whole
        assert (folder / "part.json").read_bytes() == (folder / "one.json").read_bytes()
        assert capsys.readouterr().out.count("virtual") == 4 - whole[:cut].count(b"\n")


def test_a_run_that_broke_is_run_again_and_its_last_result_counts(folder):
    run("--results", "one.jsonl", "--json", "one.json")
    lines = (folder / "one.jsonl").read_text().splitlines(keepends=True)
    broken = json.loads(lines[2])
    broken["result"] |= {"verdict": "error", "reason": "its worker process was killed"}
    (folder / "part.jsonl").write_text("".join([*lines[:2], json.dumps(broken) + "\n", *lines[3:]]))
    assert run("--results", "part.jsonl", "--resume", "--json", "part.json") == 1
    assert (folder / "part.jsonl").read_text().endswith(lines[2])
    assert cli.exit_code(["merge", "part.jsonl", "--json", "all.json"]) == 1
    assert (folder / "all.json").read_bytes() == (folder / "one.json").read_bytes()


def test_files_of_other_sweeps_and_missing_runs_are_refused_in_one_line(folder, capsys):
    run("--results", "1.jsonl", "--shard", "1/2")
    cli.exit_code(["run", "s", "--seeds", "1", "--results", "other.jsonl"])
    capsys.readouterr()
    assert refused(capsys, "merge", "1.jsonl") == (
        "1.jsonl: 2 of 4 runs are missing (2, 4): run their shards, or --resume them"
    )
    assert (
        refused(capsys, "merge", "1.jsonl", "other.jsonl")
        == "other.jsonl:1: belongs to another sweep than the first file"
    )
    again = ("run", "s", "--seeds", "1-2", "--results", "other.jsonl")
    assert refused(capsys, *again) == "--results other.jsonl: already exists: use --resume to continue it"
    assert refused(capsys, *again, "--resume") == (
        "--results other.jsonl:1: belongs to another sweep: scenarios, options or seeds differ"
    )
    (folder / "bad.jsonl").write_text('{"item": 1}\n')
    assert refused(capsys, "merge", "bad.jsonl") == (
        "bad.jsonl:1: not a result of a sweep: must be a line that --results wrote"
    )
    assert refused(capsys, "run", "s", "--resume") == "--resume: requires --results FILE, which records what has run"


def test_a_changed_scenario_is_another_sweep(folder, capsys):
    run("--results", "1.jsonl")
    path = folder / "s" / "a.yaml"
    path.write_text(path.read_text().replace("1h", "2h"))
    capsys.readouterr()
    assert "belongs to another sweep" in refused(
        capsys, "run", "s", "--seeds", "1-2", "--results", "1.jsonl", "--resume"
    )


def test_a_shard_is_named_by_number_or_by_the_index_of_a_job():
    assert shard_of("2/3", {}) == Shard(2, 3)
    assert shard_of("index/3", {"JOB_COMPLETION_INDEX": "0"}) == Shard(1, 3)
    for text, environment in {
        "0/3": {}, "4/3": {}, "x/3": {}, "2": {}, "": {}, "index/3": {}, "index/2": {"JOB_COMPLETION_INDEX": "2"},
    }.items():  # fmt: skip
        with pytest.raises(BadInputError, match=r"--shard"):
            shard_of(text, environment)
