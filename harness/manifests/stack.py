"""The stack as manifests, for a cluster run by Mews and for users who deploy by kubectl or GitOps alike."""

from __future__ import annotations

from collections.abc import Sequence

from mews.harness.manifests import chassis, replacements, services, systems
from mews.harness.manifests.parts import Object, metadata
from mews.harness.manifests.rights import extender_rights, scheduler_rights
from mews.harness.manifests.spec import InstalledSystem, StackSpec
from mews.harness.manifests.workloads import deployment
from mews.harness.ports.cluster import DEFAULT_SCHEDULER
from mews.yaml_text import written_yaml_documents


def manifests(spec: StackSpec) -> list[Object]:
    """Return all objects, in the order in which they can be applied; but for those that the user brings as such."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(spec.namespace, "namespace")}
    first, *others = spec.systems
    made: list[Object] = [namespace, chassis.token(spec), *chassis.certificate(spec), chassis.hardware(spec)]
    made.append(systems.configuration(spec, first))
    if spec.programs or spec.documents or spec.extenders:
        made.append(replacements.access(spec))
    made += [chassis.service(spec), deployment(spec, "chassis", chassis.pod(spec))]
    made += [*_kinds(first), *_components(spec, first), *_beside_the_scheduler(spec)]
    for installed in others:
        made += [*_kinds(installed), systems.configuration(spec, installed), *_components(spec, installed)]
    return [*made, *services.services(spec), *services.scheduler_configuration(spec)]


def _kinds(installed: InstalledSystem) -> list[Object]:
    return systems.kinds(installed) if installed.components else []


def _components(spec: StackSpec, installed: InstalledSystem) -> list[Object]:
    return [obj for name in installed.components for obj in systems.software(spec, installed, name)]


def _beside_the_scheduler(spec: StackSpec) -> list[Object]:
    """Return what takes kube-scheduler's place, and what it asks."""
    made: list[Object] = []
    if spec.is_replaced(DEFAULT_SCHEDULER):
        made += scheduler_rights(spec.namespace, spec.prefix)
        program = spec.programs.get(DEFAULT_SCHEDULER)
        made += replacements.deployed(spec, DEFAULT_SCHEDULER, program) if program is not None else []
    extenders = {number: each for number, each in enumerate(spec.extenders) if each is not None}
    if extenders:
        made += extender_rights(spec.namespace, spec.prefix)
    for number, extender in extenders.items():
        made += replacements.deployed(spec, replacements.extender_name(number), extender)
    return made


def as_yaml(objects: Sequence[Object]) -> str:
    """Return the objects as one stream of YAML documents."""
    return written_yaml_documents(objects)
