"""The laws of the remediation: streams that they must report, and streams that they must not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from mews.kube.system.invariant import ObservedHolding
from mews.kube.system.journal import Line
from mews.systems.remediation.config import RemediationConfig
from mews.systems.remediation.laws import laws
from tests.harness.invariants.law_runs import Said, breaches, numbers

NODES = ("n1", "n2", "n3")


def found(number: int, said: Iterable[Said], **config: Any) -> list[tuple[int | None, int | None]]:
    """What that law says of the stream."""
    law = next(law for law in laws(RemediationConfig(nodes=NODES, **config)) if law.number == number)
    return numbers(breaches(law, said, uncordon_s=30.0))


class Holds:
    """A run of which nothing is known but that a pod holds a GPU."""

    def __init__(self, uid: str, *devices: str) -> None:
        self._held = ObservedHolding(f"default/{uid}", uid, "main", "falcon.com/gpu", "n1", devices, None)

    def live_holdings(self) -> Sequence[ObservedHolding]:
        return (self._held,)


def beside(number: int, state: Any, said: Iterable[tuple[str, str, str, dict[str, Any]]]) -> list[str]:
    """What that law says of these lines (layer, actor, event, fields) while the state is this."""
    law = next(law for law in laws(RemediationConfig(nodes=NODES)) if law.number == number)
    lines = [Line(n, float(n), layer, actor, event, fields) for n, (layer, actor, event, fields) in enumerate(said)]
    return [breach.what for line in lines for breach in law.on_line(line, state)]


TABLE = ("host", "host/n1", "table", {"devices": {"0-000100": {"gpuid": "0-000100", "uuid": "G0"}}})
XID = ("host", "host/n1", "xid", {"uuid": "G0", "xid": 48})
EVICTING = ("api", "remediation/n1", "evicting", {"pod": "default/u", "uid": "u", "gpu": "G0", "number": 1})
BROKEN = ("api", "remediation/n1", "broken", {"gpu": "G0", "number": 1, "cause": "XID 48"})
UNBOUND = ("host", "host/n1", "driver-unbound", {"uuid": "G0"})
LOST = ("host", "host/n1", "lost", {"uuid": "G0"})


def test_a_pod_is_evicted_from_the_gpu_that_it_holds_by_whatever_name() -> None:
    assert beside(80, Holds("u", "0-000100"), [TABLE, XID, EVICTING]) == []
    assert beside(80, Holds("u", "G1"), [TABLE, XID, EVICTING]) == ["default/u is sent away for G0, and holds G1"]
    mended = ("api", "remediation/n1", "mended", {"gpu": "G0", "number": 1})
    assert beside(80, Holds("u", "G0"), [XID, mended, EVICTING]) == [
        "default/u is sent away for G0, which is not broken"
    ]


def test_no_gpu_is_reset_that_a_pod_holds_but_a_lost_one_goes_as_it_goes() -> None:
    assert beside(81, Holds("u", "0-000100"), [TABLE, BROKEN, UNBOUND]) == ["G0 is reset, and default/u hold it"]
    assert beside(81, Holds("u", "G1"), [TABLE, BROKEN, UNBOUND]) == []
    assert beside(81, Holds("u", "0-000100"), [TABLE, BROKEN, LOST, UNBOUND]) == []
    assert beside(81, Holds("u", "0-000100"), [TABLE, UNBOUND]) == []


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
        begun(end - 1, "n2"),
        node(end, "over", cordon="ours"),
    ]
    assert len(found(83, stream)) == count
