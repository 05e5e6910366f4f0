"""NVML of this machine as any client has it: ``libnvidia-ml.so.1``, loaded and called. Not for virtual runs.

Calls are made on a thread, since some of them wait. The event set stays registered between two readings, so that no XID
is missed; it must be made anew when the GPUs have changed.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable
from ctypes import Structure, byref, c_char, c_uint, c_ulonglong, c_void_p, create_string_buffer
from typing import Any

from mews.kube.system.nvml import (
    GpuDescription,
    GpuProcess,
    ListedGpu,
    NvmlDescription,
    NvmlError,
    NvmlReading,
    ReportedXid,
)

LIBRARY = "libnvidia-ml.so.1"
_TIMEOUT, _NOT_SUPPORTED, _INSUFFICIENT_SIZE, _GPU_IS_LOST = 10, 3, 7, 15
_UNKNOWN = 2**64 - 1
"""NVML_VALUE_NOT_AVAILABLE"""
_MIB = 1024 * 1024
_PROCESSES = 32
"""There is room for so many at first."""
_LEVELS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""nvmlGpuTopologyLevel_t -> the word of ``nvidia-smi topo -m``; GPUs of one board are joined over its one switch."""
_MOST_LINKS = 18
"""NVML_NVLINK_MAX_LINKS"""
_TO_SWITCH = 2
"""NVML_NVLINK_DEVICE_TYPE_SWITCH"""
_XID_EVENTS = 0x8
"""nvmlEventTypeXidCriticalError"""


class _PciInfo(Structure):
    _fields_ = [
        ("bus_id_legacy", c_char * 16),
        ("domain", c_uint),
        ("bus", c_uint),
        ("device", c_uint),
        ("pci_device_id", c_uint),
        ("pci_subsystem_id", c_uint),
        ("bus_id", c_char * 32),
    ]


class _Memory(Structure):
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class _ProcessInfo(Structure):
    _fields_ = [
        ("pid", c_uint),
        ("used_memory", c_ulonglong),
        ("gpu_instance", c_uint),
        ("compute_instance", c_uint),
    ]


class _EventData(Structure):
    _fields_ = [
        ("device", c_void_p),
        ("event_type", c_ulonglong),
        ("event_data", c_ulonglong),
        ("gpu_instance", c_uint),
        ("compute_instance", c_uint),
    ]


class NvmlLibrary:
    """A NvmlPort of the library at that path."""

    def __init__(self, path: str = LIBRARY) -> None:
        self._path = path
        self._library: Any = None
        self._open = False
        self._events = c_void_p()
        self._watched: tuple[str, ...] = ()
        self._lock = asyncio.Lock()

    async def read(self) -> NvmlReading:
        """Look, opening the library where it is not open."""
        async with self._lock:
            return await asyncio.to_thread(self._read)

    async def describe(self) -> NvmlDescription:
        """Return names, architectures and joints. Raises NvmlError."""
        async with self._lock:
            return await asyncio.to_thread(self._describe)

    def watch(self, changed: Callable[[], None]) -> None:
        """Nothing is called: the system events that report it came with driver 575 (``nvmlSystemEventSetWait``)."""

    async def close(self) -> None:
        """Let go of all GPUs."""
        async with self._lock:
            await asyncio.to_thread(self.release)

    def release(self) -> None:
        """The same, without waiting for a reading that is under way."""
        if self._open:
            self._forget_events()
            self._library.nvmlShutdown()
            self._open = False

    def _read(self) -> NvmlReading:
        if not self._open:
            self._begin()
        handles = self._handles()
        gpus = tuple(self._gpu(index, handle) for index, handle in enumerate(handles))
        xids = self._xids(gpus)
        if tuple(gpu.uuid for gpu in gpus) != self._watched:
            self._watch(gpus, handles)
        return NvmlReading(gpus, xids)

    def _describe(self) -> NvmlDescription:
        if not self._open:
            self._begin()
        handles, driver = self._handles(), create_string_buffer(96)
        self._check("nvmlSystemGetDriverVersion", driver, c_uint(len(driver)))
        gpus = tuple(self._description(handle) for handle in handles)
        ends = [self._link_ends(handle) for handle in handles]
        buses = [self._bus_id(handle) for handle in handles]
        matrix = tuple(
            tuple(
                "X" if a == b else self._joint(_links(ends, buses, a, b), one, other) for b, other in enumerate(handles)
            )
            for a, one in enumerate(handles)
        )
        return NvmlDescription(driver.value.decode(), gpus, matrix)

    def _description(self, handle: c_void_p) -> GpuDescription:
        uuid, name = create_string_buffer(96), create_string_buffer(96)
        self._check("nvmlDeviceGetUUID", handle, uuid, c_uint(len(uuid)))
        self._check("nvmlDeviceGetName", handle, name, c_uint(len(name)), allowed=(_GPU_IS_LOST,))
        numbers = [
            self._number(f"nvmlDeviceGet{what}", handle)
            for what in ("Architecture", "MaxPcieLinkGeneration", "MaxPcieLinkWidth")
        ]
        return GpuDescription(uuid.value.decode(), name.value.decode(), *numbers)

    def _number(self, call: str, handle: c_void_p) -> int:
        found = c_uint()
        code = self._check(call, handle, byref(found), allowed=(_NOT_SUPPORTED, _GPU_IS_LOST))
        return found.value if code == 0 else 0

    def _bus_id(self, handle: c_void_p) -> str:
        pci = _PciInfo()
        self._check("nvmlDeviceGetPciInfo_v3", handle, byref(pci), allowed=(_GPU_IS_LOST,))
        return str(pci.bus_id.decode()).lower()

    def _link_ends(self, handle: c_void_p) -> list[str]:
        """Return what is at the end of each NVLink that is up: a bus address, or "" for a switch."""
        found = []
        for link in range(_MOST_LINKS):
            active, kind, pci = c_uint(), c_uint(), _PciInfo()
            if self._library.nvmlDeviceGetNvLinkState(handle, c_uint(link), byref(active)) != 0 or not active.value:
                continue
            if self._library.nvmlDeviceGetNvLinkRemoteDeviceType(handle, c_uint(link), byref(kind)) != 0:
                continue
            if kind.value == _TO_SWITCH:
                found.append("")
            elif self._library.nvmlDeviceGetNvLinkRemotePciInfo_v2(handle, c_uint(link), byref(pci)) == 0:
                found.append(pci.bus_id.decode().lower())
        return found

    def _joint(self, links: int, one: c_void_p, other: c_void_p) -> str:
        if links:
            return f"NV{links}"
        level = c_uint()
        code = self._check(
            "nvmlDeviceGetTopologyCommonAncestor", one, other, byref(level), allowed=(_NOT_SUPPORTED, _GPU_IS_LOST)
        )
        return _LEVELS.get(level.value, "SYS") if code == 0 else "SYS"

    def _begin(self) -> None:
        if self._library is None:
            try:
                self._library = ctypes.CDLL(self._path)
            except OSError as error:
                raise NvmlError(f"{self._path}: cannot be loaded: {error}") from error
        self._check("nvmlInit_v2")
        self._open = True

    def _check(self, name: str, *arguments: Any, allowed: tuple[int, ...] = ()) -> int:
        code = int(getattr(self._library, name)(*arguments))
        if code != 0 and code not in allowed:
            raise NvmlError(f"{name}: NVML error {code}")
        return code

    def _handles(self) -> list[c_void_p]:
        count = c_uint()
        self._check("nvmlDeviceGetCount_v2", byref(count))
        handles = []
        for index in range(count.value):
            handle = c_void_p()
            self._check("nvmlDeviceGetHandleByIndex_v2", c_uint(index), byref(handle))
            handles.append(handle)
        return handles

    def _gpu(self, index: int, handle: c_void_p) -> ListedGpu:
        uuid, minor, pci, memory = create_string_buffer(96), c_uint(), _PciInfo(), _Memory()
        self._check("nvmlDeviceGetUUID", handle, uuid, c_uint(len(uuid)))
        self._check("nvmlDeviceGetMinorNumber", handle, byref(minor), allowed=(_GPU_IS_LOST,))
        self._check("nvmlDeviceGetPciInfo_v3", handle, byref(pci), allowed=(_GPU_IS_LOST,))
        code = self._check("nvmlDeviceGetMemoryInfo", handle, byref(memory), allowed=(_GPU_IS_LOST,))
        return ListedGpu(
            index=index,
            uuid=uuid.value.decode(),
            bus_id=pci.bus_id.decode(),
            minor=minor.value,
            memory_mib=memory.total // _MIB,
            lost=code == _GPU_IS_LOST,
            processes=self._processes(handle),
            divided=self._divided(handle),
        )

    def _divided(self, handle: c_void_p) -> bool:
        current, pending = c_uint(), c_uint()
        allowed = (_NOT_SUPPORTED, _GPU_IS_LOST)
        code = self._check("nvmlDeviceGetMigMode", handle, byref(current), byref(pending), allowed=allowed)
        return code == 0 and bool(current.value)

    def _processes(self, handle: c_void_p) -> tuple[GpuProcess, ...]:
        room = _PROCESSES
        while True:
            count, found = c_uint(room), (_ProcessInfo * room)()
            code = self._check(
                "nvmlDeviceGetComputeRunningProcesses_v3",
                handle,
                byref(count),
                found,
                allowed=(_NOT_SUPPORTED, _GPU_IS_LOST, _INSUFFICIENT_SIZE),
            )
            if code != _INSUFFICIENT_SIZE:
                break
            room = 2 * max(room, count.value)
        listed = found[: count.value] if code == 0 else []
        return tuple(
            GpuProcess(int(each.pid), 0 if each.used_memory == _UNKNOWN else each.used_memory // _MIB)
            for each in listed
        )

    def _watch(self, gpus: tuple[ListedGpu, ...], handles: list[c_void_p]) -> None:
        self._forget_events()
        self._check("nvmlEventSetCreate", byref(self._events))
        for handle in handles:
            kinds = c_ulonglong(_XID_EVENTS)
            allowed = (_NOT_SUPPORTED, _GPU_IS_LOST)
            self._check("nvmlDeviceRegisterEvents", handle, kinds, self._events, allowed=allowed)
        self._watched = tuple(gpu.uuid for gpu in gpus)

    def _forget_events(self) -> None:
        if self._events:
            self._library.nvmlEventSetFree(self._events)
        self._events, self._watched = c_void_p(), ()

    def _xids(self, gpus: tuple[ListedGpu, ...]) -> tuple[ReportedXid, ...]:
        """Return all that have come since; without waiting for more."""
        found: list[ReportedXid] = []
        while self._events:
            data = _EventData()
            allowed = (_TIMEOUT, _GPU_IS_LOST)
            code = self._check("nvmlEventSetWait_v2", self._events, byref(data), c_uint(0), allowed=allowed)
            if code != 0:
                break
            uuid = create_string_buffer(96)
            if self._library.nvmlDeviceGetUUID(c_void_p(data.device), uuid, c_uint(len(uuid))) == 0:
                found.append(ReportedXid(uuid.value.decode(), int(data.event_data)))
        return tuple(found)


def _links(ends: list[list[str]], buses: list[str], one: int, other: int) -> int:
    """Return how many NVLinks join two GPUs: those that end at the other, else those that both have to switches."""
    direct = sum(end == buses[other] for end in ends[one])
    return direct or min(sum(end == "" for end in ends[each]) for each in (one, other))
