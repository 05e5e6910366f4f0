"""What is wrong in a hardware file is told in one line, with the line of the file, before anything starts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from mews.emulator.chassis.errors import HardwareError
from mews.emulator.chassis.inventory_schema import hardware_schema
from mews.emulator.inventory_file import load_hardware
from mews.emulator.nvml.profiles import PROFILES
from mews.emulator.yaml_document import read_document

FIXTURES = Path(__file__).parents[2] / "fixtures" / "hardware"
GOOD = """\
apiVersion: mews/v1
kind: Hardware
metadata: {name: lab, labels: {rack: "7"}}
profile: instant
hosts:
  - {name: host-1, cpus: 8, memory_mib: 4096, profile: instant}
  - {name: host-2}
chassis:
  - name: A
    index: 0
    slots: 3
    ports: {"1": host-1, "2": host-2, "3": null}
    devices:
      - {id: "000100", uuid: GPU-1, kind: GPU, model: V100, serial: "5", port: "1"}
      - {id: "000200", uuid: FPGA-2, kind: FPGA, model: Alveo U200}
"""
FAULT_KINDS = "fault kind 'lying': must be one of slow-operation, lying-result"

WRONG = [
    (
        "memory_mib: 4096",
        "memory_mib: 4096, driver: 312.4.1",
        "6: hosts[0].driver: '312.4.1': must be a release such as 570.86.15 of a branch of 525, 530",
    ),
    ("memory_mib: 4096", "memory_mib: 4096, driver: 570.86", "6: hosts[0].driver: 570.86: must be a quoted driver"),
    ("model: V100", "model: MI300", "14: chassis[0].devices[0].model: 'MI300': must be one of V100, V100-16GB"),
    ("model: V100", "model: 100", "14: chassis[0].devices[0].model: 100: must be a model name"),
    ("kind: GPU", "kind: GPPU", "14: chassis[0].devices[0].kind: 'GPPU': must be one of GPU, NIC, RDMA, FPGA"),
    ("kind: GPU", "kind: gpu", "14: chassis[0].devices[0].kind: 'gpu': must be one of GPU"),
    ("kind: GPU", "kind: [GPU]", "14: chassis[0].devices[0].kind: ['GPU']: must be one of GPU"),
    ('port: "1"', "port: 1", '14: chassis[0].devices[0].port: 1: must be null or one of the cabled ports "1", "2"'),
    ('port: "1"', 'port: "9"', "14: chassis[0].devices[0].port: '9': must be null or one of the cabled ports"),
    ('port: "1"', 'port: "3"', "14: chassis[0].devices[0].port: '3': must be null or one of the cabled ports"),
    ('port: "1"', "port: host-1", "14: chassis[0].devices[0].port: 'host-1': must be null or one of the cabled"),
    ('serial: "5"', "serial: 5", "14: chassis[0].devices[0].serial: 5: must be a quoted serial number"),
    ('id: "000100"', "id: 000100", "14: chassis[0].devices[0].id: 64: must be a quoted device ID"),
    ("uuid: GPU-1", "uuid: 1", "14: chassis[0].devices[0].uuid: 1: must be a device UUID"),
    ("uuid: GPU-1, ", "", "14: chassis[0].devices[0].uuid: null: must be a device UUID"),
    (
        "serial:",
        "sirial:",
        "14: chassis[0].devices[0].sirial: unknown key; allowed: id, uuid, kind, model",
    ),
    ("uuid: FPGA-2", "uuid: GPU-1", "8: chassis: device uuid 'GPU-1' is there twice; each must be unique"),
    ('id: "000200"', 'id: "000100"', "13: chassis[0].devices: device id '000100' is there twice"),
    (
        '"2": host-2',
        '"2": host-1',
        "12: chassis[0].ports.2: 'host-1': must be a host that is not cabled yet: host-1",
    ),
    ('"2": host-2', '"2": host-7', "12: chassis[0].ports.2: 'host-7': must be null or one of the hosts host-1, host-2"),
    ('"2": host-2', '"1": host-2', "12: chassis.0.ports.1: duplicate key '1'"),
    ('"2": host-2', "two: host-2", "12: chassis[0].ports.two: 'two': must be a port number"),
    ('"2": host-2', '"2": 2', "12: chassis[0].ports.2: 2: must be null or one of the hosts host-1, host-2"),
    ("slots: 3", "slots: 1", "13: chassis[0].devices: "),
    ("slots: 3", 'slots: "3"', "11: chassis[0].slots: '3': must be a whole number from 1 to 4096"),
    ("index: 0", "index: -1", "10: chassis[0].index: -1: must be a whole number from 0 to 999"),
    ("cpus: 8", "cpus: 8.5", "6: hosts[0].cpus: 8.5: must be a whole number from 1 to 4096"),
    ("cpus: 8", "cpus: true", "6: hosts[0].cpus: True: must be a whole number from 1 to 4096"),
    ("memory_mib: 4096", "memory_mib: 4Gi", "6: hosts[0].memory_mib: '4Gi': must be a whole number from 1 to"),
    ("memory_mib: 4096", "memory: 4096", "6: hosts[0].memory: unknown key; allowed: name, cpus, memory_mib, profile"),
    ("name: host-2", "name: host-1", "5: hosts: host name 'host-1' is there twice"),
    ("name: host-2", "name: Host_2", "7: hosts[1].name: 'Host_2': must be a lower-case host name"),
    ("4096, profile: instant", "4096, profile: {link: soon}", "6: hosts[0].profile: latency 'soon': must be"),
    ("4096, profile: instant", "4096, profile: {boot: 1}", "6: hosts[0].profile: profile {'boot': 1}: must be one of"),
    ("profile: instant\nhosts", "profile: fast\nhosts", "4: profile: profile 'fast': must be one of instant"),
    ("profile: instant\nhosts", "profile: {reads_queue: 1}\nhosts", "4: profile: reads_queue 1: must be true or"),
    ("profile: instant\nhosts", "profile: {quirks: [{kind: lying}]}\nhosts", f"4: profile.quirks[0]: {FAULT_KINDS}"),
    (
        "profile: instant\nhosts",
        'profile: {quirks: [{kind: never-trains, device: "9"}]}\nhosts',
        "4: profile.quirks[0]: fault never-trains: device '9': must be one of 000100, 000200",
    ),
    ("apiVersion: mews/v1", "apiVersion: v1", "1: apiVersion: 'v1': must be mews/v1"),
    ("kind: Hardware", "kind: Hardwear", "2: kind: 'Hardwear': must be Hardware"),
    ('rack: "7"', "rack: 7", "3: metadata.labels.rack: 7: must be a quoted text"),
    ("name: lab, ", "", "3: metadata.name: null: must be a lower-case name"),
    (
        "  - {name: host-1, cpus: 8, memory_mib: 4096, profile: instant}\n  - {",
        "  {",
        "5: hosts: {'name': 'host-2'}: must",
    ),
    ("chassis:\n", "chasis:\n", "8: chasis: unknown key; allowed: apiVersion, kind, metadata, profile, hosts, chassis"),
]
"""What is written instead of what, and the complaint behind ``FILE:``."""


def _file(folder: Path, text: str) -> Path:
    path = folder / "lab.yaml"
    path.write_text(text)
    return path


def test_the_file_that_the_wrong_ones_are_made_of_is_right(tmp_path):
    (chassis,) = load_hardware(_file(tmp_path, GOOD)).chassis
    assert [(device.kind, device.model, device.port) for device in chassis.devices] == [
        ("GPU", "V100", "1"),
        ("FPGA", "Alveo U200", None),
    ]


@pytest.mark.parametrize(("old", "new", "complaint"), WRONG, ids=[f"{new[:40]!r}" for _, new, _ in WRONG])
def test_a_mistake_is_one_line_with_the_line_of_the_file_place_value_and_what_is_allowed(tmp_path, old, new, complaint):
    assert old in GOOD
    path = _file(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(HardwareError) as raised:
        load_hardware(path)
    assert str(raised.value).startswith(f"{path}:{complaint}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("model", ["V100", "v100", "NVIDIA A100", "Tesla T4", "rtx3090", "RTX 3090", " H100 "])
def test_models_may_be_written_as_people_do(tmp_path, model):
    path = _file(tmp_path, GOOD.replace("model: V100", f"model: {model!r}"))
    assert load_hardware(path).chassis[0].devices[0].model == model
    jsonschema.validate(read_document(path.read_text(), "lab").value, hardware_schema())


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_schema_accepts_every_shipped_file(path: Path):
    jsonschema.Draft202012Validator.check_schema(hardware_schema())
    jsonschema.validate(read_document(path.read_text(), path.name).value, hardware_schema())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("model: V100", "model: MI300"),
        ("kind: GPU", "kind: GPPU"),
        ('port: "1"', "port: 1"),
        ("serial:", "sirial:"),
        ("memory_mib: 4096", "memory_mib: 4Gi"),
        ('"2": host-2', "two: host-2"),
        ("profile: instant\nhosts", "profile: fast\nhosts"),
    ],
)
def test_the_schema_refuses_what_it_can_say(old, new):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(read_document(GOOD.replace(old, new), "lab").value, hardware_schema())


def _mews(*arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "mews.harness.cli", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


def test_validate_takes_hardware_files_beside_scenarios(tmp_path):
    done = _mews("validate", str(FIXTURES / "demo.yaml"), str(FIXTURES.parents[1] / "scenarios" / "demo.yaml"))
    assert (done.returncode, done.stdout) == (0, "1 scenario and 1 hardware file valid\n")


@pytest.mark.parametrize("command", [["validate"], ["up", "--hardware"], ["serve", "--hardware"]])
def test_every_command_refuses_a_bad_hardware_file_with_exit_code_2_before_anything_starts(tmp_path, command):
    path = _file(tmp_path, GOOD.replace("model: V100", "model: MI300"))
    done = _mews(*command, str(path))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (f"{path}:14: chassis[0].devices[0].model: 'MI300': must be one of {', '.join(PROFILES)}\n")


def test_the_schemas_are_printed_by_name():
    assert json.loads(_mews("validate", "--schema", "hardware").stdout)["title"] == "Hardware"
    assert _mews("validate", "--schema", "scenario").stdout == _mews("validate", "--schema").stdout
    refused = _mews("validate", "--schema", "pod")
    assert (refused.returncode, refused.stderr) == (2, "--schema pod: must be one of scenario, hardware\n")
