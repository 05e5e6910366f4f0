"""DeviceTaintRules and the times of taints, as kube-apiserver 1.37.2 answered the same requests."""

import random

import pytest

from mews.kube.api.errors import Invalid
from mews.kube.api.resources import RESOURCE_SLICES, taint_rules_of
from mews.kube.client.port import Patch
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.objects import creation, update
from mews.kube.emulated.apiserver.tables.group_tables import GROUP_TABLES
from mews.kube.releases.cluster_release import cluster_release

RULES = taint_rules_of("v1")
LONG_AGO = "2020-01-01T00:00:00Z"
CREATED, LATER = "2001-09-09T01:46:40Z", "2001-09-09T01:46:45Z"


@pytest.fixture
def api():
    now = [1e9]
    store = fresh_store(lambda: now[0], random.Random(1), release=cluster_release("1.37"))
    return store, now


def made(store, taint, selector=None):
    spec = {"deviceSelector": selector or {}, "taint": taint}
    return creation.create(store, store.kinds.of(RULES), "", {"metadata": {"name": "r"}, "spec": spec})


def patched(store, taint):
    kind = store.kinds.of(RULES)
    return update.patch(store, kind, "", "r", {"spec": {"taint": taint}}, patch_kind=Patch.MERGE)["spec"]["taint"]


@pytest.mark.parametrize(("given", "stored"), [({}, CREATED), ({"timeAdded": LONG_AGO}, LONG_AGO)])
def test_a_taint_without_a_time_counts_from_now(api, given, stored):
    store, _ = api
    assert made(store, {"key": "k", "effect": "None", **given})["spec"]["taint"]["timeAdded"] == stored
    spec = {"driver": "d", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}
    spec["devices"] = [{"name": "gpu-0", "taints": [{"key": "k", "effect": "NoExecute", **given}]}]
    body = {"metadata": {"name": "s"}, "spec": spec}
    [device] = creation.create(store, store.kinds.of(RESOURCE_SLICES), "", body)["spec"]["devices"]
    assert device["taints"][0]["timeAdded"] == stored


@pytest.mark.parametrize(
    ("change", "stored"),
    [
        ({"effect": "NoExecute"}, LATER),
        ({"effect": "NoExecute", "timeAdded": LONG_AGO}, LONG_AGO),
        ({"value": "v"}, CREATED),
        ({"timeAdded": None}, LATER),
    ],
)
def test_another_effect_or_no_time_counts_from_the_change(api, change, stored):
    store, now = api
    made(store, {"key": "k", "effect": "NoSchedule"})
    now[0] += 5
    assert patched(store, change)["timeAdded"] == stored


@pytest.mark.parametrize(
    ("taint", "selector", "places"),
    [
        ({"key": "k", "effect": "Foo"}, {}, ["spec.taint.effect"]),
        ({"key": "k"}, {}, ["spec.taint.effect"]),
        ({"key": "a/b/c", "effect": "None"}, {}, ["spec.taint.key"]),
        ({"key": "k", "effect": "None"}, {"driver": ""}, ["spec.deviceSelector.driver"]),
        (
            {"key": "k", "effect": "None"},
            {"driver": "Bad_Driver", "pool": "a//b", "device": "X Y"},
            ["spec.deviceSelector.driver", "spec.deviceSelector.pool", "spec.deviceSelector.device"],
        ),
    ],
)
def test_a_wrong_rule_is_refused_where_it_is_wrong(api, taint, selector, places):
    store, _ = api
    with pytest.raises(Invalid) as refused:
        made(store, taint, selector)
    assert [cause["field"] for cause in refused.value.details["causes"]] == places


CONDITION = {"type": "X", "status": "True", "reason": "Y", "message": "", "lastTransitionTime": LONG_AGO}


def with_status(store, conditions):
    body = {"metadata": {"labels": {"a": "b"}}, "spec": {"taint": {"key": "z"}}, "status": {"conditions": conditions}}
    kind = store.kinds.of(RULES)
    return update.patch(store, kind, "", "r", body, patch_kind=Patch.MERGE, subresource="status")


def test_a_status_changes_neither_labels_nor_the_taint(api):
    store, _ = api
    made(store, {"key": "k", "effect": "NoSchedule"})
    written = with_status(store, [CONDITION])
    assert written["status"]["conditions"] == [CONDITION]
    assert "labels" not in written["metadata"]
    assert written["spec"]["taint"] == {"key": "k", "effect": "NoSchedule", "timeAdded": CREATED}


@pytest.mark.parametrize(
    ("conditions", "places"),
    [
        ([{**CONDITION, "status": "Maybe", "reason": ""}], ["conditions[0].status", "conditions[0].reason"]),
        ([{**CONDITION, "type": f"X{number}"} for number in range(9)], ["conditions"]),
    ],
)
def test_a_wrong_condition_is_refused(api, conditions, places):
    store, _ = api
    made(store, {"key": "k", "effect": "NoSchedule"})
    with pytest.raises(Invalid) as refused:
        with_status(store, conditions)
    assert [cause["field"] for cause in refused.value.details["causes"]] == [f"status.{place}" for place in places]


def test_a_table_shows_the_taint_and_its_age(api):
    store, now = api
    rule = made(store, {"key": "k", "value": "v", "effect": "NoSchedule"})
    shown = GROUP_TABLES["devicetaintrules.resource.k8s.io"]
    assert [column.name for column in shown.columns] == ["Name", "Key", "Value", "Effect", "TimeAdded", "Age"]
    assert shown.cells(rule, now[0] + 7) == ["r", "k", "v", "NoSchedule", "7s", "7s"]
