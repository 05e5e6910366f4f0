"""A snapshot brings a session back as it was, and one that cannot be restored changes nothing."""

import asyncio
import copy
import json

import pytest

from mews.harness.cli import exit_code
from mews.harness.live.node_pin import pinned, unpinned
from mews.harness.live.snapshot_file import load_snapshot, write_snapshot
from mews.harness.live.step_answer import StepAnswer
from mews.kube.api.resources import CONFIGMAPS, CRDS, DEPLOYMENTS, NAMESPACES, PODS
from tests.harness.live.sessions import a_deployment, a_pod, in_session

WIDGETS = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 3}}


async def by_kubectl(session, resource, obj, namespace="default"):
    await session.cluster.kube.create(resource, obj, namespace=namespace, field_manager="kubectl-create")


async def done(session, *steps):
    for step in steps:
        assert await session.perform(step) == StepAnswer()


async def a_full_session(session):
    """A moved GPU, a drained one, a set temperature, two faults, a cordoned node, a dead scheduler, users' objects."""
    await by_kubectl(session, NAMESPACES, {"metadata": {"name": "team"}}, None)
    await by_kubectl(session, CRDS, WIDGETS, None)
    await by_kubectl(session, CONFIGMAPS, {"metadata": {"name": "c"}, "data": {"a": "1"}}, "team")
    await done(session, {"apply": a_pod("five", 5)})
    await by_kubectl(session, PODS, a_pod("one", 1, nodeSelector={"kubernetes.io/hostname": "host-3"}))
    await by_kubectl(session, DEPLOYMENTS, a_deployment("web"))
    await asyncio.sleep(20)
    ended = a_pod("over", restartPolicy="Never")
    ended["spec"] |= {"schedulerName": "default-scheduler", "containers": [{"name": "c", "image": "busybox"}]}
    await done(
        session,
        {"apply": WIDGET},
        {"apply": ended},
        {"wait": {"pod": {"name": "over", "phase": "Succeeded"}}},
        {"fault": {"chassis": "A", "add": {"kind": "lying-result", "operation": "attach", "count": 2}}},
        {"fault": {"host": "host-2", "add": {"kind": "xid", "device": "000800", "xid": 79}}},
        {"telemetry": {"device": "000B00", "set": {"temperature": 91}}},
        {"host": {"host": "host-3", "do": "persistence", "device": "000B00"}},
        {"patch": {"kind": "Node", "name": "host-2", "namespace": None, "body": {"spec": {"unschedulable": True}}}},
        {"kill": "default-scheduler"},
        {"apply": a_pod("waiting", scheduler="default-scheduler")},
    )
    await asyncio.sleep(10)
    return await session.snapshot("full")


@pytest.fixture(scope="module")
def saved():
    return in_session(a_full_session)


async def restored(session, document):
    problems = await session.restore(json.loads(json.dumps(document)))
    await asyncio.sleep(10)
    return problems, as_compared(await session.snapshot("full"))


def as_compared(document):
    """What was made in the same second comes in any order, and what had ended is not there the second time."""
    called = {"pods": lambda pod: pod["object"]["metadata"]["name"], "others": lambda obj: obj["metadata"]["name"]}
    ordered = {part: sorted(document[part], key=name) for part, name in called.items()}
    return {**document, **ordered, "leftOut": []}


def test_a_fresh_session_becomes_what_the_snapshot_was_of(saved):
    problems, again = in_session(lambda session: restored(session, saved))
    assert problems == []
    assert again == as_compared(saved)


def test_the_snapshot_has_what_was_made_and_says_what_it_leaves_out(saved):
    assert [obj["kind"] for obj in saved["early"]] == ["Namespace", "CustomResourceDefinition", "ConfigMap"]
    assert {pod["object"]["metadata"]["name"]: pod["node"] for pod in saved["pods"]} == {
        "five": "host-1",
        "one": "host-3",
        "waiting": "",
    }
    assert sorted(obj["kind"] for obj in saved["others"]) == ["Deployment", "Widget"]
    assert saved["leftOut"] == ["Pod default/over: it has ended (Succeeded)"]
    assert set(saved["table"]["A"].values()) == {"1", "2", "3"}
    assert list(saved["table"]["A"].values()).count("1") == 5
    assert saved["telemetry"] == {"0-000B00": {"temperature": 91.0}}
    assert saved["nodes"] == {"host-2": {"unschedulable": True}}
    assert saved["down"] == ["default-scheduler"]


def test_what_is_there_goes_when_a_snapshot_is_restored(saved):
    async def play(session):
        await by_kubectl(session, NAMESPACES, {"metadata": {"name": "mine"}}, None)
        await by_kubectl(session, CONFIGMAPS, {"metadata": {"name": "c"}}, "mine")
        taint = {"taints": [{"key": "mine", "effect": "NoSchedule"}]}
        await done(
            session,
            {"apply": [a_pod("three", 3), a_pod("five", 2)]},
            {"apply": a_deployment("other")},
            {"wait": {"pod": {"name": "three", "phase": "Running"}}},
            {"fault": {"chassis": "A", "add": {"kind": "slow-operation", "factor": 2}}},
            {"chassis": {"edit": {"chassis": "A", "device": "000C00", "port": None}}},
            {"host": {"host": "host-3", "do": "drain", "device": "000A00"}},
            {"patch": {"kind": "Node", "name": "host-1", "namespace": None, "body": {"spec": taint}}},
            {"kill": "scheduler"},
        )
        return await restored(session, saved)

    problems, again = in_session(play)
    assert problems == []
    assert again == as_compared(saved)


def test_a_session_that_was_restored_is_recorded_with_its_restoring(saved):
    from tests.harness.live.test_recording import replayed

    async def play(session):
        await restored(session, saved)
        return session.record("again")

    assert replayed(in_session(play)) == ("passed", "")


def changed(saved, **parts):
    return {**copy.deepcopy(saved), **parts}


def other_hardware(saved):
    document = copy.deepcopy(saved)
    document["scenario"]["hardware"]["hosts"][0]["cpus"] = 4
    return document


def a_stranger(saved):
    document = copy.deepcopy(saved)
    document["others"].append({"apiVersion": "example.org/v1", "kind": "Gadget", "metadata": {"name": "g"}})
    return document


REFUSED = [
    (lambda saved: [], "kind 'list': must be Snapshot"),
    (lambda saved: {"kind": "Pod"}, "kind 'Pod': must be Snapshot"),
    (lambda saved: {**saved, "kind": "Scenario"}, "kind 'Scenario': must be Snapshot"),
    (lambda saved: {key: value for key, value in saved.items() if key != "table"}, "table: missing"),
    (lambda saved: changed(saved, apiVersion="mews/v9"), "apiVersion: 'mews/v9': must be mews/v1"),
    (lambda saved: changed(saved, more=1), "more: unknown key"),
    (other_hardware, "hardware: demo .3 hosts, 1 chassis, 12 devices.: differs from the session's"),
    (lambda saved: changed(saved, scenario={**saved["scenario"], "stack": {"kod2": {}}}), "stack.kod2: differs"),
    (lambda saved: changed(saved, table={"A": {"9": None}}), "table.A.9: the session has no such device"),
    (lambda saved: changed(saved, table={"A": {"000100": "7"}}), "port '7': must be one of 1, 2, 3"),
    (lambda saved: changed(saved, down=["nobody"]), "down 'nobody': must be one of "),
    (lambda saved: changed(saved, telemetry={"x": {}}), "telemetry 'x': must be one of "),
    (lambda saved: changed(saved, faults=[{"chassis": "A", "add": {"kind": "cake"}}]), "fault kind 'cake'"),
    (lambda saved: changed(saved, nodes={"host-9": {}}), "nodes 'host-9': must be one of "),
    (a_stranger, "Gadget g: the session serves no example.org/v1 of that kind"),
]


def test_what_cannot_be_restored_is_refused_before_anything_is_done(saved):
    async def play(session):
        before = await session.snapshot("x"), len(session.journal)
        for make, complaint in REFUSED:
            with pytest.raises(ValueError, match=complaint) as error:
                await session.restore(make(saved))
            assert "\n" not in str(error.value)
        return before, (await session.snapshot("x"), len(session.journal))

    before, after = in_session(play)
    assert before == after


def test_a_file_is_written_whole_for_its_owner_and_read_again(saved, tmp_path):
    path = tmp_path / "s.json"
    write_snapshot(path, saved)
    assert load_snapshot(path) == saved
    assert path.stat().st_mode & 0o077 == 0
    assert [each.name for each in tmp_path.iterdir()] == ["s.json"]
    with pytest.raises(ValueError, match=r"nowhere/s\.json: cannot be written: No such file or directory"):
        write_snapshot(tmp_path / "nowhere" / "s.json", saved)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"\xff\xfe\x00", "is not text"),
        (b"", "is not JSON"),
        (b"apiVersion: mews/v1\n", "is not JSON"),
        (b'{"kind": "Snapshot", "apiVersion"', "ends too early"),
        (b"[1]", "kind 'list': must be Snapshot"),
    ],
)
def test_a_file_that_is_no_snapshot_is_one_line(tmp_path, text, complaint):
    path = tmp_path / "s.json"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(ValueError, match=f"^{path}: .*{complaint}") as error:
        load_snapshot(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("length", [1, 100, -2])
def test_a_file_that_was_cut_short_is_refused(saved, tmp_path, length):
    path = tmp_path / "s.json"
    write_snapshot(path, saved)
    path.write_text(path.read_text().rstrip()[:length])
    with pytest.raises(ValueError, match="ends too early"):
        load_snapshot(path)


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERMS = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}, {"matchFields": [{"key": "x"}]}]


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": []},
        {"affinity": {"podAffinity": {"a": 1}}},
        {
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": TERMS}}
            }
        },
    ],
)
def test_a_pod_is_pinned_to_its_node_in_each_of_its_terms_and_unpinned_again(spec):
    pod = {"metadata": {"name": "a"}, "spec": spec}
    made = pinned(pod, "host-1")
    affinity = made["spec"]["affinity"]["nodeAffinity"]
    terms = affinity[REQUIRED]["nodeSelectorTerms"]
    assert all({"key": "metadata.name", "operator": "In", "values": ["host-1"]} in t["matchFields"] for t in terms)
    assert unpinned(made, "host-1") == pod
    assert unpinned(made, "host-2") == made


def test_a_pod_that_names_its_node_is_not_pinned():
    pod = {"metadata": {"name": "a"}, "spec": {"nodeName": "host-1"}}
    assert pinned(pod, "host-1") == pod


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["/no/such/file"], "--snapshot /no/such/file: cannot be read: No such file or directory\n"),
        ([__file__], f"--snapshot {__file__}: is not JSON"),
        (
            ["s.json", "--hardware", "demo"],
            "--snapshot s.json --hardware demo: only one of the two; a snapshot has its ",
        ),
        (
            ["s.json", "--stack", "none"],
            "--snapshot s.json --stack none: only one of the two; a snapshot has its own\n",
        ),
    ],
)
def test_what_cannot_be_brought_up_is_one_line(capsys, words, complaint):
    assert exit_code(["up", "--snapshot", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(complaint)
    assert captured.err.count("\n") == 1


def test_operations_under_way_are_said_to_be_left_out():
    async def play(session):
        slow = {"kind": "slow-operation", "operation": "attach", "extra_s": 60}
        free = {"chassis": "A", "device": "000C00", "port": None}
        await done(session, {"fault": {"add": slow}}, {"chassis": {"edit": free}}, {"apply": a_pod("five", 5)})
        begun = {"layer": "chassis", "event": "attach-begun"}
        await done(session, {"wait": {"journal": {"occurs": [begun]}}})
        return (await session.snapshot("moving"))["leftOut"]

    assert "operations under way on the chassis: 1" in in_session(play)
