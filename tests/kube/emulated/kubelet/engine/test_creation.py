"""What the engine is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from mews.kube.deviceplugin.port import DeviceNode, Mount
from mews.kube.emulated.kubelet.engine.client import LocalImage
from mews.kube.emulated.kubelet.engine.creation import ContainerAdditions, check_supported, creation_of
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.images import Image
from mews.kube.emulated.kubelet.runtime import SEARCH_PATH, Launch

IMAGE = LocalImage("sha256:1", env={"PATH": "/opt/app/bin:/bin"})


def launch(spec: dict[str, Any] | None = None, *, env: dict[str, str] | None = None, **parts: Any) -> Launch:
    container = {"name": "main", "image": "team/app:1", **(spec or {})}
    pod = {
        "metadata": {"name": "a", "namespace": "default", "uid": "u"},
        "spec": {"containers": [container], **parts},
    }
    return Launch(pod, "main", 2, Image("team/app", container="team/app:1"), (), (), env or {})


def asked(given: Launch, added: ContainerAdditions | None = None, image: LocalImage = IMAGE) -> dict[str, Any]:
    return creation_of(given, image, added or ContainerAdditions(), {"owner": "x"})


def test_limits_and_requests_are_the_kernels_as_a_kubelet_sets_them() -> None:
    resources = {"limits": {"cpu": "1500m", "memory": "64Mi"}, "requests": {"cpu": "250m"}}
    host = asked(launch({"resources": resources}))["host_config"]
    assert (host["CpuPeriod"], host["CpuQuota"], host["CpuShares"]) == (100_000, 150_000, 256)
    assert (host["Memory"], host["MemorySwap"]) == (64 * 2**20, 64 * 2**20), "no swap"
    plain = asked(launch())["host_config"]
    assert plain["CpuShares"] == 2
    assert not {"CpuQuota", "Memory"} & set(plain)


def test_it_has_the_machines_network_and_its_pods_name() -> None:
    made = asked(launch())
    assert (made["host_config"]["NetworkMode"], made["hostname"]) == ("host", "a")
    assert asked(launch(hostNetwork=True))["hostname"] is None
    assert made["labels"]["owner"] == "x"
    assert made["labels"]["io.kubernetes.pod.uid"] == "u"
    assert made["host_config"]["RestartPolicy"] == {"Name": "no"}, "the kubelet restarts"


def test_folders_that_are_added_to_paths_stand_before_the_images_own() -> None:
    env = {"PATH": f"/given:{SEARCH_PATH}", "LD_LIBRARY_PATH": "/given"}
    image = LocalImage("sha256:1", env={"PATH": "/opt/app/bin:/bin", "LD_LIBRARY_PATH": "/opt/app/lib"})
    variables = asked(launch(env=env), image=image)["environment"]
    assert variables == ["PATH=/given:/opt/app/bin:/bin", "LD_LIBRARY_PATH=/given:/opt/app/lib"]


def test_a_pods_own_path_is_left_as_it_is_where_the_image_has_none() -> None:
    assert asked(launch(env={"LD_LIBRARY_PATH": "/own"}))["environment"] == ["LD_LIBRARY_PATH=/own"]


def test_of_two_mounts_in_one_place_the_last_counts_and_outer_ones_come_first() -> None:
    mounts = (Mount("/a/b", "/1"), Mount("/a", "/2"), Mount("/a/b/", "/3", read_only=True))
    found = asked(launch(), ContainerAdditions(mounts))["host_config"]["Mounts"]
    assert [(each["Source"], each["Target"], each["ReadOnly"]) for each in found] == [
        ("/2", "/a", False),
        ("/3", "/a/b/", True),
    ]
    device = asked(launch(), ContainerAdditions(devices=(DeviceNode("/dev/kvm", "/dev/kvm", "r"),)))["host_config"]
    assert device["Devices"] == [{"PathOnHost": "/dev/kvm", "PathInContainer": "/dev/kvm", "CgroupPermissions": "r"}]


@pytest.mark.parametrize(
    ("security", "image_user", "user"),
    [
        ({}, "app", None),
        ({"runAsUser": 7}, "app", "7"),
        ({"runAsUser": 7, "runAsGroup": 8}, "", "7:8"),
        ({"runAsGroup": 8}, "app:users", "app:8"),
        ({"runAsNonRoot": True}, "5", None),
    ],
)
def test_it_runs_as_whom_the_pod_says(security: dict[str, Any], image_user: str, user: str | None) -> None:
    assert asked(launch({"securityContext": security}), image=LocalImage("x", user=image_user))["user"] == user
    of_pod = asked(launch(securityContext=security), image=LocalImage("x", user=image_user))
    assert of_pod["user"] == user


@pytest.mark.parametrize(
    ("image_user", "text"), [("", "image will run as root"), ("0:5", "will run as root"), ("app", "non-numeric user")]
)
def test_what_must_not_be_root_is_not(image_user: str, text: str) -> None:
    given = launch({"securityContext": {"runAsNonRoot": True}})
    with pytest.raises(StartError, match=text) as refused:
        asked(given, image=LocalImage("x", user=image_user))
    assert refused.value.reason == "CreateContainerConfigError"


def test_rights_are_the_pods() -> None:
    security = {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
    }
    host = asked(launch({"securityContext": security}, securityContext={"fsGroup": 5, "supplementalGroups": [4]}))[
        "host_config"
    ]
    assert (host["ReadonlyRootfs"], host["SecurityOpt"]) == (True, ["no-new-privileges"])
    assert (host["CapDrop"], host["CapAdd"], host["GroupAdd"]) == (["ALL"], ["NET_ADMIN"], ["4", "5"])


def test_what_would_be_ignored_is_refused() -> None:
    for given in (launch(shareProcessNamespace=True), launch({"volumeDevices": [{"name": "x", "devicePath": "/x"}]})):
        with pytest.raises(StartError, match="containers of emulated nodes have none"):
            check_supported(given.pod, given.pod["spec"]["containers"][0])
    check_supported(launch().pod, launch().pod["spec"]["containers"][0])
