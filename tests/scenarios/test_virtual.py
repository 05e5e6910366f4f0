"""Every shipped scenario in virtual time: it passes, and its journal is the same, byte for byte, in another process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mews.scenarios
from mews.harness.scenario.loader import find_scenarios, load_scenario

FOLDER = Path(mews.scenarios.__file__).parent
SHIPPED = [
    str(path.relative_to(FOLDER))
    for path in find_scenarios([FOLDER])
    if load_scenario(path).requires.time in (None, "virtual")
]
SEED = "7"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def runs() -> list[dict[str, list[str]]]:
    """The same seed in two processes at once, with different orders of hashing."""
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.scenarios.journals", SEED],
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hashing, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        )
        for hashing in ("1", "2")
    ]
    return [json.loads(child.communicate(timeout=600)[0]) for child in children]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_scenario_passes_and_its_journal_depends_on_the_seed_alone(name, runs):
    first, second = (run[name] for run in runs)
    assert first[:2] == ["passed", ""]
    assert first == second
