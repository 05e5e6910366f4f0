"""The command line: options, exit codes, one line for what is wrong."""

import json
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from mews.harness import cli
from mews.harness.cli import exit_code
from mews.harness.engine import Engine
from mews.harness.errors import RequirementError
from mews.harness.journal import Journal
from mews.harness.report.run import Run
from mews.harness.scenario.result import Result
from mews.project import DOCUMENTATION

SCENARIO = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: NAME}\nhardware: demo\nsteps: [{sleep: 1s}]\n"


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "one.yaml"
    path.write_text(SCENARIO.replace("NAME", "one"))
    return path


class FakeEngine(Engine):
    """Ends as its table says: scenario name -> verdict."""

    verdicts: ClassVar[dict[str, str]] = {}

    def run(self, scenario, seed=None):
        verdict = self.verdicts.get(scenario.name, "passed")
        if verdict == "lacks":
            raise RequirementError("docker: not found; install it")
        journal = Journal(lambda: 0.5)
        journal.write("chassis", "chassis/A", "detached", gpuid="0-a")
        result = Result(
            scenario.name,
            str(scenario.path),
            self.options.cluster,
            self.options.time,
            seed,
            verdict,
            reason="because" * (verdict != "passed"),
        )
        return Run(result, journal.lines())


@pytest.fixture
def engine(monkeypatch):
    monkeypatch.setattr("mews.harness.commands.run.Engine", FakeEngine)
    monkeypatch.setattr(FakeEngine, "verdicts", {})
    return FakeEngine


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("run", 2, "PATH: missing; give scenario files, folders or names, --about WORD or --list"),
        ("run x.yaml --frob", 2, "--frob: no such option"),
        ("frob", 2, "frob"),
        ("run x.yaml --cluster moon", 2, "--cluster moon: must be one of embedded, control-plane, kind, kubeconfig"),
        ("run x.yaml --cluster kind --time virtual", 2, "virtual time needs embedded"),
        ("run x.yaml --time soon", 2, "--time soon: must be one of virtual, wall"),
        ("run x.yaml --speed 0", 2, "--speed 0: must be above 0"),
        ("run x.yaml --speed fast", 2, "--speed"),
        ("run x.yaml --seeds 9-1", 2, "--seeds 9-1"),
        ("run x.yaml --seeds a-b", 2, "must be A-B"),
        ("run x.yaml --seed 1 --seeds 1-2", 2, "only one of the two"),
        ("run x.yaml --dialect morse", 2, "--dialect morse: must be one of h3api, resource-pool, redfish, fm, cdim"),
        ("run x.yaml --timeout 0", 2, "--timeout 0"),
        ("run x.yaml --jobs 0", 2, "--jobs 0: must be at least 1"),
        ("run x.yaml --jobs -2", 2, "--jobs -2: must be at least 1"),
        ("run x.yaml --jobs many", 2, "--jobs"),
        ("run x.yaml --jobs 2 --time wall", 2, "--jobs 2: in virtual time only"),
        ("run x.yaml --jobs 2 --cluster kind", 2, "--jobs 2: in virtual time only"),
        ("run /no/such/file.yaml", 2, "/no/such/file.yaml: no such file"),
        ("run x.yaml --cluster kubeconfig --kubeconfig /no/such", 2, "--kubeconfig /no/such: no such file"),
        ("run demo --json - --junit -", 2, "--json and --junit: only one of them can be standard output"),
        ("run demo --journal - --seeds 1-2", 2, "--journal -: can show only one run, not 2"),
        ("diff-clusters /no/such.yaml", 2, "/no/such.yaml: no such file"),
        ("diff-clusters demo --json /no/such/x", 2, "--json /no/such/x: must be a file"),
        ("manifests --node host-1", 2, "--node host-1: must be HOST=NODE"),
        ("manifests --node host-1=Node_1", 2, "--node host-1=Node_1: 'Node_1' is not a valid node name"),
        ("manifests --node host-9=x", 2, "with one of the hosts host-1, host-2, host-3"),
        (
            "manifests --hardware /no/such.yaml",
            2,
            "--hardware /no/such.yaml: no such file, and no included",
        ),
        ("manifests --scenario /no/such.yaml", 2, "/no/such.yaml: no such file"),
        ("manifests --namespace Mine", 2, "--namespace 'Mine': must be small letters, digits and '-'"),
        ("manifests --image=", 2, "--image '': must be the name of an image"),
        ("manifests --out /dev/null/x", 2, "--out /dev/null/x: cannot be written: Not a directory"),
        ("up --cluster kubeconfig", 2, "--cluster kubeconfig: must be one of embedded, control-plane, kind"),
        ("up --hardware /no/such.yaml", 2, "--hardware /no/such.yaml: no such file, and no included"),
        ("up --scenario /tmp", 2, "--scenario /tmp: is a folder"),
        ("serve --ready /no/such/x", 2, "--ready /no/such/x: must be a file"),
        ("serve --state /tmp", 2, "--state /tmp: must be a file"),
        ("serve --state /etc/hostname", 2, "--state /etc/hostname: is not a state file"),
        ("serve --certificate /etc/hostname --key /etc/hostname", 2, "no certificate in PEM"),
        ("serve --hardware /no/such.yaml", 2, "/no/such.yaml"),
        ("serve --listen nowhere", 2, "HOST:PORT"),
        ("demo --dialect morse", 2, "--dialect morse: must be one of h3api, resource-pool, redfish"),
        ("validate", 2, "PATH: missing"),
        ("conform", 2, "URL: missing"),
        ("conform box:80", 2, "box:80: must be http://HOST[:PORT] or https://HOST[:PORT]"),
        ("conform http://me:word@box", 2, "http://***@box: credentials come from MEWS_REDFISH_USER"),
        ("conform http://127.0.0.1:9 --dialect morse", 2, "--dialect morse"),
        ("conform http://127.0.0.1:9 --patience 0", 2, "--patience 0: must be above 0"),
        ("conform http://127.0.0.1:9 --device 1", 2, "only with --allow-changes"),
        ("conform http://127.0.0.1:9 --quirks none", 2, "no such file or included profile"),
        ("conform http://127.0.0.1:9 --waivers /no/such", 2, "/no/such: cannot be read"),
        ("conform http://127.0.0.1:9 --diff /no/such", 2, "--diff /no/such: is no recording"),
        ("conform http://127.0.0.1:9 --json /no/such/x", 2, "--json /no/such/x"),
        ("conform http://[::1", 2, "http://[::1: must be http://HOST[:PORT]"),
        ("conform http://127.0.0.1:9 --ca /no/such", 2, "--ca /no/such: must be a PEM file of certificates"),
        ("conform http://127.0.0.1:9 --ca x --insecure", 2, "--ca x --insecure: only one of the two"),
        ("conform http://127.0.0.1:9", 3, "no chassis answers there"),
        ("conform --restore /no/such", 2, "/no/such: no such file"),
        ("conform --explain 2.aray", 2, "--explain 2.aray: no such clause; did you mean 2.array"),
        (
            "conform http://127.0.0.1:9 --profile none",
            2,
            "no such file or included profile; included are newest, stack",
        ),
        ("conform http://127.0.0.1:9 --profile /etc/hostname", 2, "/etc/hostname: "),
        ("serve --recording /no/such", 2, "--recording /no/such: no recording.json"),
        ("serve --recording /tmp --speed 2 --hardware x", 2, "--recording /tmp --hardware x: only one of the two"),
        ("down --name a --all", 2, "only one of the two"),
        ("diff-clusters x.yaml --clusters embedded,moon", 2, "--clusters moon: must be one of embedded,"),
        ("diff-clusters x.yaml --clusters embedded,embedded", 2, "must be at least two different ones"),
        ("diff-clusters x.yaml --clusters embedded", 2, "must be at least two different ones"),
    ],
)
def test_what_cannot_be_is_one_line_and_a_code(line, code, says, capsys):
    assert exit_code(line.split()) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert says in told.err
    assert told.err.count("\n") == 1


@pytest.fixture
def curious(tmp_path):
    """A scenario that names a file beside its folder."""
    (tmp_path / "passwd").write_text("secret:x:0\n")
    container = "{name: a, image: mews/gpu-hold}"
    (tmp_path / "pods.yaml").write_text(f"kind: Pod\nmetadata: {{name: x}}\nspec: {{containers: [{container}]}}\n")
    (tmp_path / "own").mkdir()
    path = tmp_path / "own" / "one.yaml"
    path.write_text(SCENARIO.replace("NAME", "one") + "objects: {file: ../passwd}\n")
    return path


NAMING = ["validate", "run", "diff-clusters", "up --scenario", "manifests --scenario"]


@pytest.mark.parametrize("command", NAMING)
def test_a_file_outside_the_scenarios_folder_is_refused_and_none_of_its_bytes_is_told(command, curious, capsys):
    assert exit_code([*command.split(), str(curious)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert f"{curious}:" in told.err
    assert "objects.file: '../passwd': lies outside the scenario's folder" in told.err
    assert "secret" not in told.err
    assert told.err.count("\n") == 1


@pytest.mark.parametrize("command", NAMING)
def test_a_file_outside_the_scenarios_folder_is_read_with_the_users_word(command, curious, engine, capsys, monkeypatch):
    async def comes_up(scenario, *_, **__):
        assert [obj["metadata"]["name"] for obj in scenario.objects] == ["x"]

    def lacks(cluster):
        raise RequirementError("read")

    monkeypatch.setenv("MEWS_INSTANCE", "")  # `mews up` sets it
    monkeypatch.setattr("mews.harness.commands.up.to_stderr", lambda: None)
    monkeypatch.setattr("mews.harness.commands.up.run_up", comes_up)
    monkeypatch.setattr("mews.harness.commands.diff_clusters.check_available", lacks)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(curious.parent))
    curious.write_text(curious.read_text().replace("../passwd", "../pods.yaml"))
    told = (exit_code([*command.split(), str(curious), "--allow-outside"]), capsys.readouterr().err)
    assert told[0] == (3 if command == "diff-clusters" else 0)
    named = f"{curious}: not played: objects, steps" if command == "up --scenario" else ""
    assert told[1].startswith(f"read (see {DOCUMENTATION})\n" if command == "diff-clusters" else named)


def test_without_docker_there_is_no_kind_and_how_to_get_it_is_told(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nowhere")
    assert exit_code(["run", "demo", "--cluster", "kind"]) == 3
    told = capsys.readouterr()
    assert told.err.startswith("--cluster kind: docker is not on PATH: install Docker Engine")
    assert told.err.count("\n") == 1


def test_a_bad_scenario_is_two_and_one_line_per_file(scenario, capsys):
    scenario.with_name("two.yaml").write_text(SCENARIO.replace("steps", "stesp"))
    scenario.with_name("three.yaml").write_text(SCENARIO.replace("sleep", "slep"))
    assert exit_code(["run", str(scenario.parent)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(".yaml:" in line and "allowed" in line for line in lines)


def test_validate_checks_all_files_and_says_how_many(scenario, capsys):
    assert exit_code(["validate", str(scenario.parent)]) == 0
    assert capsys.readouterr().out == "1 scenario valid\n"


def test_validate_warns_of_what_objects_ask_for_and_emulated_clusters_ignore(tmp_path, capsys):
    file = tmp_path / "ignored.yaml"
    file.write_text("""apiVersion: mews/v1
kind: Scenario
metadata: {name: ignored}
hardware: demo
stack: {kubecomp: null, metrics: off}
steps:
  - apply: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {hostUsers: false, containers: [{name: c}]}}
""")
    assert exit_code(["validate", str(file)]) == 0
    out, err = capsys.readouterr()
    assert out == "1 scenario valid\n"
    why = "spec.hostUsers: ignored here: no emulated node has a kernel that could confine a container"
    assert err == f"warning: {file}: Pod a: {why}\n"


def test_the_schema_is_json(capsys):
    assert exit_code(["validate", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["$schema"].startswith("https://json-schema.org/")


@pytest.mark.parametrize(
    ("verdict", "code"), [("passed", 0), ("skipped", 0), ("failed", 1), ("error", 1), ("lacks", 3)]
)
def test_the_verdict_is_the_exit_code(verdict, code, scenario, engine, capsys):
    engine.verdicts["one"] = verdict
    assert exit_code(["run", str(scenario)]) == code
    capsys.readouterr()


def test_json_on_standard_output_is_json_only_with_the_fixed_fields(scenario, engine, capsys):
    assert exit_code(["run", str(scenario), "--json", "-", "--seed", "7"]) == 0
    [result] = json.loads(capsys.readouterr().out)
    assert {
        "scenario": "one",
        "seed": 7,
        "verdict": "passed",
        "cluster": "embedded",
        "time": "virtual",
    }.items() <= result.items()
    assert {"path", "reason", "seconds", "metrics", "violations", "journal"} <= set(result)


def test_a_report_on_standard_output_is_alone_there(scenario, engine, capsys):
    assert exit_code(["run", str(scenario), "--journal", "-"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["event"] == "detached"
    assert "1 passed" in told.err


def test_a_shipped_scenario_is_known_by_its_name(engine, capsys):
    assert exit_code(["run", "demo", "testbed/w1-pool"]) == 0
    assert "2 passed" in capsys.readouterr().out


def test_seeds_run_the_scenario_once_each(scenario, engine, capsys, tmp_path):
    assert exit_code(["run", str(scenario), "--json", str(tmp_path / "out.json"), "--seeds", "3-5"]) == 0
    assert [result["seed"] for result in json.loads((tmp_path / "out.json").read_text())] == [3, 4, 5]
    assert "3 passed" in capsys.readouterr().out


def test_the_journal_is_json_lines_and_each_of_several_runs_has_its_own(scenario, engine, tmp_path, capsys):
    file = tmp_path / "j.jsonl"
    assert exit_code(["run", str(scenario), "--journal", str(file)]) == 0
    [line] = file.read_text().splitlines()
    assert json.loads(line) == {"t": 0.5, "layer": "chassis", "actor": "chassis/A", "event": "detached", "gpuid": "0-a"}
    assert (
        exit_code(["run", str(scenario), "--journal", str(file), "--seeds", "1-2", "--json", str(tmp_path / "o")]) == 0
    )
    paths = [result["journal"] for result in json.loads((tmp_path / "o").read_text())]
    assert paths == [str(tmp_path / "j-one-1.jsonl"), str(tmp_path / "j-one-2.jsonl")]
    capsys.readouterr()


def test_a_report_that_cannot_be_written_is_told_before_anything_runs(scenario, engine, capsys):
    engine.verdicts["one"] = "lacks"
    assert exit_code(["run", str(scenario), "--junit", "/no/such/folder/x.xml"]) == 2
    assert "--junit /no/such/folder/x.xml" in capsys.readouterr().err


def test_reports_are_written(scenario, engine, tmp_path, capsys):
    engine.verdicts["one"] = "failed"
    files = {"--junit": tmp_path / "r.xml", "--html": tmp_path / "r.html"}
    options = [text for option, path in files.items() for text in (option, str(path))]
    assert exit_code(["run", str(scenario), *options]) == 1
    assert "<failure" in files["--junit"].read_text()
    assert '"verdict":"failed"' in files["--html"].read_text()
    assert "because" in capsys.readouterr().out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_costs_no_other_report_and_is_three(scenario, engine, tmp_path, capsys):
    junit = tmp_path / "junit.xml"
    full = ["--json", "/dev/full", "--journal", "/dev/full"]
    assert exit_code(["run", str(scenario), *full, "--junit", str(junit)]) == 3
    assert capsys.readouterr().err.splitlines() == [
        "--journal /dev/full: cannot be written: No space left on device",
        f"--json /dev/full: cannot be written: No space left on device (see {DOCUMENTATION})",
    ]
    assert "<testsuite" in junit.read_text()


def test_a_comparison_that_cannot_be_written_is_told_before_anything_runs(scenario, monkeypatch, capsys):
    monkeypatch.setattr("mews.harness.commands.diff_clusters.check_available", lambda cluster: None)
    assert exit_code(["diff-clusters", str(scenario), "--json", "/no/such/folder/x.json"]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "--json /no/such/folder/x.json: must be a file in an existing folder\n")


def test_the_version_is_printed(capsys):
    assert exit_code(["version"]) == 0
    assert capsys.readouterr().out.startswith("mews 0.")


def test_importing_the_command_line_imports_no_package_that_a_run_may_not_need():
    heavy = ("aiohttp", "grpc", "flask", "kubernetes", "rich", "pydantic", "yaml", "asyncio", "pytest")
    code = f"import sys, mews.harness.cli; print([m for m in {heavy!r} if m in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_the_words_of_the_command_line_are_there():
    names = {command.name or command.callback.__name__ for command in cli.app.registered_commands}
    assert {"demo", "run", "validate", "up", "down", "serve", "conform", "version"} <= names


@pytest.mark.parametrize("module", ["mews.harness", "mews.harness.cli"])
def test_the_command_line_is_a_module_too(module):
    told = subprocess.run([sys.executable, "-m", module, "version"], capture_output=True, text=True, check=True)
    assert told.stdout.startswith("mews 0.")


COLLECTING = """
import gc, sys
from mews.harness.__main__ import main
from mews.harness.commands import collecting

class Finder:
    def find_spec(self, name, *_):
        if name == "mews.harness.cli":
            sys.stderr.write(f"{gc.get_threshold()[0]} ")

sys.meta_path.insert(0, Finder())
collecting.imported()
sys.stderr.write(f"{gc.get_threshold()[0]} {gc.get_freeze_count()} ")
sys.argv = ["mews", "version"]
main()
"""


def test_a_process_of_ours_collects_nothing_while_it_imports_and_no_other_is_touched():
    told = subprocess.run([sys.executable, "-c", COLLECTING], capture_output=True, text=True, check=True)
    assert told.stderr.split() == ["700", "0", "100000"]
