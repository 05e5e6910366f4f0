"""What the remediation decides, case by case."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from mews.kube.api.objects import Object
from mews.systems.remediation import policy
from mews.systems.remediation.config import RemediationConfig
from mews.systems.remediation.host_gpus import HostGpu, LoggedXid, unseen
from mews.systems.remediation.records import (
    Cordon,
    Incident,
    IncidentState,
    NodeGpus,
    NodeWork,
    gpus_annotation,
    node_gpus,
    node_work,
    work_annotation,
)

CONFIG = RemediationConfig(nodes=("n1", "n2", "n3"))
GPUS = {"G0": HostGpu("0000:20:00.0", "0", True), "G1": HostGpu("0000:30:00.0", "1", True)}
FUNCTIONS = ("0000:20:00.0", "0000:30:00.0")
BROKEN = Incident(1, IncidentState.BROKEN, "XID 48", 7.0, "0000:20:00.0", ("u1",))


def look(before: NodeGpus, *xids: tuple[float, str, int], **changes: Any) -> policy.Observed:
    logged = [LoggedXid(stamp, place, xid) for stamp, place, xid in xids]
    given = {"logged": logged, "functions": FUNCTIONS, "now_s": 9.0, **changes}
    return policy.observed(before, given.pop("gpus", GPUS), **given)


def step(gpus: NodeGpus, work: NodeWork | None, config: RemediationConfig = CONFIG, **known: Any) -> policy.NodeStep:
    return policy.next_step(config, gpus, work, **{"unschedulable": False, "gone": (), "may_begin": True, **known})


def pod(uid: str, namespace: str = "default", **metadata: Any) -> Object:
    return {"metadata": {"name": uid, "namespace": namespace, "uid": uid, **metadata}, "spec": {}, "status": {}}


def test_an_xid_of_a_program_breaks_no_gpu_and_one_from_before_the_first_look_is_not_ours() -> None:
    seen = look(NodeGpus(), (1.0, "0000:20:00", 48)).gpus
    assert (seen.incidents, seen.seen) == ({}, (1.0, 1))
    found = look(seen, (1.0, "0000:20:00", 48), (2.0, "0000:20:00", 31), (2.0, "0000:30:00", 48)).gpus
    assert {uuid: each.cause for uuid, each in found.incidents.items()} == {"G1": "XID 48"}
    assert found.seen == (2.0, 2)


def test_a_second_xid_of_the_same_stamp_is_news_and_a_known_one_is_not() -> None:
    logged = [LoggedXid(1.0, "a", 48), LoggedXid(1.0, "b", 48)]
    assert unseen(logged, (1.0, 1)) == ([logged[1]], (1.0, 2))
    assert unseen(logged, (1.0, 2)) == ([], (1.0, 2))


def test_a_lost_gpu_is_broken_and_one_whose_function_is_gone_is_nobodys_business() -> None:
    lost = {**GPUS, "G0": replace(GPUS["G0"], answers=False)}
    found = look(NodeGpus(seen=(0.0, 0)), gpus=lost).gpus
    assert found.incidents["G0"].cause == policy.LOST
    assert look(found, gpus={}, functions=("0000:30:00.0",)).gpus.incidents == {}


def test_the_next_incident_of_a_mended_gpu_has_the_next_number_and_an_xid_of_a_broken_one_strikes_it() -> None:
    once = policy.mended(NodeGpus((0.0, 0), {"G0": BROKEN}), "G0")
    assert (once.incidents, once.mended) == ({}, {"G0": 1})
    again = look(once, (1.0, "0000:20:00", 95))
    assert again.gpus.incidents["G0"].number == 2
    assert look(again.gpus, (1.0, "0000:20:00", 95), (3.0, "0000:20:00", 48)).struck == {"G0": 48}


def test_who_has_used_a_broken_gpu_stays_on_its_list() -> None:
    seen = policy.Observed(NodeGpus((0.0, 0), {"G0": BROKEN}), {})
    assert policy.with_users(seen, {}).gpus.incidents["G0"].pods == ("u1",)
    assert policy.with_users(seen, {BROKEN.bdf: ("u2",)}).gpus.incidents["G0"].pods == ("u1", "u2")


def test_a_node_is_cordoned_first_reset_when_all_have_gone_and_uncordoned_in_the_end() -> None:
    gpus = NodeGpus((0.0, 0), {"G0": BROKEN})
    first = step(gpus, None)
    assert (first.work, first.unschedulable) == (NodeWork(("G0/1",), Cordon.OURS), True)
    waits = step(gpus, first.work, unschedulable=True)
    assert (waits.work, waits.unschedulable) == (first.work, None)
    gone = step(gpus, first.work, unschedulable=True, gone=("G0",)).work
    assert gone is not None
    assert gone.reset == {"G0": 1}
    given_up = policy.changed(gpus, "G0", IncidentState.FAILED)
    assert step(given_up, gone, unschedulable=True) == policy.NodeStep(None, False)


@pytest.mark.parametrize(
    ("config", "unschedulable", "cordon"),
    [(replace(CONFIG, scope="device"), False, Cordon.NONE), (CONFIG, True, Cordon.FOREIGN)],
)
def test_a_cordon_that_is_not_ours_is_neither_made_nor_taken_away(
    config: RemediationConfig, unschedulable: bool, cordon: Cordon
) -> None:
    gpus = NodeGpus((0.0, 0), {"G0": BROKEN})
    begun = step(gpus, None, config, unschedulable=unschedulable)
    assert begun.work is not None
    assert (begun.work.cordon, begun.unschedulable) == (cordon, None)
    assert step(NodeGpus(), begun.work, config, unschedulable=unschedulable) == policy.NodeStep(None)


def test_a_cordon_taken_away_by_hand_comes_back_for_another_gpu_alone() -> None:
    one = NodeGpus((0.0, 0), {"G0": BROKEN})
    by_hand = step(one, NodeWork(("G0/1",), Cordon.OURS)).work
    assert by_hand is not None
    assert by_hand.cordon is Cordon.BY_HAND
    assert step(one, by_hand).unschedulable is None
    two = NodeGpus((0.0, 0), {"G0": BROKEN, "G1": BROKEN})
    assert step(two, by_hand).unschedulable is True


def test_the_breaker_holds_a_node_back() -> None:
    assert step(NodeGpus((0.0, 0), {"G0": BROKEN}), None, may_begin=False) == policy.NodeStep(None, held=True)
    assert [replace(CONFIG, share=share).nodes_at_a_time(3) for share in (0.1, 0.34, 0.67, 1.0)] == [1, 1, 2, 3]


def test_only_the_pods_of_the_gpu_go_and_those_that_are_kept_stay() -> None:
    daemon = {"ownerReferences": [{"kind": "DaemonSet", "controller": True}]}
    pods = [pod("u1"), pod("u2"), pod("u3", "kube-system"), pod("u4", **daemon)]
    all_use_it = replace(BROKEN, pods=("u1", "u3", "u4"))
    assert [each["metadata"]["uid"] for each in policy.to_go(CONFIG, all_use_it, pods)] == ["u1"]
    whole = replace(CONFIG, drain="node")
    assert [each["metadata"]["uid"] for each in policy.to_go(whole, all_use_it, pods)] == ["u1", "u2"]


def test_the_first_pattern_that_fits_a_namespace_counts() -> None:
    config = replace(CONFIG, evictions={"training-*": "DeleteAfterTimeout", "*": "Immediate"})
    assert (config.mode("training-a"), config.mode("web")) == ("DeleteAfterTimeout", "Immediate")
    assert replace(config, evictions={"web": "Immediate"}).mode("other") == "AllowCompletion"


def test_what_is_written_is_read_again_and_nonsense_is_nothing() -> None:
    gpus = NodeGpus((1.5, 2), {"G0": replace(BROKEN, reason="why")}, {"G1": 3})
    work = NodeWork(("G0/1",), Cordon.BY_HAND, {"G0": 1})
    node = {"metadata": {"name": "n", "annotations": {**gpus_annotation(gpus), **work_annotation(work)}}}
    assert (node_gpus(node), node_work(node)) == (gpus, work)
    wrong = dict.fromkeys((*gpus_annotation(gpus), *work_annotation(work)), '{"gpus": {"G0": 1}, "seen": 3}')
    assert node_gpus({"metadata": {"name": "n", "annotations": wrong}}) == NodeGpus()
    assert node_work({"metadata": {"name": "n", "annotations": wrong}}) is None
