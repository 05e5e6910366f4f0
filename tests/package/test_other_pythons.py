"""The wheel on each further Python that this machine has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.package.conftest import UNREACHABLE, Distributions
from tests.package.environment import Environment, made

VERSIONS = [f"3.{minor}" for minor in range(11, 15)]
"""Those that the package is for."""
DAILY = "3.13"
"""The one that is not left to the night: a fresh environment each takes a minute and more."""

TEST = """
def test_a_scenario_runs(mews_run):
    assert mews_run("demo", seed=42).verdict == "passed"
"""


def interpreter(version: str) -> str | None:
    """One of that version that starts: on PATH, or among those of pyenv and uv."""
    kept = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    of_uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or Path.home() / ".local/share/uv/python")
    found = [*kept.glob(f"{version}.*/bin/python"), *of_uv.glob(f"cpython-{version}.*/bin/python")]
    for path in (shutil.which(f"python{version}"), *sorted(found)):
        if (
            path is not None
            and subprocess.run([path, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0
        ):
            return str(path)
    return None


def fresh(version: str, distributions: Distributions, folder: Path) -> Environment:
    """An environment into which pip has put the wheel and what it needs. Skips the test where that cannot be had."""
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        pytest.skip("is the Python that runs the tests: test_installed.py does more with it")
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    environment = made(python, folder)
    options = ("--quiet", "--no-compile", "--prefer-binary")
    done = environment.run(str(environment.bin / "pip"), "install", *options, str(distributions.wheel), timeout_s=600)
    said = done.stdout + done.stderr
    if done.returncode != 0 and any(word in said for word in UNREACHABLE):
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, said[-4000:]
    return environment


@pytest.mark.wall
@pytest.mark.parametrize(
    "version", [pytest.param(each, marks=() if each == DAILY else pytest.mark.nightly) for each in VERSIONS]
)
def test_a_scenario_runs_by_command_and_by_fixture(version: str, distributions: Distributions, tmp_path: Path):
    environment = fresh(version, distributions, tmp_path)
    assert environment.check("mews", "run", "demo").endswith("1 passed\n")
    (environment.folder / "test_it.py").write_text(TEST)
    assert "1 passed" in environment.check("python", "-m", "pytest", "-q", "-p", "no:cacheprovider")
