"""Air, cooling and power of the chassis and its boards: every figure is a sensor's."""

from __future__ import annotations

from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.resources.sensors import (
    ENERGY,
    ENERGY_J,
    POWER,
    TEMPERATURE,
    board_readings,
    excerpt,
    readings,
    uri_of,
)
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, collection, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.uris import ref
from mews.emulator.telemetry import enclosure
from mews.emulator.telemetry.enclosure import FANS, SUPPLIES, SUPPLY_W


def environment(view: RedfishView, name: str) -> Body | None:
    """Return the chassis' environment."""
    if name != view.name:
        return None
    sensors = {reading.name: reading for reading in readings(view)}
    return resource(
        "EnvironmentMetrics",
        f"{uris.chassis(name)}/EnvironmentMetrics",
        "Environment of the chassis",
        TemperatureCelsius=excerpt(view, sensors["Inlet"]),
        PowerWatts=excerpt(view, sensors["TotalPower"]),
    )


def device_environment(view: RedfishView, name: str, device: str) -> Body | None:
    """Return a GPU's environment."""
    if name != view.name or view.row(device) is None:
        return None
    return board_environment(view, device, f"{view.device_uri(device)}/EnvironmentMetrics")


def board_environment(view: RedfishView, device: str, uri: str) -> Body:
    """Return a board's environment, wherever it is shown."""
    sensors = {reading.name.removeprefix(device): reading for reading in board_readings(view, device)}
    return resource(
        "EnvironmentMetrics",
        uri,
        f"Environment of {device}",
        TemperatureCelsius=excerpt(view, sensors[TEMPERATURE]),
        PowerWatts=excerpt(view, sensors[POWER]),
        EnergykWh=excerpt(view, sensors[ENERGY]),
        EnergyJoules=excerpt(view, sensors[ENERGY_J]),
    )


def thermal(view: RedfishView, name: str) -> Body | None:
    """Return the fans' subsystem."""
    uri = f"{uris.chassis(name)}/ThermalSubsystem"
    if name != view.name:
        return None
    metrics = ref(f"{uri}/ThermalMetrics")
    return resource(
        "ThermalSubsystem", uri, "Cooling", Fans=ref(f"{uri}/Fans"), ThermalMetrics=metrics, Status=dict(OK)
    )


def thermal_metrics(view: RedfishView, name: str) -> Body | None:
    """Return every temperature of the chassis."""
    if name != view.name:
        return None
    temperatures = [reading for reading in readings(view) if reading.type == "Temperature"]
    shown = [
        {**excerpt(view, reading), "DeviceName": reading.name, "PhysicalContext": reading.context}
        for reading in temperatures
    ]
    inlet = next(reading for reading in temperatures if reading.context == "Intake")
    return resource(
        "ThermalMetrics",
        f"{uris.chassis(name)}/ThermalSubsystem/ThermalMetrics",
        "Temperatures",
        TemperatureSummaryCelsius={"Intake": excerpt(view, inlet)},
        TemperatureReadingsCelsius=shown,
        **{"TemperatureReadingsCelsius@odata.count": len(shown)},
    )


def fans(view: RedfishView, name: str) -> Body | None:
    """Return all fans."""
    uri = f"{uris.chassis(name)}/ThermalSubsystem/Fans"
    return collection("Fan", uri, "Fans", [f"{uri}/{fan}" for fan in range(1, FANS + 1)]) if name == view.name else None


def fan(view: RedfishView, name: str, number: str) -> Body | None:
    """Return one fan."""
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
    """Return the power supplies' subsystem."""
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
    """Return all power supplies."""
    uri = f"{uris.chassis(name)}/PowerSubsystem/PowerSupplies"
    if name != view.name:
        return None
    return collection("PowerSupply", uri, "Power supplies", [f"{uri}/{each}" for each in range(1, SUPPLIES + 1)])


def supply(view: RedfishView, name: str, number: str) -> Body | None:
    """Return one power supply."""
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
    RedfishRoute(f"{PATH}/EnvironmentMetrics", environment),
    RedfishRoute(f"{PATH}/PCIeDevices/{{device}}/EnvironmentMetrics", device_environment),
    RedfishRoute(f"{PATH}/ThermalSubsystem", thermal),
    RedfishRoute(f"{PATH}/ThermalSubsystem/ThermalMetrics", thermal_metrics),
    RedfishRoute(f"{PATH}/ThermalSubsystem/Fans", fans),
    RedfishRoute(f"{PATH}/ThermalSubsystem/Fans/{{fan}}", fan),
    RedfishRoute(f"{PATH}/PowerSubsystem", power),
    RedfishRoute(f"{PATH}/PowerSubsystem/PowerSupplies", supplies),
    RedfishRoute(f"{PATH}/PowerSubsystem/PowerSupplies/{{supply}}", supply),
)
