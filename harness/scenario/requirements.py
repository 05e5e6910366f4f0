"""What a scenario requires, held against what a run has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from mews.dialects import DIALECTS, OURS
from mews.emulator.chassis.faults.registry import CHASSIS_FAULTS
from mews.harness.backends import Backend, backend_of
from mews.harness.ports.cluster import DEFAULT_SCHEDULER, Cluster
from mews.harness.scenario.errors import CapabilityError
from mews.harness.scenario.images import container_wanted
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.stack import Stack
from mews.harness.scenario.system_needs import lacking, programs_of
from mews.harness.scenario.unscaled import too_fast
from mews.kube.api.quantities import parse
from mews.kube.api.resources import NODES
from mews.kube.system.facility import Facility

EMULATED = ("embedded", "control-plane")
"""The clusters whose nodes are emulated."""
_NO_PROCESS = (
    "emulated nodes run images as processes, and images.yaml names none for it; use --cluster kind, or process instead "
    "of image"
)
_NOT_OURS = "the default scheduler belongs to the cluster (--cluster kind has one of its own)"
_MINOR = re.compile(r"v1\.(\d+)\.")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


# Complex: the first reason that applies is the one that is shown.
def foreseen(  # noqa: C901
    scenario: Scenario, *, cluster: str, time: str, dialect: str, speed: float = 1.0
) -> str | None:
    """Return why the scenario must be skipped in this way to run, as far as that can be told before a cluster is
    opened.

    Raises ScenarioError for an image that nothing stands for where nodes are emulated.
    """
    requires, spoken = scenario.requires, DIALECTS.find(dialect)
    for name, wanted, there in (
        ("time", (requires.time,) if requires.time else (), time),
        ("dialect", requires.dialect, spoken.name),
        ("cluster", requires.cluster, cluster),
    ):
        if wanted and there not in wanted:
            return f"needs {name} {' or '.join(wanted)}, this run has {there}"
    if (reason := too_fast(scenario.stack, requires.unscaled, speed)) is not None:
        return reason
    if cluster in ("kind", "kubeconfig") and dialect not in OURS:
        return f"needs the dialect {dialect}, which the container image of --cluster {cluster} does not have"
    if time == "virtual" and (script := _script(scenario)) is not None:
        return f"{script}: runs beside the cluster, in wall-clock time (--time wall): virtual time waits for no program"
    if scenario.order and time != "virtual":
        return "order: needs virtual time, in which several things are due at one moment"
    for number, each in enumerate(scenario.disruptions):
        if each.line is not None and time != "virtual":
            return f"disruptions.{number}.line: needs virtual time, in which each run writes the same lines"
    reason = _unplaced(scenario, cluster, time)
    if reason is not None:
        return reason
    if cluster in EMULATED:
        check_images(scenario)
        place = container_wanted(scenario, unplayed=True) if time == "virtual" else ""
        if place:
            return f"{place}: container: needs wall-clock time (--time wall)"
    else:
        reason = _unplayed(scenario, cluster)
        if reason is not None:
            return reason
    for place, component, kind in _api_faults(scenario):
        if kind == "frozen-process" and time == "virtual":
            return f"{place}: {kind} needs wall-clock time (--time wall) and a program of its own"
        if cluster not in EMULATED and (reason := _out_of_reach(scenario, component, kind)):
            return f"{place}: needs --cluster embedded or control-plane: on {cluster}, {reason}"
        if comes_in_pods(scenario, component):
            return f"{place}: {component} comes in pods of a manifest, whose requests go past Mews"
    for kind in _faults(scenario):
        if cluster in ("kind", "kubeconfig") and not _is_shipped(kind):
            return f"needs the fault {kind}, which the container image of --cluster {cluster} does not have"
        if kind in spoken.wordless:
            return f"needs the fault {kind}, which the dialect {dialect} has no words for"
    return None


def _script(scenario: Scenario) -> str | None:
    """Return the first program that steps run beside the cluster, and where it stands."""
    for part, steps in (
        ("steps", scenario.steps),
        ("disruptions", scenario.disruptions),
        ("catch", scenario.catch),
        ("finally", scenario.finally_),
    ):
        for index, step in enumerate(steps):
            if step.script is not None:
                text = step.script.content or " ".join(step.script.argv)
                return f"{part}.{index}.script: {text.splitlines()[0][:60]!r}"
    return None


def _api_faults(scenario: Scenario) -> list[tuple[str, str, str]]:
    """Return where faults between a component and the API are added, which component it is, and of which kind they
    are."""
    steps = {"steps": scenario.steps, "disruptions": scenario.disruptions, "finally": scenario.finally_}
    return [
        (f"{part}.{number}.fault", step.fault.component, str(step.fault.add["kind"]))
        for part, each in steps.items()
        for number, step in enumerate(each)
        if step.fault is not None and step.fault.component is not None and step.fault.add is not None
    ]


def _out_of_reach(scenario: Scenario, component: str, kind: str) -> str:
    """Return why such a fault cannot be had of a cluster with kubelets, a scheduler and controllers of its own; ""
    where it can, of what runs in pods of ours."""
    if kind in ("frozen-process", "paused-rpc"):
        return f"{kind} cannot be had of what runs in pods"
    own = component.startswith("kubelet/") or component in ("controller-manager", "service-names")
    if own or (component == DEFAULT_SCHEDULER and component not in scenario.stack.replace):
        return f"{component} is the cluster's own, whose requests go past Mews"
    return ""


def components_struck(scenario: Scenario) -> frozenset[str]:
    """Return the components between which and the API its steps add faults."""
    return frozenset(component for _, component, _ in _api_faults(scenario))


def comes_in_pods(scenario: Scenario, component: str) -> bool:
    """Return whether a manifest of the user's is in that component's place."""
    yours = scenario.stack.replace.get(component.partition("/")[0])
    return yours is not None and yours.outside == "manifest"


def _is_shipped(fault: str) -> bool:
    from mews.emulator.host.faults.registry import HOST_FAULTS
    from mews.harness.api_faults.registry import API_FAULTS

    return any(fault in faults.ours() for faults in (CHASSIS_FAULTS, HOST_FAULTS, API_FAULTS))


def check_images(scenario: Scenario) -> None:
    """Emulated nodes run as processes what images.yaml says of an image.

    Raises ScenarioError for one of ``stack.replace`` of which it says nothing.
    """
    for yours in scenario.stack.replace.values():
        if yours.image is not None and image_argv(yours.image, scenario.images) is None:
            raise scenario.refusal((*yours.place, "image"), yours.image, _NO_PROCESS)


def image_argv(image: str, own: Mapping[str, Any] = MappingProxyType({})) -> tuple[str, ...] | None:
    """Return what runs as a process for an image, None for one that none stands for. ``own``: the images of the
    scenario."""
    from mews.kube.emulated.kubelet.images import load_images

    known = load_images(own=own).find(image)
    return None if known is None else known.process


def _unplayed(scenario: Scenario, cluster: str) -> str | None:
    """Return what real nodes do with images that nothing but emulated ones can."""
    if scenario.unknown_images == "idle":
        return f"unknownImages: idle: needs emulated nodes, those of --cluster {cluster} pull images"
    if any(step.host is not None and step.host.do == "machine-power" for step in scenario.all_steps):
        return f"host: machine-power: needs emulated nodes, those of --cluster {cluster} run on"
    staged = [name for name, image in scenario.images.items() if isinstance(image, dict) and _staged(image)]
    return f"images.{staged[0]}: stages need emulated nodes, not --cluster {cluster}" if staged else None


def _staged(image: Mapping[str, Any]) -> bool:
    return "stages" in (image.get("simulate") or {})


def _faults(scenario: Scenario) -> list[str]:
    """Return the kinds that its steps add."""
    faults = [step.fault for step in scenario.all_steps if step.fault is not None]
    return [str(fault.add["kind"]) for fault in faults if fault.add is not None]


def _unplaced(scenario: Scenario, cluster: str, time: str) -> str | None:
    """Return why what the user brings along cannot take its place."""
    stack, backend = scenario.stack, backend_of(cluster)
    if not backend.emulates_nodes:
        return _unplaced_on_real(stack, backend)
    for yours in stack.replace.values():
        if time == "virtual" and yours.outside is not None:
            return f"{yours.where}: a {yours.outside} needs wall-clock time (--time wall)"
    if time == "virtual":
        for component, system in programs_of(stack.systems).items():
            return f"stack.{system}: {component} is a program, which needs wall-clock time (--time wall)"
    if reason := lacking(stack.systems):
        return reason
    if time == "virtual" and stack.extenders:
        return "stack.extenders: an HTTP extender needs wall-clock time (--time wall)"
    return None


# Complex: the first reason that applies is the one that is shown.
def _unplaced_on_real(stack: Stack, backend: Backend) -> str | None:  # noqa: C901
    if not backend.is_the_users and (reason := lacking(stack.systems, emulated_nodes=False)):
        return reason
    if stack.kubelet.faults:
        return f"stack.kubelet.faults: needs emulated kubelets, those of --cluster {backend.name} are real"
    for yours in stack.replace.values():
        if yours.mounts:
            return f"{yours.where}.mounts: need emulated nodes, those of --cluster {backend.name} are real; use image"
    default = stack.replace.get("default-scheduler")
    if default is not None and backend.is_the_users:
        return "stack.replace.default-scheduler: it belongs to the cluster (--cluster kind has one of its own)"
    if default is not None and default.plugin is not None:
        return (
            f"stack.replace.default-scheduler.plugin: --cluster {backend.name} has the real kube-scheduler, into which "
            "no plugin can be loaded; use process or image, or --cluster embedded or control-plane"
        )
    if stack.extenders and backend.is_the_users:
        return f"stack.extenders: {_NOT_OURS}"
    for each in stack.configured(Facility()) if backend.is_the_users else ():
        if each.system.extenders(each.configuration):
            return f"stack.{each.system.name}: it brings an extender, and {_NOT_OURS}"
    for number, extender in enumerate(stack.extenders):
        host = urlsplit(str(extender.config.get("urlPrefix", ""))).hostname
        if extender.process is None and host in _LOOPBACK:
            return (
                f"stack.extenders[{number}]: {host} is this machine, which kube-scheduler on the control plane's node "
                "does not see; name an address, or let process start the extender"
            )
    return None


async def demand(scenario: Scenario, cluster: Cluster) -> None:
    """Check all requirements, those written down and those that the steps imply.

    Raises CapabilityError with the first that cannot be had.
    """
    speed = cluster.pace.speed
    reason = foreseen(scenario, cluster=cluster.name, time=cluster.time, dialect=cluster.dialect, speed=speed)
    if reason is not None:
        raise CapabilityError(reason)
    for feature in scenario.requires.features:
        reason = cluster.lacks(feature)
        if reason is not None:
            raise CapabilityError(f"needs {feature}: {reason}")
    if scenario.requires.node_cpus:
        await _node_cpus(scenario.requires.node_cpus, cluster)
    if cluster.name not in EMULATED and "kubernetes" in scenario.stack.model_fields_set:
        await _release(scenario.stack.kubernetes, cluster)


async def _node_cpus(wanted: int, cluster: Cluster) -> None:
    nodes = (await cluster.kube.list(NODES)).items
    least = min((parse((n.get("status") or {}).get("capacity", {}).get("cpu", 0)) for n in nodes), default=parse(0))
    if least < wanted:
        raise CapabilityError(f"needs nodes of {wanted} CPUs, the smallest has {least}")


async def _release(wanted: str, cluster: Cluster) -> None:
    """A later release has features that an earlier one's real nodes know nothing of."""
    for node in (await cluster.kube.list(NODES)).items:
        version = str(((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion", ""))
        found = _MINOR.match(version)
        if found is not None and int(found[1]) < int(wanted.partition(".")[2]):
            raise CapabilityError(f"stack.kubernetes: {wanted}: the cluster's nodes run {version}")
