"""From a scenario and a place to a running real cluster."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mews.emulator.chassis.inventory import Hardware
from mews.harness.clusters.real.cluster import RealCluster, Run
from mews.harness.clusters.real.ground import Ground, Place
from mews.harness.clusters.real.replacements import ReplacementDeployment
from mews.harness.clusters.real.rollout import Tell
from mews.harness.clusters.real.systems import facility_of, installed_systems, namespaces_of
from mews.harness.errors import Lacks
from mews.harness.manifests.replacement_objects import manifest_objects
from mews.harness.manifests.spec import StackSpec
from mews.harness.scenario.hardware import hardware_document, hardware_of
from mews.harness.scenario.model import Scenario


def stack_spec(
    scenario: Scenario,
    hardware: Hardware,
    document: Mapping[str, Any],
    place: Place,
    *,
    dialect: str,
    token: str,
    speed: float = 1.0,
    replacements: ReplacementDeployment | None = None,
) -> StackSpec:
    """What is deployed for a scenario in a place. ``replacements`` is what the scenario puts in the place of ours.

    Raises ScenarioError for options that a system does not have, Lacks for a system that cannot be deployed.
    """
    facility = facility_of(hardware, place, dialect=dialect, speed=speed)
    spec = StackSpec(
        namespace=place.namespace,
        image=place.image,
        hardware=document,
        facility=facility,
        systems=installed_systems(scenario, facility),
        token=token,
        pull=place.pull,
        prefix=place.prefix,
        hosts={place.nodes[host.name]: host.name for host in hardware.hosts},
        tidy=place.tidy,
        named=namespaces_of(scenario, facility),
    )
    return spec if replacements is None else replacements.into(spec)


def _check_exclusive(spec: StackSpec) -> None:
    """Raise Lacks for a system that needs a cluster of its own."""
    for installed in spec.systems:
        if installed.components and installed.deployment.exclusive:
            raise Lacks(f"stack.{installed.system.name}: {installed.deployment.exclusive}")


async def open_real(
    scenario: Scenario,
    ground: Ground,
    *,
    dialect: str,
    speed: float,
    seed: int,
    tell: Tell,
    replacements: ReplacementDeployment,
) -> RealCluster:
    """A running cluster for the scenario, with its ``replacements``; close it.

    Raises ScenarioError for hardware or options that cannot be read, Lacks for what the cluster does not let us do.
    """
    hardware = hardware_of(scenario)
    document, _ = hardware_document(scenario)
    token = secrets.token_urlsafe(24)
    spec = stack_spec(
        scenario, hardware, document, ground.place, dialect=dialect, token=token, speed=speed, replacements=replacements
    )
    if ground.place.namespaces:
        _check_exclusive(spec)
    manifest_objects(spec)  # raises for what cannot be, before anything is made
    run = Run(
        scenario,
        hardware,
        replace(spec, seed=seed),
        dialect=dialect,
        speed=speed,
        settings=replacements.settings,
    )
    cluster = RealCluster(run, ground, tell)
    try:
        await cluster.open()
    except BaseException:
        await cluster.close()
        raise
    return cluster
