"""The systems of a scenario's stack as they are installed in a real cluster, and what all registered ones say of it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mews.emulator.dialects.registry import face_of
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.nvml import library
from mews.harness.clusters.real.target import DeploymentTarget
from mews.harness.errors import RequirementError
from mews.harness.manifests.chassis import endpoint
from mews.harness.manifests.nodes import HOST_FILES, NVML
from mews.harness.manifests.parts import CA_FILE, TRUST_FOLDER
from mews.harness.manifests.spec import InstalledSystem, StackSpec
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.facility import facility_of
from mews.harness.scenario.model import Scenario
from mews.harness.systems import all_systems
from mews.kube.deviceplugin.port import Mount
from mews.kube.emulated.kubelet.images import ImageBook, load_images
from mews.kube.nvml_library import LIBRARY
from mews.kube.system.configured import ConfiguredSystem
from mews.kube.system.deployment import SystemDeployment
from mews.kube.system.facility import ContainerExtras, Facility
from mews.systems import registry

IN_CONTAINER = "/usr/local/nvidia/lib64"
"""Where a container with a device finds the library and nvidia-smi; NVIDIA's own images look there, too."""
_SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def speaks_tls(dialect: str) -> bool:
    """Return whether the chassis speak that dialect under TLS: those that ask for a login."""
    return face_of(dialect).login


def placed_facility(hardware: Hardware, target: DeploymentTarget, *, dialect: str, speed: float) -> Facility:
    """Return what the systems are installed on: nodes instead of hosts, chassis by their service."""
    secure_after = len(hardware.chassis) if speaks_tls(dialect) else None
    endpoints = {
        spec.name: endpoint(target.namespace, number, secure_after=secure_after)
        for number, spec in enumerate(hardware.chassis)
    }
    trusted = f"{TRUST_FOLDER}/{CA_FILE}"
    found = facility_of(hardware, dialect=dialect, endpoints=endpoints, ca_file=trusted, speed=speed)
    nodes = tuple(replace(node, name=target.nodes[node.name], host=node.name) for node in found.nodes)
    return replace(
        found,
        nodes=nodes,
        namespace=target.namespace,
        extras=_extras(),
        host_files=HOST_FILES,
        nvidia_smi=f"{NVML}/nvidia-smi",
        nvml=f"{NVML}/{LIBRARY}",
    )


def _extras() -> ContainerExtras:
    """Return what containers with a device get: NVML, where this machine can compile it into the image."""
    if not library.available():
        return ContainerExtras()
    return ContainerExtras(
        envs={"LD_LIBRARY_PATH": IN_CONTAINER, "PATH": f"{IN_CONTAINER}:{_SEARCH_PATH}"},
        mounts=(Mount(IN_CONTAINER, NVML, read_only=True),),
    )


def installed_systems(scenario: Scenario, facility: Facility) -> list[InstalledSystem]:
    """Return those of the stack, after the default one, whose configuration is there though it may not run: programs of
    the user's may read it.

    Raises ScenarioError for options that cannot be, RequirementError for a system that no real cluster can run.
    """
    try:
        configured = {each.system.name: each for each in scenario.stack.configured(facility)}
    except ValueError as error:
        raise ScenarioError(f"{scenario.path or scenario.name}: stack.{error}") from error
    names = dict.fromkeys((*registry.DEFAULT, *configured))
    return [_running(configured[name]) if name in configured else _not_running(name, facility) for name in names]


def _running(configured: ConfiguredSystem) -> InstalledSystem:
    system, components = configured.system, dict(configured.components())
    undeclared = [name for name, component in components.items() if component.deployment is None]
    if system.deployment is None or undeclared:
        which = "" if system.deployment is None else f" {undeclared[0]}"
        raise RequirementError(f"stack.{system.name}: it does not define how a real cluster runs it{which}")
    return InstalledSystem(system, configured.configuration, components)


def _not_running(name: str, facility: Facility) -> InstalledSystem:
    system = registry.system(name)
    return InstalledSystem(system, system.configure(system.options(), facility))


def namespaces_of(scenario: Scenario, facility: Facility) -> list[str]:
    """Return what the scenario calls the namespaces of its systems, that of the default one first."""
    unplaced = installed_systems(scenario, replace(facility, namespace=None))
    found = (each.system.namespace(each.configuration) for each in unplaced)
    return list(dict.fromkeys(name for name in found if name is not None))


def image_book(scenario: Scenario) -> ImageBook:
    """Return the images that nodes of ours know: those that Mews ships, those of the stack's systems, the scenario's
    own."""
    systems = [registry.system(name) for name in scenario.stack.systems]
    further = {name: image for system in systems for name, image in system.images().items()}
    return load_images(further=further, own=scenario.images)


def check_exclusive(spec: StackSpec) -> None:
    """Raise RequirementError for a system that needs a cluster of its own."""
    for installed in spec.systems:
        if installed.components and installed.deployment.exclusive:
            raise RequirementError(f"stack.{installed.system.name}: {installed.deployment.exclusive}")


def component_names() -> list[str]:
    """Return what the components of all registered systems may be called in a stack."""
    every = [(system.name, component.name) for system in all_systems() for component in system.components]
    return [name for system, component in every for name in (component, f"{system}.{component}")]


def deployments() -> Sequence[SystemDeployment]:
    """Return what all registered systems say of real clusters."""
    return [system.deployment for system in all_systems() if system.deployment is not None]


def default_namespace() -> str:
    """Return where a stack belongs that says nothing else."""
    return default_namespaces()[0]


def default_namespaces() -> list[str]:
    """Return what the registered systems' namespaces are called where a scenario says nothing, that of the default
    first."""
    first = [registry.system(name) for name in registry.DEFAULT]
    systems = [*first, *(system for system in all_systems() if system not in first)]
    found = (system.namespace(system.configure(system.options(), Facility())) for system in systems)
    return list(dict.fromkeys(name for name in found if name is not None))
