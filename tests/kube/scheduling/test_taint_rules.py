"""DeviceTaintRules as taints of devices."""

import pytest

from mews.kube.scheduling.devices.taint_rules import concern, is_selected, with_rules

TAINT = {"key": "k", "effect": "NoSchedule"}
NO_CLASS = {}.get


def rule(selector=None, taint=TAINT):
    spec = {"taint": taint}
    return {"metadata": {"name": "r"}, "spec": spec if selector is None else {**spec, "deviceSelector": selector}}


def a_slice(*devices):
    return {"metadata": {"name": "s"}, "spec": {"driver": "d", "pool": {"name": "p"}, "devices": list(devices)}}


@pytest.mark.parametrize(
    ("selector", "selects"),
    [
        (None, False),
        ({}, True),
        ({"driver": "d"}, True),
        ({"driver": "other"}, False),
        ({"pool": "p"}, True),
        ({"pool": "other"}, False),
        ({"device": "gpu-0"}, True),
        ({"device": "gpu-1"}, False),
        ({"driver": "d", "pool": "p", "device": "gpu-0"}, True),
        ({"driver": "d", "pool": "p", "device": "gpu-1"}, False),
        ({"driver": "other", "device": "gpu-0"}, False),
    ],
)
def test_a_rule_selects_by_all_that_it_names(selector, selects):
    assert is_selected(rule(selector), "d", "p", "gpu-0") is selects


def test_taints_of_rules_follow_those_of_the_slice():
    own = {"key": "own", "effect": "NoExecute"}
    given = a_slice({"name": "gpu-0", "taints": [own]}, {"name": "gpu-1"})
    first, second = rule({"device": "gpu-0"}), rule({}, {"key": "all", "effect": "NoExecute"})
    tainted = with_rules(given, [first, second], NO_CLASS)["spec"]["devices"]
    assert tainted == [
        {"name": "gpu-0", "taints": [own, TAINT, second["spec"]["taint"]]},
        {"name": "gpu-1", "taints": [second["spec"]["taint"]]},
    ]
    assert given["spec"]["devices"][0]["taints"] == [own]


@pytest.mark.parametrize("selector", [None, {"device": "gpu-9"}])
def test_a_slice_that_no_rule_is_about_stays_the_same_object(selector):
    given = a_slice({"name": "gpu-0"})
    assert with_rules(given, [rule(selector)], NO_CLASS) is given


def by(expression):
    return {"cel": {"expression": expression}}


BIG, SMALL = by("device.attributes['d'].memory > 40"), by("device.attributes['d'].memory < 40")
SLOW = by("device.attributes['d'].speed < 3")
DEVICES = (
    {"name": "gpu-0", "attributes": {"memory": {"int": 80}}},
    {"name": "gpu-1", "attributes": {"memory": {"int": 16}, "speed": {"int": 1}}},
)


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({"deviceClassName": "big"}, ["gpu-0"]),
        ({"deviceClassName": "all"}, ["gpu-0", "gpu-1"]),
        ({"deviceClassName": "missing"}, []),
        ({"selectors": [SMALL]}, ["gpu-1"]),
        ({"selectors": [SMALL, BIG]}, []),
        ({"deviceClassName": "big", "selectors": [SMALL]}, []),
        ({"deviceClassName": "all", "device": "gpu-0"}, ["gpu-0"]),
        ({"selectors": [BIG], "driver": "other"}, []),
        ({"selectors": [SLOW]}, ["gpu-1"]),  # it fails for the other device
        ({"selectors": [by("device.allowMultipleAllocations")]}, []),
    ],
)
def test_a_rule_of_1_34_selects_by_class_and_expression_too(selector, selected):
    classes = {"big": {"spec": {"selectors": [BIG]}}, "all": {"spec": {}}}
    given = a_slice(*({**device, "allowMultipleAllocations": True} for device in DEVICES))
    tainted = with_rules(given, [rule(selector)], classes.get)["spec"]["devices"]
    assert [device["name"] for device in tainted if device.get("taints")] == selected


def test_a_rule_concerns_a_slice_by_names_alone():
    given = a_slice(*DEVICES)
    assert concern([rule({"device": "gpu-9"}), rule({"device": "gpu-1", "deviceClassName": "missing"})], given)
    assert not concern([rule({"device": "gpu-9"}), rule(None)], given)
