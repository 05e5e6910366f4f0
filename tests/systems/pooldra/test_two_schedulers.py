"""A second scheduler beside the default one, which knows nothing of what the first has in flight.

Upstream keeps devices in flight in each scheduler's memory alone (pkg/scheduler/framework/plugins/dynamicresources:
``inFlightAllocations``), and the API server does not compare claims: two schedulers that decide at once give one device
to two claims, whatever its driver is. That is the wrong that laws 29 and 92 name. Here stands what becomes of it: a
device with binding conditions lets its driver fail the second claim before its pod is bound; a device of a node's own
slice, as after a reallocation, does not, and the second pod waits in its kubelet until the first has ended.
"""

from __future__ import annotations

from collections import Counter

import pytest

from mews.harness.report.run import Run
from tests.systems.pooldra import second_scheduler
from tests.systems.pooldra.second_scheduler import NAME
from tests.systems.pooldra.test_hand_overs import HAND_OVERS, SLOW, played

BOTH = f"""
  - apply: [POD first one, POD second one {NAME}]
  - wait: {{count: {{kind: Pod, matching: {{status: {{phase: Running}}}}, is: 2}}}}
    timeout: 10m
  - delete: {{kind: Pod, name: first}}
  - delete: {{kind: Pod, name: second}}
"""
IN_TURN = f"""
  - apply: [POD first one, POD second one {NAME}]
  - wait:
      - count: {{kind: Pod, matching: {{spec: {{nodeName: host-2}}}}, is: 2}}
      - pod: {{name: second, phase: Running}}
    timeout: 1m
  - wait: {{event: {{reason: FailedPrepareDynamicResources, object: Pod/first}}}}
    timeout: 1m
  - delete: {{kind: Pod, name: second}}
  - wait: {{pod: {{name: first, phase: Running}}}}
    timeout: 3m
  - delete: {{kind: Pod, name: first}}
"""
FOUR = """
  - apply: [POD a one, POD b one, POD c one, POD d one]
  - wait: {count: {kind: Pod, matching: {status: {phase: Running}}, is: 4}}
    timeout: 10m
  - delete: {kind: Pod, name: a}
  - delete: {kind: Pod, name: b}
  - delete: {kind: Pod, name: c}
  - delete: {kind: Pod, name: d}
"""


@pytest.fixture(autouse=True)
def second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stacks can have a second scheduler."""
    second_scheduler.install(monkeypatch)


def counted(ended: Run) -> Counter[str]:
    """How often each thing happened."""
    return Counter(line.event for line in ended.lines)


def prepared(ended: Run) -> list[tuple[str, str]]:
    """What kubelets did with claims: pod, and whether it got its devices or gave them back."""
    words = {"claim-prepared": "got", "claim-unprepared": "gave back"}
    found = [line for line in ended.lines if line.event in words]
    return [(line.fields["claim"].split("/")[1].split("-gpu-")[0], words[line.event]) for line in found]


def check_that_both_chose_one(ended: Run) -> None:
    """Which is their wrong alone; and all steps passed."""
    assert not [line.fields for line in ended.lines if (line.layer, line.event) == ("step", "failed")]
    assert {each["invariant"] for each in ended.result.violations} <= {29, 92}
    assert 29 in {each["invariant"] for each in ended.result.violations}


@pytest.mark.parametrize("hand_over", ["in-place", "move"])
@pytest.mark.parametrize("slow", [False, True], ids=["at once", "while the first is attached"])
def test_the_driver_fails_the_second_claim_before_its_pod_is_bound(hand_over: str, slow: bool) -> None:
    ended = played(hand_over, f"  {SLOW}{BOTH}" if slow else BOTH, **{NAME: {}})
    check_that_both_chose_one(ended)
    found = counted(ended)
    assert (found["claim-allocated"], found["attached"], found["detached"]) == (3, 2, 2), "one retry, no move in vain"
    assert sorted(prepared(ended)[:2]) == [("first", "got"), ("second", "got")]
    devices = [str(line.fields["devices"]) for line in ended.lines if line.event == "claim-prepared"]
    assert len(set(devices)) == 2


def test_after_a_reallocation_nobody_can_and_the_second_pod_waits_for_the_first() -> None:
    ended = played("reallocate", IN_TURN, **{NAME: {}})
    check_that_both_chose_one(ended)
    assert prepared(ended) == [
        ("second", "got"),
        ("second", "gave back"),
        ("first", "got"),
        ("first", "gave back"),
    ]
    assert counted(ended)["detached"] == counted(ended)["attached"] == 1


@pytest.mark.parametrize("hand_over", HAND_OVERS)
def test_two_that_take_the_same_pods_bind_each_once(hand_over: str) -> None:
    """Without a lease: one of them writes a claim's allocation, the other finds it there (``got allocated elsewhere``)
    and binds the pod, too, which the API server refuses; its Unreserve takes the pod from ``reservedFor``, and the
    claim controller puts it back."""
    ended = played(hand_over, FOUR, **{NAME: {"answers": "default-scheduler"}})
    assert (ended.result.verdict, ended.result.reason, ended.result.violations) == ("passed", "", ())
    found = counted(ended)
    assert (found["attached"], found["detached"], found["claim-prepared"]) == (4, 4, 4)
    events = [str(line.fields.get("message")) for line in ended.lines if line.event == "event"]
    assert any("got allocated elsewhere in the meantime" in text for text in events), "both have tried"
