"""The replays of the measured runs differ in what the testbed differed in, and in nothing that could be tuned."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import mews.scenarios

RUNS = sorted((Path(mews.scenarios.__file__).parent / "testbed").glob("*.yaml"))
PER_WORKLOAD = ("trace", "types")
"""What belongs to a workload."""


def documents() -> dict[str, dict]:
    return {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in RUNS}


def test_all_replays_have_the_same_driver_profile_and_length_of_jobs() -> None:
    found = documents()
    assert len(found) == 7
    for workload in ("w1", "w3"):
        mine = [each["workload"] for name, each in found.items() if name.startswith(workload)]
        for key in PER_WORKLOAD:
            assert all(each[key] == mine[0][key] for each in mine)
    left = [{k: v for k, v in each["workload"].items() if k not in (*PER_WORKLOAD, "pod")} for each in found.values()]
    assert all(each == left[0] for each in left)
    assert left[0] == {"duration": 300.1, "durationPerGpu": 1.05, "gate": {"pending": None, "every": "1s"}}
    for key in ("requires", "timeout", "steps", "bounds"):
        assert all(each[key] == found["w1-pool"][key] for each in found.values()), key


@pytest.mark.parametrize("kind", ["pool", "fixed"])
def test_the_stack_is_the_same_in_all_runs_of_a_kind_and_has_no_number_in_it(kind: str) -> None:
    stacks = [each["stack"] for name, each in documents().items() if name.endswith("pool") == (kind == "pool")]
    assert all(stack == stacks[0] for stack in stacks)
    assert not any(character.isdigit() for character in str(stacks[0]))
