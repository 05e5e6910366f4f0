"""Tests of the tests: with one component wrong on purpose the oracle finds it, also while faults are at work."""

import pytest

from mews.emulator.chassis.faults.editor import ConcurrentEditor
from mews.kube.emulated.kubelet.devices import choice
from mews.systems.kubecomp import rules
from mews.systems.kubecomp.mover import Mover
from mews.systems.kubecomp.node_devices import NodeDevices
from tests.oracle.scenes import create, delete, edit, fault, kill, scene

FAULTS = [
    fault(2, kind="link-down", device="000C00"),
    fault(3, kind="timeout", operation="read", hold_s=20.0),
    fault(3, kind="lying-result", operation="attach", count=3),
    fault(3, kind="partial-list", count=3),
]
"""At work all the time, and no excuse for what is planted."""


async def loses_it(self, intent, target, tries):
    return None


def keeps_all(self, devices, *, round_begun):
    self._known |= {device.gpuid: device for device in devices}
    self._here = dict(self._known)


MANY = [create(5 + n / 10, f"user-{n}", 1, f"host-{2 + n // 4}") for n in range(8)]
PLANTED = [
    pytest.param(
        (rules, "in_use", lambda *args, **kwargs: False),
        [*MANY, delete(25, "user-3"), create(35, "a", 5, "host-1")],
        2,
        60.0,
        id="a manager that moves a GPU in use",
    ),
    pytest.param(
        (Mover, "_attach", loses_it), [create(5, "a", 5, "host-1")], 5, 400.0, id="a manager that loses an attach"
    ),
    pytest.param(
        (choice, "without", lambda ids, taken: ids),
        [create(5, "a", 1, "host-1"), create(5.1, "b", 1, "host-1"), create(15, "c", 2, "host-1")],
        3,
        40.0,
        id="a kubelet that gives a device twice",
    ),
    pytest.param(
        (NodeDevices, "seen", keeps_all), [edit(5, "000100", None)], 4, 120.0, id="a plugin that announces what is gone"
    ),
]


@pytest.mark.parametrize(("wrong", "actions", "number", "tail_s"), PLANTED)
@pytest.mark.parametrize("faults", [[], FAULTS], ids=["nothing else", "faults"])
def test_what_is_wrong_is_found(monkeypatch, wrong, actions, number, tail_s, faults):
    monkeypatch.setattr(*wrong)
    outcome = scene([*faults, *actions], tail_s=tail_s)
    assert number in [violation.invariant for violation in outcome.violations]


def test_hardware_that_refuses_a_fault_which_is_right_is_a_finding(monkeypatch):
    def refuses(self, bench):
        raise ValueError("fault concurrent-editor: edit is required if no operation is given")

    edits = fault(5, kind="concurrent-editor", edit="000100", port=None)
    assert not scene([edits], 10, 5).wrongly_refused
    monkeypatch.setattr(ConcurrentEditor, "arm", refuses)
    (line,) = scene([edits], 10, 5, refused=1).wrongly_refused
    assert (line.event, line.fields["do"]) == ("failed", "fault")
    assert "edit is required" in line.fields["reason"]


def test_an_unexpected_exception_of_a_component_is_a_finding(monkeypatch):
    def stumbles(self, bench):
        raise UnboundLocalError("values")

    monkeypatch.setattr(ConcurrentEditor, "arm", stumbles)
    edits = fault(5, kind="concurrent-editor", edit="000100", port=None)
    (line,) = scene([edits], 10, 5, refused=1).wrongly_refused
    assert line.fields["reason"] == "UnboundLocalError: values"


def test_a_chassis_that_is_down_may_refuse_a_fault():
    down = [kill(3, "chassis/A", 20), fault(5, kind="lying-result")]
    assert not scene(down, 10, 30, refused=1).wrongly_refused
