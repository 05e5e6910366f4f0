"""What is wrong in a hardware file is told in one line, with the line of the file, before anything starts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from mews.emulator.chassis.errors import HardwareError
from mews.emulator.hardware.gpu_profiles import PROFILES
from mews.emulator.inventory.schema import hardware_schema
from mews.emulator.inventory_file import load_hardware
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
SERVER = """\
apiVersion: mews/v1
kind: Hardware
metadata: {name: server}
hosts:
  - name: host-1
    pcie:
      roots: [{name: socket-0, numa_node: 0}, {name: socket-1, numa_node: 1}]
      switches: [{name: switch-0, below: socket-0}]
    links:
      - [X, NV2, SYS]
      - [NV2, X, SYS]
      - [SYS, SYS, X]
    devices:
      - {id: "0", uuid: GPU-0, model: V100-SXM2-16GB, below: switch-0}
      - {id: "1", uuid: GPU-1, model: V100-SXM2-16GB, below: socket-0}
      - {id: "2", uuid: GPU-2, model: V100-SXM2-16GB, below: socket-1}
      - {id: nic, uuid: NIC-0, kind: RDMA, below: switch-0, virtual_functions: 4}
chassis:
  - {name: A, ports: {"1": null}}
"""
WRONG_SERVERS = [
    (
        "roots: [{name: socket-0, numa_node: 0}, {name: socket-1, numa_node: 1}]",
        "roots: []",
        "hosts[0].pcie.roots: []: must be a list of 1 to 16",
    ),
    ("roots: [", "rots: [", "hosts[0].pcie.rots: unknown key; allowed: roots, switches"),
    ("numa_node: 1}", "numa_node: 99}", "hosts[0].pcie.roots[1].numa_node: 99: must be a whole number from -1 to 15"),
    ("numa_node: 1}", "numa: 1}", "hosts[0].pcie.roots[1].numa: unknown key; allowed: name, numa_node"),
    (
        "{name: switch-0, below: socket-0}",
        "{name: switch-0, below: socket-9}",
        "below: 'socket-9': must be a root complex or a switch before it in the list: socket-0, socket-1",
    ),
    (
        "{name: switch-0, below: socket-0}",
        "{name: switch-0, below: switch-0}",
        "hosts[0].pcie.switches[0].below: 'switch-0': must be a root complex or a switch before it",
    ),
    (
        "{name: switch-0, below: socket-0}",
        "{name: socket-1, below: socket-0}",
        "hosts[0].pcie: name 'socket-1' is listed twice",
    ),
    (
        "below: socket-1}",
        "below: socket-2}",
        "hosts[0].devices[2].below: 'socket-2': must be one of socket-0, socket-1, switch-0",
    ),
    (", below: socket-1}", "}", "hosts[0].devices[2].below: null: must be one of socket-0, socket-1, switch-0"),
    (
        "virtual_functions: 4",
        "virtual_functions: 128",
        "hosts[0].devices[3].virtual_functions: 128: must be a whole number from 0 to 127",
    ),
    (
        "below: socket-1}",
        "below: socket-1, virtual_functions: 1}",
        "hosts[0].devices[2].virtual_functions: is for kinds NIC, RDMA alone",
    ),
    ("- [SYS, SYS, X]", "- [SYS, SYS]", "hosts[0].links[2]: 2 words: must be one for each of the host's 3 GPUs"),
    ("      - [SYS, SYS, X]\n", "", "hosts[0].links: 2 rows: must be one for each of the host's 3 GPUs"),
    ("- [SYS, SYS, X]", "- [SYS, SYS, SYS]", "hosts[0].links[2][2]: 'SYS': must be X, the GPU itself"),
    ("- [SYS, SYS, X]", "- [PIX, SYS, X]", "hosts[0].links[2][0]: 'PIX': must be SYS, as in the PCIe tree, or NV<n>"),
    ("- [SYS, SYS, X]", "- [NV0, SYS, X]", "hosts[0].links[2][0]: 'NV0': must be SYS or NV<n>"),
    ("- [SYS, SYS, X]", "- [6, SYS, X]", "hosts[0].links[2][0]: 6: must be SYS or NV<n>"),
    ("- [NV2, X, SYS]", "- [NV1, X, SYS]", "hosts[0].links[1][0]: 1 NVLinks, and row 0 has 2; must be the same"),
    (
        "NV2, SYS]\n      - [NV2, X",
        "NV7, SYS]\n      - [NV7, X",
        "hosts[0].links: GPU 0 has 7 NVLinks; a Tesla V100-SXM2-16GB has 6",
    ),
    (
        "model: V100-SXM2-16GB, below: switch-0",
        "model: V100, below: switch-0",
        "hosts[0].links: GPU 0 has 2 NVLinks; a Tesla V100-PCIE-32GB has 0",
    ),
]
WRONG_LINKS = [
    ("cube-mesh", "hosts[0].links: 'cube-mesh': joins 8 GPUs, and the host has 3"),
    ("nvswitch", "hosts[0].links: 'nvswitch': joins GPUs that have it, and the host has Tesla V100-SXM2-16GB"),
    ("ring", "hosts[0].links: 'ring': must be one of cube-mesh, nvswitch, or a list of rows"),
]
LINK_ROWS = SERVER[SERVER.index("    links:") : SERVER.index("    devices:")]
FAULT_KINDS = "fault kind 'lying': must be one of "

WRONG = [
    (
        "memory_mib: 4096",
        "memory_mib: 4096, driver: 312.4.1",
        "6: hosts[0].driver: '312.4.1': must be a release such as 570.86.15 of a branch of 520, 525",
    ),
    ("memory_mib: 4096", "memory_mib: 4096, driver: 570.86", "6: hosts[0].driver: 570.86: must be a quoted driver"),
    ("model: V100", "model: MI300", "14: chassis[0].devices[0].model: 'MI300': must be one of A100, A100-SXM4-40GB"),
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
    ("uuid: FPGA-2", "uuid: GPU-1", "8: chassis: device uuid 'GPU-1' is listed twice; each must be unique"),
    ('id: "000200"', 'id: "000100"', "13: chassis[0].devices: device id '000100' is listed twice"),
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
    ("name: host-2", "name: host-1", "5: hosts: host name 'host-1' is listed twice"),
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


def test_a_server_says_what_is_in_it_and_how_it_is_joined(tmp_path):
    host = load_hardware(_file(tmp_path, SERVER)).hosts[0]
    jsonschema.validate(read_document(SERVER, "lab").value, hardware_schema())
    assert host.pcie.names() == ("socket-0", "socket-1", "switch-0")
    assert host.links.counts == ((0, 2, 0), (2, 0, 0), (0, 0, 0))
    assert [(device.below, device.virtual_functions) for device in host.devices][2:] == [
        ("socket-1", None),
        ("switch-0", 4),
    ]


@pytest.mark.parametrize(("old", "new", "complaint"), WRONG_SERVERS)
def test_what_is_wrong_inside_a_server_is_one_line(tmp_path, old, new, complaint):
    assert old in SERVER
    path = _file(tmp_path, SERVER.replace(old, new, 1))
    with pytest.raises(HardwareError) as raised:
        load_hardware(path)
    assert complaint in str(raised.value)
    assert str(raised.value).startswith(f"{path}:")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("name", "complaint"), WRONG_LINKS)
def test_a_name_for_links_needs_the_gpus_that_have_them(tmp_path, name, complaint):
    path = _file(tmp_path, SERVER.replace(LINK_ROWS, f"    links: {name}\n"))
    with pytest.raises(HardwareError) as raised:
        load_hardware(path)
    assert complaint in str(raised.value)


def test_a_place_in_a_tree_needs_a_tree(tmp_path):
    tree = SERVER[SERVER.index("    pcie:") : SERVER.index("    links:")]
    with pytest.raises(HardwareError, match=r"hosts\[0\]\.devices\[0\]\.below: needs a tree: give the host `pcie`"):
        load_hardware(_file(tmp_path, SERVER.replace(tree, "")))


def test_a_tree_without_room_for_its_devices_is_refused(tmp_path):
    more = "".join(f"      - {{id: f{n}, uuid: F-{n}, kind: FPGA, below: socket-1}}\n" for n in range(31))
    text = SERVER.replace("chassis:\n", f"{more}chassis:\n")
    with pytest.raises(HardwareError, match=r"hosts\[0\]\.pcie: socket-1: has 32 ports; at most 31"):
        load_hardware(_file(tmp_path, text))


def test_a_wrong_server_stops_a_command_with_exit_code_2(tmp_path):
    path = _file(tmp_path, SERVER.replace("below: socket-1}", "below: socket-2}"))
    done = _mews("validate", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"{path}:16: hosts[0].devices[2].below: 'socket-2': must be one of socket-0, socket-1, switch-0\n"
    )


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
