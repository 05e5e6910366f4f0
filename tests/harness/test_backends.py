"""The table of backends: what stands in it can be loaded, costs nothing until then, and is all that others look at."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from mews.harness.backends import BACKENDS, Backend, backend_of, backends_that, load
from mews.harness.clusters import open_cluster
from mews.harness.errors import BadInputError, RequirementError
from mews.harness.options import RunOptions, check_available, time_of
from mews.harness.scenario.loader import parse_scenario

PLAIN = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: x}\nhardware: demo\n"


def lacking():
    raise RequirementError("toy: there is no toy on this machine")


async def open_toy(request):
    return request


TOY = Backend("toy", times=("wall",), opener=f"{__name__}:open_toy", check_available=lambda: None)
BROKEN = Backend("broken", times=("wall",), opener=f"{__name__}:open_toy", check_available=lacking)


@pytest.mark.parametrize("name", BACKENDS)
def test_each_backend_bears_the_name_that_it_is_found_by_and_can_be_opened(name):
    backend = backend_of(name)
    assert backend.name == name
    assert backend.times
    assert set(backend.times) <= {"virtual", "wall"}
    assert asyncio.iscoroutinefunction(load(backend.opener))


def test_virtual_time_is_for_emulated_nodes_only():
    virtual = backends_that(lambda backend: "virtual" in backend.times)
    assert virtual == ("embedded",)
    assert backends_that(lambda backend: backend.emulates_nodes) == ("embedded", "control-plane")
    assert backends_that(lambda backend: backend.stays_up) == ("embedded", "control-plane", "kind")
    assert backends_that(lambda backend: backend.is_the_users) == ("kubeconfig",)


def test_what_is_added_to_the_table_is_offered_checked_and_opened(monkeypatch):
    monkeypatch.setitem(BACKENDS, "toy", f"{__name__}:TOY")
    scenario = parse_scenario(PLAIN, Path("x"), {})
    assert time_of("toy", None) == "wall"
    with pytest.raises(BadInputError, match="--time virtual: --cluster toy runs in wall time only"):
        time_of("toy", "virtual")
    request = asyncio.run(open_cluster(scenario, RunOptions("toy", "wall"), seed=7))
    assert (request.scenario, request.seed, request.dialect) == (scenario, 7, "h3api")


def test_a_backend_whose_programs_are_missing_is_not_opened(monkeypatch):
    monkeypatch.setitem(BACKENDS, "broken", f"{__name__}:BROKEN")
    with pytest.raises(RequirementError, match="there is no toy"):
        check_available("broken")
    with pytest.raises(RequirementError, match="there is no toy"):
        asyncio.run(open_cluster(parse_scenario(PLAIN, Path("x"), {}), RunOptions("broken", "wall")))


def test_the_values_of_all_backends_are_loaded_without_any_of_their_clusters():
    code = (
        "import sys; from mews.harness.backends import BACKENDS, backend_of; [backend_of(name) for name in BACKENDS];"
        "print([name for name in sys.modules if name.startswith('mews.harness.clusters.')"
        " and name.count('.') > 3 and not name.endswith('.backend')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
