import itertools
import re
from pathlib import Path

import jsonschema
import pytest

from mews.harness.catalogue.files import file_of, shipped
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loader import find_scenarios, load_scenario, load_scenarios, parse_scenario, schema
from mews.harness.scenario.yamlfile import read_yaml

GOOD = """\
apiVersion: mews/v1
kind: Scenario
metadata: {name: one}
hardware: demo
steps:
  - apply: {kind: Pod, metadata: {name: a}}
  - wait: {pod: {name: a, phase: Running}}
    timeout: 2m
"""


def write(folder: Path, text: str, name: str = "one.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_scenario_is_read_into_frozen_values(tmp_path):
    scenario = load_scenario(write(tmp_path, GOOD))
    assert [step.action for step in scenario.steps] == ["apply", "wait"]
    assert scenario.steps[1].timeout == 120.0
    assert scenario.steps[1].wait[0].pod.phase == "Running"
    with pytest.raises(ValueError, match="frozen"):
        scenario.seed = 2


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            ("apiVersion: mews/v1", "apiVersion: mews/v2"),
            "one.yaml:1: apiVersion: 'mews/v2': must be mews/v1",
        ),
        (("timeout: 2m", "timeout: soon"), "one.yaml:8: steps.1.timeout: 'soon': must be a span of time"),
        (("phase: Running", "fase: Running"), "one.yaml:7: steps.1.wait.pod.fase: unknown key; allowed: phase, "),
        (("steps:", "stepz:"), "one.yaml:5: stepz: unknown key; allowed: steps, "),
        (("phase: Running", "phase: [Running]"), "write {$exact: […]}"),
        (("phase: Running", "phase: {$gt: much}"), "$gt: 'much' must be a number or a quantity"),
        (("phase: Running", "phase: {$like: x}"), "$like: unknown operator; allowed: $exact"),
        (("metadata: {name: a}", "metadata: {}"), "one.yaml:6: steps.0.apply"),
        (("    timeout: 2m", "    sleep: 3"), "a step has exactly one action (wait and sleep given)"),
        (("name: one}", "name: one, name: two}"), "one.yaml:3: metadata.name: duplicate key 'name'"),
        (("metadata: {name: one}\n", ""), "one.yaml:1: metadata: missing"),
        (("hardware: demo", "hardware: nowhere.yaml"), "hardware: 'nowhere.yaml': neither a file"),
        (("hardware: demo", "hardware: {file: demo, profile: fast}"), "profile: profile 'fast': must be one of"),
        (("steps:", "steps: ["), "not YAML"),
        (
            ("apply: {kind: Pod, metadata: {name: a}}", "fault: {add: {kind: lying}}"),
            "one.yaml:6: steps.0.fault: {'add': {'kind': 'lying'}}: fault kind 'lying': must be one of lying-result, ",
        ),
        (
            ("steps:", "workload: {jobs: [{job: a, arrival: 0}], trace: a.csv}\nsteps:"),
            "workload.trace: 'a.csv': no such file",
        ),
    ],
)
def test_an_error_is_one_line_with_place_value_and_what_is_allowed(tmp_path, change, expected):
    path = write(tmp_path, GOOD.replace(*change))
    with pytest.raises(ScenarioError) as raised:
        load_scenario(path)
    assert expected in str(raised.value)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ScenarioError, match=r"gone\.yaml: no such file"):
        load_scenario(tmp_path / "gone.yaml")


def test_all_files_are_checked_before_any_is_returned(tmp_path):
    write(tmp_path, GOOD.replace("2m", "soon"), "a.yaml")
    write(tmp_path, GOOD, "b.yaml")
    write(tmp_path, GOOD.replace("phase", "fase"), "c.yaml")
    write(tmp_path, "kind: Hardware\n", "hardware.yaml")
    with pytest.raises(ScenarioError) as raised:
        load_scenarios([tmp_path])
    assert [line.split(":")[0].rsplit("/", 1)[-1] for line in str(raised.value).splitlines()] == ["a.yaml", "c.yaml"]
    assert [path.name for path in find_scenarios([tmp_path])] == ["a.yaml", "b.yaml", "c.yaml"]


def test_a_folder_without_scenarios_is_refused(tmp_path):
    with pytest.raises(ScenarioError, match="no scenario in this folder"):
        find_scenarios([tmp_path])


def test_overrides_change_values_by_path_and_index(tmp_path):
    path = write(tmp_path, GOOD)
    scenario = load_scenario(
        path, ["seed=7", "steps.1.timeout=5s", "stack.kubecomp.scheduler.policy=none", "metadata.labels.a\\.b=c"]
    )
    assert (scenario.seed, scenario.steps[1].timeout) == (7, 5.0)
    assert scenario.stack.systems["kubecomp"].scheduler.policy == "none"
    assert scenario.metadata.labels == {"a.b": "c"}


def test_overrides_come_as_a_mapping_too(tmp_path):
    scenario = load_scenario(write(tmp_path, GOOD), {"seed": 3, "stack__dialect": "h3api"})
    assert (scenario.seed, scenario.stack.dialect) == (3, "h3api")


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("seed", "must be KEY=VALUE"),
        ("stack.kubecomp.scheduler.policy=fastest", "'fastest': must be one of both"),
        ("steps.9.timeout=5s", "an index from 0 to 1"),
        ("seed.deeper=1", "seed: {'deeper': 1}: must be a whole number"),
        ("steps.1.timeout.x=1", "unknown path: steps.1.timeout is '2m'"),
        ("wrkload.trace=a.csv", "--set wrkload.trace=a.csv: wrkload: unknown key; allowed: workload, "),
        ("seed=many", "--set seed=many: seed: 'many': must be a whole number"),
    ],
)
def test_a_bad_override_is_named_as_such(tmp_path, override, expected):
    with pytest.raises(ScenarioError) as raised:
        load_scenario(write(tmp_path, GOOD), [override])
    assert expected in str(raised.value)
    assert str(raised.value).startswith("--set ")


def test_objects_come_from_files_beside_the_scenario(tmp_path):
    write(tmp_path, "kind: Pod\nmetadata: {name: x}\n---\nkind: Pod\nmetadata: {name: y}\n", "pods.yaml")
    path = write(tmp_path, GOOD.replace("{kind: Pod, metadata: {name: a}}", "{file: pods.yaml}"))
    assert [obj["metadata"]["name"] for obj in load_scenario(path).steps[0].apply] == ["x", "y"]


FOREIGN = "root:x:0:0:secret"
"""What stands in a file that is none of the scenario's business."""
STACK = "stack: {{replace: {{{}}}}}\nsteps:"
POD = "{kind: Pod, metadata: {name: a}}"
NAMING = [
    ("steps.0.apply.file", (POD, "{file: PATH}")),
    ("steps.0.apply.1.file", (POD, f"[{POD}, {{file: PATH}}]")),
    ("objects.file", ("steps:", "objects: {file: PATH}\nsteps:")),
    ("hardware", ("hardware: demo", "hardware: PATH")),
    ("hardware.file", ("hardware: demo", "hardware: {file: PATH, profile: instant}")),
    ("workload.trace", ("steps:", "workload: {trace: PATH}\nsteps:")),
    ("stack.replace.scheduler.manifest", ("steps:", STACK.format("scheduler: {manifest: PATH}"))),
    ("stack.replace.scheduler.files.0", ("steps:", STACK.format("scheduler: {process: [a], files: [PATH]}"))),
    (
        "stack.extenders.0.files.0",
        ("steps:", "stack: {extenders: [{process: [a], files: [PATH], config: {urlPrefix: x}}]}\nsteps:"),
    ),
]


@pytest.fixture
def own(tmp_path):
    """A scenario's folder, with a link that leads to a file beside it."""
    (tmp_path / "passwd").write_text(FOREIGN)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "link.csv").symlink_to("../passwd")
    (tmp_path / "own" / "away").symlink_to("..")
    return tmp_path / "own"


@pytest.mark.parametrize(("place", "change"), NAMING)
@pytest.mark.parametrize("name", ["../passwd", "{}/passwd", "link.csv", "away/passwd", "../own-2/none"])
def test_a_scenario_names_no_file_outside_its_folder(name, place, change, own):
    if place.endswith(".files.0") and name == "../own-2/none":
        name = "../*"
    name = name.format(own.parent)
    path = write(own, GOOD.replace(change[0], change[1].replace("PATH", name)))
    with pytest.raises(ScenarioError) as raised:
        load_scenario(path)
    told = str(raised.value)
    assert f": {place}: {name!r}: lies outside the scenario's folder; must be a file in that folder" in told
    assert told.startswith(f"{path}:")
    assert "--allow-outside" in told
    assert "\n" not in told
    assert "secret" not in told


def test_a_link_in_a_circle_is_none_of_the_folders_files(own):
    (own / "round").symlink_to("round")
    with pytest.raises(ScenarioError, match=r"workload.trace: 'round': "):
        load_scenario(write(own, GOOD.replace("steps:", "workload: {trace: round}\nsteps:")))


JOBS = "job,gpus,arrival_s\na,1,0\n"


def test_files_outside_are_read_when_the_user_says_so(own):
    (own.parent / "jobs.csv").write_text(JOBS)
    (own.parent / "pods.yaml").write_text("kind: Pod\nmetadata: {name: x}\n")
    text = GOOD.replace(POD, "{file: ../pods.yaml}").replace(
        "steps:", f"workload: {{trace: {own.parent}/jobs.csv}}\nsteps:"
    )
    read = load_scenario(write(own, text), allow_outside=True)
    assert read.workload.trace == str(own.parent / "jobs.csv")
    assert read.steps[0].apply[0]["metadata"]["name"] == "x"
    assert read.allow_outside


def test_what_the_user_overrides_may_lie_anywhere_and_allows_nothing_else(own):
    (own.parent / "jobs.csv").write_text(JOBS)
    text = GOOD.replace("steps:", "workload: {trace: ../passwd}\nsteps:")
    path = write(own, text)
    assert load_scenario(path, ["workload.trace=../jobs.csv"]).workload.trace == str(own.parent / "jobs.csv")
    assert load_scenario(path, {"workload__trace": str(own.parent / "jobs.csv")}).workload is not None
    with pytest.raises(ScenarioError, match=r"workload.trace: '../passwd': lies outside"):
        load_scenario(path, ["workload.select.a=b", "seed=2"])


def test_what_lies_in_the_folder_or_comes_with_the_package_needs_no_word(own):
    (own / "data").mkdir()
    (own / "data" / "jobs.csv").write_text(JOBS)
    inside = GOOD.replace("steps:", "workload: {trace: data/../data/jobs.csv}\nsteps:")
    demo = shipped("hardware", "demo")
    assert load_scenario(write(own, inside.replace("hardware: demo", f"hardware: {demo}"))).hardware == str(demo)
    (own.parent / "by-link").symlink_to(own)
    assert load_scenario(own.parent / "by-link" / "one.yaml").workload.trace == str(own / "data" / "jobs.csv")


def test_the_schema_is_valid_and_accepts_what_the_loader_accepts():
    published = schema()
    jsonschema.Draft202012Validator.check_schema(published)
    jsonschema.validate(read_yaml(GOOD, "good").value, published)
    for bad in (("timeout: 2m", "timeout: soon"), ("phase: Running", "fase: Running"), ("steps:", "stepz:")):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(read_yaml(GOOD.replace(*bad), "bad").value, published)


def test_timestamps_stay_text_and_anchors_work():
    document = read_yaml("a: &x {t: 2026-01-01}\nb: {<<: *x, u: 1}\n", "f")
    assert document.value == {"a": {"t": "2026-01-01"}, "b": {"t": "2026-01-01", "u": 1}}


BOMB = "a: &a [x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{last}'] * 9)}]\n" for last, name in itertools.pairwise("abcdefgh")
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must be a mapping with apiVersion"),
        ("a: &x [*x]\n", "the anchor 'x' contains itself"),
        ("[" * 100_000, "nested too deeply: at most 100 levels"),
        (BOMB, "too large: more than 1000000 values"),
        ("- " * 5000, "nested too deeply"),
        ("a: !!int x", "not YAML"),
        ("a: !!python/object:os.system x", "not YAML"),
        ("a: 1\n---\nb: 2\n", "not YAML"),
        ("a: \x00", "not YAML"),
        (GOOD.replace("hardware: demo", "hardware: {file: 7}"), "hardware.file: 7: must be a path"),
        (GOOD.replace("hardware: demo", 'hardware: "a\\nb"'), "neither a file (not a path)"),
    ],
)
def test_what_is_no_scenario_at_all_is_refused_in_one_line(tmp_path, text, words):
    with pytest.raises(ScenarioError) as raised:
        load_scenario(write(tmp_path, text))
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_measured_bound_belongs_to_the_workload_it_was_measured_with(tmp_path):
    text = (
        GOOD + "workload: {jobs: [{job: a, arrival: 0}]}\nmetrics: {mean_wait_s: {of: 5, within: 10%}, moved_gpus: 0}\n"
    )
    path = write(tmp_path, text)
    assert set(load_scenario(path, ["seed=2"]).metrics) == {"mean_wait_s", "moved_gpus"}
    assert set(load_scenario(path, ["workload.duration=9"]).metrics) == {"moved_gpus"}
    both = ["workload.duration=9", "metrics.mean_wait_s.of=7"]
    assert set(load_scenario(path, both).metrics) == {"mean_wait_s", "moved_gpus"}


def test_a_path_of_a_checkout_is_found_in_the_package_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert file_of("scenario", Path("scenarios/demo.yaml")) == shipped("scenario", "demo")
    assert file_of("hardware", Path("fixtures/hardware/demo.yaml")) == shipped("hardware", "demo")
    assert file_of("scenario", Path("scenarios")).is_dir()


def test_a_file_of_ones_own_comes_before_one_of_the_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "demo.yaml").touch()
    own = Path("scenarios/demo.yaml")
    assert file_of("scenario", own) is own


@pytest.mark.parametrize("path", ["scenarios/none.yaml", "scenarios/../harness/cli.py", "other/demo.yaml"])
def test_no_other_path_leads_into_the_package(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert file_of("scenario", Path(path)) == Path(path)


WRONG_VALUES = (
    *("seed: a", "seed: -1", "timeout: [1]", "stack: 3", "stack: {kubecomp: {mode: x}}", "expects: x", "objects: 3"),
    *(
        "steps: [{wait: {pod: 3}}]",
        "steps: [{wait: {pod: {name: 3}}}]",
        "steps: [{wait: {pod: {name: a, ready: maybe}}}]",
    ),
    *(
        "steps: [{script: {content: ''}}]",
        "steps: [{delete: {kind: Pod, name: a, gracePeriod: x}}]",
        "steps: [{kill: 3}]",
    ),
    *("metrics: {moved_gpus: x}", "metrics: {moved_gpus: {max: x}}", "workload: {gate: never}", "steps: [{sleep: -1}]"),
)


@pytest.mark.parametrize("text", WRONG_VALUES)
def test_no_error_is_in_the_words_of_the_library_that_found_it(text):
    with pytest.raises(ScenarioError) as refused:
        parse_scenario(
            f"apiVersion: mews/v1\nkind: Scenario\nmetadata: {{name: x}}\nhardware: demo\n{text}\n", Path("f")
        )
    said = str(refused.value)
    assert re.search(r": must (be|have|not) ", said), said
    assert not re.search(r"[Ii]nput should|valid (dict|int|str|bool|num)|instance of|unable to", said)
