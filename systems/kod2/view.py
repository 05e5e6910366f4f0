"""The policy's queues, built from the books: nothing is remembered between two looks (contract kod2.md section 1)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache

from msgspec.structs import replace

from mews.kube.api.objects import Object, condition_of, is_deleting, name_of, phase_of, uid_of
from mews.kube.scheduling.plugins.node_affinity import matches, required_terms
from mews.kube.scheduling.plugins.taints import untolerated
from mews.kube.scheduling.podinfo import Amounts, PodInfo, amount
from mews.systems.kod2 import status as statuses
from mews.systems.kod2.checks import MALFORMED, is_amount, template_info
from mews.systems.kod2.cluster_cache import ClusterCache
from mews.systems.kod2.config import OperatorConfig
from mews.systems.kod2.model import ClusterState, ElasticJob, NodeRoom, Queues, Running, State, TaskRequest, WaitingJob
from mews.systems.kod2.outcome import ended_s
from mews.systems.kod2.podspec import owner_uid, task_of
from mews.systems.kod2.tfjob import Replicas, Role, TFJob

BASE = ("cpu", "memory", "pods")


class QueueView:
    """Reads queues off the books. One look is consistent: it is made without waiting."""

    def __init__(self, cache: ClusterCache, config: OperatorConfig) -> None:
        self._cache = cache
        self._pooled = config.pooled_resource
        self._settle_s = config.settle_s
        self._templates: dict[tuple[str, Role], tuple[object, PodInfo]] = {}

    def queues(self, now_s: float, held: Collection[str] = ()) -> Queues:
        """Return the queues as the API has them now (unix s). Jobs that are held back are not placed and stay as they
        are: ``held``, and those whose status says so. Those that cannot be read are left out: their own turn ends
        them."""
        jobs = [(tfjob, job) for tfjob, job in self._live()]
        dimensions = self._dimensions(job for _, job in jobs)
        nodes = self._nodes()
        waiting: list[WaitingJob] = []
        runners: list[Running] = []
        running: dict[str, tuple[TFJob, Mapping[str, str]]] = {}
        for tfjob, job in jobs:
            with suppress(*MALFORMED):
                status, stall = tfjob["status"], statuses.stall_of(tfjob)
                asked = self._job(job, statuses.waiting_since_s(status) or 0.0, dimensions, nodes)
                idle = job.key in held or (stall is not None and stall.until_s > now_s)
                state = statuses.state_of(status)
                if state == State.RUNNING:
                    runners.append(replace(self._running(tfjob, asked, now_s), held=idle))
                    running[uid_of(tfjob)] = (job, statuses.placement_of(status))
                elif not idle:
                    waiting.append(WaitingJob(asked, state == State.STARVING, refused=stall is not None))
        return Queues(self._cluster(nodes, dimensions, running), tuple(waiting), tuple(runners))

    def _live(self) -> Iterable[tuple[Object, TFJob]]:
        """TFJobs that are in the waiting or the running queue."""
        for tfjob in self._cache.all_tfjobs():
            with suppress(*MALFORMED):
                state = statuses.state_of(tfjob.get("status") or {})
                if state in (State.WAITING, State.RUNNING, State.STARVING) and not is_deleting(tfjob):
                    job = self._cache.good_spec_of(tfjob)
                    if job is not None and not job.suspend:
                        for replicas in job.roles.values():
                            self.template(job, replicas)  # all that follows counts on its being readable
                        yield tfjob, job

    def _running(self, tfjob: Object, job: ElasticJob, now_s: float) -> Running:
        pods = self._cache.pods_of(uid_of(tfjob))
        tasks = statuses.placement_of(tfjob["status"])
        done = {task for task in tasks if task in pods and phase_of(pods[task]) == "Succeeded"}
        left = {task: node for task, node in tasks.items() if task not in done}
        settled = {task: ended_s(pods[task]) + self._settle_s for task in done}
        fresh = {task: at_s for task, at_s in settled.items() if at_s > now_s}
        seen = statuses.replicas_seen(tfjob["status"])
        return Running(
            job,
            left,
            statuses.scaled_s(tfjob["status"]),
            target=job.wanted if seen not in (None, job.wanted) else None,
            finishing=bool(done),
            ended={task: tasks[task] for task in fresh},
            settled_s=min(fresh.values(), default=None),
        )

    # Jobs

    def _job(
        self, job: TFJob, arrived_s: float, dimensions: tuple[str, ...], nodes: Mapping[str, Object]
    ) -> ElasticJob:
        asks = {role: self._ask(job, replicas, dimensions, nodes) for role, replicas in job.roles.items()}
        fixed = tuple((task, asks[job.role_of(task).role]) for task in job.fixed_tasks())
        worker = asks.get(Role.WORKER) or TaskRequest((0,) * len(dimensions))
        return ElasticJob(job.key, arrived_s, fixed, worker, job.minimum, job.workers.count, job.maximum)

    def template(self, job: TFJob, replicas: Replicas) -> PodInfo:
        """Return a role's pod template as scheduling sees it."""
        known = self._templates.get((job.uid, replicas.role))
        if known is None or known[0] is not replicas.template:
            info = template_info(replicas)
            known = self._templates[(job.uid, replicas.role)] = (replicas.template, info)
        return known[1]

    def is_pooled(self, job: TFJob, replicas: Replicas) -> bool:
        """Return whether the role's pods ask for devices of a pool, and are left to the pool's scheduler."""
        return self.template(job, replicas).request(self._pooled) > 0

    def _ask(
        self, job: TFJob, replicas: Replicas, dimensions: tuple[str, ...], nodes: Mapping[str, Object]
    ) -> TaskRequest:
        info = self.template(job, replicas)
        amounts = tuple(1 if name == "pods" else info.request(name) for name in dimensions)
        return TaskRequest(amounts, info.request(self._pooled), _allowed(info, nodes))

    def _dimensions(self, jobs: Iterable[TFJob]) -> tuple[str, ...]:
        names = {
            name
            for job in jobs
            for replicas in job.roles.values()
            for name, amount in self.template(job, replicas).requests.items()
            if amount
        }
        return (*BASE, *sorted(names - {*BASE, self._pooled}))

    # Nodes

    def _nodes(self) -> dict[str, Object]:
        return {name_of(node): node for node in self._cache.nodes.items() if _takes_pods(node)}

    def _cluster(
        self,
        nodes: Mapping[str, Object],
        dimensions: tuple[str, ...],
        running: Mapping[str, tuple[TFJob, Mapping[str, str]]],
    ) -> ClusterState:
        """Running jobs, by uid, with their placements."""
        allocatable = {name: _allocatable(node, dimensions) for name, node in nodes.items()}
        free = {name: list(amounts) for name, amounts in allocatable.items()}
        pools, pool_of = self._cache.pool_sizes(), self._cache.pool_of_nodes()
        for name, pod in self._cache.bound_pods():
            owner = owner_uid(pod)
            if owner and is_deleting(pod):
                continue  # about to go
            if owner in running:
                requests = self._beyond(pod, *running[owner])
            else:
                requests = {**self._cache.requests_of(pod), "pods": 1}
            if name in free and requests:
                for dimension, resource in enumerate(dimensions):
                    free[name][dimension] -= requests.get(resource, 0)
            pool = pool_of.get(name)
            if pool is not None:
                pools[pool] -= requests.get(self._pooled, 0)
        made = (NodeRoom(name, allocatable[name], tuple(free[name]), pool_of.get(name)) for name in nodes)
        return ClusterState(tuple(made), pools)

    def _beyond(self, pod: Object, job: TFJob, placement: Mapping[str, str]) -> Amounts:
        """Return what a pod of a running job holds that the job's placement does not count: more than its template asks
        for since an edit, overhead of its runtime."""
        task, requests = task_of(pod["metadata"].get("labels") or {}), self._cache.requests_of(pod)
        if task not in placement or not job.has_task(task):
            return {}
        counted = self.template(job, job.role_of(task)).requests
        if requests == counted:
            return {}
        beyond = {name: held - counted.get(name, 0) for name, held in requests.items()}
        return {name: held for name, held in beyond.items() if held > 0}

    def room_for(self, job: TFJob, task: str, node_name: str) -> bool:
        """Return whether a pod would be admitted on a node now: what terminating pods still hold counts as held."""
        node = self._cache.nodes.get(node_name)
        if node is None:
            return False
        info = self.template(job, job.role_of(task))
        names = (*BASE, *(name for name in info.requests if name not in BASE))
        left = dict(zip(names, _allocatable(node, names), strict=True))
        for pod in self._cache.pods_on(node_name):
            requests = self._cache.requests_of(pod)
            for name in names:
                left[name] -= 1 if name == "pods" else requests.get(name, 0)
        return all(left[name] >= (1 if name == "pods" else info.request(name)) for name in names)

    def takes(self, node_name: str) -> bool:
        """Return whether a node is there, ready and not cordoned."""
        node = self._cache.nodes.get(node_name)
        return node is not None and _takes_pods(node) and not _closed(node)


def _takes_pods(node: Object) -> bool:
    ready = condition_of(node, "Ready")
    cordoned = bool((node.get("spec") or {}).get("unschedulable"))
    return not cordoned and not is_deleting(node) and ready is not None and ready.get("status") == "True"


def _closed(node: Object) -> bool:
    return untolerated((node.get("spec") or {}).get("taints") or (), ())


def _allocatable(node: Object, dimensions: Iterable[str]) -> tuple[int, ...]:
    """Return what a node says that it has; nothing of what cannot be read."""
    shown = (node.get("status") or {}).get("allocatable") or {}
    return tuple(_readable(name, str(shown.get(name, 0))) for name in dimensions)


@lru_cache(maxsize=4096)
def _readable(resource: str, quantity: str) -> int:
    return amount(resource, quantity) if is_amount(quantity) else 0


def _allowed(info: PodInfo, nodes: Mapping[str, Object]) -> frozenset[str] | None:
    """Return the nodes whose taints the pod tolerates and whose labels it wants; None for all."""
    choosy = bool(info.node_selector) or required_terms(info) is not None
    tainted = [name for name, node in nodes.items() if (node.get("spec") or {}).get("taints")]
    if not choosy and not tainted:
        return None
    return frozenset(
        name
        for name, node in nodes.items()
        if not untolerated((node.get("spec") or {}).get("taints") or (), info.tolerations)
        and (not choosy or matches(info, node["metadata"].get("labels") or {}, name))
    )
