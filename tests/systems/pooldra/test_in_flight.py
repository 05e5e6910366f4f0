"""Devices of a pod that is deleted while it waits in PreBind (upstream dynamicresources.go, PreBind and Unreserve).

Up to 1.36 an allocation is in flight until it is written; from 1.37 on until PreBind has succeeded or failed, even if
pod and claim are deleted. PreBind looks every five seconds, and what ends then is no event that wakes other pods.
"""

from __future__ import annotations

import pytest

from mews.harness.report.run import Run
from tests.systems.pooldra.test_hand_overs import BEGUN, SLOW, played

GONE = 'could not find ResourceClaim "default/first-gpu-'
STEPS = f"""
  {SLOW}
  - apply: [POD first three]
  {BEGUN}
  - delete: {{kind: Pod, name: first}}
  - wait: {{count: {{kind: ResourceClaim, is: 0}}}}
    timeout: 1m
  - apply: [POD second three]
  - wait: {{pod: {{name: second, phase: Running}}}}
    timeout: 10m
  - delete: {{kind: Pod, name: second}}
"""


def times(ended: Run, event: str, **fields: str) -> list[float]:
    """When it happened, of lines whose fields begin so."""
    return [
        line.t
        for line in ended.lines
        if line.event == event and all(str(line.fields.get(key, "")).startswith(text) for key, text in fields.items())
    ]


@pytest.mark.parametrize(("release", "waits"), [("1.36", False), ("1.37", True)])
def test_they_are_taken_until_the_scheduler_looks_again(release: str, *, waits: bool) -> None:
    ended = played("in-place", STEPS, kubernetes=release)
    assert ended.result.verdict == "passed"
    (noticed,) = times(ended, "event", reason="FailedScheduling", object="pod/default/first")
    message = [line.fields["message"] for line in ended.lines if line.t == noticed and line.event == "event"]
    assert any(text.startswith(f'running PreBind plugin "DynamicResources": {GONE}') for text in message)
    (allocated,) = times(ended, "claim-allocated", claim="default/second")
    assert (allocated > noticed) is waits
    refused = times(ended, "event", reason="FailedScheduling", object="pod/default/second")
    assert bool(refused) is waits
