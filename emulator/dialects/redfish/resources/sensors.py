"""Sensors of the chassis and its boards: every reading is that of the telemetry (``mews.emulator.telemetry``)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, collection, links, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.uris import ref
from mews.emulator.telemetry import enclosure
from mews.emulator.telemetry.enclosure import FANS, SUPPLIES, SUPPLY_W
from mews.emulator.telemetry.reading import GpuReading
from mews.emulator.telemetry.units import WATT_DIGITS


class Reading(Struct, frozen=True):
    """One sensor's value now."""

    name: str
    type: str
    units: str
    value: float
    context: str
    about: str


def gpu_reading(view: RedfishView, device: str) -> GpuReading:
    """A board's telemetry at the time of the look."""
    return view.box.telemetry.reading(device, view.now_s)


def total_watts(view: RedfishView) -> float:
    """The whole chassis."""
    return enclosure.chassis_w(sum(gpu_reading(view, row.device).power_mw for row in view.rows))


def readings(view: RedfishView) -> Iterator[Reading]:
    """All sensors of the chassis."""
    home = uris.chassis(view.name)
    yield Reading("Inlet", "Temperature", "Cel", enclosure.inlet_c(view.now_s), "Intake", home)
    yield Reading("TotalPower", "Power", "W", total_watts(view), "Chassis", home)
    for fan in range(1, FANS + 1):
        rpm, about = enclosure.fan_rpm(fan, view.now_s), f"{home}/ThermalSubsystem/Fans/{fan}"
        yield Reading(f"Fan{fan}", "Rotational", "{rev}/min", rpm, "Fan", about)
    for row in view.rows:
        yield from board_readings(view, row.device)


def board_readings(view: RedfishView, device: str) -> Iterator[Reading]:
    """The sensors of one board."""
    shown, about = gpu_reading(view, device), view.device_uri(device)
    yield Reading(f"{device}Temp", "Temperature", "Cel", shown.temperature_c, "GPU", about)
    yield Reading(f"{device}Power", "Power", "W", shown.power_mw / 1000, "GPU", about)
    yield Reading(f"{device}Energy", "EnergykWh", "kW.h", shown.energy_kwh, "GPU", about)


DIGITS = {"EnergykWh": 9, "Power": WATT_DIGITS}
"""Digits after the point, where two are too few."""


def shown_value(reading: Reading) -> float:
    """A sensor's value as every resource shows it."""
    return round(reading.value, DIGITS.get(reading.type, 2))


def uri_of(view: RedfishView, name: str) -> str:
    """Where a sensor is."""
    return f"{uris.chassis(view.name)}/Sensors/{name}"


def sensors(view: RedfishView, name: str) -> Body | None:
    """All sensors."""
    if name != view.name:
        return None
    found = [uri_of(view, reading.name) for reading in readings(view)]
    return collection("Sensor", f"{uris.chassis(name)}/Sensors", "Sensors", found)


def one_reading(view: RedfishView, which: str) -> Reading | None:
    """The sensor of that name. A board's are looked up alone: with thousands of boards the others cost more."""
    for suffix in ("Temp", "Power", "Energy"):
        device = which.removesuffix(suffix)
        if device != which and view.row(device) is not None:
            return next(each for each in board_readings(view, device) if each.name == which)
    return next((each for each in readings(view) if each.name == which), None)


def sensor(view: RedfishView, name: str, which: str) -> Body | None:
    """One sensor."""
    reading = one_reading(view, which)
    if name != view.name or reading is None:
        return None
    return resource(
        "Sensor",
        uri_of(view, which),
        f"{reading.type} {which}",
        ReadingType=reading.type,
        Reading=shown_value(reading),
        ReadingUnits=reading.units,
        PhysicalContext=reading.context,
        Status=dict(OK),
        **links([reading.about], "RelatedItem"),
    )


def _excerpt(view: RedfishView, reading: Reading) -> Body:
    return {"DataSourceUri": uri_of(view, reading.name), "Reading": shown_value(reading)}


def environment(view: RedfishView, name: str) -> Body | None:
    """The chassis' environment."""
    if name != view.name:
        return None
    sensors = {reading.name: reading for reading in readings(view)}
    return resource(
        "EnvironmentMetrics",
        f"{uris.chassis(name)}/EnvironmentMetrics",
        "Environment of the chassis",
        TemperatureCelsius=_excerpt(view, sensors["Inlet"]),
        PowerWatts=_excerpt(view, sensors["TotalPower"]),
    )


def device_environment(view: RedfishView, name: str, device: str) -> Body | None:
    """A GPU's environment."""
    if name != view.name or view.row(device) is None:
        return None
    return board_environment(view, device, f"{view.device_uri(device)}/EnvironmentMetrics")


def board_environment(view: RedfishView, device: str, uri: str) -> Body:
    """A board's environment, wherever it is shown."""
    temperature, power, energy = board_readings(view, device)
    return resource(
        "EnvironmentMetrics",
        uri,
        f"Environment of {device}",
        TemperatureCelsius=_excerpt(view, temperature),
        PowerWatts=_excerpt(view, power),
        EnergykWh=_excerpt(view, energy),
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
        SpeedPercent={**speed, "Reading": round(100 * reading.value / enclosure.FULL_RPM, 1)},
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
        CapacityWatts=SUPPLIES * SUPPLY_W,
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
        PowerCapacityWatts=SUPPLY_W,
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
