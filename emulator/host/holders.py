"""Who uses which devices: pods, processes that have NVML open, open files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from mews.emulator.telemetry.load import IDLE, GpuLoad

FIRST_PID = 4000
"""Processes that exist in the emulation alone are numbered from here on."""

REMEMBERED = 4000
"""Holders that have worked and are gone: accounting knows them by their pids."""


class Holder(Struct, frozen=True):
    """One user. ``key`` tells it from all others; ``uuids`` are what it uses; ``computing``: it works on them as
    ``load`` says (a pod), unlike a process that merely looks. ``cgroup``: where the kernel accounts for it."""

    key: str
    uuids: tuple[str, ...]
    pid: int = 0
    name: str = ""
    computing: bool = False
    load: GpuLoad = IDLE
    cgroup: str = "/"


class DeviceHolders:
    """The book of one host."""

    def __init__(self) -> None:
        self._holders: dict[str, Holder] = {}
        self._gone: dict[str, Holder] = {}

    def hold(self, holder: Holder) -> None:
        """Add one, or put it in place of its former self."""
        self._holders[holder.key] = holder

    def release(self, key: str) -> Holder | None:
        """Remove one; None if there is none."""
        holder = self._holders.pop(key, None)
        if holder is not None and holder.computing:
            self._gone[key] = holder
            if len(self._gone) > REMEMBERED:
                del self._gone[next(iter(self._gone))]
        return holder

    def known(self, key: str) -> Holder | None:
        """Return one that is there, or was there not long ago."""
        return self._holders.get(key) or self._gone.get(key)

    def of(self, uuid: str, *, but: Iterable[str] = ()) -> list[Holder]:
        """Return who uses a device, without the holders of the keys in ``but``."""
        left_out = tuple(but)
        return [h for h in self._holders.values() if uuid in h.uuids and h.key not in left_out]

    def keys(self, prefix: str) -> list[str]:
        """Return all keys with that beginning."""
        return [key for key in self._holders if key.startswith(prefix)]

    def __iter__(self) -> Iterator[Holder]:
        return iter(tuple(self._holders.values()))

    def __len__(self) -> int:
        return len(self._holders)
