"""Shipped scenarios, unchanged, on the real etcd and kube-apiserver: one control plane for all of them."""

from pathlib import Path

import pytest

from mews.harness.catalogue.files import shipped
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario

pytestmark = pytest.mark.wall

DOCS = Path(__file__).parents[3] / "docs" / "bring-your-own"
SHIPPED = (
    "demo",
    "13-lying-boolean",
    "20-reconfig-manager-crash",
    "23-kubelet-restart",
    "24-scheduler-restart",
    "elastic/10-deleted-while-scaling",
    "elastic/11-bad-jobs",
    "kubelet/12-probes",
    "gpushare/02-bind",
    "gpushare/10-two-replicas",
)
AT_NIGHT = (
    "gpushare/01-three-nodes",
    "kubelet/09-succeeded-then-restart",
    "kubelet/05-over-ask",
    "25-fpga-pool",
    "04-multi-container",
    "01-cpu-pod",
    "02-gpus-at-hand",
    "03-unattached-gpu",
    "07-race-for-the-last",
    "08-two-at-once",
    "12-stale-event",
    "14-drop-after-effect",
    "17-concurrent-editor",
    "kubelet/02-kubelet-restart",
    "kubelet/08-unhealthy-free",
    "kubelet/10-deleted-while-down",
    "gpushare/03-developers",
    "gpushare/04-inference",
    "gpushare/extender-191-cards-changed",
)
"""Not elastic/08: its refusal lasts for the one second that a killed process is given, and the operator must have asked
within it; virtual time decides that, a loaded machine does not."""
YOURS = sorted(path for path in DOCS.glob("*.yaml") if "kind: Scenario" in path.read_text())


def on_control_plane(path, shared):
    return Engine(RunOptions("control-plane", "wall", speed=10.0), session=shared).run(load_scenario(path)).result


@pytest.mark.parametrize("name", [*SHIPPED, *(pytest.param(name, marks=pytest.mark.nightly) for name in AT_NIGHT)])
def test_a_shipped_scenario_passes_unchanged(name, shared):
    result = on_control_plane(shipped("scenario", name), shared)
    assert (result.verdict, result.report, result.violations) == ("passed", "", ())
    assert result.cluster == "control-plane"


@pytest.mark.parametrize("path", YOURS, ids=[path.stem for path in YOURS])
def test_what_the_user_brings_along_takes_our_components_place(path, shared):
    result = on_control_plane(path, shared)
    assert (result.verdict, result.report) == ("passed", "")


def test_a_program_of_the_users_that_ends_fails_the_run_with_its_last_line(shared, tmp_path):
    (tmp_path / "mine.py").write_text("raise SystemExit('cannot read my config')\n")
    replaced = "stack: {replace: {scheduler: {process: ['{python}', mine.py]}}}"
    head = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: yours}\nhardware: demo\n"
    wait = "- wait: {pod: {name: a, phase: Running}}\n  timeout: 10m\n"
    (tmp_path / "one.yaml").write_text(f"{head}{replaced}\nsteps:\n{wait}")
    result = on_control_plane(tmp_path / "one.yaml", shared)
    assert result.verdict == "failed"
    assert "scheduler (stack.replace.scheduler): python exited with code 1: cannot read my config" in result.reason
