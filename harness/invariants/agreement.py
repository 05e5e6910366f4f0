"""Invariant 6: a pod's env, the kubelet's checkpoint and pod resources, and the chassis agree."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.harness.invariants.invariant import ObservedState
from mews.harness.invariants.observed_hardware import ObservedHardware, VisibleDevice
from mews.harness.journal import Line
from mews.harness.ports.cluster import DEVICE_ENV
from mews.kube.deviceplugin.port import PodDevices
from mews.kube.system.invariant import Breach, Invariant, ObservedHolding

STARTING_S = 10.0
"""A container whose start had begun when its pod was deleted may still come up for so long."""
Table = Mapping[str, Mapping[str, Mapping[str, Any]]]


class Agreement(Invariant[ObservedState]):
    """At an allocation, the chassis has the allocated devices on that host. When a container starts, its environment
    lists exactly these devices (by GPUID or UUID), and so does the checkpoint. At the end of the run, pod resources and
    the chassis' table agree with this. A container may name more devices of its host: as many as are prepared there for
    its pod's resource claims."""

    number = 6
    name = "env, checkpoint, pod resources and chassis agree"

    def __init__(self) -> None:
        self._doubts: list[Line] = []
        self._users: dict[str, frozenset[str]] = {}
        """Claim -> the pods that it is reserved for."""
        self._prepared: dict[tuple[str, str, str], int] = {}
        """Host, claim and driver -> how many devices are prepared."""
        self._deleted: dict[str, float] = {}
        """When pods (uid) were deleted."""

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Judge an allocation, a container's start, a checkpoint."""
        if line.event.startswith("claim-"):
            self._on_claim(line)
        if line.layer == "api" and line.event == "deleted" and line.actor.startswith("pod/"):
            self._deleted = {uid: t for uid, t in self._deleted.items() if line.t - t <= STARTING_S}
            self._deleted[line.fields["uid"]] = line.t
        if line.layer != "kubelet":
            return
        if line.event == "allocated":
            self._doubts.append(line)
        elif line.event == "container-started":
            yield from self._env(line, state)
            yield from self._checkpoint(line, state)
        elif line.event == "checkpoint":
            yield from self._checkpoint(line, state)

    def on_time(self, t: float, state: ObservedState) -> Iterator[Breach]:
        """Judge again the allocations that the chassis' events may not have caught up with."""
        due = [line for line in self._doubts if t - line.t >= state.bounds.lag_s]
        self._doubts = [line for line in self._doubts if t - line.t < state.bounds.lag_s]
        for line in due:
            yield from self._on_host(line, state)

    def _on_claim(self, line: Line) -> None:
        claim, host = line.fields["claim"], line.actor.partition("/")[2]
        namespace = claim.partition("/")[0]
        if line.event == "claim-reserved":
            self._users[claim] = frozenset(f"{namespace}/{name}" for name in line.fields["pods"])
        elif line.event == "claim-freed":
            self._users.pop(claim, None)
        elif line.event == "claim-prepared":
            self._prepared[host, claim, line.fields["driver"]] = len(line.fields["devices"])
        elif line.event == "claim-unprepared":
            self._prepared.pop((host, claim, line.fields["driver"]), None)

    def _number_claimed(self, host: str, pod: str) -> int:
        """Return how many devices are prepared on the host for the pod's claims."""
        return sum(
            number
            for (where, claim, _), number in self._prepared.items()
            if where == host and pod in self._users.get(claim, ())
        )

    def _on_host(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        host = line.actor.partition("/")[2]
        for gpuid in state.world.named(line.fields["devices"]):
            device = state.world.devices.get(gpuid)
            if device is not None and device.host != host:
                what = (
                    f"{line.fields['pod']} on {host} was given {gpuid}, which the chassis has on {_place(device.host)}"
                )
                yield Breach((gpuid, line.fields["uid"], "host"), what, line, gpuid)

    def _env(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        uid, container = line.fields["uid"], line.fields["container"]
        if line.t - self._deleted.get(uid, -math.inf) <= STARTING_S:
            return  # Deleted by force while it was started: nothing is known of what it holds, and it ends at once.
        held = [h for h in state.world.all_holdings() if h.uid == uid and h.container in (container, "")]
        devices = state.world.devices
        gpuids = sorted({gpuid for h in held for gpuid in (*h.devices, *h.parts_of) if gpuid in devices})
        uuids = sorted(devices[gpuid].uuid_known for gpuid in gpuids)
        known = {*devices, *(device.uuid_known for device in devices.values())}
        env = line.fields.get("env", {})
        lists = {name: list(state.world.named(value.split(","))) for name, value in env.items()}
        if DEVICE_ENV in lists:
            lists[DEVICE_ENV] = _by_index(lists[DEVICE_ENV], state.world.seen.get(line.actor.partition("/")[2], {}))
        by_design = state.systems.parts_known if any(h.parts_of for h in held) else ""
        naming = {name: ids for name, ids in lists.items() if any(id_ in known for id_ in ids)}
        if gpuids and not naming and not any(h.container == "" for h in held):  # else they may go by their indexes
            what = f"no variable of {line.fields['pod']} ({container}) names its devices {', '.join(gpuids)}"
            struck = (gpuid for gpuid in gpuids if state.windows.excused(self.number, line.t, gpuid))
            yield Breach((uid, container, "env"), what, line, next(struck, None), known=by_design)
        host = line.actor.partition("/")[2]
        claimed = self._number_claimed(host, line.fields["pod"])
        for name, ids in naming.items():
            if claimed:
                here = {
                    name for each in devices.values() if each.host == host for name in (each.gpuid, each.uuid_known)
                }
                beside = [id_ for id_ in ids if id_ not in gpuids and id_ not in uuids]
                if len(beside) <= claimed and here.issuperset(beside):
                    ids = [id_ for id_ in ids if id_ not in beside]
            if sorted(ids) not in (gpuids, uuids):
                holds = ", ".join(gpuids) or "none"
                what = f"{line.fields['pod']} ({container}) has {name}={','.join(ids)} and holds {holds}"
                unnamed = [gpuid for gpuid in gpuids if gpuid not in ids and devices[gpuid].uuid_known not in ids]
                excusing: list[str | None] = [*unnamed] or [None]
                for gpuid in excusing:
                    yield Breach((uid, container, "env", gpuid or ""), what, line, gpuid, known=by_design)

    def _checkpoint(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        host = line.actor.partition("/")[2]
        written = state.world.checkpoints.get(host)
        if written is None:
            return
        for slot, holding in state.world.holdings.items():
            if holding.host != host or slot[:2] not in state.world.started:
                continue
            if sorted(written.get(slot, ())) != sorted(holding.devices):
                has = ", ".join(written.get(slot, ())) or "nothing"
                what = f"the checkpoint of {host} has {has} for {_who(holding)}, which was given {_ids(holding)}"
                yield Breach((*slot, "checkpoint"), what, line)


def at_the_end(state: ObservedState, table: Table, reports: Mapping[str, Sequence[PodDevices]]) -> Iterator[Breach]:
    """Yield whether the last table and pod resources (by host) say of every live container what was heard before."""
    now = {row["gpuid"]: row for rows in table.values() for row in rows.values()}
    for holding in state.world.all_holdings():
        for gpuid in holding.devices:
            if gpuid in now and now[gpuid].get("host") != holding.host:
                where = _place(now[gpuid].get("host"))
                what = f"{_who(holding)} on {holding.host} holds {gpuid}; at the end it is on {where}"
                yield Breach((gpuid, holding.uid, "host"), what, holding.line, gpuid)
    for holding in state.world.holdings.values():
        if holding.host in reports and (holding.uid, holding.container) in state.world.started:
            yield from _reported(holding, reports[holding.host], state.world)
    for gpuid, device in state.world.devices.items():
        if gpuid in now and now[gpuid].get("port") != device.port:
            where = _place(now[gpuid].get("port"))
            what = f"device {gpuid} is on {where} at the end; its events say {_place(device.port)}"
            yield Breach((gpuid, "events"), what, device.changed, gpuid)


def _reported(holding: ObservedHolding, report: Sequence[PodDevices], world: ObservedHardware) -> Iterator[Breach]:
    reported = [
        device
        for pod in report
        if f"{pod.namespace}/{pod.name}" == holding.pod
        for name, devices in pod.containers
        if name == holding.container
        for entry in devices
        if entry.resource == holding.resource
        for device in world.named(entry.device_ids)
    ]
    # Init containers are not in the report (contract kubelet.md section 7).
    in_report = any(
        name == holding.container
        for pod in report
        if f"{pod.namespace}/{pod.name}" == holding.pod
        for name, _ in pod.containers
    )
    if in_report and sorted(reported) != sorted(holding.devices):
        what = (
            f"pod resources say {', '.join(reported) or 'nothing'} for {_who(holding)}, which was given {_ids(holding)}"
        )
        yield Breach((holding.uid, holding.container, "pod-resources"), what, holding.line)


def _by_index(ids: Sequence[str], seen: Mapping[str, VisibleDevice]) -> list[str]:
    """GPUs that are named by their indexes, as NVIDIA's container runtime reads them: in the order of PCI addresses."""
    gpus = sorted((gpuid for gpuid, device in seen.items() if device.kind == "GPU"), key=lambda each: seen[each].bdf)
    return [gpus[int(id_)] if id_.isdigit() and int(id_) < len(gpus) else id_ for id_ in ids]


def _place(where: Any) -> str:
    return "no port" if where is None else str(where)


def _who(holding: ObservedHolding) -> str:
    return f"{holding.pod} ({holding.container})"


def _ids(holding: ObservedHolding) -> str:
    return ", ".join(holding.devices)
