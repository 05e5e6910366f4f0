"""Koordinator, in one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from pydantic.alias_generators import to_camel

from mews.kube.api.objects import Object
from mews.kube.api.resources import PODS, Resource
from mews.kube.component import Runnable
from mews.kube.runtimehook.places import HOOK_FOLDER, HOOK_SOCKET, RUNTIME_SOCKET
from mews.kube.runtimehook.port import HookPolicy
from mews.kube.system.deployment import (
    AUTHORITY,
    CERTIFICATE,
    CONFIG,
    KEY,
    ON_NODE,
    RECORDS,
    SCHEDULER_RULES,
    SERVICE_HOST,
    ComponentDeployment,
    SystemDeployment,
    rule,
)
from mews.kube.system.facility import Facility
from mews.kube.system.invariant import Holds, Invariant, RunState
from mews.kube.system.ports import Ports
from mews.kube.system.system import Component, System, Watched, in_module
from mews.kube.system.system_parts import SystemJudging, SystemMeasuring, SystemStudies
from mews.systems.koordinator.config import KoordinatorConfig
from mews.systems.koordinator.device_kinds import kinds_of
from mews.systems.koordinator.koordlet_config import KoordletConfig
from mews.systems.koordinator.names import (
    CORE,
    DEVICES,
    DOMAIN,
    GPU_PRODUCT,
    GROUP,
    MEMORY,
    NVIDIA,
    POD_GROUPS,
    RATIO,
    SCHEDULER,
    SEED_NAMES,
    WHOLE,
)
from mews.systems.koordinator.options import KoordinatorOptions
from mews.systems.koordinator.scoring import weights_of

if TYPE_CHECKING:
    pass

SERVICE, WEBHOOK = "koord-scheduler", "koord-webhook"


def configure(options: KoordinatorOptions, facility: Facility) -> KoordinatorConfig:
    """Return the configuration with these options: every node has a koordlet, unless they say which."""
    given = options.given()
    if facility.namespace is not None:
        given["namespace"] = facility.namespace
    chosen = given.pop("nodes", None)
    nodes = facility.chosen_nodes(chosen)
    _refuse_idle(options, chosen)
    policy = str(given.pop("hook_failure_policy", HookPolicy.IGNORE))
    names = given.pop("names", "today")
    given.pop("webhook", None)  # whether that component runs is all of it
    koordlet = KoordletConfig(
        scheduler=str(given.get("scheduler_name", SCHEDULER)),
        seed_names=names == "seed",
        kinds=kinds_of(given.pop("kinds", ())),
        **{name: given.pop(name) for name in ("report_s", "poll_s", "adopt", "adopt_env") if name in given},
    )
    return KoordinatorConfig(
        nodes=nodes,
        hook_failure_policy=policy,
        koordlet=koordlet,
        nvml=facility.nvml,
        host_files=facility.host_files,
        envs=facility.extras.envs,
        mounts=facility.extras.mounts,
        **given,
    )


OUTSIDE = (
    "NVIDIA's device plugin knows of no device that koord-scheduler has given, and koord-scheduler only of those that "
    "koordlet has reported; without the webhook nothing keeps their pods apart"
)
"""Contract koordinator.md section 2."""
_KOORDLETS = ("report_s", "poll_s", "names", "kinds", "adopt", "adopt_env", "hook_failure_policy", "device_plugin")


def _refuse_idle(options: KoordinatorOptions, nodes: Sequence[str] | None) -> None:
    """Raises ValueError for an option that would change nothing, and for a weight that is none."""
    weights_of(options.device_weights, "deviceWeights")
    if options.scheduler_account and not options.webhook:
        raise ValueError("schedulerAccount: belongs to the webhook: requires webhook: true")
    for name in _KOORDLETS if nodes is not None and not nodes else ():
        if name in options.model_fields_set and getattr(options, name):
            raise ValueError(f"{to_camel(name)}: must be left out, because no node has a koordlet (nodes: [])")
    if "poll_s" in options.model_fields_set and options.poll_s > options.report_s:
        raise ValueError(f"pollS: {options.poll_s:g}: must not be above reportS, {options.report_s:g}")


def _scheduler(ports: Ports, config: KoordinatorConfig) -> Runnable:
    from mews.systems.koordinator.scheduler import KoordScheduler

    return KoordScheduler(ports.context, config, ports.service, plugin=ports.part("plugin"), devices=ports.devices)


def _koordlet(ports: Ports, config: KoordinatorConfig) -> Runnable:
    from mews.systems.koordinator.koordlet import Koordlet

    assert ports.node is not None, "each node has a koordlet of its own"
    return Koordlet(ports.context, config.koordlet, ports.node)


def _gpu_plugin(ports: Ports, config: KoordinatorConfig) -> Runnable:
    from mews.systems.koordinator.gpu_plugin import GpuDevicePlugin

    assert ports.node is not None, "each node has a plugin of its own"
    return GpuDevicePlugin(ports.context, ports.node)


def _webhook(ports: Ports, config: KoordinatorConfig) -> Runnable:
    from mews.systems.koordinator.webhook import KoordWebhook

    assert ports.service is not None, "it is a component with a service"
    return KoordWebhook(ports.context, config, ports.service)


def _nodes(config: KoordinatorConfig) -> Sequence[str]:
    return config.nodes


def _hooks(config: KoordinatorConfig) -> Mapping[str, HookPolicy]:
    return dict.fromkeys(config.nodes, HookPolicy(config.hook_failure_policy))


def _kinds() -> Sequence[Object]:
    from mews.systems.koordinator.device_crd import device_definition, pod_group_definition

    return device_definition(), pod_group_definition()


def _watched() -> Sequence[Watched]:
    from mews.systems.koordinator.journal import device_news, gang_news, pod_group_news

    return (Watched(DEVICES, device_news), Watched(PODS, gang_news), Watched(POD_GROUPS, pod_group_news))


def _document(config: KoordinatorConfig) -> Mapping[str, Any]:
    document: Mapping[str, Any] = to_builtins(config)
    return document


def _holds(config: KoordinatorConfig) -> Holds:
    from mews.systems.koordinator.holdings import held_by_annotation

    return held_by_annotation


def _swept() -> Sequence[Resource]:
    from mews.systems.koordinator.webhook import MUTATING, VALIDATING

    return (DEVICES, POD_GROUPS, MUTATING, VALIDATING)


def _invariants() -> Sequence[Invariant[RunState]]:
    from mews.systems.koordinator.invariants import DevicesGiven

    return (DevicesGiven(),)


def _laws(config: KoordinatorConfig) -> Sequence[Invariant[RunState]]:
    from mews.systems.koordinator.laws import laws

    return laws(config)


_PORT, _WEBHOOK_PORT = 10251, 9443
_WATCH = ("list", "watch")
_SCHEDULER_DEPLOYMENT = ComponentDeployment(
    (
        "-m", "mews.systems.koordinator", "scheduler", "--config", CONFIG, "--records", RECORDS, "--host", "0.0.0.0",
        "--port", str(_PORT), "--allow-host", SERVICE_HOST, "--certificate", CERTIFICATE, "--key", KEY,
    ),
    everywhere=(
        *SCHEDULER_RULES,
        rule(GROUP, ["devices"], ["get", *_WATCH]),
        rule(POD_GROUPS.group, ["podgroups"], _WATCH),
        rule("coordination.k8s.io", ["leases"], ["get", "create", "update"]),  # leader election
    ),
    service_port=_PORT,
)  # fmt: skip
_WEBHOOK_DEPLOYMENT = ComponentDeployment(
    (
        "-m", "mews.systems.koordinator", "webhook", "--config", CONFIG, "--records", RECORDS, "--host", "0.0.0.0",
        "--port", str(_WEBHOOK_PORT), "--allow-host", SERVICE_HOST, "--certificate", CERTIFICATE, "--key", KEY,
        "--authority", AUTHORITY,
    ),
    everywhere=(
        rule("", ["pods"], ["get"]),  # of the one that is to be bound
        rule(
            "admissionregistration.k8s.io",
            ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
            ["create", "patch"],
        ),
    ),
    service_port=_WEBHOOK_PORT,
)  # fmt: skip
_KOORDLET_DEPLOYMENT = ComponentDeployment(
    (
        "-m", "mews.systems.koordinator", "koordlet", "--config", CONFIG, "--records", RECORDS,
        "--hooks", HOOK_SOCKET, "--runtime", RUNTIME_SOCKET,
    ),
    everywhere=(
        rule("", ["pods"], _WATCH),
        rule("", ["nodes"], [*_WATCH, "patch"]),  # labels; what it answers who wants GPUs whole
        rule("", ["nodes/status"], ["patch"]),  # the sums of its devices
        rule(GROUP, ["devices"], ["get", *_WATCH, "create", "patch"]),
    ),
    security=ON_NODE,
    kubelet_folders=True,
    host_files=True,
    node_folders=(HOOK_FOLDER,),
    registers=False,
)  # fmt: skip
_GPU_PLUGIN_DEPLOYMENT = ComponentDeployment(
    ("-m", "mews.systems.koordinator", "device-plugin", "--config", CONFIG, "--records", RECORDS),
    security=ON_NODE,
    kubelet_folders=True,
    host_files=True,
)


SYSTEM: System[KoordinatorOptions, KoordinatorConfig] = System(
    name="koordinator",
    summary="gives pods devices and parts of devices, by its scheduler, which knows each device of each node",
    options=KoordinatorOptions,
    configure=configure,
    components=(
        Component(
            "koord-scheduler",
            _scheduler,
            scheduler=lambda config: config.scheduler_name,
            parts={"plugin": "the scheduler's handle"},
            service=SERVICE,
            deployment=_SCHEDULER_DEPLOYMENT,
        ),
        Component(
            "koord-webhook",
            _webhook,
            wanted=lambda options: bool(options.webhook),
            service=WEBHOOK,
            deployment=_WEBHOOK_DEPLOYMENT,
        ),
        Component(
            "koordlet",
            _koordlet,
            wanted=lambda options: options.nodes != (),
            nodes=_nodes,
            deployment=_KOORDLET_DEPLOYMENT,
        ),
        Component(
            "gpu-device-plugin",
            _gpu_plugin,
            wanted=lambda options: bool(options.device_plugin),
            nodes=_nodes,
            deployment=_GPU_PLUGIN_DEPLOYMENT,
        ),
    ),
    title="Koordinator",
    namespace=lambda config: config.namespace,
    document=_document,
    kinds=_kinds,
    watched=_watched,
    stands_for={WHOLE: {CORE: 1, RATIO: 1}, NVIDIA: {CORE: 100, RATIO: 100}},
    other_units={MEMORY: RATIO},
    lends=_nodes,
    runtime_hooks=_hooks,
    deployment=SystemDeployment(
        config_map="koordinator-config",
        config_path="/etc/koordinator/config.yaml",
        owner="koord-scheduler",
        swept=_swept,
        on_nodes=(DOMAIN, *SEED_NAMES.values(), "node.koordinator.sh/", GPU_PRODUCT),
        exclusive="its devices reach containers by a proxy before each node's container runtime",
    ),
    judging=SystemJudging(
        invariants=_invariants,
        laws=_laws,
        # unlisted: a report, and what it takes to notice; the others: writes that follow one another
        bounds={"unlisted_s": 15.0, "unbound_s": 15.0, "gang_s": 15.0},
        holds=_holds,
        outside_known=lambda options: OUTSIDE if options.device_plugin and not options.webhook else "",
    ),
    measuring=SystemMeasuring(
        service=SERVICE,
    ),
    studies=SystemStudies(
        trace_policies=in_module("mews.systems.koordinator.simulation", "TRACE_POLICIES"),
        experiments=in_module("mews.systems.koordinator.experiment.all", "EXPERIMENTS"),
    ),
)
"""What the harness knows of it."""
