"""Which devices a pool's table offers for a move."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mews.systems.kubecomp.config import ChassisConfig, KubeCompConfig, NodeConfig, Timing, Topology
from mews.systems.kubecomp.pool_table import PoolTable
from mews.systems.kubecomp.reader import ChassisReader
from mews.systems.kubecomp.records import NodeReport, PoolDevice, PoolState
from mews.systems.kubecomp.view import PodShortOfDevices

POD = PodShortOfDevices("default/p", "u", "n3", 1, (0, "", ""))
PORTS = {"n1": "1", "n2": "2", "n3": "3"}


def table(at: str | None, reports: dict[str, NodeReport]) -> PoolTable:
    """The table of a pool in which a reading shows GPU 0-a on that node's port, None: on no port."""
    config = KubeCompConfig(
        chassis=(ChassisConfig("A", 0, "p"),),
        nodes=tuple(NodeConfig(name, {"A": port}, "p") for name, port in PORTS.items()),
    )
    reader = ChassisReader({"A": cast("Any", None)}, config, logging.getLogger(__name__))
    port = PORTS[at] if at else None
    reader.seed(PoolState((PoolDevice("0-a", "A", "a", "GPU-a", port, at),)))
    view = SimpleNamespace(report=lambda node: reports.get(node, NodeReport()), claims=lambda node: ())
    return PoolTable("p", Topology(config), reader, cast("Any", view))


@pytest.mark.parametrize("at", ["n2", None])
def test_what_another_node_announces_is_not_taken_from_where_the_table_shows_it(at: str | None) -> None:
    def offered(**announced: tuple[str, ...]) -> list[str]:
        reports = {node: NodeReport(announced=announced.get(node, ())) for node in PORTS}
        found = table(at, reports).candidates(POD, excluded=(), now_s=0.0, timing=Timing())
        return [gpu.gpuid for gpu in found]

    assert offered() == ["0-a"]
    assert offered(n1=("0-a",)) == []
    assert offered(n2=("0-a",)) == (["0-a"] if at else [])
    assert offered(n1=("0-a",), n2=("0-a",)) == (["0-a"] if at else [])


def test_what_the_host_of_another_node_shows_is_neither_taken_nor_missing_there() -> None:
    shown = table("n2", {"n1": NodeReport(strays=("0-a",))})
    assert shown.candidates(POD, excluded=(), now_s=0.0, timing=Timing()) == ()
    assert [shown.attached(node) for node in PORTS] == [1, 1, 0]


def test_a_device_that_its_node_has_called_unhealthy_counts_no_more_though_the_table_shows_it_still() -> None:
    reports = {"n1": NodeReport(announced=("0-a",))}
    shown = table("n1", reports)
    for report, attached in (
        (NodeReport(announced=("0-a",)), 1),
        (NodeReport(unhealthy=("0-a",)), 0),
        (NodeReport(), 0),
        (NodeReport(announced=("0-a",)), 1),
        (NodeReport(), 1),
    ):
        reports["n1"] = report
        assert shown.attached("n1") == attached
    assert shown.attached("n2") == 0
