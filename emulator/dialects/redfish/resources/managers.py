"""The management processor and its network protocols."""

from __future__ import annotations

from typing import Any

from mews.emulator.dialects.redfish import patching, uris
from mews.emulator.dialects.redfish.accounts import MANAGER
from mews.emulator.dialects.redfish.resources.certificates import CERTIFICATES
from mews.emulator.dialects.redfish.resources.resets import allowable, reset_type
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, RedfishWrite, collection, links, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.tasks import Done
from mews.emulator.dialects.redfish.uris import ref

RESETS = ("ForceRestart", "GracefulRestart")
URI = f"{uris.ROOT}/Managers"
PROTOCOL = f"{uris.MANAGER}/NetworkProtocol"
FIRMWARE = f"{uris.UPDATE}/FirmwareInventory/BMC"


def managers(view: RedfishView) -> Body:
    """All managers: one."""
    return collection("Manager", URI, "Managers", [uris.MANAGER])


def manager(view: RedfishView) -> Body:
    """The management processor."""
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
        LogServices=ref(f"{uris.MANAGER}/LogServices"),
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
    call.view.box.reboot(call.state.settings.reboot_s)
    return Done()


def protocol(view: RedfishView) -> Body:
    """Which protocols it speaks."""
    tls = view.state.certificate is not None
    listens = view.state.settings.port
    port = {} if listens is None else {"Port": listens()}
    secure: dict[str, Any] = {"ProtocolEnabled": tls}
    if tls:
        secure |= {"Certificates": ref(CERTIFICATES), **port}
    return resource(
        "ManagerNetworkProtocol",
        PROTOCOL,
        "Network protocols",
        HostName=f"chassis-{view.box.spec.index}",
        FQDN=f"chassis-{view.box.spec.index}.local",
        HTTP={"ProtocolEnabled": not tls, **({} if tls else port)},
        HTTPS=secure,
        NTP={"ProtocolEnabled": False, "NTPServers": []},
        SSDP={"ProtocolEnabled": False},
        Status=dict(OK),
    )


PROTOCOL_RULES = {"NTP": {"ProtocolEnabled": patching.boolean, "NTPServers": patching.texts}}
ROUTES = (
    RedfishRoute(URI, managers),
    RedfishRoute(uris.MANAGER, manager, privilege=MANAGER, actions={"Manager.Reset": reset}),
    RedfishRoute(PROTOCOL, protocol, rules=PROTOCOL_RULES, privilege=MANAGER),
)
