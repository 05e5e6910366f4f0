"""KubeComp, in one value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mews.kube.system.deployment import (
    CONFIG,
    ON_NODE,
    RECORDS,
    SCHEDULER_RULES,
    ComponentDeployment,
    SystemDeployment,
    rule,
)
from mews.kube.system.system import EDIT_TABLES, Component, Pooled, System, Watched, in_module
from mews.kube.system.system_parts import ExposedMeasures, SystemJudging, SystemMeasuring, SystemStudies
from mews.systems.kubecomp.config import AllocateConfig, ChassisConfig, KubeCompConfig, NodeConfig
from mews.systems.kubecomp.options import KubeCompOptions
from mews.systems.kubecomp.reaction import reaction

if TYPE_CHECKING:
    from mews.kube.api.objects import Object
    from mews.kube.component import Runnable
    from mews.kube.system.facility import Facility
    from mews.kube.system.invariant import Invariant, RunState
    from mews.kube.system.journal import Line
    from mews.kube.system.ports import Ports
    from mews.kube.system.profile import MakeOverhead
    from mews.systems.kubecomp.metrics import KubeCompMemoryMetrics


RECONFIG_MANAGER = "reconfig-manager"
"""The component's name. Somebody else's knows pods that use devices by an annotation (``KubeCompConfig.marks_all``)."""


def configure(options: KubeCompOptions, facility: Facility) -> KubeCompConfig:
    """Return the configuration with these options: nodes without a cable are in no pool."""
    changed, timing = options.changes()
    if RECONFIG_MANAGER in facility.foreign:
        changed = {"marks_all": True, **changed}
    config = KubeCompConfig(
        chassis=tuple(
            ChassisConfig(
                each.name,
                each.index,
                pool=each.pool,
                endpoint=each.endpoint,
                dialect=each.dialect,
                ca_file=each.ca_file,
                prefixed=each.prefixed,
            )
            for each in facility.chassis
        ),
        nodes=tuple(
            NodeConfig(node.name, node.ports, node.pool, node.lent_to, node.remedied)
            for node in facility.nodes
            if node.ports
        ),
        allocate=AllocateConfig(facility.extras.envs, facility.extras.mounts),
        foreign=tuple(sorted(facility.foreign)),
        **changed,
    )
    config = replace(config, timing=replace(config.timing, **timing), sysfs_root=facility.host_files)
    if facility.nvidia_smi:
        config = replace(config, nvidia_smi=facility.nvidia_smi)
    return config if facility.namespace is None else replace(config, namespace=facility.namespace)


def _scheduler(ports: Ports, config: KubeCompConfig) -> Runnable:
    from mews.kube.scheduling.config import SchedulerConfig
    from mews.kube.scheduling.scheduler import Scheduler
    from mews.systems.kubecomp.plugin import kubecomp_profile, profile_with

    plugin = ports.part("plugin")
    profile = (
        kubecomp_profile(config, metrics=ports.measures, score=ports.part("policy"), devices=ports.devices)
        if plugin is None
        else profile_with(config, plugin, ports.devices)
    )
    return Scheduler(ports.context, SchedulerConfig((profile,)))


def _reconfig_manager(ports: Ports, config: KubeCompConfig) -> Runnable:
    from mews.systems.kubecomp.reconfig_manager import ReconfigManager

    return ReconfigManager(ports.context, config, ports.chassis(config.timing.chassis_timeout_s), ports.measures)


def _device_manager(ports: Ports, config: KubeCompConfig) -> Runnable:
    from mews.kube.system.host_steps import HostSteps
    from mews.kube.system.sysfs import SysfsConfirm
    from mews.systems.kubecomp.device_manager import ChassisDeviceManager

    node = ports.node
    assert node is not None, "each node has a device manager of its own"
    return ChassisDeviceManager(
        ports.context,
        replace(config, allocate=AllocateConfig(node.extras.envs, node.extras.mounts)),
        node.name,
        chassis=ports.chassis(config.timing.chassis_timeout_s),
        link=node.link,
        pod_resources=node.pod_resources,
        confirm=None if node.files is None else SysfsConfirm(node.files),
        steps=None if node.files is None else HostSteps(node.files, node.driver, config.timing),
    )


def _nodes(config: KubeCompConfig) -> Sequence[str]:
    return [node.name for node in config.nodes]


def _pooled(config: KubeCompConfig) -> Pooled:
    return Pooled(
        resource=config.resource,
        device_kind=config.device_kind,
        scheduler=config.scheduler_name,
        device_env=config.uuid_env,
        announcer="device-manager",
        surprise=config.removal == "surprise" or RECONFIG_MANAGER in config.foreign,
        unannounced=tuple(node.name for node in config.nodes if node.lent_to),
        awaited=_awaited,
        chosen=_chosen,
    )


def _awaited(pod: Object, resource: str) -> str:
    from mews.systems.kubecomp.annotations import awaited

    return awaited(pod, resource)


def _chosen(pod: Object) -> str:
    from mews.systems.kubecomp.annotations import chosen_node

    return chosen_node(pod)


def _document(config: KubeCompConfig) -> Mapping[str, Any]:
    from mews.systems.kubecomp.config_file import as_document

    return as_document(config)


def _watched() -> Sequence[Watched]:
    from mews.kube.api.resources import CONFIGMAPS
    from mews.systems.kubecomp.board_lines import board_news

    return (Watched(CONFIGMAPS, board_news),)


def _laws(config: KubeCompConfig) -> Sequence[Invariant[RunState]]:
    from mews.systems.kubecomp.laws import laws

    return laws(config)


def _measures() -> KubeCompMemoryMetrics:
    from mews.systems.kubecomp.metrics import KubeCompMemoryMetrics

    return KubeCompMemoryMetrics()


def _monitored() -> ExposedMeasures:
    from mews.systems.kubecomp.prometheus import KubeCompPrometheusMetrics

    return KubeCompPrometheusMetrics()


def _measured(measures: KubeCompMemoryMetrics) -> Mapping[str, Any]:
    from mews.systems.kubecomp.metrics import KubeCompCounter

    return {
        "phase_seconds": measures.phase_seconds(),
        "reconfigurations": measures.counts[KubeCompCounter.RECONFIGURATIONS],
        "reconfiguration_phases": [timing.as_dict() for timing in measures.reconfigurations],
    }


def _argv(component: str) -> Sequence[str]:
    return ("-m", "mews.systems.kubecomp", component, "--config", CONFIG, "--records", RECORDS)


_WATCH = ("list", "watch")
_BOARDS = rule("", ["configmaps"], ["get", *_WATCH, "create", "patch"])
"""What the parts tell each other is in ConfigMaps of their namespace."""

_SCHEDULER_DEPLOYMENT = ComponentDeployment(
    _argv("scheduler"),
    everywhere=SCHEDULER_RULES,
    in_namespace=(rule("", ["configmaps"], _WATCH),),
    chassis=True,
    part_flags={"plugin": "--plugin", "policy": "--score"},
)
_RECONFIG_MANAGER_DEPLOYMENT = ComponentDeployment(
    _argv(RECONFIG_MANAGER),
    everywhere=(rule("", ["pods"], _WATCH), rule("", ["events"], [*_WATCH, "create", "patch"])),
    in_namespace=(_BOARDS,),
    chassis=True,
)
_DEVICE_MANAGER_DEPLOYMENT = ComponentDeployment(
    _argv("device-manager"),
    everywhere=(rule("", ["pods"], ["list"]), rule("", ["events"], [*_WATCH, "create", "patch"])),
    in_namespace=(_BOARDS,),
    security=ON_NODE,
    kubelet_folders=True,
    host_files=True,
    chassis=True,
    where_remedied=(rule("", ["nodes"], _WATCH),),
    where_lent=(rule("", ["nodes"], [*_WATCH, "patch"]),),  # whose devices another system has, it asks by annotations
)


def _counted(lines: Iterable[Line], speed: float) -> Mapping[str, Any]:
    from mews.systems.kubecomp.results import reconfigurations

    return {"reconfigurations": reconfigurations(lines)}


def _steps(config: KubeCompConfig, lines: Iterable[Line]) -> Mapping[int, str]:
    from mews.systems.kubecomp.steps import steps

    return steps(config, lines)


def _profiles() -> Mapping[str, MakeOverhead]:
    from mews.systems.kubecomp.testbed import testbed_overhead

    return {"testbed": testbed_overhead}


SYSTEM: System[KubeCompOptions, KubeCompConfig] = System(
    name="kubecomp",
    sole=frozenset({EDIT_TABLES}),
    summary="places pods on pools of composable devices, and moves devices to where pods wait for them",
    options=KubeCompOptions,
    configure=configure,
    components=(
        Component(
            "scheduler",
            _scheduler,
            wanted=lambda options: options.scheduler is not None,
            scheduler=lambda config: config.scheduler_name,
            parts={
                "plugin": "the scheduler's handle",
                "policy": "the devices requested and those available",
            },
            deployment=_SCHEDULER_DEPLOYMENT,
        ),
        Component(
            RECONFIG_MANAGER,
            _reconfig_manager,
            wanted=lambda options: options.reconfig_manager is not None,
            deployment=_RECONFIG_MANAGER_DEPLOYMENT,
            knows_by_chassis=True,
        ),
        Component(
            "device-manager",
            _device_manager,
            wanted=lambda options: options.device_manager is not None,
            nodes=_nodes,
            deployment=_DEVICE_MANAGER_DEPLOYMENT,
        ),
    ),
    title="KubeComp",
    namespace=lambda config: config.namespace,
    document=_document,
    pooled=_pooled,
    watched=_watched,
    deployment=SystemDeployment(
        config_map="kubecomp-config", config_path="/etc/kubecomp/config.yaml", owner="kubecomp"
    ),
    judging=SystemJudging(
        laws=_laws,
        reaction=reaction,
    ),
    measuring=SystemMeasuring(
        measures=_measures,
        measured=_measured,
        monitored=_monitored,
        metrics=_counted,
        names={"reconfigurations": "moves of GPUs that Reconfig-Mgr began because a pod needed them"},
        steps=_steps,
    ),
    studies=SystemStudies(
        profiles=_profiles,
        trace_policies=in_module("mews.systems.kubecomp.simulation", "TRACE_POLICIES"),
        experiments=in_module("mews.systems.kubecomp.experiment.all", "EXPERIMENTS"),
    ),
)
"""What the harness knows of it."""
