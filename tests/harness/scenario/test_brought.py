"""The user's own programs: where one has ended, nothing is awaited any longer."""

import pytest

from mews.harness.engine import Engine
from mews.harness.journal import Journal
from mews.harness.options import RunOptions
from mews.harness.scenario.brought import BroughtPrograms
from mews.harness.scenario.errors import Failure
from mews.harness.scenario.loader import load_scenario

SCENARIO = """\
apiVersion: mews/v1
kind: Scenario
metadata: {name: yours}
hardware: demo
requires: {time: wall}
stack:
  replace:
    COMPONENT: {process: PROCESS}
steps:
  - apply:
      kind: Pod
      metadata: {name: a}
      spec: {schedulerName: SCHEDULER, containers: [{name: main, image: mews/gpu-hold}]}
  - wait: {pod: {name: a, phase: Running}}
    timeout: 10m
"""
MINE = 'import time\nprint("loading")\ntime.sleep(SECONDS)\nraise SystemExit("cannot read my config")\n'


def scenario_of(folder, component, process='["{python}", mine.py]', seconds=0):
    (folder / "mine.py").write_text(MINE.replace("SECONDS", str(seconds)))
    path = folder / "one.yaml"
    text = SCENARIO.replace("COMPONENT", component).replace("PROCESS", process)
    path.write_text(text.replace("SCHEDULER", "kubecomp-scheduler" if component == "scheduler" else "nobody"))
    return load_scenario(path)


@pytest.fixture
def brought(tmp_path):
    journal = Journal(lambda: 0.0)
    return journal, BroughtPrograms(scenario_of(tmp_path, "scheduler").stack, journal)


def test_a_crash_is_named_with_its_place_and_last_lines_until_a_start_makes_up_for_it(brought):
    journal, programs = brought
    assert programs.crash() is None
    journal.write("component", "reconfig-manager", "crashed", cause="ValueError: ours")
    assert programs.crash() is None
    journal.write("component", "scheduler", "crashed", cause="ProcessEndedError: mine ended", output=["a", "b"])
    crash = programs.crash()
    assert (crash.text, crash.output) == ("scheduler (stack.replace.scheduler): mine ended", ("a", "b"))
    journal.write("component", "scheduler", "started")
    assert programs.crash() is None


def test_a_failure_by_a_crash_has_its_line_first_and_what_was_printed():
    failure = Failure("pod a", "Pending", 1.0, crash="scheduler (stack.replace.scheduler): ended", output=("x", "y"))
    assert failure.reason == "scheduler (stack.replace.scheduler): ended; meanwhile awaited: pod a"
    assert failure.report.splitlines()[:3] == [
        "ended:   scheduler (stack.replace.scheduler): ended",
        "printed: x",
        "printed: y",
    ]


@pytest.mark.wall
@pytest.mark.parametrize("component", ["scheduler", "device-manager"])
def test_a_program_that_ends_at_its_start_fails_the_run_at_once_with_its_last_lines(component, tmp_path):
    result = Engine(RunOptions(time="wall", speed=20.0)).run(scenario_of(tmp_path, component)).result
    assert result.verdict == "failed"
    assert f"(stack.replace.{component}): python exited with code 1: cannot read my config" in result.reason
    assert "loading" in result.report
    assert "Traceback" not in result.report
    assert "not within" not in result.reason


@pytest.mark.wall
def test_a_program_that_ends_while_a_step_waits_fails_it(tmp_path):
    scenario = scenario_of(tmp_path, "scheduler", seconds=8)
    result = Engine(RunOptions(time="wall", speed=20.0)).run(scenario).result
    assert result.verdict == "failed"
    assert "scheduler (stack.replace.scheduler): python exited with code 1" in result.reason
    assert result.wall_s < 120  # the step would have waited ten minutes


@pytest.mark.wall
def test_a_program_that_is_not_there_is_named_before_any_step(tmp_path):
    """Both hosts start it at the same time, and whichever fails first is named."""
    from mews.harness.errors import RequirementError

    with pytest.raises(
        RequirementError, match=r"device-manager/host-[12]: no-such-program: cannot be started: No such file"
    ):
        Engine(RunOptions(time="wall", speed=20.0)).run(scenario_of(tmp_path, "device-manager", "[no-such-program]"))
