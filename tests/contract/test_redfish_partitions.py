"""MIG devices of a GPU as partitions of its processor: reported by its host, shown by the chassis' Redfish."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from mews.emulator.hardware.inventory import DeviceSpec
from mews.emulator.host.holders import Holder
from mews.emulator.host.nvml_view import nvml_host
from mews.emulator.host.telemetry import report_of
from mews.emulator.nvml.state import write_state
from mews.emulator.telemetry.chassis import BoardReport
from mews.emulator.telemetry.load import constant
from mews.emulator.telemetry.parts import BoardPart, parts_from
from tests.contract.redfish import ROOT
from tests.contract.test_redfish_kept_replies import Service
from tests.emulator.boxes import spec
from tests.emulator.host.bench import Pair
from tests.emulator.host.test_mig import H100, mig
from tests.emulator.nvml.hosts import Host

GPU = f"{ROOT}/Systems/host-1/Processors/d0"
BLOCK = f"{ROOT}/CompositionService/ResourceBlocks/d0/Processors/d0"


@pytest.fixture
def pair():
    return Pair(ports=("1",) * 4)


@pytest.fixture
def service(pair, monkeypatch):
    """A chassis whose first board is the pair's H100; the second is a V100."""
    boards = spec()
    first = DeviceSpec("d0", pair.device(H100).device.uuid, model="H100", port="1")
    boards = replace(boards, devices=(first, replace(boards.devices[1], model="V100"), *boards.devices[2:]))
    monkeypatch.setattr("tests.contract.test_redfish_kept_replies.spec", lambda **_: boards)
    return Service(1)


def told(service, pair):
    """What the host says, as it goes over the wire; then the GPU."""
    reports = {uuid: json.loads(json.dumps(each.as_value())) for uuid, each in report_of(pair.host).items()}
    read = {uuid: BoardReport.from_value(value) for uuid, value in reports.items()}
    service.box.telemetry.report("host-1", read, service.now_s)
    return shown(service, GPU)


def shown(service, path):
    reply = service.ask("GET", path)
    return json.loads(reply.body) if reply.status == 200 else reply.status


def enabled(gpu):
    return gpu["Oem"]["Nvidia"]["MIGModeEnabled"]


def test_a_gpu_shows_its_mode_and_its_devices_as_they_come_and_go(service, pair):
    gpu = told(service, pair)
    assert (enabled(gpu), "SubProcessors" in gpu) == (False, False)
    assert shown(service, f"{GPU}/SubProcessors") == 404
    mig(pair, "mode", 1)
    gpu = told(service, pair)
    assert enabled(gpu) and gpu["SubProcessors"] == {"@odata.id": f"{GPU}/SubProcessors"}
    assert shown(service, f"{GPU}/SubProcessors")["Members"] == []
    mig(pair, "create-gpu", 9)
    mig(pair, "create-compute", 1, 0)
    told(service, pair)
    uris = [each["@odata.id"] for each in shown(service, f"{GPU}/SubProcessors")["Members"]]
    assert uris == [f"{GPU}/SubProcessors/GI1-CI0"]
    part = shown(service, uris[0])
    _, compute = pair.device(H100).mig.devices()[0]
    assert (part["ProcessorType"], part["UUID"]) == ("Partition", compute.uuid.removeprefix("MIG-"))
    assert part["Manufacturer"] == gpu["Manufacturer"]
    (end,) = part["Links"]["PCIeFunctions"]
    assert shown(service, end["@odata.id"])["@odata.id"] == gpu["Links"]["PCIeDevice"]["@odata.id"] + "/PCIeFunctions/0"
    assert part["Model"] == "NVIDIA H100 PCIe MIG 1c.3g.40gb"
    assert (part["MemorySummary"]["TotalMemorySizeMiB"], part["TotalCores"]) == (40448, 16 * 128)
    assert shown(service, f"{BLOCK}/SubProcessors/GI1-CI0")["UUID"] == part["UUID"]
    mig(pair, "destroy-compute", 1, 0)
    told(service, pair)
    assert shown(service, uris[0]) == 404
    service.agrees()


def test_a_gpu_that_leaves_its_host_has_no_devices(service, pair):
    mig(pair, "mode", 1)
    told(service, pair)
    assert enabled(shown(service, BLOCK))
    service.box.telemetry.report("host-1", {}, service.now_s)
    assert not enabled(shown(service, BLOCK)) and shown(service, f"{BLOCK}/SubProcessors") == 404


def test_a_model_without_mig_says_nothing_of_it(service):
    assert "Oem" not in shown(service, f"{ROOT}/Systems/host-1/Processors/d1")
    assert shown(service, f"{ROOT}/Systems/host-1/Processors/d1/SubProcessors") == 404
    assert shown(service, f"{ROOT}/Systems/host-1/Processors/none/SubProcessors") == 404


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (7, "must be null, or a list"),
        ([[]], "must be a list of uuid, profile"),
        ([["MIG-1", "", 1, 0, 1, 1, 100, 0, []]], "must be two texts"),
        ([["MIG-1", "1g.10gb", 1, -1, 1, 1, 100, 0, []]], "must be whole numbers"),
        ([["MIG-1", "1g.10gb", True, 1, 1, 1, 100, 0, []]], "must be whole numbers"),
        ([["MIG-1", "1g.10gb", 1, 1, 1, 1, 100, -1, []]], "must be whole numbers"),
        ([["MIG-1", "1g.10gb", 1, 1, 1, 1, 0, 0, []]], "must be a percentage"),
        ([["MIG-1", "1g.10gb", 1, 1, 1, 1, "x", 0, []]], "must be a percentage"),
        ([["MIG-1", "1g.10gb", 1, 1, 1, 1, 100, 0, "x"]], "must be a list of at most"),
        ([["MIG-1", "1g.10gb", 1, 1, 1, 1, 100, 0, [7]]], "must be a list of at most"),
        ([["MIG-1", "1g.10gb", 1, 1, 1, 1, 100, 0, []]] * 65, "at most 64"),
    ],
)
def test_parts_that_are_none_are_refused(value, reason):
    with pytest.raises(ValueError, match=reason):
        parts_from(value)
    with pytest.raises(ValueError):
        BoardReport.from_value({"loads": {}, "counts": None, "mig": value})


def test_parts_are_named_by_their_instances():
    assert BoardPart("MIG-1", "1g.10gb", 7, 2, 9728, 16).name == "GI7-CI2"


def test_parts_are_as_busy_and_as_full_as_nvml_says(service, pair, tmp_path):
    for change in (
        ("mode", 1),
        ("create-gpu", 19),
        ("create-gpu", 14),
        ("create-compute", 9, 0),
        ("create-compute", 3, 1),
    ):
        mig(pair, *change)
    devices = {instance.profile_id: compute.uuid for instance, compute in pair.device(H100).mig.devices()}
    for key, uuid, percent in (("a", devices[19], 6), ("b", devices[14], 12)):
        pair.host.hold(Holder(key, (uuid,), pid=ord(key), computing=True, load=constant(percent)), pair.t)
    told(service, pair)
    host = Host(tmp_path / "host")
    write_state(host.state, nvml_host(pair.host))
    code = (
        "import pynvml as p; p.nvmlInit(); h = p.nvmlDeviceGetHandleByPciBusId('%s')\n"
        "for n in range(2):\n m = p.nvmlDeviceGetMemoryInfo(p.nvmlDeviceGetMigDeviceHandleByIndex(h, n))\n"
        " print(p.nvmlDeviceGetUUID(p.nvmlDeviceGetMigDeviceHandleByIndex(h, n)), round(100 * m.used / m.total, 2))"
    )
    nvml = dict(line.split() for line in host.python(code % pair.device(H100).bdf).splitlines())
    for uri in (each["@odata.id"] for each in shown(service, f"{GPU}/SubProcessors")["Members"]):
        part = shown(service, uri)
        memory = shown(service, part["MemorySummary"]["Metrics"]["@odata.id"])
        assert memory["CapacityUtilizationPercent"] == float(nvml[f"MIG-{part['UUID']}"]) > 0
        busy = shown(service, part["Metrics"]["@odata.id"])["BandwidthPercent"]
        assert busy == 42  # 6 % of the board is 42 % of a seventh, 12 % of two
    assert shown(service, f"{GPU}/SubProcessors/GI7-CI7/ProcessorMetrics") == 404
    service.agrees()
