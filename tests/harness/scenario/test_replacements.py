"""What a scenario may put in our components' place."""

from pathlib import Path

import pytest

from mews.harness.clusters.brought import Brought
from mews.harness.engine import Engine
from mews.harness.errors import BadInput
from mews.harness.options import RunOptions
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loader import load_scenario
from mews.harness.scenario.replacement import fill
from mews.harness.scenario.requirements import foreseen

DOCS = Path(__file__).parents[3] / "docs" / "bring-your-own"
HEAD = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: one}\nhardware: demo\n"


def scenario_with(folder, stack):
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
        ("{kubecomp: null, replace: {reconfig-manager: {process: [x]}}}", "there is none to be replaced"),
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
        ("{replace: {scheduler: {manifest: one.yaml}}}", "kubeconfig", "wall", None),
        ("{replace: {default-scheduler: {image: x}}}", "kubeconfig", "wall", "it belongs to the cluster"),
        ("{extenders: [{process: [x], config: {urlPrefix: 'http://127.0.0.1:1'}}]}", "kind", "wall", None),
        ("{extenders: [{config: {urlPrefix: 'http://10.0.0.9:1'}}]}", "kind", "wall", None),
        ("{extenders: [{config: {urlPrefix: 'http://localhost:1'}}]}", "kind", "wall", "localhost is this machine"),
        ("{extenders: [{config: {}}]}", "embedded", "virtual", "an HTTP extender needs wall-clock time"),
        ("{extenders: [{config: {}}]}", "kubeconfig", "wall", "belongs to the cluster"),
    ],
)
def test_where_it_cannot_run_the_scenario_is_skipped_with_the_reason(stack, cluster, time, reason, tmp_path):
    told = foreseen(scenario_with(tmp_path, stack), cluster=cluster, time=time, dialect="h3api")
    assert told is None if reason is None else reason in told


@pytest.mark.parametrize("name", ["plugin", "policy"])
def test_a_plugin_and_a_policy_of_the_users_run_in_virtual_time(name):
    result = Engine(RunOptions()).run(load_scenario(DOCS / f"{name}.yaml")).result
    assert (result.verdict, result.report) == ("passed", "")


@pytest.mark.parametrize("reference", ["nothing", "no_such_module:x", "json:no_such_name", "json:__name__"])
def test_a_plugin_that_is_not_there_is_bad_input(reference, tmp_path):
    scenario = scenario_with(tmp_path, f"{{replace: {{scheduler: {{plugin: '{reference}'}}}}}}")
    with pytest.raises(BadInput) as refused:
        Engine(RunOptions()).run(scenario)
    assert str(refused.value).startswith(f"stack.replace.scheduler: plugin {reference!r}: ")


def test_modules_of_one_name_in_two_folders_are_two(tmp_path):
    found = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "mine.py").write_text(f"def score(wanted, there):\n    return {name!r}\n")
        scenario = scenario_with(folder, "{replace: {scheduler: {policy: 'mine:score'}}}")
        found.append(Brought(scenario).policy()(1, 2))
    assert found == ["one", "two"]


def test_a_manifest_that_holds_no_objects_is_told_in_one_line(tmp_path):
    (tmp_path / "m.yaml").write_text("- a\n")
    scenario = scenario_with(tmp_path, "{replace: {scheduler: {manifest: m.yaml}}}")
    with pytest.raises(ScenarioError, match="each document must be an object with kind"):
        Brought(scenario).documents()


def test_known_names_in_braces_are_filled_in_and_others_stay():
    assert fill("{node}:{other}", {"node": "host-1"}) == "host-1:{other}"
