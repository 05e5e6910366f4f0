"""The line for what only an extra brings."""

import subprocess
import sys

from mews.harness import cli
from mews.harness.extras import check_installed, lacking
from mews.project import DOCUMENTATION

LINE = "aiohttp is not installed; pip install 'falcon-mews[cluster]' provides it"


WITHOUT_AIOHTTP = """
import sys

class Refusing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "aiohttp":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refusing)
from mews.harness.cli import exit_code
sys.exit(exit_code(["run", "demo", "--time", "wall"]))
"""
"""A process in which it is not installed: in this one other tests may have imported it already."""


def test_a_submodule_counts_as_its_package():
    assert str(lacking(ModuleNotFoundError(name="aiohttp.web"))) == LINE


def test_a_module_that_no_extra_brings_is_a_mistake_and_stays_one():
    assert lacking(ModuleNotFoundError(name="mews.harness.nowhere")) is None
    assert lacking(ModuleNotFoundError()) is None


def test_a_run_that_needs_an_extra_is_not_an_error_of_the_scenario():
    done = subprocess.run([sys.executable, "-c", WITHOUT_AIOHTTP], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (3, f"{LINE} (see {DOCUMENTATION})\n")


def test_a_command_says_it_in_one_line(monkeypatch, capsys):
    def broken(arguments):
        raise ModuleNotFoundError(name="aiohttp")

    monkeypatch.setattr(cli, "_call", broken)
    assert cli.exit_code(["up"]) == 3
    assert capsys.readouterr().err == f"{LINE} (see {DOCUMENTATION})\n"


def test_what_is_installed_is_not_asked_for():
    check_installed("cluster")
