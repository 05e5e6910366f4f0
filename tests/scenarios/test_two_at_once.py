"""What 08-two-at-once comes to where both pods are known before the first is served, as in virtual time."""

from mews.harness.catalogue.files import shipped
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario


def test_both_take_from_the_node_that_neither_runs_on():
    run = Engine(RunOptions()).run(load_scenario(shipped("scenario", "08-two-at-once")), 1)
    assert run.result.verdict == "passed", run.result.reason
    moves = [line.fields for line in run.lines if (line.layer, line.event) == ("chassis", "attached")]
    hosts = [(move["old_host"] or "free", move["host"]) for move in moves]
    assert sorted(host for _, host in hosts) == ["host-1", "host-2"]
    gone = [line.fields["old_host"] for line in run.lines if (line.layer, line.event) == ("chassis", "detached")]
    assert gone == ["host-3", "host-3"]
