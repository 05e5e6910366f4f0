"""Whole searches, as their users start them: of a law that the test breaks on purpose."""

import json
import subprocess
import sys
import textwrap
from importlib.metadata import entry_points

import pytest

from mews.harness.cli import exit_code
from mews.harness.fuzz.world import Player, World

SCENARIO = """\
# Two nodes, and nothing else.
apiVersion: mews/v1
kind: Scenario
metadata: {name: two}
hardware: hosts.yaml
stack: {kubecomp: null}
steps:
  - {name: nodes are there, wait: {settled: {}}}
  - name: a pod
    apply:
      kind: Pod
      metadata: {name: a}
      spec: {restartPolicy: Never, terminationGracePeriodSeconds: 1, containers: [{name: main, image: mews/train}]}
  - wait: {pod: {name: a, phase: Running}}
"""
HOSTS = """\
apiVersion: mews/v1
kind: Hardware
metadata: {name: two}
hosts: [{name: h1, cpus: 4}, {name: h2, cpus: 4}]
chassis: [{name: A, index: 0, slots: 2, ports: {"1": h1, "2": h2}, devices: []}]
"""
LAWS = '''
from mews.kube.system.invariant import Breach, Invariant


class Untouched(Invariant):
    """A kubelet that was killed while a pod ran breaks it."""

    number = 101
    name = "nobody touches kubelets"

    def __init__(self):
        self.ran = None

    def on_line(self, line, state):
        if line.event == "phase" and line.fields["phase"] == "Running":
            self.ran = line
        if self.ran and line.layer == "component" and line.event == "killed" and line.actor.startswith("kubelet/"):
            yield Breach((line.actor,), f"{line.actor} was killed", line, after=self.ran)
'''


COUNTING = '''
import os
import signal
from pathlib import Path

from laws import Untouched

COUNTER = Path(__file__).with_name("worlds")


def world():
    """How many worlds there were before this one, of all processes."""
    with COUNTER.open("a") as file:
        file.write(".")
    return COUNTER.stat().st_size


class Fickle(Untouched):
    """Broken in one world, and never again."""

    def on_line(self, line, state):
        broken = list(super().on_line(line, state))
        if broken and world() == 1:
            yield from broken


class Deadly(Untouched):
    """Ends the process that judges the twelfth world."""

    def on_line(self, line, state):
        if self.ran is None and line.event == "phase" and line.fields["phase"] == "Running" and world() == 12:
            os.kill(os.getpid(), signal.SIGKILL)
        yield from super().on_line(line, state)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "two.yaml").write_text(SCENARIO)
    (tmp_path / "hosts.yaml").write_text(HOSTS)
    (tmp_path / "laws.py").write_text(textwrap.dedent(LAWS))
    (tmp_path / "counting.py").write_text(textwrap.dedent(COUNTING))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mews(*words):
    return subprocess.run(
        [sys.executable, "-m", "mews.harness.cli", *map(str, words)], capture_output=True, text=True, timeout=300
    )


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SEARCH = ("fuzz", "two.yaml", "--budget", "25", "--oracle", "laws:Untouched", "--seed", "3")


def test_a_law_that_a_crash_breaks_is_found_and_shrunk_to_that_crash(folder):
    ended = mews(*SEARCH, "--jobs", "1", "--out", "found", "--json", "found.json", "--junit", "found.xml")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    (found,) = json.loads((folder / "found.json").read_text())["findings"]
    where = folder / "found" / "two-invariant-101-kubelet-killed"
    assert found["folder"] == "found/two-invariant-101-kubelet-killed"
    assert found["invariant"] == 101
    assert found["replays"] is True
    assert [entry.keys() - {"at", "since"} for entry in found["steps"]] == [{"restart"}]
    lines = [json.loads(line) for line in (where / "journal.jsonl").read_text().splitlines()]
    assert (lines[found["line"]]["event"], lines[found["expected_after"]]["event"]) == ("killed", "phase")
    assert found["worlds"] <= 25
    written = (where / "scenario.yaml").read_text()
    assert written.splitlines()[1].startswith("# Found by mews fuzz: kill kubelet in two.")
    base = SCENARIO.splitlines()
    added = [line for line in written.splitlines() if line not in base]
    assert len(added) <= 15
    assert set(base) <= set(written.splitlines()), "the scenario itself stands in it as it was written"
    assert "<html" in (where / "report.html").read_text()
    assert "nobody touches kubelets" in (folder / "found.xml").read_text()
    assert mews("run", where / "scenario.yaml").returncode == 1
    assert mews("run", where / "scenario.yaml", "--set", "disruptions=[]").returncode == 0, "without it all is well"


def test_more_processes_find_the_same_byte_for_byte(folder):
    assert mews(*SEARCH, "--jobs", "1", "--out", "one").returncode == 1
    assert mews(*SEARCH, "--jobs", "2", "--out", "two").returncode == 1
    one, two = files(folder / "one"), files(folder / "two")
    assert one.keys() == two.keys()
    reports = {name for name in one if name.endswith("report.html")}
    assert reports
    assert {name for name in one if one[name] != two[name]} <= reports, "reports name their own folder"


def test_a_search_goes_on_where_it_ended(folder):
    short = [*SEARCH, "--out", "kept", "--jobs", "1", "--without", "kill"]
    short[short.index("25")] = "10"
    assert mews(*short).returncode == 0
    again = mews(*short)
    assert again.returncode == 2
    assert "has a search already: continue it with --resume, or name another folder" in again.stderr
    longer = [word if word != "10" else "30" for word in short]
    ended = mews(*longer, "--resume")
    assert ended.returncode == 0, ended.stderr
    assert "two: 30 worlds" in ended.stdout
    state = json.loads((folder / "kept" / "search.json").read_text())
    assert mews(*longer, "--out", "whole").returncode == 0
    assert json.loads((folder / "whole" / "search.json").read_text()) == state
    other = mews(*longer, "--resume", "--waits")
    assert other.returncode == 2
    assert "belongs to another search" in other.stderr


def test_a_finding_that_does_not_show_again_is_said_to_be_none(folder):
    words = ("fuzz", "two.yaml", "--budget", "25", "--oracle", "counting:Fickle", "--seed", "3", "--jobs", "1")
    ended = mews(*words, "--out", "found")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "WARNING: the scenario does not show it when it is replayed" in ended.stdout
    (found,) = (json.loads(path.read_text()) for path in (folder / "found").glob("*/finding.json"))
    assert (found["replays"], found["minimal"]) == (False, True)


def test_a_search_that_loses_a_worker_ends_and_can_go_on(folder):
    words = ("fuzz", "two.yaml", "--budget", "60", "--oracle", "counting:Deadly", "--seed", "3", "--jobs", "2")
    ended = mews(*words, "--out", "found")
    assert ended.returncode == 3, ended.stdout + ended.stderr
    assert "of the search was lost" in ended.stderr
    assert "--resume continues it" in ended.stderr
    assert "Traceback" not in ended.stderr
    again = mews(*words, "--out", "found", "--resume", "--json", "found.json")
    assert again.returncode == 1, again.stdout + again.stderr
    assert json.loads((folder / "found.json").read_text())["worlds"] == 60


def test_worlds_that_are_skipped_are_counted_and_said(folder, monkeypatch, capsys):
    skipped = World((), frozenset(), 0.0, 0, "needs a chassis that sings")
    monkeypatch.setattr(Player, "play", lambda self, plan: skipped)
    assert exit_code(["fuzz", "two.yaml", "--budget", "12", "--jobs", "1", "--json", "found.json"]) == 0
    assert "WARNING: two: 12 worlds were skipped: needs a chassis that sings" in capsys.readouterr().err
    assert json.loads((folder / "found.json").read_text())["scenarios"][0]["skipped"] == 12


def test_every_crash_is_tried_one_by_one(folder):
    ended = mews("fuzz", "two.yaml", "--systematic", "crashes", "--budget", "20", "--out", "all", "--jobs", "1")
    assert ended.returncode == 0, ended.stdout
    assert "two: 20 worlds" in ended.stdout


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["nope.yaml"], "nope.yaml: no such file"),
        ([], "PATH: missing"),
        (["two.yaml", "--budget", "0"], "--budget 0: must be a number of worlds, such as 500, or a time"),
        (["two.yaml", "--budget", "soon"], "--budget soon: must be a number of worlds"),
        (["two.yaml", "--jobs", "0"], "must be a whole number of at least 1"),
        (["two.yaml", "--without", "kills"], "--without kills: must be one of"),
        (["two.yaml", "--out", "laws.py"], "--out laws.py: must be a folder"),
        (["two.yaml", "--oracle", "laws:Missing"], "laws:Missing"),
        (["broken.yaml"], "broken.yaml: fails before any fault is added"),
    ],
)
def test_bad_input_is_one_line(folder, words, line):
    (folder / "broken.yaml").write_text(SCENARIO.replace("phase: Running", "phase: Failed"))
    ended = mews("fuzz", *words)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert line in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
    assert not (folder / "mews-fuzz").exists()


def test_a_test_searches_and_replays_its_corpus(folder, pytester):
    pytester.makepyfile(
        """
        def test_it(mews_fuzz):
            assert mews_fuzz("two.yaml", budget=5, without=["kill"]).worlds == 5

        def test_that_fails(mews_fuzz):
            mews_fuzz("two.yaml", budget=25, seed=3, oracles=["laws:Untouched"])
        """
    )
    for name in ("two.yaml", "hosts.yaml", "laws.py"):
        (pytester.path / name).write_text((folder / name).read_text())
    installed = any(entry.name == "mews" for entry in entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "mews.harness.pytest_plugin")
    result = pytester.runpytest_subprocess(*plugin, "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*nobody touches kubelets: kubelet/h* was killed; replay: mews run *scenario.yaml*"])


pytest_plugins = ["pytester"]
