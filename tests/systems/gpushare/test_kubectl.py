"""``kubectl inspect-gpushare`` as kubectl runs it: a plugin on PATH that is installed with the package."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

MEWS = [sys.executable, "-m", "mews.harness.cli"]
BIN = Path(sys.executable).parent
KUBECTL = shutil.which("kubectl") or shutil.which("kubectl", path=os.environ.get("KUBEBUILDER_ASSETS", ""))
pytestmark = [
    pytest.mark.wall,
    pytest.mark.skipif(KUBECTL is None, reason="kubectl is neither on PATH nor in KUBEBUILDER_ASSETS"),
]


def kubectl(*words, **environment):
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(KUBECTL), *words],
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_kubectl_finds_the_plugin_under_its_documented_name():
    listed = kubectl("plugin", "list", "--name-only")
    assert "kubectl-inspect_gpushare" in listed.stdout.splitlines()
    answer = kubectl("inspect-gpushare", "--nonsense")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("kubectl inspect-gpushare: --nonsense: must be one of -d")
    # The documents name the command that there is.
    page = (Path(__file__).parents[3] / "docs" / "gpushare.md").read_text()
    assert "\nkubectl inspect-gpushare\n" in page
    assert kubectl("inspect", "gpushare").returncode != 0
    assert "kubectl inspect gpushare" not in page


def test_it_prints_the_table_of_a_cluster_of_ours(tmp_path):
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as runtime:
        environment = {**os.environ, "XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": runtime}
        command = [*MEWS, "up", "--hardware", "seed-001", "--stack", "gpushare", "--dir", str(tmp_path), "--json"]
        up = subprocess.Popen(
            [*command, "--wait", "devices", "--speed", "10"], env=environment, stdout=subprocess.PIPE, text=True
        )
        try:
            ready = json.loads(up.stdout.readline())
            shown = kubectl("inspect-gpushare", KUBECONFIG=ready["kubeconfig"])
            named = kubectl("inspect-gpushare", "--kubeconfig", ready["kubeconfig"], "-d", "n1")
        finally:
            up.terminate()
            up.communicate(timeout=60)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[0].split()[:2] == ["NAME", "IPADDRESS"]
    assert "Allocated/Total GPU Memory In Cluster:\n0/" in shown.stdout
    assert named.returncode == 0
    assert "NAME:       n1" in named.stdout
