"""What the oracle once took for a breach and was none: the fault alone, and together with another editor's move."""

import pytest

from tests.oracle.scenes import create, edit, fault, kill, scene


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
        pytest.param(
            [kill(5, "scheduler", 45), create(4.9, "a", 5, "host-1"), kill(5.1, "kubelet/host-2", 45)],
            id="a device is moved off a node whose kubelet is away, so that the node offers it still",
        ),
        pytest.param(
            [kill(5, "kubelet/host-1", 45), edit(6, "000100", None)],
            id="a device goes while the kubelet of its node is away",
        ),
        pytest.param(
            [kill(5, "device-manager/host-1", 45), edit(6, "000100", None)],
            id="a device goes while the device manager of its node is away",
        ),
    ],
)
def test_is_no_violation(actions):
    assert [str(violation) for violation in scene(actions).violations] == []
