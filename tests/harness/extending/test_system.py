"""A system of somebody else's package is a folder and one line: its entry point."""

import os
import subprocess
import sys

from mews.harness.cli import exit_code
from tests.harness.extending.conftest import EXAMPLE, install, mews_with


def test_the_toy_system_runs_in_a_stack_by_its_name(mews):
    done = mews("run", EXAMPLE / "system.yaml", "--seed", "1")
    assert done.code == 0, done.out + done.err


def test_its_options_are_checked_as_the_file_is_read(mews, tmp_path):
    file = tmp_path / "one.yaml"
    file.write_text(EXAMPLE.joinpath("system.yaml").read_text().replace("toy: {}", "toy: {anotation: x}"))
    done = mews("validate", file)
    assert done.code == 2
    assert "stack.toy.anotation" in done.err
    assert done.err.count("\n") == 1


def test_a_written_system_passes_its_own_test_once_installed(tmp_path):
    folder = tmp_path / "my-marks"
    assert exit_code(["new", "system", str(folder)]) == 0
    site = tmp_path / "site"
    install(folder, site)
    done = mews_with(site, tmp_path)("run", folder / "scenario.yaml")
    assert done.code == 0, done.out + done.err
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(site))))
    judged = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert judged.returncode == 0, judged.stdout
