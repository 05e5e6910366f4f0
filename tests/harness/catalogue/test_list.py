"""`mews list`, `mews run --list`, and files by their names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mews.dialects import DIALECTS
from mews.emulator.chassis.faults.registry import CHASSIS_FAULTS
from mews.emulator.chassis.faults.spec import parse_fault
from mews.emulator.hardware.gpu_profiles import PROFILES
from mews.emulator.host.faults.registry import HOST_FAULTS
from mews.harness.api_faults.registry import API_FAULTS
from mews.harness.backends import BACKENDS, backend_of
from mews.harness.catalogue.entry import first_sentence
from mews.harness.catalogue.files import existing, existing_file, file_of, shipped_files
from mews.harness.catalogue.kinds import KINDS, entries
from mews.harness.cli import exit_code
from mews.harness.errors import BadInputError
from mews.harness.invariants.judge import OWN
from mews.harness.scenario.actions import ACTIONS
from mews.harness.scenario.expectations import Check
from mews.harness.scenario.loader import find_scenarios
from mews.harness.systems import all_experiments, all_systems
from mews.kube.emulated.kubelet.images import load_images
from mews.kube.emulated.kubelet.node import VERSION
from mews.systems import registry

ROOT = Path(__file__).parents[3]


def listed(capsys, *words: str) -> str:
    assert exit_code(["list", *words]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return str(shown.out)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_a_line_each_with_a_summary_and_the_same_as_json(kind, capsys):
    rows = json.loads(listed(capsys, kind, "--json"))
    lines = listed(capsys, kind).splitlines()
    assert [line.split("  ")[0].strip() for line in lines] == [row["name"] for row in rows]
    assert all(len(row["summary"]) > 3 and "\n" not in row["summary"] for row in rows), rows
    assert all(row["summary"] in line for row, line in zip(rows, lines, strict=True))


def test_without_a_kind_the_kinds_are_listed(capsys):
    assert [line.split()[0] for line in listed(capsys).splitlines()] == list(KINDS)


def names(kind: str) -> list[str]:
    return [each.name for each in entries(kind)]


def test_what_there_is_is_listed_and_nothing_else():
    assert {str(ROOT / "scenarios" / f"{name}.yaml") for name in names("scenarios")} == {
        str(path) for path in find_scenarios([ROOT / "scenarios"])
    }
    assert set(names("hardware")) == {path.stem for path in (ROOT / "fixtures" / "hardware").iterdir()}
    brought = [name for system in all_systems() for name in system.images()]
    assert sorted(names("images")) == sorted([*load_images().names(), *brought])
    assert names("faults") == [*CHASSIS_FAULTS.names(), *HOST_FAULTS.names(), *API_FAULTS.names()]
    assert names("steps") == [name.rstrip("_") for name in ACTIONS]
    assert names("checks") == list(Check.model_fields)
    assert {str(number) for number in OWN} < set(names("invariants"))
    assert names("systems") == [*registry.names(), "none"]
    assert names("experiments") == list(all_experiments())
    assert names("dialects") == list(DIALECTS.names())
    assert [(each.name, each.of) for each in entries("clusters")] == [
        (name, " or ".join(backend_of(name).times)) for name in BACKENDS
    ]
    assert [each.name for each in entries("profiles") if each.of == "board"] == list(PROFILES)


def test_the_emulated_version_of_kubernetes_is_listed(capsys):
    (embedded,) = [
        line for line in listed(capsys, "clusters", "kubernetes").splitlines() if line.startswith("embedded")
    ]
    assert VERSION in embedded


def test_a_word_is_looked_for_in_name_owner_and_summary_in_capitals_or_not(capsys):
    assert {row["of"] for row in json.loads(listed(capsys, "faults", "host", "--json"))} >= {"host"}
    assert [row["name"] for row in json.loads(listed(capsys, "faults", "XID 79", "--json"))] == ["fallen-off-bus"]
    assert "demo" in [line.split()[0] for line in listed(capsys, "scenarios", "moves").splitlines()]


@pytest.mark.parametrize("name", HOST_FAULTS.ours())
def test_the_command_of_a_hosts_fault_is_one_that_it_takes(name):
    (fault,) = [each for each in entries("faults") if each.name == name]
    head, *words = fault.use.split(f" {name}")[1].split() or [""]
    given = [word for word in (head, *words) if word and not word.startswith("[")]
    assert fault.use.startswith(f"mews fault add --host NAME {name}")
    spec = {key: 1.0 if value == "SECONDS" else value.split("|")[0] for key, value in (w.split("=") for w in given)}
    parse_fault({"kind": name, **spec}, HOST_FAULTS)


def test_run_lists_the_scenarios_and_those_that_a_word_selects(capsys):
    assert exit_code(["run", "--list", "testbed"]) == 0
    shown = capsys.readouterr().out
    assert shown == listed(capsys, "scenarios", "testbed")
    assert all(line.startswith("testbed/w") for line in shown.splitlines())


def test_a_folder_of_scenarios_goes_by_its_name(tmp_path, monkeypatch):
    assert file_of("scenario", Path("testbed")) == ROOT / "scenarios" / "testbed"
    (tmp_path / "testbed").mkdir()
    monkeypatch.chdir(tmp_path)
    assert file_of("scenario", Path("testbed")) == Path("testbed")  # one's own comes first
    assert file_of("scenario", Path("../fixtures")) == Path("../fixtures")


def test_the_whole_folder_is_checked_by_its_name_and_an_inventory_by_its(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert exit_code(["validate", "testbed", "two-pools"]) == 0
    assert capsys.readouterr().out == "7 scenarios and 1 hardware file valid\n"


def test_a_name_that_nothing_has_is_told_the_nearest():
    with pytest.raises(BadInputError, match=r"^--hardware two-pol: no such file.* \(did you mean two-pools\?\);"):
        existing("hardware", Path("two-pol"), "--hardware")
    with pytest.raises(
        BadInputError, match=r"^--scenario testbed: is a folder: name one of them, such as testbed/w1-0-8"
    ):
        existing_file("scenario", Path("testbed"), "--scenario")
    assert existing_file("hardware", Path("demo"), "--hardware") == shipped_files("hardware")["demo"]


def test_a_summary_is_the_first_sentence():
    assert first_sentence("One ``thing``\nhappens. Another too.\n\nMore.") == "One `thing` happens"
    assert first_sentence("Version 1.34 of it.") == "Version 1.34 of it"
