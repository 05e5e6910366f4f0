"""Sensors that look alive: readings follow from what is attached and from the time, never from chance."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from mews.emulator.chassis.table import DeviceRow
from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.resources.inventory import profile_of
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, collection, links, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.uris import ref

FANS, SUPPLIES = 4, 2
IDLE_W, IDLE_C = 25.0, 33.0
CHASSIS_W, INLET_C = 180.0, 24.0


@dataclass(frozen=True, slots=True)
class Reading:
    """One sensor's value now."""

    name: str
    type: str
    units: str
    value: float
    context: str
    about: str


def wave(name: str, now_s: float, span: float) -> float:
    """A slow swing, for each name its own: up to ``span`` up and down within a minute or two."""
    seed = zlib.crc32(name.encode())
    period_s = 60.0 + seed % 60
    return span * math.sin(2 * math.pi * (now_s / period_s + (seed % 997) / 997))


def watts(view: RedfishView, row: DeviceRow) -> float:
    """What a GPU draws: idle where it is attached, next to nothing where it is not."""
    profile = profile_of(view, row.device)
    idle = profile.idle_power_mw / 1000 if profile else IDLE_W
    return idle + wave(f"{row.device}W", view.now_s, 2.0) if row.link and row.port else 3.0


def celsius(view: RedfishView, row: DeviceRow) -> float:
    """How warm it is."""
    profile = profile_of(view, row.device)
    idle = float(profile.idle_temperature_c) if profile else IDLE_C
    return idle + wave(f"{row.device}C", view.now_s, 1.5) if row.link and row.port else INLET_C + 2.0


def total_watts(view: RedfishView) -> float:
    """The whole chassis."""
    return CHASSIS_W + sum(watts(view, row) for row in view.rows)


def inlet(view: RedfishView) -> float:
    """The air that comes in."""
    return INLET_C + wave("Inlet", view.now_s, 0.5)


def readings(view: RedfishView) -> Iterator[Reading]:
    """All sensors of the chassis."""
    home = uris.chassis(view.name)
    yield Reading("Inlet", "Temperature", "Cel", inlet(view), "Intake", home)
    yield Reading("TotalPower", "Power", "W", total_watts(view), "Chassis", home)
    for fan in range(1, FANS + 1):
        rpm = 4200 + wave(f"Fan{fan}", view.now_s, 60.0)
        yield Reading(f"Fan{fan}", "Rotational", "{rev}/min", rpm, "Fan", f"{home}/ThermalSubsystem/Fans/{fan}")
    for row in view.rows:
        device = view.device_uri(row.device)
        yield Reading(f"{row.device}Temp", "Temperature", "Cel", celsius(view, row), "GPU", device)
        yield Reading(f"{row.device}Power", "Power", "W", watts(view, row), "GPU", device)


def uri_of(view: RedfishView, name: str) -> str:
    """Where a sensor is."""
    return f"{uris.chassis(view.name)}/Sensors/{name}"


def sensors(view: RedfishView, name: str) -> Body | None:
    """All sensors."""
    if name != view.name:
        return None
    found = [uri_of(view, reading.name) for reading in readings(view)]
    return collection("Sensor", f"{uris.chassis(name)}/Sensors", "Sensors", found)


def sensor(view: RedfishView, name: str, which: str) -> Body | None:
    """One sensor."""
    reading = next((each for each in readings(view) if each.name == which), None)
    if name != view.name or reading is None:
        return None
    return resource(
        "Sensor",
        uri_of(view, which),
        f"{reading.type} {which}",
        ReadingType=reading.type,
        Reading=round(reading.value, 2),
        ReadingUnits=reading.units,
        PhysicalContext=reading.context,
        Status=dict(OK),
        **links([reading.about], "RelatedItem"),
    )


def _excerpt(view: RedfishView, name: str, value: float) -> Body:
    return {"DataSourceUri": uri_of(view, name), "Reading": round(value, 2)}


def environment(view: RedfishView, name: str) -> Body | None:
    """The chassis' environment."""
    if name != view.name:
        return None
    return resource(
        "EnvironmentMetrics",
        f"{uris.chassis(name)}/EnvironmentMetrics",
        "Environment of the chassis",
        TemperatureCelsius=_excerpt(view, "Inlet", inlet(view)),
        PowerWatts=_excerpt(view, "TotalPower", total_watts(view)),
    )


def device_environment(view: RedfishView, name: str, device: str) -> Body | None:
    """A GPU's environment."""
    row = view.row(device)
    if name != view.name or row is None:
        return None
    return resource(
        "EnvironmentMetrics",
        f"{view.device_uri(device)}/EnvironmentMetrics",
        f"Environment of {device}",
        TemperatureCelsius=_excerpt(view, f"{device}Temp", celsius(view, row)),
        PowerWatts=_excerpt(view, f"{device}Power", watts(view, row)),
    )


def thermal(view: RedfishView, name: str) -> Body | None:
    """The fans' subsystem."""
    uri = f"{uris.chassis(name)}/ThermalSubsystem"
    if name != view.name:
        return None
    return resource("ThermalSubsystem", uri, "Cooling", Fans=ref(f"{uri}/Fans"), Status=dict(OK))


def fans(view: RedfishView, name: str) -> Body | None:
    """All fans."""
    uri = f"{uris.chassis(name)}/ThermalSubsystem/Fans"
    return collection("Fan", uri, "Fans", [f"{uri}/{fan}" for fan in range(1, FANS + 1)]) if name == view.name else None


def fan(view: RedfishView, name: str, number: str) -> Body | None:
    """One fan."""
    reading = next((each for each in readings(view) if each.name == f"Fan{number}"), None)
    if name != view.name or reading is None:
        return None
    speed = {"DataSourceUri": uri_of(view, reading.name), "SpeedRPM": round(reading.value)}
    return resource(
        "Fan",
        f"{uris.chassis(name)}/ThermalSubsystem/Fans/{number}",
        f"Fan {number}",
        PhysicalContext="Chassis",
        HotPluggable=True,
        SpeedPercent={**speed, "Reading": round(reading.value / 120, 1)},
        Status=dict(OK),
    )


def power(view: RedfishView, name: str) -> Body | None:
    """The power supplies' subsystem."""
    uri = f"{uris.chassis(name)}/PowerSubsystem"
    if name != view.name:
        return None
    return resource(
        "PowerSubsystem",
        uri,
        "Power",
        CapacityWatts=SUPPLIES * 2000.0,
        PowerSupplies=ref(f"{uri}/PowerSupplies"),
        Status=dict(OK),
    )


def supplies(view: RedfishView, name: str) -> Body | None:
    """All power supplies."""
    uri = f"{uris.chassis(name)}/PowerSubsystem/PowerSupplies"
    if name != view.name:
        return None
    return collection("PowerSupply", uri, "Power supplies", [f"{uri}/{each}" for each in range(1, SUPPLIES + 1)])


def supply(view: RedfishView, name: str, number: str) -> Body | None:
    """One power supply."""
    if name != view.name or number not in [str(each) for each in range(1, SUPPLIES + 1)]:
        return None
    return resource(
        "PowerSupply",
        f"{uris.chassis(name)}/PowerSubsystem/PowerSupplies/{number}",
        f"Power supply {number}",
        PowerSupplyType="AC",
        PowerCapacityWatts=2000.0,
        Manufacturer="H3 Platform",
        Model="PSU-2000",
        SerialNumber=f"PS{view.box.spec.index:02d}{number}",
        HotPluggable=True,
        Status=dict(OK),
    )


PATH = f"{uris.CHASSIS}/{{chassis}}"
ROUTES = (
    RedfishRoute(f"{PATH}/Sensors", sensors),
    RedfishRoute(f"{PATH}/Sensors/{{sensor}}", sensor),
    RedfishRoute(f"{PATH}/EnvironmentMetrics", environment),
    RedfishRoute(f"{PATH}/PCIeDevices/{{device}}/EnvironmentMetrics", device_environment),
    RedfishRoute(f"{PATH}/ThermalSubsystem", thermal),
    RedfishRoute(f"{PATH}/ThermalSubsystem/Fans", fans),
    RedfishRoute(f"{PATH}/ThermalSubsystem/Fans/{{fan}}", fan),
    RedfishRoute(f"{PATH}/PowerSubsystem", power),
    RedfishRoute(f"{PATH}/PowerSubsystem/PowerSupplies", supplies),
    RedfishRoute(f"{PATH}/PowerSubsystem/PowerSupplies/{{supply}}", supply),
)
