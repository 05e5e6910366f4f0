"""Images of the user's own: in a scenario, in a file, in pytest's ini."""

import pytest

from mews.harness.catalogue.files import shipped
from mews.harness.cli import exit_code
from mews.harness.commands.up import UpImages, scenario_of, with_images
from mews.harness.engine import Engine
from mews.harness.errors import BadInputError
from mews.harness.options import RunOptions
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.images import container_wanted, read_images
from mews.harness.scenario.loader import load_scenario
from mews.harness.scenario.requirements import foreseen
from mews.project import DOCUMENTATION

SCENARIO = """\
apiVersion: mews/v1
kind: Scenario
metadata: {name: images}
hardware: demo
stack: {kubecomp: null}
unknownImages: idle
images:
  team/fails: {simulate: {duration_s: 1, exit_code: 3}}
  "registry.example.com/*":
    simulate:
      stages:
      - {name: loading, for_s: 5, log: "loading\\n", failing: [readiness]}
      - {name: serving, for_s: 20, log: "serving ${WHAT}\\n"}
      - {name: crashed, for_s: 0, log: "out of memory\\n", exit_code: 137}
objects:
- apiVersion: v1
  kind: Pod
  metadata: {name: strange}
  spec:
    containers:
    - name: main
      image: team/strange:1
      command: [sh, -c, exit 1]
      livenessProbe: {exec: {command: ["false"]}, periodSeconds: 1, failureThreshold: 1}
- apiVersion: v1
  kind: Pod
  metadata: {name: staged}
  spec:
    restartPolicy: Never
    containers:
    - name: main
      image: registry.example.com/a/b:2
      args: [--some, flag]
      env: [{name: WHAT, value: models}]
      readinessProbe: {httpGet: {port: 80}, periodSeconds: 1}
- apiVersion: v1
  kind: Pod
  metadata: {name: named}
  spec: {restartPolicy: Never, containers: [{name: main, image: "team/fails:2"}]}
steps:
- wait: {pod: {name: strange, ready: true}}
- wait: {pod: {name: staged, phase: Running}}
- assert: {pod: {name: staged, ready: false}}
- wait: {pod: {name: staged, ready: true}}
- wait: {pod: {name: staged, phase: Failed}}
- assert: {logs: {pod: staged, lines: {$exact: [loading, serving models, out of memory]}}}
- wait: {pod: {name: named, phase: Failed}}
- assert: {pod: {name: strange, phase: Running, restarts: 0, ready: true}}
- assert: {logs: {pod: strange, text: ""}}
- assert: {event: {reason: Pulled, object: Pod/strange, message: {$regex: "not known here: runs idle"}}}
- delete: {kind: Pod, name: strange, wait: true}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "images.yaml"
    path.write_text(SCENARIO)
    return path


def test_images_are_idle_staged_or_fail_as_the_scenario_says(file, tmp_path):
    run = Engine(RunOptions(), artefacts=tmp_path).run(load_scenario(file))
    assert (run.result.verdict, run.result.reason) == ("passed", "")


def test_an_unknown_image_fails_where_nothing_is_said_of_it(file, tmp_path):
    scenario = load_scenario(file, {"unknownImages": "fail"})
    scenario = scenario.model_copy(update={"step_timeout": 60.0})
    run = Engine(RunOptions(), artefacts=tmp_path).run(scenario)
    assert run.result.verdict == "failed"
    assert "strange" in run.result.reason


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ("3", "images.x: 3: 3: must be idle, container, or a mapping of container, env, files, image, load, "),
        ("busy", "images.x: 'busy': 'busy': must be idle, container, or a mapping"),
        ("{container: 3}", "images.x: {'container': 3}: container: 3: must be an image"),
        ("{process: sh}", "process: 'sh': must be a list of strings, the argv"),
        ("{simulate: {duration: 3}}", "simulate.duration: unknown; allowed: duration_s"),
        ("{simulate: {stages: []}}", "simulate.stages: []: must be a list of stages"),
        ("{simulate: {stages: [{for: 3}]}}", "simulate.stages.0.for: unknown; allowed: exit_code, failing, for_s"),
        ("{simulate: {stages: [{}, {for_s: 3}]}}", "simulate.stages.0.for_s: must be given and end"),
        ("{simulate: {stages: [{for_s: 1, exit_code: 3}, {}]}}", "simulate.stages.0.exit_code: only the last stage"),
        ("{simulate: {stages: [{exit_code: 3}]}}", "simulate.stages.0.exit_code: needs for_s"),
        ("{simulate: {stages: [{for_s: -1}]}}", "simulate.stages.0.for_s: -1: must be a number"),
        ("{simulate: {stages: [{failing: [life]}]}}", "failing: ['life']: must be a list of liveness, readiness"),
        ("{simulate: {log: x, stages: [{}]}}", "simulate.log: unknown; allowed: obeys_term, stages, term_exit_code"),
        ("{simulate: {obeys_term: perhaps}}", "simulate.obeys_term: 'perhaps': must be true or false"),
    ],
)
def test_a_wrong_image_is_named_with_file_line_and_place(tmp_path, entry, complaint, capsys):
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO.split("images:")[0] + f"images:\n  x: {entry}\n")
    with pytest.raises(ScenarioError) as raised:
        load_scenario(path)
    assert str(raised.value).startswith(f"{path}:8")
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)
    own = tmp_path / "images.yaml"
    own.write_text(f"images:\n  x: {entry}\n")
    with pytest.raises(BadInputError) as refused:
        read_images(own)
    assert str(refused.value).startswith(f"{own}: images.x: ")
    assert exit_code(["up", "--images", str(own)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_mews_up_lets_unknown_images_idle_unless_told_otherwise(tmp_path):
    own = tmp_path / "images.yaml"
    own.write_text("images: {team/app: idle}\n")
    plain = scenario_of(None, None)
    assert with_images(plain, UpImages()).unknown_images == "idle"
    assert with_images(plain, UpImages(unknown="fail")).unknown_images == "fail"
    told = plain.model_copy(update={"unknown_images": "fail", "images": {"team/app": "x", "team/else": "idle"}})
    given = with_images(told, UpImages(own))
    assert (given.unknown_images, given.images) == ("fail", {"team/app": "idle", "team/else": "idle"})
    with pytest.raises(BadInputError, match="--unknown-images perhaps: must be one of fail, idle, container"):
        with_images(plain, UpImages(unknown="perhaps"))
    with pytest.raises(BadInputError, match=r"missing.yaml: cannot be read"):
        with_images(plain, UpImages(tmp_path / "missing.yaml"))


def test_what_only_emulated_nodes_can_do_is_not_asked_of_real_ones(file):
    told = load_scenario(file)
    reason = foreseen(told, cluster="kind", time="wall", dialect="h3api")
    assert reason == "unknownImages: idle: needs emulated nodes, those of --cluster kind pull images"
    told = told.model_copy(update={"unknown_images": None})
    reason = foreseen(told, cluster="kind", time="wall", dialect="h3api")
    assert reason == "images.registry.example.com/*: stages need emulated nodes, not --cluster kind"
    assert foreseen(told, cluster="embedded", time="virtual", dialect="h3api") is None
    told = load_scenario(shipped("scenario", "kubelet/13-host-power"))
    reason = foreseen(told, cluster="kind", time="wall", dialect="h3api")
    assert reason == "host: machine-power: needs emulated nodes, those of --cluster kind run on"


def test_containers_of_real_images_need_wall_clock_time_or_something_to_be_played(tmp_path):
    path = tmp_path / "s.yaml"
    head = SCENARIO.split("unknownImages:")[0]
    for said, place in (
        ("unknownImages: container\n", "unknownImages"),
        ("images: {x: container}\n", "images.x"),
        ("images: {x: {container: 'y:1'}}\n", "images.x"),
    ):
        path.write_text(head + said)
        told = load_scenario(path)
        reason = foreseen(told, cluster="embedded", time="virtual", dialect="h3api")
        assert reason == f"{place}: container: needs wall-clock time (--time wall)"
        assert foreseen(told, cluster="embedded", time="wall", dialect="h3api") is None
        assert foreseen(told, cluster="kind", time="wall", dialect="h3api") is None, "its nodes run images anyway"
    path.write_text(head + "images: {x: {container: 'y:1', simulate: {duration_s: 3}}}\n")
    assert foreseen(load_scenario(path), cluster="embedded", time="virtual", dialect="h3api") is None
    assert container_wanted(load_scenario(path)) == "images.x"


@pytest.mark.wall
@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("unix:///nowhere.sock", "no Docker engine answers at unix:///nowhere.sock: No such file or directory"),
        ("tcp://192.0.2.1:2375", "DOCKER_HOST=tcp://192.0.2.1:2375: must be a socket of this machine (unix://)"),
    ],
)
def test_without_an_engine_there_is_one_line_and_exit_code_3(tmp_path, monkeypatch, capsys, address, reason):
    pytest.importorskip("docker")
    monkeypatch.setenv("DOCKER_HOST", address)
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO.split("unknownImages:")[0] + "unknownImages: container\n")
    assert exit_code(["run", str(path), "--time", "wall"]) == 3
    assert capsys.readouterr().err == f"unknownImages: container: {reason} (see {DOCUMENTATION})\n"
