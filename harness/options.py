"""The ways to run, and which of them go together (docs/clusters.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mews.harness.errors import BadInput

TIMES: Mapping[str, tuple[str, ...]] = {
    "embedded": ("virtual", "wall"),
    "control-plane": ("wall",),
    "kind": ("wall",),
    "kubeconfig": ("wall",),
}
"""Cluster -> the times it can run in, its default first."""

DIALECTS = ("h3api", "resource-pool", "redfish")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run scenarios. ``dialect`` None: as the scenario says; ``timeout_s`` None too."""

    cluster: str = "embedded"
    time: str = "virtual"
    speed: float = 1.0
    dialect: str | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    timeout_s: float | None = None
    keep: bool = False


def time_of(cluster: str, time: str | None) -> str:
    """The time to run in.

    Raises BadInput for a cluster, a time or a pair of them that is none.
    """
    check_choice("--cluster", cluster, tuple(TIMES))
    if time is None:
        return TIMES[cluster][0]
    check_choice("--time", time, ("virtual", "wall"))
    if time not in TIMES[cluster]:
        allowed = ", ".join(TIMES[cluster])
        raise BadInput(f"--time {time}: --cluster {cluster} runs in {allowed} time only; virtual time needs embedded")
    return time


def check_available(cluster: str) -> None:
    """Raise Lacks for a cluster whose programs are not on this machine."""
    if cluster == "control-plane":
        from mews.harness.clusters.control_plane.programs import needed

        needed()
    if cluster == "kind":
        from mews.harness.clusters.kind import tools

        tools.needed()


def check_choice(option: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raise BadInput unless the value is one of those."""
    if value not in allowed:
        raise BadInput(f"{option} {value}: must be one of {', '.join(allowed)}")


def check_speed(speed: float) -> None:
    """Raise BadInput unless above 0."""
    if not 0 < speed < float("inf"):
        raise BadInput(f"--speed {speed:g}: must be above 0")


def seeds_of(text: str) -> range:
    """``A-B`` with both ends, or one number.

    Raises BadInput.
    """
    first, dash, last = text.partition("-")
    try:
        low = int(first)
        high = int(last) if dash else low
    except ValueError:
        raise BadInput(f"--seeds {text}: must be A-B, for example 1-100") from None
    if high < low:
        raise BadInput(f"--seeds {text}: the first must not be above the last")
    return range(low, high + 1)
