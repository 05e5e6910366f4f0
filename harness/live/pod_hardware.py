"""What of the hardware, of the components that move it and of faults touches one pod. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mews.harness.live.sight import ExplainedSight, Finding, ending_of
from mews.harness.live.standing import StandingFault
from mews.kube.api.objects import Object, node_name_of, phase_of
from mews.kube.api.pod_requests import request_of


def hardware_findings(sight: ExplainedSight, pod: Object) -> Iterator[Finding]:
    """Yield what goes on below it, where it asks for what is moved, or holds it."""
    wanted = [pool.resource for pool in sight.pools if request_of(pod, pool.resource)]
    moved = bool(wanted) and phase_of(pod) != "Running"
    node = node_name_of(pod) or _chosen(sight, pod)
    if moved:
        yield from _down(sight, pod, wanted)
        yield from _lies(sight, node)
        yield from _moves(sight, node)
    for fault in sight.faults:
        if _touches(sight, fault, node, moved=moved):
            yield "fault", f"{fault.owner} has the fault {fault.kind}{_state(fault)}."


def _state(fault: StandingFault) -> str:
    about = "" if fault.device is None else f" of {fault.device}"
    ended = "; it has ended" if fault.ended else ""
    return f"{about} since {fault.t:.1f} s (triggered {fault.fired} times{ended})"


def _chosen(sight: ExplainedSight, pod: Object) -> str:
    """Return the node that devices are brought to for it, "" while none is chosen."""
    return next((node for pool in sight.pools if (node := pool.chosen(pod))), "")


def _down(sight: ExplainedSight, pod: Object, wanted: Sequence[str]) -> Iterator[Finding]:
    """Components that its devices come from: those of their system, those of its node alone once it is bound, and the
    chassis."""
    bound = node_name_of(pod)
    for component in sorted(sight.standing.down):
        name, _, place = component.partition("/")
        of_system = sight.workers.get(name, sight.workers.get(component, "")) in wanted
        if component in sight.schedulers.values() or not (of_system or name == "chassis"):
            continue
        if not bound or not place or name == "chassis" or place == bound:
            yield "component-down", f"{component} is down: {ending_of(sight, component)}."


def _lies(sight: ExplainedSight, node: str) -> Iterator[Finding]:
    for line in sight.standing.lies:
        places = {line.fields.get("host"), line.fields.get("old_host")} - {None}
        fresh = sight.since_s is None or line.t >= sight.since_s
        # A detached device is on no port: the lie is told to whoever waits in its pool.
        if fresh and (not node or not places or node in places or line.fields.get("kind") == "detach"):
            yield (
                "chassis-lies",
                f"{line.actor} answered {line.fields['answer']} to the {line.fields.get('kind')} of "
                f"{line.fields.get('gpuid')} at {line.t:.1f} s, which is not true.",
            )


def _moves(sight: ExplainedSight, node: str) -> Iterator[Finding]:
    for (chassis, _), line in sorted(sight.standing.operations.items()):
        verb, host = line.event.removesuffix("-begun"), line.fields.get("host")
        if verb == "attach" and node and host not in (None, node):
            continue  # it is brought to another node
        where = f"to {host or line.fields.get('port')}" if verb == "attach" else "from its host"
        yield "moving", f"{chassis} is at work: {verb} of {line.fields.get('gpuid')} {where} since {line.t:.1f} s."


def _touches(sight: ExplainedSight, fault: StandingFault, node: str, *, moved: bool) -> bool:
    """Return whether the fault is of a device that the pod holds, or, while devices are moved for it and unless the
    fault has ended, of its host or of a chassis of its pool."""
    side, _, place = fault.owner.partition("/")
    if fault.device is not None and fault.device in _held(sight):
        return True
    if fault.ended or not moved:
        return False
    if side == "host":
        return place == node and fault.device is None
    if side == "chassis" and not _in_pool_of(sight, place, node):
        return False
    in_work = {str(line.fields.get("device")) for line in sight.standing.operations.values()}
    in_work |= {str(line.fields.get("gpuid")) for line in sight.standing.operations.values()}
    return fault.device is None or fault.device in in_work


def _in_pool_of(sight: ExplainedSight, chassis: str, node: str) -> bool:
    """Return whether the chassis' devices may be brought to the node; where none is known for it, any may."""
    pools = {row.get("pool") for rows in sight.table.values() for row in rows.values() if row.get("host") == node}
    return not pools or any(row.get("pool") in pools for row in sight.table.get(chassis, {}).values())


def _held(sight: ExplainedSight) -> set[str]:
    """Return the devices of the pod, by every name that they go by."""
    containers = sight.held.containers if sight.held else ()
    ids = {one for _, devices in containers for each in devices for one in each.device_ids}
    rows = ((device, row) for devices in sight.table.values() for device, row in devices.items())
    named = ((device, str(row.get("gpuid")), str(row.get("uuid"))) for device, row in rows)
    return ids | {name for names in named if ids & set(names) for name in names}
