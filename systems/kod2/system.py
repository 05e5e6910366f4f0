"""KOD2, in one value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, replace

from mews.kube.api.objects import Object
from mews.kube.api.resources import Resource
from mews.kube.component import Runnable
from mews.kube.system.deployment import CONFIG, ComponentDeployment, SystemDeployment, rule
from mews.kube.system.experiment import Experiment
from mews.kube.system.facility import Facility
from mews.kube.system.invariant import Invariant, RunState
from mews.kube.system.journal import Line
from mews.kube.system.options import OptionsModel
from mews.kube.system.ports import Ports
from mews.kube.system.program import PlayedProgram
from mews.kube.system.system import Component, System, Watched, in_module
from mews.kube.system.system_parts import ExposedMeasures, SystemJudging, SystemMeasuring, SystemStudies
from mews.systems.kod2.config import OperatorConfig
from mews.systems.kod2.options import Kod2Options

if TYPE_CHECKING:
    pass


def configure(options: OptionsModel, facility: Facility) -> OperatorConfig:
    """Return the operator's settings. Its limits are weighed against how long jobs train, which is emulated time."""
    config = replace(OperatorConfig(), **options.given())
    config = replace(
        config,
        starve_limit_s=config.starve_limit_s / facility.speed,
        cooldown_s=config.cooldown_s / facility.speed,
        tick_s=config.tick_s / facility.speed,
    )
    return config if facility.namespace is None else replace(config, pool_namespace=facility.namespace)


def _operator(ports: Ports, config: OperatorConfig) -> Runnable:
    from mews.systems.kod2.operator import Kod2Operator

    return Kod2Operator(ports.context, config, ports.measures)


def _monitored() -> ExposedMeasures:
    from mews.systems.kod2.prometheus import Kod2PrometheusMetrics

    return Kod2PrometheusMetrics()


def _kinds() -> Sequence[Object]:
    from mews.systems.kod2.install import crd

    return (crd(),)


def _document(config: OperatorConfig) -> Mapping[str, Any]:
    return asdict(config)


def _swept() -> Sequence[Resource]:
    from mews.systems.kod2.install import TFJOBS

    return (TFJOBS,)


def _pod_templates(tfjob: Mapping[str, Any]) -> Iterator[Any]:
    spec = tfjob.get("spec")
    replicas = spec.get("tfReplicaSpecs") if isinstance(spec, Mapping) else None
    for each in replicas.values() if isinstance(replicas, Mapping) else ():
        yield each.get("template") if isinstance(each, Mapping) else None


_METRICS_PORT = 9090
_WATCH = ("list", "watch")
_OPERATOR_ARGV = (
    "-m", "mews.systems.kod2", "operator", "--config", CONFIG, "--no-crd",
    "--metrics-port", str(_METRICS_PORT), "--metrics-host", "0.0.0.0",
)  # fmt: skip
"""It installs nothing: its kind comes with its manifests."""

_OPERATOR_DEPLOYMENT = ComponentDeployment(
    _OPERATOR_ARGV,
    everywhere=(
        rule("kubeflow.org", ["tfjobs"], [*_WATCH, "delete"]),  # after their time to live
        rule("kubeflow.org", ["tfjobs/status"], ["update"]),
        rule("", ["pods", "services"], ["get", *_WATCH, "create", "delete"]),
        rule("", ["nodes", "limitranges"], _WATCH),
        rule("", ["events"], ["get", "create", "patch"]),
    ),
    in_namespace=(rule("", ["configmaps"], _WATCH),),
    metrics_port=_METRICS_PORT,
    off_control_plane=True,  # the paper's runs outside the master
)


def _watched() -> Sequence[Watched]:
    from mews.systems.kod2.install import TFJOBS
    from mews.systems.kod2.journal import tfjob_news

    return (Watched(TFJOBS, tfjob_news),)


def _metrics(lines: Iterable[Line], speed: float) -> Mapping[str, Any]:
    from mews.systems.kod2.journal import tfjob_metrics

    return tfjob_metrics(lines, speed)


def _invariants() -> Sequence[Invariant[RunState]]:
    from mews.systems.kod2.invariants import JobProgress

    return (JobProgress(),)


def _laws(config: OperatorConfig) -> Sequence[Invariant[RunState]]:
    from mews.systems.kod2.laws import laws

    return laws(config)


def _experiments() -> Sequence[Experiment]:
    from mews.systems.kod2.experiment.paper import FIG4, FIG7, FIG8
    from mews.systems.kod2.experiment.parts import EXPERIMENT

    return (EXPERIMENT, FIG4, FIG7, FIG8)


def _programs() -> Mapping[str, PlayedProgram]:
    from mews.systems.kod2.played import PlayedTraining
    from mews.systems.kod2.training import environment_in

    return {"training": PlayedProgram(PlayedTraining, environment_in)}


SYSTEM: System[OptionsModel, OperatorConfig] = System(
    name="kod2",
    summary="runs TFJobs, and takes workers from some and gives them to others as the cluster fills and empties",
    options=Kod2Options,
    configure=configure,
    components=(Component("operator", _operator, deployment=_OPERATOR_DEPLOYMENT),),
    namespace=lambda config: config.pool_namespace,
    document=_document,
    title="KOD2",
    kinds=_kinds,
    watched=_watched,
    programs=_programs,
    service_names=True,
    deployment=SystemDeployment(
        config_map="kod2-config",
        config_path="/etc/kod2/kod2.yaml",
        owner="operator",
        swept=_swept,
        exclusive="the operator serves the TFJobs of a whole cluster, and this one is somebody's",
        pod_templates=_pod_templates,
    ),
    judging=SystemJudging(
        bounds={"progress_s": 300.0},
        invariants=_invariants,
        laws=_laws,
    ),
    measuring=SystemMeasuring(
        monitored=_monitored,
        metrics=_metrics,
        names={
            "finished_jobs": "TFJobs that came to COMPLETED",
            "failed_jobs": "TFJobs that failed",
            "added_workers": "workers that running TFJobs were given",
            "removed_workers": "workers that running TFJobs gave up",
        },
    ),
    studies=SystemStudies(
        trace_policies=in_module("mews.systems.kod2.simulation", "TRACE_POLICIES"),
        experiments=_experiments,
    ),
)
"""What the harness knows of it."""
