"""CDI devices as a container gets them."""

from __future__ import annotations

from typing import Any

import pytest

from mews.kube.deviceplugin.port import Allocation, ContainerHook, DeviceNode, Mount
from mews.kube.dra.cdi import JOINED, UnresolvableDevicesError, injected

COMMON: dict[str, Any] = {
    "kind": "v/c",
    "containerEdits": {
        "env": ["ALL=yes", "ONE=first"],
        "hooks": [{"hookName": "createContainer", "path": "/bin/h", "args": ["h", "create-symlinks"]}],
    },
    "devices": [
        {"name": "0", "containerEdits": {"env": ["ONE=0=zero"], "deviceNodes": [{"path": "/dev/x0"}]}},
        {
            "name": "1",
            "containerEdits": {
                "mounts": [{"hostPath": "/h", "containerPath": "/c", "options": ["ro", "bind"]}],
                "deviceNodes": [{"path": "/dev/x1", "hostPath": "/dev/y1", "permissions": "r"}],
            },
        },
    ],
}


def test_edits_of_a_specification_come_once_and_before_those_of_its_devices() -> None:
    nodes = (DeviceNode("/dev/x0", "/dev/x0"), DeviceNode("/dev/x1", "/dev/y1", "r"))
    hooks = (ContainerHook("createContainer", "/bin/h", ("h", "create-symlinks")),)
    expected = Allocation({"ALL": "yes", "ONE": "0=zero"}, (Mount("/c", "/h", True),), nodes, hooks=hooks)
    assert injected(["v/c=0", "v/c=1", "v/c=0"], [COMMON]) == expected


def test_a_device_that_no_specification_has_is_named() -> None:
    with pytest.raises(UnresolvableDevicesError, match=r"unresolvable CDI devices v/c=2, v/d=0$"):
        injected(["v/c=0", "v/c=2", "v/d=0"], [COMMON])


def test_variables_that_stand_for_devices_are_joined_over_those_of_a_container() -> None:
    edits = [{"name": str(n), "containerEdits": {"env": [f"SEEN=gpu-{n}", f"LAST={n}"]}} for n in range(3)]
    spec = {"kind": "v/c", "annotations": {JOINED: "SEEN"}, "devices": edits}
    assert injected(["v/c=0", "v/c=2"], [spec]).envs == {"SEEN": "gpu-0,gpu-2", "LAST": "2"}
