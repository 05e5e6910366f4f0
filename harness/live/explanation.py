"""Why a pod waits, or where its devices are: sentences from what can be seen of cluster and hardware at one moment.

Pure. Every sentence is one finding; findings are ranked by how near they are to the cause, and the first one names it
(``PodExplanation.cause``). What schedulers, kubelets and controllers say is quoted, never paraphrased.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from mews.harness.live.claim_findings import claim_findings
from mews.harness.live.pod_hardware import hardware_findings
from mews.harness.live.sight import ExplainedSight, Finding, ending_of
from mews.harness.ports.cluster import DEFAULT_SCHEDULER
from mews.kube.api.objects import (
    Object,
    condition_of,
    is_deleting,
    is_terminal,
    key_of,
    name_of,
    node_name_of,
    phase_of,
)
from mews.kube.api.pod_requests import request_of

CAUSES = (
    "quota",
    "webhook",
    "missing",
    "ended",
    "deleting",
    "gated",
    "scheduler-unknown",
    "scheduler-down",
    "extender-down",
    "over-ask",
    "component-down",
    "node-down",
    "chassis-lies",
    "holder-refuses",
    "pool-empty",
    "taint",
    "container-waits",
    "moving",
    "unschedulable",
    "fault",
    "waiting",
    "running",
)
"""What a cause may be, the nearest first."""

_WARNINGS = 3


class PodExplanation(Struct, frozen=True):
    """``cause`` is one of ``CAUSES``; the sentences begin with it."""

    pod: str
    cause: str
    sentences: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return them as the session's server answers."""
        return {"pod": self.pod, "cause": self.cause, "sentences": list(self.sentences)}


def explain(sight: ExplainedSight) -> PodExplanation:
    """Return the findings, the nearest to the cause first; those of one cause keep their order."""
    found = list(_unborn(sight) if sight.pod is None else _born(sight, sight.pod))
    found.sort(key=lambda finding: CAUSES.index(finding[0]))
    sentences = tuple(dict.fromkeys(sentence for _, sentence in found))
    return PodExplanation(f"{sight.namespace}/{sight.name}", found[0][0], sentences)


def _unborn(sight: ExplainedSight) -> Iterator[Finding]:
    if sight.namespaces is not None and sight.namespace not in sight.namespaces:
        yield "missing", f"There is no namespace {sight.namespace}; a pod is named pod/NAME or pod/NAMESPACE/NAME."
    yield "missing", f"There is no pod {sight.name} in namespace {sight.namespace}."
    for event in reversed(sight.events):
        about = event.get("involvedObject") or {}
        owner = str(about.get("name", ""))
        if event.get("type") != "Warning" or not _of_one_family(owner, sight.name):
            continue
        message = str(event.get("message", ""))
        cause = "quota" if "exceeded quota" in message else "webhook" if "webhook" in message else ""
        text = f"{about.get('kind')} {owner} could not go on ({event.get('reason')}): {message}"
        yield cause or "missing", text


def _of_one_family(owner: str, pod: str) -> bool:
    """Return whether they are one thing's: controllers name what they make by adding to their own name."""
    return bool(owner) and (pod == owner or pod.startswith(f"{owner}-") or owner.startswith(f"{pod}-"))


def _born(sight: ExplainedSight, pod: Object) -> Iterator[Finding]:
    phase, node = phase_of(pod), node_name_of(pod)
    if is_terminal(pod):
        status = pod.get("status") or {}
        why = " ".join(filter(None, (status.get("reason"), status.get("message"))))
        yield "ended", f"It has ended: {phase}{f', {why}' if why else ''}."
        yield from _exits(pod)
        return
    if is_deleting(pod):
        finalizers = pod["metadata"].get("finalizers") or ()
        held = f"; finalizers hold it: {', '.join(finalizers)}" if finalizers else ""
        yield "deleting", f"It is being deleted since {pod['metadata']['deletionTimestamp']}{held}."
    if not node:
        yield from _unplaced(sight, pod)
        yield from claim_findings(sight, pod)
    elif phase != "Running" or not _is_ready(pod):
        yield from _placed(sight, pod, node)
    else:
        yield "running", f"It runs on node {node}."
    if node:
        yield from _holdings(sight)
        yield from _node(sight, node)
    yield from _warnings(sight)
    yield from hardware_findings(sight, pod)
    if not node and phase == "Pending":
        yield "waiting", "No scheduler has bound it to a node."


def _is_ready(pod: Object) -> bool:
    return (condition_of(pod, "Ready") or {}).get("status") == "True"


def _exits(pod: Object) -> Iterator[Finding]:
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        ended = (status.get("state") or {}).get("terminated")
        if ended and ended.get("exitCode"):
            text = f": {ended['message']}" if ended.get("message") else ""
            how = f"{ended['exitCode']} ({ended.get('reason', '')})"
            yield "ended", f"Container {status['name']} exited with {how}{text}."


def _unplaced(sight: ExplainedSight, pod: Object) -> Iterator[Finding]:
    gates = [str(gate.get("name")) for gate in pod["spec"].get("schedulingGates") or ()]
    if gates:
        yield "gated", f"Scheduling gates hold it back: {', '.join(gates)}."
    scheduler = pod["spec"].get("schedulerName") or "default-scheduler"
    component = sight.schedulers.get(scheduler)
    if component is None:
        known = ", ".join(sorted(sight.schedulers)) or "none"
        yield "scheduler-unknown", f"Nothing answers to its schedulerName {scheduler!r}; schedulers that run: {known}."
    elif component in sight.standing.down:
        yield "scheduler-down", f"Its scheduler {scheduler} is down: {ending_of(sight, component)}."
    for service, resources in sight.extenders.items() if scheduler == DEFAULT_SCHEDULER else ():
        asked = not resources or any(request_of(pod, each) for each in resources)
        if asked and service in sight.standing.down:
            yield "extender-down", f"{service}, which schedulers ask, is down: {ending_of(sight, service)}."
    yield from _demand(sight, pod)
    awaited = [sentence for pool in sight.pools if (sentence := pool.awaited(pod, pool.resource))]
    for sentence in awaited:
        yield "moving", sentence
    scheduled = condition_of(pod, "PodScheduled") or {}
    message = str(scheduled.get("message") or "")
    if scheduled.get("status") == "False" and message:
        yield _cause_of(message), f"{scheduler} says: {message}"
    elif component is not None and not awaited:
        yield "waiting", f"{scheduler} has not said anything about it yet."


def _cause_of(message: str) -> str:
    if "extender" in message or "connection refused" in message:
        return "extender-down"
    return "taint" if "untolerated taint" in message else "unschedulable"


def _demand(sight: ExplainedSight, pod: Object) -> Iterator[Finding]:
    """Yield what it asks of a pool, against what the pool has."""
    for pool in sight.pools:
        wanted = request_of(pod, pool.resource)
        if not wanted:
            continue
        sizes: dict[str, int] = {}
        for devices in sight.table.values():
            for row in devices.values():
                if row.get("kind") == pool.device_kind:
                    sizes[str(row.get("pool"))] = sizes.get(str(row.get("pool")), 0) + 1
        most = max(sizes.values(), default=0)
        if wanted > most:
            there = ", ".join(f"{name} has {size}" for name, size in sorted(sizes.items())) or "there is none"
            yield "over-ask", f"It asks for {wanted} {pool.resource}, more than any pool has: {there}."
            continue
        users = {key_of(other): request_of(other, pool.resource) for other in sight.pods if _holds(other, pod)}
        users = {key: count for key, count in users.items() if count}
        idle = sum(sizes.values()) - sum(users.values())
        if wanted > idle:
            held = ", ".join(f"{key} ({count})" for key, count in sorted(users.items()))
            yield (
                "pool-empty",
                f"It asks for {wanted} {pool.resource} and {max(idle, 0)} of {sum(sizes.values())} are idle; "
                f"held by: {held or 'nobody'}.",
            )


def _holds(other: Object, pod: Object) -> bool:
    return bool(node_name_of(other)) and not is_terminal(other) and key_of(other) != key_of(pod)


def _placed(sight: ExplainedSight, pod: Object, node: str) -> Iterator[Finding]:
    waits = False
    status = pod.get("status") or {}
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (container.get("state") or {}).get("waiting")
        if waiting and waiting.get("reason") not in (None, "PodInitializing"):
            waits = True
            text = f": {waiting['message']}" if waiting.get("message") else ""
            yield "container-waits", f"Container {container['name']} waits: {waiting['reason']}{text}."
    if not waits:
        yield "container-waits", f"It is bound to node {node}, whose kubelet has not started all its containers."


def _holdings(sight: ExplainedSight) -> Iterator[Finding]:
    places = {
        row.get("uuid"): f"{chassis}/{device}" for chassis, rows in sight.table.items() for device, row in rows.items()
    }
    for container, devices in () if sight.held is None else sight.held.containers:
        by_resource: dict[str, list[str]] = {}
        for each in devices:
            named = (f"{one} ({places[one]})" if one in places else one for one in each.device_ids)
            by_resource.setdefault(each.resource, []).extend(named)
        for resource, names in by_resource.items():
            yield "running", f"Container {container} holds of {resource}: {', '.join(names)}."


def _node(sight: ExplainedSight, node: str) -> Iterator[Finding]:
    there = next((each for each in sight.nodes if name_of(each) == node), None)
    if there is None:
        yield "node-down", f"Its node {node} does not exist."
        return
    ready = condition_of(there, "Ready") or {}
    if ready.get("status") != "True":
        yield (
            "node-down",
            f"Its node {node} is not Ready: {ready.get('reason', '')} {ready.get('message', '')}".strip() + ".",
        )
    kubelet = f"kubelet/{node}"
    if kubelet in sight.standing.down:
        yield "node-down", f"The kubelet of {node} is down: {ending_of(sight, kubelet)}."


def _warnings(sight: ExplainedSight) -> Iterator[Finding]:
    """Yield the last warnings about the pod itself, one of a kind; what its scheduler says stands in its condition."""
    latest: dict[str, str] = {}
    for event in sight.events:
        about = event.get("involvedObject") or {}
        mine = about.get("kind") == "Pod" and about.get("name") == sight.name
        if mine and event.get("type") == "Warning" and event.get("reason") != "FailedScheduling":
            latest.pop(str(event.get("message")), None)
            latest[str(event.get("message"))] = str(event.get("reason"))
    for message, reason in list(latest.items())[-_WARNINGS:]:
        yield "holder-refuses" if "in use" in message else "waiting", f"{reason}: {message}."


def pod_named(text: str, namespace: str = "default") -> tuple[str, str]:
    """Namespace and name of ``pod/NAME``, ``pod/NAMESPACE/NAME`` or ``NAME``, which is in that namespace.

    Raises ValueError.
    """
    parts = text.split("/")
    if parts[0] in ("po", "pod", "pods") and len(parts) > 1:
        parts = parts[1:]
    if len(parts) > 2 or not all(parts):
        raise ValueError(f"{text!r}: must be pod/NAME or pod/NAMESPACE/NAME")
    return (parts[0], parts[1]) if len(parts) == 2 else (namespace, parts[0])


__all__ = ["CAUSES", "ExplainedSight", "PodExplanation", "explain", "pod_named"]
