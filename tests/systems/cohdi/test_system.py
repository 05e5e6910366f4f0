"""How CoHDI becomes part of a stack: its chassis, its programs, what it needs of Kubernetes."""

import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from mews.harness.commands.kubernetes_options import KubernetesOptions, with_kubernetes
from mews.harness.errors import BadInputError
from mews.harness.scenario.loader import parse_scenario
from mews.harness.scenario.stack import Stack
from mews.kube.system.facility import ChassisAddress, Facility, NodeCabling
from mews.kube.system.foreign import KubernetesNeeds, RunsAsProgramError
from mews.systems import registry
from mews.systems.cohdi.config import PROGRAMS
from mews.systems.cohdi.options import CohdiOptions
from mews.systems.cohdi.programs import lacking
from mews.systems.cohdi.system import SYSTEM, configure

FACILITY = Facility(
    (
        ChassisAddress("A", 0, "p", models=("V100",), tenant="t"),
        ChassisAddress("B", 1, "p", models=("A100",), tenant="t"),
    ),
    (NodeCabling("host-1", {"A": "1"}, machine="m-1"),),
)
EMPTY = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: a}
hardware: demo
stack: {kubecomp: null}
steps: [{sleep: 1s}]
"""
OF_TODAY = {"kubecomp": None, "cohdi": {}}


def test_the_first_chassis_is_the_one_unless_another_is_named():
    assert configure(CohdiOptions(), FACILITY).models == ("V100",)
    named = configure(CohdiOptions(chassis="B", scan_s=9), FACILITY)
    assert (named.chassis, named.models, named.tenant, named.scan_s) == ("B", ("A100",), "t", 9)
    assert SYSTEM.provider_ids(named) == {"host-1": "fsas-cdi://m-1"}


def test_a_chassis_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(ValueError, match="chassis: 'C': must be one of A, B"):
        configure(CohdiOptions(chassis="C"), FACILITY)


def test_an_operator_that_speaks_cdim_is_told_a_gpu_and_finds_nodes_by_their_whole_id():
    gpu = "GPU-9b342b50-cd03-5f52-f5e9-8e307c1554d2"
    made = configure(CohdiOptions(operator="cdim", provisional_gpu=gpu), FACILITY)
    assert (made.operator, made.provisional_gpu) == ("cdim", gpu)
    assert SYSTEM.provider_ids(made) == {"host-1": "m-1"}
    with pytest.raises(ValueError, match=r"^provisionalGpu: must be given with operator: cdim: [^\n]*$"):
        configure(CohdiOptions(operator="cdim"), FACILITY)
    with pytest.raises(ValueError, match=r"^provisionalGpu: needs operator: cdim: [^\n]*$"):
        configure(CohdiOptions(provisional_gpu=gpu), FACILITY)


def test_each_thing_that_keeps_the_programs_from_starting_is_told(tmp_path, monkeypatch):
    monkeypatch.delenv("MEWS_COHDI_PROGRAMS", raising=False)
    assert "MEWS_COHDI_PROGRAMS is not set" in lacking(CohdiOptions())
    monkeypatch.setenv("MEWS_COHDI_PROGRAMS", str(tmp_path))
    assert lacking(CohdiOptions()).endswith(f"{tmp_path}/cdd: not there: must be CoHDI's composable-dra-driver")
    for name in PROGRAMS:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert lacking(CohdiOptions()) == ""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert lacking(CohdiOptions()).startswith("needs root")
    assert lacking(CohdiOptions(), emulated_nodes=False) == ""
    (tmp_path / "dds-manager").chmod(0o600)
    assert lacking(CohdiOptions()).endswith("dds-manager: cannot be executed")
    assert "/elsewhere/cdd" in lacking(CohdiOptions(programs="/elsewhere"))


def test_the_stack_switches_on_what_the_programs_need():
    release = Stack.model_validate(OF_TODAY).release
    assert release.serves("resource.k8s.io/v1alpha3")
    for gate in ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus", "DRADeviceTaints"):
        assert release.gates.on(gate)
    assert not Stack.model_validate({"kubecomp": None}).release.serves("resource.k8s.io/v1alpha3")


@pytest.mark.parametrize(
    ("key", "name"),
    [("featureGates", "DRADeviceTaints"), ("runtimeConfig", "resource.k8s.io/v1alpha3")],
)
def test_what_the_programs_need_cannot_be_switched_off(key, name):
    with pytest.raises(ValueError, match=f"{key}: {name}: must not be false: cohdi needs it"):
        Stack.model_validate({**OF_TODAY, key: {name: False}})


def test_a_release_that_cannot_serve_it_is_refused_in_one_line(monkeypatch):
    strange = replace(SYSTEM, needs=KubernetesNeeds(served=("resource.k8s.io/v9",)))
    monkeypatch.setattr(registry, "system", lambda name: strange)
    scenario = parse_scenario(EMPTY, Path("a.yaml"))
    with pytest.raises(ValueError, match=r"^kubernetes: 1\.34: does not have what cohdi needs: resource\.k8s\.io/v9: "):
        scenario.stack.of(["cohdi"])
    stack = scenario.stack.model_copy(update={"systems": {"cohdi": CohdiOptions()}})
    asking = scenario.model_copy(update={"stack": stack})
    with pytest.raises(
        BadInputError, match=r"^--kubernetes: 1\.36: does not have what cohdi needs: resource\.k8s\.io/v9: [^\n]*$"
    ):
        with_kubernetes(asking, KubernetesOptions(release="1.36"))


def test_make_builds_each_program_under_its_name_and_says_what_it_lacks(tmp_path):
    root = Path(__file__).parents[3]
    bare = subprocess.run(["make", "cohdi-programs"], cwd=root, capture_output=True, text=True, check=False)
    assert bare.returncode == 2
    assert bare.stderr.startswith("make cohdi-programs: SOURCES: must be a folder with checkouts of composable-")
    for repository in PROGRAMS.values():
        (tmp_path / repository).mkdir()
    (tmp_path / "go").write_text('#!/bin/sh\n[ "$1 $2 $3" = "build -trimpath -o" ] && basename "$PWD" > "$4"\n')
    (tmp_path / "go").chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["make", "cohdi-programs", f"SOURCES={tmp_path}", f"TO={tmp_path / 'to'}"]
    subprocess.run(command, cwd=root, env=env, capture_output=True, check=True)
    assert {path.name: path.read_text().strip() for path in (tmp_path / "to").iterdir()} == PROGRAMS


def test_its_programs_are_nothing_that_runs_in_this_process():
    for component in SYSTEM.components:
        if component.program is not None:
            with pytest.raises(RunsAsProgramError):
                component.make(None, None)
    assert [each.name for each in SYSTEM.components if each.program is None] == ["gpu-dra-driver"]
