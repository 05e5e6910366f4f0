"""What the chassis' own events mean in Redfish's words, and which resources they change."""

from __future__ import annotations

from collections.abc import Mapping

from mews.emulator.chassis.events import ChassisEvent
from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.events import RedfishEvent
from mews.emulator.dialects.redfish.tasks import Task

FABRIC, RESOURCE, TASK = "Fabric.1.1", "ResourceEvent.1.4", "TaskEvent.1.0"

_NOTHING = "Nothing needs to be done."
EVENT_MESSAGES: Mapping[str, Mapping[str, tuple[str, str, str]]] = {
    "Fabric": {
        "DownstreamLinkDropped": ("Critical", "The link of port {1} of switch {0} is down.", "See to the device."),
        "DownstreamLinkEstablished": ("OK", "The link of port {1} of switch {0} is up.", _NOTHING),
        "ZoneModified": ("OK", "Zone {0} of fabric {1} has changed.", _NOTHING),
    },
    "ResourceEvent": {
        "ResourceChanged": ("OK", "Properties of a resource have changed.", _NOTHING),
        "ResourceCreated": ("OK", "A resource was created.", _NOTHING),
        "ResourceRemoved": ("OK", "A resource was removed.", _NOTHING),
        "ResourceStateChanged": ("OK", "The state of resource {0} is now {1}.", _NOTHING),
        "TestMessage": ("OK", "A test event.", _NOTHING),
    },
    "TaskEvent": {
        "TaskAborted": ("Warning", "Task {0} ended with a failure.", "See the task's messages."),
        "TaskCancelled": ("Warning", "Task {0} was cancelled.", _NOTHING),
        "TaskCompletedOK": ("OK", "Task {0} is done.", _NOTHING),
        "TaskStarted": ("OK", "Task {0} has begun.", _NOTHING),
    },
}
"""Registry -> message -> severity, wording, resolution; what an event says of the occasion is in its own text."""


def beginnings(ports: Mapping[str, str | None]) -> list[tuple[RedfishEvent, dict[str, str]]]:
    """Return what a log begins with, and what is known of it: the management processor is up, and these hosts are
    cabled."""
    changed = f"{RESOURCE}.ResourceStateChanged"
    text = "The management processor has started."
    up = RedfishEvent(changed, text, ("BMC", "Enabled"), "OK", uris.MANAGER, "Manager")
    found = [(up, {"event": "management-up"})]
    for port, host in ports.items():
        if host is not None:
            text = f"Host {host} is cabled to host port {port}."
            cabled = RedfishEvent(changed, text, (host, "Enabled"), "OK", uris.system(host), "ComputerSystem")
            found.append((cabled, {"event": "cabled", "host": host, "port": port}))
    return found


def cleared() -> RedfishEvent:
    """Return what is left in a log that was cleared."""
    return RedfishEvent(f"{RESOURCE}.ResourceChanged", "The log was cleared.", (), "OK", uris.LOG, "LogService")


def resolution(message_id: str) -> str:
    """Return what to do about an event, "" for a message of another registry."""
    registry, _, rest = message_id.partition(".")
    return EVENT_MESSAGES.get(registry, {}).get(rest.rpartition(".")[2], ("", "", ""))[2]


def happenings(event: ChassisEvent, slot: int | None) -> list[RedfishEvent]:
    """Return the messages that a chassis event is worth; ``slot`` is the device's."""
    fields = event.fields
    device = str(fields.get("device", ""))
    port = "" if slot is None else uris.downstream(slot)
    if event.event == "table-changed":
        return _moved(device, fields.get("old_port"), fields.get("new_port"), str(fields.get("cause", "")), port)
    if event.event in ("link-down", "link-up"):
        up = event.event == "link-up"
        name, severity = ("DownstreamLinkEstablished", "OK") if up else ("DownstreamLinkDropped", "Critical")
        text = f"The link of switch port {port} is {'up' if up else 'down'}."
        args = ("Switch1", port)
        return [RedfishEvent(f"{FABRIC}.{name}", text, args, severity, uris.switch_port(port), "Port")]
    if event.event in ("device-inserted", "device-removed"):
        new = event.event == "device-inserted"
        name = "ResourceCreated" if new else "ResourceRemoved"
        text = f"Device {device} was {'put into' if new else 'pulled out of'} the chassis."
        return [RedfishEvent(f"{RESOURCE}.{name}", text, (), "OK", uris.chassis(event.chassis), "PCIeDevice")]
    if event.event == "management-up":
        text = "The management processor is back."
        return [
            RedfishEvent(f"{RESOURCE}.ResourceStateChanged", text, ("BMC", "Enabled"), "OK", uris.MANAGER, "Manager")
        ]
    return []


def _moved(device: str, old: str | None, new: str | None, cause: str, port: str) -> list[RedfishEvent]:
    found = []
    for zone, word in ((old, "left"), (new, "joined")):
        if zone is not None:
            text = f"Device {device} {word} the zone of host port {zone} ({cause})."
            found.append(RedfishEvent(f"{FABRIC}.ZoneModified", text, (zone, "PCIe"), "OK", uris.zone(zone), "Zone"))
    if port:
        name, text = ("DownstreamLinkEstablished", "up") if new is not None else ("DownstreamLinkDropped", "down")
        shown = f"The link of switch port {port} is {text}."
        found.append(
            RedfishEvent(f"{FABRIC}.{name}", shown, ("Switch1", port), "OK", uris.switch_port(port), "Port"),
        )
    return found


def of_task(name: str, task: Task) -> RedfishEvent:
    """Return a task that started or ended."""
    severity = "Warning" if name in ("TaskAborted", "TaskCancelled") else "OK"
    text = f"Task {task.id} ({task.started.name}): {task.state}."
    return RedfishEvent(f"{TASK}.{name}", text, (task.id,), severity, f"{uris.TASKS}/{task.id}", "Task")


def touched(event: ChassisEvent, hosts: dict[str, str | None]) -> list[str]:
    """Return the resources whose tags a chassis event must change, also where they soon look as they did before."""
    fields = event.fields
    device = fields.get("device")
    if event.event not in ("table-changed", "uuid-changed", "link-up", "link-down") or device is None:
        return []
    paths = [uris.endpoint(device), uris.block(device), f"{uris.chassis(event.chassis)}/PCIeDevices/{device}"]
    for port in (fields.get("old_port"), fields.get("new_port")):
        if port is not None:
            paths.append(uris.zone(port))
            host = hosts.get(port)
            paths += [uris.system(host), uris.block(host)] if host else []
    return paths
