"""The chassis in a pod: what its hosts, which are real nodes, cannot show."""

import pytest

from mews.harness.clock import run_virtual
from mews.harness.clusters.real.chassis import PodHardware
from mews.harness.scenario.errors import Lacking


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda hardware: hardware.hosts(), "needs a look into the hosts"),
        (lambda hardware: hardware.host_fault("host-1", {"kind": "xid"}), "needs a fault on host-1"),
        (lambda hardware: hardware.operate("host-1", {"detach": "000100"}), "needs an operator on host-1"),
    ],
)
def test_what_only_emulated_hosts_have_cannot_be_had_of_real_nodes(asked, said):
    with pytest.raises(Lacking, match=f"{said}: real nodes have no emulated host"):
        run_virtual(lambda: asked(PodHardware(None)))
