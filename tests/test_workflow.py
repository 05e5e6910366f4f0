"""The workflow files run what is there: targets of the Makefile, markers of the tests, Pythons of the package."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import mews

ROOT = Path(__file__).parent.parent
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RELEASE = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
JOBS = {**WORKFLOW["jobs"], **{f"release-{name}": job for name, job in RELEASE["jobs"].items()}}
COMMANDS = [step["run"] for job in JOBS.values() for step in job["steps"] if "run" in step]


def test_its_tiers_are_those_of_the_tests():
    assert {"unit", "wall", "differential", "kind"} <= set(WORKFLOW["jobs"])
    declared = {line.partition(":")[0] for line in PROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    for command in COMMANDS:
        for expression in re.findall(r'-m "([^"]+)"', command):
            assert set(re.findall(r"\w+", expression)) - {"not", "and", "or"} <= declared, expression


def test_it_calls_targets_and_modules_that_there_are():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in COMMANDS:
        for target in re.findall(r"\bmake ([\w./-]+)", command):
            name = target.replace(".venv/bin", "$(BIN)")
            assert re.search(rf"^{re.escape(name)}:", makefile, re.MULTILINE), target
        for path in re.findall(r"\btests[/.](\w+)", command):
            assert (ROOT / "tests" / path).is_dir(), path


def test_every_night_the_faces_are_fuzzed_and_the_dependencies_audited():
    nightly = {name for name, job in WORKFLOW["jobs"].items() if job.get("if") == "github.event_name == 'schedule'"}
    assert {"nightly", "fuzz", "audit"} <= nightly
    assert "make fuzz" in [step.get("run") for step in WORKFLOW["jobs"]["fuzz"]["steps"]]
    assert WORKFLOW[True]["schedule"], "on: is read as the word for true"


def test_its_pythons_are_those_that_the_package_names():
    named = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["project"]["classifiers"]), re.MULTILINE)
    assert WORKFLOW["jobs"]["unit"]["strategy"]["matrix"]["python"] == named


@pytest.mark.parametrize("name", JOBS)
def test_a_job_ends_by_itself_and_names_no_registry(name: str):
    job = JOBS[name]
    assert job["timeout-minutes"] <= 120
    assert not re.search(r"(docker\.io|ghcr\.io|gcr\.io|quay\.io|index-url|registry\.)", yaml.safe_dump(job))


@pytest.mark.parametrize("name", JOBS)
def test_actions_are_pinned_and_programs_of_ours_exist(name: str):
    for step in JOBS[name]["steps"]:
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step["uses"]), step["uses"]
        for module in re.findall(r"python -m (ci\.\w+)", step.get("run", "")):
            assert (ROOT / f"{module.replace('.', '/')}.py").is_file(), module


def test_a_release_is_made_of_a_tag_attested_and_published_without_a_token():
    assert RELEASE[True] == {"push": {"tags": ["v*"]}}
    assert RELEASE["permissions"] == {"contents": "read"}
    jobs = RELEASE["jobs"]
    used = {name: [step.get("uses", "").partition("@")[0] for step in job["steps"]] for name, job in jobs.items()}
    assert "actions/attest-build-provenance" in used["build"]
    assert jobs["build"]["permissions"] == {"contents": "read", "id-token": "write", "attestations": "write"}
    assert used["publish"][-1] == "pypa/gh-action-pypi-publish"
    assert (jobs["publish"]["permissions"], jobs["publish"]["needs"]) == ({"id-token": "write"}, "build")
    assert not re.search(r"password|secrets\.", yaml.safe_dump(RELEASE))
    runs = [step["run"] for step in jobs["build"]["steps"] if "run" in step]
    checked = runs.index('.venv/bin/python -m ci.release --tag "$GITHUB_REF_NAME"')
    assert checked < runs.index("make release"), "a wrong tag is refused before anything is built"


def test_the_newest_release_of_the_notes_is_the_version_of_the_package():
    notes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## (\d+\.\d+\.\d+)\b", notes, re.MULTILINE)
    assert releases[0] == mews.__version__
    assert "version" not in PROJECT["project"], "the version has one source: src/mews/__init__.py"
