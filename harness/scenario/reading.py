"""Steps that read: objects and logs, for outputs and as evidence."""

from __future__ import annotations

from typing import Any

from mews.harness.scenario.actions import Step
from mews.harness.scenario.kinds import resource_of
from mews.harness.scenario.step_context import StepContext
from mews.kube.api.objects import Object
from mews.kube.api.resources import NODES, PODS
from mews.yaml_text import written_yaml

_REPORTED_LINES = 60


async def get(stage: StepContext, step: Step) -> Any:
    """Return the object, or those that labels select as ``{"items": […]}``."""
    action = step.get
    assert action is not None
    kube = stage.cluster.kube
    resource = await resource_of(kube, action.kind, action.api_version)
    namespace = action.namespace if resource.namespaced else None
    if action.name is not None:
        return await kube.get(resource, action.name, namespace=namespace)
    return {"items": (await kube.list(resource, namespace=namespace, label_selector=action.labels)).items}


async def logs(stage: StepContext, step: Step) -> Any:
    """``{"text": …}``."""
    action = step.logs
    assert action is not None
    chunks = stage.cluster.kube.log(
        action.namespace,
        action.pod,
        container=action.container,
        previous=action.previous,
        tail_lines=action.tail,
    )
    return {"text": b"".join([chunk async for chunk in chunks]).decode("utf-8", "replace")}


async def looked_at(stage: StepContext, step: Step) -> Object | None:
    """Return the one object that a step's check is about, as it is now."""
    check = step.looked_at
    if check is None:
        return None
    kube = stage.cluster.kube
    if check.pod is not None:
        return await kube.get(PODS, check.pod.name, namespace=check.pod.namespace)
    if check.node is not None:
        return await kube.get(NODES, stage.cluster.node_of(check.node.host))
    assert check.object is not None
    resource = await resource_of(kube, check.object["kind"], check.object.get("apiVersion", ""))
    metadata = check.object["metadata"]
    namespace = metadata.get("namespace", "default") if resource.namespaced else None
    return await kube.get(resource, metadata["name"], namespace=namespace)


def evidence_text(result: Any) -> str:
    """Return what a step came to, for people: output as it was printed, objects as YAML."""
    if isinstance(result, dict) and set(result) == {"text"}:
        return str(result["text"])
    if isinstance(result, dict) and "stdout" in result:
        return "".join(str(result[part]) for part in ("stdout", "stderr"))
    return written_yaml(result)


def shortened(text: str) -> str:
    """Return what of a piece of evidence fits a report; the artefacts have all of it."""
    lines = text.rstrip().splitlines()
    more = len(lines) - _REPORTED_LINES
    return "\n".join(lines if more <= 0 else [*lines[:_REPORTED_LINES], f"… {more} more lines among the artefacts"])
