"""NVIDIA's own ``nvidia-ctk cdi generate``, unmodified, on a driver root of ours."""

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from mews.emulator.nvml.library import install_driver_root
from tests.emulator.nvml.hosts import gpu, uuid_of

VERSION = "570.86.15"
MODULE = "github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-ctk@v1.17.4"


def toolkit():
    """The binary: of MEWS_NVIDIA_CTK, on the PATH, or where ``go install`` puts it."""
    named = os.environ.get("MEWS_NVIDIA_CTK")
    places = [named, shutil.which("nvidia-ctk"), str(Path.home() / "go" / "bin" / "nvidia-ctk")]
    for place in places:
        if place and Path(place).exists():
            return place
    pytest.skip(f"nvidia-ctk is not installed; `go install {MODULE}` builds it, MEWS_NVIDIA_CTK names it")
    return None


def device_nodes(dev, gpus=2):
    """Character devices, as the tool wants them; nothing ever opens them."""
    dev.mkdir(exist_ok=True)
    for name, minor in (*((f"nvidia{n}", n) for n in range(gpus)), ("nvidiactl", 255), ("nvidia-uvm", 0)):
        try:
            os.mknod(dev / name, stat.S_IFCHR | 0o666, os.makedev(195, minor))
        except OSError as error:
            pytest.skip(f"character devices cannot be made here: {error}")


@pytest.mark.wall
def test_it_generates_a_specification_that_names_every_gpu(host, tmp_path):
    tool, root = toolkit(), tmp_path / "root"
    host.show(gpu(0), gpu(1))
    install_driver_root(root, host.state, VERSION)
    device_nodes(root / "dev")
    command = [tool, "cdi", "generate", "--mode", "nvml", "--driver-root", str(root), "--dev-root", str(root)]
    environment = {key: value for key, value in host.environment().items() if key != "LD_LIBRARY_PATH"}
    done = subprocess.run([*command, "--format", "json"], capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    names = {device["name"] for device in told["devices"]}
    assert names == {"0", "1", "all", uuid_of(0), uuid_of(1)}
    [first] = [device for device in told["devices"] if device["name"] == uuid_of(0)]
    assert first["containerEdits"]["deviceNodes"][0]["path"] == "/dev/nvidia0"
    mounts = {mount["containerPath"] for mount in told["containerEdits"]["mounts"]}
    assert f"/usr/lib/{os.uname().machine}-linux-gnu/libnvidia-ml.so.{VERSION}" in mounts
    assert "/usr/bin/nvidia-smi" in mounts
