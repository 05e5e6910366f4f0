"""The objects of a case on an API server, and the calls that a kube-scheduler makes of an extender for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from mews.kube.api.objects import annotations_of, node_name_of, uid_of
from mews.kube.api.resources import CONFIGMAPS, NODES, PODS
from mews.kube.client.port import DeleteOptions, KubeApi
from mews.systems.gpushare import names
from tests.upstream.oracles.model import Case

PUBLISHED = (names.INDEX, names.DEVICE_MEMORY, names.POD_MEMORY, names.ASSIGNED)
Post = Callable[[str, Mapping[str, Any]], Awaitable[tuple[int, Any]]]
"""Path and body -> status and answer."""


async def create(kube: KubeApi, case: Case, prefix: str) -> None:
    """Nodes, ConfigMaps and all pods; names begin with ``prefix``."""
    for node in case["nodes"]:
        name = prefix + node["name"]
        amounts = {names.MEMORY_RESOURCE: str(node["memory"]), names.COUNT_RESOURCE: str(node["count"])}
        amounts = {key: value for key, value in amounts.items() if value != "0"} | {"cpu": "8", "pods": "110"}
        await kube.create(NODES, {"metadata": {"name": name}, "status": {"capacity": amounts, "allocatable": amounts}})
        for config_map in (f"unhealthy-{name}", f"{names.UNHEALTHY_PREFIX}{name}") if "unhealthy" in node else ():
            body = {"metadata": {"name": config_map}, "data": {"gpus": node["unhealthy"]}}
            await kube.create(CONFIGMAPS, body, namespace="kube-system")
    for pod in case["pods"]:
        notes = {names.INDEX: pod["index"], names.POD_MEMORY: pod["memory"], names.ASSIGNED: "true"}
        await _create_pod(kube, pod, prefix, notes)
        await _become(kube, prefix + pod["name"], pod["phase"])
    for pod in (*case["arrivals"], *case["late"]):
        await _create_pod(kube, pod, prefix, {})


async def _create_pod(kube: KubeApi, pod: Mapping[str, Any], prefix: str, notes: Mapping[str, str]) -> None:
    spec: dict[str, Any] = {"containers": [_container("c", n, asked) for n, asked in enumerate(pod["asks"])]}
    if pod.get("first"):
        spec["initContainers"] = [_container("i", n, asked) for n, asked in enumerate(pod["first"])]
    if pod.get("node"):
        spec["nodeName"] = prefix + pod["node"]
    body = {"metadata": {"name": prefix + pod["name"], "annotations": dict(notes)}, "spec": spec}
    await kube.create(PODS, body, namespace="default")


def _container(kind: str, number: int, asked: int) -> dict[str, Any]:
    limits = {"limits": {names.MEMORY_RESOURCE: str(asked)}}
    return {"name": f"{kind}{number}", "image": "x", "resources": limits}


async def _become(kube: KubeApi, name: str, phase: str) -> None:
    """deleting: it is to end, and its kubelet has not said that it has."""
    if phase == "deleting":
        await kube.delete(PODS, name, namespace="default", options=DeleteOptions(grace_period_s=30))
    elif phase == "deleted":
        await kube.delete(PODS, name, namespace="default", options=DeleteOptions(grace_period_s=0))
    elif phase != "Pending":
        await kube.patch(PODS, name, {"status": {"phase": phase}}, namespace="default", subresource="status")


async def end(kube: KubeApi, case: Case, prefix: str) -> None:
    """Let those pods end that do so between the parts; one without a node cannot be on its way out."""
    for name, phase in case["endings"].items():
        pod = await kube.get(PODS, prefix + name, namespace="default")
        await _become(kube, prefix + name, "deleted" if phase == "deleting" and not node_name_of(pod) else phase)


async def arrive(kube: KubeApi, post: Post, case: Case, pods: Iterable[Mapping[str, Any]], prefix: str) -> list[Any]:
    """What becomes of each: its filter call, and its binding to the first node that passed."""
    found = []
    for pod in pods:
        name = prefix + pod["name"]
        if case["endings"].get(pod["name"]) == "deleted" and pod in case["late"]:
            continue
        stored = await kube.get(PODS, name, namespace="default")
        nodes = [prefix + node["name"] for node in case["nodes"]]
        _, answer = await post("/gpushare-scheduler/filter", {"Pod": stored, "NodeNames": nodes})
        passed = answer["NodeNames"] or []
        seen = {"passed": passed, "failed": answer["FailedNodes"] or {}, "error": answer["Error"]}
        wanted = [prefix + node for node in pod["order"]]
        target = next((node for node in wanted if node in passed), wanted[0] if pod.get("bound_anyway") else "")
        if target:
            seen["bind"] = await _bound(kube, post, stored, target)
        found.append(_without_prefix(seen, prefix))
    return found


async def _bound(kube: KubeApi, post: Post, pod: Mapping[str, Any], node: str) -> dict[str, Any]:
    name = pod["metadata"]["name"]
    call = {"PodName": name, "PodNamespace": "default", "PodUID": uid_of(dict(pod)), "Node": node}
    status, answer = await post("/gpushare-scheduler/bind", call)
    after = await kube.get(PODS, name, namespace="default")
    notes = annotations_of(after)
    kept = {key: notes[key] for key in PUBLISHED if key in notes}
    timed = notes.get(names.ASSUME_TIME, "").isdigit()
    said = bool(answer["Error"])
    return {"status": status, "said": said, "node": node_name_of(after), "notes": kept, "timed": timed}


def _without_prefix(value: Any, prefix: str) -> Any:
    if isinstance(value, dict):
        return {_without_prefix(key, prefix): _without_prefix(each, prefix) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_prefix(each, prefix) for each in value]
    return value.replace(prefix, "") if isinstance(value, str) and prefix else value
