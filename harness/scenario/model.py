"""A scenario file as values (scenarios/README.md); the loader makes them, the JSON Schema is made from them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from mews.harness.backends import BackendName
from mews.harness.scenario.actions import Objects, Step
from mews.harness.scenario.base import Model, OrScalar
from mews.harness.scenario.quantity import Seconds, Share
from mews.harness.scenario.replacement import ComponentName, Extender, Replacement
from mews.systems.kubecomp.config import RESOURCE, SCHEDULER


class Metadata(Model):
    """What the scenario is called and shows."""

    name: str
    description: str = ""
    labels: dict[str, str] = Field(default_factory=dict)


class SchedulerOptions(Model):
    """Options of the KubeComp scheduler; further ones are the component's own."""

    model_config = ConfigDict(extra="allow")

    policy: Literal["both", "best-fit", "least-demand", "none"] = "both"
    strict_fcfs: bool = False


class KubeCompStack(Model):
    """Which parts of KubeComp run, and their options (kubecomp.md section 2). ``null`` leaves a part out."""

    scheduler: SchedulerOptions | None = Field(default_factory=SchedulerOptions)
    reconfig_manager: dict[str, Any] | None = Field(default_factory=dict)
    device_manager: dict[str, Any] | None = Field(default_factory=dict)
    config: dict[str, Any] = Field(default_factory=dict, description="options shared by all parts, as in their file")


class ControllerOptions(Model):
    """Which controllers run, and whose."""

    run: tuple[str, ...] = Field(
        default=("*",), description="as kube-controller-manager's --controllers: * all, a name, -name all but that one"
    )
    program: Literal["ours", "kube-controller-manager"] | None = Field(
        default=None, description="by default ours on embedded, kube-controller-manager on control-plane"
    )

    @model_validator(mode="after")
    def _known(self) -> ControllerOptions:
        from mews.kube.emulated.controllers.catalogue import chosen

        if self.program != "kube-controller-manager":
            chosen(self.run)
        return self


class Stack(Model):
    """The software of the run. A mapping is options, passed on; ``null`` leaves the part out."""

    kubecomp: KubeCompStack | None = Field(default_factory=KubeCompStack)
    default_scheduler: dict[str, Any] | None = Field(
        default_factory=dict, description="options of NodeResourcesFit; scoring: random takes any node that fits"
    )
    kod2: dict[str, Any] | None = Field(
        default=None,
        description="the operator of TFJobs, with its options; scheduling: tf-operator is a baseline",
    )
    controllers: ControllerOptions = Field(default_factory=ControllerOptions)
    kubelet: dict[str, Any] = Field(default_factory=dict)
    dialect: Literal["h3api", "resource-pool", "redfish"] | None = None
    profile: Literal["instant", "testbed"] | None = Field(
        default=None, description="what starting a pod costs on the hosts; testbed: as measured"
    )

    replace: dict[ComponentName, Replacement] = Field(default_factory=dict, description="yours instead of ours")
    extenders: tuple[Extender, ...] = Field(default=(), description="of the default scheduler, kube-scheduler then")

    @model_validator(mode="after")
    def _something_to_replace(self) -> Stack:
        parts = self.kubecomp
        there = {
            "default-scheduler": self.default_scheduler is not None,
            "scheduler": parts is not None and parts.scheduler is not None,
            "reconfig-manager": parts is not None and parts.reconfig_manager is not None,
            "device-manager": parts is not None and parts.device_manager is not None,
        }
        for name, yours in self.replace.items():
            if not there[name]:
                raise ValueError(f"replace.{name}: there is none to be replaced: the stack leaves it out (null)")
            if yours.plugin is not None and not name.endswith("scheduler"):
                raise ValueError(f"replace.{name}.plugin: only schedulers have plugins; use process, image or manifest")
            if yours.policy is not None and name != "scheduler":
                raise ValueError(f"replace.{name}.policy: only scheduler has a policy of node scores")
        if self.extenders and (self.default_scheduler is None or "default-scheduler" in self.replace):
            raise ValueError("extenders: they are the default scheduler's: it must be there and not be replaced")
        return self


class Requires(Model):
    """What the scenario needs; where it cannot be had, it is skipped with the reason."""

    time: Literal["virtual", "wall"] | None = None
    dialect: tuple[Literal["h3api", "resource-pool", "redfish"], ...] = ()
    cluster: tuple[BackendName, ...] = ()
    features: tuple[Literal["logs", "exec", "kill", "cut", "root", "fuse", "nvml"], ...] = ()
    node_cpus: int = 0


class JobType(Model):
    """What a job of a type asks for."""

    gpus: int = 0
    cpus: str | int | float = 0
    memory: str | None = None
    duration: Seconds | None = None


class Job(Model):
    """One job of a workload; what its type says may be left out."""

    job: str
    type: str | None = None
    arrival: Seconds
    gpus: int | None = None
    cpus: str | int | float | None = None
    duration: Seconds | None = None


class PodTemplate(Model):
    """The pod made for each job. ``{job}``, ``{type}`` and ``{duration}`` (seconds) are filled in in the command and
    the annotations. The default image runs for as long as its annotation says."""

    scheduler_name: str = SCHEDULER
    image: str = "mews/train"
    command: tuple[str, ...] = ()
    resource: str = RESOURCE
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=lambda: {"mews.dev/duration-s": "{duration}"})
    priority_class_name: str | None = None
    namespace: str = "default"


Hosts = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value), OrScalar("string")
]


class Workload(Model):
    """Jobs that arrive over time: written here, or read from a CSV ``trace``."""

    trace: str | None = None
    select: dict[str, str | int | float] = Field(default_factory=dict, description="only rows with these values")
    jobs: tuple[Job, ...] | None = None
    types: dict[str, JobType] = Field(default_factory=dict)
    duration: Seconds = Field(default=300.0, description="of jobs that say nothing else")
    gate: Literal["none", "pending"] = "none"
    first_on: Hosts = Field(
        default=(), description="the hosts that the first jobs prefer, where a replayed run's coin tosses are known"
    )
    pod: PodTemplate = Field(default_factory=PodTemplate)

    @model_validator(mode="after")
    def _one_source(self) -> Workload:
        if (self.trace is None) == (self.jobs is None):
            raise ValueError("must have either trace: FILE.csv or jobs: […]")
        return self


class MetricBound(Model):
    """What a metric must be: ``{of: 82.7, within: 10%}``, ``{min: 1, max: 3}`` or ``{is: 1}``."""

    of: float | None = None
    within: Share | None = None
    min: float | None = None
    max: float | None = None
    is_: float | None = Field(default=None, alias="is")

    @model_validator(mode="after")
    def _bounded(self) -> MetricBound:
        if (self.of is None) != (self.within is None):
            raise ValueError("of and within belong together: {of: 82.7, within: 10%}")
        if self.of is None and self.min is None and self.max is None and self.is_ is None:
            raise ValueError("must bound something: {of, within}, min, max or is")
        return self


def _bound(value: Any) -> Any:
    return {"is": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


Bound = Annotated[MetricBound, BeforeValidator(_bound), OrScalar("number")]
MetricName = Literal[
    "mean_wait_s",
    "mean_jct_s",
    "moved_gpus",
    "reconfigurations",
    "makespan_s",
    "cpu_utilisation",
    "mean_gpus_used",
    "finished_jobs",
    "failed_jobs",
    "added_workers",
    "removed_workers",
]


BoundName = Literal["allocatable_s", "scheduled_s", "unattached_s", "settle_s", "progress_s"]


class Scenario(Model):
    """One scenario. ``hardware`` is a path (after loading an absolute one) or the hardware itself."""

    api_version: Literal["mews/v1"]
    kind: Literal["Scenario"]
    metadata: Metadata
    hardware: str | dict[str, Any]
    stack: Stack = Field(default_factory=Stack)
    requires: Requires = Field(default_factory=Requires)
    seed: int = 1
    timeout: Seconds = Field(default=7200.0, description="of the whole scenario")
    step_timeout: Seconds = Field(default=300.0, description="of steps that say nothing else")
    bounds: dict[BoundName, Seconds | None] = Field(
        default_factory=dict, description="how long the invariants let things take; null: no limit"
    )
    objects: Objects | tuple[()] = Field(default=(), description="applied before the first step")
    steps: tuple[Step, ...] = ()
    finally_: tuple[Step, ...] = Field(default=(), alias="finally", description="always run, whatever happened")
    workload: Workload | None = None
    metrics: dict[MetricName, Bound] = Field(default_factory=dict)
    expects: tuple[int, ...] = Field(
        default=(), description="numbers of invariants that this run breaks, to show it; not breaking them fails it"
    )
    path: Annotated[Path | None, WithJsonSchema({"type": "null"})] = Field(default=None, exclude=True, repr=False)

    @model_validator(mode="after")
    def _workload_there(self) -> Scenario:
        if self.workload is None and any(step.workload for step in (*self.steps, *self.finally_)):
            raise ValueError("a step starts the workload, but there is none: add workload: {trace: …} or {jobs: …}")
        return self

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name
