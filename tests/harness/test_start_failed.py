"""A cluster that does not come up leaves its journal, and what the laws say of it."""

from mews.harness import clusters
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario import performing
from mews.harness.scenario.loader import load_scenario
from mews.systems.kubecomp.device_manager import ChassisDeviceManager
from tests.harness.invariants.law_runs import ROOT


def run():
    return Engine(RunOptions()).attempt(load_scenario(ROOT / "02-gpus-at-hand.yaml"), 1)


def lines_of(run, layer):
    return [line for line in run.lines if line.layer == layer]


def test_a_component_that_crashes_at_the_start_is_in_the_journal_before_the_failed_start(monkeypatch):
    async def crash(self):
        raise RuntimeError("no devices for you")

    monkeypatch.setattr(ChassisDeviceManager, "run", crash)
    seen = run()
    assert seen.result.verdict == "failed"
    crashed = [line for line in lines_of(seen, "component") if line.event == "crashed"]
    assert {line.actor for line in crashed} == {f"device-manager/host-{number}" for number in (1, 2, 3)}
    [failed] = lines_of(seen, "step")
    assert (failed.event, failed.fields["step"], failed.fields["do"]) == ("failed", 0, "start")
    assert failed.fields["reason"].startswith("3 nodes did not become ready")
    assert failed.number > max(line.number for line in crashed)


def test_the_laws_judge_a_start_that_failed(monkeypatch):
    monkeypatch.setattr(ChassisDeviceManager, "_attached", lambda self: [])
    seen = run()
    assert seen.result.verdict == "failed"
    found = [each for each in seen.result.violations if each["invariant"] == 39]
    assert [each["first"]["event"] for each in found] == ["devices"] * 3
    assert found[0]["what"].endswith("0-000900, 0-000A00, 0-000B00, 0-000C00")


def test_a_step_that_breaks_is_called_failed_in_the_journal(monkeypatch):
    async def broken(stage, step):
        raise KeyError("nic-0")

    monkeypatch.setattr(performing, "do", broken)
    seen = run()
    assert seen.result.verdict == "error"
    step = next(line for line in lines_of(seen, "step") if line.event == "failed")
    assert (step.fields["step"], step.fields["reason"]) == (1, "KeyError: 'nic-0'")


def test_a_cluster_that_cannot_be_made_leaves_the_line_that_says_so(monkeypatch):
    async def broken(*given, **more):
        raise KeyError("nic-0")

    monkeypatch.setattr(clusters, "open_cluster", broken)
    seen = run()
    assert (seen.result.verdict, seen.result.reason) == ("error", "KeyError: 'nic-0'")
    [line] = seen.lines
    assert (line.layer, line.event, line.fields["step"], line.fields["do"]) == ("step", "failed", 0, "start")
    assert seen.result.failure["line"]["line"] == 0
