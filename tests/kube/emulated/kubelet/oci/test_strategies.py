"""What a process sees of its node's GPUs by every way in which NVIDIA's device plugin gives them to a container.

The plugin's answers are played in its own words (k8s-device-plugin 0.17, ``internal/plugin/server.go``).
"""

import asyncio
import json
import os
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from mews.emulator.nvml.library import install_driver_root
from mews.kube.deviceplugin.port import Allocation, DeviceNode, Mount
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.images import Image
from mews.kube.emulated.kubelet.oci.container_root import nvml_rights
from mews.kube.emulated.kubelet.oci.node_driver import NodeDriver
from mews.kube.emulated.kubelet.oci.runtime import OciRuntime, prepare
from mews.kube.emulated.kubelet.process import ProcessRuntime
from mews.kube.emulated.kubelet.runtime import Launch
from tests.emulator.nvml.conftest import host  # noqa: F401
from tests.emulator.nvml.hosts import gpu, uuid_of
from tests.emulator.nvml.test_container_toolkit import device_nodes, toolkit

VERSION = "570.86.15"
KIND = "k8s.device-plugin.nvidia.com/gpu"
NO_RIGHTS = {"MEWS_NVML_RIGHTS": "none"}
LIBRARIES = f"/usr/lib/{os.uname().machine}-linux-gnu"


@dataclass
class Node:
    """A node's driver root with four GPUs."""

    root: Path
    driver: NodeDriver

    def specify(self, kind=KIND, folder="var/run/cdi"):
        """The specification that the plugin writes."""
        names = {uuid_of(n): n for n in range(4)}
        devices = [
            {"name": name, "containerEdits": {"deviceNodes": [{"path": f"/dev/nvidia{n}"}]}}
            for name, n in names.items()
        ]
        control = [{"path": "/dev/nvidiactl", "hostPath": str(self.root / "dev/nvidiactl")}]
        mounts = [
            {"hostPath": str(self.root / path), "containerPath": f"/{path}", "options": ["ro", "bind"]}
            for path in ("usr/bin/nvidia-smi", f"{LIBRARIES[1:]}/libnvidia-ml.so.{VERSION}")
        ]
        hooks = [
            {"hookName": "createContainer", "path": "/usr/bin/nvidia-cdi-hook", "args": ["nvidia-cdi-hook", *words]}
            for words in (("update-ldcache", "--folder", LIBRARIES), ("chmod", "--mode", "755", "--path", "/dev"))
        ]
        edits = {"env": ["NVIDIA_VISIBLE_DEVICES=void"], "deviceNodes": control, "mounts": mounts, "hooks": hooks}
        whole = {"cdiVersion": "0.5.0", "kind": kind, "devices": devices, "containerEdits": edits}
        (self.root / folder / "spec.json").write_text(json.dumps(whole))


@pytest.fixture
def node(host, tmp_path):  # noqa: F811
    host.show(*(gpu(n) for n in range(4)))
    root = tmp_path / "root"
    install_driver_root(root, host.state, VERSION)
    (root / "dev").mkdir()
    for name in ("nvidiactl", "nvidia-uvm", *(f"nvidia{n}" for n in range(4))):
        (root / "dev" / name).touch()
    for n in range(4):
        folder = root / "proc/driver/nvidia/gpus" / gpu(n).bus_id
        folder.mkdir(parents=True)
        lines = f"Model: V100\nGPU UUID: {uuid_of(n)}\nBus Location: {gpu(n).bus_id}\nDevice Minor: {n}\n"
        (folder / "information").write_text(lines)
    return Node(root, NodeDriver(root))


def launch(allocation=None, annotations=None, command="nvidia-smi -L", **env):
    given = allocation or Allocation()
    pod = {"metadata": {"name": "p", "namespace": "default", "uid": "u", "annotations": annotations or {}}}
    image = Image("busybox", ("sh",))
    return Launch(pod, "main", 0, image, ("sh", "-c", command), (), {**given.envs, **env}, allocation=given)


def printed(node, tmp_path, one):
    """What a container prints."""

    async def run():
        runtime = OciRuntime(ProcessRuntime(tmp_path / "pods"), node.driver, tmp_path / "containers")
        process = await runtime.start(one)
        code = await process.wait()
        text = process.log.read().decode()
        await runtime.close()
        return code, text

    return asyncio.run(run())


def listed(text):
    return [line.partition("UUID: ")[2].rstrip(")") for line in text.splitlines() if line.startswith("GPU ")]


def by_environment(uuids):
    return Allocation(envs={"NVIDIA_VISIBLE_DEVICES": ",".join(uuids)})


def by_mounts(uuids):
    folder = "/var/run/nvidia-container-devices"
    mounts = tuple(Mount(f"{folder}/{uuid}", "/dev/null") for uuid in uuids)
    return Allocation(envs={"NVIDIA_VISIBLE_DEVICES": folder}, mounts=mounts)


def by_annotations(uuids):
    names = ",".join(f"{KIND}={uuid}" for uuid in uuids)
    return Allocation(annotations={"cdi.k8s.io/nvidia-device-plugin_c0ffee": names})


def by_cri(uuids):
    return Allocation(cdi_devices=tuple(f"{KIND}={uuid}" for uuid in uuids))


STRATEGIES = {
    "envvar": by_environment,
    "volume-mounts": by_mounts,
    "cdi-annotations": by_annotations,
    "cdi-cri": by_cri,
}


@pytest.mark.wall
@pytest.mark.parametrize("pass_device_specs", [False, True], ids=["", "pass-device-specs"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_container_sees_exactly_the_gpus_that_the_plugin_gave_it(node, tmp_path, strategy, pass_device_specs):
    node.specify()
    wanted = [uuid_of(1), uuid_of(3)]
    given = STRATEGIES[strategy](wanted)
    if pass_device_specs:
        names = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia1", "/dev/nvidia3")
        given = Allocation(
            given.envs, given.mounts, tuple(DeviceNode(n, n) for n in names), given.annotations, given.cdi_devices
        )
    code, text = printed(node, tmp_path, launch(given))
    assert (code, listed(text)) == (0, wanted), text


@pytest.mark.wall
def test_a_container_without_gpus_has_no_driver_and_one_with_none_has_it_without_gpus(node, tmp_path):
    command = "nvidia-smi -L 2>&1; echo $?"
    assert printed(node, tmp_path, launch(command=command))[1].endswith("127\n")
    none = launch(command=command, NVIDIA_VISIBLE_DEVICES="none")
    assert printed(node, tmp_path, none)[1] == "No devices found.\n6\n"
    assert "127\n" in printed(node, tmp_path, launch(command=command, NVIDIA_VISIBLE_DEVICES="void"))[1]


@pytest.mark.wall
def test_capabilities_decide_which_programs_and_libraries_there_are(node, tmp_path):
    command = 'command -v nvidia-smi; ls "${LD_LIBRARY_PATH%%:*}"'
    code, text = printed(
        node, tmp_path, launch(command=command, NVIDIA_VISIBLE_DEVICES="0", NVIDIA_DRIVER_CAPABILITIES="compute")
    )
    assert "nvidia-smi" not in text
    assert f"libcuda.so.{VERSION}" in text and "libcuda.so.1\n" in text and "libnvidia-ml" not in text, text
    assert code == 0


@pytest.mark.wall
def test_a_pods_own_annotation_and_etc_cdi_serve_too(node, tmp_path):
    node.specify("nvidia.com/gpu", "etc/cdi")
    code, text = printed(node, tmp_path, launch(annotations={"cdi.k8s.io/mine": f"nvidia.com/gpu={uuid_of(2)}"}))
    assert (code, listed(text)) == (0, [uuid_of(2)]), text


@pytest.mark.wall
def test_the_variable_may_hold_cdi_names(node, tmp_path):
    node.specify("nvidia.com/gpu")
    code, text = printed(node, tmp_path, launch(NVIDIA_VISIBLE_DEVICES=f"nvidia.com/gpu={uuid_of(0)}"))
    assert (code, listed(text)) == (0, [uuid_of(0)]), text


@pytest.mark.wall
def test_what_nvidias_toolkit_specifies_for_a_node_is_played(node, tmp_path):
    tool = toolkit()
    for path in (node.root / "dev").iterdir():
        path.unlink()
    device_nodes(node.root / "dev", 4)
    spec = node.root / "var/run/cdi/nvidia.yaml"
    command = [tool, "cdi", "generate", "--mode", "nvml", "--driver-root", node.root, "--dev-root", node.root]
    environment = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    with spec.open("w") as file:
        subprocess.run(command, stdout=file, stderr=subprocess.PIPE, timeout=60, env=environment, check=True)
    code, text = printed(node, tmp_path, launch(annotations={"cdi.k8s.io/x": "nvidia.com/gpu=3,nvidia.com/gpu=1"}))
    assert (code, listed(text)) == (0, [uuid_of(1), uuid_of(3)]), text


def test_unknown_devices_and_names_fail_the_start_with_the_runtimes_words(node):
    with pytest.raises(StartError, match=r"unresolvable CDI devices nvidia.com/gpu=0") as cdi:
        prepare(launch(Allocation(cdi_devices=("nvidia.com/gpu=0",))), node.driver)
    assert cdi.value.reason == "CreateContainerError"
    with pytest.raises(StartError, match=r"nvidia-container-cli: device error: 7: unknown device") as hook:
        prepare(launch(NVIDIA_VISIBLE_DEVICES="7"), node.driver)
    assert hook.value.reason == "RunContainerError"


def test_a_hook_that_cannot_be_played_and_a_device_node_that_is_not_there_fail_the_start(node, tmp_path):
    node.specify()
    spec = node.root / "var/run/cdi/spec.json"
    good = json.loads(spec.read_text())
    runtime = OciRuntime(ProcessRuntime(tmp_path / "pods"), node.driver, tmp_path / "containers")
    (node.root / "dev/nvidia0").unlink()
    with pytest.raises(StartError, match=r'lstat "/dev/nvidia0": no such file or directory'):
        asyncio.run(runtime.start(launch(by_cri([uuid_of(0)]))))
    good["containerEdits"]["hooks"].append({"hookName": "createContainer", "path": "/bin/x", "args": ["x", "dance"]})
    spec.write_text(json.dumps(good))
    with pytest.raises(StartError, match=r"hook /bin/x dance: cannot be played"):
        asyncio.run(runtime.start(launch(by_cri([uuid_of(1)]))))


def test_without_a_loaded_driver_a_container_that_wants_gpus_does_not_start(node):
    (node.root / "proc").rename(node.root / "gone")
    with pytest.raises(StartError, match=r"nvml error: driver not loaded"):
        prepare(launch(NVIDIA_VISIBLE_DEVICES="all"), node.driver)
    assert prepare(launch(), node.driver).edits.empty


def test_a_container_cannot_lay_links_outside_its_folder(node, tmp_path):
    given = Allocation(mounts=(Mount("/../../../escaped", "/dev/null"),))
    assert printed(node, tmp_path, launch(given, command="true")) == (0, "")
    assert not (tmp_path / "escaped").is_symlink()
    assert (tmp_path / "containers/u/main/escaped").is_symlink()


def test_a_driver_root_is_read_as_it_is(node):
    files = node.driver.files()
    assert f"{LIBRARIES}/libcuda.so.{VERSION}" in files.libraries
    assert f"{LIBRARIES}/libcuda.so.1" not in files.libraries
    assert "/usr/bin/nvidia-smi" in files.programs
    assert [each.uuid for each in node.driver.gpus()] == [uuid_of(n) for n in range(4)]
    assert stat.S_ISLNK((node.root / "var/run").lstat().st_mode)


@pytest.mark.parametrize(("security", "rights"), [
    ({}, NO_RIGHTS), ({"privileged": True}, {}), ({"privileged": False}, NO_RIGHTS),
    ({"capabilities": {"add": ["CAP_SYS_ADMIN"]}}, {}), ({"capabilities": {"add": ["NET_ADMIN"]}}, NO_RIGHTS),
])  # fmt: skip
def test_only_privileged_containers_may_set_anything_of_gpus(security, rights):
    pod = {"spec": {"containers": [{"name": "other"}], "initContainers": [{"name": "a", "securityContext": security}]}}
    assert nvml_rights(pod, "a") == rights
    assert nvml_rights(pod, "other") == NO_RIGHTS


def test_a_pods_nvidia_smi_has_no_permission(node, tmp_path):
    code, text = printed(node, tmp_path, launch(command="nvidia-smi -pl 150", NVIDIA_VISIBLE_DEVICES="all"))
    assert (code, text.splitlines()[-2][-24:]) == (4, "Insufficient Permissions")


class Started:
    """A Runtime that keeps what it was to start."""

    async def start(self, one):
        self.launch = one


def test_a_containers_device_nodes_are_told_by_where_they_are_on_this_machine(node, tmp_path):
    started = Started()
    asyncio.run(OciRuntime(started, node.driver, tmp_path / "containers").start(launch(by_environment([uuid_of(1)]))))
    told = {device.container_path: device.host_path for device in started.launch.edits.devices}
    assert {"/dev/nvidia1", "/dev/nvidiactl"} <= told.keys() and "/dev/nvidia0" not in told
    assert told == {path: str(node.root / path.lstrip("/")) for path in told}
