"""The demo: a pod asks for five GPUs, its node has four, and exactly one moves. Told live, hop by hop, and checked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from mews.harness.invariants import Oracle
from mews.harness.journal import Line
from mews.harness.ports.cluster import Cluster
from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import is_terminal, node_name_of, phase_of
from mews.kube.api.resources import PODS
from mews.kube.deviceplugin.port import PodDevices
from mews.kube.system.system import Pooled

POD, NAMESPACE, GPUS = "wants-five", "default", 5
PATIENCE_S = 60.0
"""Wall-clock seconds until the demo gives up."""


def manifest(pooled: Pooled) -> dict[str, Any]:
    """Return the pod that asks for one more than a node has."""
    container = {"name": "main", "image": "mews/gpu-hold", "resources": {"limits": {pooled.resource: str(GPUS)}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POD, "namespace": NAMESPACE},
        "spec": {"schedulerName": pooled.scheduler, "restartPolicy": "Never", "containers": [container]},
    }


Narrate = Callable[[float, str, str], None]
"""Hears (seconds, who, what) for every hop."""


class DemoRow(Struct, frozen=True):
    """One GPU of the pod: what the process printed, and who confirms it."""

    uuid: str
    gpuid: str
    chassis: str
    moved: bool
    in_table: bool
    in_pod_resources: bool

    @property
    def good(self) -> bool:
        """Whether everybody agrees."""
        return self.in_table and self.in_pod_resources


class DemoOutcome(Struct, frozen=True):
    """How the demo ended: one row per UUID that the process printed, and what is wrong, if anything."""

    node: str
    rows: tuple[DemoRow, ...] = ()
    moved: tuple[str, ...] = ()
    wrong: tuple[str, ...] = field(default=())

    @property
    def passed(self) -> bool:
        """Whether all is as it should be."""
        return not self.wrong


async def run_demo(cluster: Cluster, pooled: Pooled, show: Narrate) -> DemoOutcome:
    """Play the demo on a running cluster with the demo's hardware; ``pooled`` is what moves there."""
    oracle = Oracle(cluster)
    await oracle.start()
    first = len(cluster.journal)
    stop = cluster.journal.listen(lambda line: _narrate(line, pooled.resource, show))
    try:
        await cluster.kube.create(PODS, manifest(pooled), namespace=NAMESPACE)
        pod, printed = await _running(cluster)
        outcome = await _check(cluster, pooled.resource, pod, printed, first)
    finally:
        stop()
        violations = await oracle.finish()
    broken = tuple(str(violation) for violation in violations)
    return DemoOutcome(outcome.node, outcome.rows, outcome.moved, (*outcome.wrong, *broken))


async def _running(cluster: Cluster) -> tuple[Mapping[str, Any], list[str]]:
    """Return the running pod and the UUIDs that its process printed; what there is when patience ends."""
    pod: Mapping[str, Any] = {}
    printed: list[str] = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            while len(printed) < GPUS and not (pod and is_terminal(pod)):
                await asyncio.sleep(0.05)
                pod = await cluster.kube.get(PODS, POD, namespace=NAMESPACE)
                if phase_of(pod) != "Pending":
                    printed = await _printed(cluster)
    return pod, printed


async def _printed(cluster: Cluster) -> list[str]:
    text = b""
    with contextlib.suppress(ApiError, UnavailableError):
        async for chunk in cluster.kube.log(NAMESPACE, POD):
            text += chunk
    return text.decode(errors="replace").split()


async def _check(
    cluster: Cluster, resource: str, pod: Mapping[str, Any], printed: list[str], first: int
) -> DemoOutcome:
    host = node_name_of(pod)
    if not host:
        return DemoOutcome("", wrong=(f"pod {POD} is not on a node after {PATIENCE_S:g} s",))
    table = await cluster.hardware.table()
    devices = {row["uuid"]: (name, row) for name, rows in table.items() for row in rows.values()}
    reported = _reported(await cluster.pod_resources(host), resource)
    moved = tuple(line.fields["gpuid"] for line in cluster.journal.find("chassis", "attached", since=first))
    rows = []
    for uuid in printed:
        chassis, row = devices.get(uuid, ("", {"gpuid": "unknown", "host": None}))
        gpuid = str(row["gpuid"])
        rows.append(DemoRow(uuid, gpuid, chassis, gpuid in moved, row["host"] == host, gpuid in reported))
    return DemoOutcome(host, tuple(rows), moved, tuple(_wrong(rows, moved, reported)))


def _reported(report: tuple[PodDevices, ...], resource: str) -> set[str]:
    return {
        device
        for pod in report
        if (pod.namespace, pod.name) == (NAMESPACE, POD)
        for _, devices in pod.containers
        for entry in devices
        if entry.resource == resource
        for device in entry.device_ids
    }


def _wrong(rows: list[DemoRow], moved: tuple[str, ...], reported: set[str]) -> list[str]:
    wrong = [f"{row.uuid}: chassis table and pod resources do not both have it" for row in rows if not row.good]
    if len({row.uuid for row in rows}) != GPUS or len(rows) != GPUS:
        wrong.append(f"the process printed {len(rows)} UUIDs, expected {GPUS} different ones")
    if len(reported) != GPUS:
        wrong.append(f"pod resources report {len(reported)} devices, expected {GPUS}")
    if len(moved) != 1:
        wrong.append(f"{len(moved)} GPUs moved ({', '.join(moved) or 'none'}), expected exactly one")
    return wrong


def _narrate(line: Line, resource: str, show: Narrate) -> None:
    narrate = STORY.get((line.layer, line.event))
    text = narrate(line, resource) if narrate is not None else None
    if text:
        show(line.t, line.actor, text)


def _ours(line: Line) -> bool:
    return line.actor == f"pod/{NAMESPACE}/{POD}"


def _annotated(line: Line, resource: str) -> str | None:
    notes = line.fields["annotations"]
    if not _ours(line) or not notes.get("dst_node"):
        return None
    return f"scheduler: best on {notes['dst_node']}, short of {notes.get('gpu_demand')}; Permit waits, others go on"


def _event(line: Line, resource: str) -> str | None:
    return f"event: {line.fields['message']}" if line.fields["reason"] == "Reconfig" else None


def _list(line: Line, resource: str) -> str:
    return f"its device manager announces {len(line.fields['healthy'])} GPUs"


def _allocatable(line: Line, resource: str) -> str | None:
    fields = line.fields
    return f"{resource} allocatable: {fields['old']} -> {fields['new']}" if fields["resource"] == resource else None


def _allocated(line: Line, resource: str) -> str:
    return f"gives {', '.join(line.fields['devices'])} to {line.fields['pod']}"


def _phase(line: Line, resource: str) -> str | None:
    return f"the pod is {line.fields['phase']}" if _ours(line) else None


def _draining(line: Line, resource: str) -> str:
    gpuid = line.fields["gpuid"]
    return f"{gpuid} drains: new programs do not see it" if line.fields["on"] else f"{gpuid} drains no more"


def _begun(line: Line, resource: str) -> str:
    return f"{line.event.removesuffix('-begun')} of {line.fields['gpuid']} begins"


STORY: Mapping[tuple[str, str], Callable[[Line, str], str | None]] = {
    ("api", "created"): lambda line, resource: f"a pod asks for {GPUS} x {resource}" if _ours(line) else None,
    ("api", "annotations"): _annotated,
    ("api", "event"): _event,
    ("chassis", "detach-begun"): _begun,
    ("chassis", "detached"): lambda line, resource: f"{line.fields['gpuid']} is off {line.fields['old_host']}",
    ("chassis", "attach-begun"): _begun,
    ("chassis", "attached"): lambda line, resource: f"{line.fields['gpuid']} is on {line.fields['host']}",
    ("host", "draining"): _draining,
    ("host", "function-removed"): lambda line, resource: f"{line.fields['gpuid']} is removed from the bus",
    ("host", "xid"): lambda line, resource: f"XID {line.fields['xid']} of {line.fields['gpuid']}",
    ("host", "rescanned"): lambda line, resource: "rescan: looks for what was attached",
    ("host", "driver-bound"): lambda line, resource: f"{line.fields['gpuid']} has its driver",
    ("kubelet", "devices"): _list,
    ("api", "allocatable"): _allocatable,
    ("api", "bound"): lambda line, resource: f"bound to {line.fields['node']}" if _ours(line) else None,
    ("kubelet", "allocated"): _allocated,
    ("kubelet", "container-started"): lambda line, resource: f"container {line.fields['container']} runs",
    ("api", "phase"): _phase,
}
"""Which lines are hops of the story, and how they are told, given the resource that is pooled."""
