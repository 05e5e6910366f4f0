"""A node whose container runtime cannot give containers the devices of a claim is refused in one line."""

import pytest

from mews.harness.clusters.real.device_injection import check_device_injection
from mews.harness.errors import RequirementError


def node(runtime):
    return {"metadata": {"name": "n1"}, "status": {"nodeInfo": {"containerRuntimeVersion": runtime}}}


def test_an_old_containerd_is_refused():
    with pytest.raises(
        RequirementError, match=r"^node n1: containerd://1\.6\.20~ds1 gives no container .* needs containerd 2\.0"
    ):
        check_device_injection([node("containerd://2.1.9"), node("containerd://1.6.20~ds1")])


@pytest.mark.parametrize("runtime", ["containerd://1.7.0", "containerd://2.1.9", "cri-o://1.34.0", ""])
def test_one_that_may_have_it_is_not(runtime):
    check_device_injection([node(runtime), {"metadata": {"name": "n2"}}])
