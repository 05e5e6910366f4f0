"""Looking at the chassis' table and at who holds its devices."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from mews.harness.invariants.observed_hardware import known_as
from mews.harness.journal import Line
from mews.harness.scenario.chain import moved
from mews.harness.scenario.expectations import GpusExpectation, SettledExpectation
from mews.harness.scenario.match import Mismatch, match, show
from mews.harness.scenario.step_context import Finding, StepContext
from mews.kube.api.objects import condition_of, containers_of, name_of, node_name_of, phase_of, uid_of
from mews.kube.api.quantities import whole
from mews.kube.api.resources import NODES, PODS
from mews.kube.deviceplugin.port import PluginError, PodDevices

Row = Mapping[str, Any]
_NO_CHANGE = ("attach-begun", "detach-begun", "operation-finished")
_UUID = re.compile(r"\b[A-Za-z]+-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")


async def rows_of(stage: StepContext) -> list[Row]:
    """Return all rows of the table, of all chassis."""
    table = await stage.cluster.hardware.table()
    return [row for devices in table.values() for row in devices.values()]


async def log_of(stage: StepContext, namespace: str, pod: str, container: str | None) -> str:
    """Return what the container has written so far."""
    chunks = [chunk async for chunk in stage.cluster.kube.log(namespace, pod, container=container)]
    return b"".join(chunks).decode("utf-8", "replace")


async def table(stage: StepContext, expected: Any) -> Finding:
    """The table matches the pattern."""
    wrong = match(expected, await stage.cluster.hardware.table())
    return Finding(wrong is None, f"chassis table like {show(expected)}", str(wrong or ""), line=_made(stage, wrong))


def _made(stage: StepContext, wrong: Mismatch | None) -> int | None:
    """Return the number of the last line that changed the device, on the chassis or the host, that a mismatch is
    about."""
    if wrong is None:
        return None
    names = set(wrong.path.split("."))
    for line in reversed(stage.cluster.journal.lines(stage.first_line)):
        if line.layer not in ("chassis", "host") or line.event in _NO_CHANGE:
            continue
        if line.actor.partition("/")[2] in names and names & {line.fields.get("device"), line.fields.get("gpuid")}:
            return line.number
    return None


async def hosts(stage: StepContext, expected: Mapping[str, Any]) -> Finding:
    """Check how many devices each host has; ``free`` are on no port."""
    counted = Counter(str(row.get("host") or "free") for row in await rows_of(stage))
    seen = ", ".join(f"{host}: {counted[host]}" for host in sorted({*counted, *expected}))
    wrong = next((w for host, p in expected.items() if (w := match(p, counted[host], host)) is not None), None)
    return Finding(wrong is None, f"devices per host {show(expected)}", seen)


async def host(stage: StepContext, expected: Any) -> Finding:
    """What the hosts see matches the pattern."""
    wrong = match(expected, await stage.cluster.hardware.hosts())
    return Finding(wrong is None, f"hosts that see {show(expected)}", str(wrong or ""), line=_made(stage, wrong))


async def telemetry(stage: StepContext, expected: Any) -> Finding:
    """What the boards show matches the pattern."""
    wrong = match(expected, await stage.cluster.hardware.telemetry())
    return Finding(wrong is None, f"boards that show {show(expected)}", str(wrong or ""))


async def moves(stage: StepContext, expected: Any) -> Finding:
    """Check how many attaches were completed."""
    lines = list(stage.cluster.journal.find("chassis", "attached", since=stage.first_line))
    named = ", ".join(f"{line.fields['gpuid']} to {line.fields.get('host')}" for line in lines)
    wrong = match(expected, len(lines))
    surplus = _surplus(stage, lines, expected) if wrong is not None else None
    return Finding(wrong is None, f"{show(expected)} moved devices", f"{len(lines)}: {named or 'none'}", line=surplus)


def _surplus(stage: StepContext, attached: Sequence[Line], expected: Any) -> int | None:
    """Return the number of the line that set off the first move that is one too many; None where there are too few."""
    right = [count for count in range(len(attached)) if match(expected, count) is None]
    if not right:
        return None
    surplus = attached[right[-1]]
    before = [line for line in stage.cluster.journal.lines() if line.number <= surplus.number]
    begun = moved(before, surplus.fields["gpuid"])
    return surplus.number if begun is None else begun.number


async def operations(stage: StepContext, expected: Mapping[str, Any]) -> Finding:
    """Check how many lines of each event the chassis wrote."""
    counted = Counter(line.event for line in stage.cluster.journal.find("chassis", since=stage.first_line))
    wrong = next((w for event, p in expected.items() if (w := match(p, counted[event], event)) is not None), None)
    return Finding(wrong is None, f"chassis operations {show(expected)}", f"{wrong}" if wrong else "")


async def settled(stage: StepContext, expected: SettledExpectation) -> Finding:
    """Every node is Ready and has all its host's devices allocatable."""
    rows = [row for row in await rows_of(stage) if expected.kind in (None, row.get("kind"))]
    there = Counter(stage.cluster.node_of(row["host"]) for row in rows if row.get("host"))
    nodes = (await stage.cluster.kube.list(NODES)).items
    resource = stage.pooled_resource(expected.resource)
    awaited = f"all nodes Ready with {resource} as the chassis has them"
    missing = sorted(set(there) - {name_of(node) for node in nodes})
    if missing:
        return Finding(False, awaited, f"no node {missing[0]}", (f"node/{missing[0]}",))
    for node in nodes:
        name = name_of(node)
        ready = (condition_of(node, "Ready") or {}).get("status")
        amount = whole(((node.get("status") or {}).get("allocatable") or {}).get(resource, 0))
        if ready != "True" or amount != there[name]:
            seen = f"{name}: Ready {ready}, allocatable {amount}, on the chassis {there[name]}"
            return Finding(False, awaited, seen, (f"node/{name}",))
    return Finding(True, awaited)


async def gpus(stage: StepContext, expected: GpusExpectation) -> Finding:
    """The pod's processes, the kubelet's pod resources and the chassis' table name the same devices."""
    about = f"pod/{expected.namespace}/{expected.pod}"
    awaited = f"{about} to hold {expected.count} {stage.pooled_resource(expected.resource)}" + (
        f" on {expected.host}" if expected.host else ""
    )
    wrong = await _gpus_wrong(stage, expected)
    return Finding(not wrong, awaited, wrong, (about,))


async def _gpus_wrong(stage: StepContext, expected: GpusExpectation) -> str:
    pod = await stage.cluster.kube.get(PODS, expected.pod, namespace=expected.namespace)
    if phase_of(pod) != "Running":
        return f"phase {phase_of(pod)}, node {node_name_of(pod) or 'none'}"
    rows = await rows_of(stage)
    found = {str(row["host"]) for row in rows if row.get("host")}
    host = next((h for h in sorted(found) if stage.cluster.node_of(h) == node_name_of(pod)), None)
    if host is None:
        return f"it runs on {node_name_of(pod)}, where the chassis has no device"
    if expected.host not in (None, host):
        return f"it runs on {host}"
    try:
        report = await stage.cluster.pod_resources(host)
    except PluginError as error:
        return f"pod resources of {host}: {error}"
    held = _held(report, expected, stage.pooled_resource(expected.resource))
    wrong = await _holdings_wrong(stage, expected, held=held, host=host, rows=rows)
    wrong = wrong or _unlisted(pod, held) or _others(stage, expected, uid_of(pod), held)
    if not wrong:
        stage.held[uid_of(pod)] = held
    return wrong


def _others(stage: StepContext, expected: GpusExpectation, uid: str, held: dict[str, list[str]]) -> str:
    """Return what the pod holds against the devices that are expected by name, or that it had before."""
    if "devices" in expected.model_fields_set:
        wrong = match(expected.devices, sorted({gpuid for gpuids in held.values() for gpuid in gpuids}), "devices")
        if wrong is not None:
            return str(wrong)
    if not expected.kept:
        return ""
    before = stage.held.get(uid)
    if before is None:
        return "kept: no check of gpus has held for this pod yet"
    return "" if held == before else f"it holds {show(held)}; before, it held {show(before)}"


def _unlisted(pod: Mapping[str, Any], held: Mapping[str, list[str]]) -> str:
    strangers = sorted(set(held) - {str(c.get("name")) for c in [*containers_of(pod), *_inits(pod)]})
    return f"pod resources name containers that the pod does not have: {', '.join(strangers)}" if strangers else ""


def _inits(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(pod.get("spec", {}).get("initContainers") or ())


def _held(report: tuple[PodDevices, ...], expected: GpusExpectation, resource: str) -> dict[str, list[str]]:
    """Container -> GPUIDs, as pod resources say."""
    return {
        container: sorted(d for entry in devices if entry.resource == resource for d in entry.device_ids)
        for pod in report
        if (pod.namespace, pod.name) == (expected.namespace, expected.pod)
        for container, devices in pod.containers
    }


async def _holdings_wrong(
    stage: StepContext, expected: GpusExpectation, *, held: Mapping[str, list[str]], host: str, rows: list[Row]
) -> str:
    total = sum(map(len, held.values()))
    if total != expected.count:
        return f"pod resources of {host} give it {total}: {show(held)}"
    for container, wanted in expected.containers.items():
        if len(held.get(container, ())) != wanted:
            return f"pod resources of {host} give container {container} {len(held.get(container, ()))}, not {wanted}"
    by_gpuid = {row["gpuid"]: row for row in rows}
    held = {container: [known_as(gpuid, by_gpuid) for gpuid in gpuids] for container, gpuids in held.items()}
    for gpuid in (g for gpuids in held.values() for g in gpuids):
        where = by_gpuid.get(gpuid, {}).get("host")
        if where != host:
            return f"pod resources of {host} give it {gpuid}, which the chassis has on {where or 'no port'}"
    for container, gpuids in held.items() if expected.log else ():
        wrong = _printed_wrong(
            container,
            await log_of(stage, expected.namespace, expected.pod, container),
            sorted(str(by_gpuid[gpuid]["uuid"]) for gpuid in gpuids),
            [str(row["uuid"]) for row in rows],
        )
        if wrong:
            return wrong
    return ""


def _printed_wrong(container: str, log: str, wanted: list[str], known: list[str]) -> str:
    """Return whether a container printed other UUIDs than it holds: known ones, and whatever else looks like one."""
    printed = sorted({uuid for uuid in known if uuid in log} | set(_UUID.findall(log)))
    if printed == wanted:
        return ""
    return f"container {container} holds {', '.join(wanted) or 'nothing'} and prints {', '.join(printed) or 'nothing'}"
