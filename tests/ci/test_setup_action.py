"""The action `setup-mews`: its shell steps, with its own defaults, against a wheel of this tree."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from mews import __version__
from tests.package.conftest import ROOT, Distributions, installed_as

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "setup-mews" / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
DEFAULTS = {name: str(given["default"]) for name, given in ACTION["inputs"].items()}


def filled(text: str, inputs: dict[str, str], outputs: dict[str, str]) -> str:
    """An expression's value, as far as this action has them."""
    text = re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found[1]], text)
    return re.sub(r"\$\{\{ steps\.\w+\.outputs\.(\w+) \}\}", lambda found: outputs[found[1]], text)


def is_asked(step: dict[str, Any], inputs: dict[str, str]) -> bool:
    """Whether its condition holds: ``inputs.NAME`` compared with a text."""
    if "if" not in step:
        return True
    found = re.fullmatch(r"inputs\.([\w-]+) (==|!=) '(.*)'", step["if"])
    assert found is not None, step["if"]
    return (inputs[found[1]] == found[3]) == (found[2] == "==")


def run_steps(folder: Path, variables: dict[str, str], **inputs: str) -> tuple[dict[str, str], list[str]]:
    """The outputs, and what each step printed. Raises CalledProcessError."""
    given, outputs, printed = {**DEFAULTS, **inputs}, {}, []
    for number, step in enumerate(STEPS):
        if "run" not in step or not is_asked(step, given):
            continue
        assert step["shell"] == "bash"
        file = folder / f"output-{number}"
        file.touch()
        env = {name: filled(text, given, outputs) for name, text in step.get("env", {}).items()}
        bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        whole = {**variables, **env, "GITHUB_OUTPUT": str(file)}
        done = subprocess.run(bash, capture_output=True, text=True, cwd=folder, env=whole)
        if done.returncode != 0:
            raise subprocess.CalledProcessError(done.returncode, step["run"], done.stdout, done.stderr)
        printed.append(done.stdout)
        outputs |= dict(line.split("=", 1) for line in file.read_text().splitlines())
    return outputs, printed


def test_each_input_has_a_default_and_is_used():
    text = yaml.safe_dump(STEPS)
    assert [name for name in ACTION["inputs"] if f"inputs.{name}" not in text] == []
    assert all("description" in given and "default" in given for given in ACTION["inputs"].values())


def test_no_input_is_pasted_into_a_script():
    """It would be run: inputs reach scripts by their environment."""
    assert [step["run"] for step in STEPS if "${{" in step.get("run", "")] == []


@pytest.mark.parametrize("step", [step for step in STEPS if "run" in step], ids=lambda step: step["run"].split("\n")[0])
def test_a_step_is_bash(step: dict[str, Any]):
    done = subprocess.run(["bash", "-n", "-c", step["run"]], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_other_actions_are_pinned_as_in_the_workflows():
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert len(used) == 3
    assert [name for name in used if not re.fullmatch(r"actions/[\w-]+@v\d+", name)] == []


@pytest.mark.parametrize(
    ("inputs", "requirement"),
    [
        ({}, "falcon-mews[cluster]"),
        ({"extras": ""}, "falcon-mews"),
        ({"version": "0.2.0", "extras": "cluster,train"}, "falcon-mews[cluster,train]==0.2.0"),
    ],
)
def test_version_and_extras_make_the_requirement(tmp_path: Path, inputs: dict[str, str], requirement: str):
    (tmp_path / "bin").mkdir()
    for name, script in {"python": 'echo "$@"', "mews": "echo mews 1.2.3"}.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    outputs, printed = run_steps(tmp_path, {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}, **inputs)
    assert outputs["requirement"] == requirement
    assert f"-m pip install {requirement}\n" in printed
    assert outputs["version"] == "1.2.3"


@pytest.mark.parametrize("inputs", [{"version": "1; id"}, {"extras": "cluster] @ file:///x"}])
def test_an_input_that_is_no_version_or_extra_is_refused(tmp_path: Path, inputs: dict[str, str]):
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run_steps(tmp_path, dict(os.environ), **inputs)
    assert caught.value.returncode == 2
    assert caught.value.stderr.startswith(f"{next(iter(inputs))}: ")


@pytest.mark.wall
def test_the_defaults_install_a_mews_that_runs(shared: Path, distributions: Distributions, tmp_path: Path):
    """What the wheel needs is lent, the wheel itself comes from a folder: no index is asked."""
    environment = installed_as(shared, "action", distributions, "cluster")
    environment.check("python", "-m", "pip", "uninstall", "--yes", "--quiet", "falcon-mews")
    local = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(distributions.wheel.parent)}
    outputs, printed = run_steps(tmp_path, {**environment.variables, **local})
    assert outputs["version"] == __version__
    assert printed[-1] == f"mews {__version__}\n"
    assert environment.check("mews", "run", "demo").endswith("1 passed\n")
