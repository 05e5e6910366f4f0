"""Looking whether an expectation holds: a function per kind, over the Cluster protocol only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from mews.harness.scenario import hardware_checks, journal_checks
from mews.harness.scenario.expectations import (
    AbsentExpectation,
    Check,
    CountExpectation,
    LogsExpectation,
    NodeExpectation,
    PodExpectation,
)
from mews.harness.scenario.extension import GivenExtension
from mews.harness.scenario.kinds import complete, resource_of
from mews.harness.scenario.match import Mismatch, fits, match, show
from mews.harness.scenario.step_context import Finding, StepContext, all_of
from mews.kube.api.errors import ApiError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, condition_of, name_of, node_name_of, phase_of
from mews.kube.api.resources import NODES, PODS


async def look(stage: StepContext, checks: tuple[Check, ...]) -> Finding:
    """Return whether all of the checks hold at this moment."""
    findings = []
    for check in checks:
        # In the order of the model: a set's order is not the same in every process.
        for name in [name for name in _CHECKS if name in check.model_fields_set]:
            expected = getattr(check, name)
            try:
                finding = await _CHECKS[name](stage, expected)
            except (ApiError, UnavailableError) as error:
                finding = Finding(False, f"{name} to be checked", str(error))
            findings.append(finding)
            if not finding.holds:
                return finding
        for given in check.given:
            findings.append(await _looked(stage, given))
            if not findings[-1].holds:
                return findings[-1]
    return all_of(findings)


async def _looked(stage: StepContext, given: GivenExtension) -> Finding:
    try:
        finding: Finding = await given.kind.look(stage, given.options)
    except (ApiError, UnavailableError) as error:
        return Finding(False, f"{given.name} to be checked", str(error))
    return finding


async def _object(stage: StepContext, expected: dict[str, Any]) -> Finding:
    resource = await resource_of(stage.cluster.kube, expected["kind"], expected.get("apiVersion", ""))
    wanted = complete(expected, resource)
    name, namespace = name_of(wanted), wanted["metadata"].get("namespace")
    about = "/".join(filter(None, (resource.kind.lower(), namespace, name)))
    awaited = f"{about} like {show({k: v for k, v in expected.items() if k not in ('kind', 'apiVersion')})}"
    try:
        actual = await stage.cluster.kube.get(resource, name, namespace=namespace)
    except NotFoundError:
        return Finding(False, awaited, "there is none", (about,))
    # Items need not carry their kind, so it is not compared: the resource says it.
    wrong = match({k: v for k, v in wanted.items() if k not in ("kind", "apiVersion")}, actual)
    return Finding(wrong is None, awaited, str(wrong or ""), (about,))


async def _pod(stage: StepContext, expected: PodExpectation) -> Finding:
    about = f"pod/{expected.namespace}/{expected.name}"
    awaited = f"{about} with {expected.described}"
    try:
        pod = await stage.cluster.kube.get(PODS, expected.name, namespace=expected.namespace)
    except NotFoundError:
        return Finding(False, awaited, "there is none", (about,))
    wrong = _pod_mismatch(stage, expected, pod)
    seen = f"{wrong}; phase {phase_of(pod)}, node {node_name_of(pod) or 'none'}" if wrong else ""
    return Finding(wrong is None, awaited, seen, (about,))


def _pod_mismatch(stage: StepContext, expected: PodExpectation, pod: Object) -> Mismatch | None:
    status = pod.get("status") or {}
    scheduled = condition_of(pod, "PodScheduled") or {}
    facts = {
        "phase": phase_of(pod),
        "node": node_name_of(pod) or None,
        "reason": status.get("reason"),
        "message": status.get("message"),
        "ready": (condition_of(pod, "Ready") or {}).get("status") == "True",
        "restarts": sum(s.get("restartCount", 0) for s in status.get("containerStatuses") or ()),
        "annotations": pod["metadata"].get("annotations") or {},
        "scheduled": bool(node_name_of(pod)),
        "unschedulable": str(scheduled.get("message")) if scheduled.get("status") == "False" else None,
    }
    for name in sorted(expected.model_fields_set - {"name", "namespace"}):
        wanted = getattr(expected, name)
        if name == "node" and isinstance(wanted, str):
            wanted = stage.cluster.node_of(wanted)
        wrong = match(wanted, facts[name], name)
        if wrong is not None:
            return wrong
    return None


async def _node(stage: StepContext, expected: NodeExpectation) -> Finding:
    name = stage.cluster.node_of(expected.host)
    given = expected.model_dump(exclude_unset=True, exclude={"host"})
    awaited = f"node {name} with {', '.join(f'{key} {show(value)}' for key, value in given.items())}"
    about = (f"node/{name}",)
    try:
        node = await stage.cluster.kube.get(NODES, name)
    except NotFoundError:
        return Finding(False, awaited, "there is none", about)
    status = node.get("status") or {}
    if expected.ready is not None:
        ready = condition_of(node, "Ready") or {}
        if (ready.get("status") == "True") is not expected.ready:
            return Finding(False, awaited, f"Ready is {ready.get('status', 'absent')}", about)
    for part, wanted in (("allocatable", expected.allocatable), ("capacity", expected.capacity)):
        amounts = status.get(part) or {}
        for resource, pattern in wanted.items():
            exact = {"$eq": pattern} if isinstance(pattern, int | str) else pattern
            wrong = match(exact, amounts.get(resource), f"{part}.{resource}")
            if wrong is not None:
                return Finding(False, awaited, str(wrong), about)
    return Finding(True, awaited, about=about)


async def _absent(stage: StepContext, expected: AbsentExpectation) -> Finding:
    resource = await resource_of(stage.cluster.kube, expected.kind, expected.api_version)
    namespace = expected.namespace if resource.namespaced else None
    if expected.name is not None:
        about = "/".join(filter(None, (resource.kind.lower(), namespace, expected.name)))
        try:
            obj = await stage.cluster.kube.get(resource, expected.name, namespace=namespace)
        except NotFoundError:
            return Finding(True, f"no {about}", about=(about,))
        going = " (being deleted)" if obj["metadata"].get("deletionTimestamp") else ""
        return Finding(False, f"no {about}", f"it is there{going}", (about,))
    answer = await stage.cluster.kube.list(resource, namespace=namespace, label_selector=expected.labels)
    names = [name_of(obj) for obj in answer.items]
    return Finding(not names, f"no {resource.plural} with labels {expected.labels!r}", f"there are {names}")


async def _count(stage: StepContext, expected: CountExpectation) -> Finding:
    resource = await resource_of(stage.cluster.kube, expected.kind, expected.api_version)
    namespace = expected.namespace if resource.namespaced else None
    answer = await stage.cluster.kube.list(resource, namespace=namespace, label_selector=expected.labels)
    names = [name_of(obj) for obj in answer.items if fits(expected.matching, obj)]
    awaited = f"{show(expected.is_)} {resource.plural} like {show(expected.matching)}"
    wrong = match(expected.is_, len(names))
    about = tuple(f"{resource.kind.lower()}/{namespace or ''}/{name_of(obj)}" for obj in answer.items[:4])
    return Finding(wrong is None, awaited, f"{len(names)} of {len(answer.items)}: {', '.join(names) or 'none'}", about)


async def _logs(stage: StepContext, expected: LogsExpectation) -> Finding:
    about = f"pod/{expected.namespace}/{expected.pod}"
    wanted = expected.model_dump(exclude_unset=True, include={"text", "lines"})
    awaited = f"log of {about} with {show(wanted)}"
    text = await hardware_checks.log_of(stage, expected.namespace, expected.pod, expected.container)
    wrong = match(expected.text, text, "text") if expected.text is not None else None
    if wrong is None and expected.lines is not None:
        wrong = match(expected.lines, text.splitlines(), "lines")
    return Finding(wrong is None, awaited, str(wrong or ""), (about,))


_CHECKS: dict[str, Callable[[StepContext, Any], Awaitable[Finding]]] = {
    "object": _object,
    "absent": _absent,
    "count": _count,
    "pod": _pod,
    "node": _node,
    "logs": _logs,
    "table": hardware_checks.table,
    "hosts": hardware_checks.hosts,
    "host": hardware_checks.host,
    "telemetry": hardware_checks.telemetry,
    "moves": hardware_checks.moves,
    "operations": hardware_checks.operations,
    "gpus": hardware_checks.gpus,
    "settled": hardware_checks.settled,
    "journal": journal_checks.journal,
    "event": journal_checks.event,
}
