"""ClusterObservations in, a hardware file and a scenario out. Nothing here does I/O or reads a clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.harness.recording.cabling import concluded_cabling
from mews.harness.recording.causes import (
    RecordedStep,
    RecordedView,
    chassis_faults,
    disturbed_hosts,
    host_faults,
    node_troubles,
    silences,
    unasked_moves,
)
from mews.harness.recording.clocks import with_one_clock
from mews.harness.recording.ending import final_checks
from mews.harness.recording.histories import NodeHistory, PodHistory, last_events, node_histories, pod_histories
from mews.harness.recording.made_hardware import Comments, hardware_of_recording, with_made_up_chassis
from mews.harness.recording.observations import ClusterObservations
from mews.harness.recording.reduction import system_kinds
from mews.harness.recording.replayed import (
    StackNames,
    ended_image,
    known_owners,
    owner_steps,
    owners_of,
    replayed_pod,
    top_owner,
)
from mews.harness.recording.tables import chassis_histories
from mews.harness.scenario.language.names import escaped
from mews.harness.scenario.stack import Stack

_PATIENCE_S = 300.0
_GRACE_S = 5.0
"""How long the checks at the end may take where the real cluster had failed them: it had its time before."""
_CLUSTERS_OWN = ("kube-system", "kube-public", "kube-node-lease")


class NothingRecordedError(ValueError):
    """The observations are too few for a hardware file."""


class RecordedFiles(Struct, frozen=True):
    """The documents, with comments by place. ``red``: why the scenario fails as the real cluster did, a line each."""

    hardware: dict[str, Any]
    hardware_comments: Comments
    scenario: dict[str, Any]
    scenario_comments: Comments
    red: tuple[str, ...]
    notes: tuple[str, ...]


def recorded_files(
    seen: ClusterObservations, *, name: str, hardware_file: str, own: Iterable[str] = ()
) -> RecordedFiles:
    """Return both files. ``own``: namespaces of the systems under test, whose pods the replay makes itself.

    Raises NothingRecordedError, and HardwareError where no emulated hardware can be like what was seen.
    """
    ignored = (*_CLUSTERS_OWN, *own)
    pods = pod_histories(seen.objects, ignored)
    seen = with_one_clock(seen, pods)
    view = _view(seen, pods)
    names, notes = _names(view, seen)
    hardware, hardware_comments = hardware_of_recording(view, name)
    steps = sorted(_steps(view, seen, names), key=lambda each: each.at)
    wrong = any(each.wrong for each in steps)
    checks = list(final_checks(view, names, wrong=wrong))
    document: dict[str, Any] = {
        "apiVersion": "mews/v1",
        "kind": "Scenario",
        "metadata": {"name": name, "description": "recorded from a real cluster"},
        "hardware": hardware_file,
        **_stack(seen),
        **_images(view),
        **_namespaces(view),
        "unknownImages": "idle",
    }
    comments: Comments = {("unknownImages",): ["images of the recording run idle, until they are stopped"]}
    written, its = _timed(view, names, steps)
    if checks:
        red = [each for each in checks if each.red]
        place: Sequence[str | int] = ("steps", len(written))
        its[tuple(place)] = [line for each in checks for line in each.why]
        timeout = _GRACE_S if red or wrong else _PATIENCE_S
        wait = [each.check for each in checks]
        written.append({"name": "as it should have ended", "wait": wait, "timeout": timeout})
    document["timeout"] = round(2 * (view.ended - view.began) + 3 * _PATIENCE_S, 1)
    document["steps"] = escaped(written)
    causes = [each.why[0] for each in steps if each.wrong and each.why]
    expected = [each.why[0] for each in checks if each.red]
    all_notes = (*seen.notes, *notes)
    comments[()] = [f"not known: {each}" for each in all_notes]
    return RecordedFiles(hardware, hardware_comments, document, comments | its, (*causes, *expected), all_notes)


def _view(seen: ClusterObservations, pods: Sequence[PodHistory]) -> RecordedView:
    nodes = node_histories(seen.objects)
    chassis = chassis_histories(seen.readings)
    if not nodes and not chassis:
        raise NothingRecordedError("no node and no listing of a chassis: nothing to make a hardware file of")
    times = seen.times()
    began = seen.began if seen.began is not None else _beginning(pods, times)
    lasts = [t for pod in pods for t in (pod.created, pod.bound, pod.started, pod.ended, pod.deleted) if t is not None]
    ended = seen.ended if seen.ended is not None else max([began, *times, *lasts])
    resource = _resource(pods, nodes)
    cabling = concluded_cabling(chassis, nodes, resource, ended)
    events = last_events(seen.objects)
    view = RecordedView(pods, nodes, chassis, cabling, resource, began, ended, events)
    return view if chassis else with_made_up_chassis(view)


def _beginning(pods: Sequence[PodHistory], times: Sequence[float]) -> float:
    """Return that of collected files: the first pod's creation, or the first dated line where that came earlier."""
    created = [pod.created for pod in pods]
    return min([*created, *times[:1]], default=0.0)


def _resource(pods: Sequence[PodHistory], nodes: Sequence[NodeHistory]) -> str:
    """Return the pooled resource: the stack's own where it was seen, else what most pods request or most nodes
    offer."""
    pooled = Stack().pooled
    asked = Counter(name for pod in pods for name in pod.resources())
    offered = Counter(name for node in nodes for name in node.offered)
    if pooled is not None and (pooled.resource in asked or pooled.resource in offered):
        return pooled.resource
    ranked = sorted((*asked, *offered), key=lambda name: (-asked[name], -offered[name], name))
    return ranked[0] if ranked else (pooled.resource if pooled is not None else "")


def _names(view: RecordedView, seen: ClusterObservations) -> tuple[StackNames, list[str]]:
    pooled = Stack().pooled
    assert pooled is not None, "the default stack pools devices"
    names = StackNames(
        resource=pooled.resource,
        scheduler=pooled.scheduler,
        schedulers=frozenset({pooled.scheduler, "default-scheduler"}),
        recorded=view.resource,
    )
    notes = []
    if view.resource != pooled.resource:
        notes.append(f"the resource {view.resource} is {pooled.resource} in the replay")
    if view.is_made_up:
        notes.append("no chassis was recorded, so moves and faults of devices are not in the steps")
    elif not any(box.dated for box in view.chassis):
        notes.append("no listing of a chassis has a date, so moves of devices are not in the steps")
    if not seen.objects:
        notes.append("no objects of the cluster were recorded, so the steps have no pods")
    return names, notes


def _stack(seen: ClusterObservations) -> dict[str, Any]:
    """Systems whose kinds were seen run next to the default ones."""
    kinds = system_kinds()
    systems = sorted({kinds[each.key[0]] for each in seen.objects if each.key[0] in kinds})
    return {"stack": {name: {} for name in systems}} if systems else {}


def _images(view: RecordedView) -> dict[str, Any]:
    found = {image.name: image for pod in view.pods if (image := ended_image(pod)) is not None}
    images = {
        name: {"simulate": {"duration_s": each.duration_s, "exit_code": each.exit_code}} for name, each in found.items()
    }
    return {"images": images} if images else {}


def _namespaces(view: RecordedView) -> dict[str, Any]:
    names = sorted({pod.namespace for pod in view.pods} - {"default"})
    made = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
    return {"objects": made} if made else {}


def _steps(view: RecordedView, seen: ClusterObservations, names: StackNames) -> Iterable[RecordedStep]:
    known = known_owners(seen.objects)
    owners = owners_of(known, view.pods)
    moves = list(unasked_moves(view))
    disturbed = disturbed_hosts(view)
    yield from chassis_faults(view, seen.operations)
    readings: dict[str, list[float]] = {}
    for reading in seen.readings:
        if reading.at is not None:
            readings.setdefault(reading.chassis, []).append(reading.at)
    yield from silences(seen.lost, readings)
    yield from owner_steps(view, owners, names)
    yield from moves
    yield from node_troubles(view)
    yield from host_faults(view, seen.troubles)
    for pod in view.pods:
        if top_owner(pod, known) is None:
            yield from _pod_steps(view, pod, names, disturbed)


def _pod_steps(view: RecordedView, pod: PodHistory, names: StackNames, disturbed: set[str]) -> Iterable[RecordedStep]:
    earlier = pod.created < view.began
    if earlier and not pod.holds_at(view.began) and pod.phase != "Pending":
        return  # it had ended before anybody looked
    early = pod.bound is not None and pod.bound <= view.began
    made, notes = replayed_pod(pod, names, pinned=early or pod.node in disturbed)
    if pod.owner is not None:
        notes.append(f"made by {pod.owner[0]} {pod.owner[1]}, which was not recorded")
    yield RecordedStep(max(pod.created, view.began), {"apply": made}, tuple(notes))
    if pod.deleted is not None and pod.deleted > view.began:
        target = {"kind": "Pod", "name": pod.name, "namespace": pod.namespace}
        yield RecordedStep(pod.deleted, {"delete": {**target, "wait": False, "missingOk": True}})


def _timed(
    view: RecordedView, names: StackNames, steps: Sequence[RecordedStep]
) -> tuple[list[dict[str, Any]], Comments]:
    written: list[dict[str, Any]] = [{"wait": {"settled": {}}, "timeout": _PATIENCE_S}]
    comments: Comments = {}
    running = [_running(pod) for pod in view.pods if _runs_before(view, pod)]
    last, at_start = view.began, True

    def add(step: Mapping[str, Any], why: Iterable[str] = ()) -> None:
        if tuple(why):
            comments["steps", len(written)] = list(why)
        written.append(dict(step))

    for each in steps:
        if at_start and each.at > view.began:
            at_start = False
            if running:
                add({"name": "pods from before the recording run", "wait": running, "timeout": _PATIENCE_S})
        pause = round(each.at - last, 2)
        if pause > 0:
            add({"sleep": pause})
            last = each.at
        add(each.step, each.why)
    if at_start and running:
        add({"name": "pods from before the recording run", "wait": running, "timeout": _PATIENCE_S})
    if view.ended - last > 0.01:
        add({"sleep": round(view.ended - last, 2)})
    return written, comments


def _runs_before(view: RecordedView, pod: PodHistory) -> bool:
    return pod.owner is None and pod.started is not None and pod.started <= view.began and pod.holds_at(view.began)


def _running(pod: PodHistory) -> dict[str, Any]:
    return {"pod": {"name": pod.name, "namespace": pod.namespace, "phase": "Running"}}
