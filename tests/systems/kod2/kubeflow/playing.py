"""Plays a case to our operator, as the baseline, in virtual time: what is there once it has come to rest."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping
from typing import Any

from mews.harness.clock import run_virtual, virtual_clock
from mews.kube.api.objects import is_deleting, name_of, phase_of, timestamp, uid_of
from mews.kube.api.resources import PODS, SERVICES
from mews.kube.clock import stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.system.kinds import install_kind
from mews.systems.kod2.config import OperatorConfig
from mews.systems.kod2.install import TFJOBS
from mews.systems.kod2.model import State
from mews.systems.kod2.operator import Kod2Operator
from mews.systems.kod2.status import is_finished
from tests.upstream.oracles.model import Answer, Case

CONFIG = OperatorConfig(scheduling="tf-operator", clean_pod_policy="None", default_cpu="", default_memory="")
_RESTS_S = 30.0
_SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "tfjobs.kubeflow.org"},
    "spec": {
        "group": TFJOBS.group,
        "scope": "Namespaced",
        "names": {"kind": "TFJob", "plural": "tfjobs", "singular": "tfjob", "listKind": "TFJobList"},
        "versions": [
            {"name": TFJOBS.version, "served": True, "storage": True, "subresources": {"status": {}}}
            | {"schema": {"openAPIV3Schema": _SCHEMA}}
        ],
    },
}
"""TFJobs without the rules of the real definition, with which a case would take six times as long."""
_NAMESPACE = "default"


def ours(case: Case) -> Answer:
    """Conditions, replica statuses, pods and services that are there."""
    found: list[Answer] = []

    async def main() -> None:
        clock = virtual_clock()
        kube = InProcessKube(fresh_store(clock.now, stream(1, "store")), "system:admin")
        await install_kind(kube, _DEFINITION)
        await _create(kube, case, clock.now())
        context = Context(kube, clock, random.Random(1), logging.getLogger("kod2-oracle"))
        task = asyncio.create_task(Kod2Operator(context, CONFIG).run())
        await asyncio.sleep(_RESTS_S)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        found.append(await _look(kube))

    run_virtual(main)
    return found[0]


async def _create(kube: InProcessKube, case: Case, now_s: float) -> None:
    job = {key: value for key, value in case["job"].items() if key != "status"}
    made = await kube.create(TFJOBS, job, namespace=_NAMESPACE)
    status = {**case["job"]["status"], "startTime": timestamp(now_s - case["started"])}
    stamp = {"lastUpdateTime": status["startTime"], "lastTransitionTime": status["startTime"]}
    status["conditions"] = [condition | stamp for condition in status["conditions"]]
    if not is_finished(status):
        status["elastic"] = {"state": State.RUNNING.value}
    await kube.patch(TFJOBS, name_of(made), {"status": status}, namespace=_NAMESPACE, subresource="status")
    for service in case["services"]:
        body = {**_owned(service, uid_of(made)), "spec": {"clusterIP": "None", "ports": [{"port": 2222}]}}
        await kube.create(SERVICES, body, namespace=_NAMESPACE)
    for pod in case["pods"]:
        body = _owned({**pod, "status": {}}, uid_of(made))
        deleting = body["metadata"].pop("deletionTimestamp", None)
        await kube.create(PODS, body, namespace=_NAMESPACE)
        change = {"status": pod["status"]}
        await kube.patch(PODS, name_of(body), change, namespace=_NAMESPACE, subresource="status")
        if deleting:
            await kube.delete(PODS, name_of(body), namespace=_NAMESPACE)


def _owned(obj: Mapping[str, Any], uid: str) -> dict[str, Any]:
    owners = [{**ref, "uid": uid} for ref in obj["metadata"]["ownerReferences"]]
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": owners}}


async def _look(kube: InProcessKube) -> Answer:
    job = await kube.get(TFJOBS, "j", namespace=_NAMESPACE)
    status = job.get("status") or {}
    pods = (await kube.list(PODS, namespace=_NAMESPACE)).items
    return answer(
        status.get("conditions") or (),
        status.get("replicaStatuses") or {},
        {name_of(pod): phase_of(pod) + (", deleting" if is_deleting(pod) else "") for pod in pods},
        sorted(name_of(service) for service in (await kube.list(SERVICES, namespace=_NAMESPACE)).items),
        ended="completionTime" in status,
    )


def answer(conditions: Any, replicas: Any, pods: Any, services: Any, *, ended: bool) -> Answer:
    """In one form for both sides. ``verdict``: the last condition that holds."""
    kept = [[each[key] for key in ("type", "status", "reason", "message")] for each in conditions]
    counted = {role: {name: n for name, n in counts.items() if n} for role, counts in replicas.items()}
    true = [kind for kind, value, *_ in kept if value == "True"]
    return {
        "verdict": true[-1] if true else "none",
        "conditions": kept,
        "replicas": {role: counts for role, counts in sorted(counted.items()) if counts},
        "pods": dict(sorted(pods.items())),
        "services": list(services),
        "ended": ended,
    }


def read(given: Mapping[str, Any]) -> Answer:
    """Upstream's answer in the same form."""
    if not given["settled"]:
        return {"verdict": "not settled", "error": given.get("error", "")}
    return answer(
        given["conditions"] or (), given["replicas"], given["pods"], given["services"] or (), ended=given["ended"]
    )
