"""NVML calls per second on a host of eight GPUs, beside the emptiest call that ctypes can make."""

from __future__ import annotations

import ctypes
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from benchmarks.common import progress, report
from mews.emulator.hardware.gpu_profiles import PROFILES
from mews.emulator.nvml.library import LIBRARY, install
from mews.emulator.nvml.state import NvmlGpu, NvmlHost, state_beside, write_state
from mews.emulator.telemetry.chassis import SPANS_AHEAD
from mews.emulator.telemetry.gpu import GpuTelemetry
from mews.emulator.telemetry.load import parse_load

GPUS = 8
ROUNDS, SECONDS = 8, 0.25
EMPTY_CALLS_BEFORE_MIG, GPU_BYTES_BEFORE_MIG = 4.6, 8297
"""How many of the emptiest calls took as long as one of ours, and what a GPU took in the state file, when GPUs could
not be divided yet."""


def calls_per_s(call: Callable[[], Any]) -> float:
    """Return how often it can be called in a second, over a quarter of one."""
    count, begin = 0, time.monotonic()
    while time.monotonic() - begin < SECONDS:
        for _ in range(1000):
            call()
        count += 1000
    return count / (time.monotonic() - begin)


def gpu(number: int) -> NvmlGpu:
    """Return one V100 that idles."""
    uuid = f"GPU-{number:08x}-0000-4000-8000-000000000000"
    bus_id = f"0000:{0x40 + number:02x}:00.0"
    return NvmlGpu(index=number, minor=number, bus_id=bus_id, uuid=uuid, profile=PROFILES["V100"])


def idle() -> NvmlHost:
    """Eight V100 of which nothing changes."""
    return NvmlHost(gpus=tuple(gpu(number) for number in range(GPUS)))


def loaded() -> NvmlHost:
    """Return the same, each with a load that changes twice a second."""
    curve = parse_load({"curve": [[0, 20], [0.5, 80]], "repeat_s": 1})
    gpus = []
    for number in range(GPUS):
        shown = gpu(number)
        board = GpuTelemetry(shown.uuid, shown.profile, seed="", powered=True)
        board.begin("train", curve, 0)
        gpus.append(replace(shown, record=board.record(0, SPANS_AHEAD)))
    return NvmlHost(gpus=tuple(gpus))


def main() -> None:
    """Power usage of one GPU: every call looks whether the host has changed, and with a load what it is now."""
    progress("NVML calls per second")
    with tempfile.TemporaryDirectory(prefix="mews-bench-") as made:
        folder = Path(made)
        install(folder)
        write_state(state_beside(folder), idle())
        os.environ.pop("NVIDIA_VISIBLE_DEVICES", None)
        os.environ.pop("MEWS_NVML_STATE", None)
        library = ctypes.CDLL(str(folder / LIBRARY))
        device, value = ctypes.c_void_p(), ctypes.c_uint()
        if library.nvmlInit_v2() != 0 or library.nvmlDeviceGetHandleByIndex_v2(GPUS - 1, ctypes.byref(device)) != 0:
            raise RuntimeError("the library does not see the GPUs")
        power, out = library.nvmlDeviceGetPowerUsage, ctypes.byref(value)
        empty = ctypes.CDLL(None).getppid
        ours = changing = baseline = 0.0
        for _ in range(ROUNDS):  # in turns, and the best of each: what else runs here slows all of them down
            write_state(state_beside(folder), idle())
            ours = max(ours, calls_per_s(lambda: power(device, out)))
            write_state(state_beside(folder), loaded())
            changing = max(changing, calls_per_s(lambda: power(device, out)))
            baseline = max(baseline, calls_per_s(lambda: empty(device, out)))
        library.nvmlShutdown()
        size = state_beside(folder).stat().st_size
    report("nvml_calls", ours, "calls/s", baseline=baseline, baseline_name="getppid through ctypes")
    report("nvml_cost", baseline / ours, "empty calls", baseline=EMPTY_CALLS_BEFORE_MIG, baseline_name="before MIG")
    report("nvml_state", size / GPUS, "bytes a GPU", baseline=GPU_BYTES_BEFORE_MIG, baseline_name="before MIG")
    report("nvml_calls_telemetry", changing, "calls/s", baseline=ours, baseline_name="the same of an idle GPU")


if __name__ == "__main__":
    main()
