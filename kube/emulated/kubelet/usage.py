"""What containers use: processes as /proc says, played ones as their pod says or else as much as they ask for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, annotations_of
from mews.kube.api.quantities import milli, whole
from mews.kube.streaming.usage import ContainerUsage, PodUsage

USAGE = "mews.dev/usage"
"""Annotation of a pod: what each of its played containers uses, ``cpu=250m,memory=64Mi``."""

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class GroupUsage(Struct, frozen=True):
    """What a process group has used so far."""

    cpu_s: float
    memory: int


def group_usages() -> Mapping[int, GroupUsage]:
    """Of all process groups of this machine that can be seen."""
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

    def pod(
        self, pod: Object, running: Iterable[RunningContainer], groups: Mapping[int, GroupUsage], now: float
    ) -> PodUsage:
        """What the running containers of a pod use."""
        containers, window_s = {}, 0.0
        for one in running:
            if one.group and one.group in groups:
                used, took_s = self._rate(one.id, groups[one.group], now, one.started_at)
                window_s = max(window_s, took_s)
            else:
                used = played_usage(pod, one.name)
            containers[one.name] = used
        return PodUsage(pod, containers, window_s or 10.0)

    def _rate(self, key: str, used: GroupUsage, now: float, began: float) -> tuple[ContainerUsage, float]:
        then, before_s = self._seen.get(key, (began, 0.0))
        took_s = max(now - then, 0.001)
        if took_s >= 1.0:
            self._seen[key] = (now, used.cpu_s)
        cores = max(used.cpu_s - before_s, 0.0) / took_s
        return ContainerUsage(round(cores * 1e9), used.memory), took_s


def played_usage(pod: Object, name: str) -> ContainerUsage:
    """By the annotation, else by the container's requests."""
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
