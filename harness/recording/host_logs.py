"""GPU errors in logs of hosts and kubelets. Only numbers are taken from a line, never its text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct, structs

from mews.harness.recording.observations import DeviceTrouble
from mews.harness.recording.stamps import dated, zone_offset

_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]+)[^)]*\): (\d+)")
_FALLEN = re.compile(r"(?:GPU )?([0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.\d)?).*has fallen off the bus")
_HOST = re.compile(r"^(\S+) \S+?(?:\[\d+\])?: ")


class HostLog(Struct, frozen=True):
    """One log. ``times`` date its lines, ``undated`` counts the errors that nothing dates."""

    host: str
    troubles: tuple[DeviceTrouble, ...]
    times: tuple[float, ...]
    undated: int


def is_host_log(text: str) -> bool:
    """Return whether any of the first lines has a date, or names a GPU's error."""
    lines = text.splitlines()[:200]
    return any(dated(line, 2000)[0] is not None or _XID.search(line) for line in lines)


def read_host_log(text: str, hosts: Sequence[str], stem: str, year: int) -> HostLog:
    """Return the errors of a log. Its host is the one that journald names, else one whose name is in the file's
    name."""
    named = next((host for host in sorted(hosts, key=len, reverse=True) if host in stem), "")
    troubles: list[DeviceTrouble] = []
    times: list[float] = []
    undated = 0
    host = named
    for line in text.splitlines():
        at, rest = dated(line, year)
        if at is not None:
            times.append(at)
        found = _HOST.match(rest)
        if found and found[1] in hosts:
            host = found[1]
        error = _XID.search(line)
        fallen = None if error else _FALLEN.search(line)
        if error is None and fallen is None:
            continue
        if at is None:
            undated += 1
            continue
        xid, address = (int(error[2]), error[1]) if error else (79, fallen[1] if fallen else "")
        troubles.append(DeviceTrouble(host, at, xid, address))
    return HostLog(host, tuple(troubles), tuple(times), undated)


def in_span(log: HostLog, name: str, began: float, ended: float) -> tuple[list[DeviceTrouble], Iterable[str]]:
    """Return the errors within the recording, times of another zone shifted, and what is to be noted."""
    notes = []
    if log.undated:
        notes.append(f"{name}: {log.undated} GPU errors have no date, so they are not in the steps")
    if log.troubles and not log.host:
        return [], [
            *notes,
            f"{name}: its host is not known, so its {len(log.troubles)} GPU errors are not in the steps",
        ]
    offset = zone_offset(log.times, began, ended)
    if offset is None:
        return [], [*notes, f"{name}: its dates are days away from the objects of the cluster, so it is left out"]
    if offset:
        notes.append(f"{name}: its clock is {-offset / 60:+.0f} minutes off, or in another zone: corrected by that")
    shifted = [structs.replace(each, at=each.at + offset) for each in log.troubles]
    return [each for each in shifted if began <= each.at <= ended], notes
