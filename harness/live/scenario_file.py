"""A recorded session as a scenario file: hardware, stack, what was done with its times, and how it stood at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.harness.live.recording import RecordedAction
from mews.harness.scenario.accounts.sessions import RECORDING
from mews.harness.scenario.hardware import hardware_document
from mews.harness.scenario.language.names import escaped
from mews.harness.scenario.model import Scenario
from mews.kube.api.objects import Object, condition_of, name_of, namespace_of, node_name_of, phase_of
from mews.kube.api.pod_requests import request_of
from mews.kube.api.resources import Resource
from mews.kube.system.system import Pooled
from mews.systems import registry
from mews.yaml_text import written_yaml

_AT_ONCE_S = 0.02
"""Two actions that are no further apart follow each other without a pause."""
_PATIENCE_S = 300.0
_CONCLUSIVE = ("Complete", "Failed", "Succeeded", "Running", "Available")


def recorded_scenario(
    name: str,
    scenario: Scenario,
    actions: Sequence[RecordedAction],
    *,
    began_s: float,
    ended_s: float,
    speed: float,
    ending: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the document. Times are those of the journal in wall-clock seconds; ``began_s`` is when the devices were
    there, ``ending`` the checks that held at the end.

    Raises ValueError for a stack of which parts are the user's own programs.
    """
    head = scenario_document(name, scenario)
    steps: list[dict[str, Any]] = [{"wait": {"settled": {}}}] if scenario.stack.pooled is not None else []
    last_s = began_s
    for action in sorted(actions, key=lambda each: each.t):
        pause = round((action.t - last_s) * speed, 3)
        if pause > _AT_ONCE_S:
            steps.append({"sleep": pause})
        last_s = max(last_s, action.t)
        steps.append(dict(action.step))
    rest_s = round((ended_s - last_s) * speed, 3)
    if rest_s > _AT_ONCE_S:
        steps.append({"sleep": rest_s})
    if ending:
        steps.append({"name": "as it stood at the end", "wait": list(ending), "timeout": _PATIENCE_S})
    document: dict[str, Any] = {
        **head,
        "timeout": round(2 * (ended_s - began_s) * speed + 2 * _PATIENCE_S, 1),
        "bounds": dict(scenario.bounds),
        "steps": steps,
    }
    document["steps"] = escaped(steps)  # a ${…} of a recorded object is its own
    return {key: value for key, value in document.items() if value not in ({}, [])}


def scenario_document(name: str, scenario: Scenario) -> dict[str, Any]:
    """Return a session's hardware and stack as the beginning of a scenario file.

    Raises ValueError for a stack of which parts are the user's own programs.
    """
    refused = RECORDING.refused(scenario)
    if refused:
        raise ValueError(f"{refused[0].key} cannot be recorded: {refused[0].why}")
    hardware, _ = hardware_document(scenario)
    document: dict[str, Any] = {
        "apiVersion": "mews/v1",
        "kind": "Scenario",
        "metadata": {"name": name, "description": "recorded from a live session"},
        "hardware": {key: value for key, value in hardware.items() if key not in ("apiVersion", "kind")},
        "stack": stack_document(scenario),
        **_images(scenario),
        "seed": scenario.seed,
    }
    return {key: value for key, value in document.items() if value not in ({}, [])}


def stack_document(scenario: Scenario) -> dict[str, Any]:
    """Return the stack as a file has it: systems beside its own keys, null for a default one that is left out."""
    stack = scenario.stack
    own = stack.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"systems", "replace", "extenders"})
    systems = {
        name: options.model_dump(mode="json", by_alias=True, exclude_unset=True)
        for name, options in stack.systems.items()
    }
    missing = {name: None for name in registry.DEFAULT if name not in stack.systems}
    return {**own, **systems, **missing}


def _images(scenario: Scenario) -> dict[str, Any]:
    shown = scenario.model_dump(
        mode="json", by_alias=True, exclude_unset=True, include={"images", "unknown_images"}, exclude_none=True
    )
    return {key: value for key, value in shown.items() if value}


def checks_of(objects: Sequence[tuple[Resource, Object]], pools: Sequence[Pooled]) -> Iterator[dict[str, Any]]:
    """Yield what holds of users' objects now, where it is worth asserting: phases of pods with their devices, readiness
    and conditions of what makes pods."""
    for resource, obj in objects:
        if resource.kind == "Pod":
            yield from _pod_checks(obj, pools)
        elif "status" in obj:
            status = _conclusive_status(obj)
            if status:
                target = {"apiVersion": resource.api_version, "kind": resource.kind}
                namespace = {"namespace": namespace_of(obj)} if resource.namespaced else {}
                yield {"object": {**target, "metadata": {"name": name_of(obj), **namespace}, "status": status}}


def _pod_checks(pod: Object, pools: Sequence[Pooled]) -> Iterator[dict[str, Any]]:
    place = {"name": name_of(pod), "namespace": namespace_of(pod)}
    phase = phase_of(pod)
    bound = {"scheduled": bool(node_name_of(pod))}
    ready = (condition_of(pod, "Ready") or {}).get("status")
    running = {"ready": ready == "True"} if phase == "Running" else {}
    yield {"pod": {**place, "phase": phase, **bound, **running}}
    if phase != "Running":
        return
    for pool in pools:
        count = request_of(pod, pool.resource)
        if count:
            named = {"pod": place["name"], "namespace": place["namespace"]}
            yield {"gpus": {**named, "count": count, "resource": pool.resource, "log": False}}


def _conclusive_status(obj: Object) -> dict[str, Any]:
    status = obj["status"]
    counts = {
        key: value
        for key, value in status.items()
        if key in ("readyReplicas", "succeeded", "failed", "active", "numberReady", "desiredHealthy") and value
    }
    conditions = [
        {"type": each["type"], "status": each["status"]}
        for each in status.get("conditions") or ()
        if each.get("type") in ("Complete", "Failed", "Succeeded", "Running", "Available")
        and each.get("status") == "True"
    ]
    return {**counts, **({"conditions": {"$contains": conditions[:1]}} if conditions else {})}


def as_yaml(document: Mapping[str, Any], comment: str) -> str:
    """Return the file."""
    text = written_yaml(dict(document))
    return f"# {comment}\n{text}"
