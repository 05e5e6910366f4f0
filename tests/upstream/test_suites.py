"""Suites and programs of others before `mews envtest` and `mews up`, unmodified."""

import re
import shutil
import subprocess
import sys

import pytest

from mews.harness.clusters.programs.finding import find
from tests.upstream import building
from tests.upstream.building import HERE, NotBuiltError
from tests.upstream.up import cluster

pytestmark = pytest.mark.upstream

ENVTEST = [sys.executable, "-m", "mews.harness.cli", "envtest"]
CLUSTERS = ["embedded", "control-plane"]


def had(make):
    """What can be built here; else the test is skipped with the reason."""
    try:
        return make()
    except NotBuiltError as error:
        pytest.skip(str(error))


@pytest.fixture(params=CLUSTERS)
def on(request):
    """``--cluster`` and its value."""
    if request.param == "control-plane" and find("kube-apiserver") is None:
        pytest.skip("kube-apiserver is neither in KUBEBUILDER_ASSETS nor on PATH")
    return ["--cluster", request.param]


def counts(text):
    """(passed, failed) of ginkgo's last line."""
    found = re.search(r"(\d+) Passed \| (\d+) Failed", text)
    assert found is not None, text[-3000:]
    return int(found[1]), int(found[2])


@pytest.mark.parametrize(("suite", "least"), [(building.CLIENT, 279), (building.CACHE, 276)], ids=["client", "cache"])
def test_controller_runtimes_own_suite_passes(suite, least, on):
    program, folder = had(suite.built), had(suite.folder)
    argv = [*ENVTEST, "--bare", *on, "--", str(program), "-ginkgo.no-color"]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True)
    passed, failed = counts(done.stdout)
    assert (done.returncode, failed) == (0, 0), done.stdout[-8000:]
    assert passed >= least


def test_a_suite_in_kubebuilders_layout_runs_unmodified(on):
    program = had(building.OPERATOR.built)
    argv = [*ENVTEST, *on, "--", str(program), "-ginkgo.no-color"]
    folder = HERE / "operator" / "internal" / "controller"
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True)
    assert (done.returncode, *counts(done.stdout)) == (0, 3, 0), done.stdout[-8000:]


def test_helm_installs_upgrades_rolls_back_tests_and_uninstalls(tmp_path):
    helm = had(building.helm)
    chart = shutil.copytree(HERE / "chart", tmp_path / "chart")
    with cluster(["--stack", "none"]) as ready:
        env = {"KUBECONFIG": ready["kubeconfig"], "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}

        def run(*words, code=0):
            done = subprocess.run([helm, *words], env=env, capture_output=True, text=True, timeout=300)
            assert done.returncode == code, (words, done.stdout, done.stderr)
            return done.stdout

        def colour():
            return re.search(r"colour: (\w+)", run("get", "manifest", "one"))[1]

        assert "STATUS: deployed" in run("install", "one", str(chart), "--wait", "--timeout", "120s")
        assert "Phase:          Succeeded" in run("test", "one", "--timeout", "120s")
        assert "REVISION: 2" in run("upgrade", "one", str(chart), "--set", "colour=red,replicas=2", "--wait")
        assert colour() == "red"
        run("test", "one", "--timeout", "120s", code=1)
        assert "Rollback was a success" in run("rollback", "one", "1", "--wait")
        assert colour() == "green"
        assert "Phase:          Succeeded" in run("test", "one", "--timeout", "120s")
        history = run("history", "one")
        assert [line.split()[0] for line in history.splitlines()[1:]] == ["1", "2", "3"]
        assert 'release "one" uninstalled' in run("uninstall", "one", "--wait", "--timeout", "120s")
        assert run("list", "--short") == ""
