"""The example package, installed in a folder of its own."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs" / "example-package"


def install(package, folder):
    """As ``pip install`` would, into a folder that is then put on the Python path."""
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(package)], check=True, capture_output=True)


def mews_with(folder, tmp_path):
    """Runs ``mews`` in an environment that has what is installed in the folder."""
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(folder))))

    def mews(*arguments, timeout=240):
        command = [sys.executable, "-m", "mews.harness.cli", *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=timeout, check=False
        )
        return SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr, path=path)

    return mews


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    install(EXAMPLE, folder)
    return folder


@pytest.fixture
def mews(site, tmp_path):
    return mews_with(site, tmp_path)
