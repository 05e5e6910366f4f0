"""The life-cycle of a simulated container as data: stages one after the other. Pure."""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct

from mews.kube.emulated.kubelet.errors import ImagesError
from mews.kube.emulated.kubelet.unhealthy_window import PURPOSES, UnhealthyWindow

_KEYS = ("exit_code", "failing", "for_s", "log", "name")


class LifecycleStage(Struct, frozen=True):
    """One stage: it lasts ``for_s`` seconds (infinity: until somebody stops the container), begins with ``log``, a
    template over the environment, and fails the probes and hooks that ``failing`` names. After the last one the
    container ends with that stage's ``exit_code``."""

    name: str = ""
    for_s: float = math.inf
    log: str = ""
    failing: tuple[str, ...] = ()
    exit_code: int = 0


def stages_of(entries: Any, where: str) -> tuple[LifecycleStage, ...]:
    """Return what images.yaml or a scenario says, ``where``.

    Raises ImagesError.
    """
    if not (isinstance(entries, list) and entries):
        raise ImagesError(f"{where}: {entries!r}: must be a list of stages, each of {', '.join(_KEYS)}")
    stages = tuple(_stage(entry, f"{where}.{number}") for number, entry in enumerate(entries))
    for number, (entry, stage) in enumerate(zip(entries[:-1], stages, strict=False)):
        if math.isinf(stage.for_s):
            raise ImagesError(f"{where}.{number}.for_s: must be given and end: further stages follow")
        if "exit_code" in entry:
            raise ImagesError(f"{where}.{number}.exit_code: only the last stage ends the container")
    if math.isinf(stages[-1].for_s) and "exit_code" in entries[-1]:
        raise ImagesError(f"{where}.{len(stages) - 1}.exit_code: needs for_s, else the stage does not end")
    return stages


def _stage(entry: Any, where: str) -> LifecycleStage:
    if not isinstance(entry, dict):
        raise ImagesError(f"{where}: {entry!r}: must be a mapping of {', '.join(_KEYS)}")
    unknown = sorted(set(map(str, entry)) - set(_KEYS))
    if unknown:
        raise ImagesError(f"{where}.{unknown[0]}: unknown; allowed: {', '.join(_KEYS)}")
    for_s, code = entry.get("for_s", math.inf), entry.get("exit_code", 0)
    if isinstance(for_s, bool) or not isinstance(for_s, int | float) or not for_s >= 0:
        raise ImagesError(f"{where}.for_s: {for_s!r}: must be a number of seconds from 0 on")
    if isinstance(code, bool) or not isinstance(code, int) or not 0 <= code <= 255:
        raise ImagesError(f"{where}.exit_code: {code!r}: must be a whole number from 0 to 255")
    failing = entry.get("failing", [])
    if not isinstance(failing, list) or not set(map(str, failing)) <= set(PURPOSES):
        raise ImagesError(f"{where}.failing: {failing!r}: must be a list of {', '.join(PURPOSES)}")
    return LifecycleStage(
        str(entry.get("name", "")), float(for_s), str(entry.get("log", "")), tuple(map(str, failing)), code
    )


def windows_of(stages: tuple[LifecycleStage, ...]) -> tuple[UnhealthyWindow, ...]:
    """Return when which probes and hooks fail."""
    found, since_s = [], 0.0
    for stage in stages:
        found += [UnhealthyWindow(purpose, since_s, since_s + stage.for_s) for purpose in stage.failing]
        since_s += stage.for_s
    return tuple(found)
