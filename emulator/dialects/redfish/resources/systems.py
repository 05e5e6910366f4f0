"""Computer systems: one per host that is cabled, with the GPUs that it has; and systems composed of blocks."""

from __future__ import annotations

import re
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

from mews.emulator.chassis.table import DeviceRow
from mews.emulator.dialects.redfish import patching, uris
from mews.emulator.dialects.redfish.messages import fail
from mews.emulator.dialects.redfish.resources.chassis import processor_body
from mews.emulator.dialects.redfish.resources.edits import attach, detach, free
from mews.emulator.dialects.redfish.resources.power import RESET, power_body, reset, reset_action, set_boot
from mews.emulator.dialects.redfish.resources.power import RULES as BOOT_RULES
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, RedfishWrite, collection, links, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.tasks import Done, Started
from mews.emulator.dialects.redfish.uris import ref

ADD, REMOVE = "ComputerSystem.AddResourceBlock", "ComputerSystem.RemoveResourceBlock"
CPU = "CPU"
"""What a host's own processors are called, numbered from 0."""
NAME = re.compile(r"[A-Za-z0-9][-A-Za-z0-9._]{0,63}")


def systems(view: RedfishView) -> Body:
    """Return the hosts, then what was composed."""
    names = [*view.hosts(), *view.state.composed]
    return collection("ComputerSystem", uris.SYSTEMS, "Systems", [uris.system(name) for name in names])


def host_of(view: RedfishView, name: str) -> str | None:
    """Return the host behind a system; None if there is no such system."""
    host = view.state.composed.get(name, name)
    return host if host in view.hosts() else None


def blocks_of(view: RedfishView, host: str) -> list[str]:
    """Return the URIs of the blocks that a host has: its own and its devices'."""
    return [uris.block(host), *(uris.block(row.device) for row in view.of_host(host))]


def system(view: RedfishView, name: str) -> Body | None:
    """Return a host, or a system composed of one and of GPUs."""
    host = host_of(view, name)
    if host is None:
        return None
    uri, composed = uris.system(name), name in view.state.composed
    spec, rows = view.ports[view.hosts()[host]], view.of_host(host)
    actions = {f"#{each}": {"target": f"{uri}/Actions/{each}"} for each in (ADD, REMOVE)}
    actions |= reset_action(uri)
    return resource(
        "ComputerSystem",
        uri,
        f"Composed of {spec}" if composed else f"Host {spec}",
        SystemType="Composed" if composed else "Physical",
        HostName=host,
        UUID=str(uuid5(NAMESPACE_DNS, name)),
        AssetTag="",
        **power_body(view, host),
        Status=dict(OK),
        Processors=ref(f"{uri}/Processors"),
        Memory=ref(f"{uri}/Memory"),
        LogServices=ref(f"{uri}/LogServices"),
        PCIeDevices=[ref(view.device_uri(row.device)) for row in rows],
        **{"PCIeDevices@odata.count": len(rows)},
        Links={
            **links(blocks_of(view, host), "ResourceBlocks"),
            **links([uris.chassis(view.name)], "Chassis"),
            **links([uris.MANAGER], "ManagedBy"),
            **links([uris.endpoint(uris.host_endpoint(view.hosts()[host]))], "Endpoints"),
        },
        Actions=actions,
    )


def patch_system(call: RedfishWrite) -> Done:
    """Return its tag, and from what its host starts."""
    changes = dict(call.body)
    if "Boot" in changes:
        set_boot(call, _host(call))
        del changes["Boot"]
    if changes:
        call.state.overlays[call.uri] = patching.merge(call.state.overlays.get(call.uri, {}), changes)
    return Done()


def reset_system(call: RedfishWrite) -> Done:
    """``#ComputerSystem.Reset``."""
    return reset(call, _host(call))


def processors(view: RedfishView, name: str) -> Body | None:
    """Return the sockets of a system's host, and its GPUs."""
    host = host_of(view, name)
    if host is None:
        return None
    uri = f"{uris.system(name)}/Processors"
    names = [f"{CPU}{number}" for number in range(view.host(host).numa_nodes)]
    names += [row.device for row in view.of_host(host)]
    return collection("Processor", uri, "Processors", [f"{uri}/{each}" for each in names])


def processor(view: RedfishView, name: str, device: str) -> Body | None:
    """Return a GPU of a system."""
    host, row = host_of(view, name), view.row(device)
    if host is None or row is None or row not in view.of_host(host):
        return None
    return processor_body(view, row, f"{uris.system(name)}/Processors/{device}")


# Composition


def compose(call: RedfishWrite) -> Started | Done:
    """Specific composition: one host's block and any number of free GPUs' become a system.

    Raises RedfishError: 400 for blocks that do not fit together, 404 for unknown ones, 409 for one that is taken.
    """
    host, rows = _blocks(call)
    if host is None:
        raise fail(400, "PropertyValueConflict", "Links/ResourceBlocks", "a composition, which needs a host's block")
    if host in call.state.composed.values():
        raise fail(409, "ResourceInUse")
    name = call.body.get("Name", f"{host}-composed")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise fail(400, "PropertyValueFormatError", str(name)[:100], "Name", about=("#/Name",))
    if call.read(uris.system(name)) is not None:
        raise fail(400, "ResourceAlreadyExists", "ComputerSystem", "Name", name, about=("#/Name",))
    for row in rows:
        free(call, row)
    port, state, uri = call.view.hosts()[host], call.state, uris.system(name)
    begun = tuple(attach(call, row.device, port) for row in rows)

    def composed() -> Done:
        state.composed[name] = host
        state.touch(uri)
        look = RedfishView(state, state.box.rows(state.box.now_s), state.box.now_s)
        return Done(201, system(look, name), {"Location": uri})

    return Started(f"Compose {name}", begun, composed, uri) if begun else composed()


def _blocks(call: RedfishWrite) -> tuple[str | None, list[DeviceRow]]:
    """Return the host and the devices of the blocks that a body links to."""
    for name in call.body:
        if name not in ("Name", "Links", "Description"):
            raise fail(400, "PropertyUnknown", name, about=(f"#/{name}",))
    inner = call.body.get("Links")
    asked = inner.get("ResourceBlocks") if isinstance(inner, dict) else None
    if asked is None:
        raise fail(400, "CreateFailedMissingReqProperties", "Links/ResourceBlocks")
    if patching.links("@odata.id")(asked) is not None:
        raise fail(400, "PropertyValueTypeError", str(asked)[:100], "Links/ResourceBlocks")
    return _sorted(call, [each["@odata.id"] for each in asked])


def _sorted(call: RedfishWrite, asked: list[str]) -> tuple[str | None, list[DeviceRow]]:
    hosts, rows = [], []
    for uri in asked:
        name = uris.tail(uri)
        row = call.view.row(name)
        if uri != uris.block(name) or (row is None and name not in call.view.hosts()):
            raise fail(404, "ResourceNotFound", "ResourceBlock", name[:100])
        if row is None:
            hosts.append(name)
        else:
            rows.append(row)
    if len(hosts) > 1 or len(set(asked)) != len(asked):
        raise fail(400, "PropertyValueConflict", "Links/ResourceBlocks", "itself")
    return (hosts[0] if hosts else None), rows


def decompose(call: RedfishWrite) -> Started | Done:
    """Take a composed system apart: its GPUs are detached, the host stays.

    Raises RedfishError: 405 for a host, which cannot be deleted.
    """
    name, state = call.args[0], call.state
    if name not in state.composed:
        raise fail(405, "ResourceCannotBeDeleted")
    host = state.composed[name]
    begun = tuple(detach(call, row.device) for row in call.view.of_host(host))

    def gone() -> Done:
        state.composed.pop(name, None)
        return Done()

    return Started(f"Decompose {name}", begun, gone, call.uri) if begun else gone()


def add_block(call: RedfishWrite) -> Started:
    """``#ComputerSystem.AddResourceBlock``: attach a free GPU to the host; a taken one is refused with 409."""
    row, host = _asked(call, ADD), _host(call)
    free(call, row)
    operation = attach(call, row.device, call.view.hosts()[host])
    return Started(f"Add {row.device} to {call.args[0]}", (operation,), Done, call.uri)


def remove_block(call: RedfishWrite) -> Started:
    """``#ComputerSystem.RemoveResourceBlock``: detach a GPU of the host."""
    row, host = _asked(call, REMOVE), _host(call)
    if row not in call.view.of_host(host):
        raise fail(400, "ActionParameterValueConflict", "ResourceBlock", row.device, f"system {call.args[0]}")
    return Started(f"Remove {row.device} from {call.args[0]}", (detach(call, row.device),), Done, call.uri)


def _host(call: RedfishWrite) -> str:
    host = host_of(call.view, call.args[0])
    assert host is not None
    return host


def _asked(call: RedfishWrite, action: str) -> DeviceRow:
    link: Any = call.body.get("ResourceBlock")
    if link is None:
        raise fail(400, "ActionParameterMissing", action, "ResourceBlock")
    if not isinstance(link, dict) or not isinstance(link.get("@odata.id"), str):
        raise fail(400, "ActionParameterValueTypeError", str(link)[:100], "ResourceBlock", action)
    host, rows = _sorted(call, [link["@odata.id"]])
    if host is not None:
        raise fail(400, "ActionParameterValueConflict", "ResourceBlock", host, "a system, which has its own host")
    return rows[0]


RULES = {"AssetTag": patching.text, **BOOT_RULES}
PATH = f"{uris.SYSTEMS}/{{system}}"
ROUTES = (
    RedfishRoute(uris.SYSTEMS, systems, post=compose),
    RedfishRoute(
        PATH,
        system,
        rules=RULES,
        patch=patch_system,
        delete=decompose,
        actions={ADD: add_block, REMOVE: remove_block, RESET: reset_system},
    ),
    RedfishRoute(f"{PATH}/Processors", processors),
)
