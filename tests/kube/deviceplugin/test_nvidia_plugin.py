"""NVIDIA's device plugin on a node of `mews up`: its own binary, if MEWS_NVIDIA_DEVICE_PLUGIN names it, and a stand-in.

The stand-in (``goplugin``, on go-nvml and the kubelet's published Go interface) is there for machines that do not have
NVIDIA's.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest

import mews.fixtures
from tests.emulator.nvml.gobuild import built

pytestmark = pytest.mark.wall

DEMO = Path(mews.fixtures.__file__).parent / "hardware" / "demo.yaml"
MEWS = [sys.executable, "-m", "mews.harness.cli"]
USUAL = "/var/lib/kubelet/device-plugins"
OWN = "MEWS_NVIDIA_DEVICE_PLUGIN"
DEADLINE_S = 90.0

# NVIDIA's binary has its plugin folder compiled in: it gets the node's there, in a mount namespace of its own.
MOUNTED = f'mount -t tmpfs none /var/lib && mkdir -p {USUAL} && mount --bind "$1" {USUAL} && exec "$2"'


def until(condition, what):
    """Poll until it holds; what it gave."""
    end = time.monotonic() + DEADLINE_S
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {DEADLINE_S:g} s for {what}"
        time.sleep(0.05)
    return found


def ask(url, method="GET", body=None, token=""):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=60) as answer:
        return answer.read().decode()


class Up:
    """A running `mews up`, seen from host-1."""

    def __init__(self, ready, environment):
        self.ready = ready
        self.environment = environment
        self.node = ready["nodes"]["host-1"]

    def gpus(self, resource, part="allocatable"):
        """How many the node has."""
        status = json.loads(ask(f"{self.ready['api']}/api/v1/nodes/host-1"))["status"]
        return int(status[part].get(resource, 0))

    def hosts(self, path, method="GET", body=None):
        """The hosts' back door."""
        door = self.ready["hosts"]
        return json.loads(ask(door["url"] + path, method, body, door["token"]))

    def devices(self):
        """Device -> row, of those that NVML shows."""
        rows = self.hosts("/v1/hosts")["host-1"]["devices"].values()
        return {row["device"]: row for row in rows if row["nvml"]}

    def xid(self, device, number):
        self.hosts("/v1/faults", "POST", {"host": "host-1", "spec": {"kind": "xid", "device": device, "xid": number}})

    def attach(self, device):
        """Move a device from its host to host-1."""
        url = self.ready["chassis"]["A"]["resource-pool"] + "/allocation"
        ask(url, "DELETE", {"devid": device})
        ask(url, "POST", {"devid": device, "hostport": "1"})

    def smi(self, *arguments):
        """What nvidia-smi says there."""
        command = [*MEWS, "nvidia-smi", "--name", "plugin", "--host", "host-1", *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=DEADLINE_S)
        return done.stdout + done.stderr

    def said_by_pod(self):
        """What a pod with one GPU prints of its NVIDIA_VISIBLE_DEVICES, and what nvidia-smi lists there."""
        pods = f"{self.ready['api']}/api/v1/namespaces/default/pods"
        command = ["sh", "-c", 'echo "$NVIDIA_VISIBLE_DEVICES"; nvidia-smi -L']
        limits = {"limits": {"nvidia.com/gpu": "1"}}
        container = {"name": "main", "image": "busybox", "command": command, "resources": limits}
        spec = {"containers": [container], "restartPolicy": "Never"}
        ask(pods, "POST", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": spec})
        until(lambda: json.loads(ask(f"{pods}/one"))["status"].get("phase") == "Succeeded", "the pod to end")
        return ask(f"{pods}/one/log").strip()


@pytest.fixture
def up():
    """In a short folder, as the path of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as folder:
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder}
        options = [
            "--insecure",
            "--wait",
            "devices",
            "--hardware",
            str(DEMO),
            "--speed",
            "10",
            "--json",
            "--name",
            "plugin",
            "--dir",
            f"{folder}/up",
        ]
        child = subprocess.Popen([*MEWS, "up", *options], env=environment, stdout=subprocess.PIPE, text=True)
        try:
            ready = json.loads(child.stdout.readline())
            if "LD_LIBRARY_PATH" not in ready["nodes"]["host-1"]["env"]:
                pytest.skip("the NVML library is not compiled here, and there is no C compiler")
            yield Up(ready, environment)
        finally:
            child.send_signal(signal.SIGTERM)
            try:
                child.communicate(timeout=DEADLINE_S)
            finally:
                child.kill()
                subprocess.run([*MEWS, "down", "--all"], env=environment, capture_output=True, check=True)


def nvidias_own():
    """Its command for a plugin folder."""
    binary = os.environ.get(OWN)
    if not binary:
        pytest.skip(f"{OWN} names no binary of NVIDIA's k8s-device-plugin")
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed; the plugin's folder is compiled in")
    new = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    if subprocess.run([*new, "mount", "-t", "tmpfs", "none", "/var/lib"], capture_output=True).returncode:
        pytest.skip("no mount namespace can be made here; the plugin's folder is compiled in")
    return lambda folder: [*new, "sh", "-c", MOUNTED, "sh", folder, binary]


def stand_in():
    """Its command for a plugin folder."""
    program = built(Path(__file__).parent / "goplugin")
    return lambda folder: [str(program), folder]


PLUGINS = {"nvidias-own": nvidias_own, "stand-in": stand_in}


@contextlib.contextmanager
def running(command, node, log):
    """The plugin in a shell of that node; NVIDIA's takes its options from the environment."""
    options = {"DEVICE_DISCOVERY_STRATEGY": "nvml", "DEVICE_LIST_STRATEGY": "envvar", "DEVICE_ID_STRATEGY": "uuid"}
    environment = {**os.environ, **node["env"], **options}
    environment.pop("NVIDIA_VISIBLE_DEVICES", None)
    child = subprocess.Popen(command(node["device_plugins"]), env=environment, stdout=log, stderr=log)
    try:
        yield child
        assert child.poll() is None, "the plugin ended by itself"
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("kind", PLUGINS)
def test_it_announces_allocates_and_gives_up_gpus_but_lets_none_go_and_sees_no_new_one(kind, request, tmp_path):
    command = PLUGINS[kind]()
    up = request.getfixturevalue("up")
    with (tmp_path / "log").open("w") as log:
        with running(command, up.node, log):
            until(lambda: up.gpus("nvidia.com/gpu") == 4, "four GPUs to be announced")
            here = up.devices()
            given, *listed = up.said_by_pod().splitlines()
            assert given in {row["uuid"] for row in here.values()}
            assert len(listed) == 1 and listed[0].startswith("GPU 0: ") and f"(UUID: {given})" in listed[0]

            bus = here["000200"]["bdf"]
            assert "drain state to: draining" in up.smi("drain", "-p", bus, "-m", "1")
            assert "In use by another client" in up.smi("drain", "-p", bus, "-r")
            assert "drain state to: not draining" in up.smi("drain", "-p", bus, "-m", "0")

            up.xid("000300", 31)
            up.xid("000400", 79)
            until(lambda: up.gpus("nvidia.com/gpu") == 3, "one GPU to be Unhealthy")
            up.hosts("/v1/faults?host=host-1", "DELETE")
            up.attach("000500")
            until(lambda: "000500" in up.devices(), "the new GPU in NVML")
            until(lambda: up.gpus("falcon.com/gpu") == 5, "DisagGPU-DevMgr to announce five healthy GPUs")
            assert up.gpus("nvidia.com/gpu", "capacity") == 4
            assert up.gpus("nvidia.com/gpu") == 3
        until(lambda: up.gpus("nvidia.com/gpu") == 0, "the kubelet to miss the plugin")
        assert "drain state to: draining" in up.smi("drain", "-p", bus, "-m", "1")
        assert "Successfully removed GPU" in up.smi("drain", "-p", bus, "-r")
        with running(command, up.node, log):
            until(lambda: up.gpus("nvidia.com/gpu") == 4, "the three that stayed and the new one")
            assert up.gpus("nvidia.com/gpu", "capacity") == 4


@pytest.mark.parametrize("kind", PLUGINS)
def test_beside_kubecomp_its_host_keeps_all_gpus_healthy_and_another_one_gives(kind, request, tmp_path):
    """It has NVML open, so its host refuses; a removal by surprise would leave every GPU of it Unhealthy for good."""
    command = PLUGINS[kind]()
    up = request.getfixturevalue("up")
    pods = f"{up.ready['api']}/api/v1/namespaces/default/pods"
    container = {"name": "main", "image": "mews/gpu-hold", "resources": {"limits": {"falcon.com/gpu": "5"}}}
    spec = {"containers": [container], "restartPolicy": "Never", "schedulerName": "kubecomp-scheduler"}
    spec["nodeSelector"] = {"kubernetes.io/hostname": "host-2"}
    with (tmp_path / "log").open("w") as log, running(command, up.node, log) as plugin:
        until(lambda: up.gpus("nvidia.com/gpu") == 4, "four GPUs to be announced")
        ask(pods, "POST", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "five"}, "spec": spec})
        until(lambda: json.loads(ask(f"{pods}/five"))["status"].get("phase") == "Running", "the pod to run")
        hosts = up.hosts("/v1/hosts")
        assert {name: len(host["devices"]) for name, host in hosts.items()} == {"host-1": 4, "host-2": 5, "host-3": 3}
        assert hosts["host-1"]["log"] == hosts["host-3"]["log"] == []
        assert up.gpus("nvidia.com/gpu") == 4
        events = json.loads(ask(f"{up.ready['api']}/api/v1/namespaces/default/events"))["items"]
        refusals = [event["message"] for event in events if event["reason"] == "ReconfigRefused"]
        assert refusals and all("from host-1: in use by" in text and f"(pid {plugin.pid})" in text for text in refusals)
