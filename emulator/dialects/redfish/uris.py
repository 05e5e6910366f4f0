"""Where everything is. One service per chassis, so the IDs within it are few."""

from __future__ import annotations

ROOT = "/redfish/v1"
OPENAPI = f"{ROOT}/openapi.yaml"
FABRIC = f"{ROOT}/Fabrics/PCIe"
SWITCH = f"{FABRIC}/Switches/Switch1"
MANAGER = f"{ROOT}/Managers/BMC"
LOG = f"{MANAGER}/LogServices/Table"
TASKS = f"{ROOT}/TaskService/Tasks"
MONITORS = f"{ROOT}/TaskService/TaskMonitors"
SESSIONS = f"{ROOT}/SessionService/Sessions"
ACCOUNTS = f"{ROOT}/AccountService/Accounts"
ROLES = f"{ROOT}/AccountService/Roles"
SUBSCRIPTIONS = f"{ROOT}/EventService/Subscriptions"
SSE = f"{ROOT}/EventService/SSE"
BLOCKS = f"{ROOT}/CompositionService/ResourceBlocks"
SYSTEMS = f"{ROOT}/Systems"
CHASSIS = f"{ROOT}/Chassis"
TELEMETRY = f"{ROOT}/TelemetryService"
UPDATE = f"{ROOT}/UpdateService"


def ref(uri: str) -> dict[str, str]:
    """Return a reference to a resource."""
    return {"@odata.id": uri}


def zone(port: str) -> str:
    """Return the zone of a host port."""
    return f"{FABRIC}/Zones/{port}"


def endpoint(name: str) -> str:
    """Return an endpoint: a device's ID, or ``host_endpoint``."""
    return f"{FABRIC}/Endpoints/{name}"


def host_endpoint(port: str) -> str:
    """Return the name of a host port's endpoint, as H3's dialect has it: ``hostport2_H1``."""
    return f"hostport{port}_H1"


def upstream(port: str) -> str:
    """Return the name of a host port's switch port."""
    return f"Host{port}"


def downstream(slot: int) -> str:
    """Return the name of a slot's switch port."""
    return f"Slot{slot}"


def switch_port(name: str) -> str:
    """Return a port of the switch."""
    return f"{SWITCH}/Ports/{name}"


def chassis(name: str) -> str:
    """Return the enclosure."""
    return f"{CHASSIS}/{name}"


def baseboard(name: str) -> str:
    """Return the board in the enclosure that carries switch and slots."""
    return f"{CHASSIS}/{name}-Baseboard"


def block(name: str) -> str:
    """Return a resource block."""
    return f"{BLOCKS}/{name}"


def system(name: str) -> str:
    """Return a computer system."""
    return f"{SYSTEMS}/{name}"


def tail(uri: str) -> str:
    """Return the last segment."""
    return uri.rstrip("/").rpartition("/")[2]
