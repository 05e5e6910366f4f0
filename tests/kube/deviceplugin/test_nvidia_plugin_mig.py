"""NVIDIA's own device plugin, which MEWS_NVIDIA_DEVICE_PLUGIN names, on a node whose GPUs are divided by MIG.

It finds the node's files where the real ones are: ``/proc/driver`` and ``/dev/nvidia-caps`` are the node's, in a mount
namespace of its own.
"""

import json
import os
import re
import signal
import subprocess
import tempfile
from contextlib import contextmanager

import pytest
import yaml

from tests.kube.deviceplugin.test_nvidia_plugin import DEADLINE_S, MEWS, OWN, USUAL, Up, ask, nvidias_own, until

pytestmark = pytest.mark.wall

GPUS, PARTS = 8, 7
MOUNTED = (
    f'mount -t tmpfs none /var/lib && mkdir -p {USUAL} && mount --bind "$1" {USUAL} && '
    'mount --bind "$3/proc/driver" /proc/driver && mount -t tmpfs none /dev/shm && exec "$2"'
)


def hardware(folder):
    """A server with eight H100."""
    devices = [
        {"id": f"{n:02d}", "uuid": f"GPU-00000000-0000-4000-8000-{n:012d}", "kind": "GPU", "model": "H100-SXM",
         "serial": f"13200{n:08d}", "port": "1"}
        for n in range(1, GPUS + 1)
    ]  # fmt: skip
    document = {
        "apiVersion": "mews/v1", "kind": "Hardware", "metadata": {"name": "eight"}, "profile": "instant",
        "hosts": [{"name": "host-1", "cpus": 64, "memory_mib": 1048576}],
        "chassis": [{"name": "A", "index": 0, "slots": GPUS, "ports": {"1": "host-1"}, "devices": devices}],
    }  # fmt: skip
    path = folder / "eight.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


@contextmanager
def running(tmp_path):
    """A session with the eight GPUs; skips where the library is not compiled."""
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as folder:
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder}
        options = ["--insecure", "--stack", "none", "--wait", "nodes", "--hardware", str(hardware(tmp_path)), "--json",
                   "--name", "plugin", "--dir", f"{folder}/up"]  # fmt: skip
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


@pytest.fixture
def up(tmp_path):
    nvidias_own()  # skips without the plugin or namespaces
    with running(tmp_path) as found:
        yield found


def start(up, strategy, log):
    """The plugin with that MIG strategy."""
    new = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    root = up.node["driver_root"]
    command = [*new, "sh", "-c", MOUNTED, "sh", up.node["device_plugins"], os.environ[OWN], root]
    options = {"DEVICE_DISCOVERY_STRATEGY": "nvml", "DEVICE_LIST_STRATEGY": "envvar", "DEVICE_ID_STRATEGY": "uuid",
               "MIG_STRATEGY": strategy}  # fmt: skip
    environment = {**os.environ, **up.node["env"], **options}
    environment.pop("NVIDIA_VISIBLE_DEVICES", None)
    return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


def said(up, name, resource):
    """What a pod with one of that resource prints of its variable, and what nvidia-smi lists there."""
    pods = f"{up.ready['api']}/api/v1/namespaces/default/pods"
    container = {"name": "main", "image": "busybox", "resources": {"limits": {resource: "1"}},
                 "command": ["sh", "-c", 'echo "$NVIDIA_VISIBLE_DEVICES"; nvidia-smi -L']}  # fmt: skip
    spec = {"containers": [container], "restartPolicy": "Never"}
    ask(pods, "POST", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    until(lambda: json.loads(ask(f"{pods}/{name}"))["status"].get("phase") in ("Succeeded", "Failed"), "the pod to end")
    return ask(f"{pods}/{name}/log").strip().splitlines()


def xid(up, device, number, **more):
    spec = {"kind": "xid", "device": device, "xid": number, **more}
    up.hosts("/v1/faults", "POST", {"host": "host-1", "spec": spec})


def sees_one_part(lines):
    """Whether a pod sees the MIG device that it was given, and no other."""
    given, gpu, *parts = lines
    (part,) = parts
    return given.startswith("MIG-") and gpu.startswith("GPU 0: NVIDIA H100") and f"(UUID: {given})" in part


def test_eight_divided_gpus_are_56_devices_and_a_pod_sees_its_own_alone(up, tmp_path):
    assert "All done." in up.smi("-mig", "1")
    assert up.smi("mig", "-cgi", ",".join(["19"] * PARTS), "-C").count("created compute instance") == GPUS * PARTS
    uuids = re.findall(r"MIG-[0-9a-f-]{36}", up.smi("-L"))
    assert len(set(uuids)) == GPUS * PARTS
    for strategy, resource in (("single", "nvidia.com/gpu"), ("mixed", "nvidia.com/mig-1g.10gb")):
        with (tmp_path / f"log-{strategy}").open("w") as log:
            plugin = start(up, strategy, log)
            try:
                until(lambda resource=resource: up.gpus(resource) == GPUS * PARTS, f"56 {resource}")
                assert sees_one_part(said(up, strategy, resource))
                if strategy == "mixed":
                    # The plugin knows one device of each GPU for events, and marks it alone (0.18.0, health.go).
                    for number in range(PARTS):
                        xid(up, "03", 48, mig_device=number)
                    until(lambda resource=resource: up.gpus(resource) == GPUS * PARTS - 1, "one device to be Unhealthy")
                assert plugin.poll() is None
            finally:
                plugin.kill()
                plugin.wait()
        until(lambda resource=resource: up.gpus(resource) == 0, "the kubelet to miss the plugin")
