"""What of an object's change is news."""

from mews.harness.journal import Journal
from mews.harness.recorder import _EventLines, _kept_of, merged, node_news, pod_news, writer
from mews.kube.api.resources import EVENTS, PODS


def pod(**changes):
    base = {
        "metadata": {"name": "a", "namespace": "default", "uid": "u1", "resourceVersion": "5", "annotations": {}},
        "spec": {"containers": [{"name": "main", "resources": {"limits": {"falcon.com/gpu": "5", "cpu": "2"}}}]},
        "status": {"phase": "Pending"},
    }
    for path, value in changes.items():
        part, field = path.split("__")
        base[part] = {**base[part], field: value}
    return base


def events(news):
    return [(event, fields) for _, event, fields in news]


def test_a_new_pod_is_told_with_its_devices_and_scheduler():
    assert list(pod_news(None, pod())) == [
        (
            "pod/default/a",
            "created",
            {
                "uid": "u1",
                "scheduler": "default-scheduler",
                "node": "",
                "phase": "Pending",
                "requests": {"falcon.com/gpu": 5},
            },
        )
    ]


def test_binding_annotations_phase_and_deletion_are_news():
    assert events(pod_news(pod(), pod(spec__nodeName="host-1"))) == [("bound", {"uid": "u1", "node": "host-1"})]
    noted = pod(metadata__annotations={"dst_node": "host-1"})
    assert events(pod_news(pod(), noted)) == [("annotations", {"uid": "u1", "annotations": {"dst_node": "host-1"}})]
    assert events(pod_news(noted, pod())) == [("annotations", {"uid": "u1", "annotations": {"dst_node": None}})]
    running = pod(status__phase="Running")
    assert events(pod_news(pod(), running)) == [("phase", {"uid": "u1", "phase": "Running", "reason": ""})]
    doomed = pod(metadata__deletionTimestamp="2026-01-01T00:00:00Z")
    assert events(pod_news(pod(), doomed)) == [("deleting", {"uid": "u1", "grace_s": 0, "finalizers": []})]
    assert events(pod_news(pod(), None)) == [("deleted", {"uid": "u1"})]


def test_a_pod_replaced_under_the_same_name_is_gone_and_new():
    assert [event for event, _ in events(pod_news(pod(), pod(metadata__uid="u2")))] == ["deleted", "created"]


def test_a_condition_is_news_when_status_or_reason_change_and_not_for_its_times():
    def with_condition(status, at):
        conditions = [{"type": "Ready", "status": status, "lastTransitionTime": at, "lastProbeTime": at}]
        return pod(status__conditions=conditions)

    assert events(pod_news(with_condition("False", "1"), with_condition("False", "2"))) == []
    assert [e for e, _ in events(pod_news(with_condition("False", "1"), with_condition("True", "1")))] == ["condition"]


def test_a_new_resource_version_alone_is_no_news():
    assert list(pod_news(pod(), pod(metadata__resourceVersion="6"))) == []


def node(allocatable, beat="0", **spec):
    conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": beat}]
    return {
        "metadata": {"name": "host-1"},
        "spec": spec,
        "status": {"allocatable": allocatable, "conditions": conditions},
    }


def test_a_node_tells_what_became_allocatable_and_no_heartbeats():
    four, five = node({"falcon.com/gpu": "4"}), node({"falcon.com/gpu": "5"}, beat="9")
    assert list(node_news(four, five)) == [
        ("node/host-1", "allocatable", {"resource": "falcon.com/gpu", "old": "4", "new": "5"})
    ]
    assert list(node_news(four, node({"falcon.com/gpu": "4"}, beat="10"))) == []


def test_a_node_tells_taints_and_cordons():
    tainted = node({}, taints=[{"key": "a", "effect": "NoSchedule"}], unschedulable=True)
    assert [event for _, event, _ in node_news(node({}), tainted)] == ["taints", "unschedulable"]


def core_event(message, count=1):
    return {
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "a", "uid": "u1"},
        "reason": "Reconfig",
        "type": "Normal",
        "message": message,
        "count": count,
        "source": {"component": "kubecomp-scheduler"},
    }


def test_a_repeated_event_is_told_once():
    news = _EventLines()
    first, again, other = core_event("a"), core_event("a", count=2), core_event("b")
    assert len(list(news(None, first))) == 1
    assert list(news(first, again)) == []
    assert list(news(None, core_event("a"))) == []
    assert len(list(news(None, other))) == 1


def test_a_checkpoint_is_written_when_it_changes():
    journal = Journal(lambda: 0.0)
    write = writer(journal, "kubelet", "kubelet/host-1")
    for entries in ([], [], [["u1", "main", "falcon.com/gpu", ["0-a"]]]):
        write("checkpoint", entries=entries)
    write("allocated", pod="default/a")
    assert [line.event for line in journal.lines()] == ["checkpoint", "checkpoint", "allocated"]


def test_a_listener_that_writes_is_heard_after_the_line_that_made_it_write():
    journal = Journal(lambda: 0.0)
    heard = []
    journal.listen(lambda line: journal.write("invariant", "1", "violated") if line.layer == "chassis" else None)
    journal.listen(lambda line: heard.append(line.layer))
    journal.write("chassis", "chassis/A", "attached")
    assert heard == ["chassis", "invariant"]


def test_journals_merge_by_time_and_the_first_goes_first():
    now = [0.0]
    one, two = Journal(lambda: now[0]), Journal(lambda: now[0])
    two.write("component", "b", "early")
    now[0] = 1.0
    two.write("component", "b", "same")
    one.write("api", "a", "same")
    assert [(line.layer, line.event) for line in merged(one, two)] == [
        ("component", "early"),
        ("api", "same"),
        ("component", "same"),
    ]


def test_an_event_that_is_gone_is_remembered_no_longer():
    event = {
        "metadata": {"name": "e", "namespace": "default", "uid": "u", "resourceVersion": "1"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "a", "uid": "p"},
        "reason": "Started",
        "message": "m",
    }
    lines = _EventLines()
    assert len(list(lines(None, event))) == 1
    assert list(lines(event, event)) == []
    assert list(lines({"metadata": event["metadata"]}, None)) == []
    assert not lines._seen
    assert not lines._first_by


def test_nothing_but_its_metadata_is_kept_of_an_event_and_no_managers_of_a_pod():
    managed = {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "1", "managedFields": [{}]}
    kept = _kept_of(EVENTS)({"metadata": managed, "reason": "Started"})
    assert kept == {"metadata": {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "1"}}
    kept = _kept_of(PODS)({"metadata": managed, "spec": {"x": [1]}})
    assert kept["spec"] == {"x": [1]}
    assert "managedFields" not in kept["metadata"]
