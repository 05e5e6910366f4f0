"""Which version of which schema each resource follows: the latest of DSP8010 2025.4 (contract chassis.md 4)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

VERSIONS: Mapping[str, str] = MappingProxyType(
    {
        "AccountService": "v1_18_1",
        "ActionInfo": "v1_5_0",
        "Assembly": "v1_6_1",
        "Certificate": "v1_11_0",
        "CertificateLocations": "v1_0_4",
        "CertificateService": "v1_2_1",
        "Chassis": "v1_28_0",
        "CompositionService": "v1_2_3",
        "ComputerSystem": "v1_27_0",
        "Endpoint": "v1_8_2",
        "EnvironmentMetrics": "v1_5_0",
        "EthernetInterface": "v1_12_4",
        "EventDestination": "v1_16_0",
        "EventService": "v1_12_0",
        "Event": "v1_12_0",
        "Fabric": "v1_4_0",
        "Fan": "v1_6_0",
        "LogEntry": "v1_21_0",
        "LogService": "v1_9_0",
        "Manager": "v1_24_0",
        "ManagerAccount": "v1_14_1",
        "ManagerNetworkProtocol": "v1_12_0",
        "Memory": "v1_23_0",
        "MemoryMetrics": "v1_8_0",
        "MessageRegistry": "v1_7_0",
        "MessageRegistryFile": "v1_1_5",
        "MetricDefinition": "v1_3_5",
        "MetricReport": "v1_5_2",
        "MetricReportDefinition": "v1_4_7",
        "PCIeDevice": "v1_21_0",
        "PCIeFunction": "v1_7_0",
        "Port": "v1_18_0",
        "PortMetrics": "v1_8_1",
        "PowerSubsystem": "v1_1_3",
        "PowerSupply": "v1_6_0",
        "Processor": "v1_22_0",
        "ProcessorMetrics": "v1_7_0",
        "ResourceBlock": "v1_4_3",
        "Role": "v1_3_3",
        "Sensor": "v1_12_0",
        "ServiceRoot": "v1_20_0",
        "Session": "v1_8_0",
        "SessionService": "v1_2_0",
        "SoftwareInventory": "v1_13_0",
        "Switch": "v1_11_0",
        "Task": "v1_7_4",
        "TaskService": "v1_3_0",
        "TelemetryService": "v1_4_1",
        "ThermalMetrics": "v1_3_2",
        "ThermalSubsystem": "v1_5_0",
        "UpdateService": "v1_17_0",
        "Zone": "v1_6_3",
    }
)

COLLECTIONS = (
    "CertificateCollection",
    "ChassisCollection",
    "ComputerSystemCollection",
    "EndpointCollection",
    "EthernetInterfaceCollection",
    "EventDestinationCollection",
    "FabricCollection",
    "FanCollection",
    "LogEntryCollection",
    "LogServiceCollection",
    "ManagerAccountCollection",
    "ManagerCollection",
    "MemoryCollection",
    "MessageRegistryFileCollection",
    "MetricDefinitionCollection",
    "MetricReportCollection",
    "MetricReportDefinitionCollection",
    "PCIeDeviceCollection",
    "PCIeFunctionCollection",
    "PortCollection",
    "PowerSupplyCollection",
    "ProcessorCollection",
    "ResourceBlockCollection",
    "RoleCollection",
    "SensorCollection",
    "SessionCollection",
    "SoftwareInventoryCollection",
    "SwitchCollection",
    "TaskCollection",
    "ZoneCollection",
)
"""Collections have no version."""

SCHEMA_URL = "http://redfish.dmtf.org/schemas/v1"


def odata_type(schema: str) -> str:
    """``@odata.type`` of a resource: ``#Zone.v1_6_3.Zone``, or ``#ZoneCollection.ZoneCollection``."""
    version = VERSIONS.get(schema)
    return f"#{schema}.{version}.{schema}" if version else f"#{schema}.{schema}"


def described_by(body: Mapping[str, object]) -> str | None:
    """Return the ``Link`` header of a resource: where its JSON schema is published."""
    kind = str(body.get("@odata.type", "")).lstrip("#").rpartition(".")[0]
    return f"<{SCHEMA_URL}/{kind}.json>; rel=describedby" if kind else None
