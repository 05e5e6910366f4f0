"""What is concluded from observations, and that a replay of what went wrong is red."""

import json

import pytest
import yaml

from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.recording.commented import commented_yaml
from mews.harness.recording.inference import NothingRecordedError, recorded_files
from mews.harness.recording.observations import (
    ClusterObservations,
    DeviceTrouble,
    LostReading,
    ObjectSighting,
    SeenOperation,
)
from mews.harness.recording.reduction import reduced
from mews.harness.recording.written import write_files
from mews.harness.scenario.loader import load_scenario
from mews.kube.api.objects import timestamp
from tests.harness.recording.seen import NODES, PLACES, T, a_node, a_pod, a_table, seen


def files_of(observations):
    return recorded_files(observations, name="lab", hardware_file="lab-hardware.yaml")


def steps_of(observations, kind=None):
    steps = files_of(observations).scenario["steps"]
    return [step[kind] for step in steps if kind in step] if kind else steps


def comments_of(observations):
    files = files_of(observations)
    return commented_yaml(files.scenario, files.scenario_comments, "head") + commented_yaml(
        files.hardware, files.hardware_comments, "head"
    )


def replayed(observations, folder, *overrides):
    write_files(folder / "lab.yaml", files_of(observations))
    result = Engine(RunOptions("embedded", "virtual")).run(load_scenario(folder / "lab.yaml", overrides)).result
    return result.verdict, result.reason


MOVED = {**PLACES, "000300": None}
ATTACHED = {**PLACES, "000300": "1"}
STUCK = seen(a_pod("trainer", 3, T + 2), readings=(a_table(MOVED, T + 4),))


def test_a_move_that_stops_halfway_is_red_with_its_reason(tmp_path):
    verdict, reason = replayed(STUCK, tmp_path)
    assert verdict == "failed"
    assert "pod/default/trainer" in reason
    assert "Pending" in reason


def test_the_same_without_the_fault_is_green(tmp_path):
    assert replayed(STUCK, tmp_path, ("steps.1.fault.add.count=1")) == ("passed", "")


def test_the_fault_of_a_device_that_no_attach_brought_back_is_its_own():
    assert steps_of(STUCK, "fault") == [{"chassis": "A", "add": {"kind": "never-trains", "device": "000300"}}]
    assert "the replies of the chassis were not recorded" in comments_of(STUCK)


def test_a_device_on_its_way_is_no_fault():
    early = seen(a_pod("trainer", 3, T + 2), readings=(a_table(MOVED, T + 4),), ended=T + 10)
    assert steps_of(early, "fault") == []


def test_a_move_that_went_well_is_made_by_the_stack_again(tmp_path):
    well = seen(
        a_pod("trainer", 3, T + 2, node="host-1", started=T + 15),
        a_node("host-1", 3, T + 10),
        a_node("host-2", 1, T + 10),
        readings=(a_table(MOVED, T + 4), a_table(ATTACHED, T + 6)),
    )
    assert steps_of(well, "chassis") == steps_of(well, "fault") == []
    assert {"hosts": {"host-1": 3, "host-2": 1}} in steps_of(well)[-1]["wait"]
    assert replayed(well, tmp_path) == ("passed", "")


IN_USE = seen(a_pod("trainer", 2, T - 50, node="host-1"), readings=(a_table({**PLACES, "000200": "2"}, T + 20),))


def test_a_device_taken_from_a_running_pod_is_red(tmp_path):
    edit = {"edit": {"chassis": "A", "device": "000200", "port": "2"}}
    assert steps_of(IN_USE, "chassis") == [edit]
    assert "while pods on host-1 held 2 of its 2 devices: default/trainer" in files_of(IN_USE).red[0]
    verdict, reason = replayed(IN_USE, tmp_path)
    assert verdict == "failed"
    assert "0-000200" in reason


def test_a_pod_from_before_the_recording_runs_where_it_ran_before_time_begins():
    [pod] = steps_of(IN_USE, "apply")
    assert pod["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "host-1"}
    names = [step.get("name") for step in steps_of(IN_USE)]
    assert names.index("pods from before the recording run") < [bool(s.get("sleep")) for s in steps_of(IN_USE)].index(
        True
    )


def test_a_detach_that_a_waiting_pod_had_asked_for_is_no_edit_but_one_of_nobody_is():
    assert steps_of(STUCK, "chassis") == []
    nobody = seen(readings=(a_table(MOVED, T + 4), a_table(ATTACHED, T + 9)))
    assert [each["edit"]["port"] for each in steps_of(nobody, "chassis")] == [None, "1"]
    assert "nobody in the cluster had asked for it" in comments_of(nobody)


@pytest.mark.parametrize(
    ("answer", "status", "after", "kind"),
    [
        ("error", 503, MOVED, {"kind": "http-error", "status": 503, "when": "before", "operation": "attach"}),
        ("error", 500, ATTACHED, {"kind": "http-error", "status": 500, "when": "after", "operation": "attach"}),
        ("lost", None, MOVED, {"kind": "dropped-connection", "when": "before", "operation": "attach"}),
        ("lost", None, ATTACHED, {"kind": "dropped-connection", "when": "after", "operation": "attach"}),
        ("failed", 200, ATTACHED, {"kind": "lying-result", "says": False, "operation": "attach"}),
        ("failed", 200, MOVED, {"kind": "never-trains", "operation": "attach"}),
        ("done", 200, MOVED, {"kind": "half-applied-attach", "says": True, "operation": "attach"}),
        ("done", 200, ATTACHED, None),
    ],
)
def test_an_answer_and_the_table_after_it_show_which_fault_it_was(answer, status, after, kind, tmp_path):
    attach = SeenOperation("A", T + 5, "attach", "000300", "1", answer, status)
    logged = seen(
        a_pod("trainer", 3, T + 2),
        readings=(a_table(MOVED, T + 4), a_table(after, T + 6)),
        operations=(SeenOperation("A", T + 3, "detach", "000300"), attach),
    )
    wanted = [] if kind is None else [{"chassis": "A", "add": {**kind, "device": "000300", "count": 1}}]
    assert steps_of(logged, "fault") == wanted
    write_files(tmp_path / "lab.yaml", files_of(logged))
    load_scenario(tmp_path / "lab.yaml")


def test_answers_that_repeat_are_counted():
    refused = [SeenOperation("A", T + 5 + n, "attach", "000300", "1", "failed", 200) for n in range(3)]
    logged = seen(a_pod("trainer", 3, T + 2), readings=(a_table(MOVED, T + 4),), operations=tuple(refused))
    assert [each["add"]["count"] for each in steps_of(logged, "fault")] == [3]


def test_a_listing_that_lacks_a_device_and_a_chassis_that_is_silent_are_faults():
    lacking = {device: port for device, port in PLACES.items() if device != "000800"}
    faults = steps_of(seen(readings=(a_table(lacking, T + 5),)), "fault")
    assert [each["add"] for each in faults] == [{"kind": "link-down", "device": "000800"}]
    silent = seen(readings=(a_table(PLACES, T + 15),), lost=(LostReading("A", T + 5, "no answer"),))
    assert [each["add"] for each in steps_of(silent, "fault")] == [{"kind": "management-reboot", "down_s": 10.0}]


def test_xids_and_silent_nodes_are_steps_at_their_times(tmp_path):
    troubled = seen(
        a_node("host-2", 2, T + 10, ready=False),
        a_node("host-2", 2, T + 30),
        troubles=(DeviceTrouble("host-1", T + 5, 31),),
    )
    found = [next(iter(each.items())) for each in steps_of(troubled)][1:]
    assert found == [
        ("sleep", 5.0),
        ("fault", {"host": "host-1", "add": {"kind": "xid", "device": "000100", "xid": 31}}),
        ("sleep", 5.0),
        ("kill", "kubelet/host-2"),
        ("sleep", 20.0),
        ("start", "kubelet/host-2"),
        ("sleep", 30.0),
    ]
    assert "which device is at PCI address unknown is not known: 000100 is assumed" in comments_of(troubled)
    assert replayed(troubled, tmp_path)[0] == "passed"


def test_ports_are_given_to_hosts_by_their_counts():
    places = {"000100": "1", "000200": "2", "000300": "2", "000800": "2"}
    odd = ClusterObservations(
        objects=(a_node("host-1", 3), a_node("host-2", 1)), readings=(a_table(places),), began=T, ended=T + 60
    )
    assert files_of(odd).hardware["chassis"][0]["ports"] == {"1": "host-2", "2": "host-1"}
    assert "not certain" not in comments_of(odd)
    assert "not certain: which host is at which port" in comments_of(seen())


def test_without_a_chassis_one_is_made_up_with_comments(tmp_path):
    bare = ClusterObservations(objects=(*NODES, a_pod("one", 1, T + 2, node="host-1")), began=T, ended=T + 60)
    box = files_of(bare).hardware["chassis"][0]
    assert [row["port"] for row in box["devices"]] == ["1", "1", "2", "2"]
    assert "made up: the chassis was not recorded" in comments_of(bare)
    assert replayed(bare, tmp_path) == ("passed", "")


def test_a_pod_that_fits_no_pool_stays_pending_and_is_green(tmp_path):
    greedy = seen(a_pod("greedy", 9, T + 2))
    assert {"pod": {"name": "greedy", "namespace": "default", "phase": "Pending"}} in steps_of(greedy)[-1]["wait"]
    assert replayed(greedy, tmp_path) == ("passed", "")


def test_other_resources_and_schedulers_become_those_of_the_stack():
    objects = (
        a_node("host-1", 2, resource="nvidia.com/gpu"),
        a_pod("one", 1, resource="nvidia.com/gpu", schedulerName="mine"),
    )
    other = ClusterObservations(objects=objects, began=T, ended=T + 60)
    [pod] = steps_of(other, "apply")
    assert pod["spec"]["schedulerName"] == "kubecomp-scheduler"
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"falcon.com/gpu": "1"}
    assert "its scheduler was mine, which this stack does not run" in comments_of(other)
    assert "the resource nvidia.com/gpu is falcon.com/gpu in the replay" in comments_of(other)


def test_a_pod_that_ended_by_itself_ends_again(tmp_path):
    over = {"terminated": {"startedAt": timestamp(T + 4), "finishedAt": timestamp(T + 24), "exitCode": 3}}
    failed = seen(a_pod("job", 1, T + 2, node="host-1", phase="Failed", state=over, restartPolicy="Never"))
    [image] = files_of(failed).scenario["images"].values()
    assert image == {"simulate": {"duration_s": 20.0, "exit_code": 3}}
    assert replayed(failed, tmp_path) == ("passed", "")


def test_an_owner_is_applied_in_place_of_its_pods(tmp_path):
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    metadata = {"name": "web", "namespace": "team", "uid": "web", "creationTimestamp": timestamp(T + 3)}
    owner = reduced({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": metadata, "spec": spec})
    reference = {"kind": "ReplicaSet", "name": "web-1", "uid": "rs", "controller": True}
    top = {"kind": "Deployment", "name": "web", "uid": "web", "controller": True}
    middle = {"name": "web-1", "namespace": "team", "uid": "rs", "ownerReferences": [top]}
    replica_set = reduced({"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": middle, "spec": spec})
    pod = a_pod("web-1-x", 0, T + 4, metadata={"namespace": "team", "ownerReferences": [reference]})
    owned = seen(pod, ObjectSighting(owner, T + 3), ObjectSighting(replica_set, T + 3))
    assert [(each["kind"], each["metadata"]["name"]) for each in steps_of(owned, "apply")] == [("Deployment", "web")]
    assert files_of(owned).scenario["objects"][0]["metadata"] == {"name": "team"}
    assert replayed(owned, tmp_path)[0] == "passed"
    alone = seen(pod)
    assert [each["kind"] for each in steps_of(alone, "apply")] == ["Pod"]
    assert "made by ReplicaSet web-1, which was not recorded" in comments_of(alone)


def test_the_latest_warning_about_a_pod_that_waits_is_in_its_comment():
    def event(reason, kind, at):
        about = {"kind": "Pod", "namespace": "default", "name": "trainer"}
        obj = {"kind": "Event", "metadata": {"name": reason, "uid": reason}, "involvedObject": about, "type": kind}
        return ObjectSighting({**obj, "reason": reason, "message": "no\nroom", "lastTimestamp": timestamp(at)})

    warnings = event("FailedScheduling", "Warning", T + 9), event("Older", "Warning", T + 5)
    events = (*warnings, event("Reconfig", "Normal", T + 20))
    told = seen(a_pod("trainer", 3, T + 2), *events, readings=(a_table(MOVED, T + 4),))
    assert "# the last event about it: FailedScheduling: no room" in comments_of(told)
    assert "the last event" not in comments_of(STUCK)


def test_a_deletion_is_a_step():
    gone = ObjectSighting(
        {"kind": "Pod", "metadata": {"name": "one", "namespace": "default", "uid": "one"}}, T + 30, gone=True
    )
    [step] = steps_of(seen(a_pod("one", 1, T + 2, node="host-1"), gone), "delete")
    assert step == {"kind": "Pod", "name": "one", "namespace": "default", "wait": False, "missingOk": True}


def test_a_reference_of_scenarios_in_an_object_stays_text(tmp_path):
    odd = seen(a_pod("one", 1, T + 2, metadata={"labels": {"a": "${name}"}}))
    assert steps_of(odd, "apply")[0]["metadata"]["labels"] == {"a": "$${name}"}


def test_nothing_to_make_hardware_of_is_an_error():
    with pytest.raises(NothingRecordedError, match="no node and no listing"):
        files_of(ClusterObservations())


def test_comments_stand_before_what_they_are_about_and_change_no_value():
    text = comments_of(STUCK)
    before = text.partition("  - fault:")[0].splitlines()[-1]
    assert before.startswith("  # the replies of the chassis")
    files = files_of(STUCK)
    written = commented_yaml(files.scenario, files.scenario_comments, "head\nline: 2")
    assert yaml.safe_load(written) == json.loads(json.dumps(files.scenario))
