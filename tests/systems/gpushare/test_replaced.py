"""Somebody else's extender and device plugin in the place of ours, in the same scenarios.

The public project's binaries are run where they are (``tests.programs``), in every combination with ours. A small Go
extender of the tests (``goextender``) shows that the way is there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.report.run import Run
from mews.harness.scenario.loader import parse_scenario
from tests.emulator.nvml.gobuild import built
from tests.programs import foreign_program

pytestmark = pytest.mark.wall

FOLDER = Path(__file__).parents[3] / "scenarios" / "gpushare"
COMPLAINTS = sorted(FOLDER.glob("extender-*.yaml"))
OF_PLUGINS = sorted(FOLDER.glob("device-plugin-*.yaml"))
EXTENDER, PLUGIN = "gpushare-extender", "gpushare-device-plugin"
PUBLIC: Mapping[str, tuple[str, Sequence[str], Mapping[str, str]]] = {
    EXTENDER: ("gpushare/gpushare-sche-extender", (), {"PORT": "{port}"}),
    PLUGIN: ("gpushare/gpushare-device-plugin", ("-logtostderr", "-v=5", "-memory-unit=GiB"), {}),
}
"""Component -> program (see ``tests.programs``), its options and variables."""
MIXES = ((EXTENDER,), (PLUGIN,), (EXTENDER, PLUGIN))

FAILS: Mapping[str, Mapping[str, str]] = {
    EXTENDER: {
        "extender-191-cards-changed": "gets the card that nobody uses",
        "extender-219-unequal-gpus": "gets the larger",
    },
    PLUGIN: {
        "extender-143-two-containers": "all of them run on GPU0",
        "extender-191-cards-changed": "box announces 32",
        "extender-219-unequal-gpus": "box announces 30",
        "extender-76-51-limit-not-enforced": "both run on the same GPU",
        "device-plugin-1929-all-slices-unhealthy": "all its slices are unhealthy",
    },
}
"""Component -> complaint -> the step at which the public program (extender c0b6141, plugin 45fb8b8) still has the fault
that its users report. 76 and 51 complain of what nothing enforces; there the plugin names no UUID. With both public
programs the plugin's comes first."""


def complaint(path: Path) -> str:
    """What the scenario is about, in its first line."""
    return path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def run(path: Path, programs: Mapping[str, Mapping[str, Any]], *, patience: str | None = None) -> Run:
    """The scenario with those programs in components' places; ``patience``: the most that a step is waited for."""
    document: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    for step in document["steps"] if patience else ():
        if "timeout" in step:
            step["timeout"] = patience
    document["stack"]["replace"] = {"gpushare": {name: dict(program) for name, program in programs.items()}}
    scenario = parse_scenario(yaml.safe_dump(document), path)
    return Engine(RunOptions(time="wall", speed=10.0)).run(scenario)


def public(*components: str) -> Mapping[str, Mapping[str, Any]]:
    """Those components' public programs; the test is skipped without them."""
    return {
        component: {"process": [str(foreign_program(name)), *options], "env": dict(env)}
        for component, (name, options, env) in PUBLIC.items()
        if component in components
    }


def with_go_extender(**env: str) -> Mapping[str, Mapping[str, Any]]:
    """The extender of the tests."""
    program = str(built(Path(__file__).parent / "goextender"))
    return {EXTENDER: {"process": [program], "env": {"PORT": "{port}", **env}}}


def test_a_go_extender_takes_the_place_of_ours() -> None:
    (path,) = FOLDER.glob("extender-218-*.yaml")
    ended = run(path, with_go_extender())
    assert ended.result.verdict == "passed", ended.result.reason


def test_one_with_a_known_fault_is_found_out_by_the_scenario_of_that_complaint() -> None:
    (path,) = FOLDER.glob("extender-218-*.yaml")
    ended = run(path, with_go_extender(FAULT="218"), patience="20s")
    assert ended.result.verdict == "failed"
    assert complaint(path).startswith("gpushare-scheduler-extender #218: ")
    assert "FailedScheduling" in str(ended.result.reason)


@pytest.mark.parametrize("components", MIXES, ids="+".join)
def test_the_public_programs_serve_pods_in_every_combination_with_ours(components: Sequence[str]) -> None:
    ended = run(Path(__file__).parent / "mixed.yaml", public(*components))
    assert ended.result.verdict == "passed", ended.result.report
    assert {line["invariant"] for line in ended.result.known} <= ({42} if PLUGIN in components else set())


@pytest.mark.nightly
@pytest.mark.parametrize("path", [*COMPLAINTS, *OF_PLUGINS], ids=lambda path: path.stem)
@pytest.mark.parametrize("components", MIXES, ids="+".join)
def test_the_public_programs_are_judged_by_the_complaints_of_their_users(components: Sequence[str], path: Path) -> None:
    faulty = [name for name in (PLUGIN, EXTENDER) if name in components and path.stem in FAILS[name]]
    ended = run(path, public(*components), patience="20s" if faulty else None)
    assert ended.result.verdict == ("failed" if faulty else "passed"), ended.result.report
    assert not faulty or FAILS[faulty[0]][path.stem] in str(ended.result.reason)


def test_every_complaint_names_its_number() -> None:
    for path in FOLDER.glob("*-[0-9]*-*.yaml"):
        number = re.search(r"-(\d+)-", path.stem)
        assert number is not None
        if path.stem.startswith(("extender-", "device-plugin-")):
            assert f"#{number[1]}" in complaint(path)
