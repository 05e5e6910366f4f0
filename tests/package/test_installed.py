"""The installed package, outside the repository: commands, fixtures, extras."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from mews.project import DOCUMENTATION
from tests.package.conftest import ROOT
from tests.package.environment import Environment

pytestmark = pytest.mark.wall  # builds and installs: seconds that a quick loop is spared

LACKS = "is not installed; pip install 'falcon-mews[cluster]' provides it\n"

RUN = """
def test_a_scenario_runs(mews_run):
    assert mews_run("scenarios/demo.yaml", seed=42).verdict == "passed"
"""
CHASSIS = """
from urllib.request import urlopen

def test_a_chassis_answers(mews_chassis):
    assert urlopen(mews_chassis.urls["A"]["h3api"] + "/resources").status == 200
"""
CLUSTER = """
def test_a_cluster_is_up(mews_cluster):
    assert mews_cluster.kubeconfig.is_file()
    assert len(mews_cluster.nodes) == 3
"""


def pytest_in(environment: Environment, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A pytest of its own over one file."""
    folder = environment.folder / f"project-{abs(hash((text, options)))}"
    folder.mkdir(exist_ok=True)
    (folder / "test_it.py").write_text(text)
    command = [str(environment.bin / "python"), "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment.variables, timeout=180)


def test_what_is_imported_lies_in_the_environment(installed: Environment):
    code = "import mews, mews.kube, mews.emulator.nvml; print(mews.__path__, mews.emulator.nvml.__file__)"
    said = installed.check("python", "-c", code)
    assert str(ROOT) not in said
    assert said.count(str(installed.root)) == 2


def test_the_commands_name_is_mews_and_its_version_is_the_distributions(installed: Environment):
    code = "from importlib.metadata import version; print('mews', version('falcon-mews'))"
    assert installed.check("mews", "version") == installed.check("python", "-c", code)


def test_the_demo_passes(installed: Environment):
    said = installed.check("mews", "demo")
    assert "exactly one GPU moved" in said.splitlines()[-1]


def test_a_scenario_runs_with_the_library_that_the_wheel_carries(installed: Environment):
    [result] = json.loads(installed.check("mews", "run", "demo", "--json", "-"))
    assert result["verdict"] == "passed"
    shown = installed.check("mews", "nvidia-smi", "--hardware", "demo", "-L", XDG_CACHE_HOME="/nonexistent", CC="false")
    assert shown.startswith("GPU 0: ")


@pytest.mark.parametrize("text", [RUN, CHASSIS, CLUSTER])
def test_the_plugin_gives_its_fixtures(installed: Environment, text: str):
    done = pytest_in(installed, text)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_without_extras_scenarios_run_in_virtual_time(base_only: Environment):
    assert base_only.check("mews", "run", "demo").endswith("1 passed\n")
    assert base_only.check("mews", "validate", "scenarios/") == base_only.check("mews", "validate", "scenarios")


def test_without_extras_the_demo_is_played_in_virtual_time(base_only: Environment):
    for command in ("mews", "falcon-mews"):
        said = base_only.check(command, "demo").splitlines()
        assert "exactly one GPU moved" in said[-2]
        assert said[-1].startswith("In virtual time. pip install 'falcon-mews[cluster]' shows it")


def test_without_extras_the_fixture_tool_says_which_it_needs(base_only: Environment):
    done = base_only.run("python", "-m", "mews.emulator.fixture_tool")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"faker {LACKS.replace('cluster', 'fixtures')}"


@pytest.mark.parametrize(
    "command",
    ["up", "run demo --time wall", "manifests", "run demo --cluster kubeconfig", "diff-clusters demo"],
)
def test_without_extras_a_command_that_needs_one_says_in_one_line_which(base_only: Environment, command: str):
    # The control plane's programs are named before what speaks to them
    wanted = f"{command} --clusters embedded,kubeconfig" if command.startswith("diff") else command
    done = base_only.run("mews", *wanted.split())
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"aiohttp {LACKS.rstrip()} (see {DOCUMENTATION})\n"


def test_without_extras_none_of_their_packages_is_there(base_only: Environment):
    code = (
        "import importlib.util as u; print([m for m in ('grpc', 'kubernetes', 'aiohttp', 'orjson') if u.find_spec(m)])"
    )
    assert base_only.check("python", "-c", code) == "[]\n"


def test_without_extras_a_chassis_is_served_and_judged(base_only: Environment):
    ready = base_only.folder / "chassis.json"
    command = [str(base_only.bin / "mews"), "serve", "--ready", str(ready)]
    with subprocess.Popen(
        command, cwd=base_only.folder, env=base_only.variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as server:
        assert server.stdout is not None
        try:
            for _ in server.stdout:
                if ready.exists():
                    break
            url = json.loads(ready.read_text())["chassis"]["A"]["h3api"]
            assert "passed" in base_only.check("mews", "conform", url).splitlines()[-1]
        finally:
            server.send_signal(signal.SIGTERM)
            server.stdout.read()
    assert server.returncode == 0


def test_without_extras_the_plugin_loads_and_leaves_other_tests_alone(base_only: Environment):
    done = pytest_in(base_only, "def test_mine(): assert 1 + 1 == 2\n", "-W", "error")
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert done.stderr == ""


def test_without_extras_the_chassis_and_scenarios_are_there_as_fixtures(base_only: Environment):
    done = pytest_in(base_only, RUN + CHASSIS)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_without_extras_a_test_that_needs_a_cluster_is_skipped_with_the_reason(base_only: Environment):
    done = pytest_in(base_only, CLUSTER)
    assert "1 skipped" in done.stdout
    assert "pip install 'falcon-mews[cluster]'" in done.stdout


def test_a_pure_package_says_in_one_line_that_nvml_is_not_there(base_only: Environment, tmp_path: Path):
    """As from the pure wheel, on a machine without a compiler."""
    [site] = base_only.root.glob("lib/python*/site-packages")
    shutil.copytree(site / "mews", tmp_path / "mews", ignore=shutil.ignore_patterns("bin", "__pycache__"))
    variables = {"PATH": str(base_only.bin), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    command = ["-m", "mews.harness.cli", "nvidia-smi", "--hardware", "demo"]
    done = base_only.run(str(base_only.bin / "python"), *command, **variables)
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("libnvidia-ml.so.1 and nvidia-smi: not compiled yet, and there is no C compiler; ")
    assert len(done.stderr.splitlines()) == 1
