"""What the oracle once took for a breach and was none: the fault alone, and together with another editor's move."""

import pytest

from mews.harness.scenario.loader import parse_scenario, shipped
from tests.oracle.actions import Action
from tests.oracle.play import play


def scenario(length_s=60.0):
    text = (
        "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: known}\nhardware: demo\n"
        f"steps: [{{sleep: {length_s:g}}}]\n"
    )
    return parse_scenario(text, shipped("hardware", "demo").parent / "known.yaml")


def fault(after_s, **spec):
    return Action(0, after_s, "fault", "A", spec)


def edit(after_s, device, port):
    return Action(0, after_s, "edit", "A", {"device": device, "port": port})


def create(after_s, name, gpus, node=""):
    return Action(0, after_s, "create", name, {"gpus": gpus, "node": node})


def kill(after_s, component, down_s):
    return Action(0, after_s, "kill", component, {"down_s": down_s})


@pytest.mark.parametrize(
    "actions",
    [
        pytest.param(
            [fault(5, kind="events-out-of-order", delay_s=60.0, count=3), create(10, "a", 6)],
            id="an attach is heard of late by the hosts, a pod has the device by then",
        ),
        pytest.param(
            [fault(5, kind="timeout", operation="read", hold_s=600.0), edit(6, "000100", None)],
            id="a device goes while a reading gets no answer",
        ),
        pytest.param(
            [fault(5, kind="slow-operation", operation="read", extra_s=50.0, count=3), edit(6, "000100", None)],
            id="a device goes while readings are slow",
        ),
        pytest.param(
            [create(5, "a", 4, "host-1"), edit(15, "000100", "2"), create(25, "b", 5, "host-2")],
            id="an editor takes a device from a pod and gives it to where another pod wants one",
        ),
    ],
)
def test_is_no_violation(actions):
    outcome = play(scenario(), 1, lambda cluster: actions, tail_s=40.0)
    assert outcome.refused == 0
    assert [str(violation) for violation in outcome.violations] == []
