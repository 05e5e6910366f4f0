"""The pods and services of a TFJob, and the TF_CONFIG that tells each task who it is (contract kod2.md section 1).

Pure.
"""

from __future__ import annotations

import json
from typing import Any

from mews.kube.api.objects import Object, clone
from mews.systems.kod2.tfjob import CONTAINER, PORT_NAME, Replicas, RestartPolicy, Role, TFJob

JOB_NAME = "training.kubeflow.org/job-name"
REPLICA_TYPE = "training.kubeflow.org/replica-type"
REPLICA_INDEX = "training.kubeflow.org/replica-index"
JOB_ROLE = "training.kubeflow.org/job-role"
OPERATOR_NAME = "training.kubeflow.org/operator-name"
OPERATOR = "tfjob-controller"
HOSTNAME = "kubernetes.io/hostname"
QUORUM = "KOD2_QUORUM"


def labels_of_task(job: TFJob, task: str) -> dict[str, str]:
    """Return the labels of a task's pod and service."""
    role, _, index = task.rpartition("-")
    labels = {JOB_NAME: job.name, OPERATOR_NAME: OPERATOR, REPLICA_TYPE: role, REPLICA_INDEX: index}
    if (job.lead is not None and role == job.lead.task) or (job.lead is None and task == "worker-0"):
        labels[JOB_ROLE] = "master"
    return labels


def worker_selector(job: TFJob) -> str:
    """Return the selector of a job's workers, as the scale subresource shows it."""
    return f"{JOB_NAME}={job.name},{OPERATOR_NAME}={OPERATOR},{REPLICA_TYPE}={Role.WORKER.task}"


def listed_tasks(pod: Object) -> Any:
    """Return the cluster that a pod's TF_CONFIG names; None where it has none."""
    for container in pod["spec"]["containers"]:
        for entry in container.get("env") or () if container["name"] == CONTAINER else ():
            if entry["name"] == "TF_CONFIG":
                return json.loads(entry.get("value") or "{}").get("cluster")
    return None


def task_of(labels: Any) -> str:
    """Return the task that a pod or service with these labels is of."""
    return f"{labels.get(REPLICA_TYPE, '')}-{labels.get(REPLICA_INDEX, '')}"


def tf_config(job: TFJob, task: str, *, workers: int | None = None) -> dict[str, Any]:
    """TF_CONFIG of a task; the task of a job that has only this one is given none. It names as many workers as the job
    may ever have, so that scaling rewrites nothing (``workers``: so many, where nobody scales)."""
    role, _, index = task.rpartition("-")
    listed = job.maximum if workers is None else workers
    counts = {found.role: found.count for found in job.roles.values()}
    if Role.WORKER in counts:
        counts[Role.WORKER] = listed
    suffix = f"{job.namespace}.svc" + (f".{job.domain}" if job.domain else "")
    cluster: dict[str, Any] = {
        name.task: [f"{job.name}-{name.task}-{i}.{suffix}:{job.roles[name].port}" for i in range(count)]
        for name, count in counts.items()
        if count
    }
    task_given = {"type": role, "index": int(index)}
    if job.dynamic:
        return {"cluster": _sparse(cluster, role, int(index)), "task": task_given}
    return {"cluster": cluster, "task": task_given, "environment": "cloud"}


def _sparse(cluster: dict[str, Any], role: str, index: int) -> dict[str, Any]:
    """Return what a task is told that needs not know the workers: itself, and the servers where it is a worker."""
    own = cluster[role][index]
    if role == Role.WORKER.task:
        return {"worker": {str(index): own}, "ps": cluster.get(Role.PS.task, [])}
    return {"worker": {}, "ps": [own] if role == Role.PS.task else []}


def pod_of_task(job: TFJob, owner: Object, task: str, *, node: str | None, scheduler: str | None = None) -> Object:
    """Return the pod of a task. On ``node`` outright, or by way of ``scheduler`` on a node so named; without a node the
    template decides, and the job is never scaled.

    KOD2_QUORUM tells a server how many workers it waits for before training begins.
    """
    workers = None if node is not None else job.workers.count
    quorum = 1 if job.elastic and node is not None else job.workers.count
    replicas = job.role_of(task)
    template = clone(dict(replicas.template))
    metadata, spec = template.get("metadata") or {}, template["spec"]
    spec["restartPolicy"] = _restart_policy(replicas)
    if node is not None and scheduler is None:
        spec["nodeName"] = node
    elif node is not None:
        spec["schedulerName"] = scheduler
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), HOSTNAME: node}
    container = next(found for found in spec["containers"] if found["name"] == CONTAINER)
    ours = {QUORUM: str(quorum)}
    if job.is_distributed:
        ours = {"TF_CONFIG": json.dumps(tf_config(job, task, workers=workers), separators=(",", ":")), **ours}
    kept = [entry for entry in container.get("env") or [] if entry["name"] not in ours]
    container["env"] = [*kept, *({"name": name, "value": value} for name, value in ours.items())]
    if not any(port.get("name") == PORT_NAME for port in container.get("ports") or ()):
        port = {"name": PORT_NAME, "containerPort": replicas.port, "protocol": "TCP"}
        container["ports"] = [*(container.get("ports") or []), port]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{job.name}-{task}",
            "namespace": job.namespace,
            "labels": {**(metadata.get("labels") or {}), **labels_of_task(job, task)},
            "annotations": dict(metadata.get("annotations") or {}),
            **({"finalizers": list(metadata["finalizers"])} if metadata.get("finalizers") else {}),
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": spec,
    }


def _restart_policy(replicas: Replicas) -> str:
    """Return the kubelet restarts what may be restarted in place; by exit code the operator decides."""
    return "Never" if replicas.restart is RestartPolicy.EXIT_CODE else replicas.restart.value


def service_of_task(job: TFJob, owner: Object, task: str) -> Object:
    """Return the headless service that gives a task its name."""
    labels = {key: value for key, value in labels_of_task(job, task).items() if key != JOB_ROLE}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": f"{job.name}-{task}",
            "namespace": job.namespace,
            "labels": labels,
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": {
            "clusterIP": "None",
            "selector": dict(labels),
            "ports": [
                {"name": name, "port": port, "targetPort": port, "protocol": "TCP"}
                for name, port in job.role_of(task).ports.items()
            ],
        },
    }


def owner_reference(owner: Object) -> dict[str, Any]:
    """Return what makes the TFJob the controller of its pods and services."""
    metadata = owner["metadata"]
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owner_uid(obj: Object) -> str:
    """Return the uid of the TFJob that controls a pod or service; "" where there is none."""
    for reference in obj.get("metadata", {}).get("ownerReferences") or ():
        if reference.get("controller") and reference.get("kind") == "TFJob":
            return str(reference["uid"])
    return ""
