"""Schedulers' sentences on clusters that have more nodes than hosts."""

import pytest

from mews.harness.clusters.real.sentences import without_strangers

CONTROL_PLANE = "1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }"


@pytest.mark.parametrize(
    ("hosts", "said", "plain"),
    [
        (
            3,
            f"0/4 nodes are available: {CONTROL_PLANE}, 3 Insufficient cpu.",
            "0/3 nodes are available: 3 Insufficient cpu.",
        ),
        (
            2,
            f"0/4 nodes are available: {CONTROL_PLANE}, 1 node(s) were unschedulable, 2 Insufficient cpu. m",
            "0/2 nodes are available: 2 Insufficient cpu. m",
        ),
        (3, "0/3 nodes are available: 3 Insufficient cpu.", "0/3 nodes are available: 3 Insufficient cpu."),
        (3, "Pod a requires 5 GPU but only 4 GPU in the pool.", "Pod a requires 5 GPU but only 4 GPU in the pool."),
        (
            2,
            "0/3 nodes are available: 2 node(s) were unschedulable, 1 Insufficient cpu.",
            "0/2 nodes are available: 2 node(s) were unschedulable, 1 Insufficient cpu.",
        ),
    ],
)
def test_nodes_that_are_no_hosts_are_left_out_and_nothing_else(hosts, said, plain):
    assert without_strangers(said, hosts) == plain
