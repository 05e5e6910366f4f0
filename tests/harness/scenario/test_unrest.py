"""A run whose end must be quiet fails where something goes round, and names it."""

from __future__ import annotations

import pytest

from mews.harness.catalogue.files import shipped
from mews.harness.engine import Engine
from mews.harness.journal import Line
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import parse_scenario
from mews.harness.scenario.unrest import MOST_LINES, unrest

PATH = shipped("hardware", "seed-001").parent / "t.yaml"
SETS = """\
# t
apiVersion: mews/v1
kind: Scenario
metadata: {name: t}
hardware: three-nodes
stack: {kubecomp: null}
images: {example.com/served: idle}
steps:
  - apply:
      apiVersion: apps/v1
      kind: ReplicaSet
      metadata: {name: workers}
      spec:
        replicas: 1
        selector: {matchLabels: {app: workers}}
        template:
          metadata: {labels: {app: workers}}
          spec:
            nodeName: host-1
            containers: [{name: main, image: example.com/served, resources: {requests: {cpu: "CPU"}}}]
tail: 20s
"""


def run(text: str):
    return Engine(RunOptions()).attempt(parse_scenario(text, PATH, {}), 1).result


def test_a_set_whose_pods_are_refused_goes_round_as_fast_as_controllers_write():
    ended = run(SETS.replace("CPU", "1000") + "quiet: 10s\n")
    assert ended.verdict == "failed"
    assert "the run to come to rest" in ended.reason
    assert "200 times api created in 10 s: pod/default/workers-" in ended.reason


@pytest.mark.parametrize("text", [SETS.replace("CPU", "1") + "quiet: 10s\n", SETS.replace("CPU", "1000")])
def test_what_rests_passes_and_so_does_what_is_not_judged(text: str):
    assert run(text).verdict == "passed"


def lines(count: int, **fields: str) -> list[Line]:
    return [
        Line(n, float(n), "api", f"pod/default/p-{n}", "phase", {"phase": "Failed", **fields}) for n in range(count)
    ]


def test_lines_of_one_sort_are_counted_whatever_their_objects_are_called():
    found = unrest(lines(MOST_LINES + 1), 0.0)
    assert found is not None
    assert (found.count, found.first.actor) == (MOST_LINES + 1, "pod/default/p-0")
    assert unrest(lines(MOST_LINES), 0.0) is None


def test_lines_before_the_time_steps_and_lines_that_say_else_do_not_count():
    assert unrest(lines(2 * MOST_LINES), float(MOST_LINES)) is None
    assert unrest([*lines(MOST_LINES), *lines(MOST_LINES, phase="Running")], 0.0) is None
    steps = [Line(n, 1.0, "step", "t", "begun") for n in range(2 * MOST_LINES)]
    assert unrest(steps, 0.0) is None
