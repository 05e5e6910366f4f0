"""TFJobs that two operators are given, and what each of them made of them."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from mews.kube.api.errors import ApiError
from mews.kube.api.objects import annotations_of, labels_of, name_of, phase_of, seconds
from mews.kube.api.resources import CRDS, EVENTS, NAMESPACES, PODS, SECRETS, SERVICES, Resource
from mews.kube.client.http import HttpKube
from mews.kube.client.port import Patch
from mews.systems.kod2.install import TFJOBS

WEBHOOKS = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration",
    namespaced=False,
)  # fmt: skip
CERTIFICATES = Path("/tmp/k8s-webhook-server/serving-certs")
"""Where training-operator reads its certificate, as a pod's volume would have it; no option says otherwise."""

IMAGES = {
    "case/ok": {"simulate": {"duration_s": 40}},
    "case/long": {"simulate": {"duration_s": float("inf")}},
    "case/fails": {"simulate": {"duration_s": 40, "exit_code": 1}},
    "case/127": {"simulate": {"duration_s": 40, "exit_code": 127}},
    "case/130": {"simulate": {"duration_s": 40, "exit_code": 130}},
    "case/deaf": {"simulate": {"duration_s": float("inf"), "obeys_term": False}},
}


def images(folder: Path) -> dict[str, Any]:
    """All images of the cases. Those that fail once remember that in the folder."""
    found: dict[str, Any] = dict(IMAGES)
    for name, code in {"once-130": 130, "once-1": 1, "once-2": 2}.items():
        seen = folder / name
        script = f'[ -e "{seen}" ] && exec sleep 1000000; touch "{seen}"; sleep 5; exit {code}'
        found[f"case/{name}"] = {"process": ["sh", "-c", script]}
    return found


def role(image: str, replicas: int = 1, restart: str | None = None, **container: Any) -> dict[str, Any]:
    """One entry of tfReplicaSpecs."""
    main = {"name": "tensorflow", "image": f"case/{image}", **container}
    spec = {"containers": [main], "terminationGracePeriodSeconds": 1}
    made: dict[str, Any] = {"replicas": replicas, "template": {"spec": spec}}
    return made | ({"restartPolicy": restart} if restart else {})


def beside(made: dict[str, Any], image: str) -> dict[str, Any]:
    """The entry with a second container in its pods."""
    made["template"]["spec"]["containers"].append({"name": "beside", "image": f"case/{image}"})
    return made


def with_template(made: dict[str, Any], labels: dict[str, str], **spec: Any) -> dict[str, Any]:
    """The entry with labels, and more fields, in the template of its pods."""
    made["template"]["metadata"] = {"labels": labels, "annotations": {"example.com/note": "kept"}}
    made["template"]["spec"].update(spec)
    return made


PORTS = [{"name": "tfjob-port", "containerPort": 3333}, {"name": "board", "containerPort": 6006}]
CASES: dict[str, dict[str, Any]] = {
    "workers": {"tfReplicaSpecs": {"Worker": role("ok", 2)}},
    "servers": {"tfReplicaSpecs": {"PS": role("long", 2), "Worker": role("ok", 2)}},
    "chief": {"tfReplicaSpecs": {"Chief": role("ok"), "PS": role("long"), "Worker": role("long", 2)}},
    "master": {"tfReplicaSpecs": {"Master": role("ok"), "Worker": role("long")}},
    "evaluators": {"tfReplicaSpecs": {"Chief": role("ok"), "PS": role("long"), "Evaluator": role("long", 2)}},
    "servers-only": {"tfReplicaSpecs": {"PS": role("long", 2)}},
    "one": {"tfReplicaSpecs": {"Worker": role("ok")}},
    "all-of-them": {
        "successPolicy": "AllWorkers",
        "tfReplicaSpecs": {"Chief": role("long"), "Worker": role("ok", 2)},
    },
    "all-workers": {"successPolicy": "AllWorkers", "tfReplicaSpecs": {"Worker": role("ok", 2)}},
    "fails": {"tfReplicaSpecs": {"PS": role("long"), "Worker": role("fails", 1, "Never")}},
    "exit-code": {"tfReplicaSpecs": {"PS": role("long"), "Worker": role("fails", 1, "ExitCode")}},
    "backoff": {"runPolicy": {"backoffLimit": 1}, "tfReplicaSpecs": {"Worker": role("fails", 1, "OnFailure")}},
    "no-time": {"runPolicy": {"activeDeadlineSeconds": 0}, "tfReplicaSpecs": {"Worker": role("long", 2)}},
    "clean-all": {"runPolicy": {"cleanPodPolicy": "All"}, "tfReplicaSpecs": {"PS": role("long"), "Worker": role("ok")}},
    "clean-running": {
        "runPolicy": {"cleanPodPolicy": "Running"},
        "tfReplicaSpecs": {"PS": role("long"), "Worker": role("ok")},
    },
    "ttl": {"runPolicy": {"ttlSecondsAfterFinished": 3}, "tfReplicaSpecs": {"Worker": role("ok")}},
    "held": {"runPolicy": {"suspend": True}, "tfReplicaSpecs": {"Worker": role("ok", 2)}},
    "held-later": {"tfReplicaSpecs": {"PS": role("long"), "Worker": role("long")}},
    "resumed": {"tfReplicaSpecs": {"PS": role("long"), "Worker": role("long", 2)}},
    "others": {
        "runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"},
        "tfReplicaSpecs": {"Worker": role("ok", 2)},
    },
    "dynamic": {"enableDynamicWorker": True, "tfReplicaSpecs": {"PS": role("long"), "Worker": role("long", 2)}},
    "ports": {"tfReplicaSpecs": {"PS": role("long", ports=PORTS), "Worker": role("long", ports=PORTS)}},
    "no-backoff": {"runPolicy": {"backoffLimit": 0}, "tfReplicaSpecs": {"PS": role("long"), "Worker": role("fails")}},
    "beside": {"tfReplicaSpecs": {"PS": role("long"), "Worker": beside(role("ok", 1, "ExitCode"), "fails")}},
    "taken-away": {
        "tfReplicaSpecs": {
            "PS": role("long"),
            "Worker": with_template(role("deaf", 2, "OnFailure"), {}, terminationGracePeriodSeconds=15),
        }
    },
    "lower-case": {"tfReplicaSpecs": {"worker": role("long", 2), "ps": role("long")}},
    "clean-none": {
        "runPolicy": {"cleanPodPolicy": "None"},
        "tfReplicaSpecs": {"PS": role("long"), "Worker": role("ok")},
    },
    "clean-all-failed": {
        "runPolicy": {"cleanPodPolicy": "All"},
        "tfReplicaSpecs": {"PS": role("long"), "Worker": role("fails", 1, "Never")},
    },
    "clean-running-failed": {
        "runPolicy": {"cleanPodPolicy": "Running"},
        "tfReplicaSpecs": {"PS": role("long"), "Worker": role("fails", 1, "Never")},
    },
    "clean-none-failed": {
        "runPolicy": {"cleanPodPolicy": "None"},
        "tfReplicaSpecs": {"PS": role("long"), "Worker": role("fails", 1, "Never")},
    },
    "code-127": {"tfReplicaSpecs": {"PS": role("long"), "Worker": role("127", 1, "ExitCode")}},
    "code-130": {"tfReplicaSpecs": {"PS": role("long"), "Worker": role("once-130", 1, "ExitCode")}},
    "code-never": {"tfReplicaSpecs": {"PS": role("long"), "Worker": role("130", 1, "Never")}},
    "always": {"runPolicy": {"backoffLimit": 1}, "tfReplicaSpecs": {"Worker": role("ok", 1, "Always")}},
    "chief-fails": {"tfReplicaSpecs": {"Chief": role("fails", 1, "Never"), "Worker": role("long", 2)}},
    "server-fails": {"tfReplicaSpecs": {"PS": role("fails", 1, "Never"), "Worker": role("long", 2)}},
    "evaluators-fail": {
        "tfReplicaSpecs": {"Worker": role("long"), "Chief": role("long"), "Evaluator": role("fails", 1, "Never")}
    },
    "evaluators-alone": {"tfReplicaSpecs": {"Evaluator": role("ok", 2)}},
    "evaluated": {"tfReplicaSpecs": {"Worker": role("ok", 2), "Evaluator": role("long", 2)}},
    "on-failure": {"tfReplicaSpecs": {"PS": role("long"), "Worker": role("once-1", 1, "OnFailure")}},
    "always-on": {"tfReplicaSpecs": {"PS": role("long"), "Worker": role("once-2", 1, "Always")}},
    "chief-and-failing-worker": {"tfReplicaSpecs": {"Chief": role("long"), "Worker": role("fails", 1, "Never")}},
    "late": {
        "runPolicy": {"activeDeadlineSeconds": 60},
        "tfReplicaSpecs": {"Chief": role("long"), "PS": role("long"), "Worker": role("long", 2)},
    },
    "ttl-failed": {
        "runPolicy": {"ttlSecondsAfterFinished": 3},
        "tfReplicaSpecs": {"Worker": role("fails", 1, "Never")},
    },
    "managed-here": {
        "runPolicy": {"managedBy": "kubeflow.org/training-operator"},
        "tfReplicaSpecs": {"Worker": role("ok", 2)},
    },
    "held-kept": {
        "runPolicy": {"cleanPodPolicy": "None"},
        "tfReplicaSpecs": {"Chief": role("long"), "PS": role("long"), "Evaluator": role("long")},
    },
    "ended-then-held": {"tfReplicaSpecs": {"Worker": role("ok")}},
    "in-a-queue": {
        "runPolicy": {"schedulingPolicy": {"minAvailable": 1, "queue": "q", "priorityClass": "high"}},
        "tfReplicaSpecs": {"Worker": role("ok", 2)},
    },
    "own-template": {
        "tfReplicaSpecs": {
            "PS": with_template(role("long"), {"mine": "yes"}, restartPolicy="Always"),
            "Worker": with_template(
                role("long", 2, env=[{"name": "A", "value": "1"}]),
                {"training.kubeflow.org/job-name": "other"},
                schedulerName="default-scheduler",
            ),
        }
    },
    "dynamic-fails": {
        "enableDynamicWorker": True,
        "tfReplicaSpecs": {"PS": role("long"), "Worker": role("fails", 2, "Never")},
    },
    "dynamic-code": {
        "enableDynamicWorker": True,
        "tfReplicaSpecs": {"PS": role("long"), "Worker": role("fails", 2, "ExitCode")},
    },
}
"""Name -> spec."""
SUSPENDED = ("held-later", "resumed", "held-kept")
RESUMED = ("resumed",)
LATE = ("late",)
"""Labelled when their deadline is over: training-operator looks at deadlines only when something changes."""
HELD_AT_THE_END = ("ended-then-held",)
TAKEN_AWAY = {"taken-away": "taken-away-worker-1"}
"""Job -> a pod of it that is deleted once the job runs."""
RESTARTED_IN_PLACE = ("backoff", "always", "always-on", "on-failure")
_SETTLED_S = 4.0
_QUIET_S = 50.0
"""Longer than a task takes: nothing more comes."""


@dataclass(frozen=True, slots=True)
class TFJobSight:
    """What there is of one job in the end."""

    conditions: list[tuple[str, ...]] = field(default_factory=list)
    replicas: Mapping[str, Any] = field(default_factory=dict)
    pods: Mapping[str, Any] = field(default_factory=dict)
    services: Mapping[str, Any] = field(default_factory=dict)
    events: frozenset[tuple[str, str, str]] = frozenset()


async def stories(kube: HttpKube) -> dict[str, TFJobSight]:
    """Give the operator all of the jobs; what it made of each."""
    for name, spec in CASES.items():
        obj = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name}, "spec": spec}
        await kube.create(TFJOBS, obj, namespace="default")
    for name in SUSPENDED:
        await _holds(kube, name, "Running")
        await _suspend(kube, name, True)
    for name, pod in TAKEN_AWAY.items():
        await _holds(kube, name, "Running")
        await _runs(kube, pod)
        await kube.delete(PODS, pod, namespace="default")
    for name in RESUMED:
        await _holds(kube, name, "Suspended")
        await asyncio.sleep(_SETTLED_S)
        await _suspend(kube, name, False)
    for name in HELD_AT_THE_END:
        await _holds(kube, name, "Succeeded")
        await _suspend(kube, name, True)
    for name in LATE:
        job = await kube.get(TFJOBS, name, namespace="default")
        over_s = seconds(job["status"]["startTime"]) + job["spec"]["runPolicy"]["activeDeadlineSeconds"]
        await asyncio.sleep(max(0.0, over_s + 2.0 - time.time()))
        await kube.patch(TFJOBS, name, {"metadata": {"labels": {"a": "b"}}}, kind=Patch.MERGE, namespace="default")
    return await _settled(kube)


async def _suspend(kube: HttpKube, name: str, value: bool) -> None:
    change = {"spec": {"runPolicy": {"suspend": value}}}
    await kube.patch(TFJOBS, name, change, kind=Patch.MERGE, namespace="default")


async def _holds(kube: HttpKube, name: str, kind: str) -> None:
    async with asyncio.timeout(120):
        while True:
            conditions = ((await kube.get(TFJOBS, name, namespace="default")).get("status") or {}).get("conditions")
            if any((c["type"], c["status"]) == (kind, "True") for c in conditions or ()):
                return
            await asyncio.sleep(0.3)


async def _runs(kube: HttpKube, pod: str) -> None:
    async with asyncio.timeout(120):
        while True:
            if phase_of(await kube.get(PODS, pod, namespace="default")) == "Running":
                return
            await asyncio.sleep(0.3)


async def _settled(kube: HttpKube) -> dict[str, TFJobSight]:
    """The last of several looks that are alike."""
    before, since = await _look(kube), time.monotonic()
    async with asyncio.timeout(240):
        while time.monotonic() - since < _QUIET_S:
            await asyncio.sleep(1)
            now = await _look(kube)
            if now != before:
                before, since = now, time.monotonic()
    return before


async def _look(kube: HttpKube) -> dict[str, TFJobSight]:
    jobs = {name_of(obj): obj for obj in (await kube.list(TFJOBS, namespace="default")).items}
    pods = (await kube.list(PODS, namespace="default")).items
    services = (await kube.list(SERVICES, namespace="default")).items
    events = (await kube.list(EVENTS, namespace="default")).items
    return {
        name: TFJobSight(
            _conditions(jobs.get(name)),
            {kind: counts for kind, counts in _status(jobs.get(name)).get("replicaStatuses", {}).items() if counts},
            {name_of(pod): _pod(pod) for pod in pods if _owner(pod) == name},
            {name_of(service): _service(service) for service in services if _owner(service) == name},
            frozenset(_events(events, name)),
        )
        for name in CASES
    }


def _status(job: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return (job or {}).get("status") or {}


def _conditions(job: Mapping[str, Any] | None) -> list[tuple[str, ...]]:
    conditions = _status(job).get("conditions") or ()
    return [(c["type"], c["status"], c["reason"], c["message"]) for c in conditions]


def _owner(obj: Mapping[str, Any]) -> str:
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((ref["name"] for ref in owners if ref["kind"] == "TFJob" and ref["controller"]), "")


def _pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    main = next(container for container in pod["spec"]["containers"] if container["name"] == "tensorflow")
    env = {entry["name"]: entry.get("value", "") for entry in main.get("env") or ()}
    return {
        "phase": phase_of(dict(pod)),
        "labels": labels_of(dict(pod)),
        "annotations": annotations_of(dict(pod)),
        "restartPolicy": pod["spec"]["restartPolicy"],
        "ports": [(port["name"], port["containerPort"], port["protocol"]) for port in main.get("ports") or ()],
        "TF_CONFIG": json.loads(env["TF_CONFIG"]) if "TF_CONFIG" in env else None,
        "env": sorted(env.keys() - {"TF_CONFIG", "KOD2_QUORUM"}),
        "resources": main.get("resources") or {},
    }


def _service(service: Mapping[str, Any]) -> dict[str, Any]:
    spec = service["spec"]
    return {
        "labels": labels_of(dict(service)),
        "selector": spec["selector"],
        "clusterIP": spec["clusterIP"],
        "ports": sorted((port["name"], port["port"], port["targetPort"], port["protocol"]) for port in spec["ports"]),
    }


def _events(events: list[dict[str, Any]], name: str) -> Iterator[tuple[str, str, str]]:
    for event in events:
        about = event["involvedObject"]
        # How a pod looks that does not run yet, or is started again by its kubelet, depends on the moment of the look.
        passing = event["message"].startswith("Error pod ")
        passing |= name in RESTARTED_IN_PLACE and event["reason"] == "ExitedWithCode"
        # Training-operator deletes a job once more whose end its cache does not show yet, and says that it is not there
        # (8 of 30 jobs with a time to live on a busy machine).
        passing |= event["reason"] == "FailedDeleteJob" and event["message"].endswith("not found")
        if (about["kind"], about["name"]) == ("TFJob", name) and not passing:
            yield event["type"], event["reason"], event["message"]


# Training-operator's own objects


async def install(kube: HttpKube, manifests: Path) -> None:
    """Training-operator's definition in place of ours, and what else its manifests have that its process needs."""
    base = manifests / "base"
    theirs = yaml.safe_load((base / "crds" / "kubeflow.org_tfjobs.yaml").read_text(encoding="utf-8"))
    known = await kube.get(CRDS, name_of(theirs))
    theirs["metadata"]["resourceVersion"] = known["metadata"]["resourceVersion"]
    await kube.replace(CRDS, theirs)
    namespace = yaml.safe_load((manifests / "overlays" / "standalone" / "namespace.yaml").read_text(encoding="utf-8"))
    await kube.create(NAMESPACES, namespace)
    service = yaml.safe_load((base / "service.yaml").read_text(encoding="utf-8"))
    await kube.create(SERVICES, service, namespace="kubeflow")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "training-operator-webhook-cert"}}
    await kube.create(SECRETS, secret, namespace="kubeflow")
    hooks = yaml.safe_load((base / "webhook" / "manifests.yaml").read_text(encoding="utf-8"))
    hooks["metadata"]["name"] = "validator.training-operator.kubeflow.org"
    # Nobody stands behind the Service: the process is no pod of the cluster.
    hooks["webhooks"] = []
    await kube.create(WEBHOOKS, hooks)


@contextlib.contextmanager
def certificates() -> Iterator[None]:
    """The folder of the certificate, for one training-operator of this machine at a time; empty again afterwards."""
    CERTIFICATES.mkdir(parents=True, exist_ok=True)
    with (CERTIFICATES.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            for file in CERTIFICATES.iterdir():
                file.unlink()


async def mount(kube: HttpKube) -> None:
    """Do what a kubelet does with the Secret that training-operator fills: write its files, once it has them."""
    async with asyncio.timeout(120):
        while True:
            try:
                secret = await kube.get(SECRETS, "training-operator-webhook-cert", namespace="kubeflow")
            except ApiError:
                secret = {}
            data = secret.get("data") or {}
            if "tls.crt" in data:
                for name, text in data.items():
                    (CERTIFICATES / name).write_bytes(b64decode(text))
                return
            await asyncio.sleep(0.3)
