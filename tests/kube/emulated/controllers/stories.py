"""Lives of workloads. Each story has a namespace of its own, so all of them may be told at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence

from mews.kube.api.errors import NotFoundError, TooManyRequestsError
from mews.kube.api.objects import (
    condition_of,
    labels_of,
    name_of,
    phase_of,
)
from mews.kube.api.resources import (
    CONFIGMAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    ENDPOINT_SLICES,
    ENDPOINTS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_QUOTAS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from mews.kube.client.port import DeleteOptions, Patch
from tests.kube.emulated.controllers import job_stories
from tests.kube.emulated.controllers.puppet import STUCK, UNREADY
from tests.kube.emulated.controllers.staging import REST_S, Stage, image, template, workload

# Deployments and ReplicaSets


async def rolls_out_and_back(stage: Stage) -> None:
    await stage.make(DEPLOYMENTS, "web", **workload("web", replicas=3))
    await stage.until("made", lambda: stage.status(DEPLOYMENTS, "web", availableReplicas=3))
    await stage.kube.patch(DEPLOYMENTS, "web", image("x:2"), kind=Patch.STRATEGIC, namespace=stage.namespace)
    done = {"updatedReplicas": 3, "availableReplicas": 3, "replicas": 3}
    await stage.until("updated", lambda: stage.status(DEPLOYMENTS, "web", observedGeneration=2, **done))
    await stage.kube.patch(DEPLOYMENTS, "web", image("x:1"), kind=Patch.STRATEGIC, namespace=stage.namespace)
    await stage.until("rolled back", lambda: stage.status(DEPLOYMENTS, "web", observedGeneration=3, **done))
    await stage.change(DEPLOYMENTS, "web", {"spec": {"replicas": 5}})
    await stage.until("grown", lambda: stage.status(DEPLOYMENTS, "web", availableReplicas=5))
    await stage.change(DEPLOYMENTS, "web", {"spec": {"replicas": 0}})
    await stage.until("empty", lambda: stage.status(DEPLOYMENTS, "web", replicas=0, observedGeneration=5))


async def pauses(stage: Stage) -> None:
    await stage.make(DEPLOYMENTS, "web", **workload("web", replicas=2))
    await stage.until("made", lambda: stage.status(DEPLOYMENTS, "web", availableReplicas=2))
    await stage.change(DEPLOYMENTS, "web", {"spec": {"paused": True}})
    await stage.until("paused", lambda: stage.status(DEPLOYMENTS, "web", observedGeneration=2))
    await stage.kube.patch(DEPLOYMENTS, "web", image("x:2"), kind=Patch.STRATEGIC, namespace=stage.namespace)
    await stage.change(DEPLOYMENTS, "web", {"spec": {"replicas": 4}})
    await stage.until("grown while paused", lambda: stage.status(DEPLOYMENTS, "web", availableReplicas=4))
    await stage.change(DEPLOYMENTS, "web", {"metadata": {"annotations": {"note": "mine"}}})
    await stage.change(DEPLOYMENTS, "web", {"spec": {"paused": False}})
    await stage.until("resumed", lambda: stage.status(DEPLOYMENTS, "web", updatedReplicas=4, availableReplicas=4))


async def recreates(stage: Stage) -> None:
    await stage.make(DEPLOYMENTS, "web", **workload("web", replicas=2, strategy={"type": "Recreate"}))
    await stage.until("made", lambda: stage.status(DEPLOYMENTS, "web", availableReplicas=2))
    await stage.kube.patch(DEPLOYMENTS, "web", image("x:2"), kind=Patch.STRATEGIC, namespace=stage.namespace)
    done = {"observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": 2, "replicas": 2}
    await stage.until("updated", lambda: stage.status(DEPLOYMENTS, "web", **done))


async def gets_stuck(stage: Stage) -> None:
    body = workload("web", replicas=2, progressDeadlineSeconds=5, revisionHistoryLimit=0)
    body["spec"]["template"] = template("web", **{STUCK: "yes"})
    await stage.make(DEPLOYMENTS, "web", **body)

    async def late() -> bool:
        found = condition_of(await stage.get(DEPLOYMENTS, "web"), "Progressing") or {}
        return found.get("reason") == "ProgressDeadlineExceeded"

    await stage.until("late", late)
    change = {"spec": {"template": {"metadata": {"annotations": {STUCK: None}}}}}
    await stage.change(DEPLOYMENTS, "web", change)
    done = {"observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": 2, "replicas": 2}
    await stage.until("repaired", lambda: stage.status(DEPLOYMENTS, "web", **done))


async def adopts_and_lets_go(stage: Stage) -> None:
    labels = {"app": "rs"}
    spec = {"containers": [{"name": "c", "image": "x:1"}]}
    await stage.make(PODS, "mine", metadata={"labels": labels}, spec=spec)
    await stage.make(REPLICA_SETS, "rs", **workload("rs", replicas=2))
    await stage.until("made", lambda: stage.status(REPLICA_SETS, "rs", readyReplicas=2))
    await stage.change(PODS, "mine", {"metadata": {"labels": {"app": "free"}}})

    async def replaced() -> bool:
        return len(await stage.all(PODS)) == 3 and await stage.status(REPLICA_SETS, "rs", readyReplicas=2)

    await stage.until("let go", replaced)


async def controls_replicas(stage: Stage) -> None:
    spec = {"selector": {"app": "rc"}, "template": template("rc"), "replicas": 2}
    await stage.make(REPLICATION_CONTROLLERS, "rc", spec=spec)
    await stage.until("made", lambda: stage.status(REPLICATION_CONTROLLERS, "rc", readyReplicas=2))
    await stage.change(REPLICATION_CONTROLLERS, "rc", {"spec": {"replicas": 3}})
    await stage.until("grown", lambda: stage.status(REPLICATION_CONTROLLERS, "rc", availableReplicas=3))
    await stage.change(REPLICATION_CONTROLLERS, "rc", {"spec": {"replicas": 0}})

    async def none() -> bool:
        return not await stage.all(PODS)

    await stage.until("shrunk", none)


# Others


async def is_everywhere(stage: Stage) -> None:
    budget = {"selector": {"matchLabels": {"app": "ds"}}, "minAvailable": 1}
    await stage.make(DISRUPTION_BUDGETS, "number", spec=budget)
    await stage.make(DAEMON_SETS, "ds", **workload("ds"))
    await stage.until("made", lambda: stage.status(DAEMON_SETS, "ds", numberAvailable=2))
    await stage.kube.patch(DAEMON_SETS, "ds", image("x:2"), kind=Patch.STRATEGIC, namespace=stage.namespace)
    done = {"observedGeneration": 2, "updatedNumberScheduled": 2, "numberAvailable": 2}
    await stage.until("updated", lambda: stage.status(DAEMON_SETS, "ds", **done))


async def grows_beside_itself(stage: Stage) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await stage.make(DAEMON_SETS, "ds", **workload("ds", updateStrategy=rolling))
    await stage.until("made", lambda: stage.status(DAEMON_SETS, "ds", numberAvailable=2))
    await stage.kube.patch(DAEMON_SETS, "ds", image("x:2"), kind=Patch.STRATEGIC, namespace=stage.namespace)
    done = {"observedGeneration": 2, "updatedNumberScheduled": 2, "numberAvailable": 2}
    await stage.until("updated", lambda: stage.status(DAEMON_SETS, "ds", **done))


async def is_sick(stage: Stage) -> None:
    """Pods that are not ready are evicted while enough others are healthy, or always, by the budget's policy."""
    body = workload("web", replicas=2)
    body["spec"]["template"] = template("web", **{UNREADY: "yes"})
    await stage.make(REPLICA_SETS, "web", **body)
    await stage.make(DISRUPTION_BUDGETS, "web", spec={"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1})

    async def run() -> bool:
        pods = await stage.all(PODS)
        seen = await stage.status(DISRUPTION_BUDGETS, "web", expectedPods=2, desiredHealthy=1, observedGeneration=1)
        return seen and len(pods) == 2 and all(phase_of(pod) == "Running" for pod in pods)

    await stage.until("sick", run)
    sick = [name_of(pod) for pod in await stage.all(PODS)]
    refusals = []
    for policy in ("IfHealthyBudget", "AlwaysAllow"):
        await stage.change(DISRUPTION_BUDGETS, "web", {"spec": {"unhealthyPodEvictionPolicy": policy}})
        await asyncio.sleep(REST_S)
        try:
            await stage.kube.evict(stage.namespace, sick[0])
        except TooManyRequestsError as error:
            refusals.append(f"{policy}: {error.message} {json.dumps(error.details, sort_keys=True)}")
    stage.seen.append(("refused", refusals))
    await stage.until("replaced", lambda: _replaced(stage, sick[0]))


async def _replaced(stage: Stage, gone: str) -> bool:
    pods = await stage.all(PODS)
    names = [name_of(pod) for pod in pods]
    return gone not in names and len(names) == 2 and all(phase_of(pod) == "Running" for pod in pods)


async def is_written_by_hand(stage: Stage) -> None:
    """Endpoints of a Service without a selector."""
    port = {"name": "http", "port": 80}
    first = {"addresses": [{"ip": "10.1.0.2"}, {"ip": "10.1.0.1", "hostname": "one"}], "ports": [port]}
    second = {"notReadyAddresses": [{"ip": "10.1.0.3"}], "addresses": [{"ip": "2001:db8::1"}], "ports": [port]}
    await stage.make(SERVICES, "web", spec={"ports": [{"port": 80, "name": "http"}]})
    metadata = {"labels": {"mine": "yes"}, "annotations": {"note": "mine"}}
    await stage.make(ENDPOINTS, "web", metadata=metadata, subsets=[first, second])
    await stage.make(ENDPOINTS, "unserved", subsets=[first])
    skipped = {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}
    await stage.make(SERVICES, "own", spec={"ports": [{"port": 80, "name": "http"}]})
    await stage.make(ENDPOINTS, "own", metadata=skipped, subsets=[first])

    async def slices(count: int) -> bool:
        return len(await stage.all(ENDPOINT_SLICES)) == count

    await stage.until("mirrored", lambda: slices(2))
    await stage.change(ENDPOINTS, "web", {"subsets": [{**first, "ports": [{"name": "http", "port": 81}]}]})
    await stage.until("changed", lambda: slices(1))
    await stage.change(ENDPOINTS, "own", {"metadata": {"labels": None}})
    await stage.until("no longer skipped", lambda: slices(2))
    await stage.change(SERVICES, "own", {"spec": {"selector": {"app": "own"}}})

    async def selected() -> bool:
        found = [
            labels_of(each).get("endpointslice.kubernetes.io/managed-by", "")
            for each in await stage.all(ENDPOINT_SLICES)
        ]
        return sorted(found) == ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"]

    await stage.until("selected", selected)
    await stage.kube.delete(SERVICES, "web", namespace=stage.namespace)
    await stage.until("unserved", lambda: slices(1))


async def goes_one_by_one(stage: Stage) -> None:
    await stage.make(STATEFUL_SETS, "db", **workload("db", replicas=3, serviceName="db"))
    await stage.until("made", lambda: stage.status(STATEFUL_SETS, "db", availableReplicas=3))
    await stage.kube.patch(STATEFUL_SETS, "db", image("x:<2>"), kind=Patch.STRATEGIC, namespace=stage.namespace)
    done = {"observedGeneration": 2, "currentReplicas": 3, "availableReplicas": 3}
    await stage.until("updated", lambda: stage.status(STATEFUL_SETS, "db", **done))
    await stage.change(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})
    await stage.until("shrunk", lambda: stage.status(STATEFUL_SETS, "db", replicas=1, observedGeneration=3))


async def is_served(stage: Stage) -> None:
    quota = {"hard": {"pods": "10", "requests.cpu": "4", "count/replicasets.apps": "3"}}
    await stage.make(RESOURCE_QUOTAS, "quota", spec=quota)
    await stage.make(SERVICES, "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80, "name": "http"}]})
    await stage.make(SERVICES, "names", spec={"selector": {"app": "web"}, "clusterIP": "None"})
    body = workload("web", replicas=3)
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    await stage.make(REPLICA_SETS, "web", **body)
    budget = {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": "50%"}
    await stage.make(DISRUPTION_BUDGETS, "share", spec=budget)

    async def ready() -> bool:
        slices = await stage.all(ENDPOINT_SLICES)
        reached = [e for s in slices for e in s.get("endpoints") or () if e["conditions"]["ready"]]
        return len(reached) == 6 and await stage.status(DISRUPTION_BUDGETS, "share", disruptionsAllowed=2)

    await stage.until("ready", ready)


async def leaves_nothing(stage: Stage) -> None:
    await stage.make(DEPLOYMENTS, "web", **workload("web", replicas=2))
    await stage.until("made", lambda: stage.status(DEPLOYMENTS, "web", availableReplicas=2))
    options = DeleteOptions(propagation="Foreground")
    await stage.kube.delete(DEPLOYMENTS, "web", namespace=stage.namespace, options=options)
    await stage.until("gone", lambda: _gone(stage, DEPLOYMENTS, "web"))


async def leaves_orphans(stage: Stage) -> None:
    await stage.make(REPLICA_SETS, "rs", **workload("rs", replicas=2))
    await stage.until("made", lambda: stage.status(REPLICA_SETS, "rs", readyReplicas=2))
    options = DeleteOptions(propagation="Orphan")
    await stage.kube.delete(REPLICA_SETS, "rs", namespace=stage.namespace, options=options)
    await stage.until("gone", lambda: _gone(stage, REPLICA_SETS, "rs"))


async def loses_an_owner(stage: Stage) -> None:
    owner = await stage.make(CONFIGMAPS, "owner")
    there = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    never = {**there, "name": "nobody", "uid": "11111111-1111-4111-8111-111111111111"}
    spec = {"containers": [{"name": "c", "image": "x:1"}]}
    for name, owners in (("one", [there]), ("none", [never]), ("two", [there, never])):
        await stage.make(PODS, name, metadata={"ownerReferences": owners}, spec=spec)

    async def tidy() -> bool:
        pods = {name_of(pod): pod["metadata"].get("ownerReferences", []) for pod in await stage.all(PODS)}
        return sorted(pods) == ["one", "two"] and len(pods["two"]) == 1

    await stage.until("tidy", tidy)
    await stage.kube.delete(CONFIGMAPS, "owner", namespace=stage.namespace)

    async def empty() -> bool:
        return not await stage.all(PODS)

    await stage.until("empty", empty)


async def _gone(stage: Stage, resource: Resource, name: str) -> bool:
    try:
        await stage.get(resource, name)
    except NotFoundError:
        return True
    return False


STORIES: Sequence[Callable[[Stage], Awaitable[None]]] = (
    *(rolls_out_and_back, pauses, recreates, gets_stuck, adopts_and_lets_go, controls_replicas),
    *job_stories.STORIES,
    *(grows_beside_itself, is_sick, is_written_by_hand),
    *(is_everywhere, goes_one_by_one, is_served, leaves_nothing, leaves_orphans, loses_an_owner),
)
