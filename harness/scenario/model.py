"""A scenario file as values (scenarios/README.md); the loader makes them, the JSON Schema is made from them."""

# No annotations from __future__: pydantic would have to read each of them from its text again.
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, PrivateAttr, WithJsonSchema, model_validator

from mews.harness.backends import BackendName
from mews.harness.invariant_registry import INVARIANTS
from mews.harness.options import MOST_SEED
from mews.harness.scenario.actions import Objects, Step
from mews.harness.scenario.base import DialectName, KubeObject, Model, OrScalar, Registered
from mews.harness.scenario.disruption import Disruption
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.images import OwnImages
from mews.harness.scenario.names import NameOf
from mews.harness.scenario.quantity import Seconds, Share, TimeLimit
from mews.harness.scenario.stack import Stack
from mews.harness.scenario.yamlfile import Place, dotted, shown
from mews.kube.system.system import Pooled


class Metadata(Model):
    """What the scenario is called and shows."""

    name: str = Field(min_length=1)
    description: str = ""
    labels: dict[str, str] = Field(default_factory=dict)


class Requires(Model):
    """What the scenario needs; if it is not available, the scenario is skipped with the reason."""

    time: Literal["virtual", "wall"] | None = None
    dialect: tuple[DialectName, ...] = ()
    cluster: tuple[BackendName, ...] = ()
    features: tuple[Literal["logs", "exec", "kill", "cut", "root", "fuse", "nvml"], ...] = ()
    node_cpus: int = Field(default=0, ge=0)
    unscaled: tuple[str, ...] = Field(
        default=(),
        description="times of the stack that --speed does not divide, such as pooldra.keepS, and that the steps depend "
        "on: skipped at other speeds than 1",
    )


class JobType(Model):
    """What a job of a type asks for."""

    gpus: int = Field(default=0, ge=0)
    cpus: str | int | float = 0
    memory: str | None = None
    duration: Seconds | None = None


class Job(Model):
    """One job of a workload; what its type says may be left out."""

    job: str
    type: str | None = None
    arrival: Seconds
    gpus: int | None = Field(default=None, ge=0)
    cpus: str | int | float | None = None
    duration: Seconds | None = None


_BY_POOL = "default: that of the system of the stack that pools devices"


class PodTemplate(Model):
    """The pod made for each job. ``{job}``, ``{type}`` and ``{duration}`` (seconds) are filled in in the command and
    the annotations. The default image runs for as long as its annotation says."""

    scheduler_name: str | None = Field(default=None, description=_BY_POOL)
    image: str = "mews/train"
    command: tuple[str, ...] = ()
    resource: str | None = Field(default=None, description=_BY_POOL)
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=lambda: {"mews.dev/duration-s": "{duration}"})
    priority_class_name: str | None = None
    namespace: str = "default"

    def pooling(self, pooled: Pooled | None) -> Self:
        """Return the same with what it leaves to the stack."""
        scheduler, resource = (None, None) if pooled is None else (pooled.scheduler, pooled.resource)
        return self.model_copy(
            update={
                "scheduler_name": self.scheduler_name or scheduler or "default-scheduler",
                "resource": self.resource or resource,
            }
        )


Complain = Callable[[Place, str], str]
"""Puts file and line, or the override, in front of a complaint about a place."""


class WorkloadGate(Model):
    """What the driver waits for before it creates the next pod."""

    pending: bool | None = Field(default=None, description="until no pod of the workload is Pending")
    every: Seconds | None = Field(
        default=None,
        description="how often it polls, as a script would; default: it reacts to every change immediately",
    )

    @model_validator(mode="after")
    def _looks_often_enough(self) -> Self:
        if self.every is not None and self.every <= 0:
            raise ValueError("every: must be above 0")
        if self.every is not None and not self.pending:
            raise ValueError("every: applies only to pending: {pending, every: 1s}")
        return self


def _gate(value: Any) -> Any:
    if value in ("none", "pending"):
        return {"pending": value == "pending"}
    if isinstance(value, dict) and "pending" in value and value["pending"] is None:
        return {**value, "pending": True}  # as in {pending, every: 1s}
    return value


class Workload(Model):
    """Jobs that arrive over time: written here, or read from a CSV ``trace``."""

    trace: str | None = None
    select: dict[str, str | int | float] = Field(default_factory=dict, description="only rows with these values")
    jobs: tuple[Job, ...] | None = Field(default=None, min_length=1)
    types: dict[str, JobType] = Field(default_factory=dict)
    duration: Seconds = Field(default=300.0, description="of jobs without a duration")
    duration_per_gpu: Seconds = Field(
        default=0.0, description="what each of its GPUs adds to a job whose duration is not in the trace"
    )
    gate: Annotated[WorkloadGate, BeforeValidator(_gate), OrScalar("string")] = Field(default_factory=WorkloadGate)
    pod: PodTemplate = Field(default_factory=PodTemplate)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.trace is None) == (self.jobs is None):
            raise ValueError("must have either trace: FILE.csv or jobs: […]")
        return self


Finite = Annotated[float, Field(allow_inf_nan=False)]


class MetricBound(Model):
    """What a metric must be: ``{of: 82.7, within: 10%}``, ``{min: 1, max: 3}`` or ``{is: 1}``."""

    of: Finite | None = None
    within: Share | None = None
    min: Finite | None = None
    max: Finite | None = None
    is_: Finite | None = Field(default=None, alias="is")

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if (self.of is None) != (self.within is None):
            raise ValueError("of and within belong together: {of: 82.7, within: 10%}")
        if self.of is None and self.min is None and self.max is None and self.is_ is None:
            raise ValueError("must bound something: {of, within}, min, max or is")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("no value can be at least min and at most max: min is above max")
        return self


def _bound(value: Any) -> Any:
    return {"is": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


Bound = Annotated[MetricBound, BeforeValidator(_bound), OrScalar("number")]
OWN_METRICS: Mapping[str, str] = MappingProxyType(
    {
        "mean_wait_s": "mean of each job's startTime less its planned arrival",
        "mean_jct_s": "mean of each job's end less its planned arrival",
        "moved_gpus": "attaches that were completed",
        "makespan_s": "from the start of the workload to the last end of a job",
        "cpu_utilisation": "CPU seconds asked for by running jobs, over those there were",
        "mean_gpus_used": "GPUs in use, averaged over the time from the first arrival to the last end",
    }
)
"""Those that the harness measures itself -> what each is; times in emulated seconds."""
MetricName = Annotated[str, NameOf(OWN_METRICS, lambda system: system.measuring.names)]
BoundName = Annotated[
    str, NameOf(("allocatable_s", "scheduled_s", "unattached_s", "settle_s"), lambda system: system.judging.bounds)
]


class Scenario(Model):
    """One scenario. ``hardware`` is a path (after loading an absolute one) or the hardware itself."""

    api_version: Literal["mews/v1"]
    kind: Literal["Scenario"]
    metadata: Metadata
    hardware: str | dict[str, Any]
    stack: Stack = Field(default_factory=Stack)
    images: OwnImages = Field(default_factory=dict, description="your images, by name or pattern")
    unknown_images: Literal["fail", "idle", "container"] | None = Field(
        default=None, description="what containers of other images do: fail to be pulled (default; `mews up`: idle)"
    )
    requires: Requires = Field(default_factory=Requires)
    seed: int = Field(default=1, ge=0, le=MOST_SEED)
    order: int = Field(
        default=0, ge=0, le=MOST_SEED, description="draws in which order things due at one moment happen; 0: as always"
    )
    timeout: TimeLimit = Field(default=7200.0, description="of the whole scenario")
    step_timeout: TimeLimit = Field(default=300.0, description="of steps without a timeout")
    bounds: dict[BoundName, Seconds | None] = Field(
        default_factory=dict, description="how long the invariants let things take; null: no limit"
    )
    bindings: dict[str, Any] = Field(
        default_factory=dict, description="names for values: ${name} stands for the value, also below stack or workload"
    )
    templates: dict[str, KubeObject] = Field(
        default_factory=dict,
        description="objects in which ${name} stands: {template: NAME, with: {…}} where objects are",
    )
    objects: Objects | tuple[()] = Field(default=(), description="applied before the first step")
    steps: tuple[Step, ...] = ()
    disruptions: tuple[Disruption, ...] = Field(
        default=(), description="run during the steps, each at its moment; the run lasts until all are done"
    )
    tail: Seconds = Field(default=0.0, description="how long the run continues after steps and disruptions")
    quiet: Seconds = Field(
        default=0.0, description="how long nothing may go round at the end of tail: no sort of journal line 20 times"
    )
    judged_by: Literal["checks", "waits", "laws"] = Field(
        default="checks",
        description="laws: only invariants decide, and no failed step ends the run; waits: waits decide, too, with "
        "new time limits after the last disruption",
    )
    catch: tuple[Step, ...] = Field(default=(), description="run once it has failed, to gather what it came to")
    finally_: tuple[Step, ...] = Field(default=(), alias="finally", description="always run, also after a failure")
    workload: Workload | None = None
    metrics: dict[MetricName, Bound] = Field(default_factory=dict)
    invariants: tuple[Annotated[str, Registered(INVARIANTS)], ...] = Field(
        default=(), description="more invariants, by module:callable; invariants of installed packages always apply"
    )
    expects: tuple[int, ...] = Field(
        default=(), description="numbers of invariants that this run breaks, to show it; not breaking them fails it"
    )
    path: Annotated[Path | None, WithJsonSchema({"type": "null"})] = Field(default=None, exclude=True, repr=False)
    _complain: Complain | None = PrivateAttr(None)
    _allow_outside: bool = PrivateAttr(False)
    _included: tuple[Path, ...] = PrivateAttr(())

    @model_validator(mode="after")
    def _workload_there(self) -> Self:
        if self.workload is None and any(step.workload for step in self.all_steps):
            raise ValueError(
                "a step starts the workload, but the scenario has no workload: add workload: {trace: …} or {jobs: …}"
            )
        return self

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """Whatever may be done: ``steps``, ``disruptions``, ``catch`` and ``finally``."""
        return (*self.steps, *self.disruptions, *self.catch, *self.finally_)

    @property
    def included(self) -> tuple[Path, ...]:
        """The files that were read beside its own: what it includes, and its objects."""
        return self._included

    @property
    def folder(self) -> Path | None:
        """Where its file lies: modules that it names are looked up there first."""
        return None if self.path is None else self.path.parent

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name

    @property
    def allow_outside(self) -> bool:
        """Whether the user lets it name files outside its folder."""
        return self._allow_outside

    def read_with(self, complain: Complain, *, allow_outside: bool = False, included: Iterable[Path] = ()) -> Self:
        """Return the same as it was read from a file, whose lines ``complain`` knows."""
        read = self.model_copy()
        read._complain, read._allow_outside, read._included = complain, allow_outside, tuple(included)
        return read

    def refusal(self, place: Place, value: Any, message: str) -> ScenarioError:
        """Return the complaint about a value of this scenario: one line with its place in the file."""
        text = f"{dotted(place)}: {shown(value)}: {message}"
        if self._complain is None:
            return ScenarioError(f"{self.path or self.name}: {text}")
        return ScenarioError(self._complain(place, text))
