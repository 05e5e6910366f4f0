"""The systems of a scenario's stack as they are installed in a real cluster, and what all registered ones say of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from mews.emulator.chassis.inventory import Hardware
from mews.emulator.nvml import library
from mews.harness.clusters.real.ground import Place
from mews.harness.errors import Lacks
from mews.harness.manifests.chassis import endpoint
from mews.harness.manifests.nodes import NVML
from mews.harness.manifests.spec import InstalledSystem
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.facility import facility_of as cabled
from mews.harness.scenario.model import Scenario
from mews.kube.deviceplugin.port import Mount
from mews.kube.system.deployment import SystemDeployment
from mews.kube.system.facility import ContainerExtras, Facility
from mews.kube.system.system import System
from mews.systems import registry

IN_CONTAINER = "/usr/local/nvidia/lib64"
"""Where a container with a device finds the library and nvidia-smi; NVIDIA's own images look there, too."""
_SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def facility_of(hardware: Hardware, place: Place, *, dialect: str, speed: float) -> Facility:
    """What the systems are installed on: nodes instead of hosts, chassis by their service."""
    endpoints = {spec.name: endpoint(place.namespace, number) for number, spec in enumerate(hardware.chassis)}
    found = cabled(hardware, dialect=dialect, endpoints=endpoints, speed=speed)
    nodes = tuple(replace(node, name=place.nodes[node.name]) for node in found.nodes)
    return replace(found, nodes=nodes, namespace=place.namespace, extras=_extras())


def _extras() -> ContainerExtras:
    """What containers with a device get: NVML, where this machine can compile it into the image."""
    if not library.available():
        return ContainerExtras()
    return ContainerExtras(
        envs={"LD_LIBRARY_PATH": IN_CONTAINER, "PATH": f"{IN_CONTAINER}:{_SEARCH_PATH}"},
        mounts=(Mount(IN_CONTAINER, NVML, read_only=True),),
    )


def installed_systems(scenario: Scenario, facility: Facility) -> list[InstalledSystem]:
    """Those of the stack, after the default one, whose configuration is there though it may not run: programs of the
    user's read it.

    Raises ScenarioError for options that cannot be, Lacks for a system that no real cluster can run.
    """
    options = scenario.stack.systems
    names = dict.fromkeys((*registry.DEFAULT, *options))
    return [_installed(scenario, registry.system(name), options.get(name), facility) for name in names]


def _installed(scenario: Scenario, system: System, options: Any, facility: Facility) -> InstalledSystem:
    components = () if options is None else tuple(each for each in system.components if each.wanted(options))
    if system.deployment is None or any(each.deployment is None for each in components):
        raise Lacks(f"stack.{system.name}: it does not say how a real cluster runs it")
    try:
        configuration = system.configure(system.options() if options is None else options, facility)
    except ValueError as error:
        raise ScenarioError(f"{scenario.path or scenario.name}: stack.{system.name}: {error}") from error
    return InstalledSystem(system, configuration, components)


def namespaces_of(scenario: Scenario, facility: Facility) -> list[str]:
    """What the scenario calls the namespaces of its systems, that of the default one first."""
    unplaced = installed_systems(scenario, replace(facility, namespace=None))
    found = (each.system.namespace(each.configuration) for each in unplaced)
    return list(dict.fromkeys(name for name in found if name is not None))


def registered() -> Iterator[System]:
    """All systems that can be had: a cluster may have been left by a scenario with any of them."""
    return (registry.system(name) for name in registry.names())


def deployments() -> Sequence[SystemDeployment]:
    """What all registered systems say of real clusters."""
    return [system.deployment for system in registered() if system.deployment is not None]


def default_namespace() -> str:
    """Where a stack belongs that says nothing else."""
    return default_namespaces()[0]


def default_namespaces() -> list[str]:
    """What the registered systems' namespaces are called where a scenario says nothing, that of the default first."""
    systems = [registry.system(name) for name in dict.fromkeys((*registry.DEFAULT, *registry.names()))]
    found = (system.namespace(system.configure(system.options(), Facility())) for system in systems)
    return list(dict.fromkeys(name for name in found if name is not None))
