"""Steps beside the others, and who judges then."""

import pytest

from mews.harness.catalogue.files import shipped
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loader import load_scenario, parse_scenario

HEAD = """\
# t
apiVersion: mews/v1
kind: Scenario
metadata: {name: t}
hardware: seed-001
stack: {kubecomp: null}
"""
POD = (
    "{kind: Pod, metadata: {name: a}, spec: {terminationGracePeriodSeconds: 1, "
    "containers: [{name: main, image: mews/gpu-hold}]}}"
)
STEPS = f"""\
steps:
  - {{name: nodes, wait: {{settled: {{}}}}}}
  - {{name: pod, apply: {POD}}}
  - wait: {{pod: {{name: a, phase: Running}}}}
"""
PATH = shipped("hardware", "seed-001").parent / "t.yaml"


def run(text, **overrides):
    return Engine(RunOptions()).attempt(parse_scenario(HEAD + text, PATH, overrides), 1)


def times(run, **wanted):
    return [line.t for line in run.lines if all(getattr(line, key) == value for key, value in wanted.items())]


def begun(run, name):
    return next(line.t for line in run.lines if line.event == "begun" and line.fields.get("name") == name)


def test_a_step_is_done_so_long_after_the_step_that_it_names():
    ran = run(STEPS + "disruptions:\n  - {at: 3s, since: pod, restart: kubelet/n2}\n")
    assert ran.result.verdict == "passed", ran.result.reason
    assert times(ran, actor="kubelet/n2", event="killed") == [pytest.approx(begun(ran, "pod") + 3)]


def test_without_a_name_it_counts_from_the_first_step():
    ran = run(STEPS + "disruptions:\n  - {at: 20s, restart: kubelet/n2}\n")
    assert times(ran, actor="kubelet/n2", event="killed") == [pytest.approx(begun(ran, "nodes") + 20)]


def test_the_run_lasts_until_all_are_done_and_the_tail_is_over():
    short, long = run(STEPS), run(STEPS + "disruptions: [{at: 50s, restart: kubelet/n2}]\ntail: 30s\n")
    assert short.result.virtual_s < 50
    assert long.result.virtual_s == pytest.approx(80)


def test_a_component_dies_as_the_line_is_written():
    line = next(each.number for each in run(STEPS).lines if each.event == "bound")
    ran = run(STEPS + f"disruptions: [{{line: {line}, restart: kubelet/n1}}]\n")
    assert ran.lines[line].event == "bound"
    assert times(ran, actor="kubelet/n1", event="killed") == [ran.lines[line].t]


def test_what_does_not_come_off_fails_the_run_with_its_place():
    ran = run(STEPS + "disruptions: [{name: gone, at: 1s, delete: {kind: Pod, name: b}}]\n")
    assert ran.result.verdict == "failed"
    assert ran.result.reason.startswith("expected disruptions.0 delete (gone): delete to be accepted; seen: ")


@pytest.mark.parametrize(("judge", "verdict"), [("checks", "error"), ("laws", "passed")])
def test_what_the_world_refuses_is_an_error_only_where_checks_decide(judge, verdict):
    down = "{at: 1, kill: chassis/A}, {at: 2, fault: {chassis: A, add: {kind: http-error}}}, {at: 3, start: chassis/A}"
    ran = run(f"{STEPS}disruptions: [{down}]\njudgedBy: {judge}\n")
    assert ran.result.verdict == verdict
    assert any(line.event == "failed" and line.fields["do"] == "fault" for line in ran.lines)


def test_a_line_that_is_never_written_fails_the_run():
    ran = run(STEPS + "disruptions: [{line: 9999, restart: kubelet/n1}]\n")
    assert ran.result.reason.startswith(
        "expected disruptions.0 restart: line 9999 of the journal; seen: it ends with line"
    )


def test_a_step_that_never_begins_is_told():
    steps = STEPS.replace("phase: Running", "phase: Failed") + "  - {name: never, sleep: 1}\n"
    ran = run(steps + "disruptions: [{since: never, restart: kubelet/n1}]\nstepTimeout: 20s\n")
    assert "step 3 wait" in ran.result.reason
    assert not times(ran, actor="kubelet/n1", event="killed")


@pytest.mark.parametrize(
    ("step", "wrong"),
    [
        (
            "{since: pods, restart: kubelet/n1}",
            "disruptions.0.since: 'pods': must be one of nodes, pod (did you mean pod?)",
        ),
        ("{at: 1, line: 3, restart: kubelet/n1}", "line: replaces at and since"),
        ("{at: 1, workload: run}", "workload: belongs among steps"),
        ("{at: -1, restart: kubelet/n1}", "must be a span of time"),
        ("{at: 1}", "a step has exactly one action (none given)"),
        ("{at: 1, restart: kubelet/n9}", "must be one of kubelet/n1"),
        (
            "{at: 1, wait: {pod: {name: a}}, outputs: {x: .}}",
            "outputs: a disruption has none",
        ),
    ],
)
def test_bad_input_is_one_line_with_its_place(step, wrong):
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(f"{HEAD}{STEPS}disruptions:\n  - {step}\n", PATH)
    assert wrong in str(caught.value)
    assert "t.yaml:12: disruptions.0" in str(caught.value)


def test_lines_are_no_moments_in_wall_clock_time():
    from mews.harness.scenario.requirements import foreseen

    scenario = parse_scenario(f"{HEAD}{STEPS}disruptions: [{{line: 3, restart: kubelet/n1}}]\n", PATH)
    why = foreseen(scenario, cluster="embedded", time="wall", dialect="h3api")
    assert why == "disruptions.0.line: needs virtual time, in which each run writes the same lines"


FAILING = STEPS.replace("phase: Running", "phase: Failed") + "  - {name: after, sleep: 1}\n"


@pytest.mark.parametrize(
    ("judge", "verdict", "goes_on"), [("checks", "failed", False), ("waits", "failed", False), ("laws", "passed", True)]
)
def test_a_wait_decides_unless_the_laws_alone_do(judge, verdict, goes_on):
    ran = run(f"{FAILING}stepTimeout: 20s\njudgedBy: {judge}\n")
    assert ran.result.verdict == verdict
    assert goes_on == any(line.fields.get("name") == "after" for line in ran.lines)


def test_an_assert_decides_only_where_all_checks_do():
    steps = STEPS + "  - assert: {pod: {name: a, phase: Failed}}\n"
    assert run(steps).result.verdict == "failed"
    assert run(f"{steps}judgedBy: waits\n").result.verdict == "passed"


def test_a_wait_has_its_time_once_more_after_the_last_disruption():
    beside = "disruptions: [{at: 1, kill: kubelet/n1}, {at: 40, start: kubelet/n1}]\nstepTimeout: 20s\n"
    pinned = STEPS.replace("spec: {term", "spec: {nodeSelector: {kubernetes.io/hostname: n1}, term").replace(
        "  - {name: pod", "  - sleep: 2\n  - {name: pod"
    )
    assert run(f"{pinned}{beside}").result.verdict == "failed"
    assert run(f"{pinned}{beside}judgedBy: waits\n").result.verdict == "passed"


def test_metrics_bind_nobody_else():
    asked = f"{STEPS}metrics: {{moved_gpus: 3}}\n"
    assert run(asked).result.reason.startswith("metrics: moved_gpus")
    assert run(f"{asked}judgedBy: laws\n").result.verdict == "passed"


@pytest.mark.parametrize(("judge", "verdict"), [("checks", "failed"), ("laws", "passed")])
def test_a_bound_of_the_checks_binds_nobody_else(judge, verdict):
    demo = load_scenario(shipped("scenario", "demo"), {"bounds.scheduled_s": 1, "judgedBy": judge})
    result = Engine(RunOptions()).attempt(demo, 1).result
    assert result.verdict == verdict
    assert {violation["invariant"] for violation in result.violations} == ({8} if verdict == "failed" else set())
