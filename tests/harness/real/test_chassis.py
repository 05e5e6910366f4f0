"""The chassis in a pod: what its hosts, which are real nodes, cannot show."""

import pytest

from mews.harness.clock import run_virtual
from mews.harness.clusters.real.chassis import PodHardware
from mews.harness.clusters.real.hosts import PodHosts
from mews.harness.scenario.errors import CapabilityError


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda hardware: hardware.hosts(), "needs a look into the hosts"),
        (lambda hardware: hardware.host_fault("host-1", {"kind": "xid"}), "needs a fault on host-1"),
        (lambda hardware: hardware.operate("host-1", {"detach": "000100"}), "needs an operator on host-1"),
    ],
)
def test_hosts_that_nobody_tells_who_uses_their_devices_are_closed(asked, said):
    async def known():
        return None

    hosts = PodHosts(None, "pool", reports=False)
    with pytest.raises(CapabilityError, match=f"{said}: real nodes do not report which pods use pooled devices"):
        run_virtual(lambda: asked(PodHardware(None, hosts, known)))
    assert hosts.users("host-1") is None
