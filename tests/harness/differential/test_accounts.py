"""Runs as stories, and what differs between two of them."""

from mews.harness.differential.cluster_history import ClusterHistory, stories_of
from mews.harness.differential.compare import compare
from mews.harness.differential.explained import REASONS, Explanation
from mews.harness.journal import Journal

UID = "960a32e4-fd93-4dc5-bf33-b19f05a0c686"


def stories(*lines):
    journal = Journal(lambda: 0.0)
    for layer, actor, event, fields in lines:
        journal.write(layer, actor, event, **fields)
    return stories_of(journal.lines())


def test_each_thing_has_a_story_in_each_of_its_streams():
    told = stories(
        ("api", "pod/default/a", "created", {"uid": UID, "scheduler": "s", "node": "", "phase": "Pending"}),
        ("api", "pod/default/a", "condition", {"uid": UID, "type": "Ready", "status": "True", "reason": ""}),
        ("api", "pod/default/a", "bound", {"uid": UID, "node": "host-1"}),
        ("kubelet", "kubelet/host-1", "allocated",
         {"pod": "default/a", "container": "main", "resource": "x/gpu", "devices": ["0-000100"]}),
        ("chassis", "chassis/A", "attached", {"device": "000100", "old_host": None, "host": "host-1"}),
        ("chassis", "chassis/A", "operation-finished", {"device": "000100"}),
        ("component", "scheduler", "killed", {}),
        ("step", "s", "begun", {}),
    )  # fmt: skip
    assert told == {
        ("chassis/A", "table"): ("attached free -> host-1",),
        ("pod/default/a", "condition Ready"): ("True",),
        ("pod/default/a", "kubelet"): ("allocated 1 x/gpu for main",),
        ("pod/default/a", "states"): ("created", "bound to host-1 by s"),
        ("scheduler", "life"): ("killed",),
    }


def test_uids_and_devices_are_left_out_and_repetition_is_no_news():
    event_text = {"type": "Warning", "reason": "BackOff", "object": "pod/default/a"}
    told = stories(
        ("api", "kubelet/host-1", "event", {**event_text, "message": f"a_default({UID}) with 0-000100"}),
        ("api", "kubelet/host-2", "event", {**event_text, "message": f"a_default({UID[::-1]}) with 1-000A00"}),
    )
    assert told == {("pod/default/a", "events of kubelet"): (
        "Warning BackOff: a_default(UID) with DEVICE",
        f"Warning BackOff: a_default({UID[::-1]}) with DEVICE",
    )}  # fmt: skip


def account(cluster, verdict="passed", **states):
    return ClusterHistory(
        "s", cluster, verdict, "", 0.0, {(f"pod/{name}", "states"): told for name, told in states.items()}
    )


def test_equal_accounts_have_no_difference():
    told = {"a": ("created", "Running"), "b": ("created",)}
    assert compare(account("embedded", **told), account("control-plane", **told)) == []


def test_what_only_one_tells_is_listed_with_who_tells_it():
    found = compare(account("embedded", a=("x", "y")), account("control-plane", a=("x", "z"), b=("w",)), reasons=())
    assert [(each.only, each.thing, each.item) for each in found] == [
        ("embedded", "pod/a", "y"),
        ("control-plane", "pod/a", "z"),
        ("control-plane", "pod/b", "w"),
    ]
    assert found[0].text == "pod/a, states: only on embedded: y"
    assert {each.why for each in found} == {None}


def test_another_order_is_a_difference():
    assert compare(account("embedded", a=("x", "y")), account("kind", a=("y", "x")), reasons=())


def test_verdicts_that_differ_are_never_explained():
    every = Explanation(".*", ".*", ".*", "whatever")
    (one, two) = compare(account("embedded"), account("kind", "failed"), reasons=(every,))
    assert (one.why, two.why, one.item, two.item) == (None, None, "passed", "failed")


def test_a_reason_explains_what_it_fits_on_the_clusters_it_names():
    reason = Explanation("pod/.*", "states", "y", "because", clusters=("kind",))
    first = account("embedded", a=("x", "y", "z"))
    assert [each.why for each in compare(first, account("kind", a=("x", "z")), (reason,))] == ["because"]
    assert [each.why for each in compare(first, account("control-plane", a=("x", "z")), (reason,))] == [None]


def test_how_a_story_ends_is_explained_by_reasons_for_ends_only():
    for even_last, why in ((False, None), (True, "because")):
        reason = Explanation(".*", ".*", "y", "because", even_last=even_last)
        found = compare(account("embedded", a=("x", "y")), account("kind", a=("x",)), (reason,))
        assert [each.why for each in found] == [why]


def test_an_end_that_the_other_cluster_is_silent_on_is_explained_by_reasons_for_silence():
    reason = Explanation(".*", ".*", "y", "because", if_silent=True)
    first = account("embedded", a=("y",))
    assert [each.why for each in compare(first, account("kind"), (reason,))] == ["because"]
    assert [each.why for each in compare(first, account("kind", a=("x",)), (reason,))] == [None, None]


def test_another_order_is_explained_by_reasons_for_it_and_what_is_missing_is_not():
    reason = Explanation(".*", ".*", "x|y", "because", even_last=True, if_moved=True)
    first = account("embedded", a=("w", "x", "y"))
    assert {each.why for each in compare(first, account("kind", a=("w", "y", "x")), (reason,))} == {"because"}
    assert [each.why for each in compare(first, account("kind", a=("w", "x")), (reason,))] == [None]


def test_a_node_that_was_there_before_offers_what_another_comes_to_offer():
    born = ("api", "node/host-1", "created", {"allocatable": {"cpu": "4", "x/gpu": "4"}})
    grown = (
        ("api", "node/host-1", "created", {"allocatable": {"cpu": "4"}}),
        ("api", "node/host-1", "allocatable", {"resource": "x/gpu", "old": None, "new": "4"}),
    )
    assert stories(born) == stories(*grown)


def test_every_reason_says_why():
    assert all(len(reason.why.split()) > 4 for reason in REASONS)


def test_where_an_extender_is_and_what_a_replicaset_names_its_pods_makes_no_difference():
    def run(url, *names):
        created = [("api", f"pod/default/{name}", "created", {"node": "", "phase": "Pending"}) for name in names]
        refused = {"type": "Warning", "reason": "F", "object": f"pod/default/{names[1]}"}
        text = f"failed bind with extender at URL {url}/x/bind, code 500; {names[0]}"
        return stories(*created, ("api", "default-scheduler", "event", {**refused, "message": text}))

    first = run("http://gpushare-extender", "job-647d9475d5-2p5zf", "job-647d9475d5-9dwsq", "own")
    assert first == run("https://10.96.0.9:39999", "job-647d9475d5-jznw7", "job-647d9475d5-klvhp", "own")
    assert ("pod/default/job-#1-#2", "states") in first
    assert first != run("https://10.96.0.9:39999", "job-647d9475d5-jznw7", "job-647d9475d5-klvhp", "other")


def test_another_template_makes_one_difference_and_of_images_that_real_nodes_lack_it_is_explained():
    def run(cluster, *names):
        created = [("api", f"pod/default/{name}", "created", {"node": "", "phase": "Pending"}) for name in names]
        scaled = {"type": "Normal", "reason": "S", "object": "deployment/default/job", "message": f"to {names[0][:14]}"}
        told = stories(*created, ("api", "deployment-controller", "event", scaled))
        return ClusterHistory("s", cluster, "passed", "", 0.0, told)

    first = run("embedded", "job-647d9475d5-2p5zf", "job-77775cd948-9dwsq")
    same = run("control-plane", "job-647d9475d5-jznw7", "job-77775cd948-klvhp")
    assert ("pod/default/job-#2-#1", "states") in first.stories
    assert compare(first, same) == []
    for cluster, explained in (("kind", True), ("control-plane", False)):
        found = compare(first, run(cluster, "job-67775cd948-jznw7", "job-77775cd948-klvhp"))
        assert {(each.thing, each.stream) for each in found} == {("replicaset/job-#1", "template")}
        assert {each.why is not None for each in found} == {explained}
