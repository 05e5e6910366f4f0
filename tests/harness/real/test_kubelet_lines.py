"""Journal lines derived from what a real kubelet leaves to be seen."""

import pytest

from mews.harness.clusters.real.kubelet_lines import KubeletLines
from mews.harness.journal import Journal

RESOURCE = "falcon.com/gpu"


def pod(uid, name="a", phase="Running", **status):
    return {
        "metadata": {"uid": uid, "name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"phase": phase, **status},
    }


def entry(uid, *devices):
    return [uid, "main", RESOURCE, list(devices), {"UUIDS": "x"}]


@pytest.fixture
def journal():
    return Journal(lambda: 0.0)


@pytest.fixture
def lines(journal):
    return KubeletLines(journal, "host-1")


def told(journal, *events):
    return [line for line in journal.lines() if line.event in events]


def test_a_new_entry_of_the_checkpoint_is_an_allocation(journal, lines):
    lines.pod(pod("u1"))
    lines.checkpoint([entry("u1", "d1", "d2")], {RESOURCE: ["d2", "d1"]})
    lines.checkpoint([entry("u1", "d1", "d2")], {RESOURCE: ["d1", "d2"]})
    [line] = told(journal, "allocated")
    assert line.actor == "kubelet/host-1"
    assert line.fields == {
        "pod": "default/a", "uid": "u1", "container": "main", "resource": RESOURCE, "devices": ["d1", "d2"],
    }  # fmt: skip
    assert len(told(journal, "devices")) == 1, "the same list again is no news"
    assert len(told(journal, "checkpoint")) == 1


def test_an_entry_told_before_its_pod_was_seen_is_not_lost(journal, lines):
    lines.checkpoint([entry("u1", "d1")], {RESOURCE: ["d1"]})
    assert told(journal, "allocated") == []
    lines.pod(pod("u1"))
    assert [line.fields["devices"] for line in told(journal, "allocated")] == [["d1"]]


def test_devices_given_to_another_pod_were_given_back_before(journal, lines):
    lines.pod(pod("u1"))
    lines.checkpoint([entry("u1", "d1")], {})
    lines.pod(pod("u2", "b"))
    lines.checkpoint([entry("u2", "d1")], {})
    order = [(line.event, line.fields["uid"]) for line in told(journal, "allocated", "pod-ended")]
    assert order == [("allocated", "u1"), ("pod-ended", "u1"), ("allocated", "u2")]


def test_a_registration_makes_the_same_list_news_again(journal, lines):
    lines.record({"event": "registered", "fields": {"resource": RESOURCE}})
    lines.record({"event": "announced", "fields": {"devices": {"d1": "Healthy", "d2": "Unhealthy"}}})
    lines.checkpoint([], {RESOURCE: ["d1"]})
    lines.record({"event": "registered", "fields": {"resource": RESOURCE}})
    lines.checkpoint([], {RESOURCE: ["d1"]})
    listed = told(journal, "devices")
    assert [line.fields for line in listed] == [{"resource": RESOURCE, "healthy": ["d1"], "unhealthy": ["d2"]}] * 2


def test_a_refused_pod_is_rejected_once_and_a_failed_one_is_not(journal, lines):
    refused = pod("u1", phase="Failed", reason="UnexpectedAdmissionError", message="no")
    lines.pod(refused)
    lines.pod(refused)
    lines.pod(pod("u2", "b", phase="Failed", reason="Evicted"))
    assert [(line.event, line.fields["uid"]) for line in told(journal, "rejected", "pod-ended")] == [
        ("rejected", "u1"),
        ("pod-ended", "u2"),
    ]


def test_only_what_plugins_gave_is_told_of_an_environment(journal, lines):
    lines.pod(pod("u1"))
    lines.checkpoint([entry("u1", "d1")], {})
    assert lines.started(pod("u1"), "main", "containerd://1")
    assert not lines.started(pod("u1"), "main", "containerd://1")
    lines.running(pod("u1"), "main", {"UUIDS": "GPU-1", "PATH": "/bin"})
    [line] = told(journal, "container-started")
    assert line.fields["env"] == {"UUIDS": "GPU-1"}


def test_pods_that_hold_devices_and_go_on_are_known(journal, lines):
    for uid, name in (("u1", "stays"), ("u2", "ends"), ("u3", "goes")):
        lines.pod(pod(uid, name))
    lines.checkpoint([entry("u1", "d1"), entry("u2", "d2"), entry("u3", "d3")], {})
    assert lines.holders() == {"default/stays", "default/ends", "default/goes"}
    lines.pod(pod("u2", "ends", phase="Succeeded"))
    leaving = pod("u3", "goes")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    lines.pod(leaving)
    assert lines.holders() == {"default/stays"}


class Users:
    def __init__(self):
        self.told = []

    def check(self, load):
        pass

    def begin(self, key, uuids, *, pid, name, load=None):
        self.told.append(("begin", key, list(uuids), name))

    def end(self, key):
        self.told.append(("end", key))


def test_a_host_is_told_which_gpus_a_container_sees_until_its_pod_ends(journal):
    users = Users()
    lines = KubeletLines(journal, "host-1", users)
    seen = {"NVIDIA_VISIBLE_DEVICES": "GPU-1"}
    status = {"containerStatuses": [{"name": "main", "containerID": "c1", "state": {"running": {}}}]}
    running = pod("u1", **status)
    lines.pod(running)
    assert not lines.knows(running)
    lines.checkpoint([["u1", "main", RESOURCE, ["d1"], seen]], {RESOURCE: ["d1"]})
    assert lines.started(running, "main", "c1") and lines.knows(running)
    lines.running(running, "main", seen)
    lines.gone(running)
    assert users.told == [("begin", "pod/u1/main", ["GPU-1"], "a/main"), ("end", "pod/u1/main")]


def test_what_a_driver_does_with_claims_is_its_kubelets_line(journal, lines):
    claim = {"claim": "default/c", "uid": "c1", "driver": "gpu.nvidia.com"}
    taken = {**claim, "devices": ["n1/gpu-0"], "alone": ["n1/gpu-0"]}
    lines.record({"event": "claim-prepared", "fields": taken})
    lines.record({"event": "slice-published", "fields": {"devices": 2}})
    lines.record({"event": "claim-unprepared", "fields": claim})
    assert [(line.actor, line.event, line.fields) for line in journal.lines()] == [
        ("kubelet/host-1", "claim-prepared", taken),
        ("kubelet/host-1", "claim-unprepared", claim),
    ]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_pod_ends_after_all_its_containers_that_have_started(journal, lines, terminal):
    """Their environment is looked into first; a pod may be deleted by force meanwhile."""
    lines.pod(pod("u1"))
    assert lines.started(pod("u1"), "main", "c1") and lines.started(pod("u1"), "beside", "c2")
    if terminal:
        lines.pod(pod("u1", phase="Succeeded"))
    else:
        lines.gone(pod("u1"))
    lines.running(pod("u1"), "main", {})
    assert told(journal, "pod-ended") == []
    lines.running(pod("u1"), "beside", {})
    events = [line.event for line in told(journal, "container-started", "pod-ended")]
    assert events == ["container-started", "container-started", "pod-ended"]
    lines.gone(pod("u1"))
    assert len(told(journal, "pod-ended")) == 1


def test_devices_that_the_kubelet_gave_back_end_their_pod_at_once(journal, lines):
    lines.pod(pod("u1"))
    lines.checkpoint([entry("u1", "d1")], {})
    assert lines.started(pod("u1"), "main", "c1")
    lines.checkpoint([], {})
    assert len(told(journal, "pod-ended")) == 1
