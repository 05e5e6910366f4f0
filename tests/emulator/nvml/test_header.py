"""The library's structs and arguments are those of NVML's published header."""

import os
import subprocess
from pathlib import Path

import pytest

from ci import nvml_header
from mews.emulator.nvml.compile import system_compiler
from mews.emulator.nvml.library import sources
from tests.emulator.nvml.header import FOLDER, functions, types
from tests.emulator.nvml.test_every_call import definitions, needs_compiler, parsed

STRUCTS = {
    "PciInfo": "nvmlPciInfo_t",
    "PciInfoExt": "nvmlPciInfoExt_t",
    "Memory": "nvmlMemory_t",
    "Memory2": "nvmlMemory_v2_t",
    "Bar1Memory": "nvmlBAR1Memory_t",
    "Utilization": "nvmlUtilization_t",
    "ProcessInfo1": "nvmlProcessInfo_v1_t",
    "ProcessInfo": "nvmlProcessInfo_t",
    "ProcessDetail": "nvmlProcessDetail_v1_t",
    "ProcessDetailList": "nvmlProcessDetailList_t",
    "ProcessSample": "nvmlProcessUtilizationSample_t",
    "EccDetail": "nvmlEccErrorCounts_t",
    "Violation": "nvmlViolationTime_t",
    "Value": "nvmlValue_t",
    "FieldValue": "nvmlFieldValue_t",
    "TemperatureV": "nvmlTemperature_t",
    "PowerValue": "nvmlPowerValue_v2_t",
    "LinkThreshold": "nvmlNvLinkPowerThres_t",
    "LinkModes": "nvmlNvlinkSupportedBwModes_t",
    "LinkMode": "nvmlNvlinkGetBwMode_t",
    "ConfidentialAbility": "nvmlConfComputeSystemCaps_t",
    "ConfidentialSettings": "nvmlSystemConfComputeSettings_t",
    "ProfileMask": "nvmlMask255_t",
    "PowerProfile": "nvmlWorkloadPowerProfileInfo_t",
    "PowerProfiles": "nvmlWorkloadPowerProfileProfilesInfo_t",
    "PowerProfilesNow": "nvmlWorkloadPowerProfileCurrentProfiles_t",
    "MarginTemperature": "nvmlMarginTemperature_t",
    "ThermalSettings": "nvmlGpuThermalSettings_t",
    "DynamicPstates": "nvmlGpuDynamicPstatesInfo_t",
    "FbcStats": "nvmlFBCStats_t",
    "RemapperHistogram": "nvmlRowRemapperHistogramValues_t",
    "Capabilities": "nvmlDeviceCapabilities_t",
    "UuidV": "nvmlUUID_t",
    "DriverBranch": "nvmlSystemDriverBranchInfo_t",
    "EventData": "nvmlEventData_t",
    "SystemEventSetRequest": "nvmlSystemEventSetCreateRequest_t",
    "SystemRegisterRequest": "nvmlSystemRegisterEventRequest_t",
    "SystemEventData": "nvmlSystemEventData_v1_t",
    "SystemWaitRequest": "nvmlSystemEventSetWaitRequest_t",
    "GpmMetric": "nvmlGpmMetric_t",
    "GpmMetricsGet": "nvmlGpmMetricsGet_t",
    "GpmSupport": "nvmlGpmSupport_t",
    "Sample": "nvmlSample_t",
    "ProcessShare": "nvmlProcessUtilizationInfo_v1_t",
    "ProcessShares": "nvmlProcessesUtilizationInfo_v1_t",
    "SramStatus": "nvmlEccSramErrorStatus_t",
    "SramErrors": "nvmlEccSramUniqueUncorrectedErrorCounts_t",
    "RepairStatus": "nvmlRepairStatus_t",
    "ProtectedSizes": "nvmlConfComputeMemSizeInfo_t",
    "ConfidentialState": "nvmlConfComputeSystemState_t",
    "AccountingStats": "nvmlAccountingStats_t",
    "AddressingMode": "nvmlDeviceAddressingMode_t",
    "PlatformInfo": "nvmlPlatformInfo_t",
    "FabricInfo": "nvmlGpuFabricInfo_t",
    "FabricInfoV": "nvmlGpuFabricInfoV_t",
    "Pdi": "nvmlPdi_t",
    "MigPlacement": "nvmlGpuInstancePlacement_t",
    "MigProfileInfo": "nvmlGpuInstanceProfileInfo_t",
    "MigProfileInfo2": "nvmlGpuInstanceProfileInfo_v2_t",
    "MigProfileInfo3": "nvmlGpuInstanceProfileInfo_v3_t",
    "MigInstanceInfo": "nvmlGpuInstanceInfo_t",
    "MigComputeInfo": "nvmlComputeInstanceProfileInfo_t",
    "MigComputeInfo2": "nvmlComputeInstanceProfileInfo_v2_t",
    "MigComputeInfo3": "nvmlComputeInstanceProfileInfo_v3_t",
    "MigComputeInstanceInfo": "nvmlComputeInstanceInfo_t",
    "MigAttributes": "nvmlDeviceAttributes_t",
}
WITHIN = {"MigComputeInfo2": "MigComputeInfo", "MigComputeInfo3": "MigComputeInfo"}
"""Structs that have another one for members of the header's, behind their version."""
OWN = {"PciInfoOld", "DetailTable"}
"""A layout that older headers had, and what is ours."""


@pytest.fixture(scope="module")
def ours():
    """Struct of the library -> its layout."""
    needs_compiler()
    return nvml_header.layouts(str(sources() / "nvml.h"))


def test_every_struct_has_a_counterpart(ours):
    assert set(ours) == {*STRUCTS, *OWN}


@pytest.mark.parametrize("name", STRUCTS)
def test_a_struct_is_laid_out_as_that_of_the_header(ours, name):
    theirs, own = types()[STRUCTS[name]], ours[name]
    if name in WITHIN:
        _, *members = ours[WITHIN[name]]
        moved = [number + own[3] if place % 2 == 0 else number for place, number in enumerate(members)]
        own = (*own[:3], *moved, *own[5:])
    assert own == (theirs.size, *(number for m in theirs.members for number in (m.offset, m.size)))


def test_functions_take_the_arguments_of_the_header():
    needs_compiler()
    known, wanted = types(), functions()

    def expected(one):
        return "pointer" if one.pointer or known[one.type].kind == "handle" else known[one.type].size

    def given(argument):
        kind, _, pointer = parsed(argument)
        handle = kind in ("Device", "EventSetHandle", "SystemEventSetHandle", "Unit") or kind.endswith(
            ("Handle", "Ref")
        )
        return "pointer" if pointer or handle else 8 if "long" in kind else 4

    defined = {name: words for name, words in definitions().items() if name in wanted and (words or not wanted[name])}
    assert len(defined) > 150
    found = {name: [given(word) for word in words] for name, words in defined.items()}
    assert found == {name: [expected(one) for one in wanted[name]] for name in defined}


def test_the_facts_are_those_of_the_header(tmp_path, monkeypatch):
    needs_compiler()
    caches = [os.environ.get("GOMODCACHE", ""), f"{os.environ.get('GOPATH') or Path.home() / 'go'}/pkg/mod"]
    places = "github.com/!n!v!i!d!i!a/go-nvml@v0.13.1-0/gen/nvml/nvml.h"
    found = [path for cache in caches if cache and (path := Path(cache) / places).exists()]
    if not found:
        pytest.skip("go-nvml's header is not in the Go module cache")
    monkeypatch.setattr(nvml_header, "OUT", tmp_path)
    nvml_header.main(str(found[0]))
    for path in sorted(FOLDER.iterdir()):
        assert (tmp_path / path.name).read_text() == path.read_text(), path.name


def test_a_struct_that_grows_is_noticed(tmp_path):
    """The compiler's word counts, not the source's."""
    needs_compiler()
    header = tmp_path / "nvml.h"
    text = (sources() / "nvml.h").read_text()
    header.write_text(text.replace("unsigned gpu, memory;", "unsigned gpu; unsigned short memory;"))
    subprocess.run([*system_compiler(), "-fsyntax-only", str(header)], check=True)
    assert nvml_header.layouts(str(header))["Utilization"] != (8, 0, 4, 4, 4)
