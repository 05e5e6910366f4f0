"""DeviceTaintRules as taints of devices."""

import pytest

from mews.kube.scheduling.devices.taint_rules import is_selected, with_rules

TAINT = {"key": "k", "effect": "NoSchedule"}


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
    tainted = with_rules(given, [first, second])["spec"]["devices"]
    assert tainted == [
        {"name": "gpu-0", "taints": [own, TAINT, second["spec"]["taint"]]},
        {"name": "gpu-1", "taints": [second["spec"]["taint"]]},
    ]
    assert given["spec"]["devices"][0]["taints"] == [own]


@pytest.mark.parametrize("selector", [None, {"device": "gpu-9"}])
def test_a_slice_that_no_rule_is_about_stays_the_same_object(selector):
    given = a_slice({"name": "gpu-0"})
    assert with_rules(given, [rule(selector)]) is given
