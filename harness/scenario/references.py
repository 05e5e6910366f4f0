"""The names in a scenario's steps, checked when it is read: hosts, chassis, ports, devices, components, kinds, images
and quantities that cannot be there are refused before anything starts.

It goes through the file as written, since that is what has places and lines. What only a cluster can tell, such as the
pods that a controller makes, is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mews.emulator.chassis.faults.spec import check_names
from mews.emulator.hardware.gpu_profiles import profile_of
from mews.emulator.hardware.inventory import ChassisSpec
from mews.emulator.telemetry.settings import ALL
from mews.emulator.yaml_document import Place
from mews.harness.api_faults.rpcs import RPCS, PausedRpc
from mews.harness.ports.telemetry import check_values
from mews.harness.scenario.findings import Finding, each_of, keys_of, one_of, plain
from mews.harness.scenario.known import KnownNames
from mews.harness.scenario.language.names import is_late
from mews.harness.scenario.pattern_names import (
    board_row,
    chassis_events,
    journal_line,
    kubernetes_event,
    pod_words,
    seen_by_host,
    table_row,
)
from mews.kube.api.quantities import parse

Reader = Callable[[Place, Any, KnownNames], Iterator[Finding]]

OUR_IMAGES = "mews/"
"""Images of that namespace are in no registry: they are those of images.yaml, or a mistake."""

_IMAGE = re.compile(
    r"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[A-Za-z0-9]+:[0-9a-fA-F]{32,})?"
)


def is_image(text: str) -> bool:
    """Return whether a container engine takes that as the name of an image."""
    return _IMAGE.fullmatch(text) is not None


def dangling(known: KnownNames) -> Iterator[Finding]:
    """Yield everything in the scenario that names what cannot be there, in the order of the file."""
    document = known.document
    yield from _objects(("objects",), document.get("objects"), known)
    yield from of_steps(known)
    yield from _expects(known)
    workload = document.get("workload")
    if workload is not None:
        yield from _workload(("workload",), workload, known)


def of_steps(known: KnownNames) -> Iterator[Finding]:
    """Yield what the steps of the document name that cannot be there."""
    document = known.document
    seen: set[str] = set()
    for part in ("steps", "disruptions", "catch", "finally"):
        for index, step in enumerate(document.get(part) or ()):
            seen.add(str(step.get("name", "")))
            for action, value in step.items():
                if action in _ACTIONS and value is not None:
                    yield from _ACTIONS[action]((part, index, action), value, known)
            yield from _since((part, index), step, seen)
    named = [str(step["name"]) for step in document.get("steps") or () if step.get("name")]
    for index, step in enumerate(document.get("disruptions") or ()):
        yield from one_of(("disruptions", index, "since"), step.get("since"), named)


# What several steps have in common


def _kind(place: Place, value: Mapping[str, Any], known: KnownNames) -> Iterator[Finding]:
    kind, version = value.get("kind"), value.get("apiVersion") or value.get("api_version") or ""
    if isinstance(kind, str) and not is_late(kind):
        why = known.unserved(kind, str(version))
        if why is not None:
            yield (*place, "kind"), kind, f"{why} (apiVersion {version or 'not given'})"


def _host(place: Place, value: Mapping[str, Any], known: KnownNames) -> Iterator[Finding]:
    yield from one_of((*place, "host"), value.get("host"), known.hosts)


def _expects(known: KnownNames) -> Iterator[Finding]:
    scenario = known.scenario
    if not scenario.expects:
        return
    from mews.harness.invariant_registry import made
    from mews.harness.invariants.judge import OWN

    theirs = (law.number for each in known.systems for law in each.system.judging.invariants())
    numbers = sorted({*OWN, *theirs, *(law.number for law in made(scenario.invariants))})
    for index, number in enumerate(scenario.expects):
        if number not in numbers:
            yield ("expects", index), number, f"no such invariant; numbers: {', '.join(map(str, numbers))}"


# Objects


def _objects(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    for at, obj in each_of(place, value):
        if isinstance(obj, Mapping):
            yield from _kind(at, obj, known)
            yield from _inside(at, obj, known)


def _inside(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    """Images and amounts of resources, wherever an object has containers."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _inside((*place, index), item, known)
    if not isinstance(value, Mapping):
        return
    for key, item in value.items():
        at = (*place, key)
        if key in ("containers", "initContainers"):
            yield from _containers(at, item, known)
        else:
            yield from _inside(at, item, known)


def _containers(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    for at, container in each_of(place, value):
        if not isinstance(container, Mapping):
            continue
        yield from _image((*at, "image"), container.get("image"), known)
        resources = container.get("resources")
        for part in ("requests", "limits"):
            amounts = resources.get(part) if isinstance(resources, Mapping) else None
            yield from _quantities((*at, "resources", part), amounts)


def _quantities(place: Place, value: Any) -> Iterator[Finding]:
    for name, amount in plain(value).items():
        yield from _quantity((*place, name), amount)


def _quantity(place: Place, value: Any) -> Iterator[Finding]:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or is_late(value):
        return
    try:
        fine = parse(value) >= 0
    except ValueError:
        fine = False
    if not fine:
        yield place, value, "must be a quantity from 0 on, such as 2, 500m or 16Gi"


def _image(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    if not isinstance(value, str) or is_late(value):
        return
    if not is_image(value):
        yield place, value, "must be an image, such as busybox:1.36 or registry.example.com/team/app:2"
    elif value.startswith(OUR_IMAGES):
        from mews.kube.emulated.kubelet.images import load_images

        book = load_images(own=known.scenario.images)
        if book.find(value) is None:
            ours = ", ".join(name for name in book.names() if name.startswith(OUR_IMAGES))
            yield place, value, f"Mews has no such image; it has {ours}"


# Steps


def _target(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    yield from _kind(place, value, known)


def _component(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    if isinstance(value, Mapping):
        yield from one_of((*place, "component"), value.get("component"), known.components)
        yield from journal_line((*place, "at"), value.get("at"))
    else:
        yield from one_of(place, value, known.components)


def _chassis(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    edit, at = value.get("edit"), (*place, "edit")
    if edit is None:
        return
    name = edit.get("chassis")
    yield from one_of((*at, "chassis"), name, known.chassis)
    yield from _host(at, edit, known)
    if name in known.chassis:
        spec = known.chassis[name]
        yield from one_of((*at, "device"), edit.get("device"), [each.id for each in spec.devices])
        yield from one_of((*at, "port"), edit.get("port"), [port for port, host in spec.ports.items() if host])


def _rpcs(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    """RPCs are paused of components that have some."""
    spec, component = value.get("add"), value.get("component")
    if not isinstance(spec, Mapping) or spec.get("kind") != PausedRpc.kind or component not in known.clients:
        return
    yield from one_of((*place, "component"), component, known.answering)
    if component in known.answering and spec.get("operation") in RPCS:
        yield from one_of((*place, "add", "operation"), spec["operation"], known.answering[component])


def _fault(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    yield from one_of((*place, "clear"), value.get("clear"), ("all", *known.chassis, *known.hosts, *known.clients))
    yield from one_of((*place, "component"), value.get("component"), known.clients)
    yield from _rpcs(place, value, known)
    yield from one_of((*place, "chassis"), value.get("chassis"), ("*", *known.chassis))
    yield from _host(place, value, known)
    spec, host, name = value.get("add"), value.get("host"), value.get("chassis", "*")
    if spec is None or is_late(value) or "component" in value or (host is not None and host not in known.hosts):
        return  # of a host that is not there, which is found already, no device is
    if host is not None:
        yield from _fault_names((*place, "add"), spec, known.devices_at(host), None)
        return
    for chassis in known.chassis.values():
        if name in ("*", chassis.name):
            devices = [each.id for each in chassis.devices]
            yield from _fault_names((*place, "add"), spec, devices, list(chassis.ports))


def _fault_names(place: Place, spec: Any, devices: Iterable[str], ports: list[str] | None) -> Iterator[Finding]:
    try:
        check_names(spec, devices=list(devices), ports=ports)
    except ValueError as error:
        yield place, spec, str(error)


def _operate(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    yield from _host(place, value, known)
    host = value.get("host")
    if host in known.hosts:
        yield from one_of((*place, "device"), value.get("device"), known.devices_at(host))


def _telemetry(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    named = [(spec.gpuid(each.id), each.id, each.model) for spec in known.chassis.values() for each in spec.devices]
    names = [name for gpuid, device, _ in named for name in (gpuid, device)]
    yield from one_of((*place, "device"), value.get("device"), (ALL, *names))
    device, values = value.get("device", ALL), value.get("set")
    models = {model for gpuid, own, model in named if device in (ALL, gpuid, own)}
    for model in sorted(models) if isinstance(values, Mapping) and not is_late(value) else ():
        try:
            check_values(values, profile_of(model))
        except ValueError as error:
            yield (*place, "set"), values, str(error)
            return


def _hold(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    yield from _checks((*place, "check"), value.get("check"), known)


_ACTIONS: Mapping[str, Reader] = {
    "apply": _objects,
    "create": _objects,
    "delete": _target,
    "patch": _target,
    "get": _target,
    "wait": lambda place, value, known: _checks(place, value, known),
    "assert": lambda place, value, known: _checks(place, value, known),
    "hold": _hold,
    "chassis": _chassis,
    "fault": _fault,
    "host": _operate,
    "telemetry": _telemetry,
    "kill": _component,
    "start": _component,
    "restart": _component,
}


# Checks


def _checks(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    for at, check in each_of(place, value):
        for name, expected in check.items():
            if name in _CHECKS and expected is not None:
                yield from _CHECKS[name]((*at, name), expected, known)


def _pod(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    yield from pod_words(place, value, known.hosts)


def _node(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    yield from _host(place, value, known)
    for part in ("allocatable", "capacity"):
        yield from _quantities((*place, part), value.get(part))


def _table(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    for row_place, spec, row in _rows(place, value, known):
        yield from table_row(row_place, row)
        yield from one_of((*row_place, "host"), plain(row).get("host"), known.hosts)
        yield from one_of((*row_place, "port"), plain(row).get("port"), spec.ports)
    yield from _of_chassis(place, value, known)


def _boards(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    for row_place, _, row in _rows(place, value, known):
        yield from board_row(row_place, row)
    yield from _of_chassis(place, value, known)


def _of_chassis(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    for name, devices in plain(value).items():
        yield from one_of((*place, name), name, known.chassis)
        if name in known.chassis:
            yield from keys_of((*place, name), devices, [each.id for each in known.chassis[name].devices])


def _rows(place: Place, value: Any, known: KnownNames) -> Iterator[tuple[Place, ChassisSpec, Any]]:
    for name, devices in plain(value).items():
        for device, row in plain(devices).items() if name in known.chassis else ():
            yield (*place, name, device), known.chassis[name], row


def _seen_by_host(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    for host, seen in plain(value).items():
        yield from one_of((*place, host), host, known.hosts)
        yield from keys_of((*place, host, "devices"), plain(seen).get("devices"), known.gpuids)
        yield from seen_by_host((*place, host), seen)


def _event(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    yield from kubernetes_event(place, value, known)


def _operations(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    yield from chassis_events(place, value)


def _gpus(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    yield from _host(place, value, known)
    devices = value.get("devices")
    for operator in ("$exact", "$unordered", "$contains"):
        listed = devices.get(operator) if isinstance(devices, Mapping) else None
        for at, name in each_of((*place, "devices", operator), listed):
            yield from one_of(at, name, known.gpuids)


def _journal(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    for part in ("occurs", "never", "order"):
        for at, line in each_of((*place, part), value.get(part)):
            yield from journal_line(at, line)
    for at, count in each_of((*place, "count"), value.get("count")):
        yield from journal_line((*at, "of"), count.get("of"))


def _free_or_hosts(place: Place, value: Any, known: KnownNames) -> Iterator[Finding]:
    yield from keys_of(place, value, (*known.hosts, "free"))


_CHECKS: Mapping[str, Reader] = {
    "object": _target,
    "absent": _target,
    "count": _target,
    "pod": _pod,
    "node": _node,
    "table": _table,
    "telemetry": _boards,
    "operations": _operations,
    "event": _event,
    "hosts": _free_or_hosts,
    "host": _seen_by_host,
    "gpus": _gpus,
    "journal": _journal,
}


def _since(place: Place, step: Mapping[str, Any], names: set[str]) -> Iterator[Finding]:
    """A journal check counts from a step, which must have come by then."""
    hold = step.get("hold")
    for at, checks in (
        ((*place, "wait"), step.get("wait")),
        ((*place, "assert"), step.get("assert")),
        ((*place, "hold", "check"), hold.get("check") if isinstance(hold, Mapping) else None),
    ):
        for here, check in each_of(at, checks):
            journal = check.get("journal")
            since = journal.get("since") if isinstance(journal, Mapping) else None
            if since is not None and since not in names:
                come = ", ".join(sorted(filter(None, names))) or "(none has a name)"
                yield (*here, "journal", "since"), since, f"no step up to here has that name; earlier steps: {come}"


# The workload


def _workload(place: Place, value: Mapping[str, Any], known: KnownNames) -> Iterator[Finding]:
    types = value.get("types") or {}
    jobs = [((*place, "types", name), each) for name, each in types.items()]
    for at, job in (*jobs, *each_of((*place, "jobs"), value.get("jobs"))):
        for amount in ("cpus", "memory"):
            yield from _quantity((*at, amount), job.get(amount))
        if "types" in value and at[1] == "jobs":
            yield from one_of((*at, "type"), job.get("type"), types)
    yield from _image((*place, "pod", "image"), (value.get("pod") or {}).get("image"), known)
