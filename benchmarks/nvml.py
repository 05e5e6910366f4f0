"""NVML calls per second on a host of eight GPUs, beside the emptiest call that ctypes can make."""

from __future__ import annotations

import ctypes
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.common import progress, report
from mews.emulator.nvml.library import LIBRARY, install
from mews.emulator.nvml.profiles import PROFILES
from mews.emulator.nvml.state import NvmlGpu, NvmlHost, state_beside, write_state

GPUS = 8
SECONDS = 2.0


def calls_per_s(call: Callable[[], Any]) -> float:
    """How often it can be called in a second, over two of them."""
    count, begin = 0, time.monotonic()
    while time.monotonic() - begin < SECONDS:
        for _ in range(1000):
            call()
        count += 1000
    return count / (time.monotonic() - begin)


def host() -> NvmlHost:
    """Eight V100."""
    uuids = (f"GPU-{number:08x}-0000-4000-8000-000000000000" for number in range(GPUS))
    return NvmlHost(
        gpus=tuple(
            NvmlGpu(index=n, minor=n, bus_id=f"0000:{0x40 + n:02x}:00.0", uuid=uuid, profile=PROFILES["V100"])
            for n, uuid in enumerate(uuids)
        )
    )


def main() -> None:
    """Power usage of one GPU: every call looks whether the host has changed."""
    progress("NVML calls per second")
    with tempfile.TemporaryDirectory(prefix="mews-bench-") as made:
        folder = Path(made)
        install(folder)
        write_state(state_beside(folder), host())
        os.environ.pop("NVIDIA_VISIBLE_DEVICES", None)
        os.environ.pop("MEWS_NVML_STATE", None)
        library = ctypes.CDLL(str(folder / LIBRARY))
        device, value = ctypes.c_void_p(), ctypes.c_uint()
        if library.nvmlInit_v2() != 0 or library.nvmlDeviceGetHandleByIndex_v2(GPUS - 1, ctypes.byref(device)) != 0:
            raise RuntimeError("the library does not see the GPUs")
        power, out = library.nvmlDeviceGetPowerUsage, ctypes.byref(value)
        ours = calls_per_s(lambda: power(device, out))
        empty = ctypes.CDLL(None).getppid
        baseline = calls_per_s(lambda: empty(device, out))
        library.nvmlShutdown()
    report("nvml_calls", ours, "calls/s", baseline=baseline, baseline_name="getppid through ctypes")


if __name__ == "__main__":
    main()
