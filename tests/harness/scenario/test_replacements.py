"""What a scenario may put in our components' place."""

from pathlib import Path

import pytest

from mews.harness.engine import Engine
from mews.harness.errors import BadInputError
from mews.harness.options import RunOptions
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loaded_replacements import LoadedReplacements
from mews.harness.scenario.loader import load_scenario
from mews.harness.scenario.replacement import fill
from mews.harness.scenario.requirements import foreseen

DOCS = Path(__file__).parents[3] / "docs" / "bring-your-own"
HEAD = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: one}\nhardware: demo\n"


def scenario_with(folder, stack):
    """The scenario with that stack; beside it lies a module whose ``b`` takes anything."""
    (folder / "a.py").write_text("def b(*given, **options):\n    return 0\n")
    path = folder / "one.yaml"
    path.write_text(f"{HEAD}stack: {stack}\n")
    return load_scenario(path)


@pytest.mark.parametrize(
    ("stack", "says"),
    [
        ("{replace: {scheduler: {}}}", "must have exactly one of plugin, policy, process, image, manifest; has none"),
        ("{replace: {scheduler: {process: [x], image: y}}}", "has process, image"),
        ("{replace: {scheduler: {process: []}}}", "must be an argv with at least the program"),
        ("{replace: {kubelet: {process: [x]}}}", "scheduler"),
        ("{replace: {device-manager: {plugin: 'a:b'}}}", "only schedulers have plugins"),
        ("{replace: {default-scheduler: {policy: 'a:b'}}}", "only scheduler has a policy"),
        ("{kubecomp: null, replace: {reconfig-manager: {process: [x]}}}", "nothing to replace"),
        ("{replace: {reconfig-manager: {manifest: nowhere.yaml}}}", "nowhere.yaml"),
        ("{default_scheduler: null, extenders: [{config: {}}]}", "default scheduler"),
    ],
)
def test_what_cannot_take_a_components_place_is_told_in_one_line(stack, says, tmp_path):
    with pytest.raises(ScenarioError) as refused:
        scenario_with(tmp_path, stack.replace("default_scheduler", "defaultScheduler"))
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("stack", "cluster", "time", "reason"),
    [
        ("{replace: {scheduler: {process: [x]}}}", "embedded", "virtual", "a process needs wall-clock time"),
        ("{replace: {scheduler: {process: [x]}}}", "embedded", "wall", None),
        ("{replace: {scheduler: {plugin: 'a:b'}}}", "embedded", "virtual", None),
        ("{replace: {scheduler: {image: x}}}", "kind", "wall", None),
        ("{replace: {default-scheduler: {image: x}}}", "kind", "wall", None),
        ("{replace: {default-scheduler: {plugin: 'a:b'}}}", "kind", "wall", "into which no plugin can be loaded"),
        ("{replace: {scheduler: {manifest: m.yaml}}}", "kubeconfig", "wall", None),
        ("{replace: {default-scheduler: {image: x}}}", "kubeconfig", "wall", "it belongs to the cluster"),
        ("{extenders: [{process: [x], config: {urlPrefix: 'http://127.0.0.1:1'}}]}", "kind", "wall", None),
        ("{extenders: [{config: {urlPrefix: 'http://10.0.0.9:1'}}]}", "kind", "wall", None),
        ("{extenders: [{config: {urlPrefix: 'http://localhost:1'}}]}", "kind", "wall", "localhost is this machine"),
        ("{extenders: [{config: {}}]}", "embedded", "virtual", "an HTTP extender needs wall-clock time"),
        ("{extenders: [{config: {}}]}", "kubeconfig", "wall", "belongs to the cluster"),
        ("{gpushare: {}}", "kubeconfig", "wall", "stack.gpushare: it brings an extender, and the default scheduler"),
        ("{gpushare: {}}", "kind", "wall", None),
    ],
)
def test_where_it_cannot_run_the_scenario_is_skipped_with_the_reason(stack, cluster, time, reason, tmp_path):
    (tmp_path / "m.yaml").write_text("kind: Pod\nmetadata: {name: p}\n")
    told = foreseen(scenario_with(tmp_path, stack), cluster=cluster, time=time, dialect="h3api")
    assert told is None if reason is None else reason in told


@pytest.mark.parametrize("name", ["plugin", "policy"])
def test_a_plugin_and_a_policy_of_the_users_run_in_virtual_time(name):
    result = Engine(RunOptions()).run(load_scenario(DOCS / f"{name}.yaml")).result
    assert (result.verdict, result.report) == ("passed", "")


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("nothing", "write it as module:callable"),
        ("no_such_module:x", "module 'no_such_module' cannot be imported"),
        ("broken:x", "module 'broken' cannot be imported: NameError: "),
        ("json:no_such_name", "'json' has no 'no_such_name'"),
        ("json:__name__", "is a str; must be callable with"),
    ],
)
@pytest.mark.parametrize("part", ["plugin", "policy"])
def test_a_module_that_is_not_there_is_told_with_its_place_as_the_file_is_read(part, reference, reason, tmp_path):
    (tmp_path / "broken.py").write_text("nonsense\n")
    with pytest.raises(ScenarioError) as refused:
        scenario_with(tmp_path, f"{{replace: {{kubecomp: {{scheduler: {{{part}: '{reference}'}}}}}}}}")
    place = f"{tmp_path / 'one.yaml'}:5: stack.replace.kubecomp.scheduler.{part}: {reference!r}: "
    assert str(refused.value).startswith(place + reason)
    assert "\n" not in str(refused.value)


def test_options_that_a_plugin_does_not_take_are_told_as_the_file_is_read(tmp_path):
    (tmp_path / "mine.py").write_text("def make(handle, weight=1):\n    return None\n")
    stack = "{replace: {scheduler: {plugin: 'mine:make', options: {weigth: 2}}}}"
    with pytest.raises(ScenarioError, match=r"one\.yaml:5: stack\.replace\.scheduler\.plugin: .*'weigth'"):
        scenario_with(tmp_path, stack)


def test_an_image_that_no_process_stands_for_is_bad_input_where_nodes_are_emulated(tmp_path):
    scenario = scenario_with(tmp_path, "{replace: {scheduler: {image: registry.example/mine}}}")
    with pytest.raises(
        BadInputError, match=r"one\.yaml:5: stack\.replace\.scheduler\.image: 'registry\.example/mine': emulated"
    ):
        Engine(RunOptions(time="wall")).run(scenario)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("{replace: {kubecomp: {scheduler: {process: [x]}}}}", "scheduler"),
        ("{replace: {scheduler: {process: [x]}}}", "scheduler"),
        ("{kod2: {}, replace: {kod2: {operator: {process: [x]}}}}", "operator"),
        ("{kod2: {}, replace: {operator: {process: [x]}}}", "operator"),
        ("{replace: {kubecomp: {device-manager: {process: [x]}}}}", "device-manager"),
    ],
)
def test_a_component_is_replaced_below_its_system_or_by_its_name_alone(written, name, tmp_path):
    assert list(scenario_with(tmp_path, written).stack.replace) == [name]


def test_a_component_replaced_in_both_ways_is_refused(tmp_path):
    both = "{replace: {scheduler: {process: [x]}, kubecomp: {scheduler: {process: [y]}}}}"
    with pytest.raises(ScenarioError, match="the component is replaced twice: write it once"):
        scenario_with(tmp_path, both)


def test_an_override_replaces_a_component_of_a_system(tmp_path):
    path = tmp_path / "one.yaml"
    path.write_text(HEAD)
    scenario = load_scenario(path, ["stack.replace.kubecomp.scheduler.process=[mine, --fast]"])
    assert scenario.stack.replace["scheduler"].process == ("mine", "--fast")


def test_modules_of_one_name_in_two_folders_are_two(tmp_path):
    found = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "mine.py").write_text(f"def score(wanted, there):\n    return {name!r}\n")
        scenario = scenario_with(folder, "{replace: {scheduler: {policy: 'mine:score'}}}")
        found.append(LoadedReplacements(scenario).parts("scheduler")["policy"](1, 2))
    assert found == ["one", "two"]


@pytest.mark.parametrize("where", ["scheduler", "kubecomp.scheduler"])
def test_a_manifest_that_holds_no_objects_is_told_in_one_line(where, tmp_path):
    (tmp_path / "m.yaml").write_text("- a\n")
    written = "{manifest: m.yaml}"
    for key in reversed(where.split(".")):
        written = f"{{{key}: {written}}}"
    with pytest.raises(ScenarioError) as refused:
        scenario_with(tmp_path, f"{{replace: {written}}}")
    assert f"one.yaml:5: stack.replace.{where}.manifest: " in str(refused.value)
    assert "each document must be an object with kind" in str(refused.value)


def test_known_names_in_braces_are_filled_in_and_others_stay():
    assert fill("{node}:{other}", {"node": "host-1"}) == "host-1:{other}"
