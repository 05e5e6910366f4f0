"""What a system says of its policy so that an engine can play traces by it: jobs instead of pods, no API, no waiting.

A **placer** decides where a job goes, by the very functions that the system's components call; the engine keeps the
line of jobs, the time and the results. Times are seconds from the start of the trace; they never go back.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field

WHOLE = 100
"""The share of a device that is all of it."""


class SimulatedJob(Struct, eq=False):
    """One job of a trace, or one instance of it. ``share`` is what it asks of devices, in hundredths of one,
    ``devices`` the whole ones that this takes; ``instances``: how many of them a policy of elastic jobs may run."""

    name: str
    arrival_s: float
    duration_s: float
    devices: int
    share: int
    cpu_milli: int
    memory_mib: int = 0
    instances: int = 1


class SimulatedDevice(Struct, frozen=True):
    """One device: its pool-wide ID, and the memory that it has."""

    gpuid: str
    uuid: str
    memory_mib: int


class SimulatedNode(Struct, frozen=True):
    """One node as a trace begins: what it has, and the devices on its ports. ``pool`` is None where it has none."""

    name: str
    pool: str | None
    cpu_milli: int
    memory_mib: int
    devices: tuple[SimulatedDevice, ...] = ()


class DeviceMoves(Protocol):
    """The chassis of a trace: operations are begun at a time and end at a later one. Each pool is asked in order."""

    def read(self, pool: str, now_s: float) -> float:
        """Return when all chassis of the pool have answered what they have where."""
        ...

    def read_one(self, gpuid: str, now_s: float) -> float:
        """Return when the chassis of that device has."""
        ...

    def detach(self, gpuid: str, now_s: float) -> float:
        """Return when the chassis answers; whether it did so the next look at ``node_of`` shows."""
        ...

    def attach(self, gpuid: str, node: str, now_s: float) -> float:
        """Return when the chassis answers."""
        ...

    def can_reach(self, gpuid: str, node: str) -> bool:
        """Return whether the node is cabled to the device's chassis."""
        ...

    def node_of(self, gpuid: str, now_s: float) -> str | None:
        """Return the node on whose port the device is, None for one that is free."""
        ...

    def usable_s(self, node: str, gpuid: str, moved_s: float) -> float:
        """Return when a device that was attached to the node then counts among those it can hand out, or one that was
        taken from it no longer does."""
        ...


class SimulatedCluster(Struct, frozen=True):
    """What a placer works on. ``free``: pool -> devices that are on no port; ``moves`` is None where nothing moves."""

    nodes: tuple[SimulatedNode, ...]
    free: Mapping[str, tuple[SimulatedDevice, ...]] = field(default_factory=dict)
    moves: DeviceMoves | None = None


class JobSpot(Struct, eq=False):
    """Where a job runs. Not ``ready``: its devices are on their way, and ``advance`` will return it when they are
    there, or when it is given up: its job then waits again. ``retry_s``: it is tried after so many seconds though
    nothing changes. ``idle``: devices of the node that no running job holds, its own included; ``shown_s``: when its
    pod is shown Running, as the engine has it; ``token`` is the placer's own."""

    node: str
    ready: bool = True
    idle: int = 0
    token: Any = None
    shown_s: float = math.inf
    retry_s: float | None = None


class JobPlacer(Protocol):
    """Where jobs go."""

    @property
    def moved(self) -> int:
        """How many devices it moved."""
        ...

    @property
    def reconfigurations(self) -> int:
        """How often it moved some."""
        ...

    @property
    def gives_up(self) -> bool:
        """Whether some of its spots may be given up."""
        ...

    @property
    def holds_cycle(self) -> bool:
        """Whether nobody is to be tried now."""
        ...

    @property
    def woke(self) -> bool:
        """Whether what the last ``advance`` did may be room for jobs that were refused."""
        ...

    def could_ever(self, job: SimulatedJob) -> bool:
        """Return whether the job would fit if nothing else ran."""
        ...

    def place(self, job: SimulatedJob, now_s: float) -> JobSpot | None:
        """Give the job its room; None where there is none now."""
        ...

    def release(self, job: SimulatedJob, spot: JobSpot, now_s: float) -> None:
        """The job has ended: its room is free."""
        ...

    def next_s(self) -> float | None:
        """Return when the next thing happens that the placer itself has begun; None where nothing is under way."""
        ...

    def advance(self, now_s: float) -> Sequence[JobSpot]:
        """Do what is due by now; the spots that became ready by it, or were given up."""
        ...


class SteadyPlacer:
    """The half of a JobPlacer that moves nothing: a job has its room at once, or waits until another one has ended."""

    moved = 0
    reconfigurations = 0
    gives_up = holds_cycle = woke = False

    def next_s(self) -> float | None:
        """Return None, since nothing is ever under way."""
        return None

    def advance(self, now_s: float) -> Sequence[JobSpot]:
        """Return no spots, since all are ready from the start."""
        return ()


class ElasticRun(Struct, eq=False):
    """A job of an elastic policy: ``ends_s`` as far as is known now, None while it makes no progress."""

    job: SimulatedJob
    node: str = ""
    began_s: float | None = None
    ends_s: float | None = None
    workers: int = 0
    devices: int = 0
    cpu_milli: int = 0


class ElasticScheduler(Protocol):
    """A policy that changes jobs while they run, and so keeps its own line. ``submit`` and ``end`` book; ``decide``
    decides and returns every run whose start, end or size it changed."""

    moved: int
    reconfigurations: int

    def could_ever(self, job: SimulatedJob) -> bool:
        """Return whether the job would fit if nothing else ran."""
        ...

    def submit(self, job: SimulatedJob, now_s: float) -> None:
        """A job is there."""
        ...

    def end(self, run: ElasticRun, now_s: float) -> None:
        """A job has done all its work."""
        ...

    def decide(self, now_s: float) -> Sequence[ElasticRun]:
        """Return what is decided at this moment."""
        ...

    def next_s(self, now_s: float) -> float | None:
        """Return when time alone may change a decision."""
        ...

    def waiting(self) -> int:
        """Return how many jobs wait."""
        ...


class TracePolicy(Struct, frozen=True):
    """``mews simulate --policy NAME``: one of ``placer`` and ``elastic``, made from the cluster, the chance of ties,
    and the options ``--set NAME=VALUE`` by name (``options`` are those that there are, with what they mean). They
    raise ValueError, in one line, for a cluster or options that they cannot be made with. ``left_out`` says what of
    the system a trace is not played by. ``fractions``: jobs may share a device. ``of_stack``: a system's options in a
    scenario as such options; it raises ValueError, in one line, for those that no trace is played by.

    ``honours`` are the keys of the system's options in a scenario (``scheduler.strict_fcfs``) that ``of_stack`` takes
    over, ``indifferent`` those that change no result of a trace, with the reason; all others are refused there.
    ``order`` names the order of jobs that the options demand, None where they leave it open."""

    name: str
    summary: str
    placer: Callable[[SimulatedCluster, random.Random, Mapping[str, str]], JobPlacer] | None = None
    elastic: Callable[[SimulatedCluster, random.Random, Mapping[str, str]], ElasticScheduler] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    left_out: str = ""
    fractions: bool = False
    moves: bool = False
    of_stack: Callable[[Any], Mapping[str, str]] = lambda options: {}
    honours: tuple[str, ...] = ()
    indifferent: Mapping[str, str] = field(default_factory=dict)
    order: Callable[[Mapping[str, str]], str | None] = lambda options: None
