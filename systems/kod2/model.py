"""What the elastic scheduler decides about, as values: nodes, jobs, queues, options, decisions (contract kod2.md 2).

Amounts are whole numbers in the order of one tuple of dimensions that the caller fixes: CPU in millicores first, memory
in bytes second, then what else counts per node (the number of pods, extended resources).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct, field

CPU, MEMORY = 0, 1
_WORKER = "worker-"


class Mode(StrEnum):
    """The contract's rules, or the paper's pseudocode with its mistakes."""

    CORRECTED = "corrected"
    LITERAL = "literal"


class State(StrEnum):
    """States of a job (Fig. 5)."""

    WAITING = "WAITING"
    RUNNING = "RUNNING"
    STARVING = "STARVING"
    COMPLETED = "COMPLETED"


class TaskRequest(Struct, frozen=True):
    """What one task (pod) asks for. ``pooled``: devices that its node's pool gives; ``nodes``: where it may run at all
    (None: anywhere)."""

    amounts: tuple[int, ...]
    pooled: int = 0
    nodes: frozenset[str] | None = None


class ElasticJob(Struct, frozen=True):
    """A TFJob as the scheduler sees it. ``fixed`` are the tasks that never scale: parameter servers first, then chief
    and evaluators; ``arrived_s`` is its entry to the waiting queue."""

    key: str
    arrived_s: float
    fixed: tuple[tuple[str, TaskRequest], ...]
    worker: TaskRequest
    minimum: int
    wanted: int
    maximum: int


class WaitingJob(Struct, frozen=True):
    """A job in the waiting queue. ``refused``: its pods were not let in the last time, so it goes behind all others and
    takes nothing from anybody."""

    job: ElasticJob
    starving: bool = False
    refused: bool = False


class Running(Struct, frozen=True):
    """A job in the running queue: task -> node, of tasks that hold resources or are about to.

    ``scaled_s``: its last scale-in or scale-out, None before the first; ``finishing``: a worker has ended, so it grows
    no more; ``ended``: task -> node of those that ended a moment ago, whose room counts as held until ``settled_s``
    (or the job's end, which is likely then) and scales no more; ``held``: it neither gives nor gets workers for now;
    ``target``: its ``replicas`` were set to so many since it was looked at last.
    """

    job: ElasticJob
    tasks: Mapping[str, str]
    scaled_s: float | None = None
    finishing: bool = False
    ended: Mapping[str, str] = field(default_factory=dict)
    settled_s: float | None = None
    held: bool = False
    target: int | None = None

    @property
    def workers(self) -> list[int]:
        """The indices of its workers, ascending."""
        return sorted([worker_index(task) for task in self.tasks if task.startswith(_WORKER)])

    @property
    def worker_count(self) -> int:
        """How many workers it has."""
        return len([task for task in self.tasks if task.startswith(_WORKER)])


class NodeRoom(Struct, frozen=True):
    """A node that takes pods. ``free`` is its allocatable less what pods of others hold: all that TFJobs may share."""

    name: str
    allocatable: tuple[int, ...]
    free: tuple[int, ...]
    pool: str | None = None


class ClusterState(Struct, frozen=True):
    """All nodes, and each pool's devices less those that pods of others hold."""

    nodes: tuple[NodeRoom, ...]
    pools: Mapping[str, int] = field(default_factory=dict)


class Queues(Struct, frozen=True):
    """Everything that one scheduling decision looks at."""

    cluster: ClusterState
    waiting: tuple[WaitingJob, ...] = ()
    running: tuple[Running, ...] = ()


class Options(Struct, frozen=True):
    """The scheduler's settings. The last four switch parts off for ablations, ``backfill`` lets others pass a head of
    the queue that cannot be placed."""

    mode: Mode = Mode.CORRECTED
    starve_limit_s: float = 30.0
    cooldown_s: float = 60.0
    backfill: bool = False
    preemption: bool = True
    scale_out: bool = True
    affinity: bool = True


class Placed(Struct, frozen=True):
    """A waiting job starts: task -> node."""

    job: str
    tasks: Mapping[str, str]


class ScaledIn(Struct, frozen=True):
    """Workers are taken from a running job, for the job ``beneficiary``; "": its own spec has no use for them (tasks of
    any kind, then)."""

    job: str
    tasks: tuple[str, ...]
    beneficiary: str


class ScaledOut(Struct, frozen=True):
    """Workers are added to a running job: task -> node."""

    job: str
    tasks: Mapping[str, str]


class Starved(Struct, frozen=True):
    """A waiting job has waited for longer than the limit."""

    job: str


Decision = Placed | ScaledIn | ScaledOut | Starved


class WaitReason(Struct, frozen=True):
    """Why a job waits: ``code`` as an event's reason, ``text`` a sentence for people."""

    code: str
    text: str


class SchedulingDecision(Struct, frozen=True):
    """What to do, in this order, and why each job that still waits does."""

    decisions: tuple[Decision, ...]
    reasons: Mapping[str, WaitReason]


def worker_task(index: int) -> str:
    """Return the name of a worker among its job's tasks."""
    return f"{_WORKER}{index}"


def is_worker(task: str) -> bool:
    """Return whether a task scales."""
    return task.startswith(_WORKER)


@lru_cache(maxsize=8192)
def worker_index(task: str) -> int:
    """Return the index of a worker."""
    return int(task.rpartition("-")[2])


def is_server(task: str) -> bool:
    """Return whether a task is a parameter server."""
    return task.startswith("ps-")
