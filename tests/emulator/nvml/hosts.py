"""Hosts for the tests: a folder with the library, nvidia-smi and a state file, and programs run in it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mews.emulator.hardware.gpu_profiles import PROFILES
from mews.emulator.nvml.compile import CompilerMissingError
from mews.emulator.nvml.library import install
from mews.emulator.nvml.state import NvmlGpu, NvmlHost, state_beside, write_state

SRC = Path(__file__).resolve().parents[3] / "src"
LOADER_WORDS = ("LD_LIBRARY_PATH", "NVIDIA_VISIBLE_DEVICES", "MEWS_NVML_STATE")


def uuid_of(number):
    return f"GPU-{number:08x}-1111-4222-8333-444444444444"


def gpu(number=0, model="V100", **more):
    """A GPU with an identity made of its number."""
    identity = {
        "index": number,
        "minor": number,
        "bus_id": f"{number // 200:04x}:{0x10 + number % 200:02x}:00.0",
        "uuid": uuid_of(number),
        "serial": f"13201{number:08d}",
        "numa_node": 0,
        "cpus": "0-23",
    }
    return NvmlGpu(profile=PROFILES[model], **{**identity, **more})


class Host:
    """A folder as a host has it."""

    def __init__(self, folder):
        try:
            install(folder)
        except CompilerMissingError as missing:
            pytest.skip(str(missing))
        self.folder = folder
        self.state = state_beside(folder)

    def show(self, *gpus, **more):
        """Let the host show exactly these GPUs."""
        write_state(self.state, NvmlHost(gpus=gpus, **more))

    def environment(self, **more):
        plain = {key: value for key, value in os.environ.items() if key not in LOADER_WORDS}
        return {**plain, "LD_LIBRARY_PATH": str(self.folder), "TZ": "UTC", "LC_ALL": "C.UTF-8", **more}

    def smi(self, *arguments, **environment):
        """nvidia-smi's (code, standard output)."""
        command = [str(self.folder / "nvidia-smi"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=self.environment(**environment))
        assert done.stderr == ""
        return done.returncode, done.stdout

    def run(self, *command, **environment):
        """What a program prints that finds this host's library; it must succeed."""
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=self.environment(**environment))
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def python(self, code, **environment):
        """What a Python program prints; it may import pynvml and Mews."""
        environment.setdefault("PYTHONPATH", str(SRC))
        return self.run(sys.executable, "-c", code, **environment)
