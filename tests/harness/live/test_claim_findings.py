"""What is said of a pod whose resource claims are not allocated."""

from __future__ import annotations

from typing import Any

import pytest

from mews.harness.live.explanation import ExplainedSight, explain
from mews.kube.api.objects import Object
from mews.kube.releases.cluster_release import cluster_release
from mews.kube.scheduling.devices.features import DEFAULT_FEATURES, DeviceFeatures
from mews.kube.scheduling.devices.gated_features import features_of
from tests.kube.scheduling.test_devices import DRIVER, ask, claim, device, either, offer, where

SLICES = [offer(device("a", attributes={"n": 1}), device("b", attributes={"n": 2}))]


def held(name: str, *devices: str) -> Object:
    results = [{"request": "r", "driver": DRIVER, "pool": "p", "device": each} for each in devices]
    return {**claim(name=name), "status": {"allocation": {"devices": {"results": results}}}}


def said(
    *claims: Object, entry: dict[str, Any] | None = None, classes: tuple[str, ...] = ("k",), **seen: Any
) -> list[str]:
    spec = {"containers": [], "resourceClaims": [{"name": "e", **(entry or {"resourceClaimName": "c"})}]}
    pod = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": spec, "status": {"phase": "Pending"}}
    known = [{"metadata": {"name": name}, "spec": {}} for name in classes]
    sight = ExplainedSight(
        "default",
        "p",
        pod,
        schedulers={"default-scheduler": "default-scheduler"},
        claims=claims,
        device_classes=known,
        **{"slices": SLICES, **seen},
    )
    explanation = explain(sight)
    assert explanation.cause == "unschedulable"
    return [sentence for sentence in explanation.sentences if "laim" in sentence]


@pytest.mark.parametrize(
    ("request_", "others", "words"),
    [
        (
            ask(count=2),
            [held("other", "a")],
            "request r wants 2: of 2 devices 1 are free and match (1 in use, held by default/other)",
        ),
        (
            ask(selectors=where(f'device.attributes["{DRIVER}"].n > 2')),
            [],
            "request r wants 1: of 2 devices 0 are free and match (2 refused by its own selector #0)",
        ),
        (
            ask(selectors=where(f'device.attributes["{DRIVER}"].absent > 2')),
            [],
            "request r wants 1: of 2 devices 0 are free and match "
            "(2 fail in its own selector #0 (CEL runtime error: no such key: absent))",
        ),
        (
            ask(allocationMode="All", adminAccess=True),
            [held("other", "a")],
            "request r wants all that match: of 2 devices 2 are free and match",
        ),
        (
            {"name": "r", "exactly": {"deviceClassName": "none"}},
            [],
            "request r: there is no DeviceClass none",
        ),
    ],
)
def test_each_request_is_weighed_against_every_device(
    request_: dict[str, Any], others: list[Object], words: str
) -> None:
    assert said(claim(request_), *others) == [f"Claim c is not allocated: {words}."]


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        (features_of(cluster_release("1.37")), "1 are free and match (1 tainted example.com/broken)"),
        (DEFAULT_FEATURES, "2 are free and match"),
    ],
)
def test_taints_of_slices_are_told_where_the_scheduler_honours_them(devices: DeviceFeatures, words: str) -> None:
    taint = {"key": "example.com/broken", "effect": "NoSchedule"}
    slices = [offer(device("a", taints=[taint]), device("b"))]
    told = said(claim(ask(count=2)), slices=slices, devices=devices)
    assert told == [f"Claim c is not allocated: request r wants 2: of 2 devices {words}."]


def test_taints_of_rules_are_told() -> None:
    taint = {"key": "example.com/repair", "effect": "NoExecute"}
    rule = {"metadata": {"name": "r"}, "spec": {"deviceSelector": {"device": "a"}, "taint": taint}}
    told = said(claim(ask(count=2)), taint_rules=[rule], devices=features_of(cluster_release("1.37")))
    assert told[0].endswith("of 2 devices 1 are free and match (1 tainted example.com/repair).")


def test_alternatives_are_told_one_by_one() -> None:
    told = said(claim(either({"count": 3}, {"count": 1})), held("x", "a"), held("y", "b"))
    assert [sentence.partition(" wants ")[0] for sentence in told] == [
        "Claim c is not allocated: request r/s0",
        "Claim c is not allocated: request r/s1",
    ]
    assert told[0].endswith("(2 in use, held by default/x, default/y).")


def test_a_claim_that_is_missing_or_not_made_is_named() -> None:
    assert said() == ["There is no claim c: its scheduler does not look at the pod before there is."]
    template = {"resourceClaimTemplateName": "t"}
    assert said(entry=template) == ["No claim was made yet for e, of template t."]
