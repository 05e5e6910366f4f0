"""The systems of a stack: ours and somebody else's, what a file may say of them, and that they run."""

from importlib.metadata import EntryPoint
from pathlib import Path

import jsonschema
import pytest

from mews.harness.commands.up import (
    UpPrograms,
    check_programs,
    scenario_of,
    with_metrics,
    with_programs,
    with_stack,
    with_storage,
)
from mews.harness.engine import Engine
from mews.harness.errors import BadInputError, RequirementError
from mews.harness.manifests.kube_scheduler import configuration
from mews.harness.options import RunOptions
from mews.harness.scenario.accounts.clusters import left_out
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.facility import facility_of
from mews.harness.scenario.hardware import hardware_of
from mews.harness.scenario.loader import parse_scenario, schema
from mews.harness.scenario.yamlfile import read_yaml
from mews.systems import registry

HEAD = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: one}\nhardware: demo\n"


def read(stack, more=""):
    return parse_scenario(f"{HEAD}stack: {stack}\n{more}", Path("one.yaml"))


def facility():
    """What a demo is installed on."""
    return facility_of(hardware_of(scenario_of(None, None)))


@pytest.fixture
def toy(monkeypatch):
    """The toy system, found as an installed package's is."""
    points = [EntryPoint("toy", "tests.harness.scenario.toy_system:SYSTEM", registry.GROUP)]

    def found(*, group, name=None):
        assert group == registry.GROUP
        return [point for point in points if name in (None, point.name)]

    monkeypatch.setattr(registry, "entry_points", found)
    return points


@pytest.mark.parametrize(
    ("stack", "says"),
    [
        ("{kod2: {starve: 3}}", "stack.kod2.starve: unknown key; allowed: starve_limit_s, "),
        ("{kod2: {starve_limit_s: -1}}", "stack.kod2.starve_limit_s: -1: must be 0 or more"),
        ("{kod2: {starve_limit_s: .nan}}", "stack.kod2.starve_limit_s: nan: "),
        ("{kod2: {tick_s: 0}}", "stack.kod2.tick_s: 0: must be above 0"),
        ("{kod2: {backfill: 1}}", "stack.kod2.backfill: 1: must be true or false"),
        ("{kod2: {mode: fast}}", "stack.kod2.mode: 'fast': must be one of corrected, literal"),
        ("{kod2: 3}", "stack.kod2: 3: must be a mapping"),
        ("{kubecomp: {config: {timming: {}}}}", "stack.kubecomp.config.timming: unknown key; allowed: "),
        (
            "{kubecomp: {config: {timing: {retries: 1.5}}}}",
            "stack.kubecomp.config.timing.retries: 1.5: ",
        ),
        ("{kubecomp: {config: {timing: {heartbeat_s: 0}}}}", "timing.heartbeat_s: 0: must be above 0"),
        ("{kubecomp: {config: {resource: gpu}}}", "stack.kubecomp.config.resource: 'gpu': must match"),
        ("{kubecomp: {scheduler: {polcy: both}}}", "stack.kubecomp.scheduler.polcy: unknown key; allowed: "),
        ("{kubecomp: {schedulr: null}}", "stack.kubecomp.schedulr: unknown key; allowed: scheduler, "),
        ("{default_scheduler: {scorring: 1}}", "stack.default_scheduler.scorring: unknown key; allowed: scoring, "),
        ("{defaultScheduler: {scoring: best}}", "stack.defaultScheduler.scoring: 'best': must be one of default,"),
        ("{kubelets: {}}", "stack.kubelets: unknown key; allowed: "),
        ("{kubecmp: null}", "stack.kubecmp: unknown key; allowed: "),
        ("{systems: {}}", "stack.systems: unknown key; allowed: "),
    ],
)
def test_what_a_file_says_of_a_component_is_checked_when_it_is_read(stack, says):
    with pytest.raises(ScenarioError) as refused:
        read(stack)
    assert str(refused.value).startswith("one.yaml:5: stack.")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("wrong", "meant"), [("gpusharing", "gpushare"), ("toi", "toy"), ("extender", "extenders")])
def test_an_unknown_key_is_told_the_nearest_of_systems_and_options(toy, wrong, meant):
    with pytest.raises(ScenarioError, match=rf"allowed: {meant}, .* others \(did you mean {meant}\?\)$"):
        read(f"{{{wrong}: {{}}}}")


@pytest.mark.parametrize(
    ("stack", "systems"),
    [
        ("{}", ["kubecomp"]),
        ("{kubecomp: null}", []),
        ("{kubecomp: {}, kod2: {}}", ["kod2", "kubecomp"]),
        ("{kubecomp: null, kod2: {}}", ["kod2"]),
        ("{kod2: null}", ["kubecomp"]),
    ],
)
def test_a_stack_holds_any_number_of_systems_in_the_order_of_their_start(stack, systems):
    assert list(read(stack).stack.systems) == systems


def test_all_spellings_of_today_mean_the_same():
    one = read("{kubecomp: {scheduler: {strict_fcfs: true}, reconfig_manager: {retries: 2}, device_manager: null}}")
    two = read(
        "{kubecomp: {scheduler: {strictFcfs: true}, reconfigManager: {timing: {retries: 2}}, deviceManager: null}}"
    )
    found = [each.stack.systems["kubecomp"].changes() for each in (one, two)]
    assert found == [({"strict_fcfs": True}, {"retries": 2})] * 2


def test_a_parts_option_outweighs_the_shared_one_and_its_default_does_not():
    shared = "config: {policy: none, heartbeat_s: 5}"
    assert read(f"{{kubecomp: {{{shared}}}}}").stack.systems["kubecomp"].changes()[0] == {"policy": "none"}
    both = read(f"{{kubecomp: {{{shared}, scheduler: {{policy: both}}}}}}").stack.systems["kubecomp"].changes()
    assert both == ({"policy": "both"}, {"heartbeat_s": 5})


def test_what_a_stack_pools_is_what_its_system_is_told_to():
    stack = read("{kubecomp: {config: {resource: pool.example.com/fpga, scheduler_name: mine}}}").stack
    assert (stack.pooled.resource, stack.pooled.scheduler) == ("pool.example.com/fpga", "mine")
    assert read("{kubecomp: null}").stack.pooled == read("{}").stack.pooled


def test_the_schema_has_the_options_of_every_system(toy):
    published = schema()
    for good in ("{kod2: {starve_limit_s: 3}}", "{kubecomp: {config: {timing: {retries: 2}}}}", "{toy: {mood: busy}}"):
        jsonschema.validate(read_yaml(f"{HEAD}stack: {good}\n", "good").value, published)
    for bad in ("{kod2: {starve: 3}}", "{toy: {mood: sad}}", "{kubecomp: {config: {timming: {}}}}", "{none: {}}"):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(read_yaml(f"{HEAD}stack: {bad}\n", "bad").value, published)


@pytest.mark.parametrize(
    ("stack", "ours"),
    [
        ("{}", True),
        ("{kod2: {}, gpushare: {}}", True),
        ("{controllers: {program: ours}, defaultScheduler: {program: ours}}", True),
        ("{controllers: {program: kube-controller-manager}}", False),
        ("{defaultScheduler: {program: kube-scheduler}}", False),
        ("{extenders: [{process: [x], config: {urlPrefix: 'http://127.0.0.1:1'}}]}", False),
        ("{kubecomp: {}, replace: {scheduler: {process: [x]}}}", False),
    ],
)
def test_a_stack_is_ours_while_nothing_of_somebody_else_is_in_it(stack, ours):
    assert read(stack).stack.is_ours == ours


def test_a_stack_with_somebody_elses_system_is_not_ours(toy):
    assert not read("{toy: {}}").stack.is_ours


def test_somebody_elses_system_runs_beside_ours_by_its_name_alone(toy):
    steps = """\
steps:
  - apply: {kind: Pod, metadata: {name: a}, spec: {containers: [{name: main, image: mews/train}]}}
  - wait: {object: {apiVersion: toys.example.com/v1, kind: PodCount, metadata: {name: all}, pods: 1}}
  - wait: {object: {kind: Node, metadata: {name: host-2, labels: {toys.example.com/painted: host-2}}}}
  - kill: toy.scheduler
  - restart: painter/host-2
  - assert: {object: {kind: Namespace, metadata: {name: toys}}}
metrics: {most_pods: 1}
"""
    run = Engine(RunOptions()).run(read("{toy: {every: 1}}", steps))
    assert (run.result.verdict, run.result.report) == ("passed", "")
    killed = [line.actor for line in run.lines if line.layer == "component" and line.event == "killed"]
    assert killed == ["toy.scheduler", "painter/host-2"]


@pytest.mark.parametrize(
    ("stack", "says"),
    [
        ("{toy: {evry: 1}}", "one.yaml:5: stack.toy.evry: unknown key; allowed: every, mood"),
        (
            "{toy: {mood: busy, every: 20}}",
            "one.yaml:5: stack.toy: {'every': 20, 'mood': 'busy'}: every: a busy toy looks every 10 seconds at least",
        ),
        ("{toy: {}, replace: {toy: {scheduler: {plugin: 'a:b'}}}}", "stack.replace.toy.scheduler.plugin: 'a:b': only"),
    ],
)
def test_the_options_of_somebody_elses_system_are_checked_like_ours(toy, stack, says):
    with pytest.raises(ScenarioError) as refused:
        read(stack)
    assert says in str(refused.value)


def test_the_later_of_two_components_of_one_name_goes_by_its_systems_name_too(toy):
    names = [name for each in read("{toy: {}}").stack.configured(facility()) for name, _ in each.components()]
    assert names == ["scheduler", "reconfig-manager", "device-manager", "toy.scheduler", "painter"]
    alone = read("{kubecomp: null, toy: {}}").stack.configured(facility())
    assert [name for each in alone for name, _ in each.components()] == ["scheduler", "painter"]


def test_each_of_two_components_of_one_name_can_be_replaced(toy):
    stack = read("{toy: {}, replace: {scheduler: {process: [x]}, toy: {scheduler: {process: [y]}}}}").stack
    assert {name: yours.process for name, yours in stack.replace.items()} == {
        "scheduler": ("x",),
        "toy.scheduler": ("y",),
    }


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("tests.harness.scenario.no_such_module:SYSTEM", "cannot be loaded"),
        ("tests.harness.scenario.toy_system:NOTHING", "cannot be loaded"),
        ("tests.harness.scenario.toy_system:Counter", "must be a mews.kube.system.system.System of that name"),
    ],
)
def test_a_system_that_cannot_be_loaded_is_told_in_one_line_and_spoils_no_other_file(toy, value, says):
    toy[0] = EntryPoint("toy", value, registry.GROUP)
    with pytest.raises(ScenarioError, match=says) as refused:
        read("{toy: {}}")
    assert str(refused.value).startswith("one.yaml:5: stack.toy: ")
    assert "\n" not in str(refused.value)
    assert list(read("{kod2: {}}").stack.systems) == ["kod2", "kubecomp"]
    assert "kod2" in schema()["$defs"]["Stack"]["properties"]


@pytest.mark.parametrize(
    ("given", "systems"), [("none", []), ("kod2", ["kod2"]), ("kubecomp,kod2", ["kod2", "kubecomp"])]
)
def test_up_runs_the_systems_that_it_is_told(given, systems):
    assert list(with_stack(scenario_of(None, None), given).stack.systems) == systems


@pytest.mark.parametrize("given", ["kubecmp", "", "kubecomp,", "none,kod2"])
def test_up_refuses_a_stack_of_no_known_system_in_one_line(given):
    with pytest.raises(BadInputError, match=r"^--stack .*: must be one of \w+, \w+, .* or \d others"):
        with_stack(scenario_of(None, None), given)


def test_a_system_of_a_scenario_keeps_its_options_under_stack():
    kept = with_stack(read("{kod2: {cooldown_s: 7}}"), "kod2").stack
    assert kept.systems["kod2"].cooldown_s == 7


def test_a_replacement_of_a_system_that_is_left_out_is_refused():
    with pytest.raises(
        BadInputError, match=r"--stack none: stack\.replace\.scheduler replaces a component of a system"
    ):
        with_stack(read("{replace: {scheduler: {process: [x]}}}"), "none")


def test_a_bare_cluster_runs_pods_without_any_system():
    steps = """\
steps:
  - apply: {kind: Pod, metadata: {name: a}, spec: {containers: [{name: main, image: mews/train}]}}
  - wait: {pod: {name: a, phase: Running}}
"""
    run = Engine(RunOptions()).run(read("{kubecomp: null}", steps))
    assert (run.result.verdict, run.result.report) == ("passed", "")
    assert "reconfigurations" not in run.result.metrics


def test_up_has_volumes_for_claims_unless_the_scenario_says_otherwise():
    assert scenario_of(None, None).stack.storage is None
    assert with_storage(scenario_of(None, None), "embedded").stack.storage == "folder"
    assert with_storage(read("{storage: none}"), "embedded").stack.storage == "none"
    for cluster in ("control-plane", "kind"):
        assert with_storage(scenario_of(None, None), cluster).stack.storage is None


@pytest.mark.parametrize(
    ("cluster", "named"), [("embedded", False), ("control-plane", True), ("kind", True), ("kubeconfig", True)]
)
def test_clusters_that_make_no_folders_say_so(cluster, named):
    keys = [each.key for each in left_out(read("{storage: folder}"), cluster)]
    assert ("stack.storage" in keys) is named
    assert "stack.storage" not in [each.key for each in left_out(read("{storage: none}"), cluster)]


def test_up_puts_kubernetes_programs_in_the_place_of_ours():
    given = with_programs(scenario_of(None, None), UpPrograms("real", "ours"), "embedded").stack
    assert (given.default_scheduler.program, given.controllers.program) == ("kube-scheduler", "ours")
    assert with_programs(scenario_of(None, None), UpPrograms(), "embedded").stack.default_scheduler.program is None


@pytest.mark.parametrize(
    ("stack", "programs", "cluster", "says"),
    [
        ("{}", UpPrograms("theirs"), "embedded", "--scheduler theirs: must be one of ours, real"),
        ("{}", UpPrograms(None, "real"), "kind", "--controllers real: --cluster kind runs its own"),
        (
            "{defaultScheduler: null}",
            UpPrograms("real"),
            "embedded",
            "real: the stack does not run our default sched",
        ),
        (
            "{defaultScheduler: {scoring: random}}",
            UpPrograms("real"),
            "embedded",
            "sets options of our scheduler: scoring",
        ),
    ],
)
def test_programs_that_cannot_run_there_are_refused_in_one_line(stack, programs, cluster, says):
    with pytest.raises(BadInputError, match=says):
        with_programs(read(stack), programs, cluster)


def test_a_scenario_gives_kube_scheduler_no_options_of_ours():
    with pytest.raises(
        ScenarioError, match="program: kube-scheduler does not take options of our scheduler, such as strategy"
    ):
        read("{defaultScheduler: {program: kube-scheduler, strategy: MostAllocated}}")


def test_both_schedulers_take_the_time_that_devices_have_and_1_34_has_none(tmp_path):
    program = "program: kube-scheduler, deviceBindingTimeoutS: 30"
    options = read(f'{{kubernetes: "1.37", defaultScheduler: {{{program}}}}}').stack.default_scheduler
    assert (options.given(), options.for_program()["device_binding_timeout_s"]) == ({}, 30)
    arguments = {"DynamicResources": {"bindingTimeout": "30s"}}
    (profile,) = configuration("k", [], {}, arguments)["profiles"]
    assert profile["pluginConfig"] == [{"name": "DynamicResources", "args": {"bindingTimeout": "30s"}}]
    says = r"deviceBindingTimeoutS: needs the feature DRADeviceBindingConditions, off in Kubernetes 1\.34"
    with pytest.raises(ScenarioError, match=says):
        read("{defaultScheduler: {deviceBindingTimeoutS: 30}}")


def test_a_program_that_is_missing_is_named_with_the_way_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    with pytest.raises(
        RequirementError, match=r"--controllers real: kube-controller-manager is neither .*dl\.k8s\.io"
    ) as lacks:
        check_programs(UpPrograms("ours", "real"))
    assert "\n" not in str(lacks.value)


def test_a_claim_in_virtual_time_gets_its_volume_where_the_stack_has_storage():
    steps = """\
steps:
  - apply:
      kind: PersistentVolumeClaim
      metadata: {name: c}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  - apply:
      kind: Pod
      metadata: {name: a}
      spec:
        containers: [{name: main, image: mews/train, volumeMounts: [{name: v, mountPath: /v}]}]
        volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]
  - wait: {pod: {name: a, phase: Running}}
"""
    for stack, verdict in (("{storage: folder, kubecomp: null}", "passed"), ("{kubecomp: null}", "failed")):
        result = Engine(RunOptions()).run(read(stack, steps)).result
        assert result.verdict == verdict, result.reason


@pytest.mark.parametrize(("given", "expected"), [("on", "on"), ("off", "off"), ('"off"', "off"), ("true", "on")])
def test_the_metrics_api_is_switched_by_words_that_yaml_reads_as_booleans(given, expected):
    assert read(f"{{metrics: {given}}}").stack.metrics == expected
    assert with_metrics(read("{metrics: off}"), None).stack.metrics == "off"
    assert with_metrics(read("{metrics: off}"), "on").stack.metrics == "on"


def test_the_metrics_api_is_on_or_off():
    with pytest.raises(ScenarioError, match=r"stack.metrics: 'perhaps'"):
        read("{metrics: perhaps}")
    with pytest.raises(BadInputError, match="--metrics perhaps: must be one of on, off"):
        with_metrics(read("{}"), "perhaps")
