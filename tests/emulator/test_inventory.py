"""Hardware files: what they become, and what is told about bad ones."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from mews.emulator.chassis.errors import HardwareError
from mews.emulator.hardware.inventory import HostSpec
from mews.emulator.inventory.reading import parse_hardware
from mews.emulator.inventory_file import load_hardware

FIXTURES = Path(__file__).parents[2] / "fixtures" / "hardware"
GOOD = {
    "apiVersion": "mews/v1",
    "kind": "Hardware",
    "metadata": {"name": "x"},
    "hosts": [{"name": "h1"}, {"name": "h2", "cpus": 8}],
    "chassis": [
        {
            "name": "A",
            "slots": 2,
            "ports": {"1": "h1", "2": None},
            "devices": [{"id": "01", "uuid": "GPU-1", "port": "1"}, {"id": "02", "uuid": "GPU-2"}],
        }
    ],
}


def changed(*path_and_value):
    *path, last, value = path_and_value
    document = copy.deepcopy(GOOD)
    at = document
    for key in path:
        at = at[key]
    at[last] = value
    return document


def test_defaults_are_filled_in():
    hardware = parse_hardware(GOOD, "x.yaml")
    assert hardware.hosts == (HostSpec("h1", 192, 1_048_576), HostSpec("h2", 8, 1_048_576))
    chassis = hardware.chassis[0]
    assert (chassis.index, chassis.pool, chassis.profile.name) == (0, "pool-0", "instant")
    assert [device.port for device in chassis.devices] == ["1", None]
    assert chassis.gpuid("01") == "0-01"


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_file_loads_and_says_what_it_is(path: Path):
    hardware = load_hardware(path)
    assert hardware.name == path.stem
    assert path.read_text().startswith("# ")


def test_the_demo_is_twelve_gpus_on_three_hosts_with_four_each():
    hardware = load_hardware(FIXTURES / "demo.yaml")
    (chassis,) = hardware.chassis
    assert (chassis.name, chassis.slots, dict(chassis.ports)) == (
        "A",
        12,
        {"1": "host-1", "2": "host-2", "3": "host-3"},
    )
    assert [device.port for device in chassis.devices] == ["1"] * 4 + ["2"] * 4 + ["3"] * 4


@pytest.mark.parametrize(("name", "first"), [("testbed", 4), ("testbed-0-8", 0), ("testbed-2-6", 6)])
def test_the_testbeds_are_two_falcons_with_four_v100_each(name: str, first: int):
    hardware = load_hardware(FIXTURES / f"{name}.yaml")
    assert [(spec.name, spec.index, spec.slots, spec.profile.name) for spec in hardware.chassis] == [
        ("A", 0, 4, "falcon-4005"),
        ("B", 1, 4, "falcon-4005"),
    ]
    for spec in hardware.chassis:
        assert [device.id for device in spec.devices] == ["000500", "000C00", "001300", "001800"]
        assert dict(spec.ports) == {"48": "host-1", "0": "host-2"}
    attached = [device.port for spec in hardware.chassis for device in spec.devices]
    assert (attached.count("48"), attached.count("0")) == (first, 8 - first)
    assert [(host.cpus, host.driver) for host in hardware.hosts] == [(192, "520.61.05")] * 2


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "x.yaml: file: []: must be a mapping with apiVersion, kind"),
        (changed("apiVersion", "v2"), "x.yaml: apiVersion: 'v2': must be mews/v1"),
        (changed("kind", "Pod"), "x.yaml: kind: 'Pod': must be Hardware"),
        (changed("chasis", []), "x.yaml: chasis: unknown key; allowed: apiVersion"),
        (changed("chassis", []), "x.yaml: chassis: []: must be a list of at least one chassis"),
        (changed("hosts", 0, "cpus", 0), "x.yaml: hosts[0].cpus: 0: must be a whole number from 1 to 4096"),
        (changed("hosts", 1, "name", "h1"), "x.yaml: hosts: host name 'h1' is listed twice"),
        (changed("profile", "fast"), "x.yaml: profile: profile 'fast': must be one of instant, falcon-4005"),
        (changed("chassis", 0, "slots", 1), "x.yaml: chassis[0].devices: "),
        (changed("chassis", 0, "ports", {"1": "h9"}), "x.yaml: chassis[0].ports.1: 'h9': must be null or one of"),
        (changed("chassis", 0, "ports", {"one": "h1"}), "x.yaml: chassis[0].ports.one: 'one': must be a port number"),
        (changed("chassis", 0, "devices", 0, "id", 100), "x.yaml: chassis[0].devices[0].id: 100: must be a quoted"),
        (changed("chassis", 0, "devices", 0, "port", "2"), "x.yaml: chassis[0].devices[0].port: '2': must be null or"),
        (changed("chassis", 0, "devices", 1, "id", "01"), "x.yaml: chassis[0].devices: device id '01' is listed twice"),
        (changed("chassis", 0, "devices", 1, "uuid", "GPU-1"), "x.yaml: chassis: device uuid 'GPU-1' is listed twice"),
        (changed("profile", {"attach": -1}), "latency -1: must be seconds >= 0"),
        (changed("profile", {"quirks": 3}), "quirks 3: must be a list of fault specs"),
    ],
)
def test_a_bad_file_is_told_in_one_line_with_place_value_and_what_is_allowed(document, message: str):
    with pytest.raises(HardwareError) as caught:
        parse_hardware(document, "x.yaml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_host_cannot_be_in_two_pools():
    second = {**copy.deepcopy(GOOD["chassis"][0]), "name": "B", "pool": "pool-1", "index": 1, "devices": []}
    with pytest.raises(HardwareError, match="host 'h1' is cabled to pools pool-0 and pool-1"):
        parse_hardware(changed("chassis", [GOOD["chassis"][0], second]), "x.yaml")


@pytest.mark.parametrize("text", ["a: [", "\t", "a: 'x", "!!python/object:os.x {}", "- " * 20_000, "\x00"])
def test_a_file_that_is_no_yaml_is_told_in_one_line(tmp_path: Path, text: str):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(HardwareError) as caught:
        load_hardware(path)
    assert str(caught.value).startswith(f"{path}:")
    assert ": not YAML: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_told_in_one_line(tmp_path: Path):
    with pytest.raises(HardwareError, match="cannot be read: No such file"):
        load_hardware(tmp_path / "none.yaml")


def test_a_start_file_of_the_published_simulator_is_one_chassis(tmp_path: Path):
    path = tmp_path / "devices.csv"
    path.write_text("gpu-1,1\ngpu-2,2\n\ngpu-3,\n")
    (chassis,) = load_hardware(path).chassis
    assert [(device.id, device.port) for device in chassis.devices] == [("gpu-1", "1"), ("gpu-2", "2"), ("gpu-3", None)]
    assert dict(chassis.ports) == {"1": "host-1", "2": "host-2"}
    assert load_hardware(path).chassis[0].devices == chassis.devices
    path.write_text("gpu-1\n")
    with pytest.raises(HardwareError, match="line 1: 'gpu-1': must be devid,hostport"):
        load_hardware(path)


def test_a_spelt_out_profile_has_its_latencies_and_quirks():
    profile = {"attach": {"uniform": [1, 2]}, "quirks": [{"kind": "slow-operation", "count": None}]}
    made = parse_hardware(changed("profile", profile), "x.yaml").chassis[0].profile
    assert (made.name, made.quirks[0]["kind"]) == ("custom", "slow-operation")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "not YAML: nested too deeply: at most 100 levels"),
        ("a: &x [*x]", "not YAML: nested too deeply: the anchor 'x' contains itself"),
        ("a: &x [1, 2]\n" + "b: [" + "*x, " * 400_000 + "]", "not YAML: too large: more than 1000000 values"),
    ],
)
def test_a_file_that_would_exhaust_the_machine_is_refused(tmp_path, text, words):
    file = tmp_path / "hardware.yaml"
    file.write_text(text)
    with pytest.raises(HardwareError, match=words):
        load_hardware(file)
