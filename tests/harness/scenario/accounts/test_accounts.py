"""Every key of the scenario schema is accounted for in every way to run: honoured, refused, or named."""

from pathlib import Path

import pytest

from mews.harness.backends import BACKENDS
from mews.harness.live.session import step_of
from mews.harness.scenario.accounts.account import HONOURED, KeyAccount, KeyUse, in_words
from mews.harness.scenario.accounts.clusters import cluster_account, left_out
from mews.harness.scenario.accounts.keys import given_keys, known_keys
from mews.harness.scenario.accounts.sessions import RECORDING, SESSION, STEP, left_out_of_session
from mews.harness.scenario.actions import Step
from mews.harness.scenario.base import Model
from mews.harness.scenario.loader import load_scenario, parse_scenario
from mews.harness.simulation.account import account_of
from mews.systems import registry

HEAD = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: t}\nhardware: demo\n"


def read(text):
    return parse_scenario(HEAD + text, Path("t.yaml"))


def simulated(name, chosen=None):
    scenario = load_scenario(f"scenarios/testbed/{name}.yaml")
    policy = registry.system("kubecomp").studies.trace_policies()[0]
    return account_of(scenario, policy, "kubecomp", chosen)


WAYS = [*map(cluster_account, BACKENDS), SESSION, RECORDING]


@pytest.mark.parametrize("account", WAYS, ids=lambda each: each.way)
def test_every_key_of_the_schema_is_declared(account):
    assert [".".join(key) for key in known_keys() if account.rule_of(key) is None] == []


def test_every_key_is_declared_for_the_simulator_and_for_single_steps():
    account = simulated("w3-pool")
    undeclared = [".".join(key) for key in known_keys() if account.rule_of(key) is None]
    # Systems that are no part of the stack cannot be given; the loader adds a rule for each that is.
    others = tuple(
        f"stack.{name}" for name in ("gpushare", "koordinator", "remediation", "dra", "pooldra", "cohdi", "kod2")
    )
    assert [key for key in undeclared if not key.startswith(others)] == []
    assert [key for key in known_keys(Step) if STEP.rule_of(key) is None] == []


@pytest.mark.parametrize("account", [*WAYS, STEP], ids=lambda each: each.way)
def test_whatever_is_not_honoured_has_a_reason(account):
    assert [key for key, rule in account.rules.items() if rule.use is not KeyUse.HONOURED and not rule.why] == []


def test_a_key_that_nobody_declared_is_refused_and_one_at_its_default_asks_nothing():
    class Tomorrow(Model):
        new: int = 1
        old: int = 1

    account = KeyAccount("mews today", {"old": HONOURED})
    assert account.refused(Tomorrow(old=2)) == []
    (found,) = account.refused(Tomorrow(new=2))
    assert found.text == "new: is not known to mews today"


def test_a_new_step_or_option_of_the_schema_would_be_found_undeclared():
    account = KeyAccount("t", {key: rule for key, rule in SESSION.rules.items() if key != "steps.**"})
    assert ("steps", "*", "fault", "add") in [key for key in known_keys() if account.rule_of(key) is None]
    assert ("stack", "kubecomp", "scheduler", "strict_fcfs") in known_keys()


def test_keys_are_those_that_say_something_new_wherever_they_stand():
    scenario = read(
        "seed: 1\nstack: {kubecomp: {scheduler: {strict_fcfs: true, policy: both}}}\n"
        "steps: [{wait: {settled: {}}}, {fault: {chassis: A, add: {kind: lying-result}}}]\n"
    )
    places = [".".join(key.place) for key in given_keys(scenario)]
    assert [place for place in places if place.startswith(("stack", "steps", "seed"))] == [
        "stack.kubecomp.scheduler.strict_fcfs",
        "steps.0.wait.0.settled",
        "steps.1.fault.chassis",
        "steps.1.fault.add",
    ]


def test_a_default_that_is_written_out_is_no_key():
    given = (
        "stack: {kubecomp: {scheduler: {policy: both}, mode: corrected}, controllers: {run: ['*']}}\nworkload: null\n"
    )
    assert [key.place[0] for key in given_keys(read(given))] == ["apiVersion", "kind", "metadata", "hardware"]


def test_a_system_that_is_left_out_or_added_is_a_key():
    places = [".".join(key.place) for key in given_keys(read("stack: {kubecomp: null, kod2: {}}\n"))]
    assert [place for place in places if place.startswith("stack")] == ["stack.kod2", "stack.kubecomp"]


STACK = (
    "stack: {profile: testbed, controllers: {run: ['*', -job-controller], program: ours}, "
    "defaultScheduler: {scoring: random}}\n"
)


@pytest.mark.parametrize("cluster", ["kind", "kubeconfig"])
def test_real_clusters_name_what_they_go_on_without(cluster):
    assert [each.key for each in left_out(read(STACK), cluster)] == [
        "stack.defaultScheduler.scoring",
        "stack.controllers.run",
        "stack.controllers.program",
        "stack.profile",
    ]
    theirs = read("stack: {profile: instant, controllers: {program: kube-controller-manager}}\n")
    assert left_out(theirs, cluster) == ()


@pytest.mark.parametrize("cluster", ["embedded", "control-plane"])
def test_emulated_nodes_honour_all_of_it(cluster):
    assert left_out(read(STACK), cluster) == ()


def test_a_session_names_what_it_does_not_play_once():
    scenario = load_scenario("scenarios/testbed/w3-pool.yaml")
    found = left_out_of_session(scenario, "kind")
    text = in_words(found)
    assert {each.key.split(".")[0] for each in found} == {
        "requires",
        "timeout",
        "steps",
        "workload",
        "metrics",
        "stack",
    }
    assert text.count("mews run plays this") == 1


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        ({"workload": "run"}, "workload: belongs to a scenario; a live session has none"),
        ({"script": "true"}, "script: belongs to a scenario; a live session has none"),
        (
            {"get": {"kind": "Pod", "name": "a"}, "outputs": {"x": {"path": "{.a}"}}},
            "outputs: belong to a scenario; a live session has no later steps",
        ),
    ],
)
def test_a_session_refuses_steps_that_it_has_no_scenario_for(step, complaint):
    with pytest.raises(ValueError, match=complaint):
        step_of(step)


def test_every_scenario_that_comes_with_mews_is_known_to_every_cluster():
    for path in sorted(Path("scenarios").glob("*.yaml"))[::8]:
        for cluster in BACKENDS:
            account = cluster_account(cluster)
            assert account.refused(load_scenario(path)) == []
