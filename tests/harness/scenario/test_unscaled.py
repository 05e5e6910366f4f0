"""Times that no --speed divides: a scenario that depends on one is skipped at other speeds, and says which it is."""

from pathlib import Path

import pytest

from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loader import load_scenario, parse_scenario
from mews.harness.scenario.requirements import foreseen
from mews.harness.scenario.unscaled import seconds_of

FABRIC = Path(__file__).parents[3] / "scenarios" / "fabric"
TEXT = """
apiVersion: mews/v1
kind: Scenario
metadata: {{name: one}}
hardware: fabric
requires: {{unscaled: {keys}}}
stack: {{kubecomp: null, kubernetes: "1.37", pooldra: {{keepS: 7}}, defaultScheduler: {options}}}
steps: [{{sleep: 1s}}]
"""


def read(keys, options="{}"):
    return parse_scenario(TEXT.format(keys=keys, options=options), Path("one.yaml"))


def reason(scenario, speed):
    return foreseen(scenario, cluster="embedded", time="wall", dialect="h3api", speed=speed)


def test_the_reason_names_each_time_and_the_speed_of_the_run():
    both = read("[pooldra.keepS, defaultScheduler.deviceBindingTimeoutS]")
    assert reason(both, 5.0) == (
        "needs --speed 1: no speed divides stack.pooldra.keepS (7 s) and stack.defaultScheduler.deviceBindingTimeoutS; "
        "this run has 5"
    )
    assert "deviceBindingTimeoutS (20 s)" in str(
        reason(read("[defaultScheduler.deviceBindingTimeoutS]", "{deviceBindingTimeoutS: 20}"), 0.5)
    )


def test_at_speed_1_and_without_such_a_time_it_runs():
    assert reason(read("[pooldra.keepS]"), 1.0) is None
    assert reason(read("[]"), 5.0) is None


def test_what_is_no_time_of_the_stack_is_refused_with_those_that_are():
    for wrong in ("pooldra.kepS", "pooldra.handOver", "pooldra.tries", "dra.pollS", "keepS"):
        with pytest.raises(ScenarioError, match=rf"requires\.unscaled\.0: '?{wrong}'?: must be [^\n]*$"):
            read(f"[{wrong}]")
    assert "pooldra.keepS" in seconds_of(read("[]").stack)


def test_scenarios_that_outrun_a_real_time_at_a_higher_speed_say_so():
    named = {path.name[:2]: load_scenario(path).requires.unscaled for path in sorted(FABRIC.glob("*.yaml"))}
    assert {name: keys for name, keys in named.items() if keys} == {
        "07": ("defaultScheduler.deviceBindingTimeoutS",),
        "16": ("pooldra.keepS",),
        "18": ("pooldra.poolPollS",),
    }
