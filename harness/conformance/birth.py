"""When a process was started, on any system: by it and the process' number one knows whether it still runs."""

from __future__ import annotations

import os
import subprocess
import sys

from mews.harness.leftovers import born

LOOKING_S = 10.0
QUERY = 0x1000
"""PROCESS_QUERY_LIMITED_INFORMATION of Windows' OpenProcess."""
STILL_ACTIVE = 259
"""What its GetExitCodeProcess says of a process that runs."""


def born_at(pid: int) -> str:
    """Return a text that no other process of this number ever has; "" where there is none, or it only waits to be
    reaped."""
    return born(pid) or (_of_windows(pid) if sys.platform == "win32" else _of_ps(pid))


def _of_ps(pid: int) -> str:
    """Return what ps(1) says, as POSIX has it: also where there is no /proc, as on macOS."""
    command = ["ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)]
    try:
        done = subprocess.run(
            command, env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, timeout=LOOKING_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    state, _, since = done.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else since.strip()


def _of_windows(pid: int) -> str:
    """GetProcessTimes' time of creation."""
    import ctypes

    kernel = getattr(ctypes, "WinDLL")("kernel32", use_last_error=True)  # noqa: B009 - mypy on Linux knows no WinDLL
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(kernel.OpenProcess(QUERY, False, pid))
    if not handle:
        return ""
    try:
        code = ctypes.c_ulong()
        times = [ctypes.c_ulonglong() for _ in range(4)]
        known = kernel.GetExitCodeProcess(handle, ctypes.byref(code))
        known = known and kernel.GetProcessTimes(handle, *map(ctypes.byref, times))
        return str(times[0].value) if known and code.value == STILL_ACTIVE else ""
    finally:
        kernel.CloseHandle(handle)
