"""Pods with claims on a cluster that is brought up, with our scheduler and controllers and with Kubernetes' own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mews.kube.scheduling.messages import not_found
from tests.kube.emulated.apiserver.real_parts import missing

PROGRAM = Path(__file__).with_name("claims_program.py")
START = "0/3 nodes are available: "
MISSING = missing("kube-scheduler", "kube-controller-manager")


@pytest.mark.wall
@pytest.mark.parametrize(
    "whose", ["ours", pytest.param("real", marks=pytest.mark.skipif(bool(MISSING), reason=MISSING or "-"))]
)
def test_sets_with_claims_run_and_pods_without_theirs_do_not(whose: str) -> None:
    words = ["envtest", "--scheduler", whose, "--controllers", whose, "--", sys.executable, str(PROGRAM)]
    done = subprocess.run([sys.executable, "-m", "mews.harness.cli", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "folders": ["default_d-db-0", "default_d-db-1"],
        "refused": {
            "lost": f"{START}{not_found('persistentvolumeclaim', 'nowhere')}. not found",
            "unbound": f"{START}pod has unbound immediate PersistentVolumeClaims. not found",
        },
    }
