"""How long what must happen may take: data of a run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct, field

_OF_RUNS = ("systems", "spans", "built_in")
"""What no scenario gives by itself."""


class Bounds(Struct, frozen=True):
    """All in seconds of the journal; None switches an invariant's clock off.

    ``unattached_s``: how long a device that was attached at the start may stay free with no operation pending (5).
    ``scheduled_s``: how long a pod that fits may stay unbound (8). Above the longest Permit wait of 15 minutes
    (contract kubecomp.md section 2) plus a back-off.
    ``settle_s``: how long watches may lag behind a list when the run ends (7), and pod resources behind the pods (6).
    ``lag_s``: how late hardware lines may come after what follows from them (6): 0 in process, the way of an event over
    HTTP in wall-clock time.
    ``allocatable_s``: how long a node may offer more than NVML shows (4): the device manager's look, the plugin's list,
    the kubelet's status.
    ``terminating_s``: how long a deleted pod may be there beyond its grace, while its node is there to end it (14).
    ``offered_s``: how long a node may offer a device that its plugin calls unhealthy (16): two ticks of its status.
    ``systems``: those of the systems' own laws, by name.
    ``spans``: chassis/NAME or host/NAME, and what it does there (``attach``, ``driver``) -> the least and the most that
    this takes by its latency profile; empty where nobody knows the hardware (1001, 1002).
    ``built_in``: host/NAME -> the GPUIDs of the devices that are in the server itself (96).
    """

    unattached_s: float | None = 300.0
    scheduled_s: float | None = 1200.0
    settle_s: float = 5.0
    lag_s: float = 0.0
    allocatable_s: float = 30.0
    terminating_s: float | None = 60.0
    offered_s: float | None = 25.0
    systems: Mapping[str, float | None] = field(default_factory=dict)
    spans: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    built_in: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the bounds of the harness's own laws."""
        return _names(cls)

    @classmethod
    def of(cls, given: Mapping[str, Any], systems: Mapping[str, float | None] | None = None) -> Bounds:
        """Bounds with some values given by a scenario; ``systems`` are the defaults of the systems' own.

        Raises ValueError for a name that is none.
        """
        theirs = dict(systems or {})
        allowed = (*cls.names(), *theirs)
        for name in given:
            if name not in allowed:
                raise ValueError(f"bounds.{name}: no such bound; allowed are {', '.join(allowed)}")
        theirs |= {name: value for name, value in given.items() if name in theirs}
        return cls(**{name: value for name, value in given.items() if name not in theirs}, systems=theirs)

    def named(self, name: str) -> float | None:
        """Return a bound by its name, whoever declares it.

        Raises KeyError for one that nobody declares.
        """
        if name in self.systems:
            return self.systems[name]
        if name not in self.names():
            raise KeyError(name)
        value: float | None = getattr(self, name)
        return value


@cache
def _names(of: type[Bounds]) -> tuple[str, ...]:
    """Asked for each line of each run."""
    return tuple(name for name in of.__struct_fields__ if name not in _OF_RUNS)  # ``fields`` costs a millisecond
