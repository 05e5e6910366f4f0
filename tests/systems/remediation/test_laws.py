"""The laws of the remediation: streams that they must report, and streams that they must not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from mews.systems.remediation.config import RemediationConfig
from mews.systems.remediation.laws import laws
from tests.harness.invariants.law_runs import Said, breaches, numbers

NODES = ("n1", "n2", "n3")


def found(number: int, said: Iterable[Said], **config: Any) -> list[tuple[int | None, int | None]]:
    """What that law says of the stream."""
    law = next(law for law in laws(RemediationConfig(nodes=NODES, **config)) if law.number == number)
    return numbers(breaches(law, said))


def node(t: float, event: str, name: str = "n1", **fields: Any) -> Said:
    return (t, f"remediation/{name}", event, fields)


def evicting(t: float, uid: str = "u", gpu: str = "G0") -> Said:
    return node(t, "evicting", pod=f"default/{uid}", uid=uid, gpu=gpu, number=1)


def begun(t: float, name: str = "n1") -> Said:
    return node(t, "begun", name, incidents=["G0/1"], cordon="ours")


def test_no_more_nodes_than_the_share_are_worked_on() -> None:
    one_by_one = [begun(1.0), node(2.0, "over", cordon="ours"), begun(3.0, "n2")]
    assert found(82, one_by_one) == []
    assert len(found(82, [begun(1.0), begun(2.0, "n2")])) == 1
    assert found(82, [begun(1.0), begun(2.0, "n2")], share=0.67) == []


def test_pods_are_evicted_from_marked_nodes_only() -> None:
    assert found(84, [begun(1.0), evicting(2.0)]) == []
    assert len(found(84, [evicting(1.0)])) == 1
    assert len(found(84, [begun(1.0), node(2.0, "over", cordon="ours"), evicting(3.0)])) == 1


def test_nobody_is_evicted_for_a_gpu_that_is_not_broken_or_that_the_pod_does_not_hold() -> None:
    assert len(found(80, [evicting(1.0)], drain="node")) == 1
    assert len(found(80, [evicting(1.0)])) == 2


@pytest.mark.parametrize(("end", "count"), [(20.0, 0), (60.0, 1)])
def test_a_node_is_given_back_within_its_bound(end: float, count: int) -> None:
    stream = [
        node(1.0, "broken", gpu="G0", number=1, cause="XID 48"),
        begun(1.0),
        node(5.0, "mended", gpu="G0", number=1),
        node(end, "over", cordon="ours"),
    ]
    assert len(found(83, stream)) == count
