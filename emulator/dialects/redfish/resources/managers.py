"""The management processor and its network protocols."""

from __future__ import annotations

from ipaddress import IPv4Interface
from itertools import zip_longest
from typing import Any

from mews.emulator.dialects.redfish import patching, uris
from mews.emulator.dialects.redfish.accounts import MANAGER
from mews.emulator.dialects.redfish.messages import fail
from mews.emulator.dialects.redfish.resources.certificates import CERTIFICATES
from mews.emulator.dialects.redfish.resources.resets import allowable, reset_type
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, RedfishWrite, collection, links, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.tasks import Done
from mews.emulator.dialects.redfish.uris import ref

RESETS = ("ForceRestart", "GracefulRestart")
URI = f"{uris.ROOT}/Managers"
PROTOCOL = f"{uris.MANAGER}/NetworkProtocol"
ETHERNET = f"{uris.MANAGER}/EthernetInterfaces"
PORT = "eth0"
FIRMWARE = f"{uris.UPDATE}/FirmwareInventory/BMC"
HTTP_PORT, NTP_PORT, SSDP_PORT = 80, 123, 1900
"""Where those protocols would be spoken that are not (IANA)."""


def managers(view: RedfishView) -> Body:
    """Return all managers: one."""
    return collection("Manager", URI, "Managers", [uris.MANAGER])


def manager(view: RedfishView) -> Body:
    """Return the management processor."""
    return resource(
        "Manager",
        uris.MANAGER,
        "Management processor",
        ManagerType="EnclosureManager",
        Manufacturer="H3 Platform",
        Model="Falcon (emulated)",
        FirmwareVersion="1.0.0",
        DateTime=view.stamp(),
        DateTimeLocalOffset="+00:00",
        ServiceEntryPointUUID=view.state.uuid,
        UUID=view.state.uuid,
        PowerState="On",
        Status=dict(OK),
        Description="The management processor of the chassis",
        LogServices=ref(f"{uris.MANAGER}/LogServices"),
        EthernetInterfaces=ref(ETHERNET),
        NetworkProtocol=ref(PROTOCOL),
        Links={
            **links([uris.chassis(view.name)], "ManagerForChassis"),
            **links([uris.SWITCH], "ManagerForSwitches"),
            **links([uris.system(host) for host in view.hosts()], "ManagerForServers"),
            "ManagerInChassis": ref(uris.chassis(view.name)),
            "ActiveSoftwareImage": ref(FIRMWARE),
        },
        Actions={"#Manager.Reset": allowable(f"{uris.MANAGER}/Actions/Manager.Reset", RESETS)},
    )


def reset(call: RedfishWrite) -> Done:
    """Restart: connections drop for a while, what runs is lost, the table is kept."""
    reset_type(call, "Manager.Reset", RESETS)
    call.view.box.management.reboot(call.state.settings.reboot_s)
    return Done()


def protocol(view: RedfishView) -> Body:
    """Return which protocols it speaks."""
    tls = view.state.certificate is not None
    listens, found = view.state.settings.port, view.state.settings.discovery
    port = {} if listens is None else {"Port": listens()}
    secure: dict[str, Any] = {"ProtocolEnabled": tls}
    plain: dict[str, Any] = {"ProtocolEnabled": not tls, **({"Port": HTTP_PORT} if tls else port)}
    if tls:
        secure |= {"Certificates": ref(CERTIFICATES), **port}
    return resource(
        "ManagerNetworkProtocol",
        PROTOCOL,
        "Network protocols",
        **_names(view),
        HTTP=plain,
        HTTPS=secure,
        NTP={"ProtocolEnabled": False, "Port": NTP_PORT, "NTPServers": []},
        SSDP={
            "ProtocolEnabled": found is not None and found.is_enabled,
            "Port": SSDP_PORT,
            "NotifyMulticastIntervalSeconds": 0,
            "NotifyTTL": 2,
            "NotifyIPv6Scope": "Link",
        },
        Status=dict(OK),
    )


def _names(view: RedfishView) -> Body:
    name = f"chassis-{view.box.spec.index}"
    given = view.state.overlays.get(f"{ETHERNET}/{PORT}", {})
    return {"HostName": given.get("HostName", name), "FQDN": given.get("FQDN", f"{name}.local")}


def interfaces(view: RedfishView) -> Body:
    """Return the management processor's network interfaces: one."""
    return collection("EthernetInterface", ETHERNET, "Network interfaces", [f"{ETHERNET}/{PORT}"])


def interface(view: RedfishView, name: str) -> Body | None:
    """Return the interface that the service is reached by. Its MAC address is a locally administered one of the
    chassis' own; its addresses are the machine's: a PATCH may repeat them and cannot change them."""
    if name != PORT:
        return None
    digits = view.state.uuid.replace("-", "")[:10]
    addresses = _addresses(view.state.settings.address)
    servers = view.state.overlays.get(f"{ETHERNET}/{PORT}", {}).get("NameServers", [])
    mac = ":".join(["02", *(digits[place : place + 2] for place in range(0, 10, 2))])
    return resource(
        "EthernetInterface",
        f"{ETHERNET}/{PORT}",
        f"Network interface {PORT}",
        InterfaceEnabled=True,
        LinkStatus="LinkUp",
        FullDuplex=True,
        SpeedMbps=1000,
        MTUSize=1500,
        MACAddress=mac,
        PermanentMACAddress=mac,
        **_names(view),
        DHCPv4={"DHCPEnabled": False},
        NameServers=servers,
        StaticNameServers=servers,
        IPv4Addresses=addresses,
        IPv4StaticAddresses=addresses,
        IPv6Addresses=[],
        Status=dict(OK),
        Links={"Chassis": ref(uris.chassis(view.name))},
    )


def _addresses(address: str) -> list[Body]:
    """At which it listens, if it is one IPv4 address rather than all of a machine's."""
    try:
        found = IPv4Interface(f"{address}/{8 if address.startswith('127.') else 24}")
    except ValueError:
        return []
    if found.ip.is_unspecified:
        return []
    shown = {"Address": str(found.ip), "SubnetMask": str(found.netmask), "AddressOrigin": "Static", "Gateway": None}
    return [shown]


def patch_interface(call: RedfishWrite) -> Done:
    """Names and name servers.

    Raises RedfishError: 400 for other addresses than those that the machine has.
    """
    changes = dict(call.body)
    for place in ("IPv4Addresses", "IPv4StaticAddresses"):
        asked = changes.pop(place, call.shown[place])
        nothing: Body = {}
        pairs = zip_longest(asked, call.shown[place], fillvalue=nothing)
        if any(each[name] != have.get(name) for each, have in pairs for name in each):
            raise fail(400, "PropertyNotWritable", place, about=(f"#/{place}",))
    if "StaticNameServers" in changes:
        changes["NameServers"] = changes["StaticNameServers"]
    if "NameServers" in changes:
        changes["StaticNameServers"] = changes["NameServers"]
    call.state.overlays[call.uri] = patching.merge(call.state.overlays.get(call.uri, {}), changes)
    return Done()


def _objects(value: Any) -> str | None:
    is_list = isinstance(value, list) and all(isinstance(each, dict) for each in value)
    return None if is_list else patching.TYPE


ETHERNET_RULES = {
    "HostName": patching.text,
    "FQDN": patching.text,
    "NameServers": patching.texts,
    "StaticNameServers": patching.texts,
    "IPv4Addresses": _objects,
    "IPv4StaticAddresses": _objects,
}


def _protocol_rules(view: RedfishView) -> patching.Rules:
    """NTP is only noted. Discovery can be switched where somebody answers for the service (``mews serve --ssdp``)."""
    rules: dict[str, patching.Rules] = {"NTP": {"ProtocolEnabled": patching.boolean, "NTPServers": patching.texts}}
    return rules if view.state.settings.discovery is None else {**rules, "SSDP": {"ProtocolEnabled": patching.boolean}}


def patch_protocol(call: RedfishWrite) -> Done:
    """Switch protocols."""
    changes, found = dict(call.body), call.state.settings.discovery
    asked = changes.pop("SSDP", {})
    if found is not None:
        found.is_enabled = asked.get("ProtocolEnabled", found.is_enabled)
    call.state.overlays[call.uri] = patching.merge(call.state.overlays.get(call.uri, {}), changes)
    return Done()


ROUTES = (
    RedfishRoute(URI, managers),
    RedfishRoute(uris.MANAGER, manager, privilege=MANAGER, actions={"Manager.Reset": reset}),
    RedfishRoute(ETHERNET, interfaces),
    RedfishRoute(
        f"{ETHERNET}/{{interface}}", interface, rules=ETHERNET_RULES, patch=patch_interface, privilege=MANAGER
    ),
    RedfishRoute(PROTOCOL, protocol, rules=_protocol_rules, patch=patch_protocol, privilege=MANAGER),
)
