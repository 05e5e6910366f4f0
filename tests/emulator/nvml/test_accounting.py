"""Accounting as the library and nvidia-smi show it."""

import ctypes
import re

import pytest

from mews.emulator.nvml.requests import SetGpu
from mews.emulator.nvml.state import NvmlAccount
from mews.emulator.telemetry.accounting import AccountedProcess
from mews.emulator.telemetry.units import ns
from tests.emulator.nvml.hosts import gpu
from tests.emulator.nvml.test_hotplug import Driver

OK, INVALID, NOT_SUPPORTED, NOT_FOUND, SMALL = 0, 2, 3, 6, 7
ENDED = NvmlAccount(41, AccountedProcess("a", ns(10), ns(40), 60, 512))
RUNS = NvmlAccount(42, AccountedProcess("b", ns(30), None, 20, 100))


class Stats(ctypes.Structure):
    _fields_ = (
        ("gpu", ctypes.c_uint),
        ("memory", ctypes.c_uint),
        ("max_memory", ctypes.c_ulonglong),
        ("time", ctypes.c_ulonglong),
        ("start", ctypes.c_ulonglong),
        ("running", ctypes.c_uint),
        ("reserved", ctypes.c_uint * 5),
    )


def pids(read, room):
    count, out = ctypes.c_uint(room), (ctypes.c_uint * 8)()
    code = read.calls.nvmlDeviceGetAccountingPids(read.device, ctypes.byref(count), out if room else None)
    return code, count.value, out[: count.value] if code == OK else None


def stats(read, pid):
    out = Stats()
    return read.calls.nvmlDeviceGetAccountingStats(read.device, pid, ctypes.byref(out)), out


def test_accounts_are_shown_while_accounting_is_on(read):
    read.show(gpu(0, accounting=True, accounted=(ENDED, RUNS)), at_s=50)
    assert pids(read, 8) == (OK, 2, [41, 42])
    assert pids(read, 1)[:2] == pids(read, 0)[:2] == (SMALL, 2)
    code, ended = stats(read, 41)
    assert (code, ended.gpu, ended.memory, ended.max_memory) == (OK, 60, 30, 512 << 20)
    assert (ended.time, ended.running) == (30_000, 0)
    code, runs = stats(read, 42)
    assert (code, runs.gpu, runs.time, runs.running) == (OK, 20, 0, 1)
    assert runs.start - ended.start == pytest.approx(20_000_000, abs=500_000)
    assert stats(read, 43)[0] == NOT_FOUND
    assert read.calls.nvmlDeviceGetAccountingStats(read.device, 41, None) == INVALID
    read.show(gpu(0, accounted=(ENDED,)))
    assert pids(read, 8)[0] == stats(read, 41)[0] == NOT_SUPPORTED


def test_the_newest_process_of_a_pid_counts(read):
    again = NvmlAccount(41, AccountedProcess("c", ns(45), None, 7, 1))
    read.show(gpu(0, accounting=True, accounted=(ENDED, again)))
    assert stats(read, 41)[1].gpu == 7


def test_nvidia_smi_lists_accounts(host):
    host.show(gpu(0, accounting=True, accounted=(ENDED, RUNS)), gpu(1))
    query = "--query-accounted-apps=gpu_bus_id,vgpu_instance,pid,gpu_util,mem_util,max_memory_usage,time"
    code, text = host.smi(query, "--format=csv")
    assert code == 0 and text.splitlines() == [
        "gpu_bus_id, vgpu_instance, pid, gpu_utilization [%], mem_utilization [%], max_memory_usage [MiB], time [ms]",
        "00000000:10:00.0, [N/A], 41, 60 %, 30 %, 512 MiB, 30000 ms",
        "00000000:10:00.0, [N/A], 42, 20 %, 10 %, 100 MiB, 0 ms",
    ]
    assert host.smi("--query-gpu=accounting.mode", "--format=csv,noheader")[1] == "Enabled\nDisabled\n"


def test_nvidia_smi_asks_the_driver(host):
    host.show(gpu(0))
    with Driver(host) as driver:
        assert host.smi("-i", "0", "-am", "1") == (0, "Enabled Accounting Mode for GPU 00000000:10:00.0.\nAll done.\n")
        code, text = host.smi("-caa")
        assert code == 0 and re.match(r"Cleared accounted processes for GPU 00000000:10:00\.0\.\n", text)
        assert host.smi("-am", "2")[0] == 2
        assert host.smi("-am", "1", MEWS_NVML_RIGHTS="none")[0] == 4
    bus_id = gpu(0).bus_id
    assert [one for one in driver.asked if isinstance(one, SetGpu)] == [
        SetGpu(bus_id, "accounting", (1,)),
        SetGpu(bus_id, "accounting-clear"),
    ]
