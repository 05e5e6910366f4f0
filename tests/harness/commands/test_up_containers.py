"""`mews up` with an image of nobody's registry, as containers of emulated nodes."""

import asyncio
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from mews.harness.clusters.programs.finding import find
from mews.harness.leftovers import ENGINE_FILE, sweep
from mews.kube.deviceplugin.grpc_client import GrpcPodResources
from mews.kube.emulated.kubelet.engine.client import ContainerEngine
from tests.containers import built_image, containers_of_owner, image_lacks

pytestmark = pytest.mark.wall

MEWS = [sys.executable, "-m", "mews.harness.cli"]
LONG_S = 300.0


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    with built_image(tmp_path_factory.mktemp("image")) as reference:
        yield reference


class Up:
    """A running `mews up` whose unknown images are containers."""

    def __init__(self, folder, environment, *further):
        command = [*MEWS, "up", "--dir", str(folder), "--json", "--speed", "10", "--name", folder.name, *further]
        command += ["--unknown-images", "container"]
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        said = self.process.stdout.readline()
        assert said, self.process.stderr.read()
        self.ready = json.loads(said)
        access = json.loads(Path(self.ready["kubeconfig"]).read_text())
        self._token = access["users"][0]["user"]["token"]
        self._context = ssl.create_default_context(cafile=self.ready["ca"])

    @property
    def owner(self):
        """The runtime folder."""
        node = next(iter(self.ready["nodes"].values()))
        return str(Path(node["device_plugins"]).parent.parent)

    def api(self, path, body=None):
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.ready["api"] + path, data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=60, context=self._context) as answer:
            return answer.read().decode()

    def pod(self, name):
        return json.loads(self.api(f"/api/v1/namespaces/default/pods/{name}"))

    def run(self, name, image, *args, gpus=0):
        container = {"name": "main", "image": image, "args": list(args)}
        if gpus:
            container["resources"] = {"limits": {"falcon.com/gpu": str(gpus), "memory": "64Mi", "cpu": "500m"}}
        spec = {"restartPolicy": "Never", "containers": [container]}
        self.api("/api/v1/namespaces/default/pods", {"metadata": {"name": name}, "spec": spec})

    def phase(self, name, phase):
        pause, until = threading.Event(), time.monotonic() + LONG_S
        while (pod := self.pod(name)).get("status", {}).get("phase") != phase:
            assert time.monotonic() < until, pod["status"]
            pause.wait(0.2)
        return pod

    def log(self, name, end):
        """Up to the line of that text."""
        pause, until = threading.Event(), time.monotonic() + LONG_S
        while end not in (text := self.api(f"/api/v1/namespaces/default/pods/{name}/log")).splitlines():
            assert time.monotonic() < until, text
            pause.wait(0.2)
        return text

    def end(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def environment():
    if image_lacks():
        pytest.skip(image_lacks())
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as folder:
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder}
        yield environment
        subprocess.run([*MEWS, "down", "--all"], env=environment, capture_output=True, check=True)


async def reported_devices(ready, node):
    """The devices that a node's kubelet says its pods have, as any client of podresources v1 reads it."""
    client = GrpcPodResources(Path(ready["nodes"][node]["pod_resources"]) / "kubelet.sock")
    try:
        pods = await client.list()
    finally:
        await client.close()
    held = [devices for pod in pods for _, all_devices in pod.containers for devices in all_devices]
    return {device for devices in held for device in devices.device_ids}


def device_uuids(ready):
    """Device -> UUID, by the chassis' table."""
    request = urllib.request.Request(ready["control"]["url"] + "/v1/table")
    request.add_header("Authorization", f"Bearer {ready['control']['token']}")
    context = ssl.create_default_context(cafile=ready["ca"])
    with urllib.request.urlopen(request, timeout=60, context=context) as answer:
        table = json.loads(answer.read())
    return {row["gpuid"]: row["uuid"] for rows in table.values() for row in rows.values()}


def minors(ready, node):
    """UUID -> device node, by the driver of that host."""
    found = {}
    for file in Path(ready["nodes"][node]["root"], "proc/driver/nvidia/gpus").glob("*/information"):
        fields = dict(line.split(":", 1) for line in file.read_text().splitlines())
        found[fields["GPU UUID"].strip()] = f"nvidia{fields['Device Minor'].strip()}"
    return found


def sees_its_devices(up, image):
    """A pod of two GPUs: its image finds what pod-resources names, by variable and in /dev."""
    up.run("a", image, "wait", gpus=2)
    node = up.phase("a", "Running")["spec"]["nodeName"]
    lines = up.log("a", "waits").splitlines()
    uuids = device_uuids(up.ready)
    given = {uuids[device] for device in asyncio.run(reported_devices(up.ready, node))}
    assert len(given) == 2
    assert set(lines[0].removeprefix("visible ").split(",")) == given
    gpus = {minors(up.ready, node)[uuid] for uuid in given}
    shown = {line.removeprefix("device ") for line in lines if line.startswith("device ")}
    assert shown == gpus | {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"}


def test_an_image_sees_its_devices_on_a_real_control_plane_too(image, environment, tmp_path):
    if find("kube-apiserver") is None:
        pytest.skip("kube-apiserver is neither in KUBEBUILDER_ASSETS nor on PATH")
    up = Up(tmp_path / "real", environment, "--cluster", "control-plane", "--wait", "devices")
    try:
        sees_its_devices(up, image)
        up.process.send_signal(signal.SIGTERM)
        assert up.process.wait(LONG_S) == 0
        assert containers_of_owner(up.owner) == []
    finally:
        up.end()


def test_an_image_sees_the_devices_of_its_pod_and_nothing_of_it_is_left_behind(image, environment, tmp_path):
    first = Up(tmp_path / "first", environment, "--wait", "devices")
    try:
        sees_its_devices(first, image)
        first.process.kill()
        first.process.wait()
        assert len(containers_of_owner(first.owner)) == 1, "nobody is there to end it"
        second = Up(tmp_path / "second", environment)
        try:
            assert containers_of_owner(first.owner) == []
            second.run("a", image, "wait")
            second.phase("a", "Running")
            assert len(containers_of_owner(second.owner)) == 1
            second.process.send_signal(signal.SIGTERM)
            assert second.process.wait(LONG_S) == 0
            assert containers_of_owner(second.owner) == []
        finally:
            second.end()
    finally:
        first.end()


def test_what_a_dead_owner_left_with_the_engine_goes_with_its_folder(image, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / "mews-orphan"
    folder.mkdir()
    (folder / "owner.json").write_text(json.dumps({"pid": os.getpid(), "born": "1"}))
    (folder / ENGINE_FILE).touch()

    async def leave():
        engine = await asyncio.to_thread(ContainerEngine.connect, str(folder))
        await engine.call("create_container", image, labels=dict(engine.labels))

    asyncio.run(leave())
    assert len(containers_of_owner(str(folder))) == 1
    assert sweep() == [folder]
    assert containers_of_owner(str(folder)) == []
