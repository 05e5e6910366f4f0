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
    """The same seed in two processes at once, with different hashing, and in different orders: a scenario that is
    among the first in one of them is late in the other, so what a process keeps from one world for the next shows."""
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.scenarios.journals", SEED, order],
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hashing, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        )
        for hashing, order in (("1", "forward"), ("2", "backward"))
    ]
    return [json.loads(child.communicate(timeout=600)[0]) for child in children]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_scenario_passes_and_its_journal_depends_on_the_seed_alone(name, runs):
    first, second = (run[name] for run in runs)
    assert first[:2] == ["passed", ""]
    assert first == second


SURPRISES = {
    "17-concurrent-editor.yaml",
    "31-surprise-removal.yaml",
    "33-ignorable-errors.yaml",
    "38-detached-by-hand.yaml",
    "47-mig-life-cycle.yaml",
    "gpushare/device-plugin-1929-all-slices-unhealthy.yaml",
    "gpushare/extender-191-cards-changed.yaml",
    "koordinator/05-unhealthy.yaml",
    "dra/22-evicted-by-a-rule.yaml",
    "dra/23-xid-taints-a-gpu.yaml",
    "fabric/14-dies-on-its-way.yaml",
    "fabric/18-link-comes-back.yaml",
    "remediation/01-xid-is-mended.yaml",
    "remediation/02-lost-board.yaml",
    "remediation/03-shared-gpu.yaml",
    "remediation/04-part-and-budget.yaml",
    "remediation/05-one-node-at-a-time.yaml",
    "remediation/06-elastic-job.yaml",
    "testbed/w1-pool.yaml",
    "testbed/w3-pool.yaml",
}
"""Those in which a fault, another editor or a removal by surprise takes a GPU from its host, or makes it ill."""


@pytest.mark.parametrize("name", SHIPPED)
def test_the_kernel_logs_hold_an_xid_where_something_takes_a_gpu_by_surprise_and_nowhere_else(name, runs):
    assert (runs[0][name][3] > 0) == (name in SURPRISES)


WITHOUT_PODS = {
    "29-hot-plug-layers.yaml",
    "30-operator-detach-attach.yaml",
    "31-surprise-removal.yaml",
    "38-detached-by-hand.yaml",
}


@pytest.mark.parametrize(
    "name", [name for name in SHIPPED if not name.startswith(("elastic/", "kubelet/", "language/"))]
)
def test_the_bound_of_what_fits_ends_before_the_run(name, runs):
    bound_s, length_s = runs[0][name][4:]
    assert bound_s < length_s if name not in WITHOUT_PODS else bound_s is None
