"""Several managers write one object in turn: created, applied, replaced and patched, with each way's own bodies."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.differential.areas.bodies import opened, place
from tests.differential.model import APPLY, JSON_PATCH, MERGE, STRATEGIC, Sent

SPACE = "writers"
MANAGERS = ("one", "two", "kubectl", "kubectl-client-side-apply")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
WRITES = 7
Body = dict[str, Any]


def _some(rng: random.Random, values: dict[str, list[Any]], share: float = 0.5) -> Body:
    return {name: rng.choice(choice) for name, choice in values.items() if rng.random() < share}


def _metadata(rng: random.Random, name: str) -> Body:
    metadata: Body = {"name": name}
    if rng.random() < 0.5:
        metadata["labels"] = _some(rng, {"l1": ["a", "b"], "l2": ["a", "b"]})
    if rng.random() < 0.3:
        metadata["annotations"] = _some(rng, {"n1": ["a", "b"], "n2": ["a"]})
    if rng.random() < 0.1:
        metadata["finalizers"] = rng.sample(["mews.io/x", "mews.io/y"], rng.randint(1, 2))
    return metadata


def configmap(rng: random.Random, name: str) -> Body:
    """A flat map."""
    body: Body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(rng, name)}
    if rng.random() < 0.8:
        body["data"] = _some(rng, {"k1": ["a", "b"], "k2": ["a", "b"], "k3": ["a"]})
    if rng.random() < 0.2:
        body["binaryData"] = _some(rng, {"b1": ["YQ==", "Yg=="], "b2": ["YQ=="]})
    return body


def deployment(rng: random.Random, name: str) -> Body:
    """Lists that merge by a key, a list of a list, numbers and defaults."""
    drawn = _some(rng, {"replicas": [1, 2, 3], "paused": [True]}, 0.4)
    spec: Body = {"selector": {"matchLabels": {"app": "x"}}, **drawn}
    labels = {"app": "x", **_some(rng, {"t1": ["a", "b"]})}
    containers = [_container(rng, container) for container in ("c1", "c2") if rng.random() < 0.7]
    pod: Body = {"containers": containers or [_container(rng, "c1")]}
    if rng.random() < 0.3:
        pod["tolerations"] = [{"key": key, "operator": "Exists"} for key in ("q", "r") if rng.random() < 0.6]
    if rng.random() < 0.3:
        pod["nodeSelector"] = _some(rng, {"s1": ["a", "b"], "s2": ["a"]})
    spec["template"] = {"metadata": {"labels": labels}, "spec": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _metadata(rng, name), "spec": spec}


def _container(rng: random.Random, name: str) -> Body:
    body: Body = {"name": name, "image": rng.choice(["i:1", "i:2"])}
    if rng.random() < 0.5:
        body["env"] = [{"name": key, "value": rng.choice("ab")} for key in ("E1", "E2", "E3") if rng.random() < 0.5]
    if rng.random() < 0.4:
        body["ports"] = [{"containerPort": port} for port in (80, 81) if rng.random() < 0.6]
    if rng.random() < 0.3:
        body["resources"] = {"limits": _some(rng, {"cpu": ["1", "500m"], "memory": ["1Gi"]})}
    if rng.random() < 0.2:
        body["args"] = rng.sample(["x", "y", "z"], 2)
    return body


def service(rng: random.Random, name: str) -> Body:
    """A list by two keys, and fields that the server fills in."""
    ports = [
        {"name": f"p{port}", "port": port, **_some(rng, {"protocol": ["TCP", "UDP"], "targetPort": [8080, "web"]})}
        for port in (80, 81)
        if rng.random() < 0.7
    ]
    spec: Body = {"ports": ports or [{"port": 80}], "selector": _some(rng, {"s1": ["a", "b"], "s2": ["a"]})}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(rng, name), "spec": spec}


KINDS: dict[str, tuple[str, Callable[[random.Random, str], Body]]] = {
    "configmaps": (f"{place(SPACE)}/configmaps", configmap),
    "deployments": (f"/apis/apps/v1/namespaces/{SPACE}/deployments", deployment),
    "services": (f"{place(SPACE)}/services", service),
}


def sequence(seed: int) -> Iterator[Sent]:
    """The writes of one object."""
    rng = random.Random(f"writers/{seed}")
    plural = rng.choice(list(KINDS))
    folder, make = KINDS[plural]
    name = f"{plural[:-1]}-{seed}"
    for number in range(WRITES):
        manager = rng.choice(MANAGERS)
        ways = _FIRST if number == 0 else _LATER
        way = rng.choices([way for way, _ in ways], [weight for _, weight in ways])[0]
        method, path, query, body, media = way(rng, folder, name, make)
        yield Sent(
            f"{name} {number} {way.__name__[1:]} by {manager}", method,
            f"{path}?fieldManager={manager}{query}", body, media, owned=True,
        )  # fmt: skip


def _post(rng: random.Random, folder: str, name: str, make: Any) -> tuple[str, str, str, Any, str]:
    return "POST", folder, "", _noted(rng, make(rng, name)), "application/json"


def _put(rng: random.Random, folder: str, name: str, make: Any) -> tuple[str, str, str, Any, str]:
    return "PUT", f"{folder}/{name}", "", _noted(rng, make(rng, name)), "application/json"


def _apply(rng: random.Random, folder: str, name: str, make: Any) -> tuple[str, str, str, Any, str]:
    return "PATCH", f"{folder}/{name}", rng.choice(("", "&force=true")), make(rng, name), APPLY


def _merge(rng: random.Random, folder: str, name: str, make: Any) -> tuple[str, str, str, Any, str]:
    return "PATCH", f"{folder}/{name}", "", _part(rng, make(rng, name)), MERGE


def _strategic(rng: random.Random, folder: str, name: str, make: Any) -> tuple[str, str, str, Any, str]:
    return "PATCH", f"{folder}/{name}", "", _part(rng, make(rng, name)), STRATEGIC


def _disown(rng: random.Random, folder: str, name: str, make: Any) -> tuple[str, str, str, Any, str]:
    operation = {"op": "replace", "path": "/metadata/managedFields", "value": rng.choice(([], [{}]))}
    return "PATCH", f"{folder}/{name}", "", [operation], JSON_PATCH


_FIRST = ((_post, 2), (_apply, 2))
_LATER = ((_put, 3), (_apply, 8), (_merge, 3), (_strategic, 3), (_disown, 0.4))


def _noted(rng: random.Random, body: Body) -> Body:
    """As ``kubectl apply`` notes what it applied, now and then."""
    if rng.random() < 0.5:
        return body
    text = json.dumps(body, separators=(",", ":")) + "\n"
    metadata = body["metadata"]
    return {**body, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), LAST_APPLIED: text}}}


def _part(rng: random.Random, body: Body) -> Body:
    """Some of its members, some of them null."""
    kept: Body = {}
    for name, value in body.items():
        if name in ("apiVersion", "kind", "name") or rng.random() < 0.3:
            continue
        if rng.random() < 0.08 and name not in ("metadata", "spec"):
            kept[name] = None
        else:
            kept[name] = _part(rng, value) if isinstance(value, dict) and name != "matchLabels" else value
    return kept


def cases(seeds: range) -> tuple[Sent, ...]:
    """The sequences of those seeds, one after the other."""
    return (opened(SPACE), *(sent for seed in seeds for sent in sequence(seed)))
