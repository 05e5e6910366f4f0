"""Made inventories: reproducible, evenly spread, and loadable."""

from __future__ import annotations

from pathlib import Path

import pytest

from mews.emulator.fixture_tool import main
from mews.emulator.inventory_file import load_hardware


def made(path: Path, arguments: str) -> int:
    return main([*arguments.split(), "--output", str(path)])


def test_the_same_arguments_make_the_same_file_and_another_seed_another(tmp_path: Path):
    def text(seed: int) -> str:
        assert made(tmp_path / "x", f"--hosts 3 --gpus 12 --seed {seed}") == 0
        return (tmp_path / "x").read_text()

    assert text(7) == text(7) != text(8)


def test_gpus_are_spread_evenly_over_chassis_and_hosts(tmp_path: Path):
    path = tmp_path / "x.yaml"
    assert made(path, "--hosts 4 --chassis 2 --gpus 16 --free 4 --slots 9 --seed 7") == 0
    hardware = load_hardware(path)
    assert len(hardware.hosts) == 4
    assert [(spec.name, spec.slots, len(spec.devices)) for spec in hardware.chassis] == [("A", 9, 8), ("B", 9, 8)]
    devices = [device for spec in hardware.chassis for device in spec.devices]
    assert sum(device.port is None for device in devices) == 4
    for spec in hardware.chassis:
        ports = [device.port for device in spec.devices if device.port]
        assert max(map(ports.count, spec.ports)) - min(map(ports.count, spec.ports)) <= 1
    assert len({device.serial for device in devices}) == len({device.uuid for device in devices}) == 16


def test_pools_have_hosts_and_chassis_of_their_own(tmp_path: Path):
    path = tmp_path / "x.yaml"
    assert made(path, "--hosts 4 --chassis 2 --gpus 8 --pools 2") == 0
    a, b = load_hardware(path).chassis
    assert (a.pool, b.pool) == ("pool-0", "pool-1")
    assert not set(a.ports.values()) & set(b.ports.values())


@pytest.mark.parametrize(
    "arguments", ["--pools 3", "--free 99", "--gpus 12 --slots 4", "--hosts 0", "--output /no/such/x"]
)
def test_what_cannot_be_is_exit_code_2_and_one_line(arguments: str, capsys: pytest.CaptureFixture[str]):
    assert main(arguments.split()) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_large_inventory_is_made(tmp_path: Path):
    path = tmp_path / "x.yaml"
    assert made(path, "--hosts 40 --chassis 30 --gpus 960 --seed 1") == 0
    names = [spec.name for spec in load_hardware(path).chassis]
    assert (names[25], names[26]) == ("Z", "AA")
