"""What containers use: processes as /proc says, played ones as their pod says or else as much as they ask for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mews.kube.api.objects import Object, annotations_of
from mews.kube.api.quantities import milli, whole
from mews.kube.emulated.streaming.usage import ContainerUsage, PodUsage

USAGE = "mews.dev/usage"
"""Annotation of a pod: what each of its played containers uses, ``cpu=250m,memory=64Mi``."""

SYSTEM = ContainerUsage(10_000_000, 64 * 1024 * 1024)
"""What a node uses for itself: a metrics-server leaves out nodes that use nothing."""

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class GroupUsage(Struct, frozen=True):
    """What a process group has used so far."""

    cpu_s: float
    memory: int


def group_usages() -> Mapping[int, GroupUsage]:
    """Return those of all process groups of this machine that can be seen."""
    found: dict[int, GroupUsage] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text("latin-1").rpartition(")")[2].split()
            except OSError:
                continue
            group = int(fields[2])
            known = found.get(group, GroupUsage(0.0, 0))
            cpu_s = (int(fields[11]) + int(fields[12])) * _TICK_S
            found[group] = GroupUsage(known.cpu_s + cpu_s, known.memory + int(fields[21]) * _PAGE)
    return found


class RunningContainer(Struct, frozen=True):
    """A container that runs: since when, and as which process group (0: as none)."""

    name: str
    id: str
    started_at: float
    group: int


class UsageMeter:
    """Rates over the time since it was last asked, as the kubelet's window is; over a container's life at first."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, float]] = {}
        self._used: dict[str, float] = {}
        self._looked: dict[str, float] = {}
        self._ended_s = 0.0

    def pod(
        self, pod: Object, running: Iterable[RunningContainer], groups: Mapping[int, GroupUsage], now: float
    ) -> PodUsage:
        """Return what the running containers of a pod use."""
        containers, window_s = {}, 0.0
        for one in running:
            if one.group and one.group in groups:
                used, took_s = self._rate(one.id, groups[one.group], now, one.started_at)
                window_s = max(window_s, took_s)
            else:
                used = played_usage(pod, one.name)
                cpu_s = used.cpu_nano / 1e9 * max(now - one.started_at, 0.0)
                used = replace(used, cpu_s=cpu_s, started_at=one.started_at)
            containers[one.name] = used
            self._looked[one.id] = used.cpu_s
        return PodUsage(pod, containers, window_s or 10.0)

    def settle(self) -> None:
        """All pods have been looked at: what ran before and does not any more counts as it was last."""
        self._ended_s += sum(used for key, used in self._used.items() if key not in self._looked)
        self._used, self._looked = self._looked, {}
        self._seen = {key: seen for key, seen in self._seen.items() if key in self._used}

    def cpu_s(self) -> float:
        """Return seconds of a core that all of it has used so far; it never falls."""
        return self._ended_s + sum(self._used.values())

    def _rate(self, key: str, used: GroupUsage, now: float, began: float) -> tuple[ContainerUsage, float]:
        then, before_s = self._seen.get(key, (began, 0.0))
        took_s = max(now - then, 0.001)
        if took_s >= 1.0:
            self._seen[key] = (now, used.cpu_s)
        cores = max(used.cpu_s - before_s, 0.0) / took_s
        return ContainerUsage(round(cores * 1e9), used.memory, used.cpu_s, began), took_s


def node_usage(usages: Iterable[PodUsage], cpu_s: float, began: float) -> ContainerUsage:
    """Return all that pods use and the node itself; ``cpu_s`` so far."""
    each = [used for usage in usages for used in usage.containers.values()]
    nano, memory = sum(used.cpu_nano for used in each), sum(used.memory for used in each)
    return ContainerUsage(nano + SYSTEM.cpu_nano, memory + SYSTEM.memory, cpu_s, began)


def played_usage(pod: Object, name: str) -> ContainerUsage:
    """Return it by the annotation, else by the container's requests."""
    given = dict(_pairs(annotations_of(pod).get(USAGE, "")))
    if not given:
        given = _requests(pod, name)
    try:
        return ContainerUsage(milli(given.get("cpu", "0")) * 1_000_000, whole(given.get("memory", "0")))
    except ValueError:
        return ContainerUsage(0, 0)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if equals:
            yield name, value


def _requests(pod: Object, name: str) -> dict[str, Any]:
    spec = pod["spec"]
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        if container["name"] == name:
            return dict((container.get("resources") or {}).get("requests") or {})
    return {}
