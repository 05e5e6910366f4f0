"""Sensors of the chassis and its boards: every reading is that of the telemetry (``mews.emulator.telemetry``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.resources.inventory import profile_of
from mews.emulator.dialects.redfish.route import Body, RedfishRoute, collection, links, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.telemetry import enclosure
from mews.emulator.telemetry.enclosure import FAN_RPM, FANS, INLET_C
from mews.emulator.telemetry.reading import GpuReading
from mews.emulator.telemetry.units import WATT_DIGITS

TEMPERATURE, POWER, ENERGY, ENERGY_J = "Temp", "Power", "Energy", "EnergyJ"
"""What the names of a board's sensors end in."""


class Reading(Struct, frozen=True):
    """One sensor's value now; ``thresholds`` by Redfish's names: beyond a caution it warns, beyond others it is
    critical."""

    name: str
    type: str
    units: str
    value: float
    context: str
    about: str
    thresholds: Mapping[str, float] = {}


def gpu_reading(view: RedfishView, device: str) -> GpuReading:
    """Return a board's telemetry at the time of the look."""
    return view.box.telemetry.reading(device, view.now_s)


def total_watts(view: RedfishView) -> float:
    """Return the whole chassis."""
    return enclosure.chassis_w(sum(gpu_reading(view, row.device).power_mw for row in view.rows))


def readings(view: RedfishView) -> Iterator[Reading]:
    """Yield all sensors of the chassis."""
    home = uris.chassis(view.name)
    yield Reading("Inlet", "Temperature", "Cel", enclosure.inlet_c(view.now_s), "Intake", home, INLET_C)
    yield Reading("TotalPower", "Power", "W", total_watts(view), "Chassis", home)
    for fan in range(1, FANS + 1):
        rpm, about = enclosure.fan_rpm(fan, view.now_s), f"{home}/ThermalSubsystem/Fans/{fan}"
        yield Reading(f"Fan{fan}", "Rotational", "{rev}/min", rpm, "Fan", about, FAN_RPM)
    for row in view.rows:
        yield from board_readings(view, row.device)


def board_readings(view: RedfishView, device: str) -> Iterator[Reading]:
    """Yield the sensors of one board."""
    shown, about = gpu_reading(view, device), view.device_uri(device)
    profile = profile_of(view, device)
    heat = power = dict[str, float]()
    if profile is not None:
        slow, off = float(profile.slowdown_temperature_c), float(profile.shutdown_temperature_c)
        heat = {"UpperCritical": slow, "UpperFatal": off}
        power = {"UpperCritical": profile.max_power_limit_mw / 1000}
    yield Reading(f"{device}{TEMPERATURE}", "Temperature", "Cel", shown.temperature_c, "GPU", about, heat)
    yield Reading(f"{device}{POWER}", "Power", "W", shown.power_mw / 1000, "GPU", about, power)
    yield Reading(f"{device}{ENERGY}", "EnergykWh", "kW.h", shown.energy_kwh, "GPU", about)
    yield Reading(f"{device}{ENERGY_J}", "EnergyJoules", "J", shown.energy_mj / 1000, "GPU", about)


DIGITS = {"EnergykWh": 9, "EnergyJoules": WATT_DIGITS, "Power": WATT_DIGITS}
"""Digits after the point, where two are too few: those of a milliwatt, and of a millijoule."""


def shown_value(reading: Reading) -> float:
    """Return a sensor's value as every resource shows it."""
    return round(reading.value, DIGITS.get(reading.type, 2))


def uri_of(view: RedfishView, name: str) -> str:
    """Return where a sensor is."""
    return f"{uris.chassis(view.name)}/Sensors/{name}"


def sensors(view: RedfishView, name: str) -> Body | None:
    """Return all sensors."""
    if name != view.name:
        return None
    found = [uri_of(view, reading.name) for reading in readings(view)]
    return collection("Sensor", f"{uris.chassis(name)}/Sensors", "Sensors", found)


def one_reading(view: RedfishView, which: str) -> Reading | None:
    """Return the sensor of that name. A board's are looked up alone: with thousands of boards the others cost more."""
    for suffix in (TEMPERATURE, POWER, ENERGY, ENERGY_J):
        device = which.removesuffix(suffix)
        if device != which and view.row(device) is not None:
            return next(each for each in board_readings(view, device) if each.name == which)
    return next((each for each in readings(view) if each.name == which), None)


def sensor(view: RedfishView, name: str, which: str) -> Body | None:
    """Return one sensor."""
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
        Status={"State": "Enabled", "Health": health(reading)},
        **links([reading.about], "RelatedItem"),
        **_thresholds(reading),
    )


def health(reading: Reading) -> str:
    """Return what its thresholds say of a value."""
    beyond = [
        name
        for name, bound in reading.thresholds.items()
        if (reading.value > bound if name.startswith("Upper") else reading.value < bound)
    ]
    return "OK" if not beyond else "Warning" if all(name.endswith("Caution") for name in beyond) else "Critical"


def _thresholds(reading: Reading) -> Body:
    return (
        {"Thresholds": {name: {"Reading": bound} for name, bound in reading.thresholds.items()}}
        if reading.thresholds
        else {}
    )


def excerpt(view: RedfishView, reading: Reading) -> Body:
    """Return a sensor's value as other resources show it."""
    return {"DataSourceUri": uri_of(view, reading.name), "Reading": shown_value(reading)}


PATH = f"{uris.CHASSIS}/{{chassis}}"
ROUTES = (RedfishRoute(f"{PATH}/Sensors", sensors), RedfishRoute(f"{PATH}/Sensors/{{sensor}}", sensor))
