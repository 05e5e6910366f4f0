"""A TFJob read from the API, with defaults (kubeflow.org/v1; contract kod2.md section 1). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, name_of, namespace_of, uid_of
from mews.systems.kod2.errors import TFJobError

CONTAINER = "tensorflow"
PORT_NAME, PORT = "tfjob-port", 2222


class Role(StrEnum):
    """Replica types as they stand in a TFJob; tasks bear them in small letters."""

    PS = "PS"
    CHIEF = "Chief"
    MASTER = "Master"
    WORKER = "Worker"
    EVALUATOR = "Evaluator"

    @property
    def task(self) -> str:
        """As in pod names and TF_CONFIG."""
        return self.value.lower()


class RestartPolicy(StrEnum):
    """What is done about a container that ends with an error."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"
    EXIT_CODE = "ExitCode"


class CleanPodPolicy(StrEnum):
    """Which pods are deleted when the job has ended."""

    ALL = "All"
    RUNNING = "Running"
    NONE = "None"


class Replicas(Struct, frozen=True):
    """One replica type: ``template`` is a pod template, read-only."""

    role: Role
    count: int
    restart: RestartPolicy
    template: Mapping[str, Any]

    @property
    def port(self) -> int:
        """The container's tfjob-port, 2222 where it names none."""
        return self.ports[PORT_NAME]

    @property
    def ports(self) -> dict[str, int]:
        """All ports of the container by name; tfjob-port is always one of them."""
        found: dict[str, int] = {}
        for container in (self.template.get("spec") or {}).get("containers") or ():
            for port in (container.get("ports") or ()) if container.get("name") == CONTAINER else ():
                found[str(port.get("name") or "")] = int(port["containerPort"])
        return {**found, PORT_NAME: found.get(PORT_NAME, PORT)}


class TFJob(Struct, frozen=True):
    """A TFJob. ``minimum`` and ``maximum`` bound its workers; both are ``replicas`` for a rigid one. ``all_workers``:
    worker-0's success is not yet a rigid one's (successPolicy). ``restart_on_resize``: tasks whose TF_CONFIG lists
    others than there may be now begin anew. ``dynamic``: a worker is told of itself and the servers only, and its
    failure is not the job's (enableDynamicWorker). ``domain``: the cluster's, in names."""

    namespace: str
    name: str
    uid: str
    roles: Mapping[Role, Replicas]
    elastic: bool
    minimum: int
    maximum: int
    deadline_s: int | None
    backoff_limit: int | None
    suspend: bool
    all_workers: bool = False
    dynamic: bool = False
    domain: str = ""
    restart_on_resize: bool = False

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def workers(self) -> Replicas:
        """The worker replicas; none of them where the job has no such role."""
        return self.roles.get(Role.WORKER, _NO_WORKERS)

    @property
    def is_distributed(self) -> bool:
        """Whether it has more than one task, or may have."""
        return len(self.fixed_tasks()) + self.maximum != 1

    @property
    def lead(self) -> Role | None:
        """The chief's or master's role, if there is one: its end ends the job."""
        return next((role for role in (Role.CHIEF, Role.MASTER) if role in self.roles), None)

    def fixed_tasks(self) -> tuple[str, ...]:
        """Tasks that never scale, parameter servers first."""
        roles = [role for role in Role if role in self.roles and role is not Role.WORKER]
        return tuple(f"{role.task}-{index}" for role in roles for index in range(self.roles[role].count))

    def all_tasks(self) -> tuple[str, ...]:
        """Return all tasks of the job at its ``replicas``: what a controller without elasticity creates."""
        return (*self.fixed_tasks(), *(f"worker-{index}" for index in range(self.workers.count)))

    def has_task(self, task: str) -> bool:
        """Return whether its spec still knows a task; of workers there may be any."""
        role, _, index = task.rpartition("-")
        found = next((replicas for name, replicas in self.roles.items() if name.task == role), None)
        return found is not None and (found.role is Role.WORKER or int(index) < found.count)

    def role_of(self, task: str) -> Replicas:
        """Return the replica type of a task."""
        return next(found for role, found in self.roles.items() if role.task == task.rpartition("-")[0])


_NO_WORKERS = Replicas(Role.WORKER, 0, RestartPolicy.NEVER, MappingProxyType({}))


def read_tfjob(obj: Object) -> TFJob:
    """Return the TFJob in an object that the schema has let through.

    Raises TFJobError.
    """
    spec = obj.get("spec") or {}
    roles = {role: _replicas(role, given) for role, given in _roles(spec.get("tfReplicaSpecs") or {})}
    roles = {role: found for role, found in roles.items() if found.count}
    if not roles:
        raise TFJobError("spec.tfReplicaSpecs: a TFJob needs at least one replica")
    if Role.CHIEF in roles and Role.MASTER in roles:
        raise TFJobError("spec.tfReplicaSpecs: Chief and Master are two names of one role; give one of them")
    policy = _run_policy(spec)
    workers = roles.get(Role.WORKER, _NO_WORKERS).count
    if not workers and spec.get("elasticPolicy") is not None:
        raise TFJobError("spec.elasticPolicy: bounds the workers, and spec.tfReplicaSpecs has none")
    minimum, maximum = _bounds(spec.get("elasticPolicy"), workers)
    return TFJob(
        namespace=namespace_of(obj),
        name=name_of(obj),
        uid=uid_of(obj),
        roles=roles,
        elastic=spec.get("elasticPolicy") is not None,
        minimum=minimum,
        maximum=maximum,
        deadline_s=policy.get("activeDeadlineSeconds"),
        backoff_limit=policy.get("backoffLimit"),
        suspend=bool(policy.get("suspend")),
        all_workers=spec.get("successPolicy") == "AllWorkers",
        dynamic=bool(spec.get("enableDynamicWorker")),
        restart_on_resize=bool((spec.get("elasticPolicy") or {}).get("restartOnResize")),
    )


def clean_up_of(obj: Object, default: CleanPodPolicy) -> tuple[CleanPodPolicy, int | None]:
    """Return which pods go when the job has ended, and after how many seconds it goes itself, of any TFJob: what cannot
    be read is as if it were not there."""
    spec = obj.get("spec")
    policy = _run_policy(spec) if isinstance(spec, Mapping) else {}
    clean, ttl_s = policy.get("cleanPodPolicy"), policy.get("ttlSecondsAfterFinished")
    known = [policy for policy in CleanPodPolicy if policy == clean]
    return known[0] if known else default, ttl_s if isinstance(ttl_s, int) else None


_FLAT = ("cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit")
"""The older fields, directly below spec; runPolicy wins."""


def _run_policy(spec: Mapping[str, Any]) -> dict[str, Any]:
    given = spec.get("runPolicy")
    return {**{name: spec[name] for name in _FLAT if name in spec}, **(given if isinstance(given, Mapping) else {})}


def _roles(given: Mapping[str, Any]) -> list[tuple[Role, Mapping[str, Any]]]:
    by_name = {role.value.lower(): role for role in Role}
    found = []
    for name in sorted(given):
        if name.lower() not in by_name:
            allowed = ", ".join(role.value for role in Role)
            raise TFJobError(f"spec.tfReplicaSpecs.{name}: unknown replica type; must be one of {allowed}")
        found.append((by_name[name.lower()], given[name]))
    return found


def _replicas(role: Role, given: Mapping[str, Any]) -> Replicas:
    where = f"spec.tfReplicaSpecs.{role.value}"
    count = int(given.get("replicas", 1) if given.get("replicas") is not None else 1)
    if role in (Role.CHIEF, Role.MASTER) and count > 1:
        raise TFJobError(f"{where}.replicas: {count}: there is at most one")
    template = given.get("template") or {}
    containers = (template.get("spec") or {}).get("containers") or []
    if not any(container.get("name") == CONTAINER for container in containers):
        names = ", ".join(str(container.get("name")) for container in containers) or "none"
        raise TFJobError(f"{where}.template.spec.containers: must have one named {CONTAINER!r}; there is: {names}")
    if not all(container.get("image") for container in containers):
        raise TFJobError(f"{where}.template.spec.containers: each needs an image")
    return Replicas(role, count, RestartPolicy(given.get("restartPolicy") or RestartPolicy.NEVER), template)


def _bounds(policy: Mapping[str, Any] | None, replicas: int) -> tuple[int, int]:
    if policy is None:
        return replicas, replicas
    low, high = policy.get("minReplicas"), policy.get("maxReplicas")
    minimum, maximum = 1 if low is None else int(low), replicas if high is None else int(high)
    if not 1 <= minimum <= replicas <= maximum:
        raise TFJobError(
            f"spec.elasticPolicy: minReplicas {minimum}, Worker.replicas {replicas}, maxReplicas {maximum}: must be "
            "1 <= minReplicas <= replicas <= maxReplicas"
        )
    return minimum, maximum


MANAGER = "kubeflow.org/training-operator"


def is_managed_elsewhere(obj: Object) -> bool:
    """Return whether somebody else sees to this TFJob (runPolicy.managedBy)."""
    spec = obj.get("spec")
    policy = spec.get("runPolicy") if isinstance(spec, Mapping) else None
    return isinstance(policy, Mapping) and policy.get("managedBy") not in (None, "", MANAGER)


def key_parts(key: str) -> tuple[str, str]:
    """Namespace and name of a key."""
    namespace, _, name = key.partition("/")
    return namespace, name
