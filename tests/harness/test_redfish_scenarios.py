"""Life-cycle scenarios with Redfish as Reconfig-Mgr's wire, in virtual and in wall-clock time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIFE = ("03-unattached-gpu", "14-drop-after-effect", "16-management-reboot", "28-chassis-power-loss")


def run(*arguments: str, hash_seed: str = "0") -> list[dict]:
    """What ``mews run --dialect redfish --json -`` says."""
    command = [sys.executable, "-m", "mews.harness.cli", "run", *arguments, "--dialect", "redfish", "--json", "-"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "src")}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=ROOT, env=environment)
    return json.loads(ended.stdout)


def test_scenarios_pass_over_redfish_in_virtual_time():
    results = run(*(f"scenarios/{name}.yaml" for name in LIFE))
    assert {result["path"]: result["verdict"] for result in results} == {
        result["path"]: "passed" for result in results
    }, results
    assert len(results) == len(LIFE)


def test_a_scenario_over_redfish_has_one_journal_whatever_the_hash_seed(tmp_path):
    for seed in ("1", "2"):
        run("scenarios/03-unattached-gpu.yaml", "--journal", str(tmp_path / seed), hash_seed=seed)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


@pytest.mark.wall
def test_a_scenario_passes_over_redfish_in_wall_clock_time():
    (result,) = run("scenarios/03-unattached-gpu.yaml", "--time", "wall", "--speed", "10")
    assert result["verdict"] == "passed", result
