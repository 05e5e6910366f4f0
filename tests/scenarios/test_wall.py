"""Virtual and wall-clock time give the same verdicts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import mews.scenarios

FOLDER = Path(mews.scenarios.__file__).parent
NAMES = (
    "02-gpus-at-hand.yaml",
    "03-unattached-gpu.yaml",
    "04-multi-container.yaml",
    "13-lying-boolean.yaml",
    "demo.yaml",
    "kubelet/03-plugin-restart.yaml",
    "kubelet/05-over-ask.yaml",
    "kubelet/08-unhealthy-free.yaml",
)
IMPOSSIBLE = """# A pod cannot succeed before it is there.
apiVersion: mews/v1
kind: Scenario
metadata: {name: impossible}
hardware: demo
steps:
  - wait: {pod: {name: nobody, phase: Succeeded}}
    timeout: 3s
"""


def verdicts(paths, *options):
    argv = [sys.executable, "-m", "mews.harness.cli", "run", *map(str, paths), *options, "--json", "-"]
    done = subprocess.run(argv, capture_output=True, timeout=400, check=False)
    assert done.stdout, done.stderr.decode()
    return done.returncode, {result["scenario"]: result["verdict"] for result in json.loads(done.stdout)}


@pytest.mark.wall
def test_virtual_and_wall_clock_time_give_the_same_verdicts(tmp_path):
    impossible = tmp_path / "impossible.yaml"
    impossible.write_text(IMPOSSIBLE)
    paths = [*(FOLDER / name for name in NAMES), impossible]
    code, virtual = verdicts(paths)
    wall_code, wall = verdicts(paths, "--time", "wall", "--speed", "20")
    assert wall == virtual
    assert sorted(set(virtual.values())) == ["failed", "passed"]
    assert code == wall_code == 1
