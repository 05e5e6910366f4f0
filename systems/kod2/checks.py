"""What is wrong with a TFJob that could be read: what the API server would refuse of its pods, and what no cluster
could run. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.api.quantities import parse
from mews.kube.scheduling.podinfo import PodInfo, pod_info
from mews.systems.kod2.errors import TFJobError
from mews.systems.kod2.podspec import pod_of_task, service_of_task
from mews.systems.kod2.tfjob import Replicas, Role, TFJob, read_tfjob

MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What reading a value of the wrong type raises."""

MOST_TASKS = 10_000
_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL_LENGTH = 63
_ENVIRONMENT_LENGTH = 131_071
"""No program on Linux is given a longer variable of its environment (MAX_ARG_STRLEN)."""
LARGEST = 2**63 - 1
"""No quantity is larger."""


def checked_tfjob(obj: Object) -> TFJob:
    """Return the TFJob in an object, whatever it holds.

    Raises TFJobError.
    """
    try:
        job = read_tfjob(obj)
        _check_size(job)
        _check_name(job)
        for replicas in job.roles.values():
            _check_quantities(replicas)
            task = f"{replicas.role.task}-0"
            pod_info(pod_of_task(job, obj, task, node="node"))
            service_of_task(job, obj, task)
    except MALFORMED as error:
        raise TFJobError(f"spec: cannot be read: {type(error).__name__}: {error}") from error
    return job


def template_info(replicas: Replicas) -> PodInfo:
    """Return a role's pod template as scheduling sees it.

    Raises ValueError, TypeError and their like for a template that cannot be read.
    """
    return pod_info({"metadata": {}, "spec": replicas.template.get("spec") or {}})


def _check_size(job: TFJob) -> None:
    count = sum(_most(job, found) for found in job.roles.values())
    if count > MOST_TASKS:
        raise TFJobError(f"spec: {count} tasks, maxReplicas included: must be {MOST_TASKS} or fewer")
    entry = len(f'"{job.name}-evaluator-{count}.{job.namespace}.svc:65535",')
    if count * entry > _ENVIRONMENT_LENGTH:
        raise TFJobError(
            f"spec: {count} tasks, maxReplicas included: TF_CONFIG lists all of them and would be longer than "
            f"{_ENVIRONMENT_LENGTH} bytes, the most that Linux gives a program"
        )


def _most(job: TFJob, replicas: Replicas) -> int:
    """Return how many tasks of a role there may ever be."""
    return job.maximum if replicas.role is Role.WORKER else replicas.count


def _check_name(job: TFJob) -> None:
    longest = max((f"{job.name}-{found.role.task}-{_most(job, found) - 1}" for found in job.roles.values()), key=len)
    if not _LABEL.fullmatch(job.name):
        raise TFJobError(
            f"metadata.name: {job.name!r}: must be a DNS-1035 label (small letters, digits and '-', a letter first, no "
            "'-' last): its tasks' services are named after it"
        )
    if len(longest) > _LABEL_LENGTH:
        raise TFJobError(
            f"metadata.name: {job.name!r}: its task {longest!r} has a name of {len(longest)} characters: must be "
            f"{_LABEL_LENGTH} at the most, for its service"
        )


def _check_quantities(replicas: Replicas) -> None:
    spec: Mapping[str, Any] = replicas.template.get("spec") or {}
    where = f"spec.tfReplicaSpecs.{replicas.role.value}.template.spec"
    for place, given in _quantities(spec):
        try:
            value = parse(given)
        except ValueError as error:
            raise TFJobError(f"{where}.{place}: {given!r}: {error}") from error
        if not 0 <= value <= LARGEST:
            raise TFJobError(f"{where}.{place}: {given!r}: must be from 0 to {LARGEST}")


def is_amount(quantity: Any) -> bool:
    """Return whether it is a quantity that something may have or ask for."""
    try:
        return 0 <= parse(quantity) <= LARGEST
    except MALFORMED:
        return False


def _quantities(spec: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for group in ("containers", "initContainers"):
        for number, container in enumerate(spec.get(group) or ()):
            yield from _amounts(f"{group}[{number}].resources", container.get("resources") or {})
    yield from _amounts("resources", spec.get("resources") or {})
    for name, amount in (spec.get("overhead") or {}).items():
        yield f"overhead.{name}", amount


def _amounts(place: str, resources: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for kind in ("requests", "limits"):
        for name, amount in (resources.get(kind) or {}).items():
            yield f"{place}.{kind}.{name}", amount
