"""DeviceTaintRules and the times of taints, as kube-apiserver 1.37.2 answered the same requests."""

import random

import pytest

from mews.kube.api.errors import InvalidError
from mews.kube.api.resources import RESOURCE_CLAIMS, RESOURCE_SLICES, taint_rules_of
from mews.kube.client.port import Patch
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.objects import creation, update
from mews.kube.emulated.core.wire.tables import table
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
    with pytest.raises(InvalidError) as refused:
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
    with pytest.raises(InvalidError) as refused:
        with_status(store, conditions)
    assert [cause["field"] for cause in refused.value.details["causes"]] == [f"status.{place}" for place in places]


def test_a_table_shows_the_taint_and_its_age(api):
    store, now = api
    rule = made(store, {"key": "k", "value": "v", "effect": "NoSchedule"})
    kind = store.kinds.of(RULES)
    shown = table(kind, [rule], store.rules(kind).printer, now_s=now[0] + 7, metadata={})
    columns = ["Name", "Key", "Value", "Effect", "TimeAdded", "Age"]
    assert [column["name"] for column in shown["columnDefinitions"]] == columns
    assert shown["rows"][0]["cells"] == ["r", "k", "v", "NoSchedule", "7s", "7s"]


# As kube-apiserver 1.34.2 answered the same requests.

OLD_RULES = taint_rules_of("v1alpha3")
GATES = {"DRADeviceTaints": True}
TAINT = {"key": "k", "effect": "NoExecute"}
AT = "spec.deviceSelector.selectors"
SHARED = "device.allowMultipleAllocations"
DEEP = "device.attributes['d']"
COSTLY = f"{DEEP}.all(a, {DEEP}.all(b, {DEEP}.all(c, {DEEP}.all(e, a == b))))"


def old_store(**gates):
    release = cluster_release("1.34", GATES | gates, {"resource.k8s.io/v1alpha3": True})
    return fresh_store(lambda: 1e9, random.Random(1), release=release)


def old(store, selector, taint=TAINT, name="r"):
    spec = {"deviceSelector": selector, "taint": taint}
    return creation.create(store, store.kinds.of(OLD_RULES), "", {"metadata": {"name": name}, "spec": spec})


def by(*expressions):
    return {"selectors": [{"cel": {"expression": expression}} for expression in expressions]}


@pytest.mark.parametrize("selector", [{}, {"deviceClassName": "a.b"}, by("true"), by("true", "device.driver == 'd'")])
def test_a_rule_of_1_34_is_kept_as_it_was_given(selector):
    assert old(old_store(), selector)["spec"] == {"deviceSelector": selector, "taint": {**TAINT, "timeAdded": CREATED}}


@pytest.mark.parametrize(
    ("selector", "taint", "faults"),
    [
        ({"deviceClassName": ""}, TAINT, [("spec.deviceSelector.deviceClassName", 'Invalid value: ""')]),
        ({"deviceClassName": "A_b"}, TAINT, [("spec.deviceSelector.deviceClassName", 'Invalid value: "A_b"')]),
        (
            {"driver": ""},
            TAINT,
            [("spec.deviceSelector.driver", "Required"), ("spec.deviceSelector.driver", 'Invalid value: ""')],
        ),
        ({"selectors": [{}]}, TAINT, [(f"{AT}[0].cel", "Required value")]),
        (by(*["true"] * 33), TAINT, [(AT, "Too many: 33: must have at most 32 items")]),
        (by("true", "1"), TAINT, [(f"{AT}[1].cel.expression", 'Invalid value: "1": must evaluate to bool or')]),
        (by(SHARED), TAINT, [(f"{AT}[0].cel.expression", f'Invalid value: "{SHARED}": compilation failed')]),
        (by(COSTLY), TAINT, [(f"{AT}[0].cel.expression", "Forbidden: too complex, exceeds cost limit")]),
        (
            {"deviceClassName": "X", "device": "X", "selectors": [{}]},
            {"key": "k", "effect": "None"},
            [
                ("spec.deviceSelector.deviceClassName", 'Invalid value: "X"'),
                ("spec.deviceSelector.device", 'Invalid value: "X"'),
                (f"{AT}[0].cel", "Required value"),
                ("spec.taint.effect", 'Unsupported value: "None": supported values: "NoExecute", "NoSchedule"'),
            ],
        ),
    ],
)
def test_a_wrong_rule_of_1_34_is_refused_where_it_is_wrong(selector, taint, faults):
    with pytest.raises(InvalidError) as refused:
        old(old_store(), selector, taint)
    causes = refused.value.details["causes"]
    assert [cause["field"] for cause in causes] == [path for path, _ in faults]
    assert all(cause["message"].startswith(text) for cause, (_, text) in zip(causes, faults, strict=True))


def test_expressions_of_1_34_may_ask_for_shared_devices_where_there_are_any():
    assert old(old_store(DRAConsumableCapacity=True), by(SHARED))["spec"]["deviceSelector"] == by(SHARED)


@pytest.mark.parametrize(("release", "stored"), [("1.34", LONG_AGO), ("1.35", LONG_AGO), ("1.36", CREATED)])
def test_another_effect_counts_from_the_change_since_1_36(release, stored):
    gates = {"DRADeviceTaints": True} | ({} if release == "1.34" else {"DRADeviceTaintRules": True})
    version = "v1beta2" if release == "1.36" else "v1alpha3"
    known = cluster_release(release, gates, {f"resource.k8s.io/{version}": True})
    store = fresh_store(lambda: 1e9, random.Random(1), release=known)
    kind = store.kinds.of(taint_rules_of(version))
    taint = {**TAINT, "timeAdded": LONG_AGO}
    creation.create(store, kind, "", {"metadata": {"name": "r"}, "spec": {"taint": taint}})
    change = {"spec": {"taint": {"effect": "NoSchedule"}}}
    assert update.patch(store, kind, "", "r", change, patch_kind=Patch.MERGE)["spec"]["taint"]["timeAdded"] == stored


@pytest.mark.parametrize("release", ["1.34", "1.35"])
def test_a_taint_of_a_slice_may_have_the_effect_none_since_1_35(release):
    store = fresh_store(lambda: 1e9, random.Random(1), release=cluster_release(release, GATES))
    spec = {"driver": "d", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}

    def publish(effect):
        device = {"name": "gpu-0", "taints": [{"key": "k", "effect": effect}]}
        body = {"metadata": {"name": f"s-{effect.lower()}"}, "spec": {**spec, "devices": [device]}}
        creation.create(store, store.kinds.of(RESOURCE_SLICES), "", body)

    supported = ['"NoExecute"', '"NoSchedule"', *(['"None"'] if release == "1.35" else [])]
    for effect in ("Foo",) if release == "1.35" else ("Foo", "None"):
        with pytest.raises(InvalidError, match=f'"{effect}": supported values: {", ".join(supported)}$'):
            publish(effect)
    if release == "1.35":
        publish("None")


@pytest.mark.parametrize("release", ["1.34", "1.37"])
def test_a_toleration_may_have_the_effect_none_since_1_35(release):
    store = fresh_store(lambda: 1e9, random.Random(1), release=cluster_release(release))
    kind, supported = store.kinds.of(RESOURCE_CLAIMS), ['"NoExecute"', '"NoSchedule"']

    def claimed(effect):
        exactly = {"deviceClassName": "c", "tolerations": [{"operator": "Exists", "effect": effect}]}
        spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
        body = {"metadata": {"name": f"c-{effect.lower()}"}, "spec": spec}
        return creation.create(store, kind, "default", body)

    if release != "1.34":
        supported.append('"None"')
        assert claimed("None")
    for effect in ("Foo",) if release != "1.34" else ("Foo", "None"):
        with pytest.raises(InvalidError, match=f'"{effect}": supported values: {", ".join(supported)}$'):
            claimed(effect)
