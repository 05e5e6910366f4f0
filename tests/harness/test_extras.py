"""The line for what only an extra brings."""

import sys

import pytest

from mews.harness import cli, engine
from mews.harness.errors import Lacks
from mews.harness.extras import check_installed, lacking
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario, shipped

LINE = "aiohttp is not installed; pip install 'falcon-mews[cluster]' brings what this needs"


@pytest.fixture
def without_aiohttp(monkeypatch):
    """As where it is not installed: importing it again fails."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "aiohttp" or (name.startswith("mews.") and hasattr(module, "aiohttp")):
            monkeypatch.delitem(sys.modules, name)

    class Refusing:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == "aiohttp":
                raise ModuleNotFoundError("No module named 'aiohttp'", name=name)

    monkeypatch.setattr(sys, "meta_path", [Refusing, *sys.meta_path])


def test_a_submodule_counts_as_its_package():
    assert str(lacking(ModuleNotFoundError(name="aiohttp.web"))) == LINE


def test_a_module_that_no_extra_brings_is_a_mistake_and_stays_one():
    assert lacking(ModuleNotFoundError(name="mews.harness.nowhere")) is None
    assert lacking(ModuleNotFoundError()) is None


def test_a_run_that_needs_an_extra_is_not_an_error_of_the_scenario(without_aiohttp):
    scenario = load_scenario(shipped("scenario", "demo"))
    with pytest.raises(Lacks, match="falcon-mews"):
        engine.Engine(RunOptions(time="wall")).run(scenario)


def test_a_command_says_it_in_one_line(monkeypatch, capsys):
    def broken(arguments):
        raise ModuleNotFoundError(name="aiohttp")

    monkeypatch.setattr(cli, "_call", broken)
    assert cli.exit_code(["up"]) == 3
    assert capsys.readouterr().err == f"{LINE}\n"


def test_what_is_installed_is_not_asked_for():
    check_installed("cluster")
