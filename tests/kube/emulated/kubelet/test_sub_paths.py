"""Sub-paths of volume mounts, as the kubelet judges them before it makes a container."""

from __future__ import annotations

import pytest

from mews.kube.emulated.kubelet.environment import check_sub_paths
from mews.kube.emulated.kubelet.errors import StartError

ENV = {"NAME": "p", "UP": "..", "ROOT": "/tmp", "EMPTY": ""}


@pytest.mark.parametrize(
    ("mount", "text"),
    [
        ({"subPathExpr": "$(ROOT)/x"}, "error SubPath `/tmp/x` must not be an absolute path"),
        ({"subPathExpr": "$(UP)"}, "unable to provision SubPath `..`: must not contain '..'"),
        ({"subPathExpr": "$(NAME)/$(UP)/b"}, "unable to provision SubPath `p/../b`: must not contain '..'"),
        ({"subPathExpr": "$(NONE)/$(EMPTY)"}, "missing value for EMPTY, NONE"),
        ({"subPath": "a/../b"}, "unable to provision SubPath `a/../b`: must not contain '..'"),
    ],
)
def test_a_sub_path_that_leads_out_of_its_volume_keeps_the_container_from_starting(mount, text):
    with pytest.raises(StartError) as raised:
        check_sub_paths({"volumeMounts": [{"name": "v", "mountPath": "/v", **mount}]}, ENV)
    assert (raised.value.reason, raised.value.message) == ("CreateContainerConfigError", text)


@pytest.mark.parametrize("mount", [{}, {"subPath": "a..b/c"}, {"subPathExpr": "$(NAME)/$$(UP)"}])
def test_other_sub_paths_are_taken(mount):
    check_sub_paths({"volumeMounts": [{"name": "v", "mountPath": "/v", **mount}]}, ENV)
