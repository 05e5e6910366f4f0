"""The step ``fault: {component: …}`` in scenarios and live sessions, and what laws make of it."""

import pytest
import yaml

from mews.harness.engine import Engine
from mews.harness.invariants.bounds import Bounds
from mews.harness.invariants.judge import InvariantJudge
from mews.harness.journal import Line
from mews.harness.options import RunOptions
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loader import load_scenario
from mews.harness.scenario.requirements import foreseen
from mews.kube.system.invariant import Breach, Invariant

POD = {
    "kind": "Pod",
    "metadata": {"name": "trainer"},
    "spec": {
        "schedulerName": "kubecomp-scheduler",
        "containers": [{"name": "main", "image": "mews/gpu-hold", "resources": {"limits": {"falcon.com/gpu": "1"}}}],
    },
}


@pytest.fixture
def written(tmp_path):
    def write(*steps, **more):
        head = {"apiVersion": "mews/v1", "kind": "Scenario", "metadata": {"name": "x"}, "hardware": "demo"}
        path = tmp_path / "x.yaml"
        path.write_text(yaml.safe_dump({**head, "steps": list(steps), **more}))
        return path

    return write


def fault(component="scheduler", **spec):
    return {"fault": {"component": component, "add": spec}}


def played(path):
    scenario = load_scenario(path)
    return Engine(RunOptions()).attempt(scenario, scenario.seed)


def told(run):
    return [(line.actor, line.event, line.fields["kind"]) for line in run.lines if line.layer == "fault"]


def test_a_component_is_struck_until_its_faults_are_cleared_by_its_name(written):
    run = played(
        written(
            fault(kind="stale-reads"),
            fault("kubelet/host-1", kind="conflict", count=None, resource="leases"),
            {"apply": POD},
            {"hold": {"for": "20s", "check": {"pod": {"name": "trainer", "phase": "Pending"}}}},
            {"fault": {"clear": "scheduler"}},
            {"wait": {"pod": {"name": "trainer", "phase": "Running"}}, "timeout": "30s"},
            {"fault": {"clear": "all"}},
        )
    )
    assert run.result.verdict == "passed", run.result.reason
    lines = told(run)
    assert lines[0] == ("scheduler", "added", "stale-reads")
    cleared = [line for line in lines if line[1] == "cleared"]
    assert cleared == [("scheduler", "cleared", "stale-reads"), ("kubelet/host-1", "cleared", "conflict")]
    assert ("scheduler", "fired", "stale-reads") in lines


def test_two_runs_of_one_seed_write_the_same_journal(written):
    path = written(
        fault(kind="unordered-watches", by_s=5),
        fault(kind="server-error", probability=0.3, count=None, expires_s=20),
        {"apply": POD},
        {"wait": {"pod": {"name": "trainer", "phase": "Running"}}, "timeout": "3m"},
        judgedBy="laws",
    )
    first, second = ([line.as_dict() for line in played(path).lines] for _ in range(2))
    assert first == second


def test_a_killed_component_starts_anew_under_its_faults(written):
    run = played(
        written(
            fault(kind="expired-token", expires_s=20),
            {"restart": "scheduler"},
            {"apply": POD},
            {"hold": {"for": "10s", "check": {"pod": {"name": "trainer", "phase": "Pending"}}}},
            {"wait": {"pod": {"name": "trainer", "phase": "Running"}}, "timeout": "1m"},
        )
    )
    assert run.result.verdict == "passed", run.result.reason


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (fault("schedulr", kind="conflict"), "'schedulr': must be one of scheduler,"),
        (fault("chassis/A", kind="conflict"), "'chassis/A': must be one of"),
        ({"fault": {"add": {"kind": "conflict"}}}, "is a fault of a component, not of a chassis: name the component"),
        (fault(kind="xid"), "is a fault of a host, not of a component: name the host"),
        (fault(kind="lying-result"), "is a fault of a chassis, not of a component: name no host and no component"),
        (fault(kind="conflict", device="000100"), "unknown key 'device'"),
        (
            {"fault": {"component": "scheduler", "host": "host-1", "add": {"kind": "conflict"}}},
            "must name one of chassis, host and component; host and component given",
        ),
        ({"fault": {"component": "scheduler", "clear": "scheduler"}}, "clear names whose faults end: clear: scheduler"),
        ({"fault": {"clear": "schedulr"}}, "'schedulr': must be one of scheduler,"),
    ],
)
def test_what_is_wrong_is_found_as_the_file_is_read(written, step, said):
    with pytest.raises(ScenarioError) as refused:
        load_scenario(written(step))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("cluster", ["kind", "kubeconfig"])
@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (fault(kind="conflict"), None),
        (fault("device-manager/host-1", kind="frozen-api"), None),
        (fault("kubelet/host-1", kind="conflict"), "kubelet/host-1 is the cluster's own"),
        (fault("default-scheduler", kind="conflict"), "default-scheduler is the cluster's own"),
        (fault("controller-manager", kind="conflict"), "controller-manager is the cluster's own"),
        (fault(kind="frozen-process"), "frozen-process cannot be had of what runs in pods"),
        (fault("kubelet/host-1", kind="paused-rpc"), "paused-rpc cannot be had of what runs in pods"),
    ],
)
def test_on_real_clusters_pods_of_ours_are_struck_and_the_rest_is_skipped(written, cluster, step, reason):
    scenario = load_scenario(written({"sleep": 1}, step))
    assert foreseen(scenario, cluster="control-plane", time="wall", dialect="h3api") is None
    found = foreseen(scenario, cluster=cluster, time="wall", dialect="h3api")
    wanted = f"steps.1.fault: needs --cluster embedded or control-plane: on {cluster}, {reason}"
    assert (found is None) if reason is None else found.startswith(wanted)


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ({"process": ["sleep", "1"]}, None),
        ({"manifest": "x.yaml"}, "steps.0.fault: scheduler comes in pods of a manifest, whose requests go past Mews"),
    ],
)
def test_a_program_of_the_users_is_struck_and_pods_of_a_manifest_are_not(written, way, reason):
    path = written(fault("scheduler", kind="conflict"), stack={"replace": {"kubecomp": {"scheduler": way}}})
    scenario = load_scenario(path)
    assert foreseen(scenario, cluster="embedded", time="wall", dialect="h3api") == reason


def test_a_process_is_frozen_in_wall_clock_time_alone(written):
    scenario = load_scenario(written(fault("default-scheduler", kind="frozen-process")))
    assert foreseen(scenario, cluster="embedded", time="wall", dialect="h3api") is None
    reason = foreseen(scenario, cluster="embedded", time="virtual", dialect="h3api")
    assert reason == "steps.0.fault: frozen-process needs wall-clock time (--time wall) and a program of its own"


def test_a_frozen_api_holds_a_component_until_it_is_thawed(written):
    run = played(
        written(
            fault(kind="frozen-api"),
            {"apply": POD},
            {"hold": {"for": "90s", "check": {"pod": {"name": "trainer", "phase": "Pending"}}}},
            {"fault": {"clear": "scheduler"}},
            {"wait": {"pod": {"name": "trainer", "phase": "Running"}}, "timeout": "30s"},
        )
    )
    assert run.result.verdict == "passed", run.result.reason


# Laws


class Owed(Invariant):
    """What begins is to be done within 10 s."""

    number = 100
    name = "what begins is done"
    of_time = True

    def __init__(self):
        self.since = None

    def on_line(self, line, state):
        if line.event == "begun":
            self.since = line.t
        return ()

    def on_time(self, t, state):
        if self.since is not None and t - state.clock_from(self.number, self.since) > 10:
            yield Breach(("owed",), "it is not done", None)


class Never(Invariant):
    """No second line."""

    number = 101
    name = "nothing is done twice"

    def on_line(self, line, state):
        if line.event == "twice":
            yield Breach(("twice",), "it is done twice", line)


class Reported(Never):
    """Each is reported, once."""

    number = 102
    of_time = True


def judged(*lines, beside):
    judge = InvariantJudge(Bounds(), beside=[law() for law in beside], ours=False)
    for number, (t, layer, actor, event, fields) in enumerate(lines):
        judge.on_line(Line(number, t, layer, actor, event, fields))
    return [(each.invariant, each.t) for each in judge.violations]


def of_fault(t, event, **fields):
    return t, "fault", "scheduler", event, {"fault": "a1", "kind": "expired-token", "excuses": {}, **fields}


def step(t, event="passed"):
    return t, "step", "x", event, {"step": 1}


def test_a_law_of_time_waits_for_the_end_of_a_fault_and_its_clock_starts_anew():
    lines = [
        step(0, "begun"),
        of_fault(5, "added", hinders_s=None),
        step(30),
        of_fault(40, "cleared", hinders_s=15.0),
        step(50),
        step(64),
        step(66),
    ]
    assert judged(*lines, beside=[Owed]) == [(100, 66)]
    assert judged(lines[0], step(12), beside=[Owed]) == [(100, 12)]


def test_a_fault_that_counts_hinders_from_each_time_that_it_fires():
    lines = [step(0, "begun"), of_fault(1, "added"), step(9), of_fault(9, "fired", hinders_s=15.0), step(30), step(36)]
    assert judged(*lines, beside=[Owed]) == [(100, 36)]


def test_other_laws_decide_all_the_same():
    lines = [of_fault(5, "added", hinders_s=None), step(6, "twice")]
    assert judged(*lines, beside=[Never]) == [(101, 6)]


def test_a_report_that_is_lost_under_a_fault_is_none_and_one_after_it_is_found():
    during = [of_fault(5, "added", hinders_s=None), step(6, "twice"), of_fault(7, "cleared", hinders_s=15.0)]
    assert judged(*during, step(21, "twice"), step(40), beside=[Reported]) == []
    assert judged(*during, step(40, "twice"), beside=[Reported]) == [(102, 40)]


def test_who_holds_which_device_is_no_law_of_time():
    judge = InvariantJudge(Bounds())
    laws = {law.number: law for laws in (judge._of_lines, *judge._of_events.values()) for law in laws}
    for number in (1, 2, 3, 6, 10, 13, 15, 29):
        assert not laws[number].of_time, laws[number].name
