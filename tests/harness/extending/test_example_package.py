"""A package of somebody else's brings a dialect, a fault, an invariant and steps by its entry points alone."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mews.harness.cli import exit_code
from tests.harness.extending.conftest import EXAMPLE, ROOT


def test_its_dialect_fault_and_step_carry_a_scenario(mews):
    done = mews("run", EXAMPLE / "dialect.yaml")
    assert done.code == 0, done.out + done.err


@pytest.mark.wall
def test_its_dialect_works_over_sockets_too(mews):
    done = mews("run", EXAMPLE / "dialect.yaml", "--time", "wall", "--speed", "20")
    assert done.code == 0, done.out + done.err


def test_its_dialect_takes_the_place_of_ours_by_option(mews):
    assert mews("run", "demo", "--dialect", "toy").code == 0


@pytest.mark.wall
def test_a_chassis_served_in_its_dialect_is_judged_by_its_clauses(mews, site, tmp_path):
    ready = tmp_path / "ready.json"
    environment = {**os.environ, "PYTHONPATH": mews("version").path}
    command = [sys.executable, "-m", "mews.harness.cli", "serve", "--dialect", "toy", "--ready", str(ready)]
    server = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert server.stdout.readline().startswith("chassis A: toy http://127.0.0.1:")
        server.stdout.readline()
        url = json.loads(ready.read_text())["chassis"]["A"]["toy"]
        device = ["--allow-changes", "--device", "000100", "--port", "1", "--port", "2"]
        done = mews("conform", url, "--dialect", "toy", *device)
        assert done.code == 0, done.out + done.err
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(10)
        server.stdout.close()


def test_the_schema_includes_what_it_brings(mews):
    schema = json.loads(mews("validate", "--schema").out)
    definitions = schema["$defs"]
    assert "toy" in json.dumps(definitions["Stack"]["properties"]["dialect"])
    assert "toy-slow-reads" in json.dumps(definitions["FaultAction"]["properties"]["add"])
    pods = definitions["Step"]["properties"]["toy-pods"]["anyOf"][0]  # the other: ${name}
    assert pods["properties"]["count"]["anyOf"][0]["minimum"] == 1
    assert {"required": ["toy-pods"]} in definitions["Step"]["oneOf"]
    assert definitions["Check"]["properties"]["toy-marked"] == {"type": "string"}


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("toy-pods: {count: 0}", "steps.0.toy-pods.count: 0: must be 1 or more"),
        ("toy-pods: {number: 1}", "steps.0.toy-pods.count: missing"),
        ("toy-marked: a", "toy-marked is a check: it belongs below wait, assert or hold"),
        ("wait: {toy-pods: {count: 1}}", "toy-pods is a step, not a check"),
        ("toy-podz: {count: 1}", "(did you mean toy-pods?)"),
        ("fault: {add: {kind: toy-slow}}", "fault kind 'toy-slow': must be one of "),
        ("fault: {host: host-1, add: {kind: toy-slow-reads}}", "'toy-slow-reads': sits in a chassis, not in a host"),
        ("fault: {add: {kind: toy-slow-reads, extra: 1}}", "fault toy-slow-reads: unknown key 'extra'"),
    ],
)
def test_what_a_file_says_of_it_is_checked_as_the_file_is_read(mews, tmp_path, step, said):
    file = tmp_path / "one.yaml"
    file.write_text(f"apiVersion: mews/v1\nkind: Scenario\nmetadata: {{name: x}}\nhardware: demo\nsteps:\n  - {step}\n")
    done = mews("validate", file)
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1


def test_an_unknown_name_lists_what_the_package_brings(mews):
    done = mews("run", "demo", "--dialect", "soap")
    assert done.code == 2
    assert "must be one of h3api, resource-pool, redfish, fm, cdim, toy, or module:attribute" in done.err


def test_its_invariant_is_judged_in_every_run(mews, tmp_path):
    file = tmp_path / "one.yaml"
    file.write_text(
        "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: unmarked}\nhardware: demo\n"
        "steps:\n"
        "  - toy-pods: {count: 2}\n"
        "  - patch: {kind: Pod, name: toy-0, body: {metadata: {annotations: {toy.dev/seen: 'yes'}}}}\n"
        "  - sleep: 2m\n"
        "  - patch: {kind: Pod, name: toy-0, body: {metadata: {annotations: {other: 'yes'}}}}\n"
    )
    done = mews("run", file)
    assert done.code == 1
    assert "invariant 100 (every pod is marked): pod default/toy-1 has no mark" in done.out


def test_without_it_nothing_of_it_is_there(capsys):
    assert exit_code(["run", "demo", "--dialect", "toy"]) == 2
    said = capsys.readouterr().err
    assert "--dialect toy: must be one of h3api, resource-pool, redfish, fm, cdim, or module:attribute" in said


def test_nothing_of_ours_names_it():
    """It is found by its entry points: adding it touches its folder alone."""
    rooms = ("src", "emulator", "kube", "systems", "harness", "scenarios", "fixtures")
    texts = [path for room in rooms for path in sorted((ROOT / room).rglob("*")) if path.suffix in (".py", ".yaml")]
    assert len(texts) > 400
    assert [path for path in texts if "toy" in path.read_text(errors="replace").replace("history", "").split()] == []
    assert [path for path in texts if "mews_toy" in path.read_text(errors="replace")] == []


def test_each_thing_that_it_brings_is_one_line_of_its_entry_points():
    text = Path(EXAMPLE / "pyproject.toml").read_text()
    for group in ("systems", "dialects", "faults", "invariants", "steps"):
        assert f'[project.entry-points."mews.{group}"]' in text
