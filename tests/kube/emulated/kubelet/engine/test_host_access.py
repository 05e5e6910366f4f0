"""Containers of strangers get no access to this machine unless the user allows it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mews.kube.emulated.kubelet.engine.client import _unfit
from mews.kube.emulated.kubelet.engine.creation import check_supported
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.volumes.host_paths import EngineHostPaths
from mews.kube.emulated.kubelet.volumes.pod_volumes import PodVolumes
from tests.kube.emulated.kubelet.engine.test_creation import asked, launch

ACCESS = [
    ({}, {"hostPID": True}, "hostPID: true"),
    ({}, {"hostIPC": True}, "hostIPC: true"),
    ({}, {"hostNetwork": True}, "hostNetwork: true"),
    ({"securityContext": {"privileged": True}}, {}, "privileged: true"),
    ({"securityContext": {"capabilities": {"add": ["KILL", "SYS_ADMIN"]}}}, {}, "capabilities.add: SYS_ADMIN"),
    ({"securityContext": {"capabilities": {"add": ["ALL"]}}}, {}, "capabilities.add: ALL"),
    ({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, {}, "seccompProfile: Unconfined"),
    ({}, {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}, "appArmorProfile: Unconfined"),
    ({"securityContext": {"procMount": "Unmasked"}}, {}, "procMount: Unmasked"),
]


def check(container: dict[str, Any], pod: dict[str, Any], *, allowed: bool = False) -> None:
    given = launch(container, **pod)
    check_supported(given.pod, given.pod["spec"]["containers"][0], host_allowed=allowed)


@pytest.mark.parametrize(("container", "pod", "named"), ACCESS)
def test_what_asks_for_this_machine_is_refused_with_the_switch_that_allows_it(
    container: dict[str, Any], pod: dict[str, Any], named: str
) -> None:
    with pytest.raises(StartError) as refused:
        check(container, pod)
    text = str(refused.value)
    assert named in text and "--allow-host-access" in text and "\n" not in text
    check(container, pod, allowed=True)


@pytest.mark.parametrize(
    ("container", "pod"),
    [
        ({}, {}),
        ({"securityContext": {"privileged": False, "capabilities": {"add": ["CAP_NET_RAW", "chown"]}}}, {}),
        ({"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, "procMount": "Default"}}, {}),
        # A container's own profile counts, and not its pod's
        (
            {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
            {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
        ),
    ],
)
def test_what_every_container_has_is_asked_for_freely(container: dict[str, Any], pod: dict[str, Any]) -> None:
    check(container, pod)


@pytest.mark.parametrize(
    ("context", "word"),
    [
        ({"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]}, "sysctls"),
        ({"seLinuxOptions": {"level": "s0"}}, "seLinuxOptions"),
        ({"seccompProfile": {"type": "Localhost", "localhostProfile": "a.json"}}, "seccompProfile: Localhost"),
    ],
)
def test_what_containers_would_not_get_is_refused_even_where_access_is_allowed(
    context: dict[str, Any], word: str
) -> None:
    with pytest.raises(StartError, match=word):
        check({}, {"securityContext": context}, allowed=True)


def test_the_engine_is_asked_for_no_more_than_its_defaults() -> None:
    host = asked(launch())["host_config"]
    assert (host["Privileged"], host["PidMode"], host["IpcMode"]) == (False, "", "private")
    assert (host["CapAdd"], host["SecurityOpt"]) == ([], [])
    assert "UsernsMode" not in host, "the daemon's own mapping of users is never overridden"


def test_an_unconfined_profile_that_is_allowed_reaches_the_engine() -> None:
    made = asked(launch({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}))
    assert made["host_config"]["SecurityOpt"] == ["seccomp=unconfined"]


def pod_with(volume: dict[str, Any], **mount: Any) -> dict[str, Any]:
    mounts = [{"name": "v", "mountPath": "/v", **mount}]
    return {
        "metadata": {"name": "a", "namespace": "default", "uid": "u"},
        "spec": {
            "containers": [{"name": "main", "image": "x", "volumeMounts": mounts}],
            "volumes": [{"name": "v", **volume}],
        },
    }


class Node:
    """A node with one folder; other paths are this machine's."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "node"
        (self.root / "data").mkdir(parents=True)
        self.machine = folder / "machine"
        self.machine.mkdir()

    def place(self, path: str) -> Path:
        below = self.root / path.lstrip("/")
        return below if below.exists() else Path(path)

    def mounts(self, pod: dict[str, Any], *, allowed: bool = False) -> Any:
        def no_api() -> Any:
            raise AssertionError("nothing is read of the API")

        volumes = PodVolumes(no_api, self.root.parent / "pods", EngineHostPaths(self.place, allowed=allowed))
        return asyncio.run(volumes.mounts(pod, "main"))


def test_a_host_path_is_the_nodes_and_this_machines_only_where_that_is_allowed(tmp_path: Path) -> None:
    node = Node(tmp_path)
    (own,) = node.mounts(pod_with({"hostPath": {"path": "/data"}}))
    assert own.host_path == str(node.root / "data")
    elsewhere = pod_with({"hostPath": {"path": str(node.machine), "type": "DirectoryOrCreate"}})
    with pytest.raises(StartError, match=r"hostPath: .*--allow-host-access"):
        node.mounts(elsewhere)
    (allowed,) = node.mounts(elsewhere, allowed=True)
    assert allowed.host_path == str(node.machine)


def test_nothing_is_made_on_this_machine_for_a_host_path_that_is_refused(tmp_path: Path) -> None:
    node = Node(tmp_path)
    with pytest.raises(StartError):
        node.mounts(pod_with({"hostPath": {"path": str(node.machine / "new"), "type": "DirectoryOrCreate"}}))
    assert not (node.machine / "new").exists()


def test_a_sub_path_stays_in_its_volume_whatever_links_a_container_left_there(tmp_path: Path) -> None:
    node = Node(tmp_path)
    volume = tmp_path / "pods" / "u" / "volumes" / "v"
    volume.mkdir(parents=True)
    (volume / "out").symlink_to(node.machine)
    with pytest.raises(StartError, match="leads out of its volume"):
        node.mounts(pod_with({"emptyDir": {}}, subPath="out"))
    with pytest.raises(StartError, match="leads out of its volume"):
        node.mounts(pod_with({"emptyDir": {}}, subPath="out/further"))
    assert not (node.machine / "further").exists()
    (inside,) = node.mounts(pod_with({"emptyDir": {}}, subPath="in/side"))
    assert inside.host_path == str(volume / "in" / "side")


def test_a_claim_s_folder_is_mounted_and_nothing_else_of_this_machine(tmp_path: Path) -> None:
    node, provisioned = Node(tmp_path), tmp_path / "volumes"
    pod = pod_with({"persistentVolumeClaim": {"claimName": "c"}})

    def mounted(path: Path, *, allowed: bool = False) -> Any:
        volumes = PodVolumes(
            lambda: BoundClaim(path),  # type: ignore[arg-type, return-value]
            tmp_path / "pods",
            EngineHostPaths(node.place, allowed=allowed),
            provisioned=provisioned,
        )
        return asyncio.run(volumes.mounts(pod, "main"))

    own = provisioned / "host-1" / "pvc-1"
    assert [each.host_path for each in mounted(own)] == [str(own)]
    assert own.is_dir()
    for elsewhere in (node.machine, provisioned / ".." / "machine"):
        with pytest.raises(StartError, match=r"hostPath: .*--allow-host-access"):
            mounted(elsewhere)
    assert [each.host_path for each in mounted(node.machine, allowed=True)] == [str(node.machine)]


class BoundClaim:
    """An API with one claim and its volume."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def get(self, resource: Any, name: str, *, namespace: str | None = None) -> dict[str, Any]:
        if resource.kind == "PersistentVolume":
            return {"metadata": {"name": "v"}, "spec": {"hostPath": {"path": str(self._path)}}}
        return {"metadata": {"name": "c"}, "spec": {"volumeName": "v"}}


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"]}, "is rootless"),
        ({"SecurityOptions": ["name=apparmor", "name=userns"]}, "userns-remap"),
        ({"OperatingSystem": "Docker Desktop"}, "Docker Desktop"),
        ({"OSType": "windows"}, "Linux containers are needed"),
        ({"OSType": "linux", "SecurityOptions": ["name=seccomp,profile=builtin", "name=cgroupns"]}, ""),
        ({"SecurityOptions": None}, ""),
    ],
)
def test_an_engine_that_keeps_its_containers_from_this_machine_is_left_as_it_is(
    about: dict[str, Any], why: str
) -> None:
    """Such an engine is reported as unfit; nothing switches its mapping of users off for a container."""
    found = _unfit(about)
    assert (why in found, "\n" in found) == (True, False)
    assert bool(found) is bool(why)
