"""The telemetry service: one report of all sensors."""

from __future__ import annotations

from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.resources.sensors import readings, shown_value, uri_of
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, collection, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.uris import ref

DEFINITIONS = f"{uris.TELEMETRY}/MetricDefinitions"
REPORTS = f"{uris.TELEMETRY}/MetricReports"
REPORT_DEFINITIONS = f"{uris.TELEMETRY}/MetricReportDefinitions"
REPORT = "Sensors"
UNITS = {"Temperature": "Cel", "Power": "W", "Rotational": "{rev}/min", "EnergykWh": "kW.h", "EnergyJoules": "J"}


def service(view: RedfishView) -> Body:
    """Return the telemetry service."""
    return resource(
        "TelemetryService",
        uris.TELEMETRY,
        "Telemetry service",
        ServiceEnabled=True,
        Status=dict(OK),
        MaxReports=1,
        MinCollectionInterval="PT1S",
        MetricDefinitions=ref(DEFINITIONS),
        MetricReports=ref(REPORTS),
        MetricReportDefinitions=ref(REPORT_DEFINITIONS),
    )


def definitions(view: RedfishView) -> Body:
    """Return what is measured."""
    members = [f"{DEFINITIONS}/{name}" for name in UNITS]
    return collection("MetricDefinition", DEFINITIONS, "Metric definitions", members)


def definition(view: RedfishView, name: str) -> Body | None:
    """Return one metric."""
    if name not in UNITS:
        return None
    return resource(
        "MetricDefinition",
        f"{DEFINITIONS}/{name}",
        name,
        MetricType="Numeric",
        MetricDataType="Decimal",
        Implementation="PhysicalSensor",
        Units=UNITS[name],
    )


def report_definitions(view: RedfishView) -> Body:
    """Return which reports there are: one."""
    members = [f"{REPORT_DEFINITIONS}/{REPORT}"]
    return collection("MetricReportDefinition", REPORT_DEFINITIONS, "Report definitions", members)


def report_definition(view: RedfishView) -> Body:
    """Return what the report holds."""
    metrics = [
        {"MetricId": reading.name, "MetricProperties": [f"{uri_of(view, reading.name)}#/Reading"]}
        for reading in readings(view)
    ]
    return resource(
        "MetricReportDefinition",
        f"{REPORT_DEFINITIONS}/{REPORT}",
        "All sensors",
        MetricReportDefinitionType="OnRequest",
        MetricReportDefinitionEnabled=True,
        ReportActions=["LogToMetricReportsCollection"],
        ReportUpdates="Overwrite",
        Status=dict(OK),
        Metrics=metrics,
        MetricReport=ref(f"{REPORTS}/{REPORT}"),
    )


def reports(view: RedfishView) -> Body:
    """Return all reports: one."""
    return collection("MetricReport", REPORTS, "Metric reports", [f"{REPORTS}/{REPORT}"])


def report(view: RedfishView) -> Body:
    """Return all sensors' readings, just now."""
    values = [
        {
            "MetricId": reading.name,
            "MetricProperty": f"{uri_of(view, reading.name)}#/Reading",
            "MetricValue": str(shown_value(reading)),
            "Timestamp": view.stamp(),
        }
        for reading in readings(view)
    ]
    return resource(
        "MetricReport",
        f"{REPORTS}/{REPORT}",
        "All sensors",
        MetricReportDefinition=ref(f"{REPORT_DEFINITIONS}/{REPORT}"),
        Timestamp=view.stamp(),
        MetricValues=values,
    )


ROUTES = (
    RedfishRoute(uris.TELEMETRY, service),
    RedfishRoute(DEFINITIONS, definitions),
    RedfishRoute(f"{DEFINITIONS}/{{metric}}", definition),
    RedfishRoute(REPORT_DEFINITIONS, report_definitions),
    RedfishRoute(f"{REPORT_DEFINITIONS}/{REPORT}", report_definition),
    RedfishRoute(REPORTS, reports),
    RedfishRoute(f"{REPORTS}/{REPORT}", report),
)
