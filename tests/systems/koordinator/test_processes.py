"""koordlet as a process of its own: a real HTTP API, the library of NVML, files, a kubelet's folder, a socket."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml

from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.host.fleet import Hosts
from mews.emulator.host.nvml_view import nvml_host
from mews.emulator.inventory_file import load_hardware
from mews.emulator.nvml import library
from mews.emulator.nvml.state import state_beside, write_state
from mews.kube.api.errors import NotFoundError
from mews.kube.api.resources import NODES, PODS
from mews.kube.clock import Clock, stream
from mews.kube.deviceplugin.port import Allocation
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer
from mews.kube.emulated.kubelet.devices.checkpoint import Checkpoint, to_text
from mews.kube.emulated.kubelet.devices.holdings import Holding
from mews.kube.runtimehook.grpc_hooks import GrpcHooks
from mews.kube.runtimehook.port import HookedContainer, HookRequest
from mews.kube.system.kinds import install_kind
from mews.systems.koordinator import names
from mews.systems.koordinator.device_crd import device_definition
from mews.systems.koordinator.devices import parse
from tests.systems.koordinator.node_bench import HARDWARE

MODULE = [sys.executable, "-m", "mews.systems.koordinator"]
ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["koordlet"], "--node: must name this node, or $NODE_NAME must"),
        (["scheduler", "--certificate", "x"], "--certificate and --key: must be given together"),
        (["koordlet", "--config", "{bad}"], "must be a mapping with scheduler_name"),
        (["koordlet", "--config", "{kinds}"], "koordlet.kinds[0]: must say pci_class, vendor, driver or device_class"),
    ],
)
def test_bad_input_is_one_line(words: list[str], text: str, tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("colour: red\n")
    (tmp_path / "kinds").write_text("koordlet: {kinds: [{type: xpu}]}\n")
    words = [word.format(bad=tmp_path / "bad", kinds=tmp_path / "kinds") for word in words]
    env = {key: value for key, value in ENV.items() if key != "NODE_NAME"}
    done = subprocess.run([*MODULE, *words], capture_output=True, text=True, env=env, timeout=60, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert text in done.stderr


@pytest.mark.wall
@pytest.mark.skipif(not library.available(), reason="no compiler for the library")
def test_a_process_reports_adopts_answers_hooks_and_ends_cleanly() -> None:
    async def main() -> None:
        with tempfile.TemporaryDirectory(prefix="ko", dir="/tmp") as name:
            await _lives(Path(name))

    asyncio.run(asyncio.wait_for(main(), 120))


async def _lives(folder: Path) -> None:
    hosts = Hosts(load_hardware(HARDWARE), EmulationContext(1))
    hosts.begin(0.0)
    library.install_copies(folder)
    write_state(state_beside(folder), nvml_host(hosts.host("four")))
    store = fresh_store(Clock.wall().now, stream(1, "store"))
    kube, api = InProcessKube(store), ApiServer(store)
    await api.start()
    await install_kind(kube, device_definition())
    await kube.create(NODES, {"metadata": {"name": "four"}})
    spec = {"containers": [{"name": "main", "image": "x"}], "nodeName": "four"}
    theirs = await kube.create(PODS, {"metadata": {"name": "theirs"}, "spec": spec}, namespace="default")
    uid = theirs["metadata"]["uid"]
    held = Holding(uid, "main", names.NVIDIA, {-1: ("GPU-four-3",)}, Allocation())
    (folder / "kubelet_internal_checkpoint").write_text(to_text(Checkpoint((held,), {})))
    access = {
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": api.url}}], "users": [{"name": "x", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    }  # fmt: skip
    (folder / "kubeconfig").write_text(yaml.safe_dump(access))
    (folder / "config.yaml").write_text("koordlet: {report_s: 1.0}\n")
    socket = folder / "koordlet.sock"
    words = [
        "koordlet", "--node", "four", "--kubeconfig", str(folder / "kubeconfig"), "--host-root", str(folder),
        "--config", str(folder / "config.yaml"), "--nvml", str(folder / "libnvidia-ml.so.1"),
        "--device-plugins", str(folder), "--pod-resources", str(folder), "--hooks", str(socket),
    ]  # fmt: skip
    process = await asyncio.create_subprocess_exec(*MODULE, *words, env=ENV, stderr=asyncio.subprocess.PIPE)
    said = asyncio.ensure_future(process.stderr.read())
    try:
        while True:
            try:
                report = parse(await kube.get(names.DEVICES, "four"))
            except NotFoundError:
                report = None
            # The node's status is written after the Device, as one more request.
            shown = (await kube.get(NODES, "four")).get("status", {}).get("allocatable", {})
            if report is not None and report.held and names.MEMORY in shown and socket.exists():
                break
            await asyncio.sleep(0.1)
        assert [device.id for device in report.devices] == [f"GPU-four-{n}" for n in range(4)]
        assert [(entry.pod_uid, entry.ids) for entry in report.held] == [(uid, ("GPU-four-3",))]
        assert shown[names.MEMORY] == "32Gi"
        client = GrpcHooks(socket)
        note = {names.ALLOCATED: '{"gpu":[{"minor":2,"id":"GPU-four-2","resources":{}}]}'}
        request = HookRequest("default", "a", "u", "main", 0, note, {}, HookedContainer({names.VISIBLE: "all"}))
        assert (await client.pre_create(request)).env == {names.VISIBLE: "2"}
        await client.close()
    finally:
        process.send_signal(signal.SIGTERM)
        code = await asyncio.wait_for(process.wait(), 30)
        text = (await said).decode()
        await api.stop()
    assert code == 0, text
    assert "Traceback" not in text, text
