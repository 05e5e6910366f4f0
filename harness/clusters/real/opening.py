"""From a scenario and a target to a running real cluster."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mews.certificates import make_certificates
from mews.emulator.clock import unix_s
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.tls import made
from mews.harness.clusters.real.admin import ClusterAdmin
from mews.harness.clusters.real.cluster import Deployment, RealCluster
from mews.harness.clusters.real.device_injection import check_device_injection
from mews.harness.clusters.real.replacements import ReplacementDeployment
from mews.harness.clusters.real.rollout import Notify
from mews.harness.clusters.real.systems import check_exclusive, installed_systems, namespaces_of, placed_facility
from mews.harness.clusters.real.target import DeploymentTarget
from mews.harness.manifests.chassis import host_name
from mews.harness.manifests.foreign import foreign_programs
from mews.harness.manifests.replacement_objects import manifest_objects
from mews.harness.manifests.services import service_host
from mews.harness.manifests.spec import ServerCertificate, StackSpec
from mews.harness.run_context import RunContext
from mews.harness.scenario.hardware import hardware_document, hardware_of
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.requirements import components_struck
from mews.harness.systems import all_systems
from mews.kube.api.resources import NODES


def stack_spec(
    scenario: Scenario,
    hardware: Hardware,
    document: Mapping[str, Any],
    target: DeploymentTarget,
    *,
    dialect: str,
    token: str,
    speed: float = 1.0,
    replacements: ReplacementDeployment | None = None,
    identities: Mapping[str, str] = MappingProxyType({}),
) -> StackSpec:
    """Return what is deployed for a scenario in a place. ``replacements`` is what the scenario puts in the place of
    ours, ``identities`` tell programs of others by their file names from earlier ones.

    Raises ScenarioError for options that a system does not have, RequirementError for a system that cannot be deployed.
    """
    facility = placed_facility(hardware, target, dialect=dialect, speed=speed)
    spec = StackSpec(
        namespace=target.namespace,
        image=target.image,
        hardware=document,
        facility=facility,
        systems=installed_systems(scenario, facility),
        token=token,
        pull=target.pull,
        prefix=target.prefix,
        hosts={target.nodes[host.name]: host.name for host in hardware.hosts},
        tidy=target.tidy,
        named=namespaces_of(scenario, facility),
        certificate=_certificate(target.namespace),
        service_certificate=_service_certificate(target.namespace),
    )
    whole = spec if replacements is None else replacements.into(spec)
    theirs = foreign_programs(whole, identities)
    return replace(whole, programs={**whole.programs, **theirs}) if theirs else whole


def _certificate(namespace: str) -> ServerCertificate:
    """Made now, for the name by which the components call the chassis."""
    with tempfile.TemporaryDirectory(prefix="mews-tls-") as folder:
        identity = made(Path(folder), [host_name(namespace)])
        text = identity.certificate_text()
        return ServerCertificate(text, identity.key.read_text(encoding="ascii"), text)


def _service_certificate(namespace: str) -> ServerCertificate:
    """Made now, by an authority of its own, for all that any system serves: a cluster keeps it from one to the next."""
    served = [each.service for system in all_systems() for each in system.components if each.service]
    names = [service_host(namespace, service) for service in dict.fromkeys(served)]
    with tempfile.TemporaryDirectory(prefix="mews-tls-") as folder:
        found = make_certificates(Path(folder), unix_s(), names)
        texts = (path.read_text(encoding="ascii") for path in (found.certificate, found.key, found.authority))
        return ServerCertificate(*texts)


async def open_real(
    scenario: Scenario,
    admin: ClusterAdmin,
    run: RunContext,
    *,
    notify: Notify,
    replacements: ReplacementDeployment,
    identities: Mapping[str, str] = MappingProxyType({}),
) -> RealCluster:
    """Return a running cluster for the scenario, with its ``replacements``; close it. ``identities``: see
    ``stack_spec``.

    Raises ScenarioError for hardware or options that cannot be read, RequirementError for what the cluster does not let
    us do.
    """
    hardware = hardware_of(scenario)
    document, _ = hardware_document(scenario)
    token = secrets.token_urlsafe(24)
    spec = stack_spec(
        scenario,
        hardware,
        document,
        admin.target,
        dialect=run.dialect,
        token=token,
        speed=run.speed,
        replacements=replacements,
        identities=identities,
    )
    if admin.target.namespaces:
        check_exclusive(spec)
    manifest_objects(spec)  # raises for what cannot be, before anything is made
    deployment = Deployment(
        scenario,
        hardware,
        replace(spec, seed=run.seed, struck=frozenset(each.partition("/")[0] for each in components_struck(scenario))),
        settings=replacements.settings,
    )
    cluster = RealCluster(deployment, run, admin, notify)
    try:
        if spec.by_claims:
            check_device_injection((await cluster.kube.list(NODES)).items)
        await cluster.open()
    except BaseException:
        await cluster.close()
        raise
    return cluster
