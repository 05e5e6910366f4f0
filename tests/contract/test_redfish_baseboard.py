"""What a baseboard's management shows beyond the fabric: parts, limits, traffic, memory, logs, network and firmware."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from mews.emulator.dialects.redfish.events import EventSubscription, RedfishEvent
from mews.emulator.dialects.redfish.resources.sensors import Reading, health
from mews.emulator.hardware.gpu_profiles import PROFILES
from mews.emulator.telemetry.gpu import GpuTelemetry
from mews.emulator.telemetry.load import parse_load
from tests.contract.redfish import ROOT, Client, walk
from tests.contract.wire import backend

HOME, SYSTEM, MANAGER = f"{ROOT}/Chassis/A", f"{ROOT}/Systems/host-1", f"{ROOT}/Managers/BMC"
ETHERNET = f"{MANAGER}/EthernetInterfaces/eth0"
LOG = "LogServices/Table"
S = 1_000_000_000


@pytest.fixture
def client(box):
    return Client(box)


@pytest.fixture
def fresh():
    with backend("in-process") as made:
        yield Client(made)


def test_the_enclosure_contains_a_baseboard(client):
    enclosure, board = client.get(HOME), client.get(f"{HOME}-Baseboard")
    assert enclosure["Links"]["Contains"] == [{"@odata.id": board["@odata.id"]}]
    assert board["Links"]["ContainedBy"] == {"@odata.id": HOME}
    assert enclosure["UUID"] != board["UUID"]
    boards = [PROFILES[each.model].max_power_limit_mw / 1000 for each in client.box.rack.hardware.chassis[0].devices]
    assert enclosure["MaxPowerWatts"] == enclosure["MinPowerWatts"] + sum(boards)
    for each in (enclosure, board):
        assert client.get(each["Assembly"]["@odata.id"])["Assemblies"]


def test_a_baseboard_cannot_be_reset_and_has_no_slots(client):
    said = client.ask("POST", f"{HOME}-Baseboard/Actions/Chassis.Reset", {})
    assert (said.status, said.messages) == (404, ["ActionNotSupported"])
    assert client.ask("GET", f"{HOME}-Baseboard/PCIeDevices").status == 404


@pytest.mark.parametrize(
    ("value", "said"),
    [(4.9, "Critical"), (7.0, "Warning"), (24.0, "OK"), (35.0, "OK"), (36.0, "Warning"), (41.0, "Critical")],
)
def test_a_sensor_is_as_healthy_as_its_thresholds_say(value, said):
    bounds = {"LowerCritical": 5.0, "LowerCaution": 10.0, "UpperCaution": 35.0, "UpperCritical": 40.0}
    assert health(Reading("Inlet", "Temperature", "Cel", value, "Intake", HOME, bounds)) == said


def test_a_board_that_is_too_hot_is_critical(fresh):
    device = "000100"
    profile = PROFILES[fresh.box.rack.hardware.chassis[0].devices[0].model]
    sensor = fresh.get(f"{HOME}/Sensors/{device}Temp")
    assert sensor["Thresholds"]["UpperFatal"] == {"Reading": profile.shutdown_temperature_c}
    assert sensor["Status"]["Health"] == "OK"
    with fresh.box.rack.box("A") as chassis:
        chassis.telemetry.set(device, {"temperature": profile.slowdown_temperature_c + 1}, fresh.box.rack.clock.now())
    assert fresh.get(f"{HOME}/Sensors/{device}Temp")["Status"]["Health"] == "Critical"


def test_energy_is_the_same_in_joules_and_in_kilowatt_hours(fresh):
    shown = fresh.get(f"{HOME}/PCIeDevices/000100/EnvironmentMetrics")
    joules = fresh.get(shown["EnergyJoules"]["DataSourceUri"])
    assert joules["ReadingType"] == "EnergyJoules"
    assert shown["EnergyJoules"]["Reading"] / 3_600_000 == pytest.approx(shown["EnergykWh"]["Reading"], abs=1e-6)


def test_traffic_is_the_integral_of_what_the_link_moves():
    gpu = GpuTelemetry("GPU-1", PROFILES["A100-SXM4-80GB"], seed="1", powered=True)
    assert gpu.pcie_bytes(10 * S) == 0
    gpu.begin("pod/a", parse_load({"curve": [[0, 100], [20, 50]]}), 10 * S)
    rates = [gpu.reading(at * S).pcie_tx_kb_s for at in range(10, 30)]
    assert rates[0] > 0
    whole = gpu.pcie_bytes(30 * S)
    again = GpuTelemetry("GPU-1", PROFILES["A100-SXM4-80GB"], seed="1", powered=True)
    again.resume(gpu.state(30 * S), 30 * S)
    assert again.pcie_bytes(30 * S) == whole
    steps = [gpu.pcie_bytes(at * S) for at in range(10, 31)]
    moved = [after - before for before, after in pairwise(steps)]
    assert all(after >= before for before, after in pairwise(steps))
    # Rates change within a second at most: each second's bytes lie between the rates at its ends.
    ends = [*rates, gpu.reading(30 * S).pcie_tx_kb_s]
    for place, each in enumerate(moved):
        low, high = sorted(ends[place : place + 2])
        assert low * 1000 <= each <= high * 1000


def test_both_ends_of_a_link_count_the_same_bytes(fresh):
    device = "000100"
    with fresh.box.rack.box("A") as chassis:
        board = chassis.telemetry.gpu(device)
        board.begin("pod/a", parse_load(90), round(fresh.box.rack.clock.now() * S))
    processor = fresh.get(f"{SYSTEM}/Processors/{device}")
    [port] = fresh.members(processor["Ports"]["@odata.id"])
    shown = fresh.get(port)
    across = fresh.get(shown["Links"]["ConnectedSwitchPorts"][0]["@odata.id"])
    assert shown["LinkStatus"] == across["LinkStatus"] == "LinkUp"
    mine = fresh.get(shown["Metrics"]["@odata.id"])["TXBytes"]
    theirs = fresh.get(across["Metrics"]["@odata.id"])["RXBytes"]
    host = fresh.get(f"{ROOT}/Fabrics/PCIe/Switches/Switch1/Ports/Host1/Metrics")["RXBytes"]
    assert 0 < mine <= theirs <= host


def test_a_system_has_its_hosts_processors_and_memory_and_its_gpus(client):
    spec = next(each for each in client.box.rack.hardware.hosts if each.name == "host-1")
    processors = [client.get(path) for path in client.members(f"{SYSTEM}/Processors")]
    cpus = [each for each in processors if each["ProcessorType"] == "CPU"]
    assert sum(each["TotalThreads"] for each in cpus) == spec.cpus
    [uplink] = client.members(cpus[0]["Ports"]["@odata.id"])
    assert client.get(uplink)["Links"]["ConnectedSwitchPorts"][0]["@odata.id"].endswith("/Ports/Host1")
    assert client.members(cpus[1]["Ports"]["@odata.id"]) == []
    memory = [client.get(path) for path in client.members(f"{SYSTEM}/Memory")]
    modules = [each for each in memory if each["Id"].startswith("DIMM")]
    assert sum(each["CapacityMiB"] for each in modules) == spec.memory_mib
    boards = [each for each in memory if each not in modules]
    assert [each["Id"] for each in boards] == [each["Id"] for each in processors if each not in cpus]
    for each in boards:
        own = client.get(f"{SYSTEM}/Processors/{each['Id']}/MemorySummary/MemoryMetrics")
        assert client.get(each["Metrics"]["@odata.id"])["BandwidthPercent"] == own["BandwidthPercent"]
    assert client.get(modules[0]["Metrics"]["@odata.id"])["BandwidthPercent"] is None


@pytest.mark.parametrize("path", ["Processors/CPU9", "Processors/CPU00", "Memory/DIMM2", "Memory/none"])
def test_what_a_system_does_not_have_is_missing(client, path):
    assert client.ask("GET", f"{SYSTEM}/{path}").status == 404
    assert client.ask("GET", f"{ROOT}/Systems/nobody/Memory").status == 404


def test_a_chassis_processor_points_to_where_its_block_is_measured(client):
    processor = client.get(f"{HOME}/Processors/000100")
    for link in (processor["Metrics"], processor["EnvironmentMetrics"], processor["MemorySummary"]["Metrics"]):
        assert client.get(link["@odata.id"])["@odata.id"].startswith(f"{ROOT}/CompositionService/ResourceBlocks/")


# The log


def test_a_log_begins_with_what_is_there(fresh):
    entries = fresh.get(f"{MANAGER}/{LOG}/Entries")["Members"]
    hosts = [host for host in fresh.box.rack.hardware.chassis[0].ports.values() if host]
    assert [each["MessageArgs"][0] for each in entries] == ["BMC", *hosts]
    [own] = fresh.get(f"{SYSTEM}/{LOG}/Entries")["Members"]
    assert own["MessageArgs"] == ["host-1", "Enabled"]


def test_a_system_logs_the_edits_of_its_own_ports(fresh):
    assert fresh.remove("000100", "1").status == 204
    manager = [each["Message"] for each in fresh.get(f"{MANAGER}/{LOG}/Entries")["Members"]]
    own = [each["Message"] for each in fresh.get(f"{SYSTEM}/{LOG}/Entries")["Members"]]
    other = [each["Message"] for each in fresh.get(f"{ROOT}/Systems/host-2/{LOG}/Entries")["Members"]]
    [left] = [each for each in manager if "left the zone of host port 1" in each]
    assert left in own
    assert left not in other
    said = fresh.ask("POST", f"{SYSTEM}/{LOG}/Actions/LogService.ClearLog", {})
    assert (said.status, said.messages) == (404, ["ActionNotSupported"])


def test_an_entry_has_the_chassis_own_event_attached(fresh):
    assert fresh.remove("000100", "1").status == 204
    entry = next(each for each in fresh.get(f"{MANAGER}/{LOG}/Entries")["Members"] if "left" in each["Message"])
    said = fresh.ask("GET", entry["AdditionalDataURI"])
    assert said.status == 200
    assert (said.body["event"], said.body["device"], said.body["old_port"]) == ("table-changed", "000100", "1")
    assert entry["AdditionalDataSizeBytes"] == len(json.dumps(said.body, separators=(",", ":")))
    assert fresh.ask("GET", f"{MANAGER}/{LOG}/Entries/999/Attachment").status == 404


def test_a_log_that_was_cleared_says_so(fresh):
    assert fresh.ask("POST", f"{MANAGER}/{LOG}/Actions/LogService.ClearLog", {}).status == 204
    [entry] = fresh.get(f"{MANAGER}/{LOG}/Entries")["Members"]
    assert entry["Message"] == "The log was cleared."
    assert fresh.get(entry["@odata.id"])["Message"] == entry["Message"]


# Network, firmware


def test_the_network_interface_takes_names_and_keeps_its_addresses(fresh):
    before = fresh.get(ETHERNET)
    said = fresh.ask("PATCH", ETHERNET, {"HostName": "gpu-box", "NameServers": ["192.0.2.1"]})
    assert said.status == 200
    assert fresh.get(ETHERNET)["StaticNameServers"] == ["192.0.2.1"]
    assert fresh.get(f"{MANAGER}/NetworkProtocol")["HostName"] == "gpu-box"
    assert before["MACAddress"][:3] == "02:"


def test_an_address_that_the_machine_does_not_have_is_refused():
    with backend("http") as made:
        client = Client(made)
        [shown] = client.get(ETHERNET)["IPv4Addresses"]
        assert shown["Address"] == "127.0.0.1"
        assert client.ask("PATCH", ETHERNET, {"IPv4Addresses": [{"Address": "127.0.0.1"}]}).status == 200
        said = client.ask("PATCH", ETHERNET, {"IPv4Addresses": [{"Address": "192.0.2.7"}], "HostName": "x"})
        assert (said.status, said.messages) == (400, ["PropertyNotWritable"])
        assert client.get(ETHERNET)["HostName"] != "x"


def test_an_image_is_refused_since_nothing_can_be_updated(client):
    service = client.get(f"{ROOT}/UpdateService")
    said = client.ask("POST", service["HttpPushUri"], {"image": "x"})
    assert (said.status, said.messages) == (400, ["OperationFailed"])
    assert client.ask("GET", service["HttpPushUri"]).status == 405
    for path in client.members(service["SoftwareInventory"]["@odata.id"]):
        assert client.get(path)["WriteProtected"] is True


# Subscriptions that leave events out


EVENT = RedfishEvent("Fabric.1.1.ZoneModified", "…", (), "OK", f"{ROOT}/Fabrics/PCIe/Zones/1", "Zone")


@pytest.mark.parametrize(
    ("subscription", "wants"),
    [
        (EventSubscription("1", "Redfish"), True),
        (EventSubscription("1", "Redfish", unwanted={"ExcludeRegistryPrefixes": ["Fabric"]}), False),
        (EventSubscription("1", "Redfish", unwanted={"ExcludeRegistryPrefixes": ["TaskEvent"]}), True),
        (EventSubscription("1", "Redfish", unwanted={"ExcludeMessageIds": ["Fabric.ZoneModified"]}), False),
        (EventSubscription("1", "Redfish", unwanted={"ExcludeMessageIds": ["Fabric.LinkUp"]}), True),
        (EventSubscription("1", "Redfish", wanted={"OriginResources": [f"{ROOT}/Fabrics/PCIe"]}), False),
        (
            EventSubscription("1", "Redfish", wanted={"OriginResources": [f"{ROOT}/Fabrics/PCIe"]}, subordinate=True),
            True,
        ),
        (
            EventSubscription("1", "Redfish", wanted={"OriginResources": [f"{ROOT}/Fabrics/PC"]}, subordinate=True),
            False,
        ),
    ],
)
def test_a_subscription_leaves_out_what_it_was_told_to(subscription, wants):
    assert subscription.wants(EVENT) is wants


def test_a_subscription_shows_what_it_leaves_out(fresh):
    asked = {"ExcludeMessageIds": ["Fabric.ZoneModified"], "SubordinateResources": True}
    body = {"Destination": "https://127.0.0.1:1/", "Protocol": "Redfish", **asked}
    said = fresh.ask("POST", f"{ROOT}/EventService/Subscriptions", body)
    assert said.status == 201
    shown = fresh.get(said.headers["location"])
    assert {name: shown[name] for name in asked} == asked
    wrong = {**body, "SubordinateResources": "yes"}
    said = fresh.ask("POST", f"{ROOT}/EventService/Subscriptions", wrong)
    assert (said.status, said.messages) == (400, ["PropertyValueTypeError"])


def test_every_resource_of_the_service_can_be_walked(client):
    assert f"{SYSTEM}/Processors/CPU0/Ports" in walk(client)
