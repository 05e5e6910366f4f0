"""What a scenario names by ``module:attribute``: faults, steps, checks and invariants beside its file."""

import pytest

from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loader import load_scenario, schema

MODULE = """
from dataclasses import dataclass
from typing import ClassVar
from mews.harness.scenario.extension import CheckKind, StepKind
from mews.harness.scenario.step_context import Finding
from mews.kube.system.invariant import Breach, Invariant

brewed = []

async def brew(stage, cups, timeout_s):
    brewed.append(cups)

async def look(stage, cups):
    return Finding(brewed[-1:] == [cups], f"{cups} cups", f"{brewed}")

BREW, BREWED = StepKind(int, brew), CheckKind(int, look)

@dataclass(frozen=True, slots=True)
class Slow:
    kind: ClassVar[str] = "my-slow"
    on: ClassVar[tuple[str, ...]] = ("read",)
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = ()
    grace_s: ClassVar[float] = 0.0

    def strike(self, operation, bench):
        operation.last(1.0)
        return True

class Never(Invariant):
    number, name = 100, "no step begins"

    def on_line(self, line, state):
        if line.layer == "step" and line.event == "begun":
            yield Breach(("step",), "a step begins", line)

class Unable(Never):
    def on_line(self, line, state):
        raise KeyError(line.event)

class Low(Never):
    number = 7
"""
HEAD = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: x}\nhardware: demo\n"


@pytest.fixture
def written(tmp_path):
    (tmp_path / "coffee_things.py").write_text(MODULE)

    def write(text):
        path = tmp_path / "one.yaml"
        path.write_text(HEAD + text)
        return path

    return write


def run(path):
    return Engine(RunOptions()).run(load_scenario(path)).result


def test_a_step_and_a_check_of_the_scenarios_folder_run(written):
    result = run(written("steps: [{coffee_things:BREW: 2}, {wait: {coffee_things:BREWED: 2}, timeout: 1s}]\n"))
    assert result.verdict == "passed", result.report


def test_a_check_that_does_not_hold_says_what_it_awaited(written):
    result = run(written("steps: [{coffee_things:BREW: 2}, {assert: {coffee_things:BREWED: 3}}]\n"))
    assert result.verdict == "failed"
    assert "expected 3 cups" in result.reason


def test_a_fault_of_the_scenarios_folder_strikes(written):
    text = "steps:\n  - fault: {chassis: A, add: {kind: 'coffee_things:Slow'}}\n"
    text += "  - wait: {journal: {occurs: [{layer: fault, event: fired, kind: my-slow}]}}\n"
    result = run(written(text))
    assert result.verdict == "passed", result.report


def test_an_invariant_that_the_scenario_names_is_judged(written):
    result = run(written("invariants: ['coffee_things:Never']\nsteps: [{coffee_things:BREW: 1}]\n"))
    assert result.verdict == "failed"
    assert "invariant 100 (no step begins): a step begins" in result.reason


def test_its_breach_can_be_expected(written):
    text = "invariants: ['coffee_things:Never']\nexpects: [100]\nsteps: [{coffee_things:BREW: 1}]\n"
    assert run(written(text)).verdict == "passed"


def test_an_invariant_that_fails_itself_is_not_the_breach_that_was_expected(written):
    result = run(written("invariants: ['coffee_things:Unable']\nexpects: [100]\nsteps: [{coffee_things:BREW: 1}]\n"))
    assert result.verdict == "failed"
    assert "invariant 100 was expected to be broken, and was not" in result.reason
    (violation,) = result.violations
    assert violation["hasFailed"] is True
    assert "expected" not in violation
    assert violation["what"].startswith("the law itself fails: KeyError:")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps: [{coffee_things:BREW: two}]", "steps.0.coffee_things:BREW: 'two': must be a whole number"),
        ("steps: [{coffee_things:TEA: 2}]", "coffee_things:TEA cannot be loaded: AttributeError"),
        ("steps: [{no_such_module:X: 2}]", "no_such_module:X cannot be loaded: ModuleNotFoundError"),
        ("steps: [{coffee_things:Slow: 2}]", "is a type; must be a mews.harness.scenario.extension StepKind"),
        ("steps: [{coffee_things:BREW: 2, sleep: 1s}]", "exactly one action (sleep and coffee_things:BREW given)"),
        ("steps: [{fault: {add: {kind: coffee_things:BREW}}}]", "must be a dataclass with kind, on, count, may_break"),
        ("invariants: ['coffee_things:Low']", "its number is 7; must be 100 to 999"),
        ("invariants: ['coffee_things:Slow']", "must make a mews.kube.system.invariant.Invariant"),
        ("invariants: ['nothing']", "'nothing': must be module:attribute"),
        (
            "stack: {dialect: morse}",
            "'morse': must be one of h3api, resource-pool, redfish, fm, cdim, or module:attribute",
        ),
        ("stack: {dialect: 'coffee_things:BREW'}", "is a StepKind; must be a mews.dialects.Dialect"),
        ("requires: {dialect: [morse]}", "'morse': must be one of h3api, resource-pool, redfish"),
    ],
)
def test_what_cannot_be_used_is_refused_as_the_file_is_read_in_one_line(written, text, said):
    with pytest.raises(ScenarioError) as refused:
        load_scenario(written(text + "\n"))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_schema_takes_references_and_lists_names():
    published = schema()
    definitions = published["$defs"]
    assert "^[^" in str(definitions["Step"]["patternProperties"])
    assert "slow-operation" in str(definitions["FaultAction"]["properties"]["add"])
    assert "h3api" in str(definitions["Stack"]["properties"]["dialect"])
    assert "invariants" in published["properties"]
